"""What it costs a transaction to claim a key, and to claim one of a table's.

    python -m benchmarks.claims --zookeeper H:P --thrift H:P [--root /pythia] [--json]

Whole transactions: begin, a put of one row, commit. With a claim of a new key each, beside the same without; one
caller, and several at once.
"""

from __future__ import annotations

import itertools
import uuid
from collections.abc import Callable
from functools import partial
from typing import Any

import click

from benchmarks.one_manager import measure_and_show
from benchmarks.options import alternating_options
from benchmarks.rounds import Case, alternate_calls
from client import TransactionManager
from client.claims import forget

TABLE = "benchmark_claims"
VALUES = {b"f:a": bytes(20), b"f:b": bytes(20)}
CALLERS = (1, 16)
PREFIX = "benchmark/"


def measure(manager: TransactionManager, *, rounds: int, seconds: float, progress: Callable[[str], None]) -> list[Case]:
    """For each number of callers a key of the installation's, and one of the table's."""
    numbers, run = itertools.count(), uuid.uuid4().hex
    manager.create_table(TABLE, ["f"], if_missing=True)

    def transact(*, claims: bool = False, table: str | None = None) -> None:
        number = next(numbers)
        with manager.transaction() as transaction:
            if claims:
                transaction.claim(f"{PREFIX}{run}/{number}", table=table)
            transaction.put(TABLE, b"%012d" % number, VALUES)

    def case(what: str, callers: int, claiming: Callable[[], None]) -> Case:
        name = f"{callers} caller{'s'[: callers - 1]}: {what}, beside none"
        return alternate_calls(
            name, claiming, transact, threads=callers, seconds=seconds, rounds=rounds, progress=progress
        )

    cases = [
        case(what, callers, claiming)
        for callers in CALLERS
        for what, claiming in (
            ("a claim", partial(transact, claims=True)),
            ("a claim of a table's", partial(transact, claims=True, table=TABLE)),
        )
    ]
    keys = [f"{PREFIX}{run}/{number}" for number in range(next(numbers))]
    for table in ("", TABLE):
        forget(manager, keys, table=table)
    manager.drop_table(TABLE)
    return cases


@click.command()
@alternating_options
def main(**asked: Any) -> None:
    """Measure claims, on services and an oracle that are up."""
    measure_and_show(measure, "transactions", **asked)


if __name__ == "__main__":
    main()
