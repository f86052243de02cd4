"""The kernels of ``wire.gathering``: they walk the bytes of many frames at once."""

from __future__ import annotations

import sys
from typing import TypeAlias

import numpy as np
import numpy.typing as npt

from kernels import kernel
from wire.columns import Cells, Codes, Timestamps
from wire.frames import VERSION, Kind

assert sys.byteorder == "little", "frames are little-endian, and columns are taken from them as they are"

Words: TypeAlias = npt.NDArray[np.uint64]
Counts: TypeAlias = npt.NDArray[np.int64]
Number: TypeAlias = int | np.int64

WORD_BYTES = 8
ANSWER_BYTES = 9
COUNT_BYTES = 8
_FEWEST_WORDS = 6
"""Of a request for one transaction with an empty write set."""
_VERSION, _KIND = int(VERSION), int(Kind.COMMIT_REPLY)


@kernel()
def _half(words: Words, base: Number, place: Number) -> np.int64:
    """The ``place``-th 32-bit number after word ``base``."""
    return np.int64((words[base + (place >> 1)] >> np.uint64(32 * (place & 1))) & np.uint64(0xFFFFFFFF))


@kernel()
def _is_well_formed(words: Words, base: Number, transactions: Number, cells: Number) -> bool:
    for place in range(base + 1, base + 1 + 3 * transactions):
        if words[place] >> np.uint64(63):
            return False  # a negative timestamp
    offsets = base + 1 + 3 * transactions + cells
    previous = _half(words, offsets, 0)
    if previous != 0:
        return False
    for transaction in range(transactions):
        following = _half(words, offsets, transaction + 1)
        guards = _half(words, offsets, transactions + 1 + transaction)
        if following < previous or guards > following - previous:
            return False
        previous = following
    return bool(previous == cells and _half(words, offsets, 2 * transactions + 1) == 0)


@kernel()
def measure(
    words: Words, lengths: Counts, bounds: Counts, well_formed: Codes, first: Counts, first_cell: Counts
) -> tuple[int, int, int]:
    """Fill all but the first two; returns how many transactions and cells there are, and malformed payloads."""
    bounds[0] = first[0] = first_cell[0] = 0
    malformed = lengths.size
    for payload in range(lengths.size):
        first[payload + 1], first_cell[payload + 1] = first[payload], first_cell[payload]
        base, size = bounds[payload], -(-lengths[payload] // WORD_BYTES)
        bounds[payload + 1] = base + size
        well_formed[payload] = 0
        if size < _FEWEST_WORDS or lengths[payload] != size * WORD_BYTES:
            continue
        transactions, cells = _half(words, base, 0), _half(words, base, 1)
        if transactions < 1 or 4 * transactions + cells + 2 != size:
            continue
        if _is_well_formed(words, base, transactions, cells):
            well_formed[payload] = 1
            malformed -= 1
            first[payload + 1] += transactions
            first_cell[payload + 1] += cells
    return first[lengths.size], first_cell[lengths.size], malformed


@kernel()
def gather(
    words: Words,
    bounds: Counts,
    first_cell: Counts,
    well_formed: Codes,
    first: Counts,
    starts: Timestamps,
    snapshots: Timestamps,
    validated: Timestamps,
    offsets: Counts,
    guards: Counts,
    cells: Cells,
) -> None:
    """Fill the columns from ``starts`` on with what ``measure`` found well-formed."""
    offsets[0] = 0
    for payload in range(well_formed.size):
        if not well_formed[payload]:
            continue
        begin, count = first[payload], first[payload + 1] - first[payload]
        begin_cells, cells_count = first_cell[payload], first_cell[payload + 1] - first_cell[payload]
        base = bounds[payload] + 1
        for place in range(count):
            starts[begin + place] = np.int64(words[base + place])
            snapshots[begin + place] = np.int64(words[base + count + place])
            validated[begin + place] = np.int64(words[base + 2 * count + place])
        base += 3 * count
        for place in range(cells_count):
            cells[begin_cells + place] = words[base + place]
        base += cells_count
        for place in range(count):
            offsets[begin + place + 1] = begin_cells + _half(words, base, place + 1)
            guards[begin + place] = _half(words, base, count + 1 + place)


@kernel()
def _store(frames: Codes, position: int, value: np.uint64, size: int) -> int:
    """Write the low ``size`` bytes of a number; returns where it ends."""
    for place in range(size):
        frames[position + place] = np.uint8((value >> np.uint64(8 * place)) & np.uint64(0xFF))
    return position + size


@kernel()
def scatter(ids: Words, counts: Counts, timestamps: Timestamps, reasons: Codes, frames: Codes) -> None:
    """Write the answers to requests ``ids``, frame after frame; ``counts``: transactions of each."""
    position, transaction = 0, 0
    for request in range(ids.size):
        count = counts[request]
        payload_bytes = COUNT_BYTES + ANSWER_BYTES * count
        position = _store(frames, position, np.uint64(payload_bytes), 4)
        frames[position], frames[position + 1] = _VERSION, _KIND
        position = _store(frames, position + 4, ids[request], 8)
        position = _store(frames, position, np.uint64(count), COUNT_BYTES)
        for place in range(transaction, transaction + count):
            position = _store(frames, position, np.uint64(timestamps[place]), 8)
        for place in range(transaction, transaction + count):
            frames[position] = reasons[place]
            position += 1
        transaction += count
