"""The Spark data source ``pythia``: DataFrames in and out of transactions and snapshots."""

from client.spark.batches import record_batches, record_batches_of_changes
from client.spark.errors import InvalidData, InvalidMapping, InvalidOption
from client.spark.key_codec import row_key, row_key_prefixes
from client.spark.mapping import KeyColumn, TableMapping, ValueColumn
from client.spark.progress import Progress
from client.spark.region_keys import split_keys
from client.spark.source import PythiaDataSource, register
from client.spark.streaming import land_batch, stream_progress
from client.spark.sweeping import SparkSweep
from client.spark.tables import adopt_table, create_table, table_mapping
from client.spark.worker_interpreter import WorkersLackPythia

__all__ = [
    "InvalidData",
    "InvalidMapping",
    "InvalidOption",
    "KeyColumn",
    "Progress",
    "PythiaDataSource",
    "SparkSweep",
    "TableMapping",
    "ValueColumn",
    "WorkersLackPythia",
    "adopt_table",
    "create_table",
    "land_batch",
    "record_batches",
    "record_batches_of_changes",
    "register",
    "row_key",
    "row_key_prefixes",
    "split_keys",
    "stream_progress",
    "table_mapping",
]
