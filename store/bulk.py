"""Many cells of one shape, as columns of bytes: the way from arrays to the store without an object for each cell.

A commit is one cell of 22 bytes. Made into dictionaries and Thrift objects it costs many times what it costs as a line
of three arrays; so whoever writes many cells of equal width writes them here. ``store.hbase.putter`` sends them without
a thread; `BlockingPutter` is the twin over any `CellStore`, for tests, simulation and stores in memory.

Invariant: nothing is written, and nothing asked, before every line has passed the checks of ``store.validation``.
"""

from __future__ import annotations

import asyncio
from collections import defaultdict
from concurrent.futures import Executor
from typing import Protocol

import numpy as np

from store import validation
from store.cells import RowPut
from store.errors import InvalidCell, StoreUnavailable
from store.lines import ByteLines, first_without_family, packed
from store.protocol import CellStore

LINE_OVERHEAD_BYTES = 32
"""What is counted for each line beside its row, column and value: no encoding of a line adds more."""

PUT_BYTES_MAX = 2_000_000
"""Of one put, overhead included: with it, any request fits the 2 MiB that a framed gateway takes by default."""


class BulkPutter(Protocol):
    """Writes cells of equal width. For the tasks of one event loop; any number of puts may be under way at once."""

    async def put(self, table: str, rows: ByteLines, columns: ByteLines, values: ByteLines, timestamp: int) -> None:
        """Write one cell a line: ``values[i]`` into column ``columns[i]`` (``b"family:qualifier"``) of ``rows[i]``.

        Every cell gets ``timestamp``. Consecutive lines of one row are written together, so sort by row; name a cell
        once: HBase does not say which of two values stays. The arrays must not change before the put has ended.

        ``StoreUnavailable``: any part may be written, or *be written yet*; repeating it is harmless. ``TableMissing``:
        there is no such table or column family. ``InvalidCell``: the store cannot hold it, or the lines come to more
        than ``PUT_BYTES_MAX``; nothing is written.
        """
        ...

    async def close(self) -> None:
        """Give back what is held; later puts raise ``StoreUnavailable``."""
        ...


def check_lines(table: str, rows: ByteLines, columns: ByteLines, values: ByteLines, timestamp: int) -> None:
    """Raise ``InvalidCell`` unless every line can be held and the whole is within ``PUT_BYTES_MAX``."""
    validation.check_table(table)
    validation.check_timestamp(timestamp)
    for name, lines in (("rows", rows), ("columns", columns), ("values", values)):
        if lines.ndim != 2 or lines.dtype != np.uint8 or lines.shape[:1] != rows.shape[:1]:
            raise InvalidCell(
                f"{name} are one line of bytes for each cell: an array of uint8 with as many lines as there are rows, "
                f"not of {lines.dtype} with the shape {lines.shape}"
            )
    put_bytes = len(rows) * (rows.shape[1] + columns.shape[1] + values.shape[1] + LINE_OVERHEAD_BYTES)
    if put_bytes > PUT_BYTES_MAX:
        raise InvalidCell(
            f"one put takes {PUT_BYTES_MAX:,} bytes, counting {LINE_OVERHEAD_BYTES} more for each line, "
            f"not {put_bytes:,}: put fewer lines at once"
        )
    if len(rows):
        validation.check_row(rows[0].tobytes())
        _check_columns(columns)


def _check_columns(columns: ByteLines) -> None:
    """What is wrong with a column is said by ``validation``; here is found quickly that nothing is."""
    wrong = first_without_family(packed(columns), validation.FAMILY_NAME_BYTES_MAX)
    if wrong >= 0 or columns.shape[1] > validation.COLUMN_BYTES_MAX:
        validation.check_column(columns[wrong].tobytes())


class BlockingPutter:
    """A `BulkPutter` over any `CellStore`, each put in a thread of ``executor`` (``None``: the event loop's own).

    Store and executor stay their owner's: ``close`` leaves them open.
    """

    def __init__(self, store: CellStore, executor: Executor | None = None) -> None:
        self._store = store
        self._executor = executor
        self._closed = False

    async def put(self, table: str, rows: ByteLines, columns: ByteLines, values: ByteLines, timestamp: int) -> None:
        """See ``BulkPutter``."""
        if self._closed:
            raise StoreUnavailable("the putter is closed")
        check_lines(table, rows, columns, values, timestamp)
        if len(rows):
            puts = row_puts(rows, columns, values)
            loop = asyncio.get_running_loop()
            await loop.run_in_executor(self._executor, self._store.put, table, puts, timestamp)

    async def close(self) -> None:
        """See ``BulkPutter``."""
        self._closed = True


def row_puts(rows: ByteLines, columns: ByteLines, values: ByteLines) -> list[RowPut]:
    """The lines as ``CellStore.put`` takes them."""
    cells: defaultdict[bytes, dict[bytes, bytes]] = defaultdict(dict)
    for row, column, value in zip(rows, columns, values, strict=True):
        cells[row.tobytes()][column.tobytes()] = value.tobytes()
    return [RowPut(row, puts) for row, puts in cells.items()]
