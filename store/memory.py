"""The twin of HBase in memory: the same answers, errors and oddities, for tests, simulation and single processes.

Kept like HBase, as the rules above this room lean on it: bounds are exclusive, a put older than what is there is
accepted and merely not the newest, a delete is a tombstone that also hides *later* puts at or below it, and a
compare-and-set writes at the store's time or the checked cell's, whichever is larger. Where HBase is free to choose,
the twin is harsh: versions beyond a family's ``versions_max`` are gone at once, tombstones stay for good. No cell goes
for its age, whatever a family says.
"""

from __future__ import annotations

import threading
import time
from bisect import bisect_left, bisect_right, insort
from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import pairwise

from store import validation
from store.cells import Cell, Family, KeyRange, Row, RowPut
from store.columns import ColumnsByRows
from store.errors import StoreClosed, TableExists, TableMissing
from store.forking import leave_at_fork
from store.protocol import Applied, CompareAndSet, Rejected


class _Row:
    """The cells of one row, newest first, and the largest timestamps that were deleted, in all and of columns."""

    __slots__ = ("cells", "columns_deleted_through", "deleted_through")

    def __init__(self) -> None:
        self.cells: dict[bytes, list[Cell]] = {}
        self.deleted_through = -1
        self.columns_deleted_through: dict[bytes, int] = {}

    def put(self, column: bytes, cell: Cell, versions_max: int) -> None:
        if cell.timestamp <= max(self.deleted_through, self.columns_deleted_through.get(column, -1)):
            return
        versions = self.cells.setdefault(column, [])
        place = bisect_left(versions, -cell.timestamp, key=_descending)
        if place < len(versions) and versions[place].timestamp == cell.timestamp:
            versions[place] = cell
        else:
            versions.insert(place, cell)
            del versions[versions_max:]

    def delete(self, timestamp: int) -> None:
        self.deleted_through = max(self.deleted_through, timestamp)
        for column in list(self.cells):
            self._drop(column, timestamp)

    def delete_column(self, column: bytes, timestamp: int) -> None:
        self.columns_deleted_through[column] = max(self.columns_deleted_through.get(column, -1), timestamp)
        self._drop(column, timestamp)

    def _drop(self, column: bytes, timestamp: int) -> None:
        versions = self.cells.get(column, [])
        del versions[bisect_left(versions, -timestamp, key=_descending) :]
        if not versions:
            self.cells.pop(column, None)

    def below(self, column: bytes, before: int) -> list[Cell]:
        versions = self.cells.get(column, [])
        return versions[bisect_right(versions, -before, key=_descending) :]

    def newest(self, choices: Sequence[bytes], before: int) -> dict[bytes, Cell]:
        found: dict[bytes, Cell] = {}
        for column in self._matching(choices):
            versions = self.below(column, before)
            if versions:
                found[column] = versions[0]
        return found

    def _matching(self, choices: Sequence[bytes]) -> list[bytes]:
        matching = [choice for choice in choices if choice in self.cells]
        for choice in choices:
            if b":" not in choice:
                matching += [column for column in self.cells if validation.family_of(column) == choice]
        return sorted(matching)


def _descending(cell: Cell) -> int:
    return -cell.timestamp


class _Table:
    """Rows by key, and the keys in order."""

    __slots__ = ("families", "keys", "name", "rows", "split_keys")

    def __init__(self, name: str, families: Sequence[Family], split_keys: Sequence[bytes]) -> None:
        self.name = name
        self.split_keys = sorted(split_keys)
        self.families = {family.name: family for family in families}
        self.keys: list[bytes] = []
        self.rows: dict[bytes, _Row] = {}

    def row(self, key: bytes) -> _Row:
        row = self.rows.get(key)
        if row is None:
            row = self.rows[key] = _Row()
            insort(self.keys, key)
        return row

    def versions_max(self, column: bytes) -> int:
        family = self.families.get(validation.family_of(column).decode("ascii", "replace"))
        if family is None:
            raise TableMissing(f"table {self.name} has no column family {validation.family_of(column)!r}")
        return family.versions_max

    def span(self, start: bytes, stop: bytes) -> tuple[int, int]:
        return bisect_left(self.keys, start), bisect_left(self.keys, stop) if stop else len(self.keys)


class MemoryCellStore(ColumnsByRows):
    """A ``CellStore`` in this process. ``wall_ms`` gives the store's own time in milliseconds since 1970."""

    def __init__(self, *, wall_ms: Callable[[], int] = lambda: time.time_ns() // 1_000_000) -> None:
        self._wall_ms = wall_ms
        self._lock = threading.RLock()
        self._tables: dict[str, _Table] = {}
        self._closed = False
        leave_at_fork(self)

    def leave_to_parent(self) -> None:
        """See ``Leaving``. The child has a copy of what is stored."""
        self._lock = threading.RLock()

    def create_table(self, table: str, families: Sequence[Family], split_keys: Sequence[bytes] = ()) -> None:
        """See ``CellStore``."""
        validation.check_table(table)
        validation.check_families(families)
        validation.check_split_keys(split_keys)
        with self._lock:
            if table in self._open_tables():
                raise TableExists(f"table {table} is there already")
            self._tables[table] = _Table(table, families, split_keys)

    def drop_table(self, table: str) -> None:
        """See ``CellStore``."""
        with self._lock:
            self._table(table)
            del self._tables[table]

    def table_names(self) -> list[str]:
        """See ``CellStore``."""
        with self._lock:
            return sorted(self._open_tables())

    def families(self, table: str) -> dict[str, Family]:
        """See ``CellStore``."""
        with self._lock:
            return dict(self._table(table).families)

    def regions(self, table: str) -> list[KeyRange]:
        """See ``CellStore``. They stay as the table was made: the twin splits and merges none."""
        with self._lock:
            bounds = [b"", *self._table(table).split_keys, b""]
        return [KeyRange(start, stop) for start, stop in pairwise(bounds)]

    def get(self, table: str, row: bytes, columns: Sequence[bytes], *, before: int | None = None) -> Row:
        """See ``CellStore``."""
        return self.get_many(table, [row], columns, before=before).get(row, {})

    def get_many(
        self, table: str, rows: Sequence[bytes], columns: Sequence[bytes], *, before: int | None = None
    ) -> dict[bytes, Row]:
        """See ``CellStore``."""
        validation.check_rows(rows)
        choices, limit = validation.chosen(columns), validation.bound(before)
        found: dict[bytes, Row] = {}
        with self._lock:
            place = self._table(table, choices)
            for key in rows:
                row = place.rows.get(key)
                cells = row.newest(choices, limit) if row else {}
                if cells:
                    found[key] = cells
        return found

    def versions(self, table: str, row: bytes, column: bytes, *, before: int | None = None, limit: int) -> list[Cell]:
        """See ``CellStore``."""
        validation.check_row(row)
        validation.check_column(column)
        validation.check_count(limit, "the limit of versions")
        bound = validation.bound(before)
        with self._lock:
            place = self._table(table, [column]).rows.get(row)
            return place.below(column, bound)[:limit] if place else []

    def scan(
        self,
        table: str,
        key_range: KeyRange,
        columns: Sequence[bytes],
        *,
        before: int | None = None,
        batch_rows: int = 500,
        reverse: bool = False,
    ) -> Iterator[tuple[bytes, Row]]:
        """See ``CellStore``."""
        validation.check_table(table)
        validation.check_range(key_range)
        validation.check_count(batch_rows, "the rows of a batch")
        return self._scan(table, key_range, validation.chosen(columns), validation.bound(before), batch_rows, reverse)

    def _scan(
        self, table: str, key_range: KeyRange, choices: list[bytes], before: int, batch_rows: int, reverse: bool
    ) -> Iterator[tuple[bytes, Row]]:
        rest: KeyRange | None = key_range
        while rest is not None:
            batch, rest = self._batch(table, rest, choices, before, batch_rows, reverse)
            yield from batch

    def _batch(
        self, table: str, key_range: KeyRange, choices: list[bytes], before: int, batch_rows: int, reverse: bool
    ) -> tuple[list[tuple[bytes, Row]], KeyRange | None]:
        """The next rows, and the range that is left, if any."""
        with self._lock:
            place = self._table(table, choices)
            first, last = place.span(*key_range)
            lower, upper = (max(first, last - batch_rows), last) if reverse else (first, min(last, first + batch_rows))
            keys = place.keys[lower:upper]
            if reverse:
                keys.reverse()
            found = [(key, place.rows[key].newest(choices, before)) for key in keys]
        batch: list[tuple[bytes, Row]] = [(key, cells) for key, cells in found if cells]
        if last - first <= batch_rows:
            return batch, None
        return batch, KeyRange(key_range.start, keys[-1]) if reverse else KeyRange(keys[-1] + b"\x00", key_range.stop)

    def put(self, table: str, puts: Sequence[RowPut], timestamp: int) -> None:
        """See ``CellStore``."""
        validation.check_puts(puts, timestamp)
        with self._lock:
            place = self._table(table, {column for _, columns in puts for column in columns})
            for key, columns in puts:
                row = place.row(key)
                for column, value in columns.items():
                    row.put(column, Cell(value, timestamp), place.versions_max(column))

    def delete(self, table: str, rows: Sequence[bytes], timestamp: int) -> None:
        """See ``CellStore``."""
        validation.check_rows(rows)
        validation.check_timestamp(timestamp)
        with self._lock:
            place = self._table(table)
            for key in rows:
                place.row(key).delete(timestamp)

    def delete_columns(self, table: str, columns: Mapping[bytes, Sequence[bytes]], timestamp: int) -> None:
        """See ``CellStore``."""
        validation.check_rows(columns)
        named = {column for chosen in columns.values() for column in chosen}
        for column in named:
            validation.check_column(column)
        validation.check_timestamp(timestamp)
        with self._lock:
            place = self._table(table, named)
            for key, chosen in columns.items():
                for column in chosen:
                    place.row(key).delete_column(column, timestamp)

    def compare_and_set(
        self, table: str, row: bytes, *, check: bytes, expected: bytes | None, put: bytes, value: bytes
    ) -> CompareAndSet:
        """See ``CellStore``. An empty value counts as an absent cell, as in HBase."""
        validation.check_compare_and_set(row, check, expected, put, value)
        with self._lock:
            place = self._table(table, (check, put)).row(row)
            stored = place.below(check, validation.BEFORE_MAX)[:1]
            if (stored[0].value or None if stored else None) != expected:
                return Rejected()
            timestamp = max([self._wall_ms(), *(cell.timestamp for cell in stored)])
            place.put(put, Cell(value, timestamp), self._tables[table].versions_max(put))
        return Applied()

    def close(self) -> None:
        """See ``CellStore``."""
        self._closed = True

    def _open_tables(self) -> dict[str, _Table]:
        if self._closed:
            raise StoreClosed
        return self._tables

    def _table(self, table: str, columns: Sequence[bytes] | set[bytes] = ()) -> _Table:
        """The table, when it has the families of all ``columns``."""
        validation.check_table(table)
        place = self._open_tables().get(table)
        if place is None:
            raise TableMissing(f"there is no table {table}")
        for column in columns:
            place.versions_max(column)
        return place
