"""Shadow cells in a column family of their own, below all who read and write them.

HBase goes over all that lies in a family, whatever it is asked for. A scan that knows who wrote does without shadow
cells (``client.snapshots.column_scans``); beside three narrow columns they are a quarter of what HBase would go over
all the same, and filter. So a table that is made here has one family more, in which there is nothing else: where it is
not asked for it is not even opened.

Above this module there is one layout, that of ``client.cells``: the shadow cell of family ``f`` is the column
``shadow_column(b"f")``. Tables that Pythia did not make have it there indeed, since nothing gives a table of HBase's
another family. Of the others the names are changed on the way to the store, and back; timestamps and values are not.

Invariant: of one table everybody says the same, since its catalog entry does, and none is made anew under a name before
everybody has had to ask for that again.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import lru_cache
from typing import Final

from client.cells import COLUMNS_REMEMBERED_MAX, SHADOW_QUALIFIER, family_of, is_shadow, shadow_column
from store import Cell, CellStore, CompareAndSet, Family, KeyRange, Row, RowPut
from store.columns import CellColumns, ScannedColumns

SHADOW_FAMILY: Final = "_"
"""Its name. HBase writes it into each cell, so it is short."""
_FAMILY: Final = SHADOW_FAMILY.encode()
_COLUMNS: Final = _FAMILY + b":"

Families = tuple[bytes, ...]


@lru_cache(COLUMNS_REMEMBERED_MAX)
def stored_column(column: bytes) -> bytes:
    """Where the cells of a column lie in a table that has a family for shadow cells."""
    return _COLUMNS + family_of(column) if is_shadow(column) else column


@lru_cache(COLUMNS_REMEMBERED_MAX)
def named_column(stored: bytes) -> bytes:
    """Which column has its cells there."""
    return shadow_column(stored.removeprefix(_COLUMNS)) if stored.startswith(_COLUMNS) else stored


def stored_choice(columns: Sequence[bytes], families: Families, *, with_shadows: bool = True) -> list[bytes]:
    """What to ask the store for, to get a choice of families and columns; ``families``: all that the table has.

    The whole family of shadow cells where all others are asked for: HBase is faster where it need not choose.
    """
    chosen = [column for column in columns if not is_shadow(column)]
    if not with_shadows:
        return chosen
    if set(families) <= set(columns):
        return [*chosen, _FAMILY]
    shadows = [_COLUMNS + family_of(column) for column in columns if b":" not in column or is_shadow(column)]
    return [*chosen, *dict.fromkeys(shadows)]


def _named_row(row: Row) -> Row:
    return {named_column(column): cell for column, cell in row.items()}


def _named_batch(batch: ScannedColumns, known: Sequence[bytes]) -> ScannedColumns:
    others = {row: _named_row(cells) for row, cells in batch.others.items()}
    return replace(batch, cells=replace(batch.cells, columns=tuple(known)), others=others)


class ShadowFamilyStore:
    """A ``CellStore`` in which all tables look alike; see above, and there for the calls.

    ``apart``: the families of a table, without that of its shadow cells; ``None`` where it has none for them.
    """

    def __init__(self, store: CellStore, apart: Callable[[str], Families | None]) -> None:
        self._store = store
        self._apart = apart

    def create_table(self, table: str, families: Sequence[Family], split_keys: Sequence[bytes] = ()) -> None:
        """See ``CellStore``. It has the families that are named, and no other."""
        self._store.create_table(table, families, split_keys)

    def drop_table(self, table: str) -> None:
        """See ``CellStore``."""
        self._store.drop_table(table)

    def table_names(self) -> list[str]:
        """See ``CellStore``."""
        return self._store.table_names()

    def families(self, table: str) -> dict[str, Family]:
        """See ``CellStore``. Without that of the shadow cells."""
        families = self._store.families(table)
        if self._apart(table) is not None:
            families.pop(SHADOW_FAMILY, None)
        return families

    def regions(self, table: str) -> list[KeyRange]:
        """See ``CellStore``."""
        return self._store.regions(table)

    def get(self, table: str, row: bytes, columns: Sequence[bytes], *, before: int | None = None) -> Row:
        """See ``CellStore``."""
        families = self._apart(table)
        if families is None:
            return self._store.get(table, row, columns, before=before)
        return _named_row(self._store.get(table, row, stored_choice(columns, families), before=before))

    def get_many(
        self, table: str, rows: Sequence[bytes], columns: Sequence[bytes], *, before: int | None = None
    ) -> dict[bytes, Row]:
        """See ``CellStore``."""
        families = self._apart(table)
        if families is None:
            return self._store.get_many(table, rows, columns, before=before)
        found = self._store.get_many(table, rows, stored_choice(columns, families), before=before)
        return {key: _named_row(row) for key, row in found.items()}

    def get_columns(
        self,
        table: str,
        rows: Sequence[bytes],
        columns: Sequence[bytes],
        known: Sequence[bytes],
        *,
        before: int | None = None,
    ) -> Iterator[ScannedColumns]:
        """See ``CellStore``."""
        families = self._apart(table)
        if families is None:
            return self._store.get_columns(table, rows, columns, known, before=before)
        stored = [stored_column(column) for column in known]
        batches = self._store.get_columns(table, rows, stored_choice(columns, families), stored, before=before)
        return (_named_batch(batch, known) for batch in batches)

    def versions(self, table: str, row: bytes, column: bytes, *, before: int | None = None, limit: int) -> list[Cell]:
        """See ``CellStore``."""
        stored = column if self._apart(table) is None else stored_column(column)
        return self._store.versions(table, row, stored, before=before, limit=limit)

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
        families = self._apart(table)
        stored = columns if families is None else stored_choice(columns, families)
        rows = self._store.scan(table, key_range, stored, before=before, batch_rows=batch_rows, reverse=reverse)
        return rows if families is None else ((key, _named_row(row)) for key, row in rows)

    def scan_columns(
        self,
        table: str,
        key_range: KeyRange,
        columns: Sequence[bytes],
        known: Sequence[bytes],
        *,
        before: int | None = None,
        batch_rows: int = 500,
        without_qualifier: bytes | None = None,
    ) -> Iterator[ScannedColumns]:
        """See ``CellStore``. To leave out shadow cells takes no filter."""
        families = self._apart(table)
        stored: Sequence[bytes] = known
        if families is not None:
            lean = without_qualifier == SHADOW_QUALIFIER
            columns = stored_choice(columns, families, with_shadows=not lean)
            stored = [stored_column(column) for column in known]
            without_qualifier = None if lean else without_qualifier
        batches = self._store.scan_columns(
            table,
            key_range,
            columns,
            stored,
            before=before,
            batch_rows=batch_rows,
            without_qualifier=without_qualifier,
        )
        return batches if families is None else (_named_batch(batch, known) for batch in batches)

    def put_columns(
        self, table: str, cells: CellColumns, timestamp: int, *, before_each: Callable[[], None] = lambda: None
    ) -> None:
        """See ``CellStore``."""
        if self._apart(table) is not None:
            cells = replace(cells, columns=tuple(map(stored_column, cells.columns)))
        self._store.put_columns(table, cells, timestamp, before_each=before_each)

    def put(self, table: str, puts: Sequence[RowPut], timestamp: int) -> None:
        """See ``CellStore``."""
        if self._apart(table) is not None:
            puts = [
                RowPut(row, {stored_column(column): value for column, value in columns.items()})
                for row, columns in puts
            ]
        self._store.put(table, puts, timestamp)

    def delete(self, table: str, rows: Sequence[bytes], timestamp: int) -> None:
        """See ``CellStore``. Of every family, that of the shadow cells included."""
        self._store.delete(table, rows, timestamp)

    def delete_columns(self, table: str, columns: Mapping[bytes, Sequence[bytes]], timestamp: int) -> None:
        """See ``CellStore``."""
        if self._apart(table) is not None:
            columns = {row: [stored_column(column) for column in chosen] for row, chosen in columns.items()}
        self._store.delete_columns(table, columns, timestamp)

    def compare_and_set(
        self, table: str, row: bytes, *, check: bytes, expected: bytes | None, put: bytes, value: bytes
    ) -> CompareAndSet:
        """See ``CellStore``."""
        if self._apart(table) is not None:
            check, put = stored_column(check), stored_column(put)
        return self._store.compare_and_set(table, row, check=check, expected=expected, put=put, value=value)

    def close(self) -> None:
        """See ``CellStore``."""
        self._store.close()
