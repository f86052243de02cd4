"""Jobs of a real Spark write into real HBase: all or nothing, whatever becomes of their tasks."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import cast

import pyarrow as pa
import pytest
from pyspark import TaskContext, cloudpickle
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.datasource import DataSourceArrowWriter, WriterCommitMessage
from pyspark.sql.types import StructType

from client import Conflict, TransactionAborted, TransactionHandle, TransactionManager
from client.claims import claim_of
from client.spark import PythiaDataSource, register, row_key, table_mapping
from client.spark.writer import PythiaWriter, WrittenRows

pytestmark = pytest.mark.integration

cloudpickle.register_pickle_by_value(sys.modules[__name__])  # type: ignore[no-untyped-call]  # Spark's Python workers cannot import this file

ROWS = 1_000


def frame(spark: SparkSession, start: int, stop: int, value: str = "id") -> DataFrame:
    return spark.range(start, stop, numPartitions=3).selectExpr("id AS k", f"{value} AS v")


def save(data: DataFrame, table: str, source: str = "pythia", **options: str) -> None:
    data.write.format(source).mode("append").options(table=table, **options).save()


def load(spark: SparkSession, table: str, **options: str) -> dict[int, int]:
    rows = spark.read.format("pythia").options(table=table, **options).load().collect()
    assert len({row["k"] for row in rows}) == len(rows)
    return {row["k"]: row["v"] for row in rows}


def shared(handle: TransactionHandle) -> dict[str, str]:
    return {"transaction": handle.to_json()}


def test_a_job_appends_and_replaces_rows_by_their_key(spark: SparkSession, counts: str) -> None:
    save(frame(spark, 0, ROWS), counts)
    assert load(spark, counts) == {key: key for key in range(ROWS)}
    save(frame(spark, 10, 20, "CAST(NULL AS BIGINT)"), counts)
    save(frame(spark, ROWS, ROWS + 5, "-id"), counts)
    after = {key: None if 10 <= key < 20 else key for key in range(ROWS)} | {k: -k for k in range(ROWS, ROWS + 5)}
    assert load(spark, counts) == after


def test_a_job_that_is_started_again_with_its_key_lands_once(
    spark: SparkSession, manager: TransactionManager, counts: str
) -> None:
    """Of very many rows, too, which Spark goes on to hand over."""
    for value in ("id", "-id"):
        save(frame(spark, 0, 200_000, value), counts, claim=f"load of {counts}")
    assert spark.read.format("pythia").option("table", counts).load().where("k = v").count() == 200_000
    assert claim_of(manager, f"load of {counts}", table=counts) is not None
    with pytest.raises(PySparkException, match="the option 'claim' is for a write with a transaction of its own"):
        save(frame(spark, 0, 1), counts, claim="another", **shared(manager.transaction().handle()))


def test_another_thread_of_the_driver_writes_once_it_has_registered(spark: SparkSession, counts: str) -> None:
    def write() -> None:
        register(spark)
        save(frame(spark, 0, 10), counts)

    with ThreadPoolExecutor(1) as threads:
        threads.submit(write).result()
    assert load(spark, counts) == {key: key for key in range(10)}


def test_another_session_of_the_driver_writes_once_it_is_registered(spark: SparkSession, counts: str) -> None:
    other = spark.newSession()
    try:
        register(other)
        save(frame(other, 0, 10), counts)
        assert load(other, counts) == {key: key for key in range(10)}
    finally:
        register(spark)  # Spark looks formats up in the session that is the thread's active one


def test_several_dataframes_and_tables_land_in_one_transaction(
    spark: SparkSession, manager: TransactionManager, counts: str, others: str
) -> None:
    before = manager.snapshot()
    with manager.transaction() as transaction:
        option = shared(transaction.handle())
        save(frame(spark, 0, 100), counts, **option)
        save(frame(spark, 100, 150), counts, **option)
        save(frame(spark, 0, 10), others, **option)
        transaction.put(others, row_key(table_mapping(manager, others), 77), {b"f:v": (78).to_bytes(8, "big")})
        assert load(spark, counts) == load(spark, others) == {}
        assert load(spark, counts, **option) == {key: key for key in range(150)}
        assert load(spark, others, **option) == {key: key for key in range(10)}
    assert load(spark, counts) == {key: key for key in range(150)}
    assert load(spark, others) == {key: key for key in range(10)} | {77: 78}
    earlier = {"snapshot": before.handle().to_json()}
    assert load(spark, counts, **earlier) == load(spark, others, **earlier) == {}


def test_a_transaction_that_is_rolled_back_leaves_nothing(
    spark: SparkSession, manager: TransactionManager, counts: str
) -> None:
    save(frame(spark, 0, 10), counts)
    transaction = manager.transaction()
    save(frame(spark, 5, 50, "-id"), counts, **shared(transaction.handle()))
    transaction.rollback()
    assert load(spark, counts) == {key: key for key in range(10)}


def test_two_jobs_that_write_one_row_conflict(spark: SparkSession, manager: TransactionManager, counts: str) -> None:
    first, second = manager.transaction(), manager.transaction()
    save(frame(spark, 0, 10), counts, **shared(first.handle()))
    save(frame(spark, 9, 20, "-id"), counts, **shared(second.handle()))
    first.commit()
    with pytest.raises(Conflict):
        second.commit()
    assert load(spark, counts) == {key: key for key in range(10)}


def test_an_empty_dataframe_is_a_job_like_any_other(spark: SparkSession, counts: str) -> None:
    save(frame(spark, 0, 0), counts)
    assert load(spark, counts) == {}


# --- what can go wrong ------------------------------------------------------------------------------------------------


class DelegatingWriter(DataSourceArrowWriter):
    """The real writer, with a fault of the test's choice around it."""

    def __init__(self, writer: PythiaWriter) -> None:
        self.writer = writer

    def write(self, iterator: Iterator[pa.RecordBatch]) -> WrittenRows:
        return self.writer.write(iterator)

    def commit(self, messages: Sequence[WriterCommitMessage | None]) -> None:
        self.writer.commit(messages)

    def abort(self, messages: Sequence[WriterCommitMessage | None]) -> None:
        self.writer.abort(messages)


class HalfWritten(DelegatingWriter):
    """The first ``failures`` attempts of every task write half their rows and fail."""

    failures = 1

    def write(self, iterator: Iterator[pa.RecordBatch]) -> WrittenRows:
        return super().write(self.first_half_then_rest(iterator))

    def first_half_then_rest(self, iterator: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        task = TaskContext.get()
        assert task is not None
        for batch in iterator:
            half = batch.num_rows // 2
            yield batch.slice(0, half)
            if task.attemptNumber() < self.failures:
                raise RuntimeError("a fault that the test asked for")
            yield batch.slice(half)


class AlwaysHalfWritten(HalfWritten):
    failures = 1_000


class AnswerLost(DelegatingWriter):
    """The commit takes effect, and then seems to fail."""

    def commit(self, messages: Sequence[WriterCommitMessage | None]) -> None:
        super().commit(messages)
        raise RuntimeError("the answer was lost, says the test")


def register_faulty(spark: SparkSession, fault: type[DelegatingWriter]) -> str:
    register(spark)
    source_name = fault.__name__.lower()
    connection = {name: str(spark.conf.get(f"spark.pythia.{name}")) for name in ("zookeeper", "thrift", "root")}

    class Faulty(PythiaDataSource):
        @classmethod
        def name(cls) -> str:
            return source_name

        def writer(self, schema: StructType, overwrite: bool) -> PythiaWriter:
            return cast(PythiaWriter, fault(super().writer(schema, overwrite)))

    Faulty.connection = connection
    spark.dataSource.register(Faulty)
    return source_name


def test_tasks_that_fail_half_way_and_are_retried_write_the_right_table(
    spark: SparkSession, manager: TransactionManager, counts: str
) -> None:
    source = register_faulty(spark, HalfWritten)
    save(frame(spark, 0, ROWS), counts, source)
    assert load(spark, counts) == {key: key for key in range(ROWS)}
    with manager.transaction() as transaction:
        save(frame(spark, 0, ROWS, "-id"), counts, source, **shared(transaction.handle()))
    assert load(spark, counts) == {key: -key for key in range(ROWS)}


def test_of_a_job_that_fails_nothing_is_ever_visible(
    spark: SparkSession, manager: TransactionManager, counts: str
) -> None:
    save(frame(spark, 0, 10), counts)
    with pytest.raises(PySparkException, match="a fault that the test asked for"):
        save(frame(spark, 0, ROWS, "-id"), counts, register_faulty(spark, AlwaysHalfWritten))
    assert load(spark, counts) == {key: key for key in range(10)}
    save(frame(spark, 5, 20), counts)
    assert load(spark, counts) == {key: key for key in range(20)}


def test_a_transaction_with_a_failed_job_cannot_commit(
    spark: SparkSession, manager: TransactionManager, counts: str, others: str
) -> None:
    transaction = manager.transaction()
    option = shared(transaction.handle())
    save(frame(spark, 0, 10), others, **option)
    with pytest.raises(PySparkException, match="a fault that the test asked for"):
        save(frame(spark, 0, ROWS), counts, register_faulty(spark, AlwaysHalfWritten), **option)
    with pytest.raises(TransactionAborted, match="a failed Spark write"):
        transaction.commit()
    assert load(spark, counts) == load(spark, others) == {}


def test_a_commit_that_only_seemed_to_fail_is_not_undone(spark: SparkSession, counts: str) -> None:
    with pytest.raises(PySparkException, match="the answer was lost"):
        save(frame(spark, 0, ROWS), counts, register_faulty(spark, AnswerLost))
    assert load(spark, counts) == {key: key for key in range(ROWS)}


def test_a_failed_job_that_wrote_nothing_dooms_its_transaction_too(
    spark: SparkSession, manager: TransactionManager, counts: str, others: str
) -> None:
    transaction = manager.transaction()
    option = shared(transaction.handle())
    save(frame(spark, 0, 10), others, **option)
    with pytest.raises(PySparkException, match="DIVIDE_BY_ZERO"):
        save(frame(spark, 0, 3, "1 DIV (id - id)"), counts, **option)
    with pytest.raises(TransactionAborted):
        transaction.commit()
    assert load(spark, others) == {}


# --- what a job can get wrong -----------------------------------------------------------------------------------------


def with_other_types(spark: SparkSession) -> DataFrame:
    return spark.createDataFrame([(1, "x", 2)], "k BIGINT, v STRING, w INT")


@pytest.mark.parametrize(
    ("make", "options", "text"),
    [
        (with_other_types, {}, "column 'v' is string, the table has bigint"),
        (with_other_types, {}, "column 'w' \\(int\\) is not in the table"),
        (lambda spark: spark.range(3).toDF("v"), {}, "column 'k' \\(bigint\\) is missing"),
        (lambda spark: spark.range(3).toDF("k"), {}, "no column but the row key"),
        (lambda spark: frame(spark, 0, 2), {"operation": "delete"}, "deleted by their row key, without v"),
        (lambda spark: frame(spark, 0, 2), {"overwrite_prefix": "[1]"}, "is for mode 'overwrite'"),
        (lambda spark: frame(spark, 0, 2), {"tabel": "x"}, "unknown option tabel; the options are table"),
        (lambda spark: frame(spark, 0, 2), {"table": "no_such_table"}, "there is no table 'no_such_table'"),
        (lambda spark: frame(spark, 0, 2), {"columns": "v"}, "are for reading"),
        (lambda spark: frame(spark, 0, 2), {"as_of": "2013-07-04T12:00Z"}, "are for reading"),
        (lambda spark: frame(spark, 0, 2), {"transaction": "rubbish"}, "transaction handle: not the JSON text"),
        (lambda spark: frame(spark, 0, 4).selectExpr("NULLIF(k, 3) AS k", "v"), {}, "'k' is null"),
        (lambda spark: frame(spark, 0, 4).selectExpr("k DIV 4 AS k", "v").coalesce(1), {}, "have the row key"),
    ],
)
def test_what_does_not_fit_is_refused_with_a_reason(
    spark: SparkSession, counts: str, make: Callable[[SparkSession], DataFrame], options: dict[str, str], text: str
) -> None:
    with pytest.raises(PySparkException, match=text):
        save(make(spark), **{"table": counts, **options})
    assert load(spark, counts) == {}


def test_sparks_default_save_mode_is_refused_by_spark_itself(spark: SparkSession, counts: str) -> None:
    with pytest.raises(PySparkException, match="UNSUPPORTED_DATA_SOURCE_SAVE_MODE"):
        frame(spark, 0, 2).write.format("pythia").option("table", counts).save()


def test_a_table_without_a_mapping_is_refused(spark: SparkSession, manager: TransactionManager, table: str) -> None:
    manager.create_table(table, ["f"])
    with pytest.raises(PySparkException, match="has no Spark mapping"):
        save(frame(spark, 0, 2), table)
    with pytest.raises(PySparkException, match="has no Spark mapping"):
        load(spark, table)
