"""Two jobs that change the same rows at once, and both count: a job that meets a conflict is run again.

    export PYTHIA_ZOOKEEPER=… PYTHIA_THRIFT=…
    python examples/concurrent_jobs.py

``manager.run`` calls a function in a transaction and commits; where another transaction has committed to the same rows
since, it calls the function again in a new one, which reads the new values. So the function reads and writes by its
transaction only, and has no effects elsewhere.
"""

from __future__ import annotations

import os
from concurrent.futures import ThreadPoolExecutor

from pyspark.sql import SparkSession
from pyspark.sql import functions as column

from client import ClientSettings, Transaction, TransactionManager
from client.spark import TableMapping, create_table, register

STOCK = "example_stock"
SCHEMA = "item string, pieces bigint"
ATTEMPTS_MAX = 20


def receive(spark: SparkSession, manager: TransactionManager, pieces: int) -> None:
    """Add as many pieces of each item."""
    register(spark)  # for this thread

    def job(transaction: Transaction) -> None:
        handle = transaction.handle().to_json()
        stock = spark.read.format("pythia").options(table=STOCK, transaction=handle).load()
        more = stock.withColumn("pieces", column.col("pieces") + pieces)
        more.write.format("pythia").mode("append").options(table=STOCK, transaction=handle).save()

    manager.run(job, attempts_max=ATTEMPTS_MAX)


def run(spark: SparkSession, manager: TransactionManager) -> dict[str, int]:
    """Two deliveries at once; returns what is in stock."""
    empty = spark.createDataFrame([("bolt", 0), ("nut", 0)], SCHEMA)
    create_table(manager, TableMapping.from_schema(STOCK, empty.schema, row_key=["item"]), if_missing=True)
    empty.write.format("pythia").mode("append").option("table", STOCK).save()
    with ThreadPoolExecutor() as threads:
        for delivery in [threads.submit(receive, spark, manager, pieces) for pieces in (3, 40)]:
            delivery.result()
    stock = spark.read.format("pythia").option("table", STOCK).load()
    return {row["item"]: row["pieces"] for row in stock.collect()}


if __name__ == "__main__":
    session = SparkSession.builder.getOrCreate()
    register(session)
    settings = ClientSettings(
        zookeeper=os.environ["PYTHIA_ZOOKEEPER"],
        thrift=os.environ["PYTHIA_THRIFT"],
        root=os.environ.get("PYTHIA_ROOT", "/pythia"),
    )
    with TransactionManager.connect(settings) as connected:
        print(run(session, connected))
