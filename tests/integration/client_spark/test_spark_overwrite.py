"""A real Spark writes some columns, deletes rows by key, and replaces tables, each in one transaction."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession

from client import Conflict, TransactionHandle, TransactionManager
from client.spark import KeyColumn, TableMapping, ValueColumn, create_table, row_key, table_mapping

pytestmark = pytest.mark.integration


def save(data: DataFrame, table: str, mode: str = "append", **options: str) -> None:
    data.write.format("pythia").mode(mode).options(table=table, **options).save()


def load(spark: SparkSession, table: str, **options: str) -> set[tuple[Any, ...]]:
    rows = spark.read.format("pythia").options(table=table, **options).load().collect()
    assert len(set(rows)) == len(rows)
    return set(map(tuple, rows))


def frame(spark: SparkSession, keys: Sequence[int], value: str = "id") -> DataFrame:
    return spark.createDataFrame([(key,) for key in keys], "id BIGINT").selectExpr("id AS k", f"{value} AS v")


def shared(handle: TransactionHandle) -> dict[str, str]:
    return {"transaction": handle.to_json()}


@pytest.fixture
def wide(manager: TransactionManager, table: str) -> str:
    columns = (
        KeyColumn("m", "int"),
        KeyColumn("k", "bigint"),
        ValueColumn("a", "int"),
        ValueColumn("b", "string", "g"),
    )
    create_table(manager, TableMapping(table, ("m", "k"), columns))
    return table


def test_some_columns_are_updated_and_the_others_stay(spark: SparkSession, wide: str) -> None:
    save(spark.createDataFrame([(1, 1, 10, "x"), (1, 2, 20, "y")], "m INT, k BIGINT, a INT, b STRING"), wide)
    save(spark.createDataFrame([(1, 1, 11), (1, 2, None), (1, 3, 30)], "m INT, k BIGINT, a INT"), wide)
    save(spark.createDataFrame([(None, 4, 1)], "b STRING, k BIGINT, m INT"), wide)
    assert load(spark, wide) == {(1, 1, 11, "x"), (1, 2, None, "y"), (1, 3, 30, None), (1, 4, None, None)}


def test_rows_are_deleted_by_their_keys(spark: SparkSession, manager: TransactionManager, counts: str) -> None:
    with manager.transaction() as transaction:
        other = row_key(table_mapping(manager, counts), 3)
        transaction.put(counts, other, {b"f:unmapped": b"x", b"f:v": bytes(8)})
    save(frame(spark, range(10)), counts)
    before = manager.snapshot()
    save(frame(spark, [3, 5, 77]).select("k"), counts, operation="delete")
    assert load(spark, counts) == {(key, key) for key in range(10) if key not in (3, 5)}
    assert manager.snapshot().get(counts, other) == {}
    assert len(load(spark, counts, snapshot=before.handle().to_json())) == 10


def test_a_delete_takes_what_its_transaction_wrote_and_is_written_over(
    spark: SparkSession, manager: TransactionManager, counts: str
) -> None:
    with manager.transaction() as transaction:
        option = shared(transaction.handle())
        save(frame(spark, range(4)), counts, **option)
        save(frame(spark, range(2)).select("k"), counts, operation="delete", **option)
        save(frame(spark, [0], "-1L"), counts, **option)
        assert load(spark, counts, **option) == {(0, -1), (2, 2), (3, 3)}
    assert load(spark, counts) == {(0, -1), (2, 2), (3, 3)}


def test_a_delete_of_a_row_that_another_writes_is_a_conflict(
    spark: SparkSession, manager: TransactionManager, counts: str
) -> None:
    transaction = manager.transaction()
    save(frame(spark, [7]).select("k"), counts, operation="delete", **shared(transaction.handle()))
    save(frame(spark, [7]), counts)
    with pytest.raises(Conflict):
        transaction.commit()
    assert load(spark, counts) == {(7, 7)}


def test_an_overwrite_replaces_the_table(spark: SparkSession, manager: TransactionManager, counts: str) -> None:
    save(frame(spark, range(3_000)), counts)
    before = manager.snapshot()
    save(frame(spark, [5, 4_000], "-id"), counts, "overwrite")
    assert load(spark, counts) == {(5, -5), (4_000, -4_000)}
    assert len(load(spark, counts, snapshot=before.handle().to_json())) == 3_000
    assert [row for row, _ in manager.snapshot().scan(counts)] == [
        row_key(table_mapping(manager, counts), key) for key in (5, 4_000)
    ]
    save(frame(spark, []), counts, "overwrite")
    assert load(spark, counts) == set()


def test_a_table_is_overwritten_with_what_is_computed_from_itself(
    spark: SparkSession, manager: TransactionManager, counts: str, others: str
) -> None:
    save(frame(spark, range(100)), counts)
    with manager.transaction() as transaction:
        option = shared(transaction.handle())
        read = spark.read.format("pythia").options(table=counts, **option).load()
        save(read.where("k % 2 = 0").selectExpr("k + 1 AS k", "v + 1000 AS v"), counts, "overwrite", **option)
        save(frame(spark, [1]), others, "overwrite", **option)
        assert len(load(spark, counts)) == 100
    assert load(spark, counts) == {(key + 1, key + 1000) for key in range(0, 100, 2)}


def test_an_overwrite_deletes_what_its_transaction_wrote_before(
    spark: SparkSession, manager: TransactionManager, counts: str
) -> None:
    with manager.transaction() as transaction:
        option = shared(transaction.handle())
        save(frame(spark, range(10)), counts, **option)
        save(frame(spark, [3, 20], "-id"), counts, "overwrite", **option)
    assert load(spark, counts) == {(3, -3), (20, -20)}


def test_an_overwrite_conflicts_with_a_change_of_what_it_deletes(
    spark: SparkSession, manager: TransactionManager, counts: str
) -> None:
    save(frame(spark, range(10)), counts)
    transaction = manager.transaction()
    save(frame(spark, [1]), counts, "overwrite", **shared(transaction.handle()))
    save(frame(spark, [7], "-id"), counts)
    with pytest.raises(Conflict):
        transaction.commit()
    assert load(spark, counts) == {(key, -key if key == 7 else key) for key in range(10)}


def test_a_part_of_a_table_is_overwritten(spark: SparkSession, wide: str) -> None:
    schema = "m INT, k BIGINT, a INT, b STRING"
    save(spark.createDataFrame([(m, k, m, "x") for m in (6, 7, 8) for k in range(3)], schema), wide)
    july = spark.createDataFrame([(7, 1, 0, "new"), (7, 9, 0, "new")], schema)
    save(july, wide, "overwrite", overwrite_prefix="[7]")
    kept = {(m, k, m, "x") for m in (6, 8) for k in range(3)}
    assert load(spark, wide) == kept | {(7, 1, 0, "new"), (7, 9, 0, "new")}
    with pytest.raises(PySparkException, match="lies outside of what overwrite_prefix=\\[8\\] replaces"):
        save(july, wide, "overwrite", overwrite_prefix="[8]")
    assert load(spark, wide) == kept | {(7, 1, 0, "new"), (7, 9, 0, "new")}


@pytest.mark.parametrize(
    ("names", "options", "text"),
    [
        (["m", "k", "a"], {}, "column 'b' \\(string\\) is missing"),
        (["m", "k", "a", "b"], {"overwrite_prefix": '["July"]'}, "is a JSON list of values of the leading row key"),
        (["m", "k"], {"operation": "delete"}, "mode 'overwrite' all others: use one"),
    ],
)
def test_an_overwrite_that_cannot_be_meant_is_refused(
    spark: SparkSession, wide: str, names: list[str], options: dict[str, str], text: str
) -> None:
    data = spark.createDataFrame([(1, 1, 10, "x")], "m INT, k BIGINT, a INT, b STRING")
    save(data, wide)
    with pytest.raises(PySparkException, match=text):
        save(data.select(names), wide, "overwrite", **options)
    assert load(spark, wide) == {(1, 1, 10, "x")}
