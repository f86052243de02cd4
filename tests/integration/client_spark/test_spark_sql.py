"""What SQL and Spark's catalog do with the format ``pythia``: what works, and what is refused with which words."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

from client import TransactionManager
from client.spark import register

pytestmark = pytest.mark.integration


def rows(spark: SparkSession, statement: str) -> list[tuple[Any, ...]]:
    return sorted(map(tuple, spark.sql(statement).collect()))


@pytest.fixture
def view(spark: SparkSession, counts: str) -> Iterator[str]:
    """A temporary view of ``counts`` with rows 0 to 3."""
    name = f"view_of_{counts}"
    spark.sql(f"CREATE TEMPORARY VIEW {name} USING pythia OPTIONS (table '{counts}')")
    spark.sql(f"INSERT INTO {name} SELECT id, id FROM range(4)")
    yield name
    spark.sql(f"DROP VIEW {name}")


@pytest.fixture
def catalog_table(spark: SparkSession, counts: str) -> Iterator[str]:
    """A table of Spark's own catalog, with columns and with options that Spark keeps to itself."""
    name = f"catalog_{counts}"
    spark.sql(f"CREATE TABLE {name} (k BIGINT, v BIGINT) USING pythia OPTIONS (table '{counts}')")
    yield name
    spark.sql(f"DROP TABLE {name}")


def test_a_temporary_view_carries_its_options(spark: SparkSession, view: str) -> None:
    assert rows(spark, f"SELECT v FROM {view} WHERE k >= 2") == [(2,), (3,)]
    spark.sql(f"INSERT INTO {view} VALUES (9, 9)")
    spark.sql(f"INSERT INTO {view} (v, k) VALUES (80, 8)")
    assert rows(spark, f"SELECT * FROM {view} WHERE k IN (8, 9, 10)") == [(8, 80), (9, 9)]


def test_a_table_is_overwritten_through_a_view(spark: SparkSession, view: str) -> None:
    spark.sql(f"INSERT OVERWRITE {view} SELECT id, -id FROM range(2, 4)")
    assert rows(spark, f"SELECT * FROM {view}") == [(2, -2), (3, -3)]


def test_spark_reads_a_whole_view_by_the_snapshot_of_its_first_use(spark: SparkSession, view: str, counts: str) -> None:
    """What docs/spark.md warns of. Once this fails, a newer Spark plans each use anew."""
    assert len(rows(spark, f"SELECT * FROM {view}")) == 4
    spark.sql(f"INSERT INTO {view} VALUES (9, 9)")
    spark.sql(f"REFRESH TABLE {view}")
    assert len(rows(spark, f"SELECT * FROM {view}")) == 4
    spark.sql(f"CREATE OR REPLACE TEMPORARY VIEW {view} USING pythia OPTIONS (table '{counts}')")
    assert len(rows(spark, f"SELECT * FROM {view}")) == 5


def test_each_statement_reads_a_view_of_a_catalog_table_anew(
    spark: SparkSession, counts: str, catalog_table: str
) -> None:
    options, view = f"WITH (table = '{counts}')", f"view_of_{catalog_table}"
    spark.sql(f"CREATE TEMPORARY VIEW {view} AS SELECT * FROM {catalog_table} {options}")
    assert rows(spark, f"SELECT * FROM {view}") == []
    spark.sql(f"INSERT INTO {catalog_table} {options} VALUES (9, 9)")
    spark.sql(f"INSERT OVERWRITE {catalog_table} {options} SELECT k, -v FROM {view}")
    assert rows(spark, f"SELECT * FROM {view}") == [(9, -9)]
    spark.sql(f"DROP VIEW {view}")


def test_insert_with_fewer_columns_writes_null_into_the_others(spark: SparkSession, view: str) -> None:
    spark.sql(f"INSERT INTO {view} (k) VALUES (2)")
    assert rows(spark, f"SELECT * FROM {view} WHERE k = 2") == [(2, None)]


def test_a_view_of_the_past_and_of_a_transaction(
    spark: SparkSession, manager: TransactionManager, counts: str, view: str
) -> None:
    then = manager.snapshot().timestamp
    spark.sql(f"INSERT INTO {view} VALUES (7, 7)")
    assert len(rows(spark, f"SELECT * FROM {view}")) == 5
    past = f"CREATE OR REPLACE TEMPORARY VIEW past USING pythia OPTIONS (table '{counts}', as_of '{then}')"
    spark.sql(past)
    assert len(rows(spark, "SELECT * FROM past")) == 4
    with pytest.raises(PySparkException, match="are for reading"):
        spark.sql("INSERT INTO past VALUES (1, 1)")
    spark.sql("DROP VIEW past")


def test_a_catalog_table_needs_its_options_in_each_statement(
    spark: SparkSession, counts: str, catalog_table: str
) -> None:
    given = f"{catalog_table} WITH (table = '{counts}')"
    spark.sql(f"INSERT INTO {given} VALUES (1, 2), (3, 4)")
    assert rows(spark, f"SELECT * FROM {given} WHERE k > 1") == [(3, 4)]
    spark.sql(f"INSERT OVERWRITE {given} SELECT 5, 6")
    assert rows(spark, f"SELECT * FROM {given}") == [(5, 6)]
    for statement in (f"SELECT * FROM {catalog_table}", f"INSERT INTO {catalog_table} VALUES (1, 2)"):
        with pytest.raises(PySparkException, match=r"the option 'table' is missing.*SELECT \.\.\. FROM t WITH"):
            spark.sql(statement).collect()


@pytest.mark.parametrize(
    "statement",
    [
        "DELETE FROM {name} WHERE k = 1",
        "UPDATE {name} SET v = 1",
        "MERGE INTO {name} t USING (SELECT 1L AS k) s ON t.k = s.k WHEN MATCHED THEN DELETE",
        "TRUNCATE TABLE {name}",
    ],
)
def test_statements_that_spark_has_no_way_to_hand_on_are_refused(
    spark: SparkSession, catalog_table: str, view: str, statement: str
) -> None:
    for name in (catalog_table, view):
        with pytest.raises(PySparkException) as caught:
            spark.sql(statement.format(name=name)).collect()
        assert caught.value.getCondition() or "not support" in str(caught.value)


def test_a_statement_that_claims_a_key_lands_once(spark: SparkSession, catalog_table: str, counts: str) -> None:
    given = f"{catalog_table} WITH (table = '{counts}', claim = 'load of {counts}')"
    for value in (1, 2):
        spark.sql(f"INSERT INTO {given} SELECT id, {value} FROM range(3)")
        spark.sql(f"INSERT OVERWRITE {given} SELECT id, {value} FROM range(2)")
    assert rows(spark, f"SELECT * FROM {catalog_table} WITH (table = '{counts}')") == [(0, 1), (1, 1), (2, 1)]


def test_a_table_is_emptied_and_its_past_is_read(
    spark: SparkSession, manager: TransactionManager, counts: str, catalog_table: str
) -> None:
    given = f"{catalog_table} WITH (table = '{counts}')"
    spark.sql(f"INSERT INTO {given} VALUES (1, 2), (3, 4)")
    then = manager.snapshot().timestamp
    spark.sql(f"INSERT OVERWRITE {given} SELECT * FROM {given} WHERE false")
    assert rows(spark, f"SELECT * FROM {given}") == []
    past = f"{catalog_table} WITH (table = '{counts}', as_of = '{then}')"
    assert rows(spark, f"SELECT * FROM {past}") == [(1, 2), (3, 4)]


def test_what_alters_or_drops_a_catalog_table_leaves_the_table_alone(
    spark: SparkSession, manager: TransactionManager, counts: str
) -> None:
    name, options = f"altered_{counts}", f"WITH (table = '{counts}')"
    spark.sql(f"CREATE TABLE {name} (k BIGINT, v BIGINT) USING pythia")
    spark.sql(f"INSERT INTO {name} {options} VALUES (1, 2)")
    spark.sql(f"ALTER TABLE {name} ADD COLUMNS (w STRING)")
    for statement in (f"SELECT * FROM {name} {options}", f"INSERT INTO {name} {options} VALUES (3, 4, 'x')"):
        with pytest.raises(PySparkException, match=r"column 'w' \(string\) is not in the table"):
            spark.sql(statement).collect()
    spark.sql(f"DROP TABLE {name}")
    spark.sql(f"CREATE TABLE {name} (k BIGINT, v BIGINT) USING pythia")
    assert rows(spark, f"SELECT * FROM {name} {options}") == [(1, 2)]
    spark.sql(f"DROP TABLE {name}")


@pytest.mark.parametrize("mode", ["error", "ignore"])
def test_other_save_modes_are_refused_by_spark_itself(spark: SparkSession, counts: str, mode: str) -> None:
    with pytest.raises(PySparkException, match="UNSUPPORTED_DATA_SOURCE_SAVE_MODE"):
        spark.range(2).selectExpr("id AS k", "id AS v").write.format("pythia").mode(mode).option("table", counts).save()


@pytest.fixture
def without_address(spark: SparkSession) -> Iterator[str]:
    address = str(spark.conf.get("spark.pythia.zookeeper"))
    spark.conf.unset("spark.pythia.zookeeper")
    register(spark)
    yield address
    spark.conf.set("spark.pythia.zookeeper", address)
    register(spark)


def test_a_missing_address_is_named_with_all_places_where_it_can_be_given(
    spark: SparkSession, counts: str, without_address: str
) -> None:
    reading = spark.read.format("pythia").option("table", counts)
    with pytest.raises(PySparkException, match=r"option 'zookeeper'.*spark\.pythia\.zookeeper.*PYTHIA_ZOOKEEPER"):
        reading.load()
    assert reading.option("zookeeper", without_address).load().count() == 0
