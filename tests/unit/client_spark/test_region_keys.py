"""Boundaries of regions from the row keys of a sample."""

from __future__ import annotations

from bisect import bisect_right
from collections import Counter

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from client import InvalidRequest
from client.spark import InvalidData, KeyColumn, TableMapping, ValueColumn, row_key, split_keys
from client.spark.region_keys import KeySample, boundaries

KEYS = [number.to_bytes(4, "big") for number in range(1_000)]


def test_the_regions_hold_equally_many_keys() -> None:
    cuts = boundaries(list(reversed(KEYS)), 8)
    held = Counter(bisect_right(cuts, key) for key in KEYS)
    assert list(held.values()) == [125] * 8


@given(st.lists(st.binary(max_size=3)), st.integers(2, 20))
def test_no_region_is_empty_and_there_are_no_more_than_asked_for(keys: list[bytes], regions: int) -> None:
    cuts = boundaries(keys, regions)
    assert cuts == sorted(set(cuts))
    assert len(cuts) < regions
    assert {bisect_right(cuts, key) for key in keys} == set(range(len(cuts) + 1 if keys else 0))


def test_a_sample_of_rows_is_parted_by_its_keys() -> None:
    columns = (KeyColumn("day", "int"), KeyColumn("name", "string"), ValueColumn("v", "int", "f", "v"))
    mapping = TableMapping("t", ("day", "name"), columns, "row")
    rows = pa.table({"Name": ["b", "a"] * 50, "other": [0.5] * 100, "DAY": pa.array([1, 1, 2, 2] * 25, pa.int32())})
    ends = [(1, "b"), (2, "a"), (2, "b")]
    assert split_keys(mapping, 4, rows) == [row_key(mapping, *end) for end in ends]
    assert split_keys(mapping, 9, rows.slice(0, 2)) == [row_key(mapping, 1, "b")]
    assert split_keys(mapping, 1, rows) == split_keys(mapping, 5, rows.slice(0, 0)) == []
    with pytest.raises(InvalidRequest, match="one region at least, not 0"):
        split_keys(mapping, 0, rows)
    with pytest.raises(InvalidData, match="day"):
        split_keys(mapping, 2, rows.drop_columns("DAY"))


def test_few_keys_make_few_regions() -> None:
    assert boundaries([b"a", b"b", b"a"], 5) == [b"b"]
    assert boundaries([], 5) == []


@given(st.integers(0, 300))
def test_a_sample_is_bounded_and_lies_evenly(count: int) -> None:
    sample = KeySample(keys_max=16)
    for key in KEYS[:count]:
        sample.add([key])
    kept = [int.from_bytes(key, "big") for key in sample.keys]
    assert len(kept) <= 16
    assert kept == list(range(0, count, kept[1] if len(kept) > 1 else 1))
    assert count < 17 or len(kept) >= 8
