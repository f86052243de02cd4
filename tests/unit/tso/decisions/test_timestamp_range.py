"""Timestamps: unique, growing, below the ceiling, pushed up by the clock and by nothing else."""

from __future__ import annotations

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from commit_table.timestamps import COUNTER_BITS, compose
from tso.decisions.timestamp_range import Exhausted, TimestampRange, TimestampRate

PATIENT = settings(deadline=None, suppress_health_check=(HealthCheck.too_slow,))
"""No test here is about time: a busy machine must not fail one."""

EPOCH = compose(1000)


def test_the_first_timestamp_is_the_one_after_the_epoch() -> None:
    assert TimestampRange(EPOCH, compose(2000)).next(1, now_ms=0) == EPOCH + 1


def test_the_clock_pushes_timestamps_up() -> None:
    timestamps = TimestampRange(EPOCH, compose(2000))
    assert timestamps.next(1, now_ms=1500) == compose(1500)
    assert timestamps.next(3, now_ms=1500) == compose(1500, 1)
    assert timestamps.last == compose(1500, 3)


def test_a_clock_that_is_stepped_back_costs_nothing() -> None:
    timestamps = TimestampRange(EPOCH, compose(2000))
    timestamps.next(1, now_ms=1500)
    assert timestamps.next(1, now_ms=200) == compose(1500, 1)


@pytest.mark.parametrize("now_ms", [2000, 2001, 10**9])
def test_a_clock_beyond_the_ceiling_is_not_followed(now_ms: int) -> None:
    timestamps = TimestampRange(EPOCH, compose(2000))
    assert timestamps.next(1, now_ms) == EPOCH + 1
    assert timestamps.next(1, now_ms) == EPOCH + 2


def test_a_clock_just_below_the_ceiling_does_not_waste_the_range() -> None:
    timestamps = TimestampRange(EPOCH, compose(2000, 1))
    assert timestamps.next(2, now_ms=2000) == EPOCH + 1


def test_the_ceiling_itself_is_never_handed_out() -> None:
    timestamps = TimestampRange(10, 13)
    assert timestamps.next(3, 0) == Exhausted(left=2)
    assert timestamps.next(2, 0) == 11
    assert timestamps.next(1, 0) == Exhausted(left=0)
    timestamps.raise_ceiling(14)
    assert timestamps.next(1, 0) == 13


def test_a_lower_ceiling_is_stale_news() -> None:
    timestamps = TimestampRange(10, 20)
    timestamps.raise_ceiling(15)
    assert timestamps.ceiling == 20


@PATIENT
@given(st.lists(st.tuples(st.integers(1, 1000), st.integers(0, 60), st.integers(0, 2**13)), min_size=1, max_size=40))
def test_no_timestamp_comes_twice_and_order_never_breaks(requests: list[tuple[int, int, int]]) -> None:
    timestamps, last = TimestampRange(5 << COUNTER_BITS, 6 << COUNTER_BITS), 5 << COUNTER_BITS
    for count, now_ms, higher in requests:
        timestamps.raise_ceiling(timestamps.ceiling + higher)
        first = timestamps.next(count, now_ms)
        if isinstance(first, Exhausted):
            assert first.left < count
            continue
        assert last < first
        last = first + count - 1
        assert last < timestamps.ceiling


def test_begins_may_burst_and_then_go_at_their_rate() -> None:
    rate = TimestampRate(per_ms_max=100, burst_ms=10)
    assert rate.take(1000, monotonic_ms=5.0) == 0
    assert rate.take(200, monotonic_ms=5.0) == 2.0
    assert rate.take(200, monotonic_ms=6.0) == 1.0
    assert rate.take(200, monotonic_ms=7.0) == 0
    assert rate.take(1000, monotonic_ms=10_000.0) == 0
    assert rate.take(1, monotonic_ms=10_000.0) > 0


@pytest.mark.parametrize("per_ms_max", [0, 2**18 + 1])
def test_a_rate_that_no_clock_can_hold_is_refused(per_ms_max: int) -> None:
    with pytest.raises(ValueError, match="a millisecond holds"):
        TimestampRate(per_ms_max, burst_ms=1)


@PATIENT
@given(st.lists(st.tuples(st.integers(1, 5000), st.floats(0, 50)), min_size=1, max_size=60))
def test_however_batches_come_the_rate_holds_over_time(requests: list[tuple[int, float]]) -> None:
    rate, now_ms, granted = TimestampRate(per_ms_max=100, burst_ms=50), 0.0, 0
    for count, pause_ms in requests:
        now_ms += pause_ms
        if rate.take(count, now_ms) == 0:
            granted += count
    assert granted <= 100 * (50 + now_ms) + 1e-6
