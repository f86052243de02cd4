"""The rule: committed ⇔ a commit is recorded at or above the largest fence."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from commit_table import FENCE_AT_INFINITY, Aborted, Committed, TransactionRecord, Undecided
from commit_table.timestamps import (
    TIMESTAMP_MAX,
    TIMESTAMPS_PER_MILLISECOND,
    compose,
    counter_of,
    milliseconds_of,
    wall_time_of,
)

timestamps = st.integers(1, TIMESTAMP_MAX - 1)


def test_nothing_on_record_is_undecided() -> None:
    assert TransactionRecord(None).outcome() == Undecided()


@given(timestamps)
def test_a_commit_without_fence_counts(commit_timestamp: int) -> None:
    assert TransactionRecord(commit_timestamp).outcome() == Committed(commit_timestamp)


@given(timestamps, timestamps)
def test_a_commit_counts_exactly_at_or_above_the_largest_fence(commit_timestamp: int, fence: int) -> None:
    counts = commit_timestamp >= fence
    assert (TransactionRecord(commit_timestamp, fence).outcome() == Committed(commit_timestamp)) is counts


@given(st.none() | timestamps)
def test_no_commit_passes_the_fence_at_infinity(commit_timestamp: int | None) -> None:
    assert TransactionRecord(commit_timestamp, FENCE_AT_INFINITY).outcome() == Aborted()


@given(st.none() | timestamps, st.just(0) | timestamps, timestamps)
def test_a_fence_is_needed_only_while_a_commit_below_it_could_count(
    commit_timestamp: int | None, largest: int, fence: int
) -> None:
    record = TransactionRecord(commit_timestamp, largest)
    decided = record.outcome() != Undecided()
    assert record.needs_fence(fence) is (not decided and largest < fence)


@given(st.integers(0, TIMESTAMP_MAX >> 18), st.integers(0, TIMESTAMPS_PER_MILLISECOND - 1))
def test_a_timestamp_holds_its_moment_and_its_counter(milliseconds: int, counter: int) -> None:
    timestamp = compose(milliseconds, counter)
    assert (milliseconds_of(timestamp), counter_of(timestamp)) == (milliseconds, counter)


def test_a_timestamp_says_when_it_was_taken() -> None:
    assert wall_time_of(compose(1_764_000_000_123, 7)).isoformat() == "2025-11-24T16:00:00.123000+00:00"


@pytest.mark.parametrize(("milliseconds", "counter"), [(-1, 0), (0, 2**18), (0, -1), (2**45, 0)])
def test_what_is_no_timestamp_is_refused(milliseconds: int, counter: int) -> None:
    with pytest.raises(ValueError, match=r"counter lies|do not fit"):
        compose(milliseconds, counter)


@pytest.mark.parametrize("timestamp", [-1, 2**63])
def test_an_integer_that_is_no_timestamp_has_no_moment(timestamp: int) -> None:
    with pytest.raises(ValueError, match="lies in"):
        wall_time_of(timestamp)
