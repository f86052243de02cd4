"""The kernels of the recency map: fixed arrays that a caller's own compiled loop can ask and change.

Invariants, whatever the keys and the order of calls:

- a key whose last timestamp is above ``FORGOTTEN`` has exactly one entry, with that timestamp;
- ``LIVE`` is the number of those entries, and the counts of the generations add up to it; ``PENDING`` is the number of
  entries that were forgotten and are still in place.

How it forgets. A *generation* is a stretch of time in which about ``RESERVE`` / 2 of the remembered entries were last
entered. When free entries run low, the oldest generation is forgotten at once, by raising ``FORGOTTEN``, and a hand
that sweeps over the entries picks up its entries, some at a time (the hand is that of CLOCK, Corbató 1968; to sweep for
what is known to be dead, in steps, while a reserve lasts, is how garbage collectors run beside a program). No entry is
ever moved, and what is forgotten depends on timestamps alone, not on where an entry lies. Entries that were entered
once lie in order, so the hand finds one at each step; at worst it passes 130 for each that it finds.

``recency_index`` says why these functions are written as they are.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from kernels import kernel
from tso.decisions.recency_index import (
    CURRENT,
    EVICTED,
    FIRST_FREED,
    FORGOTTEN,
    FREED,
    HAND,
    LAST_FREED,
    LATEST,
    LIVE,
    OLDEST,
    PENDING,
    RESERVE,
    TOUCHED,
    USED,
    RecencyTable,
    empty_word,
    find,
    link,
    oldest_in_the_way,
    touch,
    unlink,
)

SWEEP_STEPS_MAX = 256
"""Entries that the hand passes in one call while any is free. They run out only where one enters again and again just
what was forgotten; then a call goes on until the hand finds one."""
SWEEP_FOUND_MAX = 32
"""Entries that the hand picks up in one call."""
GENERATIONS_MAX = 512
"""When there are so many, they are merged; at most about 265 are left."""
TOUCHED_AT_ONCE = 1024
"""Keys of a batch whose buckets are brought into the cache before the first of them is worked on."""


@kernel(inline=True)
def look_up(table: RecencyTable, key: np.uint64) -> np.int64:
    """The timestamp last entered for the key if it is above ``FORGOTTEN``, else 0."""
    position = find(table, key)
    timestamp = np.int64(table.entries[np.uint64(max(position, np.int64(0))), 1])
    return timestamp * np.int64((position >= 0) & (timestamp > table.state[FORGOTTEN]))


@kernel(inline=True)
def _remove(table: RecencyTable, position: np.uint64) -> None:
    """Take a forgotten entry out of the index, and chain it to the free ones."""
    unlink(table, position)
    first, last = table.state[FIRST_FREED], table.state[LAST_FREED]
    if table.state[FREED] == 0:
        first = last = np.int64(position)
    table.entries[np.uint64(last), 0] = position
    table.state[FIRST_FREED] = first
    table.state[LAST_FREED] = np.int64(position)
    table.state[FREED] += 1
    table.state[EVICTED] += 1
    table.entries[position, 1] = np.uint64(0)
    table.state[PENDING] -= 1


@kernel(inline=True)
def _generation_entries(table: RecencyTable) -> np.int64:
    """With how many entries a generation ends, and how many are to be forgotten at once."""
    return max(np.int64(1), table.state[RESERVE] >> 1)


@kernel(inline=True)
def _merge_generations(table: RecencyTable) -> None:
    """Drop those that have no entries left, and join neighbours that are small together."""
    most = _generation_entries(table)
    kept = np.int64(-1)
    kept_entries = most
    for number in range(table.state[OLDEST], table.state[CURRENT] + 1):
        entries = table.generations[number, 1]
        if entries > 0:
            joined = np.int64(kept_entries + entries <= most)
            kept_entries = kept_entries * joined + entries
            kept += np.int64(1) - joined
            table.generations[kept, 0] = table.generations[number, 0]
            table.generations[kept, 1] = kept_entries
    table.state[OLDEST] = 0
    table.state[CURRENT] = kept


@kernel(inline=True)
def _advance(table: RecencyTable, timestamp: np.int64) -> None:
    """Take note of a timestamp above all before it. No generation ends within one timestamp."""
    if table.generations[table.state[CURRENT], 1] >= _generation_entries(table):
        if table.state[CURRENT] == GENERATIONS_MAX - 1:
            _merge_generations(table)
        table.state[CURRENT] += 1
        table.generations[table.state[CURRENT], 1] = 0
    table.generations[table.state[CURRENT], 0] = timestamp
    table.state[LATEST] = timestamp


@kernel(inline=True)
def _generation_of(table: RecencyTable, timestamp: np.int64) -> np.int64:
    """The generation of a remembered timestamp; the oldest for one that was forgotten."""
    low, high = table.state[OLDEST], table.state[CURRENT]
    while low < high:
        middle = (low + high) >> 1
        if table.generations[middle, 0] < timestamp:
            low = middle + 1
        else:
            high = middle
    return np.int64(low)


@kernel(inline=True)
def _forget_through(table: RecencyTable, last: np.int64) -> None:
    """Forget the generations up to this one."""
    for number in range(table.state[OLDEST], last + 1):
        table.state[LIVE] -= table.generations[number, 1]
        table.state[PENDING] += table.generations[number, 1]
        table.generations[number, 1] = 0
    table.state[FORGOTTEN] = table.generations[last, 0]
    table.state[OLDEST] = min(last + 1, table.state[CURRENT])


@kernel(inline=True)
def _forget(table: RecencyTable) -> None:
    """Forget the oldest entries. To be called when hardly an entry is free or pending, so that there are enough."""
    last = table.state[OLDEST]
    entries = table.generations[last, 1]
    while entries < _generation_entries(table):
        last += 1
        entries += table.generations[last, 1]
    _forget_through(table, last)


@kernel(inline=True)
def free_entries(table: RecencyTable) -> np.int64:
    """Entries that can be taken without a sweep."""
    return np.int64(table.state[FREED] + table.entries.shape[0] - table.state[USED])


@kernel(inline=True)
def _is_pending(table: RecencyTable, position: np.uint64) -> bool:
    """Whether an entry is neither free nor remembered."""
    return bool(table.entries[position, 1] - np.uint64(1) < np.uint64(table.state[FORGOTTEN]))


@kernel(inline=True)
def _entry_after(table: RecencyTable, position: np.uint64) -> np.uint64:
    following = position + np.uint64(1)
    return following * np.uint64(following != np.uint64(table.entries.shape[0]))


@kernel(inline=True)
def _sweep(table: RecencyTable) -> None:
    """Pick up some forgotten entries; at least one if no entry is free. The first pass overlaps their cache misses."""
    if table.state[PENDING] == 0:
        _forget(table)
    wanted = min(np.int64(SWEEP_FOUND_MAX), table.state[PENDING])
    position = np.uint64(table.state[HAND])
    steps = 0
    while wanted > 0 and (steps < SWEEP_STEPS_MAX or free_entries(table) == 0):
        if _is_pending(table, position):
            table.state[TOUCHED] += np.int64(touch(table, table.entries[position, 0]))
            wanted -= 1
        steps += 1
        position = _entry_after(table, position)
    position = np.uint64(table.state[HAND])
    for _ in range(steps):
        if _is_pending(table, position):
            _remove(table, position)
        position = _entry_after(table, position)
    table.state[HAND] = np.int64(position)


@kernel(inline=True)
def _make_way(table: RecencyTable, key: np.uint64) -> None:
    """Remove an entry whose word a key can have; only keys that were made to collide ever need that."""
    position = oldest_in_the_way(table, key)
    timestamp = np.int64(table.entries[position, 1])
    if timestamp > table.state[FORGOTTEN]:
        _forget_through(table, _generation_of(table, timestamp))
    _remove(table, position)


@kernel(inline=True)
def _renew(table: RecencyTable, position: np.uint64, timestamp: np.int64) -> None:
    """Give an entry that is there, remembered or pending, the latest timestamp."""
    before = np.int64(table.entries[position, 1])
    revived = np.int64(before <= table.state[FORGOTTEN])
    table.generations[_generation_of(table, before), 1] -= np.int64(1) - revived
    table.generations[table.state[CURRENT], 1] += 1
    table.state[PENDING] -= revived
    table.state[LIVE] += revived
    table.entries[position, 1] = np.uint64(timestamp)


@kernel(inline=True)
def _take_free(table: RecencyTable) -> np.uint64:
    """The entry that was free for longest: so entries that are entered once stay in order, and the hand finds them."""
    position = table.state[USED]
    again = np.int64(position == table.entries.shape[0])
    if again:
        position = table.state[FIRST_FREED]
        table.state[FIRST_FREED] = np.int64(table.entries[np.uint64(position), 0])
    table.state[FREED] -= again
    table.state[USED] += np.int64(1) - again
    return np.uint64(position)


@kernel(inline=True)
def _add(table: RecencyTable, key: np.uint64, timestamp: np.int64) -> None:
    """Make an entry for a key that has none, unless its timestamp was forgotten while making room."""
    if free_entries(table) <= table.state[RESERVE]:
        _sweep(table)
    word = empty_word(table, key)
    if word < 0:
        _make_way(table, key)
        word = empty_word(table, key)
    remembered = np.int64(timestamp > table.state[FORGOTTEN])
    if remembered:
        position = _take_free(table)
        table.entries[position, 0] = key
        table.entries[position, 1] = np.uint64(timestamp)
        link(table, np.uint64(word), key, position)
    table.generations[table.state[CURRENT], 1] += remembered
    table.state[LIVE] += remembered


@kernel(inline=True)
def enter(table: RecencyTable, key: np.uint64, timestamp: np.int64) -> np.int64:
    """Remember that the key has this timestamp, positive, and not below an earlier one: it would count as that one.

    Returns ``FORGOTTEN``, which this may have raised.
    """
    timestamp = max(timestamp, table.state[LATEST])
    if timestamp > table.state[LATEST]:
        _advance(table, timestamp)
    if timestamp > table.state[FORGOTTEN]:
        position = find(table, key)
        if position >= 0:
            _renew(table, np.uint64(position), timestamp)
        else:
            _add(table, key, timestamp)
    return np.int64(table.state[FORGOTTEN])


@kernel(inline=True)
def touch_all(table: RecencyTable, keys: NDArray[np.uint64]) -> None:
    """Load the home buckets of a batch of keys: their cache misses overlap, which those of look-ups hardly do."""
    touched = np.int64(0)
    for number in range(keys.size):
        touched += np.int64(touch(table, keys[number]))
    table.state[TOUCHED] += touched


@kernel()
def look_up_all(table: RecencyTable, keys: NDArray[np.uint64], timestamps: NDArray[np.int64]) -> None:
    """Look up each key."""
    for first in range(0, keys.size, TOUCHED_AT_ONCE):
        batch = keys[first : first + TOUCHED_AT_ONCE]
        touch_all(table, batch)
        for number in range(batch.size):
            timestamps[first + number] = look_up(table, batch[number])


@kernel()
def enter_all(table: RecencyTable, keys: NDArray[np.uint64], timestamp: np.int64) -> None:
    """Enter each key with the same timestamp."""
    for first in range(0, keys.size, TOUCHED_AT_ONCE):
        batch = keys[first : first + TOUCHED_AT_ONCE]
        touch_all(table, batch)
        for number in range(batch.size):
            enter(table, batch[number], timestamp)
