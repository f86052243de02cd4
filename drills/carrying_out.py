"""What the drills' commands have in common: where files go, how progress is shown, how it ends.

Invariant: progress goes to standard error and results to standard output; the exit code says whether there was harm.
"""

from __future__ import annotations

import json
import shutil
import signal
import sys
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from types import FrameType
from typing import NoReturn

import click
from rich.console import Console

from client import PythiaError
from devcluster import DevClusterError, Progress, Step
from devcluster.live_line import live_line
from drills.errors import DrillError
from drills.report import Report
from histories import HistoryError
from store import StoreError

HARMED = 1
TABLE_WIDTH_CHARACTERS = 110
"""A narrow terminal may break the lines; a number is never cut short."""


def carry_out(
    run: Callable[[Path, Progress], Report],
    directory: Path | None,
    *,
    as_json: bool,
    with_each: bool = False,
) -> NoReturn:
    """Run a drill, show its report, and end this process. ``run`` takes a directory, and whom to tell its steps.

    ``with_each``: show each fault by itself as well.
    """
    signal.signal(signal.SIGTERM, _terminated)
    with _explained(), _place(directory) as place:
        with _shown() as tell:
            report = run(place.directory, tell)
        place.keep = not report.verdict.is_clean
        _print(report, as_json, with_each)
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
def _shown() -> Iterator[Progress]:
    """Steps as a live line on a terminal, as plain lines elsewhere."""
    console = Console(stderr=True)
    with live_line(console) as show:

        def tell(step: Step) -> None:
            show(step)
            if not console.is_terminal:
                count = f" ({step.done + 1} of {step.total})" if step.total else ""
                click.echo(f"{step.text}{count}", err=True)

        yield tell


def _print(report: Report, as_json: bool, with_each: bool) -> None:
    if as_json:
        for name, reason in report.left_out.items():
            click.echo(f"LEFT OUT: {name}: {reason}", err=True)
        click.echo(json.dumps(report.to_fields()))
        return
    console = Console(width=TABLE_WIDTH_CHARACTERS, soft_wrap=True)
    if with_each:
        console.print(report.each_table())
    console.print(report.table())
    console.print(report.harms_table())
    for line in report.lines():
        console.print(line, markup=False, highlight=False, soft_wrap=True)


def _terminated(signal_number: int, frame: FrameType | None) -> None:
    del frame
    raise SystemExit(128 + signal_number)
