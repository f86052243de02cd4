from __future__ import annotations

import pytest

from drills.outages import NS_PER_MS, Outage, Spread, Timeline, longest_gap_ms, spread
from tests.unit.drills.recorded import transaction, window


@pytest.mark.parametrize(
    ("moments_ms", "gap_ms"),
    [
        ([90, 100, 110, 400, 410], 290),  # the gap begins in the window
        ([90, 400, 410], 310),  # it began before, and ends in it
        ([90, 900], 810),  # it spans the window
        ([90, 100, 200, 300, 400, 1_500, 9_000], 1_100),  # it begins in the window and ends behind it
        ([200, 210], 290),  # nothing before and nothing after: the window's own ends count
        ([], 400),
        ([10, 99, 100, 100, 150, 500, 1_500], 350),  # gaps beside the window are not the fault's
    ],
)
def test_an_outage_is_the_longest_gap_that_the_fault_has_a_part_of(moments_ms: list[int], gap_ms: int) -> None:
    assert longest_gap_ms([moment * NS_PER_MS for moment in moments_ms], window(100, 500)) == gap_ms


def test_first_calls_are_those_sent_after_the_fault() -> None:
    timeline = Timeline(
        [
            transaction(1, (90, 95, 96, 130), commit=2),  # sent before the fault, answered after it
            transaction(3, (101, 400, 401, 480), commit=4),
            transaction(5, (150, 300, 310, 450), commit=6),  # begun later, answered earlier
            transaction(7, (460, 470), reason="Conflict"),
        ]
    )
    assert timeline.outage(window(100, 600)) == Outage(gap_ms=320, begin_ms=200, commit_ms=350)


def test_of_several_processes_the_one_that_waits_longest_counts() -> None:
    often = [transaction(time, (time, time, time, time + 1), commit=time, process="a/1") for time in range(10, 500, 10)]
    seldom = [transaction(time, (time, time, time, time + 1), commit=time, process="b/1") for time in (105, 395)]
    assert Timeline(often).outage(window(100, 400)).gap_ms == 10
    assert Timeline([*often, *seldom]).outage(window(100, 400)).gap_ms == 290


def test_a_fault_after_which_nobody_asked_has_no_first_answer() -> None:
    assert Timeline([]).outage(window(100, 300)) == Outage(gap_ms=200, begin_ms=None, commit_ms=None)


def test_only_acknowledged_commits_that_wrote_something_are_service() -> None:
    timeline = Timeline(
        [
            transaction(1, (10, 20, 30, 40), reason="Conflict"),
            transaction(2, (10, 20, 30, 50), commit=1, writes=()),
            transaction(4, (10, 20, 30), unknown=True),
            transaction(6, (10, 20, 30, 60), commit=7),
        ]
    )
    assert timeline.outage(window(0, 100)).gap_ms == 60
    assert timeline.commits_per_second(window(0, 100)) == 10


def test_percentiles_are_values_that_occurred() -> None:
    assert spread(range(1, 101)) == Spread(p50=50, p99=99, max=100)
    assert spread([7.5]) == Spread(7.5, 7.5, 7.5)
    assert spread([3, 1, 2]) == Spread(2, 3, 3)
    assert spread([]) is None
