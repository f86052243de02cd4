"""Reading a table into Spark: one snapshot for all partitions of a read, or the view of one open transaction.

The snapshot is taken where the read is planned and travels in the partitions, so that every task of every executor
reads at it, however late it runs and however often it is repeated. Reading needs no oracle once it is planned.

Only the chosen columns are decoded; every column of the mapped families is read, since a row exists as long as any of
its cells does.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Final, NamedTuple

import pyarrow as pa
from pyspark.sql.datasource import DataSourceReader, InputPartition
from pyspark.sql.types import StructType

from client.handles import SnapshotHandle, TransactionHandle
from client.manager import TransactionManager
from client.spark.codecs import RowDecoder, ScannedRow
from client.spark.column_types import arrow_type, normalise
from client.spark.connections import manager_for
from client.spark.mapping import TableMapping
from client.spark.options import SourceOptions
from client.spark.splitting import pieces_for_each_region, split
from store import KeyRange
from store.garbage import collector_paused

BATCH_BYTES_MAX: Final = 16 * 2**20
"""A record batch is closed once its keys and values reach this size, however few its rows are."""


class ReadTask(NamedTuple):
    """What one Spark task reads: a range of rows, at a snapshot or as an open transaction sees them."""

    key_range: KeyRange
    view: TransactionHandle | SnapshotHandle


class PythiaReader(DataSourceReader):
    """Reads the columns of ``schema``. Raises ``InvalidMapping`` where the table does not have them so."""

    def __init__(self, options: SourceOptions, mapping: TableMapping, schema: StructType) -> None:
        mapping.check_readable(schema)
        self._options = options
        self._mapping = mapping
        self._schema = arrow_schema(schema)

    def partitions(self) -> list[InputPartition]:
        """At least ``min_partitions`` ranges where the keys allow it; none crosses a region."""
        manager = manager_for(self._options.settings)
        view = self._options.transaction or self._options.snapshot or manager.snapshot().handle()
        ranges = key_ranges(manager, self._mapping, self._options.min_partitions)
        return [InputPartition(ReadTask(key_range, view)) for key_range in ranges]

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        """The partition's rows in key order, in batches of bounded size."""
        task: ReadTask = partition.value
        manager = manager_for(self._options.settings)
        rows = scan(manager, self._mapping, task)
        decoder = RowDecoder(self._mapping, self._schema)
        for batch in batches(rows, self._options.batch_rows, BATCH_BYTES_MAX):
            yield decoder.decode(batch)


def arrow_schema(schema: StructType) -> pa.Schema:
    """The Arrow schema that Spark expects of batches of a DataFrame's schema."""
    return pa.schema(
        [
            pa.field(field.name, arrow_type(normalise(field.dataType.simpleString())), nullable=field.nullable)
            for field in schema.fields
        ]
    )


def key_ranges(manager: TransactionManager, mapping: TableMapping, min_partitions: int) -> list[KeyRange]:
    """The table's regions, each cut into as many pieces as ``min_partitions`` asks for."""
    regions = manager.store.regions(mapping.table)
    pieces = pieces_for_each_region(len(regions), min_partitions)
    if pieces == 1:
        return regions
    return [part for region in regions for part in _pieces(manager, mapping, region, pieces)]


def _pieces(manager: TransactionManager, mapping: TableMapping, region: KeyRange, pieces: int) -> list[KeyRange]:
    families = _families(mapping)
    first, last = (
        next(manager.store.scan(mapping.table, region, families, batch_rows=1, reverse=reverse), None)
        for reverse in (False, True)
    )
    if first is None or last is None:
        return [region]
    return split(region, first[0], last[0], pieces)


def scan(manager: TransactionManager, mapping: TableMapping, task: ReadTask) -> Iterator[ScannedRow]:
    """The rows of a task as its snapshot or transaction sees them."""
    start, stop = task.key_range
    if isinstance(task.view, TransactionHandle):
        view = manager.resume(task.view)
        return view.scan(mapping.table, start=start, stop=stop, columns=_families(mapping))
    return manager.resume_snapshot(task.view).scan(mapping.table, start=start, stop=stop, columns=_families(mapping))


def batches(rows: Iterable[ScannedRow], rows_max: int, bytes_max: int) -> Iterator[list[ScannedRow]]:
    """Rows in lists that end at ``rows_max`` rows or once they hold ``bytes_max`` bytes, whichever comes first."""
    remaining = iter(rows)
    while True:
        with collector_paused():
            batch = _take(remaining, rows_max, bytes_max)
        if not batch:
            return
        yield batch


def _take(rows: Iterator[ScannedRow], rows_max: int, bytes_max: int) -> list[ScannedRow]:
    batch: list[ScannedRow] = []
    size = 0
    for row in rows:
        batch.append(row)
        size += len(row[0]) + sum(map(len, row[1].values()))
        if len(batch) == rows_max or size >= bytes_max:
            break
    return batch


def _families(mapping: TableMapping) -> list[bytes]:
    return [family.encode() for family in mapping.families]
