"""Reading into Spark what changed in a table between two moments, in one read or as a stream.

Every row that is different comes once, as it is at the later moment, with two columns more: ``_change_type`` says
whether it is to be put or to be deleted, ``_commit_timestamp`` when that was committed last. Put on top of what the
earlier moment showed, it gives what the later one shows (``client.snapshots.changes``).

HBase's Thrift 1 API cannot tell which rows were written since some time, so a read goes over all rows of the table;
what has not changed is dropped before anything of it is decoded.

A stream's offset is a snapshot's timestamp. While the stream runs, its reader keeps the snapshots open from which on
batches are still to be read, so that no vacuum drops what they need. While it does not, a name that it has moved along
(``position_snapshot``) keeps the last of them.
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, Final, NamedTuple

import pyarrow as pa
from pyspark.sql.datasource import DataSourceReader, DataSourceStreamReader, Filter, InputPartition
from pyspark.sql.types import StructType

try:
    from pyspark.sql.streaming.datasource import SupportsTriggerAvailableNow
except ImportError:  # before Spark 4.2, which makes one batch with this trigger, be that an earlier one that it repeats

    class SupportsTriggerAvailableNow:  # type: ignore[no-redef]
        """In the place of Spark's mark for a source that can be asked where it is to stop."""


from client.errors import InvalidRequest
from client.handles import SnapshotHandle
from client.positions import moment_since, move_position
from client.snapshots.changed_rows import check_since
from client.snapshots.moments import SINCE_THE_BEGINNING
from client.snapshots.snapshot import Snapshot
from client.spark.change_columns import ChangeDecoder, without_change_columns
from client.spark.connections import manager_for
from client.spark.errors import InvalidOption
from client.spark.mapping import TableMapping
from client.spark.options import POLL_INTERVAL_MS, READ_BATCH_ROWS, SourceOptions
from client.spark.predicates import plan
from client.spark.reader import arrow_schema, families_of, view_to_read
from client.spark.task_ranges import WHOLE_TABLE, task_ranges
from store import KeyRange

_OFFSET: Final = "timestamp"


class ChangesTask(NamedTuple):
    """What one Spark task reads: ranges of rows, and between which moments they have changed."""

    key_ranges: tuple[KeyRange, ...]
    since: int
    view: SnapshotHandle


class TableChanges:
    """A table's changes, in the columns of ``schema``. Raises ``InvalidMapping`` where it does not have them so."""

    def __init__(self, options: SourceOptions, mapping: TableMapping, schema: StructType) -> None:
        mapping.check_readable(without_change_columns(schema))
        self._options = options
        self._mapping = mapping
        self._schema = arrow_schema(schema)

    def tasks(self, since: int, view: SnapshotHandle, wanted: Sequence[KeyRange]) -> list[InputPartition]:
        """One for each part of the table. Raises ``InvalidRequest`` where ``since`` is the later moment."""
        check_since(since, view.timestamp)
        manager = manager_for(self._options.settings)
        ranges = task_ranges(
            manager.store,
            self._mapping.table,
            families_of(self._mapping),
            wanted,
            min_partitions=self._options.min_partitions,
        )
        return [InputPartition(ChangesTask(key_ranges, since, view)) for key_ranges in ranges]

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        """The rows of a task that are different, in key order."""
        task: ChangesTask = partition.value
        snapshot = manager_for(self._options.settings).resume_snapshot(task.view)
        decoder = ChangeDecoder(self._mapping, self._schema)
        for start, stop in task.key_ranges:
            for changed in snapshot.changes_columns(
                self._mapping.table,
                task.since,
                self._mapping.cells,
                start=start,
                stop=stop,
                columns=families_of(self._mapping),
                batch_rows=self._options.batch_rows or READ_BATCH_ROWS,
            ):
                yield decoder.decode(changed)


class ChangesReader(DataSourceReader):
    """Reads what changed between two moments, as a batch."""

    def __init__(self, options: SourceOptions, mapping: TableMapping, schema: StructType) -> None:
        self._options = options
        self._changes = TableChanges(options, mapping, schema)
        self._mapping = mapping
        self._wanted: tuple[KeyRange, ...] = WHOLE_TABLE

    def partitions(self) -> list[InputPartition]:
        """At least ``min_partitions`` ranges where the keys allow it; none crosses a region."""
        manager = manager_for(self._options.settings)
        view, _ = view_to_read(manager, self._options)
        if not isinstance(view, SnapshotHandle):
            raise InvalidRequest(
                f"transaction {view.start_timestamp} has written into table {self._mapping.table!r}: what it wrote "
                "itself is no change that has committed; read the table's changes before it is written"
            )
        return self._changes.tasks(moment_since(manager, self._options.changed_since), view, self._wanted)

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        """The partition's rows that are different, in key order, in batches of bounded size."""
        return self._changes.read(partition)


class FilteringChangesReader(ChangesReader):
    """A reader that takes filters on the row key. A class of its own: see ``FilteringReader``."""

    def pushFilters(self, filters: list[Filter]) -> Iterable[Filter]:  # noqa: N802  # Spark's name
        """Read only the rows whose keys can pass; returns the filters that Spark still has to look at."""
        planned = plan(self._mapping, filters)
        self._wanted = planned.ranges
        return planned.remaining


class PythiaStreamReader(DataSourceStreamReader, SupportsTriggerAvailableNow):
    """Reads what changes in a table, batch by batch: each from one snapshot to the next, a while later.

    The first batch begins at ``changed_since``. Lives in one process for as long as the query runs; after a restart
    Spark gives another one the offsets of its checkpoint.
    """

    def __init__(self, options: SourceOptions, mapping: TableMapping, schema: StructType) -> None:
        self._options = options
        self._changes = TableChanges(options, mapping, schema)
        self._kept: dict[int, Snapshot] = {}
        """Snapshots that were offered, by timestamp: held open for as long as a batch begins or ends there."""
        self._offered: int | None = None
        self._offered_s = 0.0
        self._is_last = False
        """Whether what was offered is where the query is to stop."""

    def initialOffset(self) -> dict[str, int]:  # noqa: N802  # Spark's name
        """Where a query without a checkpoint begins."""
        manager = manager_for(self._options.settings)
        return {_OFFSET: moment_since(manager, self._options.changed_since)}

    def latestOffset(self, start: object = None, limit: object = None) -> dict[str, int]:  # noqa: N802  # Spark's name
        """Now; or what was answered last, for ``poll_interval_ms``: a batch reads the whole table.

        ``start`` and ``limit`` come from Spark 4.2 on, and change nothing: of a moment there is no part.
        """
        interval_s = (self._options.poll_interval_ms or POLL_INTERVAL_MS) / 1000
        is_due = not self._is_last and time.monotonic() - self._offered_s >= interval_s
        return {_OFFSET: self._offer() if self._offered is None or is_due else self._offered}

    def prepareForTriggerAvailableNow(self) -> None:  # noqa: N802  # Spark's name
        """The query is to stop at what there is now."""
        self._offer()
        self._is_last = True

    def partitions(self, start: dict[str, Any], end: dict[str, Any]) -> Sequence[InputPartition]:
        """The tasks of a batch, also of one that an earlier process had begun. Raises ``InvalidRequest``."""
        since, until = _timestamp_of(start), _timestamp_of(end)
        if since == until:
            return []
        kept = self._kept.get(until) or manager_for(self._options.settings).snapshot(at=until)
        self._kept[until] = kept
        self._name_position(until if since == SINCE_THE_BEGINNING else since)
        return self._changes.tasks(since, kept.handle(), WHOLE_TABLE)

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        """The partition's rows that are different, in key order, in batches of bounded size."""
        return self._changes.read(partition)

    def _offer(self) -> int:
        snapshot = manager_for(self._options.settings).snapshot()
        self._kept[snapshot.timestamp] = snapshot
        self._offered, self._offered_s = snapshot.timestamp, time.monotonic()
        return snapshot.timestamp

    def commit(self, end: dict[str, Any]) -> None:
        """What lies before ``end`` is done with; the next batch begins there."""
        until = _timestamp_of(end)
        self._name_position(until)
        self._kept = {timestamp: kept for timestamp, kept in self._kept.items() if timestamp >= until}

    def _name_position(self, timestamp: int) -> None:
        """Have the snapshot of the name that was given be there, where a batch still to be done begins.

        Spark says late that a batch is done, of the last one only after a restart: so it is where a batch begins, too.
        """
        if self._options.position_snapshot is not None:
            move_position(manager_for(self._options.settings), self._options.position_snapshot, timestamp)


def check_stream(options: SourceOptions) -> None:
    """Raise ``InvalidOption`` for what a stream of changes cannot be told."""
    if options.changed_since is None:
        raise InvalidOption(
            f"a stream shows what changes in table {options.table!r}: say from when on, with 'changed_since': 0 for "
            "all that there is and what changes then, or a timestamp, a time with its zone, or the name of a snapshot"
        )
    if (options.transaction, options.snapshot, options.as_of) != (None, None, None) or options.push_filters:
        raise InvalidOption(
            "leave the options 'transaction', 'snapshot', 'as_of' and 'push_filters' out of a stream: each of its "
            "batches has a snapshot of its own, and Spark pushes no filters into streams"
        )


def _timestamp_of(offset: dict[str, Any]) -> int:
    timestamp = offset.get(_OFFSET)
    if type(timestamp) is not int:
        raise InvalidRequest(
            f"the checkpoint holds the offset {offset!r}, and one of this source is {{'{_OFFSET}': a timestamp}}: was "
            "it another query's? Start with a new checkpointLocation"
        )
    return timestamp
