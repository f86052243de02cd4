"""The order in which HBase takes rows for the least: that of their keys. Pure.

A region keeps what is written in a list by key. Where rows of one request come in that list's order, each is looked for
where the one before has just been found, in memory that is at hand; in any other order HBase spends up to half as much
time again on a row of one cell (``python -m benchmarks.key_order``). Nothing hangs on the order but that time: so it is
made of the first bytes that tell keys apart, and rows that those do not tell apart stay as they came.
"""

from __future__ import annotations

from typing import Final

import numpy as np
import numpy.typing as npt

from kernels import kernel
from store.columns import Bytes, CellColumns, Places
from store.lines import packed

WORDS: Final = 3
"""Of eight bytes each, after those with which all keys begin."""
_WORD_BYTES: Final = 8


def in_key_order(cells: CellColumns) -> CellColumns:
    """The same rows, in the order of their keys; their bytes are not copied."""
    order = key_order(cells.data, cells.key_starts, cells.key_lengths)
    return cells if (order[1:] > order[:-1]).all() else cells.at(order)


def key_order(data: Bytes, starts: Places, lengths: Places) -> Places:
    """The indexes of keys (``[rows]``, as in ``CellColumns``) from the first in order on; equal ones stay as given."""
    if len(starts) < 2:
        return np.arange(len(starts))
    words = np.empty((WORDS, len(starts)), np.uint64)
    key_words(packed(data), packed(starts), packed(lengths), words)
    return np.lexsort(words[::-1])


@kernel(nogil=True)
def _common_bytes(data: Bytes, starts: Places, lengths: Places) -> int:
    """How many bytes all keys begin with."""
    common = lengths[0]
    for row in range(1, starts.shape[0]):
        common = min(common, lengths[row])
        place = 0
        while place < common and data[np.uint64(starts[row] + place)] == data[np.uint64(starts[0] + place)]:
            place += 1
        common = place
    return int(common)


@kernel("void(uint8[::1], int64[::1], int64[::1], uint64[:, ::1])", nogil=True)
def key_words(data: Bytes, starts: Places, lengths: Places, words: npt.NDArray[np.uint64]) -> None:
    """Set ``[words, rows]``: numbers that compare as the bytes of the keys do; zeros stand for what a key has not."""
    skipped = _common_bytes(data, starts, lengths)
    for row in range(starts.shape[0]):
        at, end = starts[row] + skipped, starts[row] + lengths[row]
        for number in range(words.shape[0]):
            word = np.uint64(0)
            for place in range(at, at + _WORD_BYTES):
                word <<= np.uint64(8)
                if place < end:
                    word |= np.uint64(data[np.uint64(place)])
            words[number, row] = word
            at += _WORD_BYTES
