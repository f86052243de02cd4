"""What is stored of a table, asked for by what is agreed on about it: its families, and whether it was adopted.

Where a table or a family is missing, what was agreed on may be outdated, since the table may have been made anew: then
the question is asked once more, by what holds now.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from itertools import chain, islice
from typing import Protocol, TypeVar

from client.bulk_writes.batching import BATCH_BYTES_MAX, stored_batches
from client.catalog.entry import CatalogEntry
from client.cells import SHADOW_QUALIFIER, family_of, shadow_column
from client.errors import InvalidRequest
from client.snapshots.plain_cells import Cells, cells_of
from client.snapshots.visibility import with_bookkeeping
from store import CellStore, InvalidCell, KeyRange, Row, TableMissing
from store.columns import ScannedColumns

SCAN_BATCH_ROWS = 500
SCAN_FIRST_ROWS = 16
"""Of a scan: many a caller wants no more than these."""

Rows = Sequence[tuple[bytes, Row]]
Answer = TypeVar("Answer")


class Tables(Protocol):
    """What is agreed on about tables, as ``Catalog`` has it. Both raise ``InvalidRequest`` where there is none."""

    def entry(self, table: str) -> CatalogEntry:
        """As it was a short while ago."""
        ...

    def fresh_entry(self, table: str) -> CatalogEntry:
        """As it is now."""
        ...


class StoredCells:
    """What is stored below the timestamp ``before``. Columns are chosen by name; ``None``: every family of the table.

    Each call raises ``InvalidRequest`` for a table that is not there, and for what cannot be asked for.
    """

    __slots__ = ("_before", "_store", "_tables")

    def __init__(self, store: CellStore, before: int, tables: Tables) -> None:
        self._store = store
        self._before = before
        self._tables = tables

    def plain_through(self, table: str) -> int:
        """See ``client.snapshots.plain_cells``."""
        return self._tables.entry(table).plain_through

    def families(self, table: str) -> tuple[bytes, ...]:
        """Those for data."""
        return self._tables.entry(table).family_columns

    def cells(self, table: str) -> Cells:
        """Whom to ask for versions of any age."""
        return cells_of(self._store, self.plain_through(table))

    def row(self, table: str, row: bytes, columns: Sequence[bytes] | None) -> Row:
        """The newest cells of a row."""
        return self._ask(table, columns, lambda cells, chosen: cells.get(table, row, chosen, before=self._before))

    def rows(self, table: str, keys: Sequence[bytes], columns: Sequence[bytes] | None) -> Rows:
        """The newest cells of rows, of those that have any, in the order of ``keys``."""
        found = self._ask(
            table, columns, lambda cells, chosen: cells.get_many(table, keys, chosen, before=self._before)
        )
        return [(key, found[key]) for key in keys if key in found]

    def batches(
        self,
        table: str,
        key_range: KeyRange,
        columns: Sequence[bytes] | None,
        *,
        batch_rows: int,
        reverse: bool = False,
    ) -> Iterator[Rows]:
        """The newest cells of a range's rows, up to ``batch_rows`` at a time, and few at first."""

        def begin(cells: Cells, chosen: list[bytes]) -> Iterator[Rows]:
            before = self._before
            rows = iter(cells.scan(table, key_range, chosen, before=before, batch_rows=batch_rows, reverse=reverse))
            few = stored_batches(rows, min(SCAN_FIRST_ROWS, batch_rows), BATCH_BYTES_MAX)
            return chain(islice(few, 1), stored_batches(rows, batch_rows, BATCH_BYTES_MAX))

        return self._scan(table, columns, begin)

    def column_batches(
        self,
        table: str,
        key_range: KeyRange,
        columns: Sequence[bytes] | None,
        looked_at: Sequence[bytes],
        *,
        batch_rows: int,
        lean: bool,
    ) -> Iterator[ScannedColumns]:
        """The same as columns, ``looked_at`` first, of up to ``batch_rows`` rows; ``lean``: without shadow cells."""
        shadows = () if lean else map(shadow_column, dict.fromkeys(map(family_of, looked_at)))
        asked = (*looked_at, *shadows)

        def begin(cells: Cells, chosen: list[bytes]) -> Iterator[ScannedColumns]:
            return cells.scan_columns(
                table,
                key_range,
                chosen,
                asked,
                before=self._before,
                batch_rows=batch_rows,
                without_qualifier=SHADOW_QUALIFIER if lean else None,
            )

        return self._scan(table, columns, begin)

    def _scan(
        self,
        table: str,
        columns: Sequence[bytes] | None,
        begin: Callable[[Cells, list[bytes]], Iterator[Answer]],
    ) -> Iterator[Answer]:
        """What ``begin`` begins. Only its first batch shows whether there is such a table."""

        def first(cells: Cells, chosen: list[bytes]) -> tuple[Answer | None, Iterator[Answer]]:
            batches = begin(cells, chosen)
            return next(batches, None), batches

        batch, batches = self._ask(table, columns, first)
        while batch is not None:
            yield batch
            batch = next(batches, None)

    def _ask(self, table: str, columns: Sequence[bytes] | None, ask: Callable[[Cells, list[bytes]], Answer]) -> Answer:
        try:
            try:
                return self._ask_of(table, columns, self._tables.entry(table), ask)
            except TableMissing:
                return self._ask_of(table, columns, self._tables.fresh_entry(table), ask)
        except (TableMissing, InvalidCell) as error:
            raise InvalidRequest(str(error)) from error

    def _ask_of(
        self,
        table: str,
        columns: Sequence[bytes] | None,
        entry: CatalogEntry,
        ask: Callable[[Cells, list[bytes]], Answer],
    ) -> Answer:
        return ask(cells_of(self._store, entry.plain_through), _choice(table, columns, entry))


def _choice(table: str, columns: Sequence[bytes] | None, entry: CatalogEntry) -> list[bytes]:
    """What to read. Raises ``TableMissing`` for a family that the table does not have."""
    if columns is None:
        return with_bookkeeping(entry.family_columns)
    missing = {family_of(column) for column in columns} - set(entry.family_columns)
    if missing:
        named = ", ".join(sorted(family.decode(errors="replace") for family in missing))
        raise TableMissing(f"table {table!r} has no family {named}; it has {', '.join(entry.families)}")
    return with_bookkeeping(columns)
