"""The conflict keys of many rows at once: XXH3 of parts that lie in one block of bytes, in one compiled loop.

The library `xxhash` takes one ``bytes`` object at a time; to make that, and the number of its answer, takes ten times
what the hash of a row key does (`python -m benchmarks.conflict_keys`). So for inputs of up to ``HASHED_BYTES_MAX``
XXH3's rules for short inputs are written out here, with its default secret and no seed. Source: the section on XXH3 of
the xxHash algorithm description (Yann Collet).

Invariant: the same number as ``xxhash.xxh3_64_intdigest`` of the parts joined, which the tests hold it to; a key that
one client hashed in another way than the next would hide their conflict.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable
from typing import Final, TypeAlias

import numpy as np
import numpy.typing as npt
import xxhash

from kernels import kernel
from store.columns import ABSENT, Bytes, CellColumns, Places, taken
from store.lines import copy, packed, write_number

HASHED_BYTES_MAX: Final = 240
"""Of one input: beyond it XXH3 has other rules, in which the cost of an object does not matter."""
HASHED_BYTES_MIN: Final = 9
"""Shorter inputs have other rules, too."""

LENGTH_BYTES: Final = 4
"""Of the length that goes before a row's key, the largest byte first."""

Hashes: TypeAlias = npt.NDArray[np.uint64]

_SECRET: Final = np.frombuffer(
    bytes.fromhex(
        "b8fe6c3923a44bbe7c01812cf721ad1cded46de9839097db7240a4a4b7b3671fcb79e64eccc0e578825ad07dccff7221"
        "b8084674f743248ee03590e6813a264c3c2852bb91c300cb88d0658b1b532ea371644897a20df94e3819ef46a9deacd8"
        "a8fa763fe39c343ff9dcbbc7c70b4f1d8a51e04bcdb45931c89f7ec9d9787364eac5ac8334d3ebc3c581a0fffa1363eb"
        "170ddd51b7f0da49d316552629d4689e2b16be587d47a1fc8ff8b8d17ad031ce45cb3a8f95160428afd7fbcabb4b407e"
    ),
    np.uint8,
)
_PRIME: Final = np.uint64(0x9E3779B185EBCA87)
_AVALANCHE: Final = np.uint64(0x165667919E3779F9)
_LOW: Final = np.uint64(0xFFFFFFFF)
_HALF: Final = np.uint64(32)


def hashes_of_rows(before: bytes, data: Bytes, starts: Places, lengths: Places) -> Hashes:
    """XXH3 of ``before``, at least ``HASHED_BYTES_MIN`` - ``LENGTH_BYTES`` bytes, and each row's key behind its length.
    The keys lie in ``data`` as those of ``CellColumns`` do.
    """
    if _longest(before, lengths) > HASHED_BYTES_MAX:
        return _one_by_one(before + hashed_part(key) for key in taken(data, starts, lengths))
    hashes = np.empty(len(starts), np.uint64)
    hash_rows(_bytes(before), packed(data), packed(starts), packed(lengths), hashes)
    return hashes


def hashes_of_cells(before: bytes, cells: CellColumns) -> Hashes:
    """The same of each row with each of the columns in which it has a cell, the column last: row by row."""
    if _longest(before, cells.key_lengths) + max(map(len, cells.columns), default=0) > HASHED_BYTES_MAX:
        present = (cells.value_lengths != ABSENT).T.tolist()
        rows = (before + hashed_part(key) for key in cells.row_keys())
        there = (
            row + column
            for row, columns in zip(rows, present, strict=True)
            for column in itertools.compress(cells.columns, columns)
        )
        return _one_by_one(there)
    hashes = np.empty(cells.value_lengths.size, np.uint64)
    ends = np.cumsum([0, *map(len, cells.columns)], dtype=np.int64)
    rows_of = packed(cells.data), packed(cells.key_starts), packed(cells.key_lengths)
    found = hash_cells(
        _bytes(before), *rows_of, _bytes(b"".join(cells.columns)), ends, packed(cells.value_lengths), hashes
    )
    return hashes[:found]


def _longest(before: bytes, lengths: Places) -> int:
    return len(before) + LENGTH_BYTES + int(lengths.max(initial=0))


def _one_by_one(inputs: Iterable[bytes]) -> Hashes:
    return np.fromiter(map(xxhash.xxh3_64_intdigest, inputs), np.uint64)


def hashed_part(part: bytes) -> bytes:
    """Lengths go in first, so that no two (table, row, column) run together to the same bytes."""
    return len(part).to_bytes(LENGTH_BYTES, "big") + part


def _bytes(data: bytes) -> Bytes:
    """As kernels take them: such as could be written to."""
    return np.frombuffer(bytearray(data), np.uint8)


@kernel(nogil=True)
def _word(data: Bytes, at: int) -> np.uint64:
    """Eight bytes, the smallest first."""
    word = np.uint64(0)
    for place in range(8):
        word |= np.uint64(data[np.uint64(at + place)]) << np.uint64(8 * place)
    return word


@kernel(nogil=True)
def _folded(one: np.uint64, other: np.uint64) -> np.uint64:
    """The two halves of the product of 128 bits, one upon the other."""
    one_low, one_high, other_low, other_high = one & _LOW, one >> _HALF, other & _LOW, other >> _HALF
    low = one_low * other_low
    middle = one_high * other_low
    cross = (low >> _HALF) + (middle & _LOW) + one_low * other_high
    high = (middle >> _HALF) + (cross >> _HALF) + one_high * other_high
    return np.uint64(high ^ ((cross << _HALF) | (low & _LOW)))


@kernel(nogil=True)
def _mixed(data: Bytes, at: int, secret_at: int) -> np.uint64:
    """What sixteen bytes add."""
    return _folded(_word(data, at) ^ _word(_SECRET, secret_at), _word(data, at + 8) ^ _word(_SECRET, secret_at + 8))


@kernel(nogil=True)
def _avalanche(mixed: np.uint64) -> np.uint64:
    mixed ^= mixed >> np.uint64(37)
    mixed *= _AVALANCHE
    return np.uint64(mixed ^ (mixed >> _HALF))


@kernel(nogil=True)
def _hash_up_to_16(data: Bytes, length: int) -> np.uint64:
    low = _word(data, 0) ^ _word(_SECRET, 24) ^ _word(_SECRET, 32)
    high = _word(data, length - 8) ^ _word(_SECRET, 40) ^ _word(_SECRET, 48)
    swapped = np.uint64(0)
    for place in range(8):
        swapped |= ((low >> np.uint64(8 * place)) & np.uint64(0xFF)) << np.uint64(8 * (7 - place))
    return _avalanche(np.uint64(length) + swapped + high + _folded(low, high))


@kernel(nogil=True)
def _hash_up_to_128(data: Bytes, length: int) -> np.uint64:
    mixed = np.uint64(length) * _PRIME
    for pair in range((length - 1) // 32 + 1):
        mixed += _mixed(data, 16 * pair, 32 * pair) + _mixed(data, length - 16 * (pair + 1), 32 * pair + 16)
    return _avalanche(mixed)


@kernel(nogil=True)
def _hash_up_to_240(data: Bytes, length: int) -> np.uint64:
    mixed = np.uint64(length) * _PRIME
    for part in range(8):
        mixed += _mixed(data, 16 * part, 16 * part)
    mixed = _avalanche(mixed)
    for part in range(8, length // 16):
        mixed += _mixed(data, 16 * part, 16 * (part - 8) + 3)
    return _avalanche(mixed + _mixed(data, length - 16, 136 - 17))


@kernel(nogil=True)
def _hash(data: Bytes, length: int) -> np.uint64:
    if length <= 16:
        return _hash_up_to_16(data, length)
    if length <= 128:
        return _hash_up_to_128(data, length)
    return _hash_up_to_240(data, length)


@kernel(nogil=True)
def _copy_row(buffer: Bytes, at: int, data: Bytes, start: int, length: int) -> int:
    """A row's key behind its length; returns where it ends."""
    return int(copy(buffer, write_number(buffer, at, length, LENGTH_BYTES), data, start, length))


@kernel("void(uint8[::1], uint8[::1], int64[::1], int64[::1], uint64[::1])", nogil=True)
def hash_rows(before: Bytes, data: Bytes, starts: Places, lengths: Places, hashes: Hashes) -> None:
    """The hash of ``before`` and each row, into ``hashes``. No input may be longer than ``HASHED_BYTES_MAX``, or
    shorter than ``HASHED_BYTES_MIN``.
    """
    buffer = np.empty(HASHED_BYTES_MAX, np.uint8)
    at = copy(buffer, 0, before, 0, before.size)
    for row in range(starts.size):
        hashes[row] = _hash(buffer, _copy_row(buffer, at, data, starts[row], lengths[row]))


@kernel(
    "int64(uint8[::1], uint8[::1], int64[::1], int64[::1], uint8[::1], int64[::1], int64[:, ::1], uint64[::1])",
    nogil=True,
)
def hash_cells(
    before: Bytes,
    data: Bytes,
    starts: Places,
    lengths: Places,
    columns: Bytes,
    column_ends: Places,
    value_lengths: Places,
    hashes: Hashes,
) -> int:
    """The same of ``before``, each row and each column of which it has a value; returns how many those are.

    Column ``c`` is ``columns[column_ends[c]:column_ends[c + 1]]``. ``hashes`` has room for all of every row.
    """
    buffer = np.empty(HASHED_BYTES_MAX, np.uint8)
    at = copy(buffer, 0, before, 0, before.size)
    found = 0
    for row in range(starts.size):
        row_end = _copy_row(buffer, at, data, starts[row], lengths[row])
        for column in range(value_lengths.shape[0]):
            if value_lengths[column, row] == ABSENT:
                continue
            start = column_ends[column]
            hashes[found] = _hash(buffer, copy(buffer, row_end, columns, start, column_ends[column + 1] - start))
            found += 1
    return found
