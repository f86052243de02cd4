"""One oracle beside another, that differs from it in one thing, under the same loads."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final, NamedTuple

from benchmarks import contest
from benchmarks.comparison import Comparison
from benchmarks.contest import Turn
from benchmarks.options import Asked
from benchmarks.our_oracle import OurOracle
from benchmarks.our_side import OurSide
from benchmarks.presenting import prefixed
from devcluster.guard import Guard

CELLS: Final = 2


class OneLoad(NamedTuple):
    """What both are put under; ``front``: see ``benchmarks.our_load``."""

    name: str
    front: str
    in_flight: int
    connections: int


def compared(
    command: str, loads: Sequence[OneLoad], oracles: Mapping[str, OurOracle], guard: Guard, wanted: Asked
) -> list[Comparison]:
    """For each load the first of the two ``oracles`` beside the second. Raises ``SideError``."""
    turns = [
        Turn(
            f"{load.name}, {name}",
            OurSide(load.front, oracle, guard),
            wanted.load(load.in_flight, CELLS, connections=load.connections),
        )
        for load in loads
        for name, oracle in oracles.items()
    ]
    series = contest.run_turns(turns, rounds=wanted.rounds, tell=prefixed(command))
    return [Comparison(ours.side, ours, beside) for ours, beside in zip(series[::2], series[1::2], strict=True)]
