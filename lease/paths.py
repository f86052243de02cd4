"""Where an installation's nodes lie. Pure."""

from __future__ import annotations

import re
from dataclasses import dataclass

from lease.errors import InvalidLeaseSettings

ROOT_CHARACTERS_MAX = 100
"""The names of an installation's tables are made of its root, and have a limit of their own."""

# Tables are named after the root, its segments joined by dots. Without dots in the segments no two roots share a table,
# and HBase takes no name that begins with a hyphen.
_ROOT = re.compile(r"(/[A-Za-z0-9_][A-Za-z0-9_-]*)+")


@dataclass(frozen=True, slots=True)
class ZnodePaths:
    """Where one installation keeps its nodes, below ``root``, such as ``/pythia``. Raises ``InvalidLeaseSettings``."""

    root: str

    def __post_init__(self) -> None:
        if _ROOT.fullmatch(self.root) is None or len(self.root) > ROOT_CHARACTERS_MAX:
            raise InvalidLeaseSettings(
                f"a znode root looks like /pythia or /team/pythia, each part of A-Z a-z 0-9 _ - and none with - in "
                f"front, {ROOT_CHARACTERS_MAX} characters at most; not {self.root!r}"
            )

    @property
    def lease(self) -> str:
        """The lease record."""
        return f"{self.root}/lease"

    @property
    def epoch(self) -> str:
        """The epoch record."""
        return f"{self.root}/epoch"

    @property
    def level(self) -> str:
        """The level record."""
        return f"{self.root}/level"

    @property
    def data(self) -> str:
        """The record of which data are the installation's."""
        return f"{self.root}/data"

    @property
    def history(self) -> str:
        """The record of past tenures."""
        return f"{self.root}/history"

    @property
    def members(self) -> str:
        """The parent of the ephemeral member nodes."""
        return f"{self.root}/members"

    @property
    def tenures(self) -> str:
        """The parent of the nodes by which a tenure's writes are told from those of another."""
        return f"{self.root}/tenures"

    def tenure(self, nonce: str) -> str:
        """The node that stands for as long as no other tenure has begun after the one with this nonce."""
        return f"{self.tenures}/{nonce}"

    def parents(self) -> list[str]:
        """Every node that must exist before the records, members and tenures do, outermost first."""
        steps = self.root.split("/")
        return ["/".join(steps[: end + 1]) for end in range(1, len(steps))] + [self.members, self.tenures]
