"""Few rows of a table: by their keys, at the beginning of a scan, and behind many that have been deleted.

    python -m benchmarks.few_rows --zookeeper H:P --thrift H:P [--root /pythia] [--json]

*Together*: a hundred rows by one ``get_many``, beside a hundred ``get``. *First*: the first row of a scan, and the
first batch of one by columns, beside the first five hundred rows of it. *Behind*: a page that passes over all rows that
were deleted, beside a scan row by row that does.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from itertools import islice

import click

from benchmarks.one_manager import settings_of
from benchmarks.rounds import Case, alternate, show
from client import Snapshot, TransactionManager
from configuration.connection_flags import root_flag, thrift_flag, zookeeper_flag

TABLE = "benchmark_few_rows"
KEPT_ROWS = 5_000
TOGETHER_ROWS = 100
TRANSACTION_ROWS = 10_000
VALUES = {b"f:a": bytes(20), b"f:b": bytes(20)}


def key(number: int) -> bytes:
    """Row keys whose order is that of the numbers."""
    return b"%09d" % number


@contextmanager
def table_of(manager: TransactionManager, deleted_rows: int) -> Iterator[Snapshot]:
    """A table that begins with rows that have been deleted; as a snapshot sees it."""
    manager.create_table(TABLE, ["f"])
    try:
        for first in range(0, deleted_rows + KEPT_ROWS, TRANSACTION_ROWS):
            with manager.transaction() as transaction:
                for number in range(first, min(first + TRANSACTION_ROWS, deleted_rows + KEPT_ROWS)):
                    transaction.put(TABLE, key(number), VALUES)
        for first in range(0, deleted_rows, TRANSACTION_ROWS):
            with manager.transaction() as transaction:
                for number in range(first, min(first + TRANSACTION_ROWS, deleted_rows)):
                    transaction.delete(TABLE, key(number), list(VALUES))
        yield manager.snapshot()
    finally:
        manager.drop_table(TABLE)


def measure(snapshot: Snapshot, deleted_rows: int, *, rounds: int, progress: Callable[[str], None]) -> list[Case]:
    """One case for each line of the module's description."""
    some = [key(deleted_rows + number) for number in range(0, KEPT_ROWS, KEPT_ROWS // TOGETHER_ROWS)]
    kept = key(deleted_rows)

    def beside(name: str, ours: Callable[[], object], other: Callable[[], object], times: int) -> Case:
        return alternate(
            name,
            lambda: _a_second(ours, times),
            lambda: _a_second(other, times),
            rounds=rounds,
            progress=progress,
        )

    return [
        beside(
            f"{TOGETHER_ROWS} rows together beside one by one",
            lambda: snapshot.get_many(TABLE, some),
            lambda: [snapshot.get(TABLE, row) for row in some],
            10,
        ),
        beside(
            "the first row of a scan beside the first 500",
            lambda: next(snapshot.scan(TABLE, start=kept)),
            lambda: list(islice(snapshot.scan(TABLE, start=kept), 500)),
            50,
        ),
        beside(
            "the first batch of a scan of all columns beside the first 500 rows",
            lambda: next(snapshot.scan_columns(TABLE, start=kept)),
            lambda: _rows_by_columns(snapshot, kept, 500),
            50,
        ),
        beside(
            f"a page behind {deleted_rows:,} deleted rows beside a scan row by row",
            lambda: snapshot.scan_page(TABLE, rows_max=1, looked_at_max=2 * deleted_rows),
            lambda: next(snapshot.scan(TABLE)),
            1,
        ),
    ]


def _rows_by_columns(snapshot: Snapshot, start: bytes, rows: int) -> None:
    batches = snapshot.scan_columns(TABLE, start=start, batch_rows=rows)
    while rows > 0:
        rows -= next(batches).rows


def _a_second(call: Callable[[], object], times: int) -> float:
    began = time.monotonic()
    for _ in range(times):
        call()
    return times / (time.monotonic() - began)


@click.command()
@zookeeper_flag("where the primary oracle is found.")
@thrift_flag
@root_flag
@click.option("--rounds", default=5, show_default=True, type=click.IntRange(1, 100), help="Alternating rounds.")
@click.option("--deleted-rows", default=100_000, show_default=True, type=click.IntRange(1_000, 100_000_000))
@click.option("--json", "as_json", is_flag=True, help="One JSON object at the end instead of lines.")
def main(zookeeper: str, thrift: str, root: str, rounds: int, deleted_rows: int, as_json: bool) -> None:
    """Measure reads of few rows, on services and an oracle that are up."""
    settings = settings_of(zookeeper=zookeeper, thrift=thrift, root=root, request_timeout_ms=30_000)
    with TransactionManager.connect(settings) as manager, table_of(manager, deleted_rows) as snapshot:
        cases = measure(snapshot, deleted_rows, rounds=rounds, progress=lambda line: click.echo(line, err=True))
    show(cases, "calls", as_json=as_json)


if __name__ == "__main__":
    main()
