"""``pythia bench growth``: how the oracle takes more of something, beside the least of it in the same run."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import click

from benchmarks import contest
from benchmarks.comparison import Comparison
from benchmarks.contest import Load, Series, Turn
from benchmarks.filled_side import FilledSide
from benchmarks.growth_axes import AXES, MAP_FILL, Axis, chosen_steps
from benchmarks.options import asked, hbase_option, measurement_options
from benchmarks.our_oracle import OurOracle
from benchmarks.our_side import OurSide
from benchmarks.presenting import check, prefixed, present
from benchmarks.surroundings import Surroundings, explained, once_each, surroundings

FRONTS = ("asyncio", "columns", "threads")


@click.command()
@click.argument("axis_name", metavar="AXIS", type=click.Choice(list(AXES)))
@click.option(
    "--step", "steps", multiple=True, type=int, help="Only these, in the axis's unit; the first is the baseline."
)
@click.option("--front", type=click.Choice(FRONTS), help="How the load calls; each axis has one that suits it.")
@click.option("--in-flight", type=click.IntRange(1, 4_096), help="Transactions at once, where they are not the axis.")
@click.option("--cells", default=2, show_default=True, type=click.IntRange(1, 1_000), help="In a write set.")
@click.option(
    "--load-processes",
    default=1,
    show_default=True,
    type=click.IntRange(1, 64),
    help="Processes of the load at 64 connections or more.",
)
@click.option(
    "--map-entries",
    default=4_000_000,
    show_default=True,
    type=click.IntRange(10_000, 100_000_000),
    help="Of the conflict map, for map-fill.",
)
@hbase_option
@measurement_options
def growth(
    axis_name: str,
    steps: tuple[int, ...],
    front: str | None,
    in_flight: int | None,
    cells: int,
    load_processes: int,
    map_entries: int,
    hbase: bool,
    **shared: Any,
) -> None:
    """Measure each step of AXIS beside the first, in turn.

    AXIS: in-flight, write-set, connections or map-fill.
    """
    axis, wanted = AXES[axis_name], asked(**shared)
    steps, front = _checked(axis, steps, front)
    load = wanted.load(in_flight or axis.in_flight, cells)
    with explained():
        check(wanted)
        with surroundings(wanted.services, once_each(), with_services=hbase) as around:
            if axis is MAP_FILL:
                turns = filled_turns(steps, load, front, around, map_entries)
            else:
                oracle = OurOracle(_place(around, 0), around.guard, around.services, code=around.code)
                side = OurSide(front, oracle, around.guard, processes=load_processes)
                turns = [Turn(f"{step:,}", side, axis.apply(load, step)) for step in steps]
            series = contest.run_turns(turns, rounds=wanted.rounds, tell=prefixed(axis.name))
        title = f"growth of {axis.unit}; front {front}, commits in {'HBase' if hbase else 'nothing'}"
        present(title, comparisons(turns, series), wanted, axis=axis.unit)


def _checked(axis: Axis, steps: Sequence[int], front: str | None) -> tuple[tuple[int, ...], str]:
    if front is not None and front not in axis.fronts:
        raise click.UsageError(f"{axis.name} is not to be seen through {front}: use {' or '.join(axis.fronts)}")
    try:
        return chosen_steps(axis, steps), front or axis.front
    except ValueError as error:
        raise click.UsageError(str(error)) from error


def _place(around: Surroundings, number: int) -> Path:
    return around.directory / f"oracle-{number}"


def filled_turns(percents: Sequence[int], load: Load, front: str, around: Surroundings, entries: int) -> list[Turn]:
    """An oracle for each, since a map cannot be emptied."""
    limits = [f"conflict_map_entries_max={entries}"]
    oracles = [
        OurOracle(_place(around, percent), around.guard, around.services, limits=limits, code=around.code)
        for percent in percents
    ]
    return [
        Turn(f"{percent} %", FilledSide(OurSide(front, oracle, around.guard), oracle, percent, entries), load)
        for percent, oracle in zip(percents, oracles, strict=True)
    ]


def comparisons(turns: Sequence[Turn], series: Sequence[Series]) -> list[Comparison]:
    """Each step but the first beside the first."""
    return [
        Comparison(turn.name, ours, series[0], extra=_load_fields(turn.load, ours))
        for turn, ours in zip(turns[1:], series[1:], strict=True)
    ]


def _load_fields(load: Load, series: Series) -> dict[str, float]:
    return {
        "in_flight": load.in_flight,
        "connections": load.connections,
        "cells": load.cells,
        "cells_per_second": round(series.per_second * load.cells),
    }
