"""What every benchmark runs in: a directory of its own, a guard over its processes, and services where it needs them.

Invariant: whatever ends the command ends every process that it started; progress goes to standard error.
"""

from __future__ import annotations

import signal
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass
from pathlib import Path
from types import FrameType

import click

import devcluster
from benchmarks.compiled_code import Code, compiled_code
from benchmarks.sides import Services, SideError
from devcluster import DevClusterError, Step
from devcluster.guard import Guard
from drills.errors import DrillError

HBASE_HEAP_MEBIBYTES = 2_048


@dataclass(frozen=True, slots=True)
class Surroundings:
    """``services``: None where nothing needs them."""

    directory: Path
    guard: Guard
    services: Services | None
    code: Code
    """What our processes run."""


@contextmanager
def surroundings(
    given: Services | None, progress: devcluster.Progress, *, with_services: bool
) -> Iterator[Surroundings]:
    """For one run. ``with_services``: those given, else own ones, brought up and wiped in the end."""
    signal.signal(signal.SIGTERM, _terminated)
    code = compiled_code(progress)
    with tempfile.TemporaryDirectory(prefix="pythia-bench-") as place, Guard() as guard:
        directory = Path(place)
        own = with_services and given is None
        with _own_services(directory / "cluster", guard, progress) if own else nullcontext(given) as services:
            yield Surroundings(directory, guard, services if with_services else None, code)


@contextmanager
def explained() -> Iterator[None]:
    """What a person can put right is told in one message, without a traceback."""
    try:
        yield
    except (SideError, DrillError, DevClusterError) as error:
        raise click.ClickException(str(error)) from error


def once_each() -> devcluster.Progress:
    """Progress that tells the same step once."""
    told: set[str] = set()

    def tell(step: Step) -> None:
        if step.text not in told:
            told.add(step.text)
            click.echo(step.text, err=True)

    return tell


@contextmanager
def _own_services(place: Path, guard: Guard, progress: devcluster.Progress) -> Iterator[Services]:
    guard.watch_cluster(place)
    settings = devcluster.ClusterSettings(place, hbase_heap_mebibytes=HBASE_HEAP_MEBIBYTES)
    try:
        cluster = devcluster.up(settings, progress)
        yield Services(cluster.zookeeper, cluster.thrift)
    finally:
        devcluster.down(place, wipe=True, progress=progress)


def _terminated(signal_number: int, frame: FrameType | None) -> None:
    del frame
    raise SystemExit(128 + signal_number)
