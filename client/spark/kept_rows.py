"""The rows that an overwrite wrote, and so keeps: row keys in one block of bytes. Pure.

A set of Python's would take a hundred bytes for each. And a set of hashes would say of a row, once in a very long time,
that it was written where another was: the row would stay, though an overwrite leaves it out. So the keys are compared.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

import numpy as np
import numpy.typing as npt

from client.cells import write_set_of_columns
from client.key_hashing import Hashes, hashed_part, hashes_of_rows
from client.spark.byte_columns import ByteColumn, gathered
from kernels import kernel
from store.columns import Bytes, CellColumns, Places
from store.lines import packed

_EMPTY: Final = -1
_SLOTS_A_ROW: Final = 2
"""And up to twice as many, since they are a power of two."""

Slots = npt.NDArray[np.int32]
Found = npt.NDArray[np.bool_]


class KeptRows:
    """Row keys of one table; each takes its bytes, and 16 to 24 more."""

    def __init__(self, table: str, keys: Iterable[ByteColumn]) -> None:
        self._table = table
        before = hashed_part(table.encode())
        blocks, ends, hashes = [np.empty(0, np.uint8)], [np.zeros(1, np.int64)], [np.empty(0, np.uint64)]
        size = 0
        for some in keys:
            data, offsets = gathered(some)
            hashes.append(hashes_of_rows(before, *some))
            blocks.append(data)
            ends.append(offsets[1:] + size)
            size += len(data)
        self._data, self._offsets = np.concatenate(blocks), np.concatenate(ends)
        rows = len(self._offsets) - 1
        self._slots = np.full(1 << (_SLOTS_A_ROW * rows).bit_length(), _EMPTY, np.int32)
        self._count = enter(self._data, self._offsets, np.concatenate(hashes), self._slots)

    def __len__(self) -> int:
        """How many different rows there are."""
        return self._count

    def among(self, cells: CellColumns) -> Found:
        """Of each row of a batch whether it is one of them."""
        found = np.zeros(cells.rows, np.bool_)
        hashes = write_set_of_columns(self._table, cells, by_row=True)
        places = packed(cells.data), packed(cells.key_starts), packed(cells.key_lengths)
        find(self._data, self._offsets, self._slots, *places, hashes, found)
        return found


@kernel(nogil=True)
def _slot_of(
    data: Bytes, offsets: Places, slots: Slots, other: Bytes, start: int, length: int, wanted: np.uint64
) -> np.uint64:
    """The slot in which a key is, or else would be."""
    last = np.uint64(slots.size - 1)
    slot = wanted & last
    while slots[slot] != _EMPTY:
        row = np.int64(slots[slot])
        if offsets[row + 1] - offsets[row] == length:
            same = 0
            while same < length and data[np.uint64(offsets[row] + same)] == other[np.uint64(start + same)]:
                same += 1
            if same == length:
                return slot
        slot = (slot + np.uint64(1)) & last
    return slot


@kernel("int64(uint8[::1], int64[::1], uint64[::1], int32[::1])", nogil=True)
def enter(data: Bytes, offsets: Places, hashes: Hashes, slots: Slots) -> int:
    """Put rows, the keys of which lie between ``offsets``, into slots, each key once; returns how many those are."""
    count = 0
    for row in range(hashes.size):
        start = offsets[row]
        slot = _slot_of(data, offsets, slots, data, start, offsets[row + 1] - start, hashes[row])
        if slots[slot] == _EMPTY:
            slots[slot] = row
            count += 1
    return count


@kernel(
    "void(uint8[::1], int64[::1], int32[::1], uint8[::1], int64[::1], int64[::1], uint64[::1], boolean[::1])",
    nogil=True,
)
def find(
    data: Bytes,
    offsets: Places,
    slots: Slots,
    others: Bytes,
    starts: Places,
    lengths: Places,
    hashes: Hashes,
    found: Found,
) -> None:
    """Note of each of other keys whether it is in a slot."""
    for row in range(hashes.size):
        slot = _slot_of(data, offsets, slots, others, starts[row], lengths[row], hashes[row])
        found[row] = slots[slot] != _EMPTY
