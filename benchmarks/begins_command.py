"""``pythia bench begins``: timestamps a second when transactions are begun in batches, beside begins one by one.

Timestamps tell the time, so many of them must not run ahead of it: ``ahead_ms_max`` is by how much the newest one was
ahead of the wall clock at most when its answer was there; below 0 it was behind.
"""

from __future__ import annotations

from typing import Any

import click

from benchmarks import contest
from benchmarks.comparison import Comparison
from benchmarks.contest import Series, Turn
from benchmarks.load_loops import BATCHES
from benchmarks.options import asked, measurement_options
from benchmarks.our_oracle import OurOracle
from benchmarks.our_side import OurSide
from benchmarks.presenting import check, prefixed, present
from benchmarks.surroundings import explained, once_each, surroundings
from tso.settings import Limits

SINGLE_IN_FLIGHT = (BATCHES, 1_024)


@click.command()
@click.option(
    "--batch",
    default=Limits().begin_count_max,
    show_default=True,
    type=click.IntRange(2, Limits().begin_count_max),
    help=f"Begun by one request; {BATCHES} requests are in flight.",
)
@measurement_options
def begins(batch: int, **shared: Any) -> None:
    """Measure begins in batches from one client process beside single begins."""
    wanted = asked(**shared)
    with explained():
        check(wanted)
        with surroundings(None, once_each(), with_services=False) as around:
            oracle = OurOracle(around.directory / "oracle", around.guard, code=around.code)
            many, single = (OurSide(front, oracle, around.guard) for front in ("begins", "begin"))
            turns = [
                Turn(f"{BATCHES} × {batch:,} at once", many, wanted.load(BATCHES * batch, 0)),
                *(
                    Turn(f"one by one, {in_flight:,} in flight", single, wanted.load(in_flight, 0))
                    for in_flight in SINGLE_IN_FLIGHT
                ),
            ]
            ours, *beside = contest.run_turns(turns, rounds=wanted.rounds, tell=prefixed("begins"))
        comparisons = [Comparison(f"beside {one.side}", ours, one, extra=ahead_fields(ours, one)) for one in beside]
        notes = [f"{series.side}: {ahead_ms_max(series):+.3f} ms ahead of the wall clock at most"
                 for series in (ours, *beside)]  # fmt: skip
        present("transactions begun", comparisons, wanted, notes=notes)


def ahead_ms_max(series: Series) -> float:
    """Over the rounds."""
    return max(window.ahead_ms for window in series.windows if window.ahead_ms is not None)


def ahead_fields(ours: Series, beside: Series) -> dict[str, float]:
    """For JSON."""
    return {"ahead_ms_max": round(ahead_ms_max(ours), 3), "beside_ahead_ms_max": round(ahead_ms_max(beside), 3)}
