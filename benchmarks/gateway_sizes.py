"""Of which size requests and answers suit a gateway: rows a second through it, beside the sizes that a store uses.

    python -m benchmarks.gateway_sizes --thrift H:P [--rounds N] [--json]

*Ours*: several processes at once read, or write, rows of 19 columns in answers, or requests, of the size that
``RequestLimits`` has by default. *Beside*: the same with another size. In each round every size has its turn, in a
random order: a gateway gets faster for minutes.
"""

from __future__ import annotations

import contextlib
import multiprocessing
import random
import time
import uuid
from collections.abc import Callable, Iterator, Sequence
from multiprocessing.pool import Pool
from typing import Final

import click

from benchmarks.options import gateway_option
from benchmarks.rounds import Case, show
from store import Family, KeyRange, RowPut
from store.columns import CellColumns
from store.hbase import HBaseCellStore, RequestLimits

PROCESSES: Final = 4
ROWS: Final = 80_000
COLUMNS: Final = tuple(b"f:column_%02d" % number for number in range(19))
PIECE_ROWS: Final = 10_000
FACTORS: Final = (0.25, 0.5, 1, 2, 4, 16)
"""Of the size that is the default."""
TIMESTAMP: Final = 100

Work = Callable[[str, str, int, int], int]


def read(thrift: str, table: str, part: int, answer_bytes: int) -> int:
    """A process's share of the rows; how many they were."""
    with contextlib.closing(HBaseCellStore(thrift, limits=RequestLimits(answer_bytes_wanted=answer_bytes))) as store:
        batches = store.scan_columns(table, _share(part), [b"f"], COLUMNS, batch_rows=PIECE_ROWS)
        return sum(batch.cells.rows for batch in batches)


def write(thrift: str, table: str, part: int, request_bytes: int) -> int:
    """The same, written."""
    rows = range(part * ROWS // PROCESSES, (part + 1) * ROWS // PROCESSES)
    with contextlib.closing(HBaseCellStore(thrift, limits=RequestLimits(request_bytes_max=request_bytes))) as store:
        for first in range(rows.start, rows.stop, PIECE_ROWS):
            puts = [_row(number) for number in range(first, min(rows.stop, first + PIECE_ROWS))]
            store.put_columns(table, CellColumns.of_puts(puts), TIMESTAMP)
    return len(rows)


def cases(thrift: str, rounds: int) -> list[Case]:
    """Each size beside the default, of answers and of requests; the first round is not counted."""
    kinds = {"read": (read, RequestLimits().answer_bytes_wanted), "write": (write, RequestLimits().request_bytes_max)}
    found: dict[tuple[str, float], list[float]] = {(kind, factor): [] for kind in kinds for factor in FACTORS}
    turns = list(found)
    with (
        contextlib.closing(HBaseCellStore(thrift)) as store,
        multiprocessing.get_context("spawn").Pool(PROCESSES) as pool,
        _table(store) as kept,
    ):
        pool.starmap(write, [(thrift, kept, part, kinds["write"][1]) for part in range(PROCESSES)])
        for number in range(rounds + 1):
            for kind, factor in random.sample(turns, len(turns)):
                work, size = kinds[kind]
                with _table(store) if kind == "write" else contextlib.nullcontext(kept) as table:
                    asked = [(thrift, table, part, int(factor * size)) for part in range(PROCESSES)]
                    rate = _rows_per_second(pool, work, asked)
                if number:
                    found[kind, factor].append(rate)
                click.echo(f"round {number}: {kind}, {factor:g} of the size: {rate:,.0f} rows a second", err=True)
    return [
        Case(f"{kind}, {kinds[kind][1]:,} bytes beside {int(factor * kinds[kind][1]):,}", found[kind, 1], rates)
        for (kind, factor), rates in found.items()
        if factor != 1
    ]


def _rows_per_second(pool: Pool, work: Work, asked: Sequence[tuple[str, str, int, int]]) -> float:
    started = time.monotonic()
    rows = sum(pool.starmap(work, asked))
    return rows / (time.monotonic() - started)


@contextlib.contextmanager
def _table(store: HBaseCellStore) -> Iterator[str]:
    table = f"gateway_sizes_{uuid.uuid4().hex[:8]}"
    store.create_table(table, [Family("f")])
    try:
        yield table
    finally:
        store.drop_table(table)


def _share(part: int) -> KeyRange:
    return KeyRange(_key(part * ROWS // PROCESSES), _key((part + 1) * ROWS // PROCESSES))


def _key(number: int) -> bytes:
    return b"%08d" % number


def _row(number: int) -> RowPut:
    return RowPut(_key(number), dict.fromkeys(COLUMNS, b"value%03d" % (number % 1000)))


@click.command()
@gateway_option
@click.option("--rounds", default=5, show_default=True, type=click.IntRange(1, 100), help="After one not counted.")
@click.option("--json", "as_json", is_flag=True, help="One JSON object at the end instead of lines.")
def main(thrift: str, rounds: int, as_json: bool) -> None:
    """Measure reads and writes by the size of answers and requests, on a gateway that is up."""
    show(cases(thrift, rounds), "rows", as_json=as_json)


if __name__ == "__main__":
    main()
