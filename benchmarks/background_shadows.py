"""What a caller gains who does not wait for the shadow cells of its commits.

    python -m benchmarks.background_shadows --zookeeper H:P --thrift H:P [--root /pythia] [--json]

Whole transactions, begin, one row of two cells, commit: with ``shadow_cells`` in the background, beside written before
the commit returns. *Apart*: one caller who pauses in between, as a service does whose requests come one by one: the
reciprocal of the median time of a transaction. *Read*: each row is read right after its commit by another manager,
which has to ask the commit table where a shadow cell does not stand yet. The rest: callers who do not pause, so that
what is left for later has to be done meanwhile.
"""

from __future__ import annotations

import itertools
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from dataclasses import replace
from functools import partial
from statistics import median

import click

from benchmarks.one_manager import settings_of
from benchmarks.options import alternating_options
from benchmarks.rounds import Case, alternate, alternate_calls, show
from client import TransactionManager

TABLE = "benchmark_background_shadows"
THREADS = (1, 4, 16)
PAUSE_SECONDS = 0.02
VALUES = {b"f:a": bytes(20), b"f:b": bytes(20)}


def transact(manager: TransactionManager, numbers: Iterator[int]) -> bytes:
    """One transaction; the row that it wrote."""
    row = b"%016d" % next(numbers)
    with manager.transaction() as transaction:
        transaction.put(TABLE, row, VALUES)
    return row


def transact_and_read(manager: TransactionManager, other: TransactionManager, numbers: Iterator[int]) -> None:
    """The same, and the row is read by somebody else."""
    row = transact(manager, numbers)
    assert other.snapshot().get(TABLE, row)


def measure(
    behind: TransactionManager,
    before: TransactionManager,
    other: TransactionManager,
    *,
    rounds: int,
    seconds: float,
    progress: Callable[[str], None],
) -> list[Case]:
    """One case for each line of the module's description."""
    numbers = itertools.count()

    def apart(manager: TransactionManager) -> float:
        return _reciprocal_apart(partial(transact, manager, numbers), seconds)

    def case(name: str, call: Callable[[TransactionManager], object], threads: int) -> Case:
        return alternate_calls(
            name,
            partial(call, behind),
            partial(call, before),
            threads=threads,
            seconds=seconds,
            rounds=rounds,
            progress=progress,
        )

    return [
        alternate(
            f"1 thread, {PAUSE_SECONDS * 1000:.0f} ms apart",
            partial(apart, behind),
            partial(apart, before),
            rounds=rounds,
            progress=progress,
        ),
        *(case(f"{threads} thread(s)", lambda manager: transact(manager, numbers), threads) for threads in THREADS),
        case("1 thread, each row read elsewhere", lambda manager: transact_and_read(manager, other, numbers), 1),
    ]


def _reciprocal_apart(call: Callable[[], object], seconds: float) -> float:
    took_seconds = []
    until_s = time.monotonic() + seconds
    while (began_s := time.monotonic()) < until_s:
        call()
        took_seconds.append(time.monotonic() - began_s)
        time.sleep(PAUSE_SECONDS)
    return 1 / median(took_seconds)


@click.command()
@alternating_options
def main(zookeeper: str, thrift: str, root: str, rounds: int, seconds: float, as_json: bool) -> None:
    """Measure transactions with shadow cells in the background, on services and an oracle that are up."""
    written = settings_of(zookeeper=zookeeper, thrift=thrift, root=root, store_connections_max=2 * max(THREADS))
    with ExitStack() as stack:
        settings = (replace(written, shadow_cells="in_background"), written, written)
        behind, before, other = (stack.enter_context(TransactionManager.connect(each)) for each in settings)
        before.create_table(TABLE, ["f"], if_missing=True)
        cases = measure(
            behind, before, other, rounds=rounds, seconds=seconds, progress=lambda line: click.echo(line, err=True)
        )
        before.drop_table(TABLE)
    show(cases, "transactions", as_json=as_json)


if __name__ == "__main__":
    main()
