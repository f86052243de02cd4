"""What grows: an axis, its steps, and the load of each. Pure.

Invariant: steps differ in nothing but what their axis is named after, as far as whole connections allow.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from benchmarks.contest import Load


@dataclass(frozen=True, slots=True)
class Axis:
    """``front``: the one it is measured through unless another is asked for; ``fronts``: those that can show it.

    ``in_flight``: what is in flight unless asked otherwise.
    """

    name: str
    unit: str
    steps: tuple[int, ...]
    apply: Callable[[Load, int], Load]
    front: str = "asyncio"
    fronts: tuple[str, ...] = ("asyncio", "columns", "threads")
    in_flight: int = 64


def _with_in_flight(load: Load, in_flight: int) -> Load:
    return replace(load, in_flight=in_flight)


def _with_cells(load: Load, cells: int) -> Load:
    return replace(load, cells=cells)


def _with_connections(load: Load, connections: int) -> Load:
    each = -(-load.in_flight // connections)
    return replace(load, connections=connections, in_flight=each * connections)


def _as_it_is(load: Load, percent: int) -> Load:
    del percent  # it is the map that differs
    return load


IN_FLIGHT = Axis("in-flight", "transactions in flight", (1, 4, 16, 64, 256, 1_024, 4_096), _with_in_flight)
WRITE_SET = Axis("write-set", "cells in a write set", (1, 10, 100, 1_000), _with_cells, front="columns")
CONNECTIONS = Axis(
    "connections",
    "connections, all in flight together the same",
    (1, 8, 64, 500),
    _with_connections,
    fronts=("asyncio", "threads"),
    in_flight=512,
)
MAP_FILL = Axis("map-fill", "% of the conflict map in use", (0, 25, 50, 75, 100), _as_it_is)
AXES = {axis.name: axis for axis in (IN_FLIGHT, WRITE_SET, CONNECTIONS, MAP_FILL)}


def chosen_steps(axis: Axis, asked: Sequence[int]) -> tuple[int, ...]:
    """Those asked for in their order, or all; the first is the baseline.

    Raises ``ValueError`` where there is nothing to compare, or a step that cannot be.
    """
    steps = tuple(dict.fromkeys(asked)) or axis.steps
    largest = 100 if axis is MAP_FILL else axis.steps[-1]
    least = 0 if axis is MAP_FILL else 1
    if len(steps) < 2:
        raise ValueError("growth is seen from one step to another: give at least two")
    if not all(least <= step <= largest for step in steps):
        raise ValueError(f"a step of {axis.name} is from {least:,} to {largest:,}")
    return steps
