"""Spark jobs that write a DataFrame into a new table and read it twice: ours, plain ones, and one row by row.

Each side makes its tables, tells how many seconds a job took, and drops what it made. Written with a session that has
both data sources registered.
"""

from __future__ import annotations

import time
import uuid
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Final, Protocol

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as sql
from pyspark.sql.types import StringType, StructField, StructType

from benchmarks.cpu_time import await_rest
from benchmarks.row_by_row import key_ranges, read_rows, write_rows
from client import ClientSettings, TransactionManager
from client.spark import TableMapping, create_table
from store import Family

PARTITIONS: Final = 4
REST_MS_MAX: Final = 30_000
"""HBase goes on flushing and compacting what was written; nobody pays for that but who wrote it."""


@dataclass(frozen=True, slots=True)
class Taken:
    """The seconds of one write and of two reads.

    The first read meets what HBase makes of the write: a table that outgrew its region is divided just then, and what
    was flushed is in no cache. The second one does not.
    """

    write: float
    read: float
    read_again: float


class Side(Protocol):
    """One way to write and read a DataFrame."""

    @property
    def name(self) -> str:
        """What it is called in results."""
        ...

    def run(self, frame: DataFrame) -> Taken:
        """Write it into a new table, and read all of that, twice."""
        ...


@dataclass(frozen=True, slots=True)
class Ours:
    """A transaction. ``shadow_cells``: ``"written"`` before the write returns, ``"deferred"``, or ``"none"``."""

    name: str
    spark: SparkSession
    manager: TransactionManager
    mapping: TableMapping
    shadow_cells: str

    def run(self, frame: DataFrame) -> Taken:
        """See ``Side``."""
        mapping = renamed(self.mapping)
        create_table(self.manager, mapping)
        options = source_options(self.manager.settings, mapping.table)
        writer = frame.write.format("pythia").mode("append").options(**options, shadow_cells=self.shadow_cells)
        write = seconds_of(writer.save)
        reads = _read_twice(self.spark.read.format("pythia").options(**options).load())
        self.manager.finish_bulk_writes()
        self.manager.drop_table(mapping.table)
        return Taken(write, *reads)


@dataclass(frozen=True, slots=True)
class Plain:
    """The same cells without a transaction (``benchmarks.plain_source``)."""

    name: str
    spark: SparkSession
    manager: TransactionManager
    mapping: TableMapping

    def run(self, frame: DataFrame) -> Taken:
        """See ``Side``."""
        mapping = renamed(self.mapping)
        self.manager.store.create_table(mapping.table, [Family(name) for name in mapping.families])
        options = {"settings": self.manager.settings.to_json(), "mapping": mapping.to_json()}
        write = seconds_of(frame.write.format("plain").mode("append").options(**options).save)
        reads = _read_twice(self.spark.read.format("plain").options(**options).load())
        self.manager.store.drop_table(mapping.table)
        return Taken(write, *reads)


@dataclass(frozen=True, slots=True)
class RowByRow:
    """HappyBase in the tasks (``benchmarks.row_by_row``)."""

    name: str
    spark: SparkSession
    settings: ClientSettings
    manager: TransactionManager
    mapping: TableMapping

    def run(self, frame: DataFrame) -> Taken:
        """See ``Side``."""
        table, thrift, key = renamed(self.mapping).table, self.settings.thrift, self.mapping.row_key
        self.manager.store.create_table(table, [Family("f")])
        write = seconds_of(lambda: frame.foreachPartition(lambda rows: write_rows(thrift, table, key, rows)))
        ranges = key_ranges(thrift, table, PARTITIONS)
        parts, names = self.spark.sparkContext.parallelize(ranges, PARTITIONS), frame.columns
        rows = parts.flatMap(lambda part: read_rows(thrift, table, names, part))
        schema = StructType([StructField(name, StringType()) for name in names])
        reads = _read_twice(self.spark.createDataFrame(rows, schema, verifySchema=False))
        self.manager.store.drop_table(table)
        return Taken(write, *reads)


def source_options(settings: ClientSettings, table: str) -> dict[str, str]:
    """What the data source has to be told."""
    return {"table": table, "zookeeper": settings.zookeeper, "thrift": settings.thrift, "root": settings.root}


def renamed(mapping: TableMapping) -> TableMapping:
    """The same for a table of a name that nobody has used."""
    table = f"{mapping.table}_{uuid.uuid4().hex[:8]}"
    return TableMapping(table, mapping.row_key, mapping.columns, mapping.conflict_level, mapping.packed)


def narrow_rows(spark: SparkSession, rows: int) -> DataFrame:
    """A generated DataFrame: a key, two numbers and a short text."""
    return spark.range(rows, numPartitions=PARTITIONS).select(
        sql.col("id"),
        (sql.col("id") % 1_000).cast("int").alias("part"),
        (sql.col("id") * 0.25).alias("amount"),
        sql.concat(sql.lit("name "), sql.col("id") % 100_000).alias("name"),
    )


def _read_twice(frame: DataFrame) -> tuple[float, float]:
    """The seconds of each, begun when the machine is at rest."""
    await_rest(REST_MS_MAX)
    first = seconds_of(partial(_read_all, frame))
    await_rest(REST_MS_MAX)
    return first, seconds_of(partial(_read_all, frame))


def _read_all(frame: DataFrame) -> None:
    frame.write.format("noop").mode("overwrite").save()


def seconds_of(job: Callable[[], object]) -> float:
    """How long a job takes."""
    started = time.monotonic()
    job()
    return time.monotonic() - started
