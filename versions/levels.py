"""The level of an installation: one number for all formats that its processes and clients have to share.

A release works at a range of levels. Whatever is written by many (rows of the commit table, shadow cells, tombstones,
manifests, conflict keys) carries no version of its own, for it would be a byte in each of millions of cells, and a
reader that meets it there would have nothing better to do than to fail half-way. Instead the installation has one
*level*, on record in ZooKeeper and in the commit table, and whoever does not work at it is refused before it reads or
writes anything.

Invariant: ``SPOKEN`` is the only place that says which levels this release works at, and ``spoken`` the only way to it.
A release that changes a format adds one level, goes on writing the old format below it, and drops no level that the
release before it can be at.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

RELEASE: Final = "0.1.0"
"""Of this software, for people to read."""
FIRST_LEVEL: Final = 1
LEVEL_MAX: Final = 1_000_000


class LevelNotSpoken(ValueError):
    """This program does not work at the installation's level; the text says which side has to be upgraded."""


@dataclass(frozen=True, slots=True)
class LevelRange:
    """The levels ``lowest`` to ``highest``, both included. Raises ``ValueError`` for what is no range of levels."""

    lowest: int
    highest: int

    def __post_init__(self) -> None:
        whole = type(self.lowest) is int and type(self.highest) is int
        if not whole or not FIRST_LEVEL <= self.lowest <= self.highest <= LEVEL_MAX:
            raise ValueError(f"levels are whole numbers from {FIRST_LEVEL} on, lowest first, not {self}")

    def __contains__(self, level: int) -> bool:
        return self.lowest <= level <= self.highest

    def __str__(self) -> str:
        return f"level {self.lowest}" if self.lowest == self.highest else f"levels {self.lowest} to {self.highest}"

    def require(self, level: int, where: str) -> None:
        """Raise ``LevelNotSpoken`` unless a program that works at these levels may touch what is at ``level``.

        ``where``: what is at that level, such as ``"the installation /pythia"``.
        """
        program = f"this program (pythia-tso {RELEASE}) works at {self}"
        if level > self.highest:
            raise LevelNotSpoken(
                f"{where} requires level {level}, and {program}: upgrade this program to a release that works at level "
                f"{level}"
            )
        if level < self.lowest:
            raise LevelNotSpoken(
                f"{where} is at level {level}, and {program}: it is too new. Upgrade the installation step by step: "
                f"run a release that works at level {level} and a later one, `pythia upgrade finish`, and then the "
                "next release"
            )


FIRST_RELEASE: Final = LevelRange(FIRST_LEVEL, FIRST_LEVEL)
"""What the first release worked at."""

SPOKEN = FIRST_RELEASE
"""What this release works at."""


def spoken() -> LevelRange:
    """The levels that this release works at."""
    return SPOKEN
