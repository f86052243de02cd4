"""What it costs a transaction that its rows lie in several tables.

    python -m benchmarks.several_tables --zookeeper H:P --thrift H:P [--root /pythia] [--json]

One caller, whole transactions, begin, puts, commit: a row in each of so many tables, beside as many rows of one table.
Each of them is written to HBase twice, its cells and its shadow cells; those of several tables at once.
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
from client import TransactionManager

TABLES = (2, 4)
VALUES = {b"f:a": bytes(20), b"f:b": bytes(20)}


def measure(manager: TransactionManager, *, rounds: int, seconds: float, progress: Callable[[str], None]) -> list[Case]:
    """One case for each number of tables."""
    numbers = itertools.count()
    names = [f"benchmark_several_tables_{number}" for number in range(max(TABLES))]
    for name in names:
        manager.create_table(name, ["f"], if_missing=True)

    def transact(tables: list[str]) -> None:
        number = next(numbers)
        with manager.transaction() as transaction:
            for place, table in enumerate(tables):
                transaction.put(table, b"%012d-%d" % (number, place), VALUES)

    def case(count: int) -> Case:
        return alternate_calls(
            f"{count} tables beside {count} rows of one",
            partial(transact, names[:count]),
            partial(transact, names[:1] * count),
            threads=1,
            seconds=seconds,
            rounds=rounds,
            progress=progress,
        )

    cases = [case(count) for count in TABLES]
    for name in names:
        manager.drop_table(name)
    return cases


@click.command()
@alternating_options
def main(**asked: Any) -> None:
    """Measure transactions over several tables, on services and an oracle that are up."""
    measure_and_show(measure, "transactions", **asked)


if __name__ == "__main__":
    main()
