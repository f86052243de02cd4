"""``pythia bench availability``: what high availability costs while nothing fails.

*Ours*: a primary that renews its lease in ZooKeeper, with a standby that watches it, and clients that look it up there.
*Beside*: the same program alone. Both record commits in the same HBase. A ratio of 1 says that the lease is free.
"""

from __future__ import annotations

from typing import Any

import click

from benchmarks import contest
from benchmarks.comparison import Comparison
from benchmarks.contest import Turn
from benchmarks.options import asked, measurement_options
from benchmarks.our_oracle import OurOracle
from benchmarks.our_side import OurSide
from benchmarks.presenting import check, prefixed, present
from benchmarks.surroundings import explained, once_each, surroundings

IN_FLIGHT = (1, 64, 1_024)
LEASED, ALONE = "with a lease", "alone"


@click.command()
@click.option("--in-flight", multiple=True, type=click.IntRange(1, 4_096), default=IN_FLIGHT, show_default=True,
              help="Transactions at once; may be given several times.")  # fmt: skip
@click.option("--cells", default=2, show_default=True, type=click.IntRange(1, 1_000), help="In a write set.")
@click.option(
    "--lease-ms",
    default=10_000,
    show_default=True,
    type=click.IntRange(500, 600_000),
    help="A busy machine must not lose the lease in the middle: what is measured is its upkeep.",
)
@measurement_options
def availability(in_flight: tuple[int, ...], cells: int, lease_ms: int, **shared: Any) -> None:
    """Measure an oracle with a lease and a standby beside one that is alone."""
    wanted = asked(**shared)
    with explained():
        check(wanted)
        with surroundings(wanted.services, once_each(), with_services=True) as around:
            sides = {
                LEASED: OurOracle(
                    around.directory / "leased", around.guard, around.services, lease_ms=lease_ms, code=around.code
                ),
                ALONE: OurOracle(around.directory / "alone", around.guard, around.services, code=around.code),
            }
            loaded = {name: OurSide("asyncio", oracle, around.guard) for name, oracle in sides.items()}
            turns = [
                Turn(f"{name}, {count:,} in flight", side, wanted.load(count, cells))
                for count in in_flight
                for name, side in loaded.items()
            ]
            series = contest.run_turns(turns, rounds=wanted.rounds, tell=prefixed("availability"))
        comparisons = [
            Comparison(ours.side, ours, beside) for ours, beside in zip(series[::2], series[1::2], strict=True)
        ]
        present("begin and commit with a lease and a standby, beside an oracle alone", comparisons, wanted)
