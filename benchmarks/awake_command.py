"""``pythia bench awake``: what it brings, and costs, that an oracle does not sleep at once (``tso.wakefulness``).

*Ours*: an oracle as it is by default. *Beside*: the same program with ``awake_us_max=0``. The CPU time of both is in
the table: whoever waits awake is busy.
"""

from __future__ import annotations

from typing import Any, Final

import click

from benchmarks import contest
from benchmarks.comparison import Comparison
from benchmarks.contest import Turn
from benchmarks.options import asked, hbase_option, measurement_options
from benchmarks.our_oracle import OurOracle
from benchmarks.our_side import OurSide
from benchmarks.presenting import check, prefixed, present
from benchmarks.surroundings import explained, once_each, surroundings

CELLS: Final = 2
LOADS: Final = (
    ("one at a time", "asyncio", 1, 1),
    ("16 threads", "threads", 16, 1),
    ("64 in flight", "asyncio", 64, 1),
    ("64 connections", "asyncio", 64, 64),
)
"""Name, front, transactions in flight, connections."""
AWAKE, ASLEEP = "awake for a moment", "asleep at once"


@click.command()
@hbase_option
@measurement_options
def awake(hbase: bool, **shared: Any) -> None:
    """Measure an oracle that stays awake for a moment beside one that sleeps at once."""
    wanted = asked(**shared)
    with explained():
        check(wanted)
        with surroundings(wanted.services, once_each(), with_services=hbase) as around:
            oracles = {
                AWAKE: OurOracle(around.directory / "awake", around.guard, around.services),
                ASLEEP: OurOracle(
                    around.directory / "asleep", around.guard, around.services, limits=("awake_us_max=0",)
                ),
            }
            turns = [
                Turn(
                    f"{load}, {name}",
                    OurSide(front, oracle, around.guard),
                    wanted.load(in_flight, CELLS, connections=connections),
                )
                for load, front, in_flight, connections in LOADS
                for name, oracle in oracles.items()
            ]
            series = contest.run_turns(turns, rounds=wanted.rounds, tell=prefixed("awake"))
        comparisons = [
            Comparison(ours.side, ours, beside) for ours, beside in zip(series[::2], series[1::2], strict=True)
        ]
        present("begin and commit, awake for a moment, beside asleep at once", comparisons, wanted)
