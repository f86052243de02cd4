"""Simulate: ``python -m tests.simulation``.

One seed, with its story when something is wrong or ``--story`` asks for it; or as many seeds as fit into some seconds.
"""

from __future__ import annotations

import itertools
import sys
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import ExitStack

import click

from tests.mutations.rules import RULES
from tests.simulation.breaking import broken
from tests.simulation.scenario import Mode
from tests.simulation.simulation import Run, run
from tests.simulation.story import about

MODES = [mode.value for mode in Mode]


@click.command()
@click.option("--seed", type=int, help="Only this seed.")
@click.option("--mode", type=click.Choice(MODES), help="Only this mode; both in turn by default.")
@click.option("--story", is_flag=True, help="Tell the whole story of the seed.")
@click.option("--seconds", type=float, default=60.0, show_default=True, help="Explore for so long.")
@click.option("--from-seed", type=int, default=1, show_default=True, help="Explore from here on.")
@click.option(
    "--break", "rule", metavar="NAME", help="Break the rule of that name (of tests.mutations), to see it caught."
)
def main(seed: int | None, mode: str | None, story: bool, seconds: float, from_seed: int, rule: str | None) -> None:
    """Run the project's own code in a virtual machine room, where everything that can go wrong does."""
    modes = [Mode(mode)] if mode else list(Mode)
    with ExitStack() as stack:
        for mutation in RULES:
            if rule is not None and mutation.name == rule:
                stack.enter_context(broken(mutation))
        if seed is None:
            well = not explore(modes, seconds, from_seed)
        else:
            ended = [run(seed, each, told=True) for each in modes]
            well = [tell(each, whole=story) for each in ended].count(False) == 0
    sys.exit(0 if well else 1)


def explore(modes: list[Mode], seconds: float, from_seed: int) -> list[Run]:
    """Run seed after seed until the time is over; the runs in which something was wrong."""
    failed: list[Run] = []
    totals: Counter[str] = Counter()
    started = time.monotonic()
    for seed, mode in _in_turn(modes, from_seed):
        ended = run(seed, mode)
        totals.update(
            runs=1, transactions=ended.transactions, committed=ended.committed, survived=ended.survived,
            late=ended.late_writes, epochs=ended.epochs, steps=ended.steps,
        )  # fmt: skip
        if ended.anomalies:
            failed.append(ended)
            tell(run(seed, mode, told=True), whole=False)
        elapsed = time.monotonic() - started
        if elapsed >= seconds:
            break
    click.echo(
        f"{totals['runs']:,} runs in {elapsed:.0f} s ({totals['runs'] / elapsed:.1f} a second), seeds {from_seed} to "
        f"{seed}: {totals['transactions']:,} transactions, {totals['committed']:,} committed, {totals['survived']:,} "
        f"in a later epoch than they began in, {totals['late']:,} recorded after their epoch had ended, "
        f"{totals['epochs']:,} epochs, {totals['steps']:,} steps; {len(failed)} runs failed"
    )
    return failed


def tell(ended: Run, *, whole: bool) -> bool:
    """Print a run, and its story if it is asked for or needed; whether all was well."""
    lines = ended.story if whole else about(ended.story, ended.anomalies) if ended.anomalies else []
    for line in lines:
        click.echo(line)
    click.echo(ended.summary)
    for anomaly in ended.anomalies:
        click.echo(f"ANOMALY: {anomaly}")
    if ended.anomalies:
        scenario = ended.scenario
        click.echo(f"again: python -m tests.simulation --seed {scenario.seed} --mode {scenario.mode.value} --story")
    return not ended.anomalies


def _in_turn(modes: list[Mode], from_seed: int) -> Iterator[tuple[int, Mode]]:
    for seed in itertools.count(from_seed):
        for mode in modes:
            yield seed, mode


if __name__ == "__main__":
    main()
