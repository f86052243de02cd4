"""Several tables in one transaction: orders and what they come to, both or neither.

    export PYTHIA_ZOOKEEPER=… PYTHIA_THRIFT=…
    python examples/multi_table_etl.py

``with manager.transaction()`` commits at its end, and rolls back where anything in it raises. Both writes name it, so
that they become visible at one moment: a reader who takes one snapshot for both tables always finds that they agree.
"""

from __future__ import annotations

import os

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as column

from client import ClientSettings, TransactionManager
from client.spark import TableMapping, create_table, register

ORDERS, TOTALS = "example_orders", "example_order_totals"
ORDER_SCHEMA = "customer string, number bigint, amount decimal(12,2)"
TOTAL_SCHEMA = "customer string, orders bigint, amount decimal(12,2)"


def make_tables(spark: SparkSession, manager: TransactionManager) -> None:
    """Unless they are there from an earlier run."""
    orders = spark.createDataFrame([], ORDER_SCHEMA).schema
    totals = spark.createDataFrame([], TOTAL_SCHEMA).schema
    for mapping in (
        TableMapping.from_schema(ORDERS, orders, row_key=["customer", "number"]),
        TableMapping.from_schema(TOTALS, totals, row_key=["customer"]),
    ):
        create_table(manager, mapping, if_missing=True)


def load(manager: TransactionManager, orders: DataFrame) -> None:
    """Write a day's orders and the totals that follow from them."""
    totals = orders.groupBy("customer").agg(
        column.count("*").alias("orders"), column.sum("amount").cast("decimal(12,2)").alias("amount")
    )
    with manager.transaction() as transaction:
        handle = transaction.handle().to_json()
        for table, rows in ((ORDERS, orders), (TOTALS, totals)):
            rows.write.format("pythia").mode("append").options(table=table, transaction=handle).save()


def report(spark: SparkSession, manager: TransactionManager) -> DataFrame:
    """Totals, beside what the orders come to in the same snapshot: the two columns are equal, whenever it is read."""
    snapshot = manager.snapshot().handle().to_json()
    orders, totals = (
        spark.read.format("pythia").options(table=table, snapshot=snapshot).load() for table in (ORDERS, TOTALS)
    )
    recounted = orders.groupBy("customer").agg(column.sum("amount").cast("decimal(12,2)").alias("recounted"))
    return totals.join(recounted, "customer").select("customer", "amount", "recounted").orderBy("customer")


def run(spark: SparkSession, manager: TransactionManager) -> DataFrame:
    """All of it."""
    make_tables(spark, manager)
    lines = [("ada", 1, 10.5), ("ada", 2, 4.25), ("bob", 1, 99.0)]
    orders = spark.createDataFrame(lines, "customer string, number bigint, price double")
    load(manager, orders.select("customer", "number", column.col("price").cast("decimal(12,2)").alias("amount")))
    return report(spark, manager)


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
