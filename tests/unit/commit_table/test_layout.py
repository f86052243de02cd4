"""Where records lie: no two transactions in one place, and every record found again."""

from __future__ import annotations

from bisect import bisect_right
from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from commit_table import TransactionRecord, layout
from commit_table.timestamps import COUNTER_BITS, TIMESTAMP_MAX, compose
from store import Cell

start_timestamps = st.integers(1, TIMESTAMP_MAX - 1)


@given(start_timestamps, start_timestamps)
def test_two_transactions_never_share_a_cell(first: int, second: int) -> None:
    places = [(layout.row_key(start), layout.commit_column(start)) for start in (first, second)]
    assert (places[0] == places[1]) is (first == second)


@given(start_timestamps, start_timestamps, st.lists(start_timestamps, max_size=5))
def test_a_record_is_read_back_and_neighbours_are_not_mistaken_for_it(
    start: int, commit_timestamp: int, fences: list[int]
) -> None:
    neighbour = start ^ 1
    row = {
        layout.commit_column(start): Cell(layout.commit_value(commit_timestamp), 1),
        layout.fence_column(neighbour, TIMESTAMP_MAX): Cell(layout.FENCE_VALUE, 1),
    } | {layout.fence_column(start, fence): Cell(layout.FENCE_VALUE, 1) for fence in fences}
    assert layout.parse_record(start, row) == TransactionRecord(commit_timestamp, max(fences, default=0))
    assert layout.parse_record(neighbour, row) == TransactionRecord(None, TIMESTAMP_MAX)


def test_one_millisecond_is_one_row_and_neighbouring_ones_are_spread() -> None:
    now = 1_764_000_000_000
    assert len({layout.row_key(compose(now, counter)) for counter in (0, 1, 2**18 - 1)}) == 1
    salts = Counter(layout.row_key(compose(now + offset))[0] for offset in range(2_560))
    assert len(salts) == 256
    assert max(salts.values()) <= 20


@given(start_timestamps, start_timestamps)
def test_the_rows_before_a_millisecond_are_those_of_all_before_it(start: int, bound: int) -> None:
    block, row = bound >> COUNTER_BITS, layout.row_key(start)
    found = [first <= row < last for first, last in layout.rows_before(block)]
    assert sum(found) == (start >> COUNTER_BITS < block)
    assert not any(first <= layout.OWN_ROW < last for first, last in layout.rows_before(block))


@given(st.integers(1, 256))
def test_regions_share_the_salts_evenly(regions: int) -> None:
    keys = layout.split_keys(regions)
    salts = Counter(bisect_right(keys, bytes((salt,))) for salt in range(256))
    assert set(salts) == set(range(regions))
    assert max(salts.values()) - min(salts.values()) <= 1


@pytest.mark.parametrize("regions", [0, -1, 257])
def test_regions_are_no_more_than_salts(regions: int) -> None:
    with pytest.raises(ValueError, match=f"has 1 to 256 regions.*not {regions}"):
        layout.split_keys(regions)


@pytest.mark.parametrize("start", [0, -1, TIMESTAMP_MAX, 2**64])
def test_what_is_no_start_timestamp_is_refused(start: int) -> None:
    with pytest.raises(ValueError, match="start timestamp lies between"):
        layout.row_key(start)
