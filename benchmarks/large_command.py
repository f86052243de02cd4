"""``pythia bench large``: small transactions while one commits millions of cells, beside the same without it.

The windows of the warm-up are not measured, but the oracle's memory is: its peak before the first large commit, and in
the end.
"""

from __future__ import annotations

import statistics
from collections.abc import Sequence
from typing import Any

import click

from benchmarks import contest
from benchmarks.comparison import RATE, WHOLE_P50, WHOLE_P99, Comparison, Fields
from benchmarks.contest import Turn
from benchmarks.large_side import LargeCommit, LargeSide, SmallSide
from benchmarks.options import asked, measurement_options
from benchmarks.our_oracle import OurOracle
from benchmarks.our_side import OurSide
from benchmarks.presenting import check, prefixed, present
from benchmarks.surroundings import explained, once_each, surroundings
from tso.settings import Limits

CELLS = 2
ALONE, BESIDE = "small ones alone", "small ones, large one under way"


@click.command()
@click.option("--cells", default=10_000_000, show_default=True, type=click.IntRange(1, 1_000_000_000),
              help="Cells of the large write set.")  # fmt: skip
@click.option("--in-flight", default=16, show_default=True, type=click.IntRange(1, 4_096), help="Small transactions.")
@measurement_options
def large(cells: int, in_flight: int, **shared: Any) -> None:
    """Measure small transactions beside one commit of very many cells.

    No window is longer than 0.8 of what such a commit takes, so that all of it lies within.
    """
    wanted = asked(**shared)
    with explained():
        check(wanted)
        with surroundings(None, once_each(), with_services=False) as around:
            room = max(cells, Limits().large_commit_cells_max)
            limits = [f"large_commit_cells_max={room}"]
            oracle = OurOracle(around.directory / "oracle", around.guard, limits=limits, code=around.code)
            beside = LargeSide(oracle, around.guard, cells)
            alone = SmallSide(OurSide("asyncio", oracle, around.guard), beside)
            load = wanted.load(in_flight, CELLS)
            # Its first window has to come first: it tells how long the others may be.
            turns = [Turn(BESIDE, beside, load), Turn(ALONE, alone, load)]
            ours, other = contest.run_turns(turns, rounds=wanted.rounds, tell=prefixed("large"))
        fields = large_fields(beside.commits[-wanted.rounds :], beside.peak_bytes)
        quantities = {"rate": RATE, "p50": WHOLE_P50, "p99": WHOLE_P99}
        comparisons = [Comparison(name, ours, other, quantity, fields) for name, quantity in quantities.items()]
        title = f"{in_flight} small transactions in flight, beside a commit of {cells:,} cells"
        present(title, comparisons, wanted, notes=notes_of(fields))


def large_fields(commits: Sequence[LargeCommit], peak_bytes: tuple[int, int]) -> Fields:
    """Of the large commits of a run, for JSON."""
    return {
        "large_seconds": round(statistics.median(commit.seconds for commit in commits), 3),
        "large_client_cpu_share": round(
            statistics.median(commit.cpu_seconds / commit.seconds for commit in commits), 3
        ),
        "overlap_min": round(min(commit.overlap for commit in commits), 3),
        "older_transactions": sorted({commit.older for commit in commits}),
        "peak_mebibytes_before": round(peak_bytes[0] / 2**20, 1),
        "peak_mebibytes_after": round(peak_bytes[1] / 2**20, 1),
    }


def notes_of(fields: Fields) -> list[str]:
    """The same for a person."""
    return [
        f"the large commit: {fields['large_seconds']:.2f} s (median), "
        f"CPU share of its client {fields['large_client_cpu_share']:.2f}",
        f"windows within it: {fields['overlap_min']:.0%} at least",
        f"one with a snapshot from before it, committed after it: {', '.join(fields['older_transactions'])}",
        f"peak memory of the oracle: {fields['peak_mebibytes_before']:,.0f} MiB before, "
        f"{fields['peak_mebibytes_after']:,.0f} MiB after",
    ]
