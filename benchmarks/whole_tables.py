"""Whole tables: reads of all columns, which nobody names, beside reads row by row; an overwrite beside an append.

    python -m benchmarks.whole_tables [--rows N] [--rounds N] [--json]

Narrow rows in a new table each round, on services and an oracle of its own, or on those that are given. *Scan* and
*backup*: all rows as one snapshot shows them, counted, and written to a directory; *restore*: two such scans, compared;
*vacuum*: a sweep of the table. All beside one scan row by row, of which they were made before. *Vacuum again*: by what
the sweep before it left on record; beside that one, and the same of a table that many small transactions wrote.
*What changed*: since the snapshot of the scan, after one row of a hundred was written again; beside *scan*. *Backup of
what changed*: the same, to a directory; *merged*: that and the backup, into a whole one; both beside *backup*.
*Adoption*: the same cells, put without a transaction, taken over; and a scan of them after that; both beside *scan*.
*Overwrite*: a Spark job that replaces all rows by the same ones, so that it looks for rows to delete and finds none;
*delete*: one that deletes all rows by their keys; both beside the job that appended them.
"""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

import click
from pyspark.sql import DataFrame

from benchmarks.cpu_time import await_rest
from benchmarks.options import json_option, service_options, services_given
from benchmarks.rounds import Case, show
from benchmarks.spark_jobs import REST_MS_MAX, narrow_rows, renamed, seconds_of, source_options
from benchmarks.spark_surroundings import spark_and_manager
from benchmarks.surroundings import explained, once_each, surroundings
from client import Snapshot, TransactionManager
from client.backups.creating import BATCH_ROWS, create, merge
from client.spark import SparkSweep, TableMapping, create_table
from client.tables.restoring import restore
from client.vacuum.parts import Orders, Part, SweepParts, SweptPart, here
from client.vacuum.swept import NOT_SWEPT
from lease.clocks import wall_ms
from store import Family

SCAN, SCAN_ROW_BY_ROW, BACKUP, RESTORE = "scan", "scan row by row", "backup", "restore with nothing to put back"
VACUUM, VACUUM_AGAIN, OVERWRITE, APPEND = "vacuum with nothing to drop", "vacuum again", "overwrite", "append"
SMALL, SMALL_AGAIN = "vacuum of rows of small transactions", "that vacuum again"
SMALL_IN_SPARK, DELETE = "that vacuum as a Spark job", "delete by keys"
ADOPTION, SCAN_ADOPTED = "adoption", "scan of what was adopted"
CHANGES, BACKUP_OF_CHANGES, MERGED = "what changed", "backup of what changed", "merged with the backup before it"
COMPARED: Final = (
    *((job, SCAN_ROW_BY_ROW) for job in (SCAN, BACKUP, RESTORE, VACUUM)),
    (CHANGES, SCAN),
    (BACKUP_OF_CHANGES, BACKUP),
    (MERGED, BACKUP),
    (ADOPTION, SCAN),
    (SCAN_ADOPTED, SCAN),
    (VACUUM_AGAIN, VACUUM),
    (SMALL_AGAIN, SMALL),
    (SMALL_IN_SPARK, SMALL),
    (OVERWRITE, APPEND),
    (DELETE, APPEND),
)
SMALL_TABLE: Final = "bench_small"
SMALL_TRANSACTIONS: Final = 4_000
SWEEP_TASKS: Final = 4
CHANGED_OF: Final = 100
"""One row of so many is written again."""
ROWS_OF_EACH: Final = 5


@contextmanager
def small_table(manager: TransactionManager) -> Iterator[None]:
    """A table of rows that many transactions wrote."""
    manager.create_table(SMALL_TABLE, ["f"])
    try:
        for number in range(SMALL_TRANSACTIONS):
            first = number * 7919 % SMALL_TRANSACTIONS
            with manager.transaction() as transaction:
                for row in range(ROWS_OF_EACH):
                    transaction.put(SMALL_TABLE, b"%08d-%d" % (first, row), {b"f:a": b"value"})
        yield
    finally:
        manager.drop_table(SMALL_TABLE)


def measure(manager: TransactionManager, frame: DataFrame, mapping: TableMapping, place: Path) -> dict[str, float]:
    """The seconds of each job on one new table, and of the vacuums of the other one."""
    mapping = renamed(mapping)
    create_table(manager, mapping)
    directory, changed, whole = (place / f"{mapping.table}{ending}" for ending in ("", "_changed", "_whole"))
    options = source_options(manager.settings, mapping.table)
    writer = frame.write.format("pythia").options(**options)
    seconds = {APPEND: _seconds(writer.mode("append").save)}
    snapshot = manager.snapshot()
    seconds[SCAN_ROW_BY_ROW] = _seconds(lambda: sum(1 for _ in snapshot.scan(mapping.table)))
    seconds[SCAN] = _seconds(lambda: _rows_of(snapshot, mapping.table))
    plain = f"{mapping.table}_plain"
    manager.store.create_table(plain, [Family(name) for name in mapping.families])
    for batch in snapshot.scan_columns(mapping.table, batch_rows=BATCH_ROWS):
        manager.store.put_columns(plain, batch, wall_ms())
    seconds[ADOPTION] = _seconds(lambda: manager.adopt_table(plain, conflict_level="row"))
    seconds[SCAN_ADOPTED] = _seconds(lambda: _rows_of(snapshot, plain))
    manager.drop_table(plain)
    seconds[BACKUP] = _seconds(lambda: create(manager, snapshot, [mapping.table], directory, _untold))
    seconds[RESTORE] = _seconds(
        lambda: restore(manager, snapshot, [mapping.table], lambda table, rows: None, dry_run=True)
    )
    families = tuple(family.encode() for family in mapping.families)
    seconds[VACUUM], seconds[VACUUM_AGAIN] = _sweeps(manager, mapping.table, families)
    seconds[SMALL], seconds[SMALL_AGAIN] = _sweeps(manager, SMALL_TABLE, (b"f",))
    in_spark = SparkSweep(frame.sparkSession, min_partitions=SWEEP_TASKS)
    seconds[SMALL_IN_SPARK] = _seconds(lambda: _sweep(manager, Part(SMALL_TABLE, (b"f",), plain_through=0), in_spark))
    frame.where(f"id % {CHANGED_OF} = 0").write.format("pythia").options(**options).mode("append").save()
    seconds[CHANGES] = _seconds(lambda: _changes_since(snapshot, manager.snapshot(), mapping))
    later = manager.snapshot()
    seconds[BACKUP_OF_CHANGES] = _seconds(
        lambda: create(manager, later, [mapping.table], changed, _untold, since=directory)
    )
    seconds[MERGED] = _seconds(lambda: merge(changed, whole, _untold))
    seconds[OVERWRITE] = _seconds(writer.mode("overwrite").save)
    keys = frame.select(*mapping.row_key).write.format("pythia").options(**options, operation="delete")
    seconds[DELETE] = _seconds(keys.mode("append").save)
    for made in (directory, changed, whole):
        shutil.rmtree(made)
    manager.drop_table(mapping.table)
    return seconds


def _untold(table: str, rows: int, counts: bool) -> None:
    """Progress is not shown."""


def _rows_of(snapshot: Snapshot, table: str) -> int:
    return sum(batch.rows for batch in snapshot.scan_columns(table, batch_rows=BATCH_ROWS))


def _changes_since(earlier: Snapshot, later: Snapshot, mapping: TableMapping) -> int:
    changes = later.changes_columns(mapping.table, earlier.timestamp, mapping.cells, batch_rows=BATCH_ROWS)
    return sum(batch.cells.rows for batch in changes)


def _sweeps(manager: TransactionManager, table: str, families: tuple[bytes, ...]) -> list[float]:
    """The seconds of two sweeps in this process, the second one by what the first one left."""
    left = NOT_SWEPT

    def sweep() -> None:
        nonlocal left
        (done,) = _sweep(manager, Part(table, families, 0, left), here)
        left = done.left

    return [_seconds(sweep) for _ in range(2)]


def _sweep(manager: TransactionManager, part: Part, sweep_parts: SweepParts) -> list[SweptPart]:
    """Without the rest of a vacuum, which waits for the oracle to say that nobody reads below the horizon."""
    orders = Orders(manager.snapshot().timestamp, lasting_records_max=0, dry_run=True)
    swept = [done for _, done in sweep_parts(manager, orders, [part], lambda table, report: None)]
    for done in swept:
        if done.problem is not None:
            raise click.ClickException(done.problem)
    return swept


def _seconds(job: Callable[[], object]) -> float:
    await_rest(REST_MS_MAX)
    return seconds_of(job)


@click.command()
@click.option("--rows", default=400_000, show_default=True, type=click.IntRange(1_000, 100_000_000))
@click.option("--rounds", default=5, show_default=True, type=click.IntRange(1, 100), help="After one not counted.")
@service_options
@json_option
def main(rows: int, rounds: int, zookeeper: str | None, thrift: str | None, as_json: bool) -> None:
    """Measure reads of whole tables, and overwrites."""
    taken: list[dict[str, float]] = []
    with explained():
        given, progress = services_given(zookeeper, thrift), once_each()
        with surroundings(given, progress, with_services=True) as around, spark_and_manager(around) as both:
            session, manager = both
            frame = narrow_rows(session, rows).persist()
            mapping = TableMapping.from_schema("bench_whole", frame.schema, row_key=["id"])
            with small_table(manager):
                for number in range(rounds + 1):
                    seconds = measure(manager, frame, mapping, around.directory)
                    told = ", ".join(f"{job} {each:.2f} s" for job, each in seconds.items())
                    click.echo(f"round {number} of {rounds}: {told}", err=True)
                    if number:
                        taken.append(seconds)
    counts = dict.fromkeys((SMALL, SMALL_AGAIN, SMALL_IN_SPARK), SMALL_TRANSACTIONS * ROWS_OF_EACH)
    cases = [
        Case(
            f"{ours} beside {beside}",
            *([counts.get(job, rows) / each[job] for each in taken] for job in (ours, beside)),
        )
        for ours, beside in COMPARED
    ]
    show(cases, "rows", as_json=as_json)


if __name__ == "__main__":
    main()
