"""What really happened, read from the commit table by its own rule once nothing is under way any more."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable

from commit_table import CommitTable, Committed
from commit_table.layout import OWN_ROW
from store import MemoryCellStore, RowPut
from tests.simulation.journal import Cell, Record
from tests.simulation.kernel import Kernel
from tests.simulation.timestamps import shown


class Truth:
    """Which transactions committed, and so what every snapshot has to see."""

    def __init__(self, cells: MemoryCellStore, table: str, records: Iterable[Record]) -> None:
        self.records = list(records)
        starts = sorted({record.start for record in self.records})
        outcomes = CommitTable(cells, table).outcomes(starts)
        self.outcomes = outcomes
        self.committed = {
            start: outcome.commit_timestamp for start, outcome in outcomes.items() if isinstance(outcome, Committed)
        }
        self._versions: dict[Cell, list[tuple[int, int]]] = {}
        for record in self.records:
            if record.start in self.committed:
                for cell, value in record.writes.items():
                    self._versions.setdefault(cell, []).append((self.committed[record.start], value))
        for versions in self._versions.values():
            versions.sort()

    def value_at(self, cell: Cell, snapshot: int) -> int:
        """What a snapshot has to see in a cell; 0: nothing."""
        versions = self._versions.get(cell, [])
        place = bisect_right(versions, (snapshot, 2**63))
        return versions[place - 1][1] if place else 0


class Landings:
    """When each commit record reached the commit table, and what it said."""

    def __init__(self, kernel: Kernel, table: str) -> None:
        self.first: dict[tuple[int, int], int] = {}
        """(start, commit timestamp) → the moment."""
        self.epochs: dict[tuple[int, int], set[int]] = {}
        """(start, commit timestamp) → the epochs in whose name it was written."""
        self._kernel = kernel
        self._table = table

    def watch(self, table: str, put: RowPut, timestamp: int) -> None:
        """A row was put."""
        if table != self._table or put.row == OWN_ROW:
            return
        block = int.from_bytes(put.row[1:], "big")
        for column, value in put.columns.items():
            if column.startswith(b"c:"):
                start = block << 18 | int.from_bytes(column[2:], "big")
                commit = int.from_bytes(value, "big")
                self.first.setdefault((start, commit), self._kernel.moment())
                self.epochs.setdefault((start, commit), set()).add(timestamp)
                self._kernel.tell_of("store", f"holds: {shown(start)} committed at {shown(commit)}")
