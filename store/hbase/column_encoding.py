"""``mutateRowsTs`` of rows that come as columns: their bytes are copied from where they lie into a request.

A mutation is a header that is the same in every row, a length, a value and a zero byte; so one kernel writes a batch of
rows without an object for any cell, at some ten nanoseconds a cell.

Invariants: the size of each row is computed first, requests are cut by it, and the kernel writes exactly that; what is
written is what Thrift's own library would have written of the same rows (optional fields left out).
"""

from __future__ import annotations

import struct
from collections.abc import Iterator

import numpy as np

from kernels import kernel
from store.columns import ABSENT, Bytes, CellColumns, Places, cuts
from store.hbase.binary_protocol import COUNT_BYTES, FRAME_BYTES, INT64, LIST, STOP, STRING, STRUCT
from store.hbase.encoding import put_head
from store.hbase.settings import RequestLimits
from store.lines import copy, packed, write_number

_KEY_FIELD = np.array(bytearray(struct.pack(">bh", STRING, 1)), np.uint8)
_MUTATIONS_FIELD = np.array(bytearray(struct.pack(">bhb", LIST, 2, STRUCT)), np.uint8)
_ROW_BYTES = len(_KEY_FIELD) + COUNT_BYTES + len(_MUTATIONS_FIELD) + COUNT_BYTES + 1
"""Of a row beside its key and its mutations."""
_CELL_BYTES = COUNT_BYTES + 1
"""Of a mutation beside its header and its value."""


def column_put_requests(
    table: str, cells: CellColumns, timestamp: int, limits: RequestLimits, *, framed: bool
) -> Iterator[memoryview]:
    """The calls that write these rows, in order and within the limits; a row that is larger is a call of its own.

    Each is valid until the next is asked for; ``store.hbase.encoding.number_request`` gives it its number. The cells
    have been checked.
    """
    headers = [_header(column) for column in cells.columns]
    header_data = np.frombuffer(bytearray(b"".join(headers)), np.uint8)
    header_ends = np.cumsum([0, *map(len, headers)], dtype=np.int64)
    key_lengths, value_lengths = packed(cells.key_lengths), packed(cells.value_lengths)
    sizes = row_sizes(header_ends, key_lengths, value_lengths)
    data, key_starts, value_starts = packed(cells.data), packed(cells.key_starts), packed(cells.value_starts)
    head, tail = put_head(table, framed), struct.pack(">bhqb", INT64, 3, timestamp, STOP)
    buffer = bytearray()
    for first, last in cuts(sizes, limits.request_bytes_max, limits.column_rows_max):
        size = len(head) + int(sizes[first:last].sum()) + len(tail)
        if size > len(buffer):
            buffer = bytearray(size)
        buffer[: len(head)] = head
        if framed:
            struct.pack_into(">i", buffer, 0, size - FRAME_BYTES)
        struct.pack_into(">i", buffer, len(head) - COUNT_BYTES, last - first)
        target = np.frombuffer(buffer, np.uint8)
        end = write_rows(
            target, len(head), header_data, header_ends, data, key_starts, key_lengths, value_starts, value_lengths,
            first, last,
        )  # fmt: skip
        assert end == size - len(tail), "the size that was computed is the size that was written"
        buffer[end:size] = tail
        yield memoryview(buffer)[:size]


def _header(column: bytes) -> bytes:
    """A mutation up to the length of its value."""
    return struct.pack(f">bhi{len(column)}sbh", STRING, 2, len(column), column, STRING, 3)


@kernel("int64[::1](int64[::1], int64[::1], int64[:, ::1])", nogil=True)
def row_sizes(header_ends: Places, key_lengths: Places, value_lengths: Places) -> Places:
    """The bytes of each row's ``BatchMutation``."""
    sizes = key_lengths + _ROW_BYTES
    for column in range(value_lengths.shape[0]):
        header_bytes = header_ends[column + 1] - header_ends[column]
        for row in range(sizes.shape[0]):
            if value_lengths[column, row] != ABSENT:
                sizes[row] += header_bytes + value_lengths[column, row] + _CELL_BYTES
    return sizes


@kernel(
    "int64(uint8[::1], int64, uint8[::1], int64[::1], uint8[::1], int64[::1], int64[::1], int64[:, ::1], "
    "int64[:, ::1], int64, int64)",
    nogil=True,
)
def write_rows(
    buffer: Bytes,
    at: int,
    header_data: Bytes,
    header_ends: Places,
    data: Bytes,
    key_starts: Places,
    key_lengths: Places,
    value_starts: Places,
    value_lengths: Places,
    first: int,
    last: int,
) -> int:
    """Write the ``BatchMutation`` of each row from ``first`` up to ``last``; returns where they end."""
    for row in range(first, last):
        at = copy(buffer, at, _KEY_FIELD, 0, _KEY_FIELD.shape[0])
        at = write_number(buffer, at, key_lengths[row], COUNT_BYTES)
        at = copy(buffer, at, data, key_starts[row], key_lengths[row])
        at = copy(buffer, at, _MUTATIONS_FIELD, 0, _MUTATIONS_FIELD.shape[0])
        count_at, mutations = at, 0
        at += COUNT_BYTES
        for column in range(value_lengths.shape[0]):
            length = value_lengths[column, row]
            if length == ABSENT:
                continue
            mutations += 1
            start = header_ends[column]
            at = copy(buffer, at, header_data, start, header_ends[column + 1] - start)
            at = write_number(buffer, at, length, COUNT_BYTES)
            at = copy(buffer, at, data, value_starts[column, row], length)
            buffer[at] = STOP
            at += 1
        write_number(buffer, count_at, mutations, COUNT_BYTES)
        buffer[at] = STOP
        at += 1
    return at
