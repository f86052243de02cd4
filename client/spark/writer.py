"""Writing a DataFrame: every task writes tentative cells, and one decision on the driver makes them all visible.

Spark makes the writer in one process, runs its tasks in others (some twice, some twice at once) and commits or aborts
in yet another, so the writer carries values only, above all the handle of its transaction. That a task may be repeated
is harmless: it writes the same cells at the transaction's start timestamp again. Which rows were written is on record
in the manifest before they are written, and the commit *seals* the job there: it names the attempts that count.

With the option ``claim`` the commit claims a key, too, and a job whose key has landed writes nothing.

With the option ``transaction`` the job is sealed only, and the caller's own commit makes everything visible; it refuses
while a job is unsealed. Without it the writer has a transaction of its own.

An overwrite is such a write, too: its commit deletes what it leaves out, before the seal (``client.spark.removal``).

Two rows of one write must not have one row key: which of them would win is not defined. Where they meet in one batch
the write is refused; where they do not, nobody compares them.
"""

from __future__ import annotations

import logging
from collections import deque
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import chain
from typing import Protocol

import pyarrow as pa
from pyspark import TaskContext
from pyspark.sql.datasource import DataSourceArrowWriter, WriterCommitMessage

from client.bulk_writes.batching import PIECE_BYTES_WANTED, rows_of_a_piece
from client.bulk_writes.manifest import SWEEP, Attempt
from client.bulk_writes.writing import AttemptWriter
from client.claims.recorded import claim_of
from client.errors import PythiaError, TransactionAborted
from client.handles import TransactionHandle
from client.manager import TransactionManager
from client.spark.codecs import RowEncoder
from client.spark.connections import manager_for
from client.spark.kept_rows import KeptRows
from client.spark.key_values import key_prefixes
from client.spark.mapping import TableMapping
from client.spark.options import WRITE_BATCH_ROWS, SourceOptions
from client.spark.reader import families_of
from client.spark.removal import PrefixedEncoder, RowRemover, delete_the_rest, keys_written
from client.transactions.settling import commit_or_settle
from commit_table import Committed
from store.columns import CellColumns

_log = logging.getLogger(__name__)


@dataclass(frozen=True)
class WrittenRows(WriterCommitMessage):
    """One task's report: which attempt of which partition wrote how many rows."""

    partition: int
    attempt: int
    rows: int


class BatchEncoder(Protocol):
    """Makes of a batch's rows what is stored."""

    def pieces(self, batch: pa.RecordBatch) -> Iterable[CellColumns]:
        """One or several writes, in the order of the rows. Raises ``InvalidData`` for rows that cannot be stored."""
        ...


class PythiaWriter(DataSourceArrowWriter):
    """One write job of a DataFrame with the columns ``names``, by default all. Begins a transaction where it has none.

    ``overwrite``: whether rows that are not in the DataFrame are deleted; of those whose keys begin with
    ``overwrite_prefix``, where the options name one.
    """

    def __init__(
        self,
        options: SourceOptions,
        mapping: TableMapping,
        names: Sequence[str] | None = None,
        *,
        overwrite: bool = False,
    ) -> None:
        self._options = options
        self._mapping = mapping
        self._names = names
        self._batch_rows = options.batch_rows or WRITE_BATCH_ROWS
        self._overwrite = overwrite
        prefix = options.overwrite_prefix
        self._prefixes = (b"",) if prefix is None else key_prefixes(mapping, "overwrite_prefix", prefix)
        manager = manager_for(options.settings)
        self._owns_transaction = options.transaction is None
        self._has_landed = False
        """By its claim, before: it writes nothing."""
        self._handle = options.transaction or self._begin(manager)
        self._job = manager.open_job(self._handle)

    def write(self, iterator: Iterator[pa.RecordBatch]) -> WrittenRows:
        """Write a partition's rows, in a task."""
        task = TaskContext.get()
        if task is None:
            raise PythiaError("a partition is written within a Spark task only")
        partition, attempt = task.partitionId(), task.taskAttemptId()
        if self._has_landed:
            deque(iterator, maxlen=0)  # Spark waits until its rows are taken
            return WrittenRows(partition, attempt, 0)
        writer = self._attempt_writer(partition, attempt)
        rows = write_batches(writer, self._encoder(), iterator, self._batch_rows)
        return WrittenRows(partition, attempt, rows)

    def commit(self, messages: Sequence[WriterCommitMessage | None]) -> None:
        """Seal the job, and commit the transaction if it is the job's own.

        Raising makes Spark call ``abort``; so where the commit's answer got lost, the outcome is settled here.
        """
        winners = [(message.partition, message.attempt) for message in messages if isinstance(message, WrittenRows)]
        if len(winners) != len(messages):
            raise PythiaError(f"{len(messages) - len(winners)} partitions of the job did not report what they wrote")
        manager = manager_for(self._handle.settings)
        if self._has_landed:
            manager.resume(self._handle).rollback()
            self._tell_that_it_has_landed()
            return
        if self._overwrite:
            self._delete_the_rest(manager, winners)
            winners.append(SWEEP)
        manager.seal_job(self._handle, self._job, winners)
        if self._owns_transaction:
            self._commit(manager)

    def abort(self, messages: Sequence[WriterCommitMessage | None]) -> None:
        """Make sure that nothing of the job ever becomes visible, unless it turns out to have committed.

        A transaction that the caller gave is aborted as a whole: tasks of the failed job may still be writing into it.
        """
        manager, start_timestamp = manager_for(self._handle.settings), self._handle.start_timestamp
        outcome = manager.resume(self._handle).rollback() if self._owns_transaction else manager.abort(start_timestamp)
        if isinstance(outcome, Committed):
            _log.warning(
                "transaction %d had committed although its commit reported an error: nothing was undone, its rows are "
                "visible and the job must not be repeated",
                start_timestamp,
            )
        elif not self._owns_transaction:
            _log.warning("a write into transaction %d failed: all of the transaction is aborted", start_timestamp)

    def _begin(self, manager: TransactionManager) -> TransactionHandle:
        transaction = manager.transaction()
        if self._options.claim is not None:
            self._has_landed = not transaction.claim(self._options.claim, table=self._mapping.table)
        return transaction.handle()

    def _commit(self, manager: TransactionManager) -> None:
        """With the claim. Where another job, that ran at the same time, has landed the key, this one has nothing to do.

        Raises what ``commit_or_settle`` does.
        """
        key, transaction = self._options.claim, manager.resume(self._handle)
        if key is not None:
            transaction.claim(key, table=self._mapping.table)
        try:
            commit_or_settle(transaction)
        except TransactionAborted:
            if key is None or claim_of(manager, key, table=self._mapping.table) is None:
                raise
            self._tell_that_it_has_landed()

    def _tell_that_it_has_landed(self) -> None:
        _log.warning("%r has landed in %s before: nothing is written", self._options.claim, self._mapping.table)

    def _attempt_writer(self, partition: int, attempt: int) -> AttemptWriter:
        manager = manager_for(self._handle.settings)
        return manager.attempt_writer(
            self._handle, self._mapping.table, self._job, partition=partition, attempt=attempt
        )

    def _encoder(self) -> BatchEncoder:
        if self._options.operation == "delete":
            store = manager_for(self._handle.settings).store
            return RowRemover(store, self._mapping, self._handle.start_timestamp)
        encoder = RowEncoder(self._mapping, self._names)
        text = self._options.overwrite_prefix
        return encoder if text is None else PrefixedEncoder(encoder, self._prefixes, text)

    def _delete_the_rest(self, manager: TransactionManager, winners: Sequence[Attempt]) -> None:
        """Delete every row that the transaction sees and the job did not write."""
        table, families = self._mapping.table, families_of(self._mapping)
        pieces = manager.manifest.pieces(self._handle.start_timestamp)
        kept = KeptRows(table, keys_written(pieces, self._job, winners, table))
        transaction = manager.resume(self._handle)
        seen = chain.from_iterable(
            transaction.scan_columns(table, prefix=prefix, columns=families, batch_rows=self._batch_rows)
            for prefix in self._prefixes
        )
        deleted = delete_the_rest(self._attempt_writer(*SWEEP), self._mapping, seen, kept)
        _log.info("the overwrite of %s keeps %d rows and deletes from %d", table, len(kept), deleted)


def write_batches(
    attempt_writer: AttemptWriter, encoder: BatchEncoder, record_batches: Iterable[pa.RecordBatch], batch_rows: int
) -> int:
    """Write record batches in pieces of at most ``batch_rows`` rows, fewer of large ones; how many rows there were."""
    rows = 0
    for batch in joined(record_batches, batch_rows):
        piece_rows = rows_of_a_piece(batch.num_rows, batch.nbytes, batch_rows)
        for start in range(0, batch.num_rows, piece_rows):
            for cells in encoder.pieces(batch.slice(start, piece_rows)):
                attempt_writer.write(cells)
        rows += batch.num_rows
    return rows


def joined(record_batches: Iterable[pa.RecordBatch], rows_max: int) -> Iterator[pa.RecordBatch]:
    """The same rows in fewer batches: neighbours together, as far as they fit ``rows_max`` and one piece."""
    held: list[pa.RecordBatch] = []
    rows = size = 0
    for batch in record_batches:
        rows, size = rows + batch.num_rows, size + batch.nbytes
        if held and (rows > rows_max or size > PIECE_BYTES_WANTED):
            yield _as_one(held)
            held, rows, size = [], batch.num_rows, batch.nbytes
        if batch.num_rows:
            held.append(batch)
    if held:
        yield _as_one(held)


def _as_one(record_batches: Sequence[pa.RecordBatch]) -> pa.RecordBatch:
    if len(record_batches) == 1:
        return record_batches[0]
    (batch,) = pa.Table.from_batches(record_batches).combine_chunks().to_batches()
    return batch
