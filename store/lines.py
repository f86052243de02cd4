"""Cells as columns of bytes: one line a cell, all of one width, in the one form that compiled kernels take.

Invariant: what `packed` gives is writable and without gaps: the one type that kernels are compiled for.
"""

from __future__ import annotations

from typing import TypeAlias, TypeVar

import numpy as np
import numpy.typing as npt

from kernels import kernel
from store.columns import Bytes

ByteLines: TypeAlias = npt.NDArray[np.uint8]
"""One line of bytes for each cell, all of one width."""

Number = TypeVar("Number", bound=np.generic)

_COLON = ord(":")


def packed(array: npt.NDArray[Number]) -> npt.NDArray[Number]:
    """An array as kernels take it; hardly ever a copy."""
    return array if array.flags.c_contiguous and array.flags.writeable else np.array(array, order="C")


@kernel("int64(uint8[:, ::1], int64)")
def first_without_family(columns: ByteLines, family_bytes_max: int) -> int:
    """The first line whose first colon does not end a name of 1 to ``family_bytes_max`` bytes, or -1."""
    for line in range(columns.shape[0]):
        colon = 0
        while colon < columns.shape[1] and columns[line, colon] != _COLON:
            colon += 1
        if not 1 <= colon <= family_bytes_max or colon == columns.shape[1]:
            return line
    return -1


@kernel(nogil=True)
def copy(buffer: Bytes, at: int, data: Bytes, start: int, length: int) -> int:
    """Copy bytes; returns where they end."""
    for place in range(length):
        buffer[np.uint64(at + place)] = data[np.uint64(start + place)]
    return int(at + length)


@kernel(nogil=True)
def write_number(buffer: Bytes, at: int, number: int, count: int) -> int:
    """The low ``count`` bytes of ``number``, big-endian; returns where they end."""
    for place in range(count):
        buffer[np.uint64(at + place)] = (number >> (8 * (count - 1 - place))) & 0xFF
    return int(at + count)
