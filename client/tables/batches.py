"""Rows that come one by one, as columns, in batches that no memory is full of; and values as they are stored."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Final

import numpy as np

from client.bulk_writes.batching import BATCH_BYTES_MAX, ScannedRow, batches
from client.cells import TOMBSTONE
from client.spark.byte_columns import ByteColumn, escaped_like
from store import RowPut
from store.columns import CellColumns, in_pieces

BATCH_ROWS_MAX: Final = 10_000


def in_batches(rows: Iterable[ScannedRow]) -> Iterator[CellColumns]:
    """The same rows, in their order."""
    for batch in batches(rows, BATCH_ROWS_MAX, BATCH_BYTES_MAX):
        yield from in_pieces(RowPut(*row) for row in batch)


def stored(cells: CellColumns) -> CellColumns:
    """Cells with their values as they are stored (``client.cells.encode_value``)."""
    values = ByteColumn(cells.data, cells.value_starts.ravel(), cells.value_lengths.ravel())
    escaped = escaped_like(values, TOMBSTONE[0])
    if escaped is values:
        return cells
    shape = cells.value_lengths.shape
    return CellColumns(
        cells.columns,
        np.concatenate([cells.data, escaped.data]),
        cells.key_starts,
        cells.key_lengths,
        (escaped.starts + len(cells.data)).reshape(shape),
        escaped.lengths.reshape(shape),
    )
