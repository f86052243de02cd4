"""Which cell was last written by which commit, and how each transaction was decided, in bounded memory.

Invariants: for every commit above the low watermark the map knows each of its cells with that commit's timestamp or a
later one; and for every decision above it, the transaction's own entry. So a transaction whose snapshot is at or above
the low watermark can be judged, and is known to be undecided if the map has no entry of it; an older one cannot.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import islice

_EVICTED_AT_ONCE = 1 / 32
"""Share of the map that goes at once: a dict's front is only cheap to reach when many entries are taken from it."""


class ConflictMap:
    """Cell id → commit timestamp, oldest first (a dict keeps the order in which keys were put).

    Among them each decided transaction has an entry under the complement of its start timestamp, which is negative and
    so no cell id: its commit timestamp, or the negated timestamp of its refusal.
    """

    def __init__(self, entries_max: int, low_watermark: int) -> None:
        self._commits: dict[int, int] = {}
        self._entries_max = entries_max
        self._low_watermark = low_watermark

    def __len__(self) -> int:
        return len(self._commits)

    @property
    def low_watermark(self) -> int:
        """Decisions up to this timestamp may have been forgotten: older snapshots cannot be judged."""
        return self._low_watermark

    def raise_low_watermark(self, timestamp: int) -> None:
        """Refuse snapshots below ``timestamp`` from now on."""
        self._low_watermark = max(self._low_watermark, timestamp)

    def written_after(self, cells: Sequence[int], snapshot: int) -> bool:
        """Whether a commit above ``snapshot`` wrote any of the cells, as far as is remembered."""
        commits = self._commits
        return any(commits.get(cell, 0) > snapshot for cell in cells)

    def decision_of(self, start_timestamp: int) -> int | None:
        """A transaction's commit timestamp, something negative if it was refused, ``None`` if nothing is remembered."""
        return self._commits.get(~start_timestamp)

    def enter(self, start_timestamp: int, cells: Sequence[int], commit_timestamp: int) -> None:
        """Remember a commit. Timestamps must grow from call to call, and cells and transaction fit the map."""
        commits = self._commits
        self._make_room(len(cells) + 1)
        for cell in cells:
            commits.pop(cell, None)  # so that it goes to the end: the order of the dict is the order of commits
            commits[cell] = commit_timestamp
        commits[~start_timestamp] = commit_timestamp

    def enter_refusal(self, start_timestamp: int, timestamp: int) -> None:
        """Remember that a transaction was refused at ``timestamp``, which must be above every one entered before."""
        self._make_room(1)
        self._commits[~start_timestamp] = -timestamp

    def _make_room(self, entries: int) -> None:
        excess = len(self._commits) + entries - self._entries_max
        if excess <= 0:
            return
        count = max(excess, int(self._entries_max * _EVICTED_AT_ONCE))
        for key in list(islice(self._commits, count)):
            self.raise_low_watermark(abs(self._commits.pop(key)))
