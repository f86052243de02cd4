"""What high availability costs while nothing fails: an oracle with a lease and a standby, beside an oracle alone.

    python -m benchmarks.lease_cost --zookeeper H:P --thrift H:P [--json]

*Ours*: a primary that renews its lease in ZooKeeper, with a standby that watches it. *Beside*: the same program with
``--alone``. Both are started here, on the same services, and asked in turn. A ratio of 1 says that the lease is free.
"""

from __future__ import annotations

import contextlib
import dataclasses
import json
import os
import subprocess
import sys
import uuid
from collections.abc import Callable, Iterator
from functools import partial

import click

from benchmarks.commit_rate import begin_and_commit
from benchmarks.rounds import Case, alternate, calls_per_second
from client import ClientSettings, TransactionManager

THREADS = (1, 16)
LEASE_MS = 10_000
"""A busy machine must not lose the lease in the middle: what is measured is its upkeep."""
STOPS_SECONDS_MAX = 30
REQUEST_TIMEOUT_MS = 30_000


@contextlib.contextmanager
def oracle(*options: str) -> Iterator[str]:
    """An oracle process on a free port, primary or standby; its address."""
    command = [sys.executable, "-m", "tso", "serve", "--listen", "127.0.0.1:0", "--log-level", "error", *options]
    environment = {name: value for name, value in os.environ.items() if not name.startswith("PYTHIA_")}
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=environment) as process:
        try:
            assert process.stdout is not None
            line = process.stdout.readline().split()
            if line[:2] != ["serving", "on"]:
                raise click.ClickException(f"an oracle with {' '.join(options)} did not start")
            yield line[2]
        finally:
            process.terminate()
            process.wait(STOPS_SECONDS_MAX)


@contextlib.contextmanager
def two_installations(zookeeper: str, thrift: str) -> Iterator[tuple[TransactionManager, TransactionManager]]:
    """Managers of one with a lease and of one alone, both of them serving; their tables are dropped at the end."""
    root = f"/lease-cost-{uuid.uuid4().hex[:8]}"
    with contextlib.ExitStack() as stack:
        shared = ("--thrift", thrift, "--lease-ms", str(LEASE_MS))
        for name in ("a", "b"):
            stack.enter_context(oracle("--name", name, "--root", f"{root}/leased", "--zookeeper", zookeeper, *shared))
        address = stack.enter_context(oracle("--alone", "--root", f"{root}/alone", *shared))
        managers = [
            stack.enter_context(
                TransactionManager.connect(
                    dataclasses.replace(
                        settings, store_connections_max=max(THREADS), request_timeout_ms=REQUEST_TIMEOUT_MS
                    )
                )
            )
            for settings in (
                ClientSettings(zookeeper, thrift, f"{root}/leased"),
                ClientSettings("", thrift, f"{root}/alone", oracle=address),
            )
        ]
        try:
            yield managers[0], managers[1]
        finally:
            for table in managers[0].store.table_names():
                if table.startswith(root.strip("/")):
                    managers[0].store.drop_table(table)


def measure(
    leased: TransactionManager,
    alone: TransactionManager,
    *,
    rounds: int,
    seconds: float,
    progress: Callable[[str], None],
) -> list[Case]:
    """Begin, and begin with commit, each with few and with many threads."""
    kinds: dict[str, Callable[[TransactionManager], object]] = {
        "begin": lambda manager: manager.oracle.begin(),
        "begin + commit": begin_and_commit,
    }
    return [
        alternate(
            f"{kind} with a lease beside alone, {threads} thread(s)",
            partial(calls_per_second, partial(call, leased), threads=threads, seconds=seconds),
            partial(calls_per_second, partial(call, alone), threads=threads, seconds=seconds),
            rounds=rounds,
            progress=progress,
        )
        for kind, call in kinds.items()
        for threads in THREADS
    ]


@click.command()
@click.option("--zookeeper", required=True, envvar="PYTHIA_ZOOKEEPER", help="ZooKeeper, host:port.")
@click.option("--thrift", required=True, envvar="PYTHIA_THRIFT", help="HBase's Thrift gateway, host:port.")
@click.option("--rounds", default=7, show_default=True, type=click.IntRange(1, 100), help="Alternating rounds.")
@click.option("--seconds", default=2.0, show_default=True, type=click.FloatRange(0.1, 60), help="Of one measurement.")
@click.option("--json", "as_json", is_flag=True, help="One JSON object at the end instead of lines.")
def main(zookeeper: str, thrift: str, rounds: int, seconds: float, as_json: bool) -> None:
    """Measure the cost of the lease, on services that are up."""
    with two_installations(zookeeper, thrift) as (leased, alone):
        cases = measure(leased, alone, rounds=rounds, seconds=seconds, progress=lambda line: click.echo(line, err=True))
    if as_json:
        click.echo(json.dumps({"cases": [case.summary() for case in cases]}))
        return
    for case in cases:
        click.echo(case.line("calls"))


if __name__ == "__main__":
    main()
