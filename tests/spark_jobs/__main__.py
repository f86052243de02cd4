"""Random Spark jobs against a model, kills in the middle of jobs, and broken rules: ``python -m tests.spark_jobs``.

Services are the command's own, unless ``--zookeeper`` (HBase's) and ``--thrift`` name some that are there; what it
starts, or makes on them, is gone when it ends.
"""

from __future__ import annotations

import itertools
import json
import random
import sys
import tempfile
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

import click
from pyspark.sql import SparkSession

import devcluster
from client import ClientSettings, TransactionManager
from devcluster.guard import Guard
from drills.installation import Installation, Plan, installed
from tests.spark_jobs.breaking import BROKEN, break_each
from tests.spark_jobs.connect_server import running, session_by_connect
from tests.spark_jobs.differential import explore
from tests.spark_jobs.gateway import Gateway
from tests.spark_jobs.inventing import ACTS
from tests.spark_jobs.kills import GATEWAY, KINDS, Ground, campaign
from tests.spark_jobs.pairs import Ending, counted, table_of
from tests.spark_jobs.session import session


@click.group()
def main() -> None:
    """Spark jobs, checked."""


def _services(command: click.decorators.FC) -> click.decorators.FC:
    for name in ("thrift", "zookeeper"):
        command = click.option(f"--{name}", metavar="HOST:PORT", help="Given; by default own services.")(command)
    return command


@contextmanager
def _installation(directory: Path, guard: Guard, zookeeper: str | None, thrift: str | None) -> Iterator[Installation]:
    """Two oracle processes on the given services, or on own ones."""
    with _some_services(directory, guard, zookeeper, thrift) as (zookeeper, thrift):
        plan = Plan(directory, processes=2, zookeeper=zookeeper, thrift=thrift)
        with installed(plan, guard, _say) as installation:
            yield installation


@contextmanager
def _some_services(
    directory: Path, guard: Guard, zookeeper: str | None, thrift: str | None
) -> Iterator[tuple[str, str]]:
    """Where ZooKeeper and Thrift are: as given, or own ones."""
    if zookeeper and thrift:
        yield zookeeper, thrift
        return
    place = directory / "cluster"
    guard.watch_cluster(place)
    try:
        cluster = devcluster.up(devcluster.ClusterSettings(place), _say)
        yield cluster.zookeeper, cluster.thrift
    finally:
        devcluster.down(place, wipe=True)


def _say(step: devcluster.settings.Step) -> None:
    click.echo(step.text, err=True)


@contextmanager
def _session(settings: ClientSettings, directory: Path, *, connect: bool) -> Iterator[SparkSession]:
    if not connect:
        with session(settings) as made:
            yield made
        return
    with running(directory) as url:
        made = session_by_connect(url, settings)
        yield made
        made.stop()


@main.command()
@click.option("--seeds", type=click.IntRange(1), help="So many; by default as many as the time allows.")
@click.option("--first-seed", type=int, default=1, show_default=True, help="From here on.")
@click.option("--acts", type=click.IntRange(1), default=ACTS, show_default=True, help="How long each story is.")
@click.option("--minutes", type=click.FloatRange(0, min_open=True), default=60.0, show_default=True, help="At most.")
@click.option("--keep-going", is_flag=True, help="Do not end at the first seed that fails.")
@click.option("--connect", is_flag=True, help="By Spark Connect, with a server of its own.")
@_services
def differential(
    seeds: int | None,
    first_seed: int,
    acts: int,
    minutes: float,
    keep_going: bool,
    connect: bool,
    zookeeper: str | None,
    thrift: str | None,
) -> None:
    """Random jobs on real Spark and on a model in memory, which have to agree."""
    numbers = itertools.islice(itertools.count(first_seed), seeds)
    with (
        tempfile.TemporaryDirectory(prefix="pythia-spark-jobs-") as directory,
        Guard() as guard,
        _installation(Path(directory), guard, zookeeper, thrift) as installation,
        TransactionManager.connect(installation.settings) as manager,
        _session(installation.settings, Path(directory), connect=connect) as spark,
    ):
        report = explore(
            spark, manager, numbers, f"{installation.settings.root.strip('/')}_jobs",
            minutes_max=minutes,
            acts=acts, say=click.echo,
            progress=lambda text: click.echo(text, err=True), keep_going=keep_going,
        )  # fmt: skip
    for kind, count in sorted(report.done.items()):
        click.echo(f"{count:8,} {kind}")
    failed = ", ".join(map(str, report.differences)) or "none"
    click.echo(f"{report.seeds:,} seeds from {first_seed} on; seeds that failed: {failed}")
    sys.exit(1 if report.differences else 0)


@main.command()
@click.option("--kind", "kinds", multiple=True, type=click.Choice(KINDS), help="Only such; several may be named.")
@click.option("--times", type=click.IntRange(1), default=10, show_default=True, help="Kills of each kind.")
@click.option("--rows", type=click.IntRange(10), default=4_000, show_default=True, help="Of each table.")
@click.option("--seed", type=int, default=1, show_default=True, help="Of the moments.")
@click.option("--json", "as_json", is_flag=True, help="The table as JSON.")
@_services
def kills(
    kinds: tuple[str, ...], times: int, rows: int, seed: int, as_json: bool, zookeeper: str | None, thrift: str | None
) -> None:
    """Kill workers, drivers, oracles and gateways in the middle of jobs, and have readers look at what is left."""
    chosen = kinds or KINDS
    endings: list[Ending] = []
    with ExitStack() as stack:
        directory = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="pythia-spark-jobs-")))
        guard = stack.enter_context(Guard())
        installation = stack.enter_context(_installation(directory, guard, zookeeper, thrift))
        spark = stack.enter_context(session(installation.settings))
        gateway = None
        if GATEWAY in chosen:
            gateway = Gateway(directory / "gateway", installation.services.zookeeper, guard)
            gateway.start()
            stack.callback(gateway.kill)
        prefix = f"{installation.settings.root.strip('/')}_kills"
        ground = Ground(spark, installation, gateway, prefix, rows, random.Random(seed))
        for ending in campaign(ground, chosen, times):
            endings.append(ending)
            click.echo(f"{ending}", err=True)
    click.echo(json.dumps(counted(endings), indent=2) if as_json else "\n".join(table_of(endings)))
    sys.exit(1 if any(ending.violations for ending in endings) else 0)


@main.command()
@click.option("--only", metavar="NAME", default="", help="Only the rules whose name contains this.")
@click.option("--seeds", type=click.IntRange(1), default=7, show_default=True, help="Stories for each rule, at most.")
@_services
def broken(only: str, seeds: int, zookeeper: str | None, thrift: str | None) -> None:
    """Break rules one at a time, in a copy, and see that random jobs notice."""
    chosen = [mutation for mutation in BROKEN if only.lower() in mutation.name.lower()]
    if not chosen:
        raise click.UsageError(f"no rule's name contains {only!r}")
    missed = 0
    with (
        tempfile.TemporaryDirectory(prefix="pythia-spark-jobs-") as directory,
        Guard() as guard,
        _some_services(Path(directory), guard, zookeeper, thrift) as (zookeeper, thrift),
    ):
        copies = Path(directory) / "copies"
        copies.mkdir()
        for verdict in break_each(chosen, copies, seeds=seeds, zookeeper=zookeeper, thrift=thrift):
            missed += not verdict.noticed
            click.echo(f"{'noticed' if verdict.noticed else 'MISSED'}: {verdict.name}\n{verdict.said}")
    click.echo(f"{len(chosen) - missed} of {len(chosen)} noticed")
    sys.exit(1 if missed else 0)


if __name__ == "__main__":
    main()
