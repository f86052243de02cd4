"""A real Spark reads what changed in real HBase between two moments, in one read and as a stream."""

from __future__ import annotations

import datetime
import time
import uuid
from collections.abc import Mapping
from dataclasses import dataclass, field
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyspark
import pytest
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.streaming.query import StreamingQuery

from client import Transaction, TransactionManager
from client.spark import KeyColumn, TableMapping, ValueColumn, create_table, land_batch, row_key
from client.spark.change_columns import COMMIT_TIMESTAMP, DELETE, UPSERT
from client.vacuum import run_vacuum
from drills.waiting import wait_until
from tests.horizon import at_once, await_horizon
from tests.integration.client_spark.conftest import counts_mapping
from tests.integration.client_spark.stream_files import forget_last_batch

pytestmark = pytest.mark.integration

WAIT_SECONDS_MAX = 120


@dataclass
class Table:
    """A table k → v that jobs change, and what Spark says of its changes."""

    spark: SparkSession
    manager: TransactionManager
    name: str

    @property
    def where(self) -> dict[str, str]:
        """The options that name it."""
        return {"table": self.name, "root": self.manager.settings.root}

    def put(self, values: Mapping[int, int]) -> int:
        """By a job; returns the moment after it."""
        rows = self.spark.createDataFrame(list(values.items()), "k BIGINT, v BIGINT")
        rows.write.format("pythia").mode("append").options(**self.where).save()
        return self.manager.snapshot().timestamp

    def put_plainly(self, values: Mapping[int, int | None]) -> int:
        """By a transaction without Spark, which takes no time; ``None``: the row is deleted."""
        with self.manager.transaction() as transaction:
            for key, value in values.items():
                row = row_key(counts_mapping(self.name), key)
                if value is None:
                    transaction.delete(self.name, row)
                else:
                    transaction.put(self.name, row, {b"f:v": value.to_bytes(8, "big", signed=True)})
        return self.manager.snapshot().timestamp

    def delete(self, *keys: int) -> int:
        rows = self.spark.createDataFrame([(key,) for key in keys], "k BIGINT")
        rows.write.format("pythia").mode("append").options(**self.where, operation="delete").save()
        return self.manager.snapshot().timestamp

    def load(self, since: int | str, **options: str) -> DataFrame:
        reader = self.spark.read.format("pythia").options(**self.where, changed_since=str(since), **options)
        return reader.load()

    def changes(self, since: int | str, **options: str) -> list[tuple[int, int | None, str]]:
        rows = self.load(since, **options).orderBy("k").collect()
        return [(row["k"], row["v"], row["_change_type"]) for row in rows]

    def rows(self) -> dict[int, int]:
        rows = self.spark.read.format("pythia").options(**self.where).load()
        return {row["k"]: row["v"] for row in rows.collect()}


@pytest.fixture
def source(spark: SparkSession, manager: TransactionManager, counts: str) -> Table:
    return Table(spark, manager, counts)


@pytest.fixture
def copy(spark: SparkSession, manager: TransactionManager, others: str) -> Table:
    return Table(spark, manager, others)


def test_what_changed_between_two_moments(source: Table) -> None:
    first = source.put({1: 1, 2: 2, 3: 3})
    second = source.put({2: 20, 4: 4})
    third = source.delete(3, 9)
    assert source.changes(0) == [(1, 1, UPSERT), (2, 20, UPSERT), (4, 4, UPSERT)]
    assert source.changes(first) == [(2, 20, UPSERT), (3, None, DELETE), (4, 4, UPSERT), (9, None, DELETE)]
    assert source.changes(first, as_of=str(second)) == [(2, 20, UPSERT), (4, 4, UPSERT)]
    assert source.changes(third) == []
    assert source.changes(first, as_of=str(first)) == []


def test_the_moment_may_be_a_name_or_a_time_and_a_transaction_reads_what_it_sees(source: Table) -> None:
    source.put({1: 1})
    source.manager.create_snapshot(f"landed.{source.name}")
    time.sleep(0.01)
    then = datetime.datetime.now(datetime.UTC).isoformat()
    time.sleep(0.01)
    with source.manager.transaction() as transaction:
        source.put({2: 2})
        pythia = {"transaction": transaction.handle().to_json()}
        assert source.changes(f"landed.{source.name}", **pythia) == [], "what committed after it began"
        source.spark.createDataFrame([(3, 3)], "k BIGINT, v BIGINT").write.format("pythia").mode("append").options(
            table=source.name, **pythia
        ).save()
        with pytest.raises(PySparkException, match="what it wrote itself is no change"):
            source.changes(0, **pythia)
    assert source.changes(f"landed.{source.name}") == source.changes(then) == [(2, 2, UPSERT), (3, 3, UPSERT)]
    source.manager.drop_snapshot(f"landed.{source.name}")


def test_each_change_says_when_it_committed(source: Table) -> None:
    before = source.put({1: 1, 2: 2})
    between = source.put({1: 10})
    after = source.put({2: 20})
    rows = {row["k"]: row[COMMIT_TIMESTAMP] for row in source.load(before).collect()}
    assert before < rows[1] <= between < rows[2] <= after


def test_some_columns_and_rows_of_them(source: Table) -> None:
    before = source.put(dict.fromkeys(range(20), 0))
    source.put(dict.fromkeys(range(0, 20, 2), 1))
    source.delete(15)
    columns = source.load(before, columns="k").columns
    assert columns == ["k", "_change_type", "_commit_timestamp"]
    pushed = source.load(before, push_filters="true").where("k >= 14 AND k < 17")
    assert {(row["k"], row["_change_type"]) for row in pushed.collect()} == {(14, UPSERT), (15, DELETE), (16, UPSERT)}
    deleted = source.load(before, push_filters="true").where("_change_type = 'delete'")
    assert [row["k"] for row in deleted.collect()] == [15]
    asked = source.spark.read.format("pythia").options(table=source.name, changed_since=str(before))
    only = asked.schema("_change_type STRING, v BIGINT").load().where("v IS NULL").collect()
    assert [tuple(row) for row in only] == [(DELETE, None)]
    assert source.load(before).count() == 11


@pytest.mark.parametrize("packed", [False, True])
def test_values_of_all_kinds_in_wide_and_packed_tables(
    spark: SparkSession, manager: TransactionManager, table: str, packed: bool
) -> None:
    columns = {"t": "string", "d": "decimal(9,2)", "w": "timestamp", "b": "boolean", "x": "double"}
    mapping = TableMapping(
        table,
        ("k", "l"),
        (KeyColumn("k", "string"), KeyColumn("l", "int"), *(ValueColumn(*each) for each in columns.items())),
        packed=packed,
    )
    create_table(manager, mapping)

    def put(rows: list[tuple[Any, ...]]) -> int:
        frame = spark.createDataFrame(rows, mapping.to_struct())
        frame.write.format("pythia").mode("append").option("table", table).save()
        return manager.snapshot().timestamp

    now = datetime.datetime(2026, 11, 27, 12, 30)
    before = put([("a", 1, "x", Decimal("1.50"), now, True, 0.5), ("b", 1, "y", None, None, False, 1.5)])
    changed = [("a", 1, None, None, None, None, None), ("ä", -1, "", Decimal("-9.99"), now, None, float("inf"))]
    put(changed)
    keys = spark.createDataFrame([("b", 1)], "k STRING, l INT")
    keys.write.format("pythia").mode("append").options(table=table, operation="delete").save()
    found = spark.read.format("pythia").options(table=table, changed_since=str(before)).load()
    assert [tuple(row)[:-1] for row in found.orderBy("k").collect()] == [
        (*changed[0], UPSERT),
        ("b", 1, None, None, None, None, None, DELETE),
        (*changed[1], UPSERT),
    ]


def test_a_view_of_changes(source: Table) -> None:
    before = source.put({1: 1, 2: 2})
    source.put({2: 3})
    options = f"(table '{source.name}', changed_since '{before}')"
    source.spark.sql(f"CREATE OR REPLACE TEMPORARY VIEW changed USING pythia OPTIONS {options}")
    assert [tuple(row) for row in source.spark.sql("SELECT k, v, _change_type FROM changed").collect()] == [
        (2, 3, UPSERT)
    ]


def test_what_cannot_be_read_is_refused_with_a_reason(source: Table) -> None:
    before = source.put({1: 1})
    later = source.put({1: 2})
    with pytest.raises(PySparkException, match="take the moments in their order"):
        source.changes(later, as_of=str(before))
    with pytest.raises(PySparkException, match="'changed_since': the timestamp 17 is of the year 1970"):
        source.load(17)
    with pytest.raises(PySparkException, match="'position_snapshot' are for streams"):
        source.changes(before, poll_interval_ms="5")
    with pytest.raises(PySparkException, match="are for reading: leave them out of a write"):
        source.spark.createDataFrame([(1, 1)], "k BIGINT, v BIGINT").write.format("pythia").mode("append").options(
            table=source.name, changed_since="0"
        ).save()


@pytest.fixture
def source_vacuumed(spark: SparkSession, forgetful: TransactionManager) -> Table:
    """Of an installation of its own, for a vacuum goes over all tables."""
    name = f"{forgetful.settings.root.strip('/')}-{uuid.uuid4().hex[:6]}"
    create_table(forgetful, counts_mapping(name))
    return Table(spark, forgetful, name)


def vacuum_beyond(manager: TransactionManager, moment: int) -> None:
    await_horizon(manager, lambda counted: counted.horizon > moment)
    run_vacuum(manager, retain_ms=0, wait=at_once)


def test_what_a_vacuum_may_have_dropped_is_refused(source_vacuumed: Table) -> None:
    source = source_vacuumed
    before = source.put_plainly({1: 1, 2: 2})
    source.put_plainly({2: None})
    vacuum_beyond(source.manager, before)
    with pytest.raises(PySparkException, match=f"cannot be read as of {before} any more"):
        source.changes(before)
    assert source.changes(0) == [(1, 1, UPSERT)]


@dataclass
class Following:
    """A query that does to one table what changes in another; each batch in one transaction."""

    source: Table
    copy: Table
    checkpoint: Path
    batches: list[int] = field(default_factory=list)

    def start(self, since: int | str = 0, *, available_now: bool = False, **options: str) -> StreamingQuery:
        reader = self.source.spark.readStream.format("pythia")
        changes = reader.options(table=self.source.name, changed_since=str(since), poll_interval_ms="1", **options)
        writer = changes.load().writeStream.foreachBatch(self.land).option("checkpointLocation", str(self.checkpoint))
        return (
            writer.trigger(availableNow=True) if available_now else writer.trigger(processingTime="1 second")
        ).start()

    def land(self, batch: DataFrame, number: int) -> None:
        batch = batch.persist()
        self.batches.append(batch.count())

        def job(transaction: Transaction) -> None:
            pythia = {**self.copy.where, "transaction": transaction.handle().to_json()}
            put = batch.where("_change_type = 'upsert'").select("k", "v")
            gone = batch.where("_change_type = 'delete'").select("k")
            put.write.format("pythia").mode("append").options(**pythia).save()
            gone.write.format("pythia").mode("append").options(operation="delete", **pythia).save()

        land_batch(self.copy.manager, batch, number, job)
        batch.unpersist()

    def until_same(self, query: StreamingQuery) -> None:
        def is_same() -> bool:
            error = query.exception()
            if error is not None:
                raise error
            return self.source.rows() == self.copy.rows()

        wait_until(is_same, "the copy to be the same", WAIT_SECONDS_MAX)

    def catch_up(self, since: int | str = 0, **options: str) -> None:
        """What there is by now."""
        query = self.start(since, available_now=True, **options)
        try:
            query.awaitTermination()
        finally:
            query.stop()


@pytest.fixture
def following(source: Table, copy: Table, tmp_path: Path) -> Following:
    return Following(source, copy, tmp_path / "checkpoint")


def test_a_stream_of_changes_keeps_a_copy(following: Following) -> None:
    source, copy = following.source, following.copy
    source.put({1: 1, 2: 2})
    query = following.start()
    try:
        following.until_same(query)
        source.put({2: 3, 3: 3})
        source.delete(1)
        following.until_same(query)
    finally:
        query.stop()
    assert copy.rows() == {2: 3, 3: 3}


def test_a_stream_goes_on_where_it_stopped_and_after_a_batch_that_was_not_finished(following: Following) -> None:
    source, copy = following.source, following.copy
    source.put({1: 1, 2: 2})
    following.catch_up()
    source.put({2: 3})
    source.delete(1)
    following.catch_up()
    assert (copy.rows(), following.batches) == ({2: 3}, [2, 2])
    forget_last_batch(following.checkpoint)
    source.put({5: 5})
    following.catch_up()
    if tuple(map(int, pyspark.__version__.split(".")[:2])) < (4, 2):  # there it stops with the one that it repeats
        following.catch_up()
    assert copy.rows() == source.rows() == {2: 3, 5: 5}
    assert following.batches == [2, 2, 2, 1], "the one that Spark had forgotten is the same, and the rest comes then"


def test_a_stream_may_begin_with_what_changes_from_a_moment_on(following: Following) -> None:
    since = following.source.put({1: 1})
    following.source.put({2: 2})
    following.catch_up(since)
    assert following.copy.rows() == {2: 2}


def test_vacuums_hurt_no_stream_that_moves_a_name_along(source_vacuumed: Table, tmp_path: Path) -> None:
    """Of an oracle that forgets snapshots sooner than anybody speaks for them: only the name holds a vacuum back."""
    source, seen = source_vacuumed, dict[int, int]()

    def follow(batch: DataFrame, number: int) -> None:
        for row in batch.collect():
            if row["_change_type"] == DELETE:
                seen.pop(row["k"], None)
            else:
                seen[row["k"]] = row["v"]

    options = {**source.where, "changed_since": "0", "poll_interval_ms": "1", "position_snapshot": "followed"}
    rows = source.spark.readStream.format("pythia").options(**options).load().writeStream.foreachBatch(follow)

    def await_all(wanted: dict[int, int]) -> None:
        wait_until(lambda: seen == wanted, "the stream to have seen everything", WAIT_SECONDS_MAX)

    source.put_plainly({1: 1, 2: 2})
    query = rows.option("checkpointLocation", str(tmp_path)).trigger(processingTime="1 second").start()
    try:
        await_all({1: 1, 2: 2})
        vacuum_beyond(source.manager, source.put_plainly({1: None, 11: 1}))
        await_all({2: 2, 11: 1})
        vacuum_beyond(source.manager, source.put_plainly({2: None}))
        await_all({11: 1})
    finally:
        query.stop()


def test_a_name_keeps_for_a_stream_that_stands_still_what_its_next_batch_needs(
    source_vacuumed: Table, tmp_path: Path
) -> None:
    source, seen = source_vacuumed, dict[int, str]()

    def follow(batch: DataFrame, number: int) -> None:
        seen.update((row["k"], row["_change_type"]) for row in batch.collect())

    def catch_up(name: str) -> None:
        options = {**source.where, "changed_since": "0", "position_snapshot": name}
        rows = source.spark.readStream.format("pythia").options(**options).load().writeStream.foreachBatch(follow)
        query = rows.option("checkpointLocation", str(tmp_path / name)).trigger(availableNow=True).start()
        try:
            query.awaitTermination()
        finally:
            query.stop()

    source.put_plainly({1: 1, 2: 2})
    catch_up("kept")
    catch_up("dropped")
    moment = source.put_plainly({1: None})
    source.manager.drop_snapshot("dropped")
    run_vacuum(source.manager, retain_ms=0, wait=at_once)
    catch_up("kept")
    assert seen == {1: DELETE, 2: UPSERT}
    source.put_plainly({2: None})
    source.manager.drop_snapshot("kept")
    vacuum_beyond(source.manager, moment)
    with pytest.raises(PySparkException, match="a vacuum drops, or has dropped, what is only seen below"):
        catch_up("dropped")


@pytest.mark.parametrize(
    ("options", "reason"),
    [
        ({"as_of": "2026-01-01T00:00:00Z"}, "leave the options 'transaction', 'snapshot', 'as_of' and 'push_filters'"),
        ({"push_filters": "true"}, "leave the options 'transaction', 'snapshot', 'as_of' and 'push_filters'"),
        ({"poll_interval_ms": "0"}, "'poll_interval_ms' is a whole number from 1"),
        ({"operation": "delete"}, "are for writing"),
    ],
)
def test_what_a_stream_cannot_be_told(following: Following, options: dict[str, str], reason: str) -> None:
    with pytest.raises(PySparkException, match=reason):
        following.source.spark.readStream.format("pythia").options(
            table=following.source.name, changed_since="0", **options
        ).load().writeStream.foreachBatch(following.land).option(
            "checkpointLocation", str(following.checkpoint)
        ).start().awaitTermination()


def test_a_stream_has_to_be_told_where_to_begin(following: Following) -> None:
    rows = following.source.spark.readStream.format("pythia").option("table", following.source.name).load()
    query = rows.writeStream.foreachBatch(following.land).option("checkpointLocation", str(following.checkpoint))
    with pytest.raises(PySparkException, match="say from when on, with 'changed_since'"):
        query.start().awaitTermination()
