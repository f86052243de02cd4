"""Which cell was last written by which commit, in bounded memory.

Invariant: for every commit above the low watermark the map knows each of its cells with that commit's timestamp or a
later one. So a transaction whose snapshot is at or above the low watermark can be judged; an older one cannot.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import islice

_EVICTED_AT_ONCE = 1 / 32
"""Share of the map that goes at once: a dict's front is only cheap to reach when many entries are taken from it."""


class ConflictMap:
    """Cell id → commit timestamp, oldest commit first (a dict keeps the order in which keys were put)."""

    def __init__(self, cells_max: int, low_watermark: int) -> None:
        self._commits: dict[int, int] = {}
        self._cells_max = cells_max
        self._low_watermark = low_watermark

    def __len__(self) -> int:
        return len(self._commits)

    @property
    def low_watermark(self) -> int:
        """Commits up to this timestamp may have been forgotten: older snapshots cannot be judged."""
        return self._low_watermark

    def raise_low_watermark(self, timestamp: int) -> None:
        """Refuse snapshots below ``timestamp`` from now on."""
        self._low_watermark = max(self._low_watermark, timestamp)

    def written_after(self, cells: Sequence[int], snapshot: int) -> bool:
        """Whether a commit above ``snapshot`` wrote any of the cells, as far as is remembered."""
        commits = self._commits
        return any(commits.get(cell, 0) > snapshot for cell in cells)

    def enter(self, cells: Sequence[int], commit_timestamp: int) -> None:
        """Remember a commit; timestamps must grow from call to call, and ``cells`` fit the map."""
        commits = self._commits
        self._make_room(len(cells))
        for cell in cells:
            commits.pop(cell, None)  # so that it goes to the end: the order of the dict is the order of commits
            commits[cell] = commit_timestamp

    def _make_room(self, cells: int) -> None:
        excess = len(self._commits) + cells - self._cells_max
        if excess <= 0:
            return
        count = max(excess, int(self._cells_max * _EVICTED_AT_ONCE))
        for cell in list(islice(self._commits, count)):
            self.raise_low_watermark(self._commits.pop(cell))
