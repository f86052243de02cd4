"""``pythia bench compiled``: what it brings to compile what every transaction passes through (setup.py).

*Ours*: oracle and clients compiled. *Beside*: the same sources as Python runs them.
"""

from __future__ import annotations

from typing import Any, Final

import click

from benchmarks.compiled_code import AS_INSTALLED
from benchmarks.options import asked, hbase_option, measurement_options
from benchmarks.our_oracle import OurOracle
from benchmarks.presenting import check, present
from benchmarks.sides import SideError
from benchmarks.surroundings import explained, once_each, surroundings
from benchmarks.two_oracles import OneLoad, compared

LOADS: Final = (
    OneLoad("1,024 in flight, columns", "columns", 1_024, 1),
    OneLoad("1,024 in flight, asyncio", "asyncio", 1_024, 1),
    OneLoad("64 in flight", "asyncio", 64, 1),
    OneLoad("64 connections", "asyncio", 64, 64),
    OneLoad("16 threads", "threads", 16, 1),
    OneLoad("one at a time", "asyncio", 1, 1),
)


@click.command()
@hbase_option
@measurement_options
def compiled(hbase: bool, **shared: Any) -> None:
    """Measure oracle and clients compiled, beside the same as Python runs them."""
    wanted = asked(**shared)
    with explained():
        check(wanted)
        with surroundings(wanted.services, once_each(), with_services=hbase) as around:
            if around.code == AS_INSTALLED:
                raise SideError("nothing can be compiled here: what is missing was said")
            directory, guard, services = around.directory, around.guard, around.services
            oracles = {
                "compiled": OurOracle(directory / "compiled", guard, services, code=around.code),
                "as Python runs it": OurOracle(directory / "interpreted", guard, services),
            }
            comparisons = compared("compiled", LOADS, oracles, guard, wanted)
        present("begin and commit, compiled, beside the same as Python runs it", comparisons, wanted)
