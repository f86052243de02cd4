"""A packed table in Spark: written, read in part, deleted from, overwritten as any other; and deferred shadow cells."""

from __future__ import annotations

import pytest
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

from client import TransactionManager
from client.cells import shadow_column
from client.spark import KeyColumn, TableMapping, ValueColumn, create_table
from store import KeyRange
from tests.integration.client_spark.test_spark_overwrite import frame, load, save

pytestmark = pytest.mark.integration


@pytest.fixture
def packed(manager: TransactionManager, table: str) -> str:
    columns = (KeyColumn("k", "bigint"), ValueColumn("a", "int"), ValueColumn("b", "string"))
    create_table(manager, TableMapping(table, ("k",), columns, packed=True))
    return table


def test_a_packed_table_is_a_table_like_others(spark: SparkSession, manager: TransactionManager, packed: str) -> None:
    schema = "k BIGINT, a INT, b STRING"
    save(spark.createDataFrame([(1, 10, "x"), (2, None, ""), (3, None, None), (4, 4, "y")], schema), packed)
    before = manager.snapshot()
    save(spark.createDataFrame([(1, 11, None)], schema), packed)
    save(spark.createDataFrame([(4,)], "k BIGINT"), packed, operation="delete")
    assert load(spark, packed) == {(1, 11, None), (2, None, ""), (3, None, None)}
    assert load(spark, packed, columns="k,b") == {(1, None), (2, ""), (3, None)}
    assert load(spark, packed, snapshot=before.handle().to_json()) == {
        (1, 10, "x"),
        (2, None, ""),
        (3, None, None),
        (4, 4, "y"),
    }
    save(spark.createDataFrame([(7, 7, "z")], schema), packed, mode="overwrite")
    assert load(spark, packed) == {(7, 7, "z")}


def test_a_write_of_some_of_the_columns_is_refused(spark: SparkSession, packed: str) -> None:
    with pytest.raises(PySparkException, match="column 'b'"):
        save(spark.createDataFrame([(1, 10)], "k BIGINT, a INT"), packed)


def test_a_job_without_shadow_cells_is_read_as_any_other(
    spark: SparkSession, manager: TransactionManager, counts: str
) -> None:
    save(frame(spark, range(20)), counts, shadow_cells="none")
    assert load(spark, counts) == {(key, key) for key in range(20)}
    assert list(manager.manifest.transactions()) == []
    save(frame(spark, range(5)).select("k"), counts, shadow_cells="none", operation="delete")
    rows = dict(manager.snapshot().scan(counts))
    assert len(rows) == 15
    shadows = manager.store.scan(counts, KeyRange(b"", b""), [shadow_column(b"f")])
    assert list(shadows) == [], "nor does who reads them row by row write any"
    assert load(spark, counts) == {(key, key) for key in range(5, 20)}


def test_deferred_shadow_cells_come_later_and_nobody_minds(
    spark: SparkSession, manager: TransactionManager, counts: str
) -> None:
    save(frame(spark, range(20)), counts, shadow_cells="deferred")
    assert load(spark, counts) == {(key, key) for key in range(20)}
    assert manager.finish_bulk_writes() >= 1
    assert list(manager.manifest.transactions()) == []
    assert load(spark, counts) == {(key, key) for key in range(20)}
