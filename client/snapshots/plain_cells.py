"""A table that was adopted, as those who read it look at it. The rules are pure; ``PlainCells`` reads a store by them.

Plain puts gave their cells HBase's milliseconds as timestamps, a number of them in each column, and their values say
nothing of tombstones. Readers know none of that. They are shown the table as though *one* transaction had written, at
the table's ``plain_through``, the newest plain cell of each column, and had committed at once: what was there before
the first transaction. What lies below is nobody's to see, and goes when a vacuum drops the cell above it.

No oracle hands out timestamps as low as plain ones (``TRANSACTIONS_FROM``). So a cell above ``plain_through`` and below
those is of a program that went on without transactions after the table was adopted: nobody sees it.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Final, TypeAlias

import numpy as np

from client.cells import TOMBSTONE, encode_value
from client.snapshots.visibility import NOT_COMMITTED, OPEN
from store import Cell, CellStore, KeyRange, Row
from store.columns import ABSENT, BlockBuilder, ScannedColumns, taken

TRANSACTIONS_FROM: Final = 2**52
"""Start timestamps are above it in every installation whose clock shows a date after July 1970. HBase's own timestamps,
in milliseconds, are below; so are microseconds until the year 2112.
"""


def outcome_of_plain(writer: int, plain_through: int) -> int:
    """What became of the writer of cells at this timestamp, where a table's ``plain_through`` says so; else ``OPEN``.

    It is 0 of a table that was not adopted.
    """
    if plain_through and writer < TRANSACTIONS_FROM:
        return writer if writer == plain_through else NOT_COMMITTED
    return OPEN


def as_written(row: Row, plain_through: int) -> Row:
    """A row with its plain cells as a transaction would have written them at ``plain_through``."""
    if all(cell.timestamp > plain_through for cell in row.values()):
        return row
    return {
        column: cell if cell.timestamp > plain_through else Cell(encode_value(cell.value), plain_through)
        for column, cell in row.items()
    }


def columns_as_written(batch: ScannedColumns, plain_through: int) -> ScannedColumns:
    """The same of a batch; but for values that begin like tombstones, its bytes are not copied."""
    cells = batch.cells
    plain = (batch.timestamps <= plain_through) & (cells.value_lengths != ABSENT)
    others = {row: dict(as_written(each, plain_through)) for row, each in batch.others.items()}
    escaped = plain & (cells.value_lengths > 0)
    escaped[escaped] = cells.data[cells.value_starts[escaped]] == TOMBSTONE[0]
    if escaped.any():
        values = taken(cells.data, cells.value_starts[escaped], cells.value_lengths[escaped])
        data = BlockBuilder()
        data.add_block(cells.data)
        starts, lengths = cells.value_starts.copy(), cells.value_lengths.copy()
        starts[escaped], lengths[escaped] = data.add([encode_value(value) for value in values])
        cells = replace(cells, data=data.block(), value_starts=starts, value_lengths=lengths)
    return ScannedColumns(cells, np.where(plain, plain_through, batch.timestamps), others)


class PlainCells:
    """What readers ask of a ``CellStore``, of a table that was adopted; see above, and there for the calls."""

    def __init__(self, store: CellStore, plain_through: int) -> None:
        self._store = store
        self._plain_through = plain_through

    def _shows_nothing(self, before: int) -> bool:
        return before <= self._plain_through

    def get(self, table: str, row: bytes, columns: Sequence[bytes], *, before: int) -> Row:
        """See ``CellStore``."""
        if self._shows_nothing(before):
            return {}
        return as_written(self._store.get(table, row, columns, before=before), self._plain_through)

    def get_many(self, table: str, rows: Sequence[bytes], columns: Sequence[bytes], *, before: int) -> dict[bytes, Row]:
        """See ``CellStore``."""
        if self._shows_nothing(before):
            return {}
        found = self._store.get_many(table, rows, columns, before=before)
        return {key: as_written(row, self._plain_through) for key, row in found.items()}

    def versions(self, table: str, row: bytes, column: bytes, *, before: int, limit: int) -> list[Cell]:
        """See ``CellStore``. The last one is the newest plain one, where there is one among them."""
        if self._shows_nothing(before):
            return []
        found = self._store.versions(table, row, column, before=before, limit=limit)
        written = [cell for cell in found if cell.timestamp > self._plain_through]
        plain = found[len(written) : len(written) + 1]
        return [*written, *(Cell(encode_value(cell.value), self._plain_through) for cell in plain)]

    def scan(
        self,
        table: str,
        key_range: KeyRange,
        columns: Sequence[bytes],
        *,
        before: int,
        batch_rows: int,
        reverse: bool = False,
    ) -> Iterator[tuple[bytes, Row]]:
        """See ``CellStore``."""
        if self._shows_nothing(before):
            return iter(())
        rows = self._store.scan(table, key_range, columns, before=before, batch_rows=batch_rows, reverse=reverse)
        return ((key, as_written(row, self._plain_through)) for key, row in rows)

    def scan_columns(
        self,
        table: str,
        key_range: KeyRange,
        columns: Sequence[bytes],
        known: Sequence[bytes],
        *,
        before: int,
        batch_rows: int,
        without_qualifier: bytes | None = None,
    ) -> Iterator[ScannedColumns]:
        """See ``CellStore``."""
        if self._shows_nothing(before):
            return iter(())
        batches = self._store.scan_columns(
            table,
            key_range,
            columns,
            known,
            before=before,
            batch_rows=batch_rows,
            without_qualifier=without_qualifier,
        )
        return (columns_as_written(batch, self._plain_through) for batch in batches)


Cells: TypeAlias = CellStore | PlainCells
"""What the readers of any table ask."""


def cells_of(store: CellStore, plain_through: int) -> Cells:
    """A store as the readers of a table look at it; ``plain_through`` is 0 where it was not adopted."""
    return PlainCells(store, plain_through) if plain_through else store
