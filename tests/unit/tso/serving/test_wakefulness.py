"""Staying awake: for as long as it is worth it, and never in the way of others."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from tso.serving.wakefulness import OWED_MAX, Wakefulness

US = 1e-6
LOOK_US = 3
"""How long a turn of the made-up event loop takes."""


class Turns:
    """An event loop, its clock, and a core that somebody else may want."""

    def __init__(self) -> None:
        self.now_s = 1_000.0
        self.waiting: list[Callable[[], None]] = []
        self.others_us = 0

    def call_soon(self, callback: Callable[[], None]) -> None:
        self.waiting.append(callback)

    def clock_s(self) -> float:
        return self.now_s

    def give_way(self) -> None:
        self.now_s += self.others_us * US

    def until_asleep(self) -> int:
        """How many µs pass until nothing is waiting to be called."""
        began_s = self.now_s
        while self.waiting:
            waiting, self.waiting = self.waiting, []
            self.now_s += LOOK_US * US
            for callback in waiting:
                callback()
        return round((self.now_s - began_s) / US)


@pytest.fixture
def turns() -> Turns:
    return Turns()


def awake(turns: Turns, awake_us_max: int) -> Wakefulness:
    return Wakefulness(turns, awake_us_max, clock_s=turns.clock_s, give_way=turns.give_way)


@pytest.mark.parametrize("awake_us", [30, 300])
def test_after_work_it_stays_awake_for_a_moment_and_sleeps_then(turns: Turns, awake_us: int) -> None:
    awake(turns, awake_us).stay(1)
    assert awake_us <= turns.until_asleep() <= awake_us + LOOK_US


def test_more_work_begins_the_moment_anew_and_looks_no_more_often(turns: Turns) -> None:
    wakefulness = awake(turns, 300)
    wakefulness.stay(1)
    turns.now_s += 200 * US
    wakefulness.stay(1)
    assert len(turns.waiting) == 1
    assert 300 <= turns.until_asleep() <= 300 + LOOK_US
    wakefulness.stay(1)
    assert turns.until_asleep() >= 300


def test_it_sleeps_once_somebody_else_had_the_core(turns: Turns) -> None:
    turns.others_us = 200
    wakefulness = awake(turns, 1_000_000)
    wakefulness.stay(1)
    assert turns.until_asleep() == LOOK_US + 200
    turns.others_us = 0
    wakefulness.stay(1)
    assert turns.until_asleep() >= 1_000_000


def test_whoever_owes_much_is_woken_anyway(turns: Turns) -> None:
    wakefulness = awake(turns, 300)
    wakefulness.stay(OWED_MAX + 1)
    assert not turns.waiting
    wakefulness.stay(OWED_MAX)
    wakefulness.stay(OWED_MAX + 1)
    assert turns.until_asleep() == LOOK_US


def test_it_can_be_told_to_sleep_at_once(turns: Turns) -> None:
    awake(turns, 0).stay(1)
    assert not turns.waiting
