"""Reading a table into Spark: one snapshot for all partitions of a read, or the view of one open transaction.

The snapshot is taken where the read is planned and travels in the partitions, so that every task of every executor
reads at it, however late it runs and however often it is repeated. Reading needs no oracle once it is planned.

A row exists as long as any of its cells does, so every column of the mapped families is read, whichever are asked for:
a row whose asked cells are all null must appear. Only where a filter lets no null pass are the asked columns enough.

All jobs of a transaction write at its one timestamp, so a read of it cannot leave out those of a job that is under way,
of which it may be a part: it reads as an open transaction only where an earlier job has written into the table, and is
refused once a later one does, or has done.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

import pyarrow as pa
from pyspark.sql.datasource import DataSourceReader, Filter, InputPartition
from pyspark.sql.types import StructType

from client.errors import InvalidRequest, TransactionAborted
from client.handles import SnapshotHandle, TransactionHandle
from client.manager import TransactionManager
from client.snapshots.snapshot import Snapshot
from client.spark.codecs import RowDecoder
from client.spark.column_types import arrow_type, normalise
from client.spark.connections import manager_for
from client.spark.mapping import TableMapping
from client.spark.options import READ_BATCH_ROWS, SourceOptions
from client.spark.predicates import demands_a_value, plan
from client.spark.task_ranges import WHOLE_TABLE, task_ranges
from client.transactions.transaction import Transaction
from commit_table import Aborted
from store import KeyRange
from store.columns import CellColumns

View = TransactionHandle | SnapshotHandle
"""What is read at: a snapshot, or an open transaction with what was written into it."""


class ReadTask(NamedTuple):
    """What one Spark task reads: ranges of rows, at a snapshot or as an open transaction sees them.

    ``jobs``: those of the transaction that had written into the table, and ended, when the read was planned.
    """

    key_ranges: tuple[KeyRange, ...]
    view: View
    jobs: frozenset[str] = frozenset()


class PythiaReader(DataSourceReader):
    """Reads the columns of ``schema``. Raises ``InvalidMapping`` where the table does not have them so."""

    def __init__(self, options: SourceOptions, mapping: TableMapping, schema: StructType) -> None:
        mapping.check_readable(schema)
        self._options = options
        self._mapping = mapping
        self._schema = arrow_schema(schema)
        self._wanted: tuple[KeyRange, ...] = WHOLE_TABLE
        self._cells = families_of(mapping)

    def partitions(self) -> list[InputPartition]:
        """At least ``min_partitions`` ranges where the keys allow it; none crosses a region."""
        manager = manager_for(self._options.settings)
        view, jobs = view_to_read(manager, self._options)
        tasks = task_ranges(
            manager.store,
            self._mapping.table,
            families_of(self._mapping),
            self._wanted,
            min_partitions=self._options.min_partitions,
        )
        return [InputPartition(ReadTask(key_ranges, view, jobs)) for key_ranges in tasks]

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        """The partition's rows in key order, in batches of bounded size."""
        task: ReadTask = partition.value
        manager = manager_for(self._options.settings)
        decoder = RowDecoder(self._mapping, self._schema)
        for cells in scan(manager, self._mapping, task, self._cells, self._options.batch_rows or READ_BATCH_ROWS):
            yield decoder.decode(cells)


class FilteringReader(PythiaReader):
    """A reader that takes filters. A class of its own: Spark refuses it where the session does not allow for them.

    Spark 4.3.0 keeps what it planned for one filter with the DataFrame or view, and reads other uses of it by that,
    too: whoever asks for this reader has to know (docs/spark.md).
    """

    def pushFilters(self, filters: list[Filter]) -> Iterable[Filter]:  # noqa: N802
        """Read only the rows that can pass; returns the filters that Spark still has to look at."""
        planned = plan(self._mapping, filters)
        self._wanted = planned.ranges
        if demands_a_value(self._mapping, filters):
            self._cells = cells_of(self._mapping, self._schema.names)
        return planned.remaining


def arrow_schema(schema: StructType) -> pa.Schema:
    """The Arrow schema that Spark expects of batches of a DataFrame's schema."""
    return pa.schema(
        [
            pa.field(field.name, arrow_type(normalise(field.dataType.simpleString())), nullable=field.nullable)
            for field in schema.fields
        ]
    )


def view_to_read(manager: TransactionManager, options: SourceOptions) -> tuple[View, frozenset[str]]:
    """What a read is at, decided once for all its tasks, and which jobs of an open transaction it shows.

    A table into which no job of the transaction has written, and ended, is read without its own writes: the job that
    reads may be the first that writes into it, and must not take for its input what it has written itself.
    """
    transaction = options.transaction
    if transaction is None:
        return options.snapshot or manager.snapshot(at=options.as_of).handle(), frozenset()
    ended = frozenset(
        job for job, sealed in manager.manifest.jobs_into(transaction.start_timestamp, options.table).items() if sealed
    )
    if ended:
        return transaction, ended
    snapshot = SnapshotHandle(
        transaction.snapshot_timestamp, transaction.epoch, transaction.settings, transaction.start_timestamp
    )
    return snapshot, frozenset()


def scan(
    manager: TransactionManager, mapping: TableMapping, task: ReadTask, columns: Sequence[bytes], batch_rows: int
) -> Iterator[CellColumns]:
    """The rows of a task as its snapshot or transaction sees them; ``columns`` are families and cells.

    Raises ``InvalidRequest`` where a job of the transaction has written into the table since the read was planned,
    ``TransactionAborted``.
    """
    view = resumed(manager, task.view)
    for start, stop in task.key_ranges:
        for cells in view.scan_columns(
            mapping.table, mapping.cells, start=start, stop=stop, columns=columns, batch_rows=batch_rows
        ):
            _require_own_writes_to_stand(manager, task, mapping.table)
            yield cells
        _require_own_writes_to_stand(manager, task, mapping.table)  # they may have deleted what is missing


def _require_own_writes_to_stand(manager: TransactionManager, task: ReadTask, table: str) -> None:
    """Raise where what was read may be of a job that the read does not show, the one that reads, say, or was rolled
    back.

    A job records its rows before it writes them, so none of its cells were read where nothing is on record afterwards.
    One that has ended since is no better: tasks that read before it, or what is cached of them, show the table without.
    """
    view = task.view
    if isinstance(view, SnapshotHandle):
        return
    if isinstance(manager.commit_table.outcome(view.start_timestamp), Aborted):
        raise TransactionAborted(view.start_timestamp, f"what it wrote into table {table!r} is nothing to read")
    if manager.manifest.is_written_by_others(view.start_timestamp, table, task.jobs):
        raise InvalidRequest(
            f"table {table!r} is read as transaction {view.start_timestamp} saw it when the read was planned, but a "
            "job of that transaction has written into it since, or does so now: load it again once that has ended; a "
            "job that writes the table that it reads first reads all of it, by .localCheckpoint() on the DataFrame "
            "that is to be written"
        )


def resumed(manager: TransactionManager, view: View) -> Transaction | Snapshot:
    """What a view is read by, in whatever process."""
    return manager.resume(view) if isinstance(view, TransactionHandle) else manager.resume_snapshot(view)


def families_of(mapping: TableMapping) -> list[bytes]:
    """Every mapped family: what tells for certain whether a row exists."""
    return [family.encode() for family in mapping.families]


def cells_of(mapping: TableMapping, names: Sequence[str]) -> list[bytes]:
    """The cells of the value columns among ``names``; whole families where these are all of them."""
    cells = mapping.cells_of(names)
    return list(cells) if 0 < len(cells) < len(mapping.cells) else families_of(mapping)
