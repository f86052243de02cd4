"""Columns of byte strings, and the loops over them: compiled, since a string must not cost more than its bytes. Pure.

A column is places in a block of bytes (``store.columns``). Whatever is done to its strings, escaping, joining, taking
apart, is a pass over all of them; the passes that are seldom needed are made only where one byte says so.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, NamedTuple

import numpy as np
import numpy.typing as npt

from kernels import kernel
from store.columns import ABSENT, Bytes, Places
from store.lines import packed

TERMINATOR_BYTES: Final = 2
"""What ends a text in a row key: two zero bytes. A zero byte within the text is followed by ``_ESCAPE``."""
_ESCAPE: Final = 0xFF
_NO_BYTES: Final[Bytes] = np.empty(0, np.uint8)


class ByteColumn(NamedTuple):
    """Strings of bytes: where each lies in ``data``; a length of ``ABSENT`` stands for none."""

    data: Bytes
    starts: Places
    lengths: Places

    @classmethod
    def of_width(cls, data: Bytes, width: int) -> ByteColumn:
        """Strings of ``width`` bytes, one after the other."""
        count = len(data) // width
        return cls(data, np.arange(count, dtype=np.int64) * width, np.full(count, width, np.int64))

    def absent_where(self, mask: npt.NDArray[np.bool_]) -> ByteColumn:
        """The same, with none where the mask is true."""
        return ByteColumn(self.data, self.starts, np.where(mask, ABSENT, self.lengths))


def stacked(columns: Sequence[ByteColumn], rows: int, more: Bytes = _NO_BYTES) -> tuple[Bytes, Places, Places]:
    """Columns of equal length over one block of bytes: the block, starts and lengths ``[columns, rows]``.

    The block ends with ``more``: to add to it is to copy all of it.
    """
    sizes = np.cumsum([0, *(len(column.data) for column in columns)])
    data = np.concatenate([*(column.data for column in columns), more])
    starts, lengths = np.empty((len(columns), rows), np.int64), np.empty((len(columns), rows), np.int64)
    for index, column in enumerate(columns):
        np.add(column.starts, sizes[index], out=starts[index])
        lengths[index] = column.lengths
    return data, starts, lengths


def escaped_like(column: ByteColumn, byte: int) -> ByteColumn:
    """Each string that begins with ``byte`` with that byte once more in front."""
    data, starts, lengths = _packed(column)
    count = count_beginning_with(data, starts, lengths, byte)
    if not count:
        return column
    longer = np.empty(int(np.maximum(lengths, 0).sum()) + count, np.uint8)
    longer_starts, longer_lengths = np.empty_like(starts), np.empty_like(lengths)
    prefix_beginning_with(data, starts, lengths, byte, longer, longer_starts, longer_lengths)
    return ByteColumn(longer, longer_starts, longer_lengths)


def text_key_parts(column: ByteColumn) -> ByteColumn:
    """Text as it lies in a row key, but for what ends it."""
    data, starts, lengths = _packed(column)
    zeros = count_zeros(data, starts, lengths)
    if not zeros:
        return column
    longer = np.empty(int(lengths.sum()) + zeros, np.uint8)
    longer_starts, longer_lengths = np.empty_like(starts), np.empty_like(lengths)
    escape_zeros(data, starts, lengths, longer, longer_starts, longer_lengths)
    return ByteColumn(longer, longer_starts, longer_lengths)


def joined(parts: Sequence[ByteColumn], terminated: Sequence[bool]) -> ByteColumn:
    """Row by row the parts one after the other, those that are ``terminated`` with two zero bytes behind."""
    data, starts, lengths = stacked(parts, len(parts[0].starts))
    ends = np.array([TERMINATOR_BYTES if end else 0 for end in terminated], np.int64)
    sizes = lengths.sum(axis=0) + ends.sum()
    joined_starts = np.cumsum(sizes) - sizes
    out = np.empty(int(sizes.sum()), np.uint8)
    join_parts(data, starts, lengths, ends, out)
    return ByteColumn(out, joined_starts, sizes)


def gathered(column: ByteColumn) -> tuple[Bytes, npt.NDArray[np.int64]]:
    """The strings one after the other, and the offsets between them, one more than there are strings."""
    data, starts, lengths = _packed(column)
    offsets = np.zeros(len(starts) + 1, np.int64)
    np.cumsum(np.maximum(lengths, 0), out=offsets[1:])
    out = np.empty(int(offsets[-1]), np.uint8)
    gather(data, starts, lengths, out)
    return out, offsets


def fixed(column: ByteColumn, width: int) -> Bytes:
    """The strings one after the other, zeros where there is none. Raises ``ValueError`` for one of another length."""
    wrong = np.flatnonzero((column.lengths != width) & (column.lengths != ABSENT))
    if len(wrong):
        raise ValueError(f"{width} bytes are needed, not {int(column.lengths[wrong[0]])}")
    data, starts, lengths = _packed(column)
    out = np.zeros(len(starts) * width, np.uint8)
    gather_fixed(data, starts, lengths, width, out)
    return out


def split_text_keys(keys: ByteColumn, positions: Places) -> tuple[ByteColumn, Places]:
    """The texts that begin at ``positions`` in row keys, and where what follows them begins.

    Raises ``ValueError`` for a key in which a text has no end.
    """
    data, starts, lengths = _packed(keys)
    out = np.empty(int(np.maximum(lengths - positions, 0).sum()), np.uint8)
    text_starts, text_lengths, after = np.empty_like(starts), np.empty_like(starts), np.empty_like(starts)
    wrong = split_texts(data, starts, lengths, positions, out, text_starts, text_lengths, after)
    if wrong >= 0:
        key = data[starts[wrong] : starts[wrong] + lengths[wrong]].tobytes()
        raise ValueError(f"{key!r} has no end of its text")
    return ByteColumn(out, text_starts, text_lengths), after


def _packed(column: ByteColumn) -> ByteColumn:
    """As the kernels take it: without gaps and writable, so that they are compiled for one type; hardly ever a copy."""
    return ByteColumn(packed(column.data), packed(column.starts), packed(column.lengths))


# The kernels name their types, so that they are compiled, or read from the cache, when they are imported.


@kernel("int64(uint8[::1], int64[::1], int64[::1], int64)", nogil=True)
def count_beginning_with(data: Bytes, starts: Places, lengths: Places, byte: int) -> int:
    """How many of the strings begin with a byte."""
    count = 0
    for index in range(starts.shape[0]):
        if lengths[index] > 0 and data[starts[index]] == byte:
            count += 1
    return count


@kernel("void(uint8[::1], int64[::1], int64[::1], int64, uint8[::1], int64[::1], int64[::1])", nogil=True)
def prefix_beginning_with(
    data: Bytes, starts: Places, lengths: Places, byte: int, out: Bytes, out_starts: Places, out_lengths: Places
) -> None:
    """Copy the strings to ``out``, with ``byte`` in front of those that begin with it."""
    at = 0
    for index in range(starts.shape[0]):
        start, length = starts[index], lengths[index]
        out_starts[index], out_lengths[index] = at, length
        if length > 0 and data[start] == byte:
            out[at] = byte
            out_lengths[index] += 1
            at += 1
        for place in range(length):
            out[np.uint64(at + place)] = data[np.uint64(start + place)]
        at += max(length, 0)


@kernel("int64(uint8[::1], int64[::1], int64[::1])", nogil=True)
def count_zeros(data: Bytes, starts: Places, lengths: Places) -> int:
    """How many zero bytes the strings have together."""
    count = 0
    for index in range(starts.shape[0]):
        for place in range(starts[index], starts[index] + lengths[index]):
            if data[place] == 0:
                count += 1
    return count


@kernel("void(uint8[::1], int64[::1], int64[::1], uint8[::1], int64[::1], int64[::1])", nogil=True)
def escape_zeros(
    data: Bytes, starts: Places, lengths: Places, out: Bytes, out_starts: Places, out_lengths: Places
) -> None:
    """Copy the strings to ``out``, each zero byte with the escape behind it."""
    at = 0
    for index in range(starts.shape[0]):
        out_starts[index] = at
        for place in range(starts[index], starts[index] + lengths[index]):
            out[at] = data[place]
            at += 1
            if data[place] == 0:
                out[at] = _ESCAPE
                at += 1
        out_lengths[index] = at - out_starts[index]


@kernel("void(uint8[::1], int64[:, ::1], int64[:, ::1], int64[::1], uint8[::1])", nogil=True)
def join_parts(data: Bytes, starts: Places, lengths: Places, ends: Places, out: Bytes) -> None:
    """Row by row the parts one after the other, so many zero bytes behind each."""
    at = 0
    for row in range(starts.shape[1]):
        for part in range(starts.shape[0]):
            start = starts[part, row]
            for place in range(lengths[part, row]):
                out[np.uint64(at + place)] = data[np.uint64(start + place)]
            at += lengths[part, row]
            for place in range(ends[part]):
                out[np.uint64(at + place)] = 0
            at += ends[part]


@kernel("void(uint8[::1], int64[::1], int64[::1], uint8[::1])", nogil=True)
def gather(data: Bytes, starts: Places, lengths: Places, out: Bytes) -> None:
    """Copy the strings one after the other."""
    at = 0
    for index in range(starts.shape[0]):
        start = starts[index]
        for place in range(lengths[index]):
            out[np.uint64(at + place)] = data[np.uint64(start + place)]
        at += max(lengths[index], 0)


@kernel("void(uint8[::1], int64[::1], int64[::1], int64, uint8[::1])", nogil=True)
def gather_fixed(data: Bytes, starts: Places, lengths: Places, width: int, out: Bytes) -> None:
    """Copy the strings, all of ``width`` bytes, each to its own place."""
    for index in range(starts.shape[0]):
        if lengths[index] != ABSENT:
            at, start = index * width, starts[index]
            for place in range(width):
                out[np.uint64(at + place)] = data[np.uint64(start + place)]


@kernel(
    "int64(uint8[::1], int64[::1], int64[::1], int64[::1], uint8[::1], int64[::1], int64[::1], int64[::1])", nogil=True
)
def split_texts(
    data: Bytes,
    starts: Places,
    lengths: Places,
    positions: Places,
    out: Bytes,
    text_starts: Places,
    text_lengths: Places,
    after: Places,
) -> int:
    """Copy the texts to ``out`` without what escapes and ends them; the first key without an end, or -1."""
    at = 0
    for index in range(starts.shape[0]):
        text_starts[index] = at
        place, stop, ended = starts[index] + positions[index], starts[index] + lengths[index], False
        while place < stop and not ended:
            byte = data[place]
            if byte == 0 and place + 1 < stop and data[place + 1] == 0:
                ended = True
                place += TERMINATOR_BYTES
                continue
            out[at] = byte
            at += 1
            place += 2 if byte == 0 and place + 1 < stop and data[place + 1] == _ESCAPE else 1
        if not ended:
            return index
        text_lengths[index] = at - text_starts[index]
        after[index] = place - starts[index]
    return -1
