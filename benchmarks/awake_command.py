"""``pythia bench awake``: what an oracle that does not sleep at once brings, and costs (``tso.serving.wakefulness``).

*Ours*: an oracle as it is by default. *Beside*: the same program with ``awake_us_max=0``. The CPU time of both is in
the table: whoever waits awake is busy.
"""

from __future__ import annotations

from typing import Any, Final

import click

from benchmarks.options import asked, hbase_option, measurement_options
from benchmarks.our_oracle import OurOracle
from benchmarks.presenting import check, present
from benchmarks.surroundings import explained, once_each, surroundings
from benchmarks.two_oracles import OneLoad, compared

LOADS: Final = (
    OneLoad("one at a time", "asyncio", 1, 1),
    OneLoad("16 threads", "threads", 16, 1),
    OneLoad("64 in flight", "asyncio", 64, 1),
    OneLoad("64 connections", "asyncio", 64, 64),
)


@click.command()
@hbase_option
@measurement_options
def awake(hbase: bool, **shared: Any) -> None:
    """Measure an oracle that stays awake for a moment beside one that sleeps at once."""
    wanted = asked(**shared)
    with explained():
        check(wanted)
        with surroundings(wanted.services, once_each(), with_services=hbase) as around:
            directory, guard, services, code = around.directory, around.guard, around.services, around.code
            sleepy = ("awake_us_max=0",)
            oracles = {
                "awake for a moment": OurOracle(directory / "awake", guard, services, code=code),
                "asleep at once": OurOracle(directory / "asleep", guard, services, limits=sleepy, code=code),
            }
            comparisons = compared("awake", LOADS, oracles, guard, wanted)
        present("begin and commit, awake for a moment, beside asleep at once", comparisons, wanted)
