"""Two jobs that change the same rows at once, and both count: a job that meets a conflict is run again.

    export PYTHIA_ZOOKEEPER=… PYTHIA_THRIFT=…
    python examples/concurrent_jobs.py

``manager.run`` calls a function in a transaction and commits; where another transaction has committed to the same rows
since, it calls the function again in a new one, which reads the new values. So the function reads and writes by its
transaction only, and has no effects elsewhere. It claims the number of its delivery: one that comes twice counts once.
"""

from __future__ import annotations

import os
import uuid
from concurrent.futures import ThreadPoolExecutor

from pyspark.sql import SparkSession
from pyspark.sql import functions as column

from client import ClientSettings, Transaction, TransactionManager
from client.spark import TableMapping, create_table, register

STOCK = "example_stock"
SCHEMA = "item string, pieces bigint"
ATTEMPTS_MAX = 20


def receive(spark: SparkSession, manager: TransactionManager, delivery: str, pieces: int) -> None:
    """Add as many pieces of each item, unless the delivery has been received."""
    register(spark)  # for this thread

    def job(transaction: Transaction) -> None:
        if not transaction.claim(delivery, table=STOCK):
            return
        handle = transaction.handle().to_json()
        stock = spark.read.format("pythia").options(table=STOCK, transaction=handle).load()
        more = stock.withColumn("pieces", column.col("pieces") + pieces)
        more.write.format("pythia").mode("append").options(table=STOCK, transaction=handle).save()

    manager.run(job, attempts_max=ATTEMPTS_MAX)


def run(spark: SparkSession, manager: TransactionManager) -> dict[str, int]:
    """Two deliveries at once, of which one is told twice; returns what is in stock."""
    empty = spark.createDataFrame([("bolt", 0), ("nut", 0)], SCHEMA)
    create_table(manager, TableMapping.from_schema(STOCK, empty.schema, row_key=["item"]), if_missing=True)
    empty.write.format("pythia").mode("append").option("table", STOCK).save()
    first, second = (str(uuid.uuid4()) for _ in range(2))
    with ThreadPoolExecutor() as threads:
        told = [(first, 3), (second, 40), (first, 3)]
        for received in [threads.submit(receive, spark, manager, *delivery) for delivery in told]:
            received.result()
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
