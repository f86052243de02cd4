"""Partitions are the whole table, without gap or overlap, whatever its keys."""

from __future__ import annotations

from itertools import pairwise

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from client.spark.splitting import dealt, overlaps, pieces_for_each_region, split
from store import KeyRange

KEYS = st.lists(st.binary(min_size=1, max_size=20), min_size=4, max_size=4).map(sorted)


@settings(deadline=None)
@given(KEYS, st.integers(1, 20), st.booleans())
def test_pieces_follow_one_another_without_a_gap(keys: list[bytes], pieces: int, open_end: bool) -> None:
    start, first, last, stop = keys
    if stop == last:
        stop = last + b"\x00"
    whole = KeyRange(start, b"" if open_end else stop)
    parts = split(whole, first, last, pieces)
    assert (parts[0].start, parts[-1].stop) == whole
    assert all(before.stop == after.start for before, after in pairwise(parts))
    assert all(part.start < part.stop for part in parts[:-1])
    assert 1 <= len(parts) <= pieces


def test_keys_that_lie_evenly_are_cut_evenly() -> None:
    keys = [number.to_bytes(4, "big") for number in range(1000)]
    parts = split(KeyRange(b"", b""), keys[0], keys[-1], 4)
    sizes = [sum(part.start <= key and (not part.stop or key < part.stop) for key in keys) for part in parts]
    assert sizes == [250, 250, 250, 250]


def test_a_range_of_one_row_stays_whole() -> None:
    assert split(KeyRange(b"", b"z"), b"m", b"m", 8) == [KeyRange(b"", b"z")]


@pytest.mark.parametrize(("regions", "wanted", "pieces"), [(1, 4, 4), (3, 4, 2), (4, 4, 1), (9, 4, 1)])
def test_pieces_make_up_for_few_regions(regions: int, wanted: int, pieces: int) -> None:
    assert pieces_for_each_region(regions, wanted) == pieces


def test_of_a_region_only_what_is_wanted_is_read() -> None:
    wanted = [KeyRange(b"a", b"c"), KeyRange(b"d", b"h"), KeyRange(b"m", b"m\x00"), KeyRange(b"x", b"")]
    assert overlaps(KeyRange(b"", b""), wanted) == wanted
    assert overlaps(KeyRange(b"", b"d"), wanted) == [KeyRange(b"a", b"c")]
    assert overlaps(KeyRange(b"b", b"e"), wanted) == [KeyRange(b"b", b"c"), KeyRange(b"d", b"e")]
    assert overlaps(KeyRange(b"e", b""), wanted) == [KeyRange(b"e", b"h"), *wanted[2:]]
    assert overlaps(KeyRange(b"h", b"m"), wanted) == []
    assert overlaps(KeyRange(b"y", b"z"), [KeyRange(b"", b"")]) == [KeyRange(b"y", b"z")]


@given(st.integers(1, 50), st.integers(1, 20))
def test_ranges_are_dealt_in_order_and_evenly(ranges: int, tasks: int) -> None:
    wanted = [KeyRange(bytes([number]), bytes([number, 0])) for number in range(ranges)]
    shares = dealt(wanted, tasks)
    assert [key_range for share in shares for key_range in share] == wanted
    assert len(shares) == min(ranges, tasks)
    assert max(map(len, shares)) - min(map(len, shares)) <= 1
