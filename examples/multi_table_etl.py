"""Several tables in one transaction: orders and what they come to, both or neither.

    export PYTHIA_ZOOKEEPER=… PYTHIA_THRIFT=…
    python examples/multi_table_etl.py

``with manager.transaction()`` commits at its end, and rolls back where anything in it raises. Both writes name it, so
that they become visible at one moment: a reader who takes one snapshot for both tables always finds that they agree.
It claims the day that it loads, so that a load that a scheduler starts again lands once.
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
    """Before the first load; later on they are left as they are."""
    orders = spark.createDataFrame([], ORDER_SCHEMA).schema
    totals = spark.createDataFrame([], TOTAL_SCHEMA).schema
    create_table(manager, TableMapping.from_schema(ORDERS, orders, row_key=["customer", "number"]), if_missing=True)
    create_table(manager, TableMapping.from_schema(TOTALS, totals, row_key=["customer"]), if_missing=True)


def load(manager: TransactionManager, day: str, orders: DataFrame) -> None:
    """Write a day's orders and the totals that follow from them, unless that day has been loaded."""
    totals = orders.groupBy("customer").agg(
        column.count("*").alias("orders"), column.sum("amount").cast("decimal(12,2)").alias("amount")
    )
    with manager.transaction() as transaction:
        if not transaction.claim(day, table=ORDERS):
            return
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
    orders = orders.select("customer", "number", column.col("price").cast("decimal(12,2)").alias("amount"))
    for _ in range(2):  # as by a scheduler that does not know how the first one ended
        load(manager, "2026-11-21", orders)
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
