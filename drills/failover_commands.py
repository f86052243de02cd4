"""``pythia drill failover``, ``mixed`` and ``list``: what breaks, how often, and what came of it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from random import Random
from typing import Any

import click
from rich.console import Console
from rich.table import Table

from devcluster import Progress
from drills import failover
from drills.campaign import mixed
from drills.carrying_out import TABLE_WIDTH_CHARACTERS, carry_out
from drills.failover import FAULTS_MAX, Drill
from drills.fault import Fault
from drills.faults import FAULTS
from drills.installation import PROCESSES_MAX, PROCESSES_MIN, Plan
from drills.report import Report

Command = Callable[..., None]

_OPTIONS = (
    click.option("--zookeeper", envvar="PYTHIA_ZOOKEEPER", metavar="HOST:PORT", help="Use this ZooKeeper …"),
    click.option(
        "--thrift",
        envvar="PYTHIA_THRIFT",
        metavar="HOST:PORT",
        help="… and this HBase Thrift gateway. Without both the drill brings up services of its own.",
    ),
    click.option(
        "--processes",
        default=3,
        show_default=True,
        type=click.IntRange(PROCESSES_MIN, PROCESSES_MAX),
        help="Oracle processes.",
    ),
    click.option(
        "--lease-ms",
        default=2_000,
        show_default=True,
        type=click.IntRange(failover.LEASE_MS_MIN, failover.LEASE_MS_MAX),
        help="Their lease, in milliseconds.",
    ),
    click.option(
        "--pause-ms",
        default=10,
        show_default=True,
        type=click.IntRange(0, failover.PAUSE_MS_MAX),
        help="What each thread of the load waits in between.",
    ),
    click.option("--seed", type=int, default=0, show_default=True, help="Of all that is left to chance."),
    click.option(
        "--directory",
        type=click.Path(file_okay=False, path_type=Path),
        help="A new directory for logs, histories and the cluster; by default a temporary one, kept only after harm.",
    ),
    click.option("--json", "as_json", is_flag=True, help="End with one JSON object, on one line, instead of tables."),
)


def _with_options(command: Command) -> Command:
    for option in reversed(_OPTIONS):
        command = option(command)
    return command


@click.command("failover")
@click.option("--fault", "name", required=True, type=click.Choice(sorted(FAULTS)), help="See pythia drill list.")
@click.option("--rounds", default=3, show_default=True, type=click.IntRange(1, FAULTS_MAX), help="How often.")
@_with_options
def failover_command(name: str, rounds: int, **options: Any) -> None:
    """Inflict one fault again and again, under load, with transactions in flight.

    Exits with 1 when a commit was lost, a transaction aborted by the failover, or anything else was not as it must be.
    """
    _drill([FAULTS[name]], lambda kinds, random: list(kinds) * rounds, **options)


@click.command("mixed")
@click.option("--faults", default=50, show_default=True, type=click.IntRange(1, FAULTS_MAX), help="How many.")
@click.option("--fault", "names", multiple=True, type=click.Choice(sorted(FAULTS)), help="Only these kinds.")
@_with_options
def mixed_command(faults: int, names: tuple[str, ...], **options: Any) -> None:
    """Inflict faults of all kinds in random order, under load, with transactions in flight.

    Exits with 1 when a commit was lost, a transaction aborted by the failover, or anything else was not as it must be.
    """

    def choose(kinds: Sequence[type[Fault]], random: Random) -> list[type[Fault]]:
        return mixed(kinds, faults, random)

    _drill([FAULTS[name] for name in names] or list(FAULTS.values()), choose, **options)


@click.command("list")
def list_command() -> None:
    """Show every fault."""
    table = Table(box=None, pad_edge=False)
    table.add_column("fault", no_wrap=True)
    table.add_column("what happens")
    table.add_column("service")
    for fault in FAULTS.values():
        table.add_row(fault.name, fault.sentence, fault.recovery.value)
    Console(width=TABLE_WIDTH_CHARACTERS).print(table)


def _drill(
    kinds: Sequence[type[Fault]],
    choose: Callable[[Sequence[type[Fault]], Random], list[type[Fault]]],
    *,
    directory: Path | None,
    as_json: bool,
    seed: int,
    pause_ms: int,
    **plan: Any,
) -> None:
    def run(place: Path, tell: Progress) -> Report:
        return failover.run(Drill(Plan(place, **plan), kinds, choose, seed=seed, pause_ms=pause_ms), tell)

    carry_out(run, directory, as_json=as_json)
