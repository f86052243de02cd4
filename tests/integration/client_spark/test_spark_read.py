"""A real Spark reads real HBase: every type as it was written, and every partition at one snapshot."""

from __future__ import annotations

import datetime as dt
import random
import threading
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import replace
from decimal import Decimal
from typing import Any

import pytest
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession

from client import Transaction, TransactionManager
from client.spark import KeyColumn, TableMapping, ValueColumn, create_table, row_key, split_keys, table_mapping

pytestmark = pytest.mark.integration

UTC = dt.UTC
TYPES = (
    "string", "binary", "boolean", "tinyint", "smallint", "int", "bigint", "float", "double", "date", "timestamp",
    "timestamp_ntz", "decimal(38,18)", "decimal(5,2)",
)  # fmt: skip
KEY_TYPES = tuple(name for name in TYPES if not name.startswith(("float", "double", "decimal")))
SMALLEST: tuple[Any, ...] = (
    "", bytearray(b""), False, -(2**7), -(2**15), -(2**31), -(2**63), float("-inf"), -0.0, dt.date(1, 1, 1),
    dt.datetime(1900, 1, 1, tzinfo=UTC), dt.datetime(1, 1, 1), Decimal("-99999999999999999999.999999999999999999"),
    Decimal("-999.99"),
)  # fmt: skip
LARGEST: tuple[Any, ...] = (
    "日本 ä\x00\U0001f680", bytearray(b"\xc1\x00\xff"), True, 2**7 - 1, 2**15 - 1, 2**31 - 1, 2**63 - 1, 1.5, 1e308,
    dt.date(9999, 12, 31), dt.datetime(2100, 7, 4, 12, 0, 0, 1, tzinfo=UTC),
    dt.datetime(9999, 12, 31, 23, 59, 59, 999999),
    Decimal("99999999999999999999.999999999999999999"), Decimal("0.01"),
)  # fmt: skip
BEFORE_1970: tuple[Any, ...] = (
    "a", bytearray(b"\xc1"), True, -1, -1, -1, -1, 0.0, 2.5, dt.date(1969, 12, 31),
    dt.datetime(1969, 12, 31, 23, 59, 59, 999999, tzinfo=dt.timezone(dt.timedelta(hours=5, minutes=30))),
    dt.datetime(1969, 12, 31, 23, 59, 59, 999999), Decimal("-0.000000000000000001"), Decimal("0.00"),
)  # fmt: skip
NULLS: tuple[Any, ...] = (None,) * len(TYPES)


def load(spark: SparkSession, table: str, **options: str) -> DataFrame:
    return spark.read.format("pythia").options(table=table, **options).load()


def save(data: DataFrame, table: str) -> None:
    data.write.format("pythia").mode("append").option("table", table).save()


def test_every_type_comes_back(spark: SparkSession, manager: TransactionManager, table: str) -> None:
    names = [f"c{index}" for index in range(len(TYPES))]
    columns = [
        ValueColumn(name, type_name, "fg"[index % 2])
        for index, (name, type_name) in enumerate(zip(names, TYPES, strict=True))
    ]
    mapping = TableMapping(table, ("k",), (*columns, KeyColumn("k", "int")))
    create_table(manager, mapping)
    assert table_mapping(manager, table) == mapping
    rows = [(*values, index) for index, values in enumerate((SMALLEST, LARGEST, BEFORE_1970, NULLS))]
    data = spark.createDataFrame(rows, mapping.to_struct())
    save(data, table)
    after = load(spark, table)
    assert after.schema.simpleString() == data.schema.simpleString()
    assert after.sort("k").collect() == data.sort("k").collect()
    assert str(after.where("k = 0").first()["c8"]) == "-0.0"  # type: ignore[index]


def test_row_keys_of_every_type_come_back_in_the_order_of_their_values(
    spark: SparkSession, manager: TransactionManager, table: str
) -> None:
    keys = [KeyColumn(f"k{index}", name) for index, name in enumerate(KEY_TYPES)]
    mapping = TableMapping(table, tuple(key.name for key in keys), (ValueColumn("v", "int"), *keys))
    create_table(manager, mapping)
    chosen = [index for index, name in enumerate(TYPES) if name in KEY_TYPES]
    rows = [
        (number, *(values[index] for index in chosen)) for number, values in enumerate((SMALLEST, BEFORE_1970, LARGEST))
    ]
    data = spark.createDataFrame(rows, mapping.to_struct())
    save(data, table)
    assert load(spark, table, min_partitions="1").collect() == data.collect()


@pytest.fixture
def moved(manager: TransactionManager, counts: str) -> AbstractContextManager[threading.Event]:
    """Within the context a writer keeps moving amounts between 100 rows whose sum is 0."""
    mapping = table_mapping(manager, counts)
    stop = threading.Event()
    committed = threading.Event()
    choice = random.Random(7)

    def move(transaction: Transaction) -> None:
        for key, amount in zip(choice.sample(range(100), 2), (1, -1), strict=True):
            row = row_key(mapping, key)
            before = int.from_bytes(transaction.get(counts, row)[b"f:v"], "big", signed=True)
            transaction.put(counts, row, {b"f:v": (before + amount).to_bytes(8, "big", signed=True)})

    def keep_moving() -> None:
        while not stop.is_set():
            manager.run(move)
            committed.set()

    @contextmanager
    def context() -> Iterator[threading.Event]:
        thread = threading.Thread(target=keep_moving)
        thread.start()
        try:
            yield committed
        finally:
            stop.set()
            thread.join()

    return context()


def test_all_partitions_read_one_snapshot_while_another_writer_commits(
    spark: SparkSession, counts: str, moved: AbstractContextManager[threading.Event]
) -> None:
    save(spark.range(100).selectExpr("id AS k", "0L AS v"), counts)
    with moved as committed:
        for _ in range(3):
            committed.clear()
            assert committed.wait(30)
            data = load(spark, counts, min_partitions="8")
            assert data.rdd.getNumPartitions() >= 8
            assert [tuple(row) for row in data.selectExpr("COUNT(*)", "SUM(v)").collect()] == [(100, 0)]
    assert load(spark, counts).where("v <> 0").count() > 0


def test_each_region_that_a_sample_asked_for_is_filled_and_read(
    spark: SparkSession, manager: TransactionManager, table: str, thrift2: str
) -> None:
    rows = spark.range(-500, 500).selectExpr("id AS k", "id * id AS v").where("k % 7 <> 0")
    mapping = TableMapping.from_schema(table, rows.schema, row_key=["k"])
    split = split_keys(mapping, 5, rows.select("k").sample(fraction=0.5, seed=7).toArrow())
    with TransactionManager.connect(replace(manager.settings, thrift2=thrift2)) as making:
        create_table(making, mapping, split_keys=split)
    save(rows, table)
    regions = manager.store.regions(table)
    assert [region.start for region in regions] == [b"", *split]
    held = [len(list(manager.snapshot().scan(table, start=region.start, stop=region.stop))) for region in regions]
    assert min(held) > rows.count() / 5 / 2
    data = load(spark, table)
    assert data.rdd.getNumPartitions() >= 5
    assert sorted(data.collect()) == sorted(rows.collect())


def test_a_given_snapshot_stays_as_it_was(spark: SparkSession, manager: TransactionManager, counts: str) -> None:
    save(spark.range(10).selectExpr("id AS k", "id AS v"), counts)
    option = {"snapshot": manager.snapshot().handle().to_json()}
    data = load(spark, counts, **option)
    save(spark.range(5, 20).selectExpr("id AS k", "-id AS v"), counts)
    assert (
        data.selectExpr("COUNT(*)", "SUM(v)").collect()
        == load(spark, counts, **option).selectExpr("COUNT(*)", "SUM(v)").collect()
    )
    assert data.count() == 10
    assert load(spark, counts).count() == 20


def test_columns_are_chosen_by_option_or_schema(spark: SparkSession, manager: TransactionManager, table: str) -> None:
    mapping = TableMapping(table, ("k",), (KeyColumn("k", "int"), ValueColumn("a", "int"), ValueColumn("b", "string")))
    create_table(manager, mapping)
    save(spark.createDataFrame([(1, None, "x"), (2, 5, None), (3, None, None)], mapping.to_struct()), table)
    assert {row["a"] for row in load(spark, table, columns="A").collect()} == {None, 5}
    assert load(spark, table, columns="A").count() == 3
    assert load(spark, table, columns="b,k").columns == ["k", "b"]
    chosen = spark.read.format("pythia").schema("b STRING, k INT").option("table", table).load()
    assert sorted(chosen.collect(), key=lambda row: row["k"]) == [("x", 1), (None, 2), (None, 3)]
    assert load(spark, table).count() == 3


def test_spark_and_plain_programs_share_a_table(spark: SparkSession, manager: TransactionManager, table: str) -> None:
    mapping = TableMapping(
        table, ("day", "who"), (KeyColumn("who", "string"), KeyColumn("day", "date"), ValueColumn("what", "string"))
    )
    create_table(manager, mapping)
    day = dt.date(2013, 7, 4)
    with manager.transaction() as transaction:
        transaction.put(table, row_key(mapping, day, "ann"), {b"f:what": b"tea"})
    save(spark.createDataFrame([("bob", day, ""), ("cy", dt.date(2013, 7, 5), "milk")], mapping.to_struct()), table)
    assert sorted(map(tuple, load(spark, table).collect())) == [
        ("ann", day, "tea"), ("bob", day, ""), ("cy", dt.date(2013, 7, 5), "milk"),
    ]  # fmt: skip
    found = dict(manager.snapshot().scan(table, prefix=row_key(mapping, day)))
    assert found == {
        row_key(mapping, day, "ann"): {b"f:what": b"tea"},
        row_key(mapping, day, "bob"): {b"f:what": b""},
    }
    with manager.transaction() as transaction:
        transaction.delete(table, row_key(mapping, day, "bob"))
    assert load(spark, table).count() == 2


def test_a_row_of_nulls_exists_until_deleted(spark: SparkSession, manager: TransactionManager, counts: str) -> None:
    save(spark.range(3).selectExpr("id AS k", "CAST(NULL AS BIGINT) AS v"), counts)
    assert sorted(map(tuple, load(spark, counts).collect())) == [(0, None), (1, None), (2, None)]
    with manager.transaction() as transaction:
        transaction.delete(counts, row_key(table_mapping(manager, counts), 1))
    assert sorted(map(tuple, load(spark, counts).collect())) == [(0, None), (2, None)]


def test_an_empty_table_is_an_empty_dataframe(spark: SparkSession, counts: str) -> None:
    data = load(spark, counts)
    assert data.columns == ["k", "v"]
    assert data.collect() == []


def test_sql_reads_and_inserts_through_a_temporary_view(spark: SparkSession, counts: str) -> None:
    spark.sql(f"CREATE OR REPLACE TEMPORARY VIEW view_of_counts USING pythia OPTIONS (table '{counts}')")
    spark.sql("INSERT INTO view_of_counts SELECT id, id * 2 FROM range(4)")
    assert spark.sql("SELECT SUM(v) FROM view_of_counts WHERE k > 1").collect() == [(10,)]


def test_sql_names_the_table_of_a_catalog_table_in_each_statement(spark: SparkSession, counts: str) -> None:
    spark.sql("CREATE TABLE catalog_counts (k BIGINT, v BIGINT) USING pythia")
    spark.sql(f"INSERT INTO catalog_counts WITH (table = '{counts}') VALUES (1, 2)")
    assert spark.sql(f"SELECT * FROM catalog_counts WITH (table = '{counts}')").collect() == [(1, 2)]
    with pytest.raises(PySparkException, match="the option 'table' is missing"):
        spark.sql("SELECT * FROM catalog_counts").collect()
    spark.sql("DROP TABLE catalog_counts")


def test_foreign_bytes_are_named(spark: SparkSession, manager: TransactionManager, counts: str) -> None:
    with manager.transaction() as transaction:
        transaction.put(counts, row_key(table_mapping(manager, counts), 1), {b"f:v": b"text"})
    with pytest.raises(PySparkException, match="holds bytes that are no bigint"):
        load(spark, counts).collect()


@pytest.mark.parametrize(
    ("options", "text"),
    [
        ({"columns": "nosuch"}, "has no column nosuch; it has k, v"),
        ({"snapshot": "{}"}, "snapshot handle"),
        ({"min_partitions": "none"}, "a whole number from 1"),
        ({"table": "no_such_table"}, "there is no table 'no_such_table'"),
        ({"zookeeper": "nonsense"}, "ZooKeeper's hosts are host:port"),
    ],
)
def test_what_cannot_be_read_is_refused_with_a_reason(
    spark: SparkSession, counts: str, options: dict[str, str], text: str
) -> None:
    with pytest.raises(PySparkException, match=text):
        load(spark, **{"table": counts, **options})


@pytest.mark.parametrize("option", [{"operation": "delete"}, {"overwrite_prefix": "[1]"}])
def test_an_option_for_writing_is_refused(spark: SparkSession, counts: str, option: dict[str, str]) -> None:
    with pytest.raises(PySparkException, match="are for writing"):
        load(spark, counts, **option).collect()


def test_a_schema_that_the_table_does_not_have_is_refused(spark: SparkSession, counts: str) -> None:
    with pytest.raises(PySparkException, match="column 'v' is string, the table has bigint"):
        spark.read.format("pythia").schema("v STRING").option("table", counts).load().collect()
