"""Sums that follow a table: each run computes the groups anew in which something changed since the last one.

    export PYTHIA_ZOOKEEPER=… PYTHIA_THRIFT=…
    python examples/following_changes.py

The moment up to which the sums are right is a row that the transaction writes with them. So no change is left out and
none counts twice, whoever is killed when, and however often a scheduler starts the job.
"""

from __future__ import annotations

import os

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as column

from client import ClientSettings, Transaction, TransactionManager
from client.spark import TableMapping, create_table, register

SALES, SUMS, POSITIONS = "example_sales", "example_sums", "example_positions"
SALES_SCHEMA = "region string, number bigint, amount bigint"
SUMS_SCHEMA = "region string, sales bigint, amount bigint"
SINCE = b"d:since"


def make_tables(spark: SparkSession, manager: TransactionManager) -> None:
    """Unless they are there from an earlier run."""
    sales, sums = (spark.createDataFrame([], schema).schema for schema in (SALES_SCHEMA, SUMS_SCHEMA))
    create_table(manager, TableMapping.from_schema(SALES, sales, row_key=["region", "number"]), if_missing=True)
    create_table(manager, TableMapping.from_schema(SUMS, sums, row_key=["region"]), if_missing=True)
    manager.create_table(POSITIONS, ["d"], conflict_level="row", if_missing=True)


def sell(spark: SparkSession, sales: list[tuple[str, int, int]]) -> None:
    """Some rows more, or others in their place."""
    rows = spark.createDataFrame(sales, SALES_SCHEMA)
    rows.write.format("pythia").mode("append").option("table", SALES).save()


def cancel(spark: SparkSession, sales: list[tuple[str, int]]) -> None:
    """Some rows less."""
    keys = spark.createDataFrame(sales, "region string, number bigint")
    keys.write.format("pythia").mode("append").options(table=SALES, operation="delete").save()


def follow(spark: SparkSession, manager: TransactionManager) -> list[str]:
    """Bring the sums up to now; returns the regions that were computed anew."""

    def job(transaction: Transaction) -> list[str]:  # called again, in a new transaction, after a conflict
        since = transaction.get(POSITIONS, SUMS.encode()).get(SINCE, b"0").decode()
        pythia = {"transaction": transaction.handle().to_json()}
        changed = spark.read.format("pythia").options(table=SALES, changed_since=since, **pythia).load()
        regions = sorted(row["region"] for row in changed.select("region").distinct().collect())
        if regions:
            options = {"table": SALES, "push_filters": "true", **pythia}  # reads the rows of these regions alone
            sales = spark.read.format("pythia").options(**options).load().where(column.col("region").isin(regions))
            sums = sales.groupBy("region").agg(column.count("*").alias("sales"), column.sum("amount").alias("amount"))
            touched = spark.createDataFrame([(region,) for region in regions], "region string")
            gone = touched.join(sums, "region", "left_anti").localCheckpoint()
            sums.write.format("pythia").mode("append").options(table=SUMS, **pythia).save()
            gone.write.format("pythia").mode("append").options(table=SUMS, operation="delete", **pythia).save()
        transaction.put(POSITIONS, SUMS.encode(), {SINCE: b"%d" % transaction.snapshot_timestamp})
        return regions

    return manager.run(job)


def sums(spark: SparkSession) -> DataFrame:
    """As they are now."""
    return spark.read.format("pythia").option("table", SUMS).load().orderBy("region")


def run(spark: SparkSession, manager: TransactionManager) -> DataFrame:
    """All of it."""
    make_tables(spark, manager)
    sell(spark, [("north", 1, 10), ("north", 2, 5), ("south", 1, 7), ("west", 1, 1)])
    print("computed:", follow(spark, manager))
    sell(spark, [("south", 2, 3)])
    cancel(spark, [("west", 1)])
    print("computed:", follow(spark, manager))
    return sums(spark)


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
