"""Loading the flights with Spark: each month is one transaction over four tables, made of many jobs.

Invariant: what a job writes depends on nothing that the same transaction has written, so that Spark may repeat any
task: the new rows of a summary are held in Spark (a local checkpoint) before they are written.
"""

from __future__ import annotations

import os
import signal
import sys
import time
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import pandas as pd
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as sql

from client import Snapshot, SnapshotHandle, Transaction, TransactionHandle, TransactionManager
from client.spark import create_table, register, table_mapping
from demo.flights import read_reference
from demo.summaries import MEASURES, SUMMARIES, Summary, Totals
from demo.tables import (
    FLIGHTS,
    REFERENCE_KEYS,
    TableNames,
    arrow_table,
    mapping_of_flights,
    mapping_of_frame,
    mapping_of_summary,
    totals_of_frame,
)

CORES: Final = 2
SPARK_SETTINGS: Final = {
    "spark.driver.host": "127.0.0.1",
    "spark.driver.bindAddress": "127.0.0.1",
    "spark.driver.memory": "1g",
    "spark.driver.extraJavaOptions": "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC",
    "spark.sql.adaptive.enabled": "false",  # a month is small: planning again and compiling cost more than they save
    "spark.sql.codegen.wholeStage": "false",
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
    "spark.sql.shuffle.partitions": str(CORES),
    "spark.sql.execution.arrow.pyspark.enabled": "true",
    "spark.sql.session.timeZone": "UTC",
}


@contextmanager
def spark_session(log: Path) -> Iterator[SparkSession]:
    """A Spark session on this machine. What Spark and its workers write to standard error goes to ``log``."""
    os.environ.update({"PYSPARK_PYTHON": sys.executable, "SPARK_LOCAL_IP": "127.0.0.1"})
    builder = SparkSession.builder.master(f"local[{CORES}]").appName("pythia demo")
    for name, value in SPARK_SETTINGS.items():
        builder = builder.config(name, value)
    interrupt = signal.getsignal(signal.SIGINT)
    with _standard_error_to(log), warnings.catch_warnings():
        warnings.filterwarnings("ignore", "PySpark does not yet fully support pandas", FutureWarning)  # not used here
        session = builder.getOrCreate()
    signal.signal(signal.SIGINT, interrupt)  # Spark's own handler talks to Java in the middle of another talk
    yield session
    session.stop()  # not after an error: a call that was interrupted leaves no way to ask, and Java ends with us anyway


@contextmanager
def _standard_error_to(log: Path) -> Iterator[None]:
    """Processes started within keep the log as their standard error; Java's first lines have no other switch."""
    sys.stderr.flush()
    kept = os.dup(2)
    with log.open("wb") as file:
        os.dup2(file.fileno(), 2)
    try:
        yield
    finally:
        os.dup2(kept, 2)
        os.close(kept)


@dataclass(frozen=True, slots=True)
class MonthLoaded:
    """What the transaction of a month took; ``seconds`` from its begin until its commit was acknowledged."""

    month: int
    flights: int
    seconds: float
    commit_seconds: float


class Loader:
    """Makes the tables and loads them."""

    def __init__(self, spark: SparkSession, manager: TransactionManager, names: TableNames) -> None:
        self._spark = spark
        self._manager = manager
        self._names = names
        register(spark)

    def create_tables(self, flights: pd.DataFrame) -> None:
        """Make ``flights`` and the summaries, empty."""
        create_table(self._manager, mapping_of_flights(self._names.of(FLIGHTS), flights))
        for summary in SUMMARIES:
            create_table(self._manager, mapping_of_summary(self._names.of(summary.name), flights, summary))

    def load_reference(self) -> int:
        """Make and load the small tables, in one transaction; returns the number of rows."""
        frames = {name: read_reference(name) for name in REFERENCE_KEYS}
        for name, frame in frames.items():
            create_table(self._manager, mapping_of_frame(self._names.of(name), frame, REFERENCE_KEYS[name]))
        with self._manager.transaction() as transaction:
            for name, frame in frames.items():
                self._write(self._data_frame(name, frame), name, transaction.handle())
            transaction.commit()
        return sum(map(len, frames.values()))

    def load_month(
        self, month: int, flights: pd.DataFrame, begun: Callable[[int], None], before_commit: Callable[[], None]
    ) -> MonthLoaded:
        """One month in one transaction: its flights, and every summary that they change.

        ``begun`` gets the transaction's start timestamp.
        """
        started = time.monotonic()
        with self._manager.transaction() as transaction:
            handle = transaction.handle()
            begun(handle.start_timestamp)
            frame = self._data_frame(FLIGHTS, flights)
            self._write(frame, FLIGHTS, handle)
            self._update_summaries(frame, handle)
            before_commit()
            commit_seconds = _commit(transaction)
        return MonthLoaded(month, len(flights), time.monotonic() - started, commit_seconds)

    def load_month_split(self, month: int, flights: pd.DataFrame, between: Callable[[int], None]) -> MonthLoaded:
        """The mistake: flights and summaries in a transaction each; ``between`` gets the first's commit timestamp."""
        started = time.monotonic()
        frame = self._data_frame(FLIGHTS, flights)
        with self._manager.transaction() as first:
            self._write(frame, FLIGHTS, first.handle())
            between(first.commit().commit_timestamp)
        with self._manager.transaction() as second:
            self._update_summaries(frame, second.handle())
            commit_seconds = _commit(second)
        return MonthLoaded(month, len(flights), time.monotonic() - started, commit_seconds)

    def summaries(self, snapshot: Snapshot) -> dict[str, Totals]:
        """Every summary by name, read by Spark in one snapshot."""
        return {
            summary.name: totals_of_frame(
                self._read(summary.name, "snapshot", snapshot.handle()).toArrow().to_pandas(), summary
            )
            for summary in SUMMARIES
        }

    def names_of(self, table: str, snapshot: Snapshot) -> dict[str, str]:
        """The names of the carriers or airports, by their codes."""
        (code,) = REFERENCE_KEYS[table]
        rows = self._read(table, "snapshot", snapshot.handle()).select(code, "name").collect()
        return {row[0]: row[1] for row in rows}

    def _update_summaries(self, flights: DataFrame, handle: TransactionHandle) -> None:
        for summary in SUMMARIES:
            stored = self._read(summary.name, "transaction", handle)
            rows = add_to_summary(stored, aggregate(flights, summary), summary).localCheckpoint(eager=True)
            self._write(rows, summary.name, handle)

    def _data_frame(self, name: str, frame: pd.DataFrame) -> DataFrame:
        """In Spark by way of Arrow: from pandas itself Spark 4 refuses some versions, and warns of others."""
        mapping = table_mapping(self._manager, self._names.of(name))
        return self._spark.createDataFrame(arrow_table(mapping, frame), mapping.to_struct())

    def _read(self, name: str, option: str, handle: TransactionHandle | SnapshotHandle) -> DataFrame:
        reader = self._spark.read.format("pythia").option("table", self._names.of(name)).option("min_partitions", "1")
        return reader.option(option, handle.to_json()).load()

    def _write(self, frame: DataFrame, name: str, handle: TransactionHandle) -> None:
        writer = frame.write.format("pythia").mode("append").option("table", self._names.of(name))
        writer.option("transaction", handle.to_json()).save()


def aggregate(flights: DataFrame, summary: Summary) -> DataFrame:
    """The summary of these flights, by Spark."""
    return flights.groupBy(*summary.keys).agg(
        sql.count(sql.lit(1)).alias("flights"),
        sql.sum(sql.col("dep_delay").isNull().cast("bigint")).alias("cancelled"),
        sql.coalesce(sql.sum("dep_delay"), sql.lit(0)).cast("bigint").alias("delay_minutes"),
        sql.sum("distance").cast("bigint").alias("distance_miles"),
    )


def add_to_summary(stored: DataFrame, new: DataFrame, summary: Summary) -> DataFrame:
    """The rows of ``new``, each plus what is stored for it."""
    before = stored.select(*summary.keys, *(sql.col(measure).alias(f"{measure}_before") for measure in MEASURES))
    sums = [
        (sql.col(measure) + sql.coalesce(sql.col(f"{measure}_before"), sql.lit(0))).alias(measure)
        for measure in MEASURES
    ]
    return new.join(before, list(summary.keys), "left").select(*summary.keys, *sums)


def _commit(transaction: Transaction) -> float:
    started = time.monotonic()
    transaction.commit()
    return time.monotonic() - started
