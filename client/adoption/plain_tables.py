"""A plain HBase table read as a whole, by whoever takes over what lies in it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from client.cells import is_reserved
from client.errors import InvalidRequest
from client.snapshots.all_columns import ExpectedColumns
from store import CellStore, KeyRange
from store.columns import ScannedColumns


def newest_cells(
    store: CellStore, table: str, key_range: KeyRange, families: Sequence[bytes], batch_rows_max: int
) -> Iterator[ScannedColumns]:
    """The newest cell of each column, of rows in the order of their keys.

    Raises ``InvalidRequest`` for a column that would be taken for Pythia's.
    """
    expected = ExpectedColumns(key_range)
    for rest in expected.ranges():
        batch_rows = expected.batch_rows(batch_rows_max)
        for batch in store.scan_columns(table, rest, families, expected.columns, batch_rows=batch_rows):
            _require_none_reserved(table, batch)
            yield batch
            if expected.learn(batch):
                break


def _require_none_reserved(table: str, batch: ScannedColumns) -> None:
    """A column that was met is expected only if it is not reserved: so these are among the others."""
    for row, cells in batch.others.items():
        reserved = next(filter(is_reserved, cells), None)
        if reserved is not None:
            raise InvalidRequest(
                f"row {batch.cells.row_key(row)!r} of table {table!r} has a column {reserved!r}: Pythia keeps names "
                "that begin with a zero byte for itself"
            )
