from __future__ import annotations

from dataclasses import replace

import pytest

from benchmarks.contest import Load
from benchmarks.growth_axes import AXES, CONNECTIONS, IN_FLIGHT, MAP_FILL, WRITE_SET, chosen_steps

LOAD = Load(in_flight=512, cells=2, connections=1, seconds=5.0, warm_up_seconds=3.0)


def test_each_axis_changes_what_it_is_named_after_and_nothing_else() -> None:
    assert IN_FLIGHT.apply(LOAD, 4) == replace(LOAD, in_flight=4)
    assert WRITE_SET.apply(LOAD, 100) == replace(LOAD, cells=100)
    assert CONNECTIONS.apply(LOAD, 8) == replace(LOAD, connections=8)
    assert MAP_FILL.apply(LOAD, 50) == LOAD


def test_every_connection_has_the_same_in_flight_rounded_up() -> None:
    assert CONNECTIONS.apply(LOAD, 500) == replace(LOAD, connections=500, in_flight=1_000)


def test_steps_keep_their_order_and_the_first_is_the_baseline() -> None:
    assert chosen_steps(IN_FLIGHT, (64, 1, 64)) == (64, 1)
    assert chosen_steps(MAP_FILL, ()) == (0, 25, 50, 75, 100)


@pytest.mark.parametrize(("axis", "steps"), [("in-flight", (1,)), ("in-flight", (0, 1)), ("map-fill", (0, 101))])
def test_steps_that_show_nothing_are_refused(axis: str, steps: tuple[int, ...]) -> None:
    with pytest.raises(ValueError, match=r"at least two|is from"):
        chosen_steps(AXES[axis], steps)


def test_every_axis_is_measured_through_a_front_that_can_show_it() -> None:
    assert all(axis.front in axis.fronts and len(axis.steps) > 1 for axis in AXES.values())
