"""A slowly changing dimension (type 2): each change closes a row and opens another one, in one transaction.

    export PYTHIA_ZOOKEEPER=… PYTHIA_THRIFT=…
    python examples/slowly_changing_dimension.py

Nobody ever sees a customer with two current addresses, or with none, and of two jobs that change one customer at once
the second meets a conflict. A change that is not newer than what is known is left alone: so a job that is started again
changes nothing.
"""

from __future__ import annotations

import datetime
import os

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as column

from client import ClientSettings, TransactionManager
from client.spark import TableMapping, create_table, register

ADDRESSES = "example_addresses"
SCHEMA = "customer string, valid_from date, valid_to date, city string"


def change(spark: SparkSession, manager: TransactionManager, news: DataFrame, day: datetime.date) -> None:
    """From ``day`` on the customers of ``news`` (customer, city) live there; who lives there already is left alone, and
    who is known to have moved on that day or since.
    """
    with manager.transaction() as transaction:
        handle = transaction.handle().to_json()
        known = spark.read.format("pythia").options(table=ADDRESSES, transaction=handle).load()
        current = known.where("valid_to is null").withColumnRenamed("city", "old_city")
        is_newer = column.col("valid_from") < column.lit(day)
        moved = news.join(current, "customer", "left").where(
            column.col("old_city").isNull() | ((column.col("old_city") != column.col("city")) & is_newer)
        )
        closed = moved.where("old_city is not null").select(
            "customer", "valid_from", column.lit(day).alias("valid_to"), column.col("old_city").alias("city")
        )
        opened = moved.select(
            "customer",
            column.lit(day).alias("valid_from"),
            column.lit(None).cast("date").alias("valid_to"),
            "city",
        )
        both = closed.unionByName(opened)  # one write: each of its tasks reads the transaction's snapshot
        both.write.format("pythia").mode("append").options(table=ADDRESSES, transaction=handle).save()


def run(spark: SparkSession, manager: TransactionManager) -> DataFrame:
    """Two days of changes; returns all that was ever true."""
    schema = spark.createDataFrame([], SCHEMA).schema
    mapping = TableMapping.from_schema(ADDRESSES, schema, row_key=["customer", "valid_from"])
    create_table(manager, mapping, if_missing=True)
    for day, moves in (
        (datetime.date(2026, 1, 1), [("ada", "London"), ("bob", "Bergen")]),
        (datetime.date(2026, 6, 1), [("ada", "Paris"), ("bob", "Bergen"), ("cyd", "Rome")]),
    ):
        change(spark, manager, spark.createDataFrame(moves, "customer string, city string"), day)
    table = spark.read.format("pythia").option("table", ADDRESSES).load()
    return table.orderBy("customer", "valid_from")


if __name__ == "__main__":
    session = SparkSession.builder.getOrCreate()
    register(session)
    settings = ClientSettings(
        zookeeper=os.environ["PYTHIA_ZOOKEEPER"],
        thrift=os.environ["PYTHIA_THRIFT"],
        root=os.environ.get("PYTHIA_ROOT", "/pythia"),
    )
    with TransactionManager.connect(settings) as connected:
        run(session, connected).show()
