"""By whom a process is known to ZooKeeper: a user and a password, from a file or the environment.

The invariant: no setting, ``repr``, log line or error has the password itself, kazoo's own log lines included; settings
name the file that has it.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from lease.errors import InvalidLeaseSettings

CREDENTIALS_VARIABLE: Final = "PYTHIA_ZOOKEEPER_CREDENTIALS"
"""Has ``user:password`` itself, where there is no file for it."""
CREDENTIALS_BYTES_MAX: Final = 1024


class _Hidden(str):
    """A text that libraries get as it is, and that shows itself as hidden wherever it is described."""

    __slots__ = ()

    def __repr__(self) -> str:
        return "(hidden)"


@dataclass(frozen=True, slots=True)
class ZooKeeperCredentials:
    """For ZooKeeper's scheme ``digest``. Raises ``InvalidLeaseSettings``, without a word of what is wrong with what."""

    user: str
    password: str = field(repr=False)

    def __post_init__(self) -> None:
        both = self.user + self.password
        if not self.user or not self.password or ":" in self.user or not both.isascii() or not both.isprintable():
            raise InvalidLeaseSettings(
                "credentials for ZooKeeper are user:password on one line, in printable ASCII, the user without a colon"
            )

    @property
    def digest(self) -> str:
        """What is sent to ZooKeeper; its ``repr`` does not show it."""
        return _Hidden(f"{self.user}:{self.password}")


def load_credentials(file: str, environment: Mapping[str, str] = os.environ) -> ZooKeeperCredentials | None:
    """Those of a file, or of the environment where ``file`` is empty; ``None`` where there are none.

    Raises ``InvalidLeaseSettings``.
    """
    if not file:
        text = environment.get(CREDENTIALS_VARIABLE, "").strip()
        return _parsed(text) if text else None
    try:
        with Path(file).open("rb") as opened:
            raw = opened.read(CREDENTIALS_BYTES_MAX + 1)
    except OSError as error:
        raise InvalidLeaseSettings(f"zookeeper_credentials_file {file}: {error.strerror or error}") from error
    if len(raw) > CREDENTIALS_BYTES_MAX:
        raise InvalidLeaseSettings(f"zookeeper_credentials_file {file} has more than {CREDENTIALS_BYTES_MAX} bytes")
    try:
        return _parsed(raw.decode("ascii", "replace").strip())
    except InvalidLeaseSettings as error:
        raise InvalidLeaseSettings(f"zookeeper_credentials_file {file}: {error}") from None


def _parsed(text: str) -> ZooKeeperCredentials:
    user, _, password = text.partition(":")
    return ZooKeeperCredentials(user, password)
