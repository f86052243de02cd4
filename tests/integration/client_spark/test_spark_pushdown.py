"""A real Spark hands filters down: only rows that can pass are read, and the answer is that of a full read."""

from __future__ import annotations

import datetime as dt
import uuid
from collections.abc import Iterator

import pytest
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession

from client import TransactionManager
from client.spark import KeyColumn, TableMapping, ValueColumn, create_table, register, row_key, table_mapping

pytestmark = pytest.mark.integration

PUSHDOWN = "spark.sql.python.filterPushdown.enabled"
MAPPING = (
    KeyColumn("region", "string"), KeyColumn("day", "date"), KeyColumn("number", "int"),
    ValueColumn("a", "int"), ValueColumn("b", "string", "g"),
)  # fmt: skip


def load(spark: SparkSession, table: str, **options: str) -> DataFrame:
    return spark.read.format("pythia").options(table=table, **options).load()


def save(data: DataFrame, table: str) -> None:
    data.write.format("pythia").mode("append").option("table", table).save()


@pytest.fixture(scope="module")
def rows(spark: SparkSession) -> DataFrame:
    """Three regions, ten days, ten numbers; nothing of Pythia's."""
    return spark.range(300).selectExpr(
        "element_at(array('east', 'north', 'northwest'), CAST(id DIV 100 + 1 AS INT)) AS region",
        "date_add(DATE '2013-07-01', CAST(id DIV 10 % 10 AS INT)) AS day", "CAST(id % 10 AS INT) AS number",
        "CAST(NULLIF(id % 7, 0) AS INT) AS a", "CAST(id AS STRING) AS b",
    )  # fmt: skip


@pytest.fixture(scope="module")
def sales(manager: TransactionManager, rows: DataFrame) -> str:
    """A table of ``rows``, which tests leave as it is."""
    table = f"sales_{uuid.uuid4().hex[:12]}"
    create_table(manager, TableMapping(table, ("region", "day", "number"), MAPPING))
    save(rows, table)
    return table


def filtered_by_spark(data: DataFrame) -> bool:
    """Whether Spark still looks at each row that it is given."""
    plan = str(data._jdf.queryExecution().executedPlan().toString())
    return any(line.strip(" +-:*()0123456789").startswith("Filter") for line in plan.splitlines())


@pytest.mark.parametrize(
    ("condition", "count", "answered"),
    [
        ("region = 'north'", 100, True),
        ("region LIKE 'north%'", 200, True),
        ("region IN ('east', 'northwest') AND day = DATE '2013-07-04'", 20, True),
        ("region = 'east' AND day >= DATE '2013-07-03' AND day < DATE '2013-07-05'", 20, True),
        ("region = 'east' AND day = DATE '2013-07-03' AND number IN (3, 5, 11)", 2, True),
        ("region <> 'north'", 200, True),
        ("region = 'nowhere'", 0, True),
        ("region > 'east' AND number = 3", 20, False),
        ("day = DATE '2013-07-04'", 30, False),
        ("region = 'north' AND a > 3", 42, False),
        ("region = 'north' AND a IS NULL", 14, False),
        ("region = 'north' OR number = 3", 120, False),
    ],
)
def test_filters_on_leading_key_columns_narrow_the_read(
    spark: SparkSession, rows: DataFrame, sales: str, condition: str, count: int, answered: bool
) -> None:
    data = load(spark, sales, push_filters="true").where(condition)
    found = data.collect()
    assert len(found) == count
    assert set(found) == set(rows.where(condition).collect())
    assert filtered_by_spark(data) != answered


def test_rows_outside_of_the_ranges_are_not_even_read(
    spark: SparkSession, manager: TransactionManager, counts: str
) -> None:
    save(spark.range(4).selectExpr("id AS k", "id AS v"), counts)
    with manager.transaction() as transaction:
        transaction.put(counts, row_key(table_mapping(manager, counts), 2), {b"f:v": b"no number"})
    data = load(spark, counts, push_filters="true")
    assert [row["v"] for row in data.where("k <> 2").sort("k").collect()] == [0, 1, 3]
    with pytest.raises(PySparkException, match="holds bytes that are no bigint"):
        data.where("k >= 2").collect()


def test_rows_whose_asked_columns_are_null_appear_unless_a_filter_lets_no_null_pass(
    spark: SparkSession, sales: str
) -> None:
    assert load(spark, sales, columns="a").count() == 300
    data = load(spark, sales, columns="region,a", push_filters="true")
    assert data.where("a IS NULL").count() == 43
    assert data.where("a IS NOT NULL").count() == 257


def test_without_the_option_one_dataframe_serves_any_number_of_filters(spark: SparkSession, sales: str) -> None:
    data = load(spark, sales)
    assert data.where("region = 'north'").union(data.where("region = 'east' AND number = 1")).count() == 110
    assert data.count() == 300
    assert filtered_by_spark(data.where("region = 'north'"))


def test_spark_reads_a_dataframe_by_the_last_filter_that_it_pushed(spark: SparkSession, sales: str) -> None:
    """Why ``push_filters`` is off by default. Once this fails, Spark keeps its plans apart: see docs/spark.md."""
    data = load(spark, sales, push_filters="true")
    assert data.where("region = 'north'").count() == 100
    assert data.count() == 100


@pytest.fixture
def pushdown_off(spark: SparkSession) -> Iterator[None]:
    spark.conf.set(PUSHDOWN, "false")
    register(spark)
    yield
    spark.conf.unset(PUSHDOWN)
    register(spark)


def test_a_session_may_forbid_pushdown(spark: SparkSession, sales: str, pushdown_off: None) -> None:
    assert spark.conf.get(PUSHDOWN) == "false"
    assert load(spark, sales).where("region = 'north'").count() == 100
    with pytest.raises(PySparkException, match="DATA_SOURCE_PUSHDOWN_DISABLED"):
        load(spark, sales, push_filters="true").where("region = 'north'").collect()


def test_registering_turns_pushdown_on_where_nobody_has_chosen(spark: SparkSession) -> None:
    spark.conf.unset(PUSHDOWN)
    register(spark)
    assert spark.conf.get(PUSHDOWN) == "true"


def test_the_past_is_read_by_a_time_a_timestamp_or_a_name(
    spark: SparkSession, manager: TransactionManager, counts: str
) -> None:
    save(spark.range(4).selectExpr("id AS k", "id AS v"), counts)
    then = manager.create_snapshot(f"then-{counts}").timestamp
    save(spark.range(2, 6).selectExpr("id AS k", "-id AS v"), counts)
    assert load(spark, counts, as_of=str(then), push_filters="true").where("k >= 2").sort("k").collect() == [
        (2, 2),
        (3, 3),
    ]
    assert load(spark, counts, as_of=f"then-{counts}").sort("k").collect() == [(k, k) for k in range(4)]
    manager.drop_snapshot(f"then-{counts}")
    with pytest.raises(PySparkException, match="there is no snapshot 'then-"):
        load(spark, counts, as_of=f"then-{counts}").collect()
    now = dt.datetime.now(dt.timezone(dt.timedelta(hours=-4)))
    assert load(spark, counts, as_of=now.isoformat()).count() == 6
    assert load(spark, counts, as_of="1999-12-31T23:59:59Z").count() == 0
    with pytest.raises(PySparkException, match=r"lies .* in the future"):
        load(spark, counts, as_of="2999-01-01T00:00:00Z").collect()
