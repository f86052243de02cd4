"""``pythia drill failover``, ``mixed`` and ``list``: what breaks, how often, and what came of it.

Invariant: progress goes to standard error and results to standard output; the exit code says whether there was harm.
"""

from __future__ import annotations

import json
import shutil
import signal
import sys
import tempfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from random import Random
from types import FrameType
from typing import Any

import click
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, SpinnerColumn, TextColumn, TimeElapsedColumn
from rich.table import Table

from client import PythiaError
from devcluster import DevClusterError, Step
from drills import failover
from drills.campaign import mixed
from drills.errors import DrillError
from drills.failover import FAULTS_MAX, Drill
from drills.fault import Fault
from drills.faults import FAULTS
from drills.installation import Plan
from drills.report import Report
from histories import HistoryError
from store import StoreError

HARMED = 1
TABLE_WIDTH_CHARACTERS = 110
"""A narrow terminal may break the lines; a number is never cut short."""

Command = Callable[..., None]

_OPTIONS = (
    click.option("--zookeeper", envvar="PYTHIA_ZOOKEEPER", metavar="HOST:PORT", help="Use this ZooKeeper …"),
    click.option(
        "--thrift",
        envvar="PYTHIA_THRIFT",
        metavar="HOST:PORT",
        help="… and this HBase Thrift gateway. Without both the drill brings up services of its own.",
    ),
    click.option("--processes", default=3, show_default=True, help="Oracle processes."),
    click.option("--lease-ms", default=2_000, show_default=True, help="Their lease, in milliseconds."),
    click.option("--pause-ms", default=10, show_default=True, help="What each thread of the load waits in between."),
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
    signal.signal(signal.SIGTERM, _terminated)
    with _explained(), _place(directory) as place:
        drill = Drill(Plan(place.directory, **plan), kinds, choose, seed=seed, pause_ms=pause_ms)
        with _shown() as tell:
            report = failover.run(drill, tell)
        place.keep = not report.verdict.is_clean
        _print(report, as_json)
        if place.keep:
            click.echo(f"logs and histories are kept in {place.directory}", err=True)
    sys.exit(0 if report.verdict.is_clean else HARMED)


class _Place:
    """Where a drill's files go; a temporary directory is deleted at the end unless it is to be kept."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory
        self.keep = True


@contextmanager
def _place(directory: Path | None) -> Iterator[_Place]:
    if directory is not None:
        if directory.is_dir() and any(directory.iterdir()):
            raise DrillError(f"{directory} is not empty: name a new directory")
        directory.mkdir(parents=True, exist_ok=True)
        yield _Place(directory.resolve())
        return
    place = _Place(Path(tempfile.mkdtemp(prefix="pythia-drill-")))
    try:
        yield place
    except (KeyboardInterrupt, SystemExit):
        place.keep = False
        raise
    finally:
        if not place.keep or not any(place.directory.iterdir()):
            shutil.rmtree(place.directory)


@contextmanager
def _explained() -> Iterator[None]:
    try:
        yield
    except (DrillError, DevClusterError, PythiaError, StoreError, HistoryError) as error:
        raise click.ClickException(str(error)) from error


@contextmanager
def _shown() -> Iterator[failover.Progress]:
    """Steps as a live line on a terminal, as plain lines elsewhere."""
    console = Console(stderr=True)
    columns = (
        SpinnerColumn(),
        TextColumn("{task.description}"),
        BarColumn(20),
        MofNCompleteColumn(),
        TimeElapsedColumn(),
    )
    with Progress(*columns, console=console, transient=True, disable=not console.is_terminal) as live:
        task = live.add_task("beginning", total=None)

        def tell(step: Step) -> None:
            live.update(task, description=step.text, completed=step.done, total=step.total or None)
            if not console.is_terminal:
                count = f" ({step.done + 1} of {step.total})" if step.total else ""
                click.echo(f"{step.text}{count}", err=True)

        yield tell


def _print(report: Report, as_json: bool) -> None:
    if as_json:
        for name, reason in report.left_out.items():
            click.echo(f"LEFT OUT: {name}: {reason}", err=True)
        click.echo(json.dumps(report.to_fields()))
        return
    console = Console(width=TABLE_WIDTH_CHARACTERS, soft_wrap=True)
    console.print(report.table())
    console.print(report.harms_table())
    for line in report.lines():
        console.print(line, markup=False, highlight=False, soft_wrap=True)


def _terminated(signal_number: int, frame: FrameType | None) -> None:
    del frame
    raise SystemExit(128 + signal_number)
