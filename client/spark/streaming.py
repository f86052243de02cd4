"""Writing a stream, exactly once: every micro-batch is one transaction, and its number commits with its rows.

Spark repeats a batch, under the same number, whose end it has not on record in its own checkpoint: a driver may die
after the commit here and before Spark's own. So (query, batch) is written into a table of Pythia's by the transaction
that writes the rows (``client.spark.progress``), and a batch that is on record already is dropped, not written again.
The record is a row of the write set: of two incarnations of a query that run at once, one commits a batch.

Spark makes a writer for each phase of each batch. Only the one that it plans with is pickled, for the tasks; one that
commits or aborts is made anew and knows the tasks' messages, and only tasks can tell the query's id. So the transaction
begins where the writer is pickled, and travels to the end of the batch in the messages.

What the record says wins: where a restart computes a batch differently, from input that is not deterministic, the rows
that committed first stay.

A function of ``foreachBatch`` has the same record, written by its own transaction: ``land_batch``.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Final

import pyarrow as pa
from pyspark import TaskContext
from pyspark.errors import AnalysisException
from pyspark.sql import DataFrame
from pyspark.sql.datasource import DataSourceStreamArrowWriter, WriterCommitMessage

from client.catalog.record_tables import STREAMS
from client.errors import InvalidRequest, PythiaError, TransactionAborted
from client.handles import TransactionHandle
from client.manager import TransactionManager
from client.snapshots.snapshot import Snapshot
from client.spark.codecs import RowEncoder
from client.spark.connections import manager_for
from client.spark.errors import InvalidOption
from client.spark.mapping import TableMapping
from client.spark.options import WRITE_BATCH_ROWS, SourceOptions
from client.spark.progress import Progress, Verdict, advanced, judge
from client.spark.query_identity import QUERY_ID, files_of, query_at
from client.spark.writer import write_batches
from client.transactions.settling import commit_or_settle
from client.transactions.transaction import Transaction
from commit_table import Committed

_log = logging.getLogger(__name__)

WHOLE_QUERY: Final = ""
"""In place of a table, in the record of a query whose batches a function writes, into whatever tables."""

_BATCHES: Final = b"b:batches"


@dataclass(frozen=True, slots=True)
class Part:
    """What all tasks of one attempt at a batch have in common: the transaction, its bulk write, the query's id."""

    handle: TransactionHandle
    job: str
    query: str


@dataclass(frozen=True)
class WrittenPart(WriterCommitMessage):
    """One task's report: which attempt of which partition wrote, and into what."""

    part: Part
    partition: int
    attempt: int


class PythiaStreamWriter(DataSourceStreamArrowWriter):
    """One phase of one micro-batch: its planning and its tasks, or its commit, or its abort.

    ``names``: the columns that the stream has, by default all.
    """

    def __init__(self, options: SourceOptions, mapping: TableMapping, names: Sequence[str] | None = None) -> None:
        self._settings = options.settings
        self._names = names
        self._batch_rows = options.batch_rows or WRITE_BATCH_ROWS
        self._mapping = mapping
        self._begun: tuple[TransactionHandle, str] | None = None

    def __getstate__(self) -> dict[str, Any]:
        """The writer as the tasks get it: with the transaction of the batch, which begins here."""
        if self._begun is None:
            manager = manager_for(self._settings)
            handle = manager.transaction().handle()
            self._begun = handle, manager.open_job(handle)
        return self.__dict__.copy()

    def write(self, iterator: Iterator[pa.RecordBatch]) -> WrittenPart:
        """Write a partition's rows, in a task."""
        task = TaskContext.get()
        query = task.getLocalProperty(QUERY_ID) if task is not None else None
        if task is None or query is None or self._begun is None:
            raise PythiaError("a part of a stream's batch is written within a task of a streaming query only")
        handle, job = self._begun
        partition, attempt = task.partitionId(), task.taskAttemptId()
        writer = manager_for(self._settings).attempt_writer(
            handle, self._mapping.table, job, partition=partition, attempt=attempt
        )
        write_batches(writer, RowEncoder(self._mapping, self._names), iterator, self._batch_rows)
        return WrittenPart(Part(handle, job, query), partition, attempt)

    def commit(self, messages: Sequence[WriterCommitMessage | None], batch: int) -> None:
        """Commit a batch with its record; drop it where it is on record already.

        Raising makes Spark call ``abort`` and end the query; after its restart the batch comes again.
        """
        reports = [message for message in messages if isinstance(message, WrittenPart)]
        if len(reports) != len(messages):
            raise PythiaError(f"{len(messages) - len(reports)} partitions of the batch did not report what they wrote")
        parts = {report.part for report in reports}
        if not parts:
            return  # a batch of no partition: nothing was written, and nothing of it could come twice
        if len(parts) > 1:
            raise PythiaError(f"the tasks of batch {batch} report {len(parts)} transactions: it cannot be committed")
        winners = [(report.partition, report.attempt) for report in reports]
        commit_batch(manager_for(self._settings), self._mapping.table, parts.pop(), batch, winners)

    def abort(self, messages: Sequence[WriterCommitMessage | None], batch: int) -> None:
        """Make sure that nothing of this attempt at a batch ever becomes visible, unless it has committed.

        Where no task has reported, its transaction is not known here: it never commits, since nobody tries, and the
        oracle gives it up after ``transaction_life_ms``.
        """
        manager = manager_for(self._settings)
        for part in {message.part for message in messages if isinstance(message, WrittenPart)}:
            if isinstance(manager.resume(part.handle).rollback(), Committed):
                _log.warning(
                    "batch %d of query %s had committed although its commit reported an error: nothing was undone, and "
                    "Spark's repetition of the batch will be dropped",
                    batch,
                    part.query,
                )


def check_streamable(options: SourceOptions, *, overwrite: bool) -> None:
    """Raise ``InvalidOption`` for an output mode, or an option, that a streaming write cannot have."""
    if overwrite:
        raise InvalidOption(
            "output mode 'complete' is not supported: it would replace the whole table with every batch; write with "
            "outputMode('append'), which replaces the rows whose row keys are in the batch"
        )
    if options.transaction is not None or options.is_for_reading:
        raise InvalidOption(
            "leave the options 'transaction', 'snapshot', 'as_of', 'changed_since', 'poll_interval_ms', "
            "'position_snapshot' and 'columns' out of a streaming write: each of its batches is a transaction of its "
            "own, and has the columns of the stream"
        )
    if options.operation != "upsert" or options.overwrite_prefix is not None:
        raise InvalidOption(
            "a streaming write replaces the rows whose row keys are in a batch: leave the options 'operation' and "
            "'overwrite_prefix' out of it, and delete rows in a batch write"
        )
    if options.claim is not None:
        raise InvalidOption(
            "leave the option 'claim' out of a streaming write: each of its batches lands once, by its number"
        )


def commit_batch(
    manager: TransactionManager, table: str, part: Part, batch: int, winners: Sequence[tuple[int, int]]
) -> None:
    """Commit what the winning attempts wrote of a batch, once and for all times.

    Returns once the batch is in the table, by this transaction or by an earlier one. Raises ``InvalidRequest`` for a
    batch below the newest on record, ``TransactionAborted``, ``OutcomeUnknown``, ``NoPrimary``, ``StoreUnavailable``.
    """
    transaction = manager.resume(part.handle)
    records, row = manager.catalog.create_record_table(STREAMS), _record_row(part.query, table)
    progress = _progress(transaction, records, row)
    if _verdict(progress, part.query, table, batch) == "skip":
        transaction.rollback()
        return
    manager.seal_job(part.handle, part.job, winners)
    transaction.put(records, row, {_BATCHES: advanced(progress, batch).to_json()})
    try:
        commit_or_settle(transaction)
    except TransactionAborted:
        latest = _progress(manager.snapshot(), records, row)
        if _verdict(latest, part.query, table, batch) != "skip":
            raise


def land_batch(
    manager: TransactionManager,
    batch: DataFrame,
    number: int,
    job: Callable[[Transaction], None],
    *,
    checkpoint: str | None = None,
) -> bool:
    """In a function of ``foreachBatch``, once: write a batch in one transaction, which lands exactly once.

    ``batch`` and ``number`` are what Spark calls that function with; ``job`` writes, in the transaction that it is
    called with, which also puts the number on record. It is called again, in a new transaction, after a conflict
    (``manager.run``), and not at all where Spark repeats a batch that has landed; whether it was is returned.

    With Spark Connect ``checkpoint`` is the query's ``checkpointLocation``; elsewhere it is not looked at.

    Raises ``InvalidRequest`` elsewhere than in ``foreachBatch``, for a checkpoint of another query and for a batch
    below the newest on record, and what ``manager.run`` raises: then Spark ends the query, and repeats the batch once
    it is started again.
    """
    query = _query_of(batch, number, checkpoint)
    records, row = manager.catalog.create_record_table(STREAMS), _record_row(query, WHOLE_QUERY)

    def write(transaction: Transaction) -> bool:
        progress = _progress(transaction, records, row)
        if _verdict(progress, query, WHOLE_QUERY, number) == "skip":
            return False
        job(transaction)
        transaction.put(records, row, {_BATCHES: advanced(progress, number).to_json()})
        return True

    return manager.run(write)


def stream_progress(manager: TransactionManager, query: str, table: str = WHOLE_QUERY) -> Progress | None:
    """Which batches of a streaming query are in a table by now, or have been landed by ``land_batch``; ``None``: none
    is on record.
    """
    return _progress(manager.snapshot(), manager.catalog.create_record_table(STREAMS), _record_row(query, table))


def _query_of(batch: DataFrame, number: int, checkpoint: str | None) -> str:
    """The id of the query that calls a function of ``foreachBatch``. Raises ``InvalidRequest``."""
    context = getattr(batch.sparkSession, "sparkContext", None)
    if context is None:
        return _query_of_checkpoint(batch, number, checkpoint)
    query: str | None = context.getLocalProperty(QUERY_ID)
    if query is None:
        raise InvalidRequest("land_batch is for the function that foreachBatch calls, with what it is called with")
    return query


def _query_of_checkpoint(batch: DataFrame, number: int, checkpoint: str | None) -> str:
    """The same with Spark Connect."""
    if not isinstance(checkpoint, str):
        raise InvalidRequest(
            "Spark Connect does not tell a function of foreachBatch which query calls it: call land_batch with "
            f"checkpoint=…, the query's checkpointLocation as text, not {checkpoint!r}"
        )
    found: dict[str, str] = {}
    try:
        files = batch.sparkSession.read.text(files_of(checkpoint, number), wholetext=True)
        found = dict(files.select("_metadata.file_path", "value").collect())
    except AnalysisException as error:
        if error.getCondition() != "PATH_NOT_FOUND":
            raise
    return query_at(number, found, checkpoint)


def _verdict(progress: Progress | None, query: str, table: str, batch: int) -> Verdict:
    """``judge``, and say so where it is not the ordinary case."""
    verdict = judge(progress, batch)
    if verdict == "skip":
        _log.warning("batch %d of query %s is in %s already: it is not written again", batch, query, _named(table))
    elif verdict == "refuse" and progress is not None:
        raise InvalidRequest(
            f"batch {batch} of query {query} is older than the newest on record for {_named(table)}, {progress.last}: "
            f"the query's checkpoint was put back or copied, so that this batch may hold other input than the one that "
            f"had its number, and nothing of it was written; start the query with a new checkpointLocation, from where "
            f"its input is to be written again"
        )
    return verdict


def _named(table: str) -> str:
    return f"table {table!r}" if table else "its tables"


def _progress(view: Transaction | Snapshot, records: str, row: bytes) -> Progress | None:
    value = view.get(records, row, [_BATCHES]).get(_BATCHES)
    return None if value is None else Progress.from_json(value)


def _record_row(query: str, table: str) -> bytes:
    return f"{query}\0{table}".encode()
