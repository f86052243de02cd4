"""The conflict keys of a bulk write's rows in one loop, beside the library that hashes one input at a time.

    python -m benchmarks.conflict_keys [--json]

*Ours*: ``client.key_hashing``, over a batch as a Spark task writes it. *Beside*: the same numbers by `xxhash`, each
from a ``bytes`` object of its own, as it is done for the rows that a transaction puts one by one.
"""

from __future__ import annotations

import time
from collections.abc import Callable

import click

from benchmarks.rounds import Case, show
from client.cells import cell_id, row_id, write_set_of_columns
from store.columns import CellColumns

ROWS = 10_000
COLUMNS = (b"f:part", b"f:amount", b"f:name")
TABLE = "bench_narrow"
KEY_BYTES = (8, 40, 160)


def measure(rounds: int) -> list[Case]:
    """A case for each length of a row's key, by row and by cell."""
    return [_case(key_bytes, rounds, by_row=by_row) for key_bytes in KEY_BYTES for by_row in (True, False)]


def _case(key_bytes: int, rounds: int, *, by_row: bool) -> Case:
    rows = [number.to_bytes(key_bytes, "big") for number in range(ROWS)]
    cells = CellColumns.of_values(COLUMNS, rows, [dict.fromkeys(COLUMNS, b"1")] * ROWS)
    keys = ROWS if by_row else ROWS * len(COLUMNS)
    case = Case(f"keys of {key_bytes} bytes, by {'row' if by_row else 'cell'}", [], [])
    for _ in range(rounds):
        case.ours.append(keys / _seconds(lambda: write_set_of_columns(TABLE, cells, by_row=by_row)))
        case.beside.append(keys / _seconds(lambda: _one_by_one(rows, by_row=by_row)))
    return case


def _one_by_one(rows: list[bytes], *, by_row: bool) -> list[int]:
    if by_row:
        return [row_id(TABLE, row) for row in rows]
    return [cell_id(TABLE, row, column) for row in rows for column in COLUMNS]


def _seconds(work: Callable[[], object]) -> float:
    started = time.perf_counter()
    work()
    return time.perf_counter() - started


@click.command()
@click.option("--rounds", default=9, show_default=True, type=click.IntRange(1, 1_000))
@click.option("--json", "as_json", is_flag=True, help="One JSON object instead of lines.")
def main(rounds: int, as_json: bool) -> None:
    """Measure the conflict keys of 10,000 rows."""
    measure(1)  # compiles
    show(measure(rounds), "conflict keys", as_json=as_json)


if __name__ == "__main__":
    main()
