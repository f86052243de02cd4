"""Rows written in the order of their keys, as a store has them written, beside the order in which they come.

    python -m benchmarks.key_order --thrift H:P [--rounds N] [--json]

*Ours*: two processes at once write rows of one cell, whose keys come in a random order, into a new table: 10,000 at a
time, put in order first (``store.key_order``), which counts. *Beside*: the same requests with the rows as they came.
Then a small cell in another column of the same rows, as shadow cells are written: many more rows are put in order
together. And a new table once more, with whole partitions put in order, as Spark does it where it is asked to.
"""

from __future__ import annotations

import contextlib
import itertools
import multiprocessing
import random
import time
import uuid
from multiprocessing.pool import Pool
from typing import Final, NamedTuple

import click
import numpy as np

from benchmarks.options import gateway_option
from benchmarks.rounds import Case, show
from store import Family
from store.columns import CellColumns
from store.hbase import HBaseCellStore, PoolSettings, RequestLimits
from store.hbase.addresses import parse_addresses
from store.hbase.column_calls import put_rows
from store.hbase.column_encoding import column_put_requests
from store.hbase.connection import GatewayConnection
from store.key_order import in_key_order

PROCESSES: Final = 2
ROWS: Final = 160_000
TIMESTAMP: Final = 100


class Written(NamedTuple):
    """What is written into each row, and how many rows are put in order ``together``."""

    name: str
    column: bytes
    value_bytes: int
    together: int


TABLES: Final = (
    (Written("one cell", b"f:cell", 250, 10_000), Written("shadow cell", b"f:shadow", 8, 80_000)),
    (Written("one cell, whole partitions", b"f:cell", 250, ROWS // PROCESSES),),
)
"""What is written into each new table, one after the other."""


def write(thrift: str, table: str, part: int, written: Written, ordered: bool) -> None:
    """A process's share of the rows, in an order that is the same each time."""
    numbers = np.random.default_rng(0).permutation(ROWS)[part::PROCESSES]
    connection = GatewayConnection(parse_addresses(thrift)[0], PoolSettings())
    with contextlib.closing(connection):
        for first in range(0, len(numbers), written.together):
            came = _cells(numbers[first : first + written.together].tolist(), written)
            cells = in_key_order(came) if ordered else came
            for request in column_put_requests(table, cells, TIMESTAMP, RequestLimits(), framed=False):
                put_rows(connection, request)


def cases(thrift: str, rounds: int) -> list[Case]:
    """Each in the order of the keys, beside as they come; the first round is not counted."""
    found = {written: Case(written.name, [], []) for table in TABLES for written in table}
    with (
        contextlib.closing(HBaseCellStore(thrift)) as store,
        multiprocessing.get_context("spawn").Pool(PROCESSES) as pool,
    ):
        for number in range(rounds + 1):
            for ordered, writes in random.sample([*itertools.product((True, False), TABLES)], 2 * len(TABLES)):
                table = f"key_order_{uuid.uuid4().hex[:8]}"
                store.create_table(table, [Family("f")])
                for written in writes:
                    rate = _rows_per_second(pool, thrift, table, written, ordered)
                    way = "in order" if ordered else "as they come"
                    click.echo(f"round {number}: {written.name}, {way}: {rate:,.0f} rows a second", err=True)
                    if number:
                        (found[written].ours if ordered else found[written].beside).append(rate)
                store.drop_table(table)
    return list(found.values())


def _rows_per_second(pool: Pool, thrift: str, table: str, written: Written, ordered: bool) -> float:
    started = time.monotonic()
    pool.starmap(write, [(thrift, table, part, written, ordered) for part in range(PROCESSES)])
    return ROWS / (time.monotonic() - started)


def _cells(numbers: list[int], written: Written) -> CellColumns:
    keys = [b"carrier-%03d/%08d" % (number % 16, number) for number in numbers]
    return CellColumns.of_values((written.column,), keys, [{written.column: bytes(written.value_bytes)}] * len(keys))


@click.command()
@gateway_option
@click.option("--rounds", default=5, show_default=True, type=click.IntRange(1, 100), help="After one not counted.")
@click.option("--json", "as_json", is_flag=True, help="One JSON object at the end instead of lines.")
def main(thrift: str, rounds: int, as_json: bool) -> None:
    """Measure writes by the order of their rows, on a gateway that is up."""
    show(cases(thrift, rounds), "rows", as_json=as_json)


if __name__ == "__main__":
    main()
