"""The latest timestamp of each key, in bounded memory: what an oracle can afford to remember of who wrote what when.

Invariants: a key whose last timestamp is above ``forgotten`` is found with exactly that timestamp, and no other key is
found. ``forgotten`` never falls and is never above the latest timestamp. Once that many keys were entered, at least
``entries_max`` are remembered, whatever the keys and however often each is entered; only keys that share a timestamp
with one that had to go are forgotten with it, as they must be.

A remembered entry costs 23.4 bytes: an entry of 16, its share of a hash index (15 words of 64 bytes in use by 9.6), and
1/32 of both as a reserve that forgetting works with. The system gives the memory as it is first touched: that of the
entries while they fill, that of the index soon after the start.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from numpy.typing import ArrayLike, NDArray

from tso.decisions import recency_kernels
from tso.decisions.bucket_words import BUCKET_WORDS
from tso.decisions.recency_index import (
    BUCKET_COUNT,
    EVICTED,
    FORGOTTEN,
    LATEST,
    LIVE,
    POSITION_BITS,
    RESERVE,
    SEED_1,
    SEED_2,
    SEED_3,
    STATE_WORDS,
    RecencyTable,
)
from tso.decisions.recency_kernels import GENERATIONS_MAX

ENTRIES_MAX = 500_000_000
"""A position must leave three bits of a 32-bit word for a tag."""
ENTRIES_PER_RESERVE = 64
"""Free entries at which forgetting begins, as a share; there are twice as many beyond ``entries_max``."""
BUCKET_LOAD = 9.6
"""Entries a bucket has on average: of its 15 slots; every sixth bucket was full when a key of its own came."""
CACHE_LINE_BYTES = 64


class RecencyMap:
    """64-bit key → the positive timestamp last entered for it. Timestamps never decrease from call to call."""

    def __init__(self, entries_max: int, seed: int = 0) -> None:
        """``seed``: 64 secret bits, so that nobody can send keys that collide.

        Raises ``ValueError`` unless 1 ≤ ``entries_max`` ≤ 500 million.
        """
        if not 1 <= entries_max <= ENTRIES_MAX:
            raise ValueError(f"entries_max has to be from 1 to {ENTRIES_MAX:,}, not {entries_max:,}")
        self.table = _new_table(entries_max, seed)
        self._entries_max = entries_max

    def __len__(self) -> int:
        """How many keys are remembered."""
        return int(self.table.state[LIVE])

    @property
    def forgotten(self) -> int:
        """Keys whose last timestamp is up to this one are not remembered."""
        return int(self.table.state[FORGOTTEN])

    @property
    def evicted(self) -> int:
        """How many entries were ever forgotten to make room."""
        return int(self.table.state[EVICTED])

    @property
    def bytes_per_entry(self) -> float:
        """Memory for each of the ``entries_max``; that of a map for a few entries is mostly fixed."""
        return sum(array.nbytes for array in self.table) / self._entries_max

    def look_up(self, key: int) -> int:
        """The key's timestamp, 0 if it is not remembered."""
        return int(recency_kernels.look_up(self.table, _key(key)))

    def enter(self, key: int, timestamp: int) -> None:
        """Give the key a timestamp. Raises ``ValueError`` for one that is below an earlier one, or not positive."""
        recency_kernels.enter(self.table, _key(key), self._timestamp(timestamp))

    def look_up_all(self, keys: ArrayLike) -> NDArray[np.int64]:
        """The timestamp of each key, 0 for those that are not remembered."""
        asked = np.ascontiguousarray(keys, dtype=np.uint64)
        timestamps = np.empty(asked.size, dtype=np.int64)
        recency_kernels.look_up_all(self.table, asked, timestamps)
        return timestamps

    def enter_all(self, keys: ArrayLike, timestamp: int) -> None:
        """Give all the keys one timestamp. Raises ``ValueError`` like ``enter``."""
        entered = np.ascontiguousarray(keys, dtype=np.uint64)
        recency_kernels.enter_all(self.table, entered, self._timestamp(timestamp))

    def _timestamp(self, timestamp: int) -> np.int64:
        least = max(1, int(self.table.state[LATEST]))
        if not least <= timestamp < 2**63:
            raise ValueError(f"timestamps have to be at least 1, in order, and below 2**63: {timestamp} after {least}")
        return np.int64(timestamp)


def _key(key: int) -> np.uint64:
    if not 0 <= key < 2**64:
        raise ValueError(f"a key has 64 bits and no sign: not {key}")
    return np.uint64(key)


def _new_table(entries_max: int, seed: int) -> RecencyTable:
    reserve = entries_max // ENTRIES_PER_RESERVE
    entries = entries_max + 2 * reserve
    buckets = int(entries / BUCKET_LOAD) + 1
    state = np.zeros(STATE_WORDS, dtype=np.int64)
    state[RESERVE] = reserve
    state[BUCKET_COUNT] = buckets
    state[POSITION_BITS] = (entries - 1).bit_length()
    words = _secret_words(seed)
    state[SEED_1], state[SEED_2], state[SEED_3] = next(words), next(words) | np.int64(1), next(words) | np.int64(1)
    return RecencyTable(
        np.zeros((entries, 2), dtype=np.uint64),
        _cache_lines(buckets * BUCKET_WORDS),
        np.zeros((GENERATIONS_MAX, 2), dtype=np.int64),
        state,
    )


def _secret_words(seed: int) -> Iterator[np.int64]:
    """SplitMix64 (Steele, Lea and Flood 2014)."""
    while True:
        seed = (seed + 0x9E37_79B9_7F4A_7C15) % 2**64
        word = (seed ^ seed >> 30) * 0xBF58_476D_1CE4_E5B9 % 2**64
        word = (word ^ word >> 27) * 0x94D0_49BB_1331_11EB % 2**64
        yield np.uint64(word ^ word >> 31).view(np.int64)


def _cache_lines(words: int) -> NDArray[np.uint32]:
    """Zeros that begin with a cache line, so that a bucket lies in one and not in two."""
    around = np.zeros(words + CACHE_LINE_BYTES // 4, dtype=np.uint32)
    first = -around.ctypes.data % CACHE_LINE_BYTES // 4
    return around[first : first + words]
