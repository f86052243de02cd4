"""The conflict keys of many rows at once: XXH3 of parts that lie in one block of bytes, in one compiled loop.

The library `xxhash` takes one ``bytes`` object at a time; to make that, and the number of its answer, takes ten times
what the hash of a row key does (`python -m benchmarks.conflict_keys`). So for inputs of up to ``HASHED_BYTES_MAX``
XXH3's rules for short inputs are written out here, with its default secret and no seed. Source: the section on XXH3 of
the xxHash algorithm description (Yann Collet).

Invariant: the same number as ``xxhash.xxh3_64_intdigest`` of the parts joined, which the tests hold it to; a key that
one client hashed in another way than the next would hide their conflict.
"""

from __future__ import annotations

from typing import Final

import numpy as np
import numpy.typing as npt

from kernels import kernel
from store.columns import ABSENT, Bytes, Places

HASHED_BYTES_MAX: Final = 240
"""Of one input: beyond it XXH3 has other rules, in which the cost of an object does not matter."""
HASHED_BYTES_MIN: Final = 9
"""Shorter inputs have other rules, too. Two lengths of four bytes, a table and a row come to more."""

LENGTH_BYTES: Final = 4
"""Of the length that goes before a row's key, the largest byte first."""

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


@kernel(nogil=True)
def _word(data: Bytes, at: int) -> np.uint64:
    """Eight bytes, the smallest first. By an unsigned index: of a signed one numba asks each time whether it counts
    from the end, and then reads byte by byte.
    """
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
def _copy(buffer: Bytes, at: int, data: Bytes, start: int, length: int) -> int:
    """Copy bytes; returns where they end."""
    for place in range(length):
        buffer[np.uint64(at + place)] = data[np.uint64(start + place)]
    return int(at + length)


@kernel(nogil=True)
def _copy_row(buffer: Bytes, at: int, data: Bytes, start: int, length: int) -> int:
    """A row's key behind its length; returns where it ends."""
    for place in range(LENGTH_BYTES):
        buffer[at + place] = (length >> (8 * (LENGTH_BYTES - 1 - place))) & 0xFF
    return int(_copy(buffer, at + LENGTH_BYTES, data, start, length))


@kernel("void(uint8[::1], uint8[::1], int64[::1], int64[::1], uint64[::1])", nogil=True)
def hash_rows(before: Bytes, data: Bytes, starts: Places, lengths: Places, keys: npt.NDArray[np.uint64]) -> None:
    """The hash of ``before`` and each row, into ``keys``. No input may be longer than ``HASHED_BYTES_MAX``, or shorter
    than ``HASHED_BYTES_MIN``.
    """
    buffer = np.empty(HASHED_BYTES_MAX, np.uint8)
    at = _copy(buffer, 0, before, 0, before.size)
    for row in range(starts.size):
        keys[row] = _hash(buffer, _copy_row(buffer, at, data, starts[row], lengths[row]))


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
    keys: npt.NDArray[np.uint64],
) -> int:
    """The same of ``before``, each row and each column of which it has a value; returns how many those are.

    Column ``c`` is ``columns[column_ends[c]:column_ends[c + 1]]``. ``keys`` has room for all of every row.
    """
    buffer = np.empty(HASHED_BYTES_MAX, np.uint8)
    at = _copy(buffer, 0, before, 0, before.size)
    found = 0
    for row in range(starts.size):
        row_end = _copy_row(buffer, at, data, starts[row], lengths[row])
        for column in range(value_lengths.shape[0]):
            if value_lengths[column, row] == ABSENT:
                continue
            start = column_ends[column]
            keys[found] = _hash(buffer, _copy(buffer, row_end, columns, start, column_ends[column + 1] - start))
            found += 1
    return found
