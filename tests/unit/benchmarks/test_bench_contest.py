from __future__ import annotations

from dataclasses import replace

import pytest

from benchmarks.contest import (
    WARM_UP_WINDOWS_MAX,
    Load,
    Turn,
    better,
    ratios,
    run,
    run_turns,
    schedule,
    still_rising,
)
from benchmarks.sides import SideError
from tests.unit.benchmarks.scripted import Call, Scripted, series

LOAD = Load(in_flight=64, cells=2, connections=4, seconds=5.0, warm_up_seconds=20.0)


def tell_nobody(line: str) -> None:
    del line


def test_every_round_holds_each_side_once_and_in_the_same_order() -> None:
    assert list(schedule(2, 3)) == [(0, 0), (0, 1), (0, 2), (1, 0), (1, 1), (1, 2)]


def test_all_start_then_all_warm_up_then_they_take_turns_and_all_stop() -> None:
    calls: list[Call] = []
    sides = [Scripted("ours", calls, 900, 225, 10, 20), Scripted("peer", calls, 900, 225, 1, 4)]
    measured = run(sides, LOAD, rounds=2, tell=tell_nobody)
    asked = "window 64 2 4"
    warm_up = [("ours", asked, 20.0), ("ours", asked, 5.0), ("peer", asked, 20.0), ("peer", asked, 5.0)]
    turns = [("ours", asked, 5.0), ("peer", asked, 5.0)]
    starts = [("ours", "start", 0.0), ("peer", "start", 0.0)]
    assert calls == [*starts, *warm_up, *turns, *turns, ("peer", "stop", 0.0), ("ours", "stop", 0.0)]
    assert [(one.side, [window.transactions for window in one.windows]) for one in measured] == [
        ("ours", [10, 20]),
        ("peer", [1, 4]),
    ]


def test_a_side_with_several_turns_starts_once_and_each_turn_has_its_load() -> None:
    calls: list[Call] = []
    side = Scripted("ours", calls, 100, 25, 200, 50, 1, 2)
    turns = [Turn("few", side, replace(LOAD, in_flight=1)), Turn("many", side, LOAD)]
    measured = run_turns(turns, rounds=1, tell=tell_nobody)
    assert [what for _, what, _ in calls] == [
        "start",
        *["window 1 2 4", "window 1 2 4", "window 64 2 4", "window 64 2 4"],
        *["window 1 2 4", "window 64 2 4"],
        "stop",
    ]
    assert [(one.side, one.windows[0].transactions) for one in measured] == [("few", 1), ("many", 2)]


def test_warming_up_goes_on_while_it_helps() -> None:
    calls: list[Call] = []
    run([Scripted("peer", calls, 400, 150, 200, 210, 7)], LOAD, rounds=1, tell=tell_nobody)
    assert [seconds for _, what, seconds in calls if "window" in what] == [20.0, 5.0, 5.0, 5.0, 5.0]


def test_warming_up_has_a_limit() -> None:
    calls: list[Call] = []
    run([Scripted("peer", calls, *[10**power for power in range(20)])], LOAD, rounds=1, tell=tell_nobody)
    assert sum("window" in what for _, what, _ in calls) == 1 + WARM_UP_WINDOWS_MAX + 1


def test_rising_means_clearly_faster_than_ever_before() -> None:
    assert still_rising([100])
    assert still_rising([100, 50, 111])
    assert not still_rising([100, 50, 90])
    assert not still_rising([100, 110])


@pytest.mark.parametrize("error", [SideError, KeyboardInterrupt, SystemExit])
def test_a_side_that_does_not_start_is_stopped_with_those_before_it(error: type[BaseException]) -> None:
    calls: list[Call] = []
    sides = [Scripted("first", calls), Scripted("second", calls, fails=error), Scripted("third", calls)]
    with pytest.raises(error):
        run(sides, LOAD, rounds=1, tell=tell_nobody)
    assert [(name, what) for name, what, _ in calls] == [
        ("first", "start"),
        ("second", "start"),
        ("second", "stop"),
        ("first", "stop"),
    ]


def test_a_window_without_any_transaction_is_no_measurement() -> None:
    calls: list[Call] = []
    with pytest.raises(SideError, match=r"peer committed nothing within 5 s \(1 aborts\)"):
        run([Scripted("peer", calls, 0, 0, 0)], LOAD, rounds=1, tell=tell_nobody)
    assert calls[-1] == ("peer", "stop", 0.0)


def test_ratios_are_formed_within_rounds() -> None:
    assert ratios(series("ours", 10, 90, 20), series("peer", 5, 10, 20)) == [2.0, 9.0, 1.0]


def test_the_better_one_has_the_higher_median_not_the_higher_peak() -> None:
    assert better([series("peak", 1, 1, 100), series("steady", 5, 5, 5)]) == 1
    assert series("peak", 1, 1, 100).per_second == 1
