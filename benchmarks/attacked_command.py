"""``pythia bench attacked``: what others have of an oracle, and of its REST, while it is attacked, beside it in peace.

The attackers (``benchmarks.hostile_load``) run on the same two cores: what they take of them is told.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Any, Final

import click

from benchmarks import contest
from benchmarks.busy_side import BusySide
from benchmarks.comparison import RATE, WHOLE_P50, WHOLE_P99, Comparison, Fields
from benchmarks.contest import Turn
from benchmarks.load_process import Answer, LoadProcess
from benchmarks.options import asked, measurement_options
from benchmarks.our_oracle import OurOracle
from benchmarks.our_side import OurSide
from benchmarks.presenting import check, prefixed, present
from benchmarks.surroundings import Surroundings, explained, once_each, surroundings

CELLS: Final = 2
MARGIN_SECONDS: Final = 1.0
"""The attack goes on for so much longer than the window: it begins when that has connected."""
IN_FLIGHT: Final = {"asyncio": 64, "rest": 8}
"""By front; over REST each has a connection of its own."""
NAMES: Final = {"asyncio": "frames", "rest": "REST"}


@click.command()
@measurement_options
def attacked(**shared: Any) -> None:
    """Measure transactions by frames and by REST while both ports are attacked, beside the same in peace.

    Silent and slow connections, damaged frames, and requests that no document allows, at a steady pace.
    """
    wanted = asked(**shared)
    with explained():
        check(wanted)
        with surroundings(wanted.services, once_each(), with_services=True) as around:
            oracle = OurOracle(around.directory / "oracle", around.guard, around.services, rest=True, code=around.code)
            turns: list[Turn] = []
            sides: list[BusySide] = []
            for front, in_flight in IN_FLIGHT.items():
                load = wanted.load(in_flight, CELLS, in_flight if front == "rest" else 1)
                sides.append(_attacked(front, oracle, around))
                turns.append(Turn(f"{NAMES[front]}, attacked", sides[-1], load))
                turns.append(Turn(f"{NAMES[front]}, in peace", OurSide(front, oracle, around.guard), load))
            series = contest.run_turns(turns, rounds=wanted.rounds, tell=prefixed("attacked"))
        fields = attack_fields([answer for side in sides for answer in side.answers[-wanted.rounds :]])
        quantities = {"rate": RATE, "p50": WHOLE_P50, "p99": WHOLE_P99}
        comparisons = [
            Comparison(f"{NAMES[front]}: {name}", series[2 * number], series[2 * number + 1], quantity, fields)
            for number, front in enumerate(IN_FLIGHT)
            for name, quantity in quantities.items()
        ]
        present("transactions of others, while an oracle is attacked", comparisons, wanted, notes=notes_of(fields))


def _attacked(front: str, oracle: OurOracle, around: Surroundings) -> BusySide:
    def attackers() -> LoadProcess:
        log, ports = oracle.directory / f"attackers-{front}.log", [oracle.address, oracle.rest_address]
        return LoadProcess("the attackers", "benchmarks.hostile_load", ports, log, around.guard, around.code)

    return BusySide(
        OurSide(front, oracle, around.guard), "attackers", attackers, lambda seconds: str(seconds + MARGIN_SECONDS)
    )


def attack_fields(answers: Sequence[Answer]) -> Fields:
    """What the attackers did in all measured windows, for JSON."""
    sums: Counter[str] = Counter()
    for answer in answers:
        sums.update(answer)
    seconds, cpu_seconds = sums.pop("seconds"), sums.pop("cpu_seconds")
    return {"attackers_cpu_share": round(cpu_seconds / seconds, 3), "attack": dict(sorted(sums.items()))}


def notes_of(fields: Fields) -> list[str]:
    """The same for a person."""
    done = ", ".join(f"{name.replace('_', ' ')} {count:,}" for name, count in fields["attack"].items())
    return [f"the attackers' CPU share: {fields['attackers_cpu_share']:.2f}", f"in all attacked windows: {done}"]
