"""Where the entry of a key is: a hash index in cache lines over entries that lie elsewhere. Kernels, for other kernels.

Invariant: the last word of a bucket is the number of entries whose home is this bucket or one before it and that lie
beyond it. So a search may end where it is 0, and a removal leaves no tombstone (as in F14, Bronson and Shi 2019).

How the kernels of the map are written. A call passes some 40 words and counts references with atomic instructions,
which made a look-up ten times as slow. So all are inlined, arrays are named only as ``table.x[...]``, each function has
one exit, and ``table`` is used in its last block: then the compiler can remove every count. An int64 that meets a
uint64 would become a float64: hence the casts.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from kernels import kernel
from tso.decisions.bucket_words import BUCKET_WORDS, lowest_bit, words_alike

BUCKET_SLOTS = BUCKET_WORDS - 1
PROBES_MAX = 64
"""Buckets that a search may visit. Keys that were not made to collide are at most about ten from their homes."""

(
    LATEST,  # the largest timestamp entered
    FORGOTTEN,
    LIVE,
    PENDING,
    RESERVE,  # free entries at which forgetting begins
    USED,  # entries that were ever taken
    FREED,  # entries that were given back, chained through their key words in that order
    FIRST_FREED,
    LAST_FREED,
    HAND,
    OLDEST,  # the first and the last generation
    CURRENT,
    BUCKET_COUNT,
    POSITION_BITS,
    SEED_1,
    SEED_2,
    SEED_3,
    TOUCHED,  # has no meaning: it is the use of what was loaded ahead, without which it would not be loaded
    EVICTED,  # entries that were ever forgotten
    STATE_WORDS,
) = range(20)


class RecencyTable(NamedTuple):
    """The arrays of a recency map; ``RecencyMap`` makes them."""

    entries: NDArray[np.uint64]
    """[entries, 2]: key and timestamp; the timestamp of a free entry is 0."""
    buckets: NDArray[np.uint32]
    """[buckets × 16]: the low bits of a word are an entry's position, the others a tag of its key, never 0."""
    generations: NDArray[np.int64]
    """[512, 2]: the last timestamp of each, and how many of the remembered entries were last entered in it."""
    state: NDArray[np.int64]


@kernel(inline=True)
def _hash(table: RecencyTable, key: np.uint64) -> np.uint64:
    """Keyed by three secret words, two of them odd multipliers: who does not know them cannot make keys collide."""
    mixed = (key ^ np.uint64(table.state[SEED_1])) * np.uint64(table.state[SEED_2])
    mixed ^= mixed >> np.uint64(32)
    mixed *= np.uint64(table.state[SEED_3])
    return mixed ^ (mixed >> np.uint64(32))


@kernel(inline=True)
def _home(table: RecencyTable, hashed: np.uint64) -> np.uint64:
    """The bucket at which a search begins, by the high half of the hash."""
    return ((hashed >> np.uint64(32)) * np.uint64(table.state[BUCKET_COUNT])) >> np.uint64(32)


@kernel(inline=True)
def _tag(table: RecencyTable, hashed: np.uint64) -> np.uint64:
    """The tag, where it lies in a word of the index: the high bits of the low half of the hash, or 1 if they are 0."""
    bits = np.uint64(table.state[POSITION_BITS])
    tag = ((hashed & np.uint64(0xFFFF_FFFF)) >> bits) << bits
    return tag + (np.uint64(tag == np.uint64(0)) << bits)


@kernel(inline=True)
def _bucket_after(table: RecencyTable, bucket: np.uint64) -> np.uint64:
    following = bucket + np.uint64(1)
    return following * np.uint64(following != np.uint64(table.state[BUCKET_COUNT]))


@kernel(inline=True)
def _slots_with(table: RecencyTable, base: np.uint64, wanted: np.uint64, shift_bits: np.uint64) -> np.uint32:
    """A bit for each slot of the bucket at ``base`` whose word is ``wanted``, whatever its lowest bits are."""
    alike = words_alike(table.buckets, base, np.uint32(wanted), np.uint32(shift_bits))
    return np.uint32(alike & np.uint32((1 << BUCKET_SLOTS) - 1))


@kernel(inline=True)
def find(table: RecencyTable, key: np.uint64) -> np.int64:
    """The position of the key's entry; -1: it has none."""
    hashed = _hash(table, key)
    bits = np.uint64(table.state[POSITION_BITS])
    tag = _tag(table, hashed)
    bucket = _home(table, hashed)
    position = np.int64(-1)
    probes = PROBES_MAX
    while probes > 0:
        base = bucket * np.uint64(BUCKET_WORDS)
        alike = _slots_with(table, base, tag, bits)
        while alike != np.uint32(0):
            candidate = np.uint64(table.buckets[base + lowest_bit(alike)]) ^ tag
            alike &= alike - np.uint32(1)
            if table.entries[candidate, 0] == key:
                position = np.int64(candidate)
                alike = np.uint32(0)
        if position >= 0 or table.buckets[base + np.uint64(BUCKET_SLOTS)] == np.uint32(0):
            probes = 0
        probes -= 1
        bucket = _bucket_after(table, bucket)
    return position


@kernel(inline=True)
def touch(table: RecencyTable, key: np.uint64) -> np.uint32:
    """Load the key's home bucket. The result has no meaning, but must be used: add it to ``state[TOUCHED]``."""
    return np.uint32(table.buckets[_home(table, _hash(table, key)) * np.uint64(BUCKET_WORDS)])


@kernel(inline=True)
def empty_word(table: RecencyTable, key: np.uint64) -> np.int64:
    """Which word may lead to the key's entry, of a key that has none; -1: none within ``PROBES_MAX`` buckets."""
    bucket = _home(table, _hash(table, key))
    word = np.int64(-1)
    probes = PROBES_MAX
    while probes > 0:
        base = bucket * np.uint64(BUCKET_WORDS)
        empty = _slots_with(table, base, np.uint64(0), np.uint64(0))
        if empty != np.uint32(0):
            word = np.int64(base + lowest_bit(empty))
            probes = 0
        probes -= 1
        bucket = _bucket_after(table, bucket)
    return word


@kernel(inline=True)
def _add_to_counts(table: RecencyTable, home: np.uint64, word: np.uint64, change: np.uint32) -> None:
    """Change the count of each bucket from the home to before the one that the word is in."""
    bucket = home
    while bucket != word // np.uint64(BUCKET_WORDS):
        table.buckets[bucket * np.uint64(BUCKET_WORDS) + np.uint64(BUCKET_SLOTS)] += change
        bucket = _bucket_after(table, bucket)


@kernel(inline=True)
def link(table: RecencyTable, word: np.uint64, key: np.uint64, position: np.uint64) -> None:
    """Let an empty word lead to the key's entry."""
    hashed = _hash(table, key)
    table.buckets[word] = np.uint32(_tag(table, hashed) | position)
    _add_to_counts(table, _home(table, hashed), word, np.uint32(1))


@kernel(inline=True)
def unlink(table: RecencyTable, position: np.uint64) -> None:
    """Empty the word that leads to an entry; there must be one."""
    hashed = _hash(table, table.entries[position, 0])
    wanted = _tag(table, hashed) | position
    bucket = _home(table, hashed)
    word = np.int64(-1)
    while word < 0:
        base = bucket * np.uint64(BUCKET_WORDS)
        leading = _slots_with(table, base, wanted, np.uint64(0))
        if leading != np.uint32(0):
            word = np.int64(base + lowest_bit(leading))
        bucket = _bucket_after(table, bucket)
    table.buckets[np.uint64(word)] = np.uint32(0)
    _add_to_counts(table, _home(table, hashed), np.uint64(word), np.uint32(0xFFFF_FFFF))


@kernel(inline=True)
def oldest_in_the_way(table: RecencyTable, key: np.uint64) -> np.uint64:
    """The position of the oldest entry in the buckets where a key may be, all of which are full."""
    mask = (np.uint64(1) << np.uint64(table.state[POSITION_BITS])) - np.uint64(1)
    bucket = _home(table, _hash(table, key))
    oldest = np.uint64(table.buckets[bucket * np.uint64(BUCKET_WORDS)]) & mask
    for _ in range(PROBES_MAX):
        for slot in range(BUCKET_SLOTS):
            other = np.uint64(table.buckets[bucket * np.uint64(BUCKET_WORDS) + np.uint64(slot)]) & mask
            if table.entries[other, 1] < table.entries[oldest, 1]:
                oldest = other
        bucket = _bucket_after(table, bucket)
    return oldest
