"""Write sets that come in parts, each kept as a set of its own beside the conflict map.

So one commit of millions of cells evicts nothing: every other transaction is judged as if it had been small. While its
parts come, what is there already is held for it: whoever else wants to commit one of those cells is refused, and a cell
that was written after its snapshot refuses *it*, at once and not at the end. Invariant: a cell that was taken stays
free of conflicts until the transaction is decided, so that the decision needs no second look at any but the guards.

Bounded in sets and in cells; to make room the oldest decided set is forgotten, which ``forgotten`` says. One that is
not decided is given up when nothing came of it for ``idle_ms_max``.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from tso.decisions.cell_sets import NEVER, SETS_MAX, Cells, CellSets, add_free_of_conflicts
from tso.decisions.recency_index import RecencyTable

_FULL_SHARE = 0.8
_NONE = np.zeros(1, np.uint64)


@dataclass(slots=True)
class Coming:
    """A write set of which ``taken`` of ``total`` cells are there; the last ``guards`` are only checked."""

    number: int
    total: int
    guards: int
    snapshot: int
    taken: int
    heard_ms: float
    guarding: Cells
    """Room for all guards, and those that were taken. Nobody is kept from committing them: they are looked at once more
    in the end."""
    looked_at: int = 0
    """The latest timestamp that had been given out when the first of them were looked at; 0: none was yet."""

    @property
    def guards_taken(self) -> int:
        """How many guards are there."""
        return max(0, self.taken - (self.total - self.guards))


class LargeWriteSets:
    """Sets of ``cells_max`` cells in all; times are monotonic milliseconds. ``seed``: a secret."""

    def __init__(self, cells_max: int, idle_ms_max: float, seed: int = 0) -> None:
        self._cells_max = cells_max
        self._idle_ms_max = idle_ms_max
        self._sizes = [0] * SETS_MAX
        self._coming: dict[int, Coming] = {}
        self._forgotten = 0
        zeros = np.zeros(SETS_MAX, np.uint8)
        times, seeds, touched = np.zeros(SETS_MAX, np.int64), np.array([seed], np.uint64), np.zeros(1, np.uint64)
        self.table = CellSets((_NONE,) * SETS_MAX, times, zeros, seeds, touched)

    def __bool__(self) -> bool:
        """Whether any is coming, or kept."""
        return bool(self._coming) or any(self._sizes)

    @property
    def cells(self) -> int:
        """Cells that there is room for in the sets that are kept."""
        return sum(self._sizes)

    @property
    def forgotten(self) -> int:
        """Commits up to this timestamp may have been forgotten."""
        return self._forgotten

    def of(self, start_timestamp: int) -> Coming | None:
        """What is coming of a transaction."""
        return self._coming.get(start_timestamp)

    def open(self, start_timestamp: int, total: int, guards: int, snapshot: int, now_ms: float) -> Coming | None:
        """Begin anew with a transaction's write set; ``None`` where those of others leave no room now.

        Only the cells that are entered count as such: how many guards there may be is for the caller to bound.
        """
        self.drop(start_timestamp)
        self.drop_idle(now_ms)
        size = total - guards
        if not self._make_room(size):
            return None
        number = int(np.argmin(self.table.times))
        places = list(self.table.places)
        places[number] = np.zeros(int(size / _FULL_SHARE) + 2, np.uint64)
        self.table = self.table._replace(places=tuple(places))
        self.table.times[number], self.table.zeros[number], self._sizes[number] = NEVER, 0, size
        room = np.empty(guards, np.uint64)
        coming = self._coming[start_timestamp] = Coming(number, total, guards, snapshot, 0, now_ms, room)
        return coming

    def add(self, coming: Coming, cells: Cells, written: RecencyTable, now_ms: float) -> bool:
        """Take the next cells; false where one of them was written after the snapshot."""
        entered, before = coming.total - coming.guards - coming.taken, coming.guards_taken
        coming.taken += cells.size
        if entered < cells.size:  # copied: all of the frame would be kept with them
            coming.guarding[before : coming.guards_taken] = cells[max(entered, 0) :]
        coming.heard_ms = now_ms
        return bool(add_free_of_conflicts(self.table, coming.number, written, cells, entered, coming.snapshot))

    def guards_hold(self, coming: Coming, written: RecencyTable) -> bool:
        """Whether none of the guards, all taken, was written after the snapshot, as far as is remembered."""
        return bool(add_free_of_conflicts(self.table, coming.number, written, coming.guarding, 0, coming.snapshot))

    def commit(self, start_timestamp: int, timestamp: int) -> None:
        """The transaction has committed."""
        self.table.times[self._coming.pop(start_timestamp).number] = timestamp

    def drop(self, start_timestamp: int) -> None:
        """The transaction has ended otherwise, or begins anew: what it held is free."""
        coming = self._coming.pop(start_timestamp, None)
        if coming is not None:
            self._free(coming.number)

    def drop_all(self, start_timestamps: npt.NDArray[np.int64]) -> None:
        """``drop`` each; costs nothing where nothing is coming."""
        if self._coming:
            for start_timestamp in start_timestamps.tolist():
                self.drop(start_timestamp)

    def drop_idle(self, now_ms: float) -> None:
        """Give up what nobody goes on with."""
        for start_timestamp, coming in list(self._coming.items()):
            if now_ms - coming.heard_ms >= self._idle_ms_max:
                self.drop(start_timestamp)

    def forget(self, timestamp: int) -> None:
        """Let go of what was committed up to a timestamp below which nobody is judged any more."""
        for number in np.flatnonzero((self.table.times > 0) & (self.table.times <= timestamp)).tolist():
            self._free(number)

    def _make_room(self, cells: int) -> bool:
        while not (self.table.times == 0).any() or self.cells + cells > self._cells_max:
            decided = [int(time) for time in self.table.times if 0 < time < NEVER]
            if not decided:
                return False
            self._forgotten = max(self._forgotten, min(decided))
            self.forget(min(decided))
        return True

    def _free(self, number: int) -> None:
        self.table.times[number], self._sizes[number] = 0, 0
        places = list(self.table.places)
        places[number] = _NONE
        self.table = self.table._replace(places=tuple(places))
