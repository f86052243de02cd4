"""What a Spark job costs without transactions: a data source that writes and reads the same cells, and nothing else.

The same encoder, decoder, requests, partitions and batches as ``client.spark`` has; no transaction, no record of what
is written, no shadow cells, and no look at who wrote what is read. What ours takes beyond it is what a transaction
costs. A null is a cell that is not there.
"""

from __future__ import annotations

from collections.abc import Iterator, MutableMapping, Sequence
from typing import Final

import pyarrow as pa
from pyspark.sql.datasource import (
    DataSource,
    DataSourceArrowWriter,
    DataSourceReader,
    InputPartition,
    WriterCommitMessage,
)
from pyspark.sql.types import StructType

from client import ClientSettings
from client.spark import TableMapping
from client.spark.codecs import RowDecoder, RowEncoder, in_cells
from client.spark.connections import manager_for
from client.spark.options import MIN_PARTITIONS, READ_BATCH_ROWS, WRITE_BATCH_ROWS
from client.spark.packing import pack
from client.spark.reader import arrow_schema, families_of
from client.spark.task_ranges import WHOLE_TABLE, task_ranges
from client.spark.writer import joined
from store import KeyRange
from store.columns import CellColumns

TIMESTAMP: Final = 1
"""Of every cell."""


class PlainSource(DataSource):
    """``settings`` and ``mapping``, both as JSON, are its options."""

    def __init__(self, options: MutableMapping[str, str]) -> None:
        super().__init__(options)
        self._settings = ClientSettings.from_json(options["settings"])
        self._mapping = TableMapping.from_json(options["mapping"])

    @classmethod
    def name(cls) -> str:
        """What stands behind ``format(...)``."""
        return "plain"

    def schema(self) -> StructType:
        """The table's columns."""
        return self._mapping.to_struct()

    def reader(self, schema: StructType) -> PlainReader:
        """Read everything."""
        return PlainReader(self._settings, self._mapping, schema)

    def writer(self, schema: StructType, overwrite: bool) -> PlainWriter:
        """Write a DataFrame."""
        return PlainWriter(self._settings, self._mapping)


class PlainWriter(DataSourceArrowWriter):
    """Writes rows, and is done."""

    def __init__(self, settings: ClientSettings, mapping: TableMapping) -> None:
        self._settings = settings
        self._mapping = mapping

    def write(self, iterator: Iterator[pa.RecordBatch]) -> WriterCommitMessage:
        """Write a partition's rows, in a task."""
        store, encoder = manager_for(self._settings).store, RowEncoder(self._mapping)
        for batch in joined(iterator, WRITE_BATCH_ROWS):
            store.put_columns(self._mapping.table, self._cells(encoder, batch), TIMESTAMP)
        return WriterCommitMessage()

    def _cells(self, encoder: RowEncoder, batch: pa.RecordBatch) -> CellColumns:
        keys, values = encoder.values(batch)
        if self._mapping.packed:
            values = [pack(self._mapping.value_columns, values)]
        return in_cells(self._mapping.cells, keys, values)


class PlainReader(DataSourceReader):
    """Reads the newest cells."""

    def __init__(self, settings: ClientSettings, mapping: TableMapping, schema: StructType) -> None:
        self._settings = settings
        self._mapping = mapping
        self._schema = arrow_schema(schema)

    def partitions(self) -> Sequence[InputPartition]:
        """As ours."""
        manager = manager_for(self._settings)
        families = families_of(self._mapping)
        tasks = task_ranges(manager.store, self._mapping.table, families, WHOLE_TABLE, min_partitions=MIN_PARTITIONS)
        return [InputPartition(key_ranges) for key_ranges in tasks]

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        """The partition's rows in key order."""
        store, decoder = manager_for(self._settings).store, RowDecoder(self._mapping, self._schema)
        table, families = self._mapping.table, families_of(self._mapping)
        ranges: Sequence[KeyRange] = partition.value
        for key_range in ranges:
            for batch in store.scan_columns(
                table, key_range, families, self._mapping.cells, batch_rows=READ_BATCH_ROWS
            ):
                yield decoder.decode(batch.cells)
