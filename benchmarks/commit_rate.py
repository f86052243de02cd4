"""What a transaction costs beside the plain writes that it protects.

    python -m benchmarks.commit_rate --zookeeper H:P --thrift H:P [--root /pythia] [--json]

*Ours*: begin and commit of a transaction with a write set of two cells, recorded in the HBase commit table; no data is
written. *Beside*: one plain put of one cell into HBase through the same gateway and pool. So a ratio of 0.5 says that
the oracle's part of a transaction takes as long as two plain puts.
"""

from __future__ import annotations

import itertools
import os
from collections.abc import Callable
from functools import partial
from typing import Any

import click
import numpy as np

from benchmarks.one_manager import measure_and_show
from benchmarks.options import alternating_options
from benchmarks.rounds import Case, alternate_calls
from client import TransactionManager
from client.connection.deadline import Deadline
from store import RowPut

TABLE = "benchmark_commit_rate"
THREADS = (1, 4, 16)


def begin_and_commit(manager: TransactionManager) -> None:
    """One transaction with a write set of two cells that no other has; nothing is written to a table."""
    begun = manager.oracle.begin()
    cells = np.uint64(2 * begun.first_start_timestamp) + np.arange(2, dtype=np.uint64)
    decision = manager.oracle.commit(
        begun.first_start_timestamp, begun.snapshot, cells, lambda: None, Deadline(manager.settings.deadline_ms)
    )
    assert decision.commit_timestamp, "no two transactions share a cell here"


def measure(manager: TransactionManager, *, rounds: int, seconds: float, progress: Callable[[str], None]) -> list[Case]:
    """One case for each number of threads."""
    if TABLE not in manager.store.table_names():
        manager.create_table(TABLE, ["f"])
    numbers = itertools.count()
    value = os.urandom(16)

    def put() -> None:
        number = next(numbers)
        manager.store.put(TABLE, [RowPut(b"%016d" % number, {b"f:value": value})], 1)

    def beside_puts(threads: int) -> Case:
        return alternate_calls(
            f"begin + commit beside a plain put, {threads} thread(s)",
            partial(begin_and_commit, manager),
            put,
            threads=threads,
            seconds=seconds,
            rounds=rounds,
            progress=progress,
        )

    return [beside_puts(threads) for threads in THREADS]


@click.command()
@alternating_options
def main(**asked: Any) -> None:
    """Measure begin + commit beside plain puts, on services and an oracle that are up."""
    measure_and_show(measure, "calls", store_connections_max=max(THREADS), request_timeout_ms=30_000, **asked)


if __name__ == "__main__":
    main()
