"""All value columns of a row in the one cell of a packed table. Pure.

HBase pays for a cell, its key, its timestamp, its place in a block, more than for the bytes in it: one cell a row is
written and read several times as fast as one a column. What is given up: conflicts are those of rows, a write has all
columns, and other programs need this layout to read them.

=======  =========================================================================================================
byte 0   ``FORMAT``, which begins no tombstone
nulls    a bit for each value column in the table's order, the lowest first, set where it is null; whole bytes
values   of the columns that are not null, in that order: of fixed width as ``value_codec`` makes them; text and binary
         with their length before them, 4 bytes, big-endian
=======  =========================================================================================================
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import numpy as np

from client.spark.byte_columns import ByteColumn, stacked
from client.spark.mapping import ValueColumn
from client.spark.value_codec import DECIMAL_BYTES, WIDTHS
from kernels import kernel
from store.columns import ABSENT, Bytes, Places
from store.lines import packed

FORMAT: Final = 1
_LENGTH_BYTES: Final = 4
_MALFORMED: Final = (
    "its cells are no rows of a packed table: was it written by a program that does not know its mapping?"
)


def pack(columns: Sequence[ValueColumn], values: Sequence[ByteColumn]) -> ByteColumn:
    """The cell of each row, of the values of all value columns."""
    data, starts, lengths = stacked(values, len(values[0].starts))
    widths = _widths(columns)
    sizes = packed_sizes(lengths, widths)
    packed_starts = np.cumsum(sizes) - sizes
    out = np.empty(int(sizes.sum()), np.uint8)
    pack_rows(data, starts, lengths, widths, out)
    return ByteColumn(out, packed_starts, sizes)


def unpack(columns: Sequence[ValueColumn], cells: ByteColumn) -> list[ByteColumn]:
    """The values of all value columns; nothing is copied. Raises ``ValueError`` for a cell that is none of these."""
    shape = (len(columns), len(cells.starts))
    starts, lengths = np.zeros(shape, np.int64), np.full(shape, ABSENT, np.int64)
    data = packed(cells.data)
    wrong = unpack_rows(data, packed(cells.starts), packed(cells.lengths), _widths(columns), starts, lengths)
    if wrong >= 0:
        raise ValueError(_MALFORMED)
    return [ByteColumn(data, starts[index], lengths[index]) for index in range(len(columns))]


def _widths(columns: Sequence[ValueColumn]) -> Places:
    """Of each column's values; 0 where each has its own."""
    types = [column.type for column in columns]
    return np.array([DECIMAL_BYTES if each.startswith("decimal") else WIDTHS.get(each, 0) for each in types], np.int64)


@kernel("int64[::1](int64[:, ::1], int64[::1])", nogil=True)
def packed_sizes(lengths: Places, widths: Places) -> Places:
    """The bytes of each row's cell."""
    sizes = np.full(lengths.shape[1], 1 + (widths.shape[0] + 7) // 8, np.int64)
    for column in range(widths.shape[0]):
        extra = _LENGTH_BYTES if widths[column] == 0 else 0
        for row in range(sizes.shape[0]):
            if lengths[column, row] != ABSENT:
                sizes[row] += extra + lengths[column, row]
    return sizes


@kernel("void(uint8[::1], int64[:, ::1], int64[:, ::1], int64[::1], uint8[::1])", nogil=True)
def pack_rows(data: Bytes, starts: Places, lengths: Places, widths: Places, out: Bytes) -> None:
    """Write the cells one after the other."""
    at, null_bytes = 0, (widths.shape[0] + 7) // 8
    for row in range(starts.shape[1]):
        out[at] = FORMAT
        nulls_at = at + 1
        out[nulls_at : nulls_at + null_bytes] = 0
        at = nulls_at + null_bytes
        for column in range(widths.shape[0]):
            length = lengths[column, row]
            if length == ABSENT:
                out[nulls_at + column // 8] |= np.uint8(1 << (column % 8))
                continue
            if widths[column] == 0:
                for place in range(_LENGTH_BYTES):
                    out[np.uint64(at + place)] = (length >> (8 * (_LENGTH_BYTES - 1 - place))) & 0xFF
                at += _LENGTH_BYTES
            start = starts[column, row]
            for place in range(length):
                out[np.uint64(at + place)] = data[np.uint64(start + place)]
            at += length


@kernel(nogil=True)
def _length_at(data: Bytes, at: int) -> int:
    length = np.int64(0)
    for place in range(_LENGTH_BYTES):
        length = (length << 8) | np.int64(data[np.uint64(at + place)])
    return int(length)


@kernel("int64(uint8[::1], int64[::1], int64[::1], int64[::1], int64[:, ::1], int64[:, ::1])", nogil=True)
def unpack_rows(
    data: Bytes, cell_starts: Places, cell_lengths: Places, widths: Places, starts: Places, lengths: Places
) -> int:
    """Note where the values lie, of the rows that have a cell; the first row whose cell is malformed, or -1."""
    null_bytes = (widths.shape[0] + 7) // 8
    for row in range(cell_starts.shape[0]):
        if cell_lengths[row] == ABSENT:
            continue
        at, stop = cell_starts[row], cell_starts[row] + cell_lengths[row]
        if cell_lengths[row] < 1 + null_bytes or data[at] != FORMAT:
            return row
        nulls_at = at + 1
        at = nulls_at + null_bytes
        for column in range(widths.shape[0]):
            if (data[nulls_at + column // 8] >> (column % 8)) & 1:
                continue
            length = widths[column]
            if length == 0:
                if at + _LENGTH_BYTES > stop:
                    return row
                length = _length_at(data, at)
                at += _LENGTH_BYTES
            if at + length > stop:
                return row
            starts[column, row], lengths[column, row] = at, length
            at += length
        if at != stop:
            return row
    return -1
