"""A real Spark streams into real HBase: each batch once, whatever becomes of the query, its checkpoint, the oracle."""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import ClassVar

import pytest
from pyspark import cloudpickle
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.datasource import WriterCommitMessage
from pyspark.sql.types import StructType

from client import ClientSettings, Committed, Transaction, TransactionManager
from client.spark import (
    KeyColumn,
    PythiaDataSource,
    TableMapping,
    ValueColumn,
    create_table,
    land_batch,
    register,
    row_key,
    table_mapping,
)
from client.spark.progress import Progress
from client.spark.streaming import PythiaStreamWriter, stream_progress
from tests.integration.client_spark.conftest import counts_mapping
from tests.integration.client_spark.stream_files import add_file, forget_last_batch, query_of
from tests.integration.conftest import Installation
from tests.integration.oracle_processes import SHORT_LEASE_MS

pytestmark = pytest.mark.integration

cloudpickle.register_pickle_by_value(sys.modules[__name__])  # type: ignore[no-untyped-call]  # Spark's Python workers cannot import this file

V = b"f:v"


@dataclass
class Stream:
    """A query over the files of a folder, one a batch, and what of it is in its table."""

    spark: SparkSession
    manager: TransactionManager
    table: str
    folder: Path
    files: int = 0

    @property
    def checkpoint(self) -> Path:
        return self.folder / "checkpoint"

    @property
    def query(self) -> str:
        return query_of(self.checkpoint)

    def add(self, values: dict[int, int]) -> None:
        """Another file of input: another batch."""
        add_file(self.folder, self.files, values)
        self.files += 1

    def rows(self) -> DataFrame:
        source = self.spark.readStream.schema("k BIGINT, v BIGINT").option("maxFilesPerTrigger", "1")
        return source.json(str(self.folder / "input"))

    def run(
        self,
        source: str = "pythia",
        options: Mapping[str, str] | None = None,
        *,
        rows: DataFrame | None = None,
        mode: str = "append",
    ) -> None:
        """Run the query over all input there is; raises what made it fail."""
        writer = (self.rows() if rows is None else rows).writeStream.format(source).outputMode(mode)
        writer = writer.options(**{"table": self.table, "checkpointLocation": str(self.checkpoint), **(options or {})})
        query = writer.trigger(availableNow=True).start()
        try:
            query.awaitTermination()
        finally:
            query.stop()

    def landed(self, key: int) -> list[int]:
        """Every value of a row that committed, the newest first."""
        row = row_key(table_mapping(self.manager, self.table), key)
        values, before = [], None
        while versions := self.manager.store.versions(self.table, row, V, before=before, limit=1):
            before = versions[0].timestamp
            if isinstance(self.manager.outcome(before), Committed):
                values.append(int.from_bytes(versions[0].value[-8:], "big", signed=True))
        return values

    def on_record(self) -> Progress | None:
        return stream_progress(self.manager, self.query, self.table)


@pytest.fixture
def stream(spark: SparkSession, manager: TransactionManager, counts: str, tmp_path: Path) -> Stream:
    made = Stream(spark, manager, counts, tmp_path)
    for number in range(3):
        made.add({0: number, number + 1: number})
    return made


ONCE = ([2, 1, 0], [0], [1], [2])


def everything(stream: Stream) -> tuple[list[int], ...]:
    return tuple(stream.landed(key) for key in range(4))


def test_each_batch_lands_once_and_the_query_goes_on_where_it_stopped(stream: Stream) -> None:
    stream.run()
    assert (everything(stream), stream.on_record()) == (ONCE, Progress(0, 2))
    stream.add({0: 7})
    stream.run()
    assert (stream.landed(0), stream.on_record()) == ([7, 2, 1, 0], Progress(0, 3))


def test_a_batch_that_spark_has_forgotten_is_not_written_again(stream: Stream) -> None:
    stream.run()
    assert forget_last_batch(stream.checkpoint) == 2
    stream.add({0: 7})
    stream.run()
    assert (stream.landed(0), everything(stream)[1:]) == ([7, 2, 1, 0], ONCE[1:])
    assert stream.on_record() == Progress(0, 3)


def test_a_stream_with_a_checkpoint_of_its_own_writes_what_another_one_wrote(stream: Stream, tmp_path: Path) -> None:
    """The record is the query's: the input alone says nothing."""
    stream.run()
    stream.run(options={"checkpointLocation": str(tmp_path / "another")})
    assert stream.landed(1) == [0, 0]


class Faulty(PythiaStreamWriter):
    """The real writer, with a fault around its commit."""


class FailsBeforeItsCommit(Faulty):
    def commit(self, messages: Sequence[WriterCommitMessage | None], batch: int) -> None:
        raise RuntimeError("a fault that the test asked for")


class FailsAfterItsCommit(Faulty):
    def commit(self, messages: Sequence[WriterCommitMessage | None], batch: int) -> None:
        super().commit(messages, batch)
        raise RuntimeError("a fault that the test asked for")


class KillsTheOracle(Faulty):
    oracle: ClassVar[int] = 0

    def commit(self, messages: Sequence[WriterCommitMessage | None], batch: int) -> None:
        os.kill(self.oracle, signal.SIGKILL)
        super().commit(messages, batch)


def register_faulty(spark: SparkSession, fault: type[Faulty]) -> str:
    register(spark)
    source_name = fault.__name__.lower()
    addresses = {name: str(spark.conf.get(f"spark.pythia.{name}")) for name in ("zookeeper", "thrift", "root")}

    class FaultySource(PythiaDataSource):
        connection = addresses

        @classmethod
        def name(cls) -> str:
            return source_name

        def streamWriter(self, schema: StructType, overwrite: bool) -> PythiaStreamWriter:  # noqa: N802
            impatient = replace(self._job.settings, deadline_ms=5_000)
            return fault(replace(self._job, settings=impatient), self._mapping())

    spark.dataSource.register(FaultySource)
    return source_name


@pytest.mark.parametrize(("fault", "landed"), [(FailsBeforeItsCommit, []), (FailsAfterItsCommit, [0])])
def test_a_batch_whose_commit_fails_comes_again_and_lands_once(
    stream: Stream, fault: type[Faulty], landed: list[int]
) -> None:
    with pytest.raises(PySparkException, match="a fault that the test asked for"):
        stream.run(register_faulty(stream.spark, fault))
    assert stream.landed(0) == landed
    stream.run()
    assert (everything(stream), stream.on_record()) == (ONCE, Progress(0, 2))


def test_a_stream_goes_on_once_the_oracle_is_back_that_was_killed_at_a_commit(
    stream: Stream, installation: Installation
) -> None:
    first = installation.start("first", SHORT_LEASE_MS)
    first.until_primary()
    services = installation.services
    where = {"zookeeper": services.zookeeper, "thrift": services.thrift, "root": installation.root}
    settings = ClientSettings(services.zookeeper, services.thrift, installation.root)
    with TransactionManager.connect(settings) as manager:
        stream.manager, stream.table = manager, f"{stream.table}_elsewhere"
        create_table(manager, counts_mapping(stream.table))
        KillsTheOracle.oracle = first.process.pid
        with pytest.raises(PySparkException):
            stream.run(register_faulty(stream.spark, KillsTheOracle), where)
        assert first.end(signal.SIGKILL) == -signal.SIGKILL
        installation.start("second", SHORT_LEASE_MS).until_primary()
        assert stream.landed(0) == []
        stream.run(options=where)
        assert (everything(stream), stream.on_record()) == (ONCE, Progress(0, 2))


class Died(Exception):
    """A driver's end, as far as a query sees it."""


def land(stream: Stream, sums: str, *, dies_after: bool = False) -> None:
    """Run the query with a function that writes two tables, one of them computed from what it holds already."""

    def write(batch: DataFrame, number: int) -> None:
        def job(transaction: Transaction) -> None:
            where = {"transaction": transaction.handle().to_json()}
            known = stream.spark.read.format("pythia").options(table=sums, **where).load()
            both = known.unionByName(batch).groupBy("k").sum("v").withColumnRenamed("sum(v)", "v")
            for rows, table in ((both, sums), (batch, stream.table)):
                rows.write.format("pythia").mode("append").options(table=table, **where).save()

        if land_batch(stream.manager, batch, number, job) and dies_after:
            raise Died

    query = stream.rows().writeStream.foreachBatch(write).option("checkpointLocation", str(stream.checkpoint))
    running = query.trigger(availableNow=True).start()
    try:
        running.awaitTermination()
    finally:
        running.stop()


def test_a_function_of_foreach_batch_lands_each_batch_once_in_all_its_tables(stream: Stream, others: str) -> None:
    for _ in range(2):
        with pytest.raises(PySparkException):
            land(stream, others, dies_after=True)
    assert stream_progress(stream.manager, stream.query) == Progress(0, 1)
    land(stream, others)
    assert forget_last_batch(stream.checkpoint) == 2
    stream.add({0: 7})
    land(stream, others)
    sums = stream.spark.read.format("pythia").option("table", others).load().orderBy("k").collect()
    assert [tuple(row) for row in sums] == [(0, 10), (1, 0), (2, 1), (3, 2)]
    assert (stream.landed(0), everything(stream)[1:]) == ([7, 2, 1, 0], ONCE[1:])
    assert (stream_progress(stream.manager, stream.query), stream.on_record()) == (Progress(0, 3), None)


def test_batches_without_rows_are_on_record(stream: Stream) -> None:
    stream.run(rows=stream.rows().where("v < 0"))
    assert (everything(stream), stream.on_record()) == (([], [], [], []), Progress(0, 2))


def test_a_stream_of_some_of_the_columns_leaves_the_others_alone(stream: Stream, spark: SparkSession) -> None:
    table = f"{stream.table}_wide"
    columns = (KeyColumn("k", "bigint"), ValueColumn("v", "bigint"), ValueColumn("w", "string"))
    create_table(stream.manager, TableMapping(table, ("k",), columns))
    before = spark.createDataFrame([(0, -1, "kept"), (9, -1, "kept too")], "k BIGINT, v BIGINT, w STRING")
    before.write.format("pythia").mode("append").option("table", table).save()
    stream.run(options={"table": table})
    after = spark.read.format("pythia").option("table", table).load().where("k in (0, 9)").orderBy("k")
    assert [tuple(row) for row in after.collect()] == [(0, 2, "kept"), (9, -1, "kept too")]


def test_what_does_not_fit_is_refused_with_a_reason(stream: Stream) -> None:
    with pytest.raises(PySparkException, match=r"column 'k' \(bigint\) is missing"):
        stream.run(rows=stream.rows().select("v"))
    with pytest.raises(PySparkException, match="no column but the row key"):
        stream.run(rows=stream.rows().select("k"))
    with pytest.raises(PySparkException, match="leave the options 'transaction'"):
        stream.run(options={"columns": "v"})


def test_complete_is_refused_here_and_update_by_spark_itself(stream: Stream) -> None:
    sums = stream.rows().groupBy("k").agg({"v": "sum"}).withColumnRenamed("sum(v)", "v")
    with pytest.raises(PySparkException, match="output mode 'complete' is not supported"):
        stream.run(rows=sums, mode="complete")
    with pytest.raises(PySparkException, match="does not support Update mode"):
        stream.run(rows=sums, mode="update")
