"""The row keys of very many rows, as hashes: 11 to 22 bytes of memory for each, where a set of them takes a hundred.

A hash of 64 bits may be that of another key. So what is said to be there already may not be, once among some billions
of rows, and whoever is told so looks for the key itself.
"""

from __future__ import annotations

from typing import Final

import numpy as np

from client.key_hashing import Hashes
from kernels import kernel
from store.columns import Places

SLOTS_FIRST: Final = 2**14
"""A power of two, as every number of slots."""
_FILLED_OF_FOUR: Final = 3
"""No more of four slots are filled: beyond that a search takes long."""
_EMPTY: Final = np.uint64(0)


class RowKeySet:
    """Hashes in slots of eight bytes; twice as many slots once three of four are filled."""

    def __init__(self) -> None:
        self._slots = np.zeros(SLOTS_FIRST, np.uint64)
        self._held = 0

    def __len__(self) -> int:
        """How many different hashes there are."""
        return self._held

    def add(self, hashes: Hashes) -> Places:
        """Take in the hashes of more rows; the places in ``hashes`` of those that were there before it."""
        self._make_room(hashes.size)
        repeated = np.empty(hashes.size, np.int64)
        count = enter(self._slots, hashes, repeated)
        self._held += hashes.size - count
        return repeated[:count]

    def _make_room(self, more: int) -> None:
        size = self._slots.size
        while 4 * (self._held + more) > _FILLED_OF_FOUR * size:
            size *= 2
        if size > self._slots.size:
            held = self._slots[self._slots != _EMPTY]
            self._slots = np.zeros(size, np.uint64)
            enter(self._slots, held, np.empty(held.size, np.int64))


@kernel("int64(uint64[::1], uint64[::1], int64[::1])", nogil=True)
def enter(slots: Hashes, hashes: Hashes, repeated: Places) -> int:
    """Put hashes into slots, of which some stay empty; returns how many were there, whose places go to ``repeated``."""
    last, count = np.uint64(slots.size - 1), 0
    for index in range(hashes.size):
        wanted = max(hashes[index], np.uint64(1))  # 0 is an empty slot; that two share a number is only looked into
        slot = wanted & last
        while slots[slot] != _EMPTY and slots[slot] != wanted:
            slot = (slot + np.uint64(1)) & last
        if slots[slot] == wanted:
            repeated[count] = index
            count += 1
        else:
            slots[slot] = wanted
    return count
