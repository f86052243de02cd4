"""A stream of files into a table: every micro-batch lands exactly once, and the newest line of a key wins.

    export PYTHIA_ZOOKEEPER=… PYTHIA_THRIFT=…
    python examples/streaming_upsert.py FOLDER CHECKPOINT

FOLDER: where lines of JSON such as {"sensor": "a", "celsius": 21.5} come in files. CHECKPOINT: a folder for Spark's own
record. It may be killed at any time and started again.
"""

from __future__ import annotations

import os
import sys
from pathlib import Path

from pyspark.sql import DataFrame, SparkSession

from client import ClientSettings, TransactionManager
from client.spark import TableMapping, create_table, register

READINGS = "example_readings"
SCHEMA = "sensor string, celsius double"


def make_table(spark: SparkSession, manager: TransactionManager) -> None:
    """Unless it is there from an earlier run."""
    schema = spark.createDataFrame([], SCHEMA).schema
    create_table(manager, TableMapping.from_schema(READINGS, schema, row_key=["sensor"]), if_missing=True)


def take_in(spark: SparkSession, folder: Path, checkpoint: Path) -> None:
    """Write all files that came since the last run, one in each micro-batch, and return."""
    lines = spark.readStream.schema(SCHEMA).option("maxFilesPerTrigger", 1).json(str(folder))
    query = (
        lines.writeStream.format("pythia")
        .option("table", READINGS)
        .option("checkpointLocation", str(checkpoint))
        .trigger(availableNow=True)
        .start()
    )
    query.awaitTermination()


def run(spark: SparkSession, manager: TransactionManager, folder: Path, checkpoint: Path) -> DataFrame:
    """All of it; returns the newest readings."""
    make_table(spark, manager)
    take_in(spark, folder, checkpoint)
    return spark.read.format("pythia").option("table", READINGS).load().orderBy("sensor")


if __name__ == "__main__":
    session = SparkSession.builder.getOrCreate()
    register(session)
    settings = ClientSettings(
        zookeeper=os.environ["PYTHIA_ZOOKEEPER"],
        thrift=os.environ["PYTHIA_THRIFT"],
        root=os.environ.get("PYTHIA_ROOT", "/pythia"),
    )
    with TransactionManager.connect(settings) as connected:
        run(session, connected, Path(sys.argv[1]), Path(sys.argv[2])).show()
