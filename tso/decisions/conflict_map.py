"""Which cell was last written by which commit, and how each transaction was decided, in bounded memory.

Invariants: for every commit above the low watermark the map knows each of its cells with that commit's timestamp or a
later one; and for every decision above it, the decision. So a transaction whose snapshot is at or above the low
watermark can be judged, and is known to be undecided if no decision of it is remembered; an older one cannot.
"""

from __future__ import annotations

import numpy as np

from tso.decisions.deciding import Cells, Codes, Numbers, decide, decision
from tso.decisions.large_write_sets import Coming, LargeWriteSets
from tso.decisions.recency_map import RecencyMap
from wire.gathering import GatheredCommits


class ConflictMap:
    """``cells_max``: cells remembered; ``decisions_max``: transactions remembered.

    ``large``: the write sets that came in parts. ``seed``: 64 bits that no client knows, so that none can choose cells
    that get into one another's way.
    """

    def __init__(
        self, cells_max: int, decisions_max: int, low_watermark: int, large: LargeWriteSets, seed: int = 0
    ) -> None:
        self._written = RecencyMap(cells_max, seed)
        self._decisions = RecencyMap(decisions_max, seed)
        self._large = large
        self._floor = low_watermark

    def __len__(self) -> int:
        """Cells that are remembered."""
        return len(self._written)

    @property
    def evicted(self) -> int:
        """Cells that were forgotten to make room."""
        return self._written.evicted

    @property
    def decisions(self) -> int:
        """Decided transactions that are remembered."""
        return len(self._decisions)

    @property
    def low_watermark(self) -> int:
        """Decisions up to this timestamp may have been forgotten: older snapshots cannot be judged."""
        forgotten = max(self._written.forgotten, self._decisions.forgotten >> 1, self._large.forgotten)
        return max(self._floor, forgotten)

    def raise_low_watermark(self, timestamp: int) -> None:
        """Refuse snapshots below ``timestamp`` from now on."""
        self._floor = max(self._floor, timestamp)

    def decide(
        self, commits: GatheredCommits, snapshots: Numbers, standing: Codes, first_timestamp: int
    ) -> tuple[Numbers, Codes, int]:
        """Decide over commits in their order, at ``first_timestamp`` and those after it, which must be new.

        ``snapshots``: up to where each is known to be free of conflicts. ``standing``: why it is refused whatever it
        wrote, or 0. Returns commit timestamps (0: refused), reasons, and how many of the commits are new.
        """
        count = commits.start_timestamps.size
        times, reasons = np.empty(count, np.int64), np.empty(count, np.uint8)
        new = decide(
            commits.start_timestamps,
            snapshots,
            commits.offsets,
            commits.guards,
            commits.cells,
            standing,
            first_timestamp,
            max(self._floor, self._large.forgotten),
            self._written.table,
            self._large.table,
            self._decisions.table,
            times,
            reasons,
        )
        return times, reasons, new

    def decision_of(self, start_timestamp: int) -> int | None:
        """A transaction's commit timestamp, something negative if it was refused, ``None`` if nothing is remembered."""
        known = self._decisions.look_up(start_timestamp)
        if known == 0:
            return None
        return -(known >> 1) if known & 1 else known >> 1

    def take(self, coming: Coming, cells: Cells, now_ms: float) -> bool:
        """The next cells of a large write set; false where one of them was written after its snapshot."""
        return self._large.add(coming, cells, self._written.table, now_ms)

    def guards_hold(self, coming: Coming) -> bool:
        """Whether none of a large write set's guards was written after its snapshot, as far as is remembered."""
        return self._large.guards_hold(coming, self._written.table)

    def enter_large(self, start_timestamp: int, timestamp: int) -> None:
        """Remember the commit of a transaction whose write set has been taken whole."""
        self._large.commit(start_timestamp, timestamp)
        self._decisions.enter(start_timestamp, int(decision(timestamp, 0)))

    def enter_refusal(self, start_timestamp: int, timestamp: int) -> None:
        """Remember that a transaction was refused at ``timestamp``; none entered before may be above it."""
        self._decisions.enter(start_timestamp, int(decision(timestamp, 1)))
