"""What it costs a transaction to guard what it reads, and what it costs to write it instead.

    python -m benchmarks.guarded_reads --zookeeper H:P --thrift H:P [--root /pythia] [--json]

Whole transactions: begin, a read of one row, a put of another, commit. All read the same row, which nobody changes:
with a guard, beside without one; and with a guard, beside writing what was read. That is what keeps write skew out
where there are no guards, and it has all of them conflict (``manager.run`` runs those again, on a new snapshot).
"""

from __future__ import annotations

import itertools
from collections.abc import Callable
from functools import partial
from typing import Any

import click

from benchmarks.one_manager import measure_and_show
from benchmarks.options import alternating_options
from benchmarks.rounds import Case, alternate_calls
from client import Transaction, TransactionManager

TABLE = "benchmark_guarded_reads"
RATE = b"rate"
RATE_COLUMN = b"f:rate"
VALUES = {b"f:a": bytes(20), b"f:b": bytes(20)}
CALLERS = (1, 16)
ATTEMPTS_MAX = 10_000
"""Where all of sixteen write one row, one of them commits at a time."""


def measure(manager: TransactionManager, *, rounds: int, seconds: float, progress: Callable[[str], None]) -> list[Case]:
    """For each number of callers a guard beside none, and for several beside writes as well."""
    numbers = itertools.count()
    manager.create_table(TABLE, ["f"], if_missing=True)
    with manager.transaction() as transaction:
        transaction.put(TABLE, RATE, {RATE_COLUMN: b"7"})

    def work(transaction: Transaction, *, guarded: bool, writes: bool) -> None:
        rate = transaction.get(TABLE, RATE, [RATE_COLUMN], guarded=guarded)
        if writes:
            transaction.put(TABLE, RATE, rate)
        transaction.put(TABLE, b"%012d" % next(numbers), VALUES)

    def transact(*, guarded: bool = False, writes: bool = False) -> None:
        manager.run(partial(work, guarded=guarded, writes=writes), attempts_max=ATTEMPTS_MAX)

    def case(what: str, callers: int, beside: Callable[[], None]) -> Case:
        guarded = partial(transact, guarded=True)
        name = f"{callers} caller{'s'[: callers - 1]}: a guard beside {what}"
        return alternate_calls(
            name, guarded, beside, threads=callers, seconds=seconds, rounds=rounds, progress=progress
        )

    cases = [case("none", callers, transact) for callers in CALLERS]
    cases.append(case("a write of the row", max(CALLERS), partial(transact, writes=True)))
    manager.drop_table(TABLE)
    return cases


@click.command()
@alternating_options
def main(**asked: Any) -> None:
    """Measure guarded reads, on services and an oracle that are up."""
    measure_and_show(measure, "transactions", **asked)


if __name__ == "__main__":
    main()
