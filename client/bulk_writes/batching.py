"""Rows in lists that are worth a request, and that no memory is full of."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from itertools import islice
from typing import Final

from store import Row

BATCH_BYTES_MAX: Final = 16 * 2**20
"""Rows are gone through in lists that end at this size of keys and values, however few they are."""

PIECE_BYTES_WANTED: Final = 8 * 2**20
"""Of Arrow's rows that are encoded and written at a time: their cells take a few times as much."""

_MEASURED_TOGETHER_ROWS = 16
"""Of small rows as a store gives them: one by one, that takes twice the time."""

ScannedRow = tuple[bytes, Mapping[bytes, bytes]]
"""A row key, and values by column: what of a row is visible, or what is to be written into it."""


def rows_of_a_piece(rows: int, size_bytes: int, rows_max: int) -> int:
    """How many of Arrow's ``rows``, ``size_bytes`` in all, go together: one at least, and ``rows_max`` at most."""
    return max(1, min(rows_max, PIECE_BYTES_WANTED * rows // max(1, size_bytes)))


def batches(rows: Iterable[ScannedRow], rows_max: int, bytes_max: int) -> Iterator[list[ScannedRow]]:
    """Rows in lists that end at ``rows_max`` rows or once they hold ``bytes_max`` bytes, whichever comes first."""
    remaining = iter(rows)
    while True:
        batch = _take(remaining, rows_max, bytes_max)
        if not batch:
            return
        yield batch


def _take(rows: Iterator[ScannedRow], rows_max: int, bytes_max: int) -> list[ScannedRow]:
    batch: list[ScannedRow] = []
    size = 0
    for row in rows:
        batch.append(row)
        size += len(row[0]) + sum(map(len, row[1].values()))
        if len(batch) == rows_max or size >= bytes_max:
            break
    return batch


def stored_batches(
    rows: Iterable[tuple[bytes, Row]], rows_max: int, bytes_max: int
) -> Iterator[list[tuple[bytes, Row]]]:
    """``batches`` of rows as a store gives them, with up to 15 rows beyond ``bytes_max``. Names do not count."""
    remaining = iter(rows)
    batch: list[tuple[bytes, Row]] = []
    size = 0
    while some := list(islice(remaining, min(_MEASURED_TOGETHER_ROWS, rows_max - len(batch)))):
        batch += some
        size += value_bytes_of(some)
        if len(batch) == rows_max or size >= bytes_max:
            yield batch
            batch, size = [], 0
    if batch:
        yield batch


def value_bytes_of(rows: Iterable[tuple[bytes, Row]]) -> int:
    """The size of the values of rows as a store gives them."""
    return sum([len(cell[0]) for _, cells in rows for cell in cells.values()])
