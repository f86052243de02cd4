"""The file of tokens as it is now: read again when it has changed, and kept as it was where the new one is broken.

The invariant: from the first good file on there are always tokens in force; a file with mistakes changes nothing, and
is told of in the log once for each time that it was written.
"""

from __future__ import annotations

import logging
import os
import stat
from pathlib import Path
from typing import Final

from access.tokens import BadTokens, Tokens, parse

log = logging.getLogger(__name__)

FILE_BYTES_MAX: Final = 2**20
LOOK_MS: Final = 1_000
"""How often it is looked whether the file has changed."""

_Stamp = tuple[int, ...] | None


class TokensFile:
    """One file. ``now_s`` is a monotonic clock's.

    Raises ``BadTokens`` or ``OSError`` where it cannot be used at first.
    """

    def __init__(self, path: str, now_s: float) -> None:
        self._path = path
        self._stamp = _stamp(path)
        self._looked_s = now_s
        self._failed = ""
        self.current = read_tokens(path)
        _warn_of_writers(path)

    def refresh(self, now_s: float) -> Tokens:
        """The tokens in force; the file is looked at where that was ``LOOK_MS`` ago. Raises nothing."""
        if (now_s - self._looked_s) * 1000 < LOOK_MS:
            return self.current
        self._looked_s = now_s
        stamp = _stamp(self._path)
        if stamp != self._stamp or self._failed:
            self._stamp = stamp
            self._read_again()
        return self.current

    def _read_again(self) -> None:
        """What cannot be read now is tried again at each look: rights, or descriptors, may come back by themselves."""
        failed_before, self._failed = self._failed, ""
        try:
            self.current = read_tokens(self._path)
            _warn_of_writers(self._path)
        except BadTokens as error:
            for mistake in error.mistakes:
                log.error("tokens file %s: %s", self._path, mistake)
            log.error("tokens file %s has mistakes: the tokens that were in force before stay so", self._path)
        except OSError as error:
            self._failed = str(error)
            if self._failed != failed_before:
                log.error("tokens file %s: %s: the tokens in force stay so", self._path, error.strerror or error)
        else:
            log.warning("tokens file %s has changed: %d tokens are in force", self._path, len(self.current.by_name))


def read_tokens(path: str) -> Tokens:
    """The tokens of a file. Raises ``BadTokens`` with every mistake, ``OSError`` where it cannot be read."""
    with Path(path).open("rb") as file:
        raw = file.read(FILE_BYTES_MAX + 1)
    if len(raw) > FILE_BYTES_MAX:
        raise BadTokens([f"it is larger than {FILE_BYTES_MAX} bytes: that is no file of tokens"])
    try:
        return parse(raw.decode())
    except UnicodeDecodeError as error:
        raise BadTokens([f"it is not UTF-8: {error.reason} at byte {error.start}"]) from error


def _stamp(path: str) -> _Stamp:
    try:
        found = os.stat(path)
    except OSError:
        return None
    return found.st_mtime_ns, found.st_ctime_ns, found.st_size, found.st_ino


def _warn_of_writers(path: str) -> None:
    if os.stat(path).st_mode & (stat.S_IWGRP | stat.S_IWOTH):
        log.warning("others than its owner may write the tokens file %s, and let themselves in: chmod 600", path)
