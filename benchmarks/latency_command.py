"""``pythia bench latency``: how long a begin and a transaction take, beside a bare round trip on the same machine.

*Beside*: 32 bytes to a server that sends them back, over loopback. So a ratio of 3 says: as long as three round trips.
"""

from __future__ import annotations

import statistics
from collections.abc import Mapping, Sequence
from typing import Any

import click

from benchmarks import contest
from benchmarks.busy_side import BusySide
from benchmarks.comparison import BEGIN_P50, BEGIN_P99, WHOLE_P50, WHOLE_P99, Comparison, Fields
from benchmarks.contest import Series, Turn
from benchmarks.echo_side import EchoSide
from benchmarks.load_process import Answer, LoadProcess, window_line
from benchmarks.options import Asked, asked, hbase_option, measurement_options
from benchmarks.our_oracle import OurOracle
from benchmarks.our_side import OurSide
from benchmarks.presenting import check, prefixed, present
from benchmarks.surroundings import Surroundings, explained, once_each, surroundings

LOAD_IN_FLIGHT = 1_024
CELLS = 2
MARGIN_SECONDS = 1.0
"""The load goes on for so much longer than the small client's window, which begins when that has connected."""
ECHO = "TCP echo"
IDLE = "begin, idle"
BESIDE_LOAD = f"begin, beside {LOAD_IN_FLIGHT:,} of another process"
UNDER_LOAD = f"begin, {LOAD_IN_FLIGHT:,} in flight, a task each"
IN_BATCHES = f"begin, {LOAD_IN_FLIGHT:,} in flight, in batches"
ONE = "one at a time, commits in nothing"
ONE_HBASE = "one at a time, commits in HBase"


@click.command()
@hbase_option
@measurement_options
def latency(hbase: bool, **shared: Any) -> None:
    """Measure begins idle and under load, and transactions one at a time, beside a TCP echo."""
    wanted = asked(**shared)
    with explained():
        check(wanted)
        with surroundings(wanted.services, once_each(), with_services=hbase) as around:
            turns, busy = turns_of(wanted, around)
            series = contest.run_turns(turns, rounds=wanted.rounds, tell=prefixed("latency"))
        measured = {turn.name: one for turn, one in zip(turns, series, strict=True)}
        load = load_fields(busy.answers[-wanted.rounds :])
        title = "begin and transaction, beside a TCP echo"
        present(title, comparisons(measured, load), wanted, notes=[note_of(load)])


def turns_of(wanted: Asked, around: Surroundings) -> tuple[list[Turn], BusySide]:
    """All on one oracle, but for the one with HBase; and the side that has a load beside it."""
    guard, directory = around.guard, around.directory
    oracle = OurOracle(directory / "oracle", guard, code=around.code)
    begin, whole = OurSide("begin", oracle, guard), OurSide("asyncio", oracle, guard)

    def other() -> LoadProcess:
        log = oracle.directory / "load-beside.log"
        arguments = [oracle.address, "asyncio"]
        return LoadProcess(
            "the load beside the small client", "benchmarks.our_load", arguments, log, guard, around.code
        )

    busy = BusySide(
        OurSide("begin", oracle, guard),
        f"{LOAD_IN_FLIGHT:,} in flight",
        other,
        lambda seconds: window_line(LOAD_IN_FLIGHT, CELLS, seconds + MARGIN_SECONDS, 1),
    )
    turns = [
        Turn(ECHO, EchoSide(directory / "echo", guard), wanted.load(1, 0)),
        Turn(IDLE, begin, wanted.load(1, 0)),
        Turn(BESIDE_LOAD, busy, wanted.load(1, 0)),
        Turn(UNDER_LOAD, whole, wanted.load(LOAD_IN_FLIGHT, CELLS)),
        Turn(IN_BATCHES, OurSide("columns", oracle, guard), wanted.load(LOAD_IN_FLIGHT, CELLS)),
        Turn(ONE, whole, wanted.load(1, CELLS)),
    ]
    if around.services is None:
        return turns, busy
    recorded = OurSide("asyncio", OurOracle(directory / "hbase", guard, around.services, code=around.code), guard)
    return [*turns, Turn(ONE_HBASE, recorded, wanted.load(1, CELLS))], busy


def comparisons(measured: Mapping[str, Series], load: Fields) -> list[Comparison]:
    """Each beside the echo, p50 and p99; and HBase beside none, where it was measured. ``load``: what was beside."""
    found = []
    for name, series in measured.items():
        quantities = (WHOLE_P50, WHOLE_P99) if name in (ONE, ONE_HBASE) else (BEGIN_P50, BEGIN_P99)
        if name != ECHO:
            found += [
                Comparison(
                    f"{name}: p{percentile}", series, measured[ECHO], quantity, load if name == BESIDE_LOAD else {}
                )
                for percentile, quantity in zip((50, 99), quantities, strict=True)
            ]
    if ONE_HBASE in measured:
        found.append(Comparison(f"{ONE_HBASE}: beside none", measured[ONE_HBASE], measured[ONE], WHOLE_P50))
    return found


def load_fields(answers: Sequence[Answer]) -> Fields:
    """That the load beside the small client was one, for JSON; medians over the rounds."""
    rate = statistics.median(answer["transactions"] / answer["seconds"] for answer in answers)
    share = statistics.median(answer["cpu_seconds"] / answer["seconds"] for answer in answers)
    return {"load_beside_per_second": round(rate, 1), "load_beside_cpu_share": round(share, 3)}


def note_of(load: Fields) -> str:
    """The same for a person: it is in no line of the table."""
    rate, share = load["load_beside_per_second"], load["load_beside_cpu_share"]
    return f"{BESIDE_LOAD}: that one had {rate:,.0f} transactions a second, its CPU share was {share:.2f}"
