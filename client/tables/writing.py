"""Rows that come one by one, written in batches that no memory is full of."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Final

from client.bulk_writes.batching import BATCH_BYTES_MAX, ScannedRow, batches
from client.bulk_writes.writing import AttemptWriter
from store import RowPut
from store.columns import in_pieces

BATCH_ROWS_MAX: Final = 2_000


def write_rows(
    writer: AttemptWriter, rows: Iterable[ScannedRow], told: Callable[[Sequence[ScannedRow]], None] = lambda _: None
) -> None:
    """Write rows of stored values; ``told`` gets each batch once it is written. Raises what ``writer`` raises."""
    for batch in batches(rows, BATCH_ROWS_MAX, BATCH_BYTES_MAX):
        for cells in in_pieces(RowPut(*row) for row in batch):
            writer.write(cells)
        told(batch)
