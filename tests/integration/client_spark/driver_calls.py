"""What a program does that talks to Spark: for a process of its own.

PySpark is in one mode, and has one context, for a whole process, so that no test of another one can be in it. What
these functions return and are called with goes from process to process.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession

from client import ClientSettings, Conflict, Transaction, TransactionManager
from client.spark import SparkSweep, land_batch, register
from client.spark.source import FILTER_PUSHDOWN
from client.vacuum import VacuumReport, run_vacuum
from tests.horizon import at_once
from tests.spark_jobs.connect_server import session_by_connect

Rows = list[tuple[Any, ...]]


def connect(url: str, settings: ClientSettings) -> None:
    """Before all others: makes the session that they use."""
    register(session_by_connect(url, settings))


def mode() -> tuple[str, str | None]:
    """Of what module the session is, and whether filters may be pushed down."""
    spark = active_session()
    return type(spark).__module__, spark.conf.get(FILTER_PUSHDOWN)


def write(table: str, first: int, rows: int, value: int) -> None:
    """Rows in a transaction of their own."""
    _counts(first, rows, value).write.format("pythia").mode("append").option("table", table).save()


def read(table: str, where: str = "true", **options: str) -> Rows:
    """Some rows, in their order."""
    frame = active_session().read.format("pythia").options(table=table, **options).load()
    return sorted(tuple(row) for row in frame.where(where).collect())


def write_two_tables(settings: ClientSettings, tables: tuple[str, str]) -> tuple[Rows, Rows]:
    """In one transaction; what others see of the first one before the commit, and what the transaction does."""
    with TransactionManager.connect(settings) as manager, manager.transaction() as transaction:
        handle = transaction.handle().to_json()
        for table in tables:
            _counts(0, 3, 1).write.format("pythia").mode("append").options(table=table, transaction=handle).save()
        return read(tables[0]), read(tables[0], transaction=handle)


def write_what_another_wrote(settings: ClientSettings, table: str) -> bool:
    """Whether the later one of two jobs that write one row is refused."""
    with TransactionManager.connect(settings) as manager:
        first, second = manager.transaction(), manager.transaction()
        for transaction in (first, second):
            options = {"table": table, "transaction": transaction.handle().to_json()}
            _counts(0, 1, 1).write.format("pythia").mode("append").options(**options).save()
        first.commit()
        try:
            second.commit()
        except Conflict:
            return True
        return False


def use_sql(table: str) -> Rows:
    """A view: replaced and read."""
    spark, view = active_session(), f"view_of_{table}"
    spark.sql(f"CREATE TEMPORARY VIEW {view} USING pythia OPTIONS (table '{table}')")
    spark.sql(f"INSERT OVERWRITE {view} SELECT id, -id FROM range(2, 4)")
    return sorted(tuple(row) for row in spark.sql(f"SELECT k, v FROM {view}").collect())


def reason_for_refusing(table: str, **options: str) -> str:
    """What a read says that is refused."""
    try:
        read(table, **options)
    except PySparkException as error:
        return str(error)
    return "nothing"


def sink(table: str, folder: Path) -> None:
    """Stream all files that there are into a table."""
    writer = _files(folder).writeStream.format("pythia").options(table=table, checkpointLocation=str(folder / "sunk"))
    writer.trigger(availableNow=True).start().awaitTermination()


def land(
    settings: ClientSettings, table: str, folder: Path, checkpoint: str | None, *, dies_after: int | None = None
) -> str:
    """Add all files that there are up in a table, by ``foreachBatch``; what it ended with.

    ``checkpoint``: which one is named; the query's own is ``landed``. ``dies_after``: the batch after whose landing the
    function fails.
    """

    def add_up(batch: DataFrame, number: int) -> None:
        def job(transaction: Transaction) -> None:
            options = {"table": table, "transaction": transaction.handle().to_json()}
            known = batch.sparkSession.read.format("pythia").options(**options).load()
            sums = known.unionByName(batch).groupBy("k").sum("v").withColumnRenamed("sum(v)", "v")
            sums.write.format("pythia").mode("append").options(**options).save()

        with TransactionManager.connect(settings) as manager:
            named = None if checkpoint is None else str(folder / checkpoint)
            if land_batch(manager, batch, number, job, checkpoint=named) and number == dies_after:
                raise RuntimeError(f"died after batch {number}")

    query = _files(folder).writeStream.foreachBatch(add_up).option("checkpointLocation", str(folder / "landed"))
    try:
        query.trigger(availableNow=True).start().awaitTermination()
    except PySparkException as error:
        return str(error)
    return "the end"


def vacuum(settings: ClientSettings) -> VacuumReport:
    """Have Spark's server sweep all tables."""
    with TransactionManager.connect(settings) as manager:
        sweep = SparkSweep(active_session(), min_partitions=2)
        return run_vacuum(manager, retain_ms=0, outcomes_retain_ms=0, sweep=sweep, wait=at_once)


def active_session() -> SparkSession:
    """That of this process."""
    spark = SparkSession.getActiveSession()
    assert spark is not None
    return spark


def _counts(first: int, rows: int, value: int) -> DataFrame:
    return active_session().range(first, first + rows).selectExpr("id AS k", f"CAST({value} AS BIGINT) AS v")


def _files(folder: Path) -> DataFrame:
    source = active_session().readStream.schema("k BIGINT, v BIGINT").option("maxFilesPerTrigger", "1")
    return source.json(os.fspath(folder / "input"))
