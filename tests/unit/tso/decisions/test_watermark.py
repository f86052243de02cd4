"""The durable watermark: never over a commit that may be lost, never under one that was acknowledged."""

from __future__ import annotations

from random import Random

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tso.decisions.watermark import DurableWatermark

PATIENT = settings(deadline=None, suppress_health_check=(HealthCheck.too_slow,))
"""No test here is about time: a busy machine must not fail one."""


def test_with_nothing_under_way_the_watermark_is_the_last_timestamp() -> None:
    assert DurableWatermark().snapshot(77) == 77


def test_the_watermark_stays_below_the_oldest_commit_that_is_not_durable() -> None:
    watermark = DurableWatermark()
    first, second = watermark.decided(10), watermark.decided(20)
    assert watermark.snapshot(25) == 9
    watermark.persisted(second)
    assert watermark.release() == []
    assert watermark.snapshot(25) == 9
    watermark.persisted(first)
    assert watermark.release() == [first, second]
    assert watermark.snapshot(25) == 25


def test_a_decision_without_commits_waits_only_for_those_before_it() -> None:
    watermark = DurableWatermark()
    assert watermark.release() == []
    alone = watermark.decided(None)
    assert watermark.release() == [alone]
    first, barrier = watermark.decided(10), watermark.decided(None)
    assert watermark.release() == []
    watermark.persisted(first)
    assert watermark.release() == [first, barrier]
    assert len(watermark) == 0


@PATIENT
@given(st.lists(st.booleans(), min_size=1, max_size=12), st.randoms(use_true_random=False))
def test_in_whatever_order_writes_end_decisions_are_released_in_theirs(commits: list[bool], order: Random) -> None:
    watermark, released = DurableWatermark(), list[int]()
    numbers = [watermark.decided(10 * (index + 1) if commit else None) for index, commit in enumerate(commits)]
    undurable = [number for number, commit in zip(numbers, commits, strict=True) if commit]
    ends = undurable.copy()
    order.shuffle(ends)
    released += watermark.release()
    for number in ends:
        watermark.persisted(number)
        undurable.remove(number)
        released += watermark.release()
        expected = 10 * (min(undurable) + 1) - 1 if undurable else 1000
        assert watermark.snapshot(1000) == expected
    assert released == numbers
