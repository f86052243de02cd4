"""The recency map beside a plain dict: what is above ``forgotten`` is found, exactly, and little is forgotten."""

from __future__ import annotations

from collections.abc import Callable, Iterable

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from tso.decisions import recency_kernels
from tso.decisions.bucket_words import BUCKET_WORDS
from tso.decisions.recency_index import (
    BUCKET_COUNT,
    BUCKET_SLOTS,
    HAND,
    PENDING,
    POSITION_BITS,
    PROBES_MAX,
    SEED_1,
    SEED_2,
    SEED_3,
    TOUCHED,
)
from tso.decisions.recency_kernels import GENERATIONS_MAX
from tso.decisions.recency_map import RecencyMap

ODD_KEYS = (0, 1, 2**31, 2**32, 2**63 - 1, 2**63, 2**64 - 1)


class Beside:
    """A map, and a dict that was told the same and never forgets."""

    def __init__(self, entries_max: int, seed: int = 0) -> None:
        self.map = RecencyMap(entries_max, seed)
        self.entries_max = entries_max
        self.timestamps: dict[int, int] = {}

    def enter(self, key: int, timestamp: int) -> None:
        before = self.map.forgotten
        self.map.enter(key, timestamp)
        self.timestamps[key] = timestamp
        assert before <= self.map.forgotten <= timestamp

    def enter_all(self, keys: Iterable[int], timestamp: int) -> None:
        entered = list(keys)
        self.map.enter_all(entered, timestamp)
        self.timestamps |= dict.fromkeys(entered, timestamp)

    def check(self, others: Iterable[int] = (), *, ordinary_keys: bool = True) -> None:
        """Everything above ``forgotten`` is found and nothing else; and no more was forgotten than had to be."""
        keys = [*self.timestamps, *(set(others) - self.timestamps.keys())]
        entered = np.array([self.timestamps.get(key, 0) for key in keys], dtype=np.int64)
        remembered = np.where(entered > self.map.forgotten, entered, 0)
        assert np.array_equal(self.map.look_up_all(keys), remembered)
        assert len(self.map) == np.count_nonzero(remembered)
        if ordinary_keys:
            tied = np.count_nonzero(entered == self.map.forgotten) if self.map.forgotten else 0
            assert len(self.map) + tied >= min(self.entries_max, len(self.timestamps))


def state(recency: RecencyMap, word: int) -> int:
    return int(recency.table.state[word]) % 2**64


def hash_of(recency: RecencyMap, key: int) -> int:
    mixed = (key ^ state(recency, SEED_1)) * state(recency, SEED_2) % 2**64
    mixed = (mixed ^ mixed >> 32) * state(recency, SEED_3) % 2**64
    return mixed ^ mixed >> 32


def key_with_hash(recency: RecencyMap, hashed: int) -> int:
    """What only those can compute who know the seed."""
    mixed = (hashed ^ hashed >> 32) * pow(state(recency, SEED_3), -1, 2**64) % 2**64
    mixed = (mixed ^ mixed >> 32) * pow(state(recency, SEED_2), -1, 2**64) % 2**64
    return mixed ^ state(recency, SEED_1)


def counts_beyond(recency: RecencyMap) -> NDArray[np.uint32]:
    return recency.table.buckets[BUCKET_SLOTS::BUCKET_WORDS]


def random_keys(count: int, seed: int) -> list[int]:
    return [int(key) for key in np.random.default_rng(seed).integers(0, 2**64, count, dtype=np.uint64)]


def test_a_new_map_knows_nothing() -> None:
    recency = RecencyMap(10)
    assert [recency.look_up(key) for key in ODD_KEYS] == [0] * len(ODD_KEYS)
    assert (len(recency), recency.forgotten) == (0, 0)
    with pytest.raises(ValueError, match="at least 1"):
        recency.enter(1, 0)


def test_any_key_is_legal() -> None:
    beside = Beside(10)
    for timestamp, key in enumerate(ODD_KEYS, start=1):
        beside.enter(key, timestamp)
        beside.check(ODD_KEYS)
    assert beside.map.forgotten == 0


@pytest.mark.parametrize("entries_max", [1, 2, 4, 8, 63])
def test_a_small_map_remembers_exactly_as_many_as_it_is_for(entries_max: int) -> None:
    recency = RecencyMap(entries_max)
    for timestamp in range(1, 5 * entries_max):
        recency.enter(timestamp * 2**40, timestamp)
        assert len(recency) == min(timestamp, entries_max)
        assert recency.forgotten == max(0, timestamp - entries_max)


def test_the_oldest_timestamp_is_forgotten_first_not_the_key_entered_first() -> None:
    recency = RecencyMap(3)
    for timestamp, key in enumerate("abcab", start=1):
        recency.enter(ord(key), timestamp)
    recency.enter(ord("d"), 6)
    assert recency.forgotten == 3
    assert [recency.look_up(ord(key)) for key in "abcd"] == [4, 5, 0, 6]


def test_keys_that_share_a_timestamp_are_forgotten_together() -> None:
    beside = Beside(4)
    beside.enter_all([1, 2, 3], 10)
    beside.enter(4, 11)
    beside.enter(5, 12)
    assert beside.map.forgotten == 10
    beside.check()
    assert len(beside.map) == 2


def test_more_keys_of_one_timestamp_than_fit_are_forgotten_at_once_and_the_map_goes_on() -> None:
    for entries_max in (4, 1000):
        beside = Beside(entries_max)
        beside.enter(7, 9)
        beside.enter_all(range(100, 100 + 3 * entries_max), 10)
        assert beside.map.forgotten == 10
        beside.check()
        assert len(beside.map) == 0
        for timestamp in range(11, 11 + 3 * entries_max):
            beside.enter(timestamp, timestamp)
        beside.check()


def test_what_was_forgotten_and_not_yet_picked_up_can_be_entered_again() -> None:
    beside = Beside(10_000)
    keys = random_keys(15_000, seed=1)
    timestamp = 0
    while not beside.map.table.state[PENDING]:
        beside.enter(keys[timestamp], timestamp + 1)
        timestamp += 1
    pending = int(beside.map.table.state[PENDING])
    beside.enter(keys[beside.map.forgotten - 1], timestamp + 1)
    assert beside.map.table.state[PENDING] == pending - 1
    for later, key in enumerate(keys, start=timestamp + 2):
        beside.enter(key, later)
    beside.check()


@given(
    st.one_of(st.integers(1, 9), st.integers(10, 300)),
    st.integers(0, 2**64 - 1),
    st.lists(
        st.tuples(st.one_of(st.integers(0, 40), st.sampled_from(ODD_KEYS)), st.integers(0, 2), st.integers(1, 60)),
        max_size=80,
    ),
)
def test_it_is_like_a_dict_above_forgotten(entries_max: int, seed: int, calls: list[tuple[int, int, int]]) -> None:
    """A call enters some keys in a row, at one timestamp each or at one for all."""
    beside = Beside(entries_max, seed)
    timestamp = 1
    for first, step, count in calls:
        for key in range(first, first + count):
            beside.enter(key % 2**64, timestamp)
            timestamp += step
        beside.check(range(120))


def uniform(number: int, key: int) -> int:
    return key % 6_000


def twice(number: int, key: int) -> int:
    return number // 2 if number % 2 else number // 2 + 500


def skewed(number: int, key: int) -> int:
    return int(2 ** (key % 2**16 / 2**12))


def mostly_old(number: int, key: int) -> int:
    return number % 4_200 if number % 21 else key


def in_long_runs(number: int, key: int) -> int:
    return key if number // 5_000 % 2 else number % 3_000


@pytest.mark.parametrize("workload", [uniform, twice, skewed, mostly_old, in_long_runs])
@pytest.mark.parametrize("step", [1, 7])
def test_many_laps_of_many_workloads(workload: Callable[[int, int], int], step: int) -> None:
    """``step``: so many keys share a timestamp."""
    beside = Beside(4_500)
    for number, key in enumerate(random_keys(50_000, seed=2)):
        beside.enter(workload(number, key), 1 + number // step)
        if number % 2_999 == 0:
            beside.check(range(100))
    beside.check()


def test_hot_keys_with_a_trickle_of_new_ones_keep_a_long_memory() -> None:
    """The hot ones lie side by side. The hand gets past them, in calls of bounded length, while the reserve lasts."""
    beside = Beside(8_192)
    hot = random_keys(7_000, seed=3)
    news = iter(random_keys(8_000, seed=4))
    timestamp = 0
    for number, key in enumerate(hot * 12):
        for entered in (key, next(news)) if number > len(hot) and number % 10 == 0 else (key,):
            timestamp += 1
            beside.enter(entered, timestamp)
            assert recency_kernels.free_entries(beside.map.table) > 0
    beside.check()
    assert 0 < beside.map.forgotten <= timestamp - 11 * (8_192 - len(hot))


def test_when_the_reserve_is_used_up_the_hand_goes_on_until_it_finds_something() -> None:
    """Only one who always enters again just what was forgotten can bring that about; here the hand is put off."""
    beside = Beside(20_000)
    free = []
    for timestamp, key in enumerate(random_keys(23_000, seed=5), start=1):
        beside.map.table.state[HAND] = 10_000
        beside.enter(key, timestamp)
        free.append(recency_kernels.free_entries(beside.map.table))
    assert min(free) == 0
    beside.check()


def test_the_hand_finds_entries_that_were_entered_once_at_each_step() -> None:
    recency = RecencyMap(10_000)
    steps = 0
    for timestamp, key in enumerate(random_keys(60_000, seed=18)):
        hand = int(recency.table.state[HAND])
        recency.enter(key, 1 + timestamp // 3)
        steps += (int(recency.table.state[HAND]) - hand) % len(recency.table.entries)
    assert 49_000 < steps < 51_000


def test_ordinary_keys_are_forgotten_by_their_timestamps_whatever_the_seed() -> None:
    """So a run can be repeated although the seed is secret."""
    maps = [RecencyMap(1_000, seed) for seed in (0, 1, 2**64 - 1)]
    for timestamp, key in enumerate(random_keys(5_000, seed=6), start=1):
        for recency in maps:
            recency.enter(key % 3_000, timestamp)
        assert len({(recency.forgotten, len(recency)) for recency in maps}) == 1
    assert len({tuple(recency.table.buckets) for recency in maps}) == 3


@pytest.mark.parametrize(
    "keys",
    [
        range(100_000),
        range(0, 100_000 << 32, 1 << 32),
        range(0, 100_000 << 47, 1 << 47),
        range(2**64 - 100_000, 2**64),
        [number * 0x9E37_79B9_7F4A_7C15 % 2**64 for number in range(100_000)],
        [int(f"{number:017b}".replace("1", "7"), 8) for number in range(100_000)],
    ],
    ids=["in order", "same low bits", "only high bits", "from the end", "golden ratio", "few bits"],
)
def test_keys_with_a_pattern_spread_like_random_ones(keys: Iterable[int]) -> None:
    passed_by = []
    for entered in (list(keys), random_keys(100_000, seed=9)):
        recency = RecencyMap(100_000, seed=8)
        recency.enter_all(entered, 1)
        passed_by.append(np.mean(counts_beyond(recency) > 0))
    assert passed_by[0] < 1.3 * passed_by[1] + 0.01


def test_a_bucket_counts_what_lies_beyond_it_so_that_nothing_is_left_behind() -> None:
    recency = RecencyMap(3_000, seed=10)
    for timestamp, key in enumerate(random_keys(30_000, seed=11), start=1):
        recency.enter(key, timestamp)
    table, buckets = recency.table, state(recency, BUCKET_COUNT)
    expected = np.zeros(buckets, dtype=np.int64)
    words = table.buckets.reshape(buckets, BUCKET_WORDS)[:, :BUCKET_SLOTS]
    for bucket, slot in np.argwhere(words):
        position = int(words[bucket, slot]) % 2 ** state(recency, POSITION_BITS)
        home = (hash_of(recency, int(table.entries[position, 0])) >> 32) * buckets >> 32
        for passed in range(home, int(bucket) if bucket >= home else int(bucket) + buckets):
            expected[passed % buckets] += 1
    assert expected.sum() > 0
    assert np.array_equal(counts_beyond(recency), expected)


def test_keys_made_to_collide_cost_memory_of_the_past_but_nothing_else() -> None:
    """All of one home and one tag, by one who knows the seed: more than the buckets hold in which they may lie."""
    beside = Beside(4_000, seed=12)
    before = random_keys(3_000, seed=13)
    for timestamp, key in enumerate(before, start=1):
        beside.enter(key, timestamp)
    made = [
        key_with_hash(beside.map, 0xFFFF_FFFF_8000_0000 + number) for number in range(4 * PROBES_MAX * BUCKET_SLOTS)
    ]
    for timestamp, key in enumerate(made, start=3_001):
        beside.enter(key, timestamp)
        if timestamp % 97 == 0:
            beside.check(before, ordinary_keys=False)
    assert beside.map.forgotten > 0
    assert len(beside.map) >= PROBES_MAX * BUCKET_SLOTS // 2
    for timestamp, key in enumerate(random_keys(9_000, seed=14), start=3_001 + len(made)):
        beside.enter(key, timestamp)
    beside.check()


def test_no_entry_looks_like_an_empty_word() -> None:
    """The first entry's position is 0, and so would be the tag of these keys."""
    beside = Beside(100)
    for timestamp, key in enumerate((key_with_hash(beside.map, number << 32) for number in range(20)), start=1):
        beside.enter(key, timestamp)
        beside.check()


def test_made_keys_of_one_timestamp_are_forgotten_at_once() -> None:
    beside = Beside(4_000, seed=12)
    beside.enter_all([key_with_hash(beside.map, number) for number in range(2 * PROBES_MAX * BUCKET_SLOTS)], 5)
    beside.check(ordinary_keys=False)
    assert beside.map.forgotten == 5
    beside.enter(1, 6)
    beside.check(ordinary_keys=False)


def test_a_batch_is_the_same_as_one_by_one() -> None:
    together, apart = RecencyMap(2_000, seed=15), RecencyMap(2_000, seed=15)
    for timestamp, first in enumerate(range(0, 20_000, 2_500), start=1):
        keys = random_keys(2_500, seed=first)[: 900 + first % 700]
        together.enter_all(keys, timestamp)
        for key in keys:
            apart.enter(key, timestamp)
        assert together.look_up_all(keys).tolist() == [apart.look_up(key) for key in keys]
    together.table.state[TOUCHED] = apart.table.state[TOUCHED] = 0
    assert [array.tolist() for array in together.table] == [array.tolist() for array in apart.table]


def test_a_remembered_entry_costs_at_most_24_bytes_in_steady_eviction() -> None:
    recency = RecencyMap(1_000_000, seed=16)
    keys = np.random.default_rng(17).integers(0, 2**64, 3_500_000, dtype=np.uint64)
    batches = keys.reshape(-1, 10)
    for timestamp, batch in enumerate(batches, start=1):
        recency.enter_all(batch, timestamp)
    found = recency.look_up_all(keys)
    remembered = np.count_nonzero(found > recency.forgotten)
    assert remembered == len(recency) >= 1_000_000
    assert sum(array.nbytes for array in recency.table) / remembered <= 24
    assert recency.bytes_per_entry <= 24


def test_a_large_map_is_not_filled_in_advance() -> None:
    recency = RecencyMap(100_000_000)
    recency.enter_all(ODD_KEYS, 3)
    assert recency.look_up_all(ODD_KEYS).tolist() == [3] * len(ODD_KEYS)
    assert recency.bytes_per_entry <= 24


def test_a_bucket_is_one_cache_line() -> None:
    for entries_max in (1, 1_000, 100_000):
        assert RecencyMap(entries_max).table.buckets.ctypes.data % 64 == 0


def test_generations_are_merged_not_run_out_of() -> None:
    """Most have lost all their entries to later ones: a few keys are entered over and over, at a timestamp each."""
    beside = Beside(100)
    for timestamp in range(1, 4 * GENERATIONS_MAX):
        beside.enter(timestamp % 70, timestamp)
    for timestamp in range(4 * GENERATIONS_MAX, 5 * GENERATIONS_MAX):
        beside.enter(timestamp, timestamp)
        beside.check(range(70))


@pytest.mark.parametrize("entries_max", [0, -1, 500_000_001])
def test_a_map_of_an_impossible_size_is_refused(entries_max: int) -> None:
    with pytest.raises(ValueError, match="entries_max"):
        RecencyMap(entries_max)


@pytest.mark.parametrize(("key", "timestamp"), [(-1, 9), (2**64, 9), (1, 4), (1, 2**63)])
def test_a_bad_key_or_timestamp_is_refused_and_changes_nothing(key: int, timestamp: int) -> None:
    recency = RecencyMap(4)
    recency.enter(1, 5)
    with pytest.raises(ValueError, match=r"key|timestamp"):
        recency.enter(key, timestamp)
    assert (recency.look_up(1), len(recency)) == (5, 1)


def test_a_kernel_takes_a_timestamp_that_is_too_low_for_the_latest() -> None:
    """Its caller is trusted to keep the order; if it does not, too late a timestamp is the safe mistake."""
    recency = RecencyMap(4)
    recency.enter(1, 5)
    assert recency_kernels.enter(recency.table, np.uint64(2), np.int64(3)) == 0
    assert recency.look_up(2) == 5
