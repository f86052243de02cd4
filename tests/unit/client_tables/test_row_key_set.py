"""The set of row keys by their hashes: beside Python's, through all its sizes."""

from __future__ import annotations

import numpy as np
import pytest

from client.tables.row_key_set import SLOTS_FIRST, RowKeySet

DRAW = np.random.default_rng(20)


@pytest.mark.parametrize("values", [2**64 - 1, 30_000], ids=["hardly any twice", "most of them twice"])
def test_what_was_there_before_is_told_and_nothing_else(values: int) -> None:
    keys, seen = RowKeySet(), set[int]()
    for size in [1, 0, 3, 1_000, *[2_500] * 20]:
        hashes = DRAW.integers(1, values, size, np.uint64, endpoint=True)
        expected = []
        for index, number in enumerate(hashes.tolist()):
            if number in seen:
                expected.append(index)
            seen.add(number)
        assert keys.add(hashes).tolist() == expected
        assert len(keys) == len(seen)
    assert len(seen) > SLOTS_FIRST, "it never had to grow"


def test_numbers_that_look_for_the_same_slot_are_told_apart() -> None:
    keys = RowKeySet()
    alike = np.arange(1, 3_000, dtype=np.uint64) << np.uint64(40)
    assert keys.add(alike).size == 0
    assert keys.add(alike[::-1].copy()).size == alike.size


def test_a_search_goes_on_at_the_first_slot() -> None:
    keys = RowKeySet()
    last = np.array([(number << 32) + SLOTS_FIRST - 1 for number in range(5)], np.uint64)
    assert keys.add(last).size == 0
    assert keys.add(last).tolist() == [0, 1, 2, 3, 4]


def test_zero_is_a_hash_like_any_other() -> None:
    keys = RowKeySet()
    zero = np.zeros(1, np.uint64)
    assert keys.add(zero).tolist() == []
    assert keys.add(zero).tolist() == [0]
