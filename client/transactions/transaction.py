"""A transaction: reads at one snapshot, sees its own writes, and lands whole or not at all.

What it writes stays in this process until the commit (``client.transactions.write_buffer``), so that it can be gone
back on (``client.transactions.savepoints``), and looked at as it was at a checkpoint. The invariant of the end: one
status, which the hooks are told once, and which no hook can change.
"""

from __future__ import annotations

import logging
import uuid
from collections.abc import Callable, Collection, Generator, Iterable, Mapping, Sequence
from types import TracebackType

from client.bulk_writes.manifest import Job
from client.catalog.record_tables import CLAIMS
from client.cells import stored_values, validate_columns, validate_row, without_reserved
from client.errors import InvalidRequest, PythiaError, TransactionAborted
from client.handles import StaysInItsProcess, TransactionHandle
from client.snapshots.pages import BYTES_MAX, LOOKED_AT_MAX, ROWS_MAX, PageLimits, RowsPage
from client.snapshots.ranges import key_range
from client.snapshots.reading import SnapshotReader, in_columns
from client.snapshots.snapshot import check_columns_to_scan, check_read, check_reads, check_scan
from client.snapshots.stored_cells import SCAN_BATCH_ROWS
from client.transactions import commit as committing
from client.transactions.claims import RECORD, Claim, row_of
from client.transactions.commit import Services
from client.transactions.guarded_cells import GuardedCells
from client.transactions.hooks import notify
from client.transactions.savepoints import OwnWrites, Savepoint, Savepoints
from client.transactions.sharing import claim_end, require_no_bulk_writes, require_undoable, sealed_jobs
from client.transactions.standing import Standing
from client.transactions.status import TransactionStatus
from client.transactions.write_buffer import Mark, WriteBuffer, tombstones
from commit_table import Aborted, Committed
from store import StoreError
from store.columns import CellColumns

_log = logging.getLogger(__name__)


class Transaction(StaysInItsProcess):
    """Made by ``manager.transaction()``; used once, by one thread at a time.

    As a context manager it commits at the end of the block, and rolls back when the block raises.
    """

    what_travels = "send its handle(), and resume that there"

    def __init__(
        self,
        services: Services,
        handle: TransactionHandle,
        reader: SnapshotReader,
        snapshot_reader: SnapshotReader,
        buffer: WriteBuffer,
        *,
        shared: bool,
        read_only: bool,
    ) -> None:
        self._services = services
        self._handle = handle
        self._reader = reader
        self._snapshot_reader = snapshot_reader
        """Without what bulk writers wrote into the transaction."""
        self._buffer = buffer
        self._guarded = GuardedCells()
        self._savepoints = Savepoints(buffer)
        self._shared = shared
        self._claimant = ""
        """By what name it claims its end among those that share it."""
        self._standing = Standing(handle.start_timestamp, read_only=read_only)

    def __repr__(self) -> str:
        return f"<{type(self).__name__} {self.start_timestamp}, {self.status.value}>"

    @property
    def start_timestamp(self) -> int:
        """The transaction's id, and the HBase timestamp of the cells that it writes."""
        return self._handle.start_timestamp

    @property
    def snapshot_timestamp(self) -> int:
        """What it reads: every commit at or below this."""
        return self._handle.snapshot_timestamp

    @property
    def epoch(self) -> int:
        """The first timestamp of the epoch in which it began."""
        return self._handle.epoch

    @property
    def status(self) -> TransactionStatus:
        """Where the transaction stands."""
        return self._standing.status

    @property
    def commit_forbidden(self) -> str | None:
        """Why ``commit`` will roll it back; ``None`` where nobody forbade it."""
        return self._standing.forbidden

    @property
    def written_bytes(self) -> int:
        """What its writes take in memory, about, and what its savepoints keep: up to ``transaction_bytes_max``."""
        return self._buffer.size_bytes

    def is_open(self) -> bool:
        """Whether it has not ended, as far as is known."""
        return self._standing.is_open()

    def give_up(self) -> None:
        """Learn from the oracle that the transaction expired: whoever uses it next is told so."""
        self._standing.expired = True

    def tell_begun(self) -> None:
        """Tell the hooks that it has begun; where they raise it is rolled back."""
        try:
            self._call(self._services.hooks.after_begin)
        except BaseException:
            self._roll_back_quietly()
            raise

    def handle(self) -> TransactionHandle:
        """The transaction as a value, for other processes that write into it or read with it.

        From now on bulk writes may belong to the transaction, and its end goes through their record.
        """
        self._standing.require_active()
        if self._standing.read_only:
            raise InvalidRequest("a read-only transaction is not shared with writers: share a snapshot's handle")
        self._shared = True
        return self._handle

    def get(
        self,
        table: str,
        row: bytes,
        columns: Sequence[bytes] | None = None,
        *,
        own_writes: OwnWrites = "all",
        guarded: bool = False,
    ) -> dict[bytes, bytes]:
        """One row: column → value; empty where there is none. See ``Snapshot.get``.

        ``own_writes``: whether the transaction's own writes are seen: ``"all"`` of them, those ``"before_checkpoint"``
        (the last one; none of them where there was none), or ``"none"``, which shows the snapshot as others see it.
        ``guarded``: ``guard`` what is read, too.
        """
        self._standing.require_active()
        check_read(row, columns)
        if guarded:
            self._guard(table, [row], columns)
        reader, written, as_of = self._sight(own_writes)
        values = written.overlay(table, row, reader.row(table, row, columns), columns, as_of)
        return without_reserved(values or {})

    def get_many(
        self,
        table: str,
        rows: Collection[bytes],
        columns: Sequence[bytes] | None = None,
        *,
        own_writes: OwnWrites = "all",
        guarded: bool = False,
    ) -> dict[bytes, dict[bytes, bytes]]:
        """Rows by their keys, in as few requests as their size allows. See ``Snapshot.get_many``, and ``get``."""
        self._standing.require_active()
        check_reads(rows, columns)
        if guarded:
            self._guard(table, rows, columns)
        reader, written, as_of = self._sight(own_writes)
        stored = reader.rows(table, rows, columns)
        seen = {row: written.overlay(table, row, stored.get(row), columns, as_of) for row in rows}
        return {row: without_reserved(values) for row, values in seen.items() if values is not None}

    def scan(
        self,
        table: str,
        *,
        start: bytes = b"",
        stop: bytes = b"",
        prefix: bytes = b"",
        columns: Sequence[bytes] | None = None,
        reverse: bool = False,
        own_writes: OwnWrites = "all",
    ) -> Generator[tuple[bytes, dict[bytes, bytes]], None, None]:
        """Rows in key order, or ``reverse``. See ``Snapshot.scan``, and ``get`` for ``own_writes``.

        The own writes that it shows are those of the moment of this call: what the transaction puts, deletes or undoes
        while the scan is under way changes nothing of it. What bulk writers write meanwhile may or may not be met.
        """
        self._standing.require_active()
        chosen = key_range(start, stop, prefix)
        check_scan(columns, reverse)
        reader, written, as_of = self._sight(own_writes)
        stored = reader.scan(table, chosen, columns, reverse=reverse)
        return self._shown(written.overlay_scan(table, chosen, stored, columns, as_of, reverse=reverse))

    def scan_page(
        self,
        table: str,
        *,
        start: bytes = b"",
        stop: bytes = b"",
        columns: Sequence[bytes] | None = None,
        reverse: bool = False,
        rows_max: int = ROWS_MAX,
        bytes_max: int = BYTES_MAX,
        looked_at_max: int = LOOKED_AT_MAX,
        own_writes: OwnWrites = "all",
    ) -> RowsPage:
        """The first rows of ``scan``, for as much work as is asked for. See ``Snapshot.scan_page``."""
        self._standing.require_active()
        chosen = key_range(start, stop, b"")
        check_scan(columns, reverse)
        limits = PageLimits.checked(rows_max=rows_max, bytes_max=bytes_max, looked_at_max=looked_at_max)
        reader, written, as_of = self._sight(own_writes)
        stored = reader.scan_page(table, chosen, columns, limits, reserved=bool(written), reverse=reverse)
        if not written:
            return stored
        looked_at = stored.looked_at(chosen, reverse=reverse)
        rows = written.overlay_scan(table, looked_at, stored.rows, columns, as_of, reverse=reverse)
        return stored.with_rows(((row, without_reserved(values)) for row, values in rows), limits)

    def scan_columns(
        self,
        table: str,
        known: Sequence[bytes] | None = None,
        *,
        start: bytes = b"",
        stop: bytes = b"",
        prefix: bytes = b"",
        columns: Sequence[bytes] | None = None,
        batch_rows: int = SCAN_BATCH_ROWS,
        own_writes: OwnWrites = "all",
    ) -> Generator[CellColumns, None, None]:
        """``scan`` for many rows, as columns. See ``Snapshot.scan_columns``."""
        self._standing.require_active()
        chosen = key_range(start, stop, prefix)
        check_columns_to_scan(known, columns, batch_rows)
        reader, written, as_of = self._sight(own_writes)
        if not written:
            return self._held(reader.scan_columns(table, chosen, columns, known, batch_rows))
        rows = written.overlay_scan(table, chosen, reader.scan(table, chosen, columns), columns, as_of)
        return self._held(in_columns(rows, known, batch_rows))

    def put(self, table: str, row: bytes, values: Mapping[bytes, bytes], *, conflict_free: bool = False) -> None:
        """Write columns ``b"family:qualifier"`` → value of one row. Nothing is visible to others before the commit.

        ``conflict_free``: no conflict is looked for in these cells. Of several transactions that write one so and
        overlap all may commit, and the value of the one that *began* last stays, whichever commits last. For cells
        that nobody else writes, and for values of which any will do; all writers of such a cell should write it so. A
        cell that the transaction also writes otherwise is an ordinary one.

        Raises ``InvalidRequest`` for what cannot be stored, and changes nothing then.
        """
        self._standing.require_writable()
        stored = stored_values(row, values, self.start_timestamp)
        self._services.catalog.require_families(table, values)
        with self._standing.change:
            self._buffer.write(table, row, stored, conflict_free=conflict_free)

    def delete(
        self, table: str, row: bytes, columns: Sequence[bytes] | None = None, *, conflict_free: bool = False
    ) -> None:
        """Delete columns of a row; by default every column that the transaction sees in it. See ``put``.

        Raises ``InvalidRequest`` for what cannot be deleted, and changes nothing then.
        """
        self._standing.require_writable()
        validate_row(row)
        if columns is not None:
            validate_columns(columns)
        self._services.catalog.require_families(table, columns or ())
        if columns is None:
            columns = list(self._buffer.overlay(table, row, self._reader.row(table, row, None), None) or ())
        if columns:
            with self._standing.change:
                self._buffer.write(table, row, tombstones(columns), conflict_free=conflict_free)

    def guard(self, table: str, rows: Collection[bytes], columns: Sequence[bytes] | None = None) -> None:
        """Commit only if nobody else commits a write to these cells after this transaction's snapshot.

        For what a decision rests on without being written: the other account that covers this one, or that a row is not
        there. The transaction gets ``Conflict`` where somebody has written such a cell and committed before it; two
        that only guard the same cell do not conflict with each other. So of two transactions that each decided by what
        the other one changes (write skew, docs/concepts/snapshot-isolation.md) one commits. When it is called does not
        matter, and no savepoint undoes it.

        Rows of a table with conflicts by row are guarded whole; in other tables name the ``columns``. Up to
        ``GUARDED_CELLS_MAX`` of a transaction. Of one that writes nothing nothing is compared in the end: all that it
        read is of one moment. Of one that is shared those guards count that were given to the object that commits. Not
        noticed are rows that are new in a range, and what others write ``conflict_free``.

        Raises ``InvalidRequest`` for what cannot be guarded, and changes nothing then.
        """
        self._standing.require_active()
        check_reads(rows, columns)
        self._guard(table, rows, columns)

    def claim(self, key: str, *, table: str | None = None) -> bool:
        """Have this transaction be the one that lands ``key``, 1 to ``KEY_BYTES_MAX`` bytes in UTF-8.

        ``table``: the key is that table's: other tables have others of the same name, and one that is made anew has
        none yet. Without it the key is the installation's.

        ``True``: it is, if it commits. ``False``: one that committed before its snapshot was, so that what was to be
        done is done. Of two that claim one key and overlap one commits, and the other one gets ``Conflict``: begun
        anew, it is told ``False`` (``manager.run`` does so). Hence what is started again with the same key, by a
        scheduler, after ``OutcomeUnknown``, or because whoever waited for it died, lands once.

        A claim is a write: undone with the transaction, and by ``rollback_to`` a savepoint that was made before it.
        The key is remembered until somebody forgets it (``client.claims.forget``). Raises ``InvalidRequest`` for what
        is no key, where there is no such table, and in a read-only transaction.
        """
        self._standing.require_writable()
        row = row_of(key, table or "")
        incarnation = "" if table is None else self._services.catalog.incarnation(table)
        records = self._services.catalog.create_record_table(CLAIMS)
        value = self.get(records, row, [RECORD]).get(RECORD)
        if value is not None and (found := Claim.parse(row, value)).incarnation == incarnation:
            return found.start_timestamp == self.start_timestamp
        claim = Claim(key, self.start_timestamp, table or "", incarnation)
        self.put(records, row, {RECORD: claim.to_json()})
        return True

    def savepoint(self) -> Savepoint:
        """This moment, for ``rollback_to``; as a context manager it is gone back to when the block raises.

        Up to ``SAVEPOINTS_OPEN_MAX`` may be open: neither released nor undone. What a write replaces while one is open
        is kept beside the new value, and counts against ``transaction_bytes_max`` like it.
        """
        self._standing.require_active()
        sealed = sealed_jobs(self._services.manifest, self.start_timestamp) if self._shared else frozenset()
        with self._standing.change:
            return self._savepoints.open(self, sealed)

    def rollback_to(self, savepoint: Savepoint) -> None:
        """Undo every put and delete after the savepoint, which stays open; savepoints made after it are gone.

        The last checkpoint is again what it was then. Raises ``InvalidRequest``, and undoes nothing, where the
        savepoint is another object's, is gone, or where a bulk write that had not ended when it was made is part of the
        transaction.
        """
        self._standing.require_active()
        savepoint.require_open_in(self)
        if self._shared:
            require_undoable(self._services.manifest, self.start_timestamp, savepoint.sealed_jobs)
        with self._standing.change:
            self._savepoints.roll_back_to(savepoint)

    def release(self, savepoint: Savepoint) -> None:
        """Do without a savepoint, and those made after it, from now on; what was written stays."""
        self._standing.require_active()
        savepoint.require_open_in(self)
        with self._standing.change:
            self._savepoints.release(savepoint)

    def checkpoint(self) -> None:
        """Have reads with ``own_writes="before_checkpoint"`` show what was written up to here; as often as wanted.

        For statements that read what they write ("insert into t select from t"), so that they never meet their own
        rows. Raises ``InvalidRequest`` where bulk writers have written into the transaction.
        """
        self._standing.require_active()
        if self._shared:
            require_no_bulk_writes(self._services.manifest, self.start_timestamp)
        with self._standing.change:
            self._savepoints.set_checkpoint()

    def forbid_commit(self, reason: str) -> None:
        """Have ``commit`` roll the transaction back, for good, and raise ``TransactionAborted`` with the first reason.

        For code that is called within somebody else's transaction. Reads and writes go on as before.
        """
        self._standing.forbid(reason)

    def commit(self) -> Committed:
        """Make everything visible at once.

        Raises ``Conflict`` and the other kinds of ``TransactionAborted`` (nothing of it is or will be visible; it was
        forbidden, for one), or ``OutcomeUnknown`` when the deadline came before the answer. Of a transaction that
        others write into also ``StoreUnavailable``, where it cannot be read what they wrote: nothing was decided then,
        and it may be called again.
        """
        self._standing.require_active()
        self._standing.require_outside_hooks()
        with self._services.meter.committing(writes=self._shared or bool(self._buffer)):
            return self._commit_if_allowed()

    def rollback(self) -> Committed | Aborted:
        """Give the transaction up. Whoever shares it may have committed it meanwhile: the answer says.

        Also settles a transaction whose ``commit`` ended in ``OutcomeUnknown``. Raises ``NoPrimary`` where a shared
        or unknown one cannot be settled now.
        """
        if self._standing.status in (TransactionStatus.COMMITTED, TransactionStatus.ABORTED):
            raise InvalidRequest(f"transaction {self.start_timestamp} is {self._standing.status.value} already")
        self._standing.require_outside_hooks()
        self._call(lambda transaction: notify(self._services.hooks.before_rollback, transaction))
        self._services.meter.rolled_back()
        outcome: Committed | Aborted = Aborted()
        written = self._buffer if self._standing.status is TransactionStatus.UNKNOWN else WriteBuffer(0)
        if self._shared or written:
            outcome = self._services.oracle.abort(self.start_timestamp)
        if isinstance(outcome, Committed):
            self._standing.status = TransactionStatus.COMMITTED
            committing.finish(
                self._services, self.start_timestamp, outcome.commit_timestamp, written, shared=self._shared
            )
            self._has_committed(outcome)
            return outcome
        self._standing.status = TransactionStatus.ABORTED
        committing.mark_aborted(self._services, self.start_timestamp, written, shared=self._shared)
        self._has_aborted()
        return outcome

    def __enter__(self) -> Transaction:
        self._standing.require_active()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        if self._standing.status is not TransactionStatus.ACTIVE:
            return
        if kind is not None:
            self._roll_back_quietly()
            return
        try:
            self.commit()
        except StoreError:  # nobody is left who could call it again
            if self._standing.status is TransactionStatus.ACTIVE:
                self._roll_back_quietly()
            raise

    def _guard(self, table: str, rows: Collection[bytes], columns: Sequence[bytes] | None) -> None:
        catalog = self._services.catalog
        by_row = catalog.entry(table).conflict_level == "row"
        catalog.require_families(table, columns or ())
        if not self._standing.read_only:
            with self._standing.change:
                self._guarded.add(table, rows, columns, by_row=by_row)

    def _sight(self, own_writes: OwnWrites) -> tuple[SnapshotReader, WriteBuffer, Mark | None]:
        """What to read with, the writes to lay over it, and the mark up to which they count (``None``: all of them)."""
        self._standing.change.require_none()
        written, as_of = self._savepoints.shown(own_writes)
        return self._reader if own_writes == "all" else self._snapshot_reader, written, as_of

    def _shown(
        self, rows: Iterable[tuple[bytes, dict[bytes, bytes]]]
    ) -> Generator[tuple[bytes, dict[bytes, bytes]], None, None]:
        """A method, so that a scan holds its transaction: one that nobody holds is given up by the oracle."""
        for row, values in rows:
            yield row, without_reserved(values)

    def _held(self, batches: Iterable[CellColumns]) -> Generator[CellColumns, None, None]:
        """As ``_shown``."""
        yield from batches

    def _commit_if_allowed(self) -> Committed:
        if self._standing.forbidden is None:
            self._ask_hooks()
        if self._standing.forbidden is not None:
            raise self._refused(self._standing.forbidden)
        try:
            committed = self._commit()
        except TransactionAborted:
            self._has_aborted()
            raise
        self._has_committed(committed)
        return committed

    def _commit(self) -> Committed:
        if self._shared:
            self._claimant = self._claimant or uuid.uuid4().hex
            ended = claim_end(self._services, self.start_timestamp, self._claimant)
            if ended is not None:
                self._require_nothing_put(ended)
                return ended
        elif not self._buffer:
            return Committed(self.snapshot_timestamp)
        jobs = self._jobs()
        self._standing.status = TransactionStatus.UNKNOWN
        return committing.commit(self._services, self._handle, self._buffer, self._guarded, jobs, shared=self._shared)

    def _require_nothing_put(self, committed: Committed) -> None:
        """Where another process committed what this one shares."""
        if self._buffer or self._guarded:
            self._has_committed(committed)
            raise InvalidRequest(
                f"transaction {self.start_timestamp} was committed by another process that shares it: what was put or "
                "guarded here is not part of it"
            )

    def _roll_back_quietly(self) -> None:
        """Where another error is the one to show."""
        try:
            self.rollback()
        except (PythiaError, StoreError) as failure:
            _log.warning("transaction %d could not be rolled back now: %s", self.start_timestamp, str(failure))

    def _refused(self, reason: str) -> TransactionAborted:
        """Roll the transaction back, whose commit is forbidden, and say why."""
        if isinstance(self.rollback(), Committed):
            raise InvalidRequest(
                f"transaction {self.start_timestamp} was committed by another process that shares it, though its "
                f"commit was forbidden here: {reason}"
            )
        refused = TransactionAborted(self.start_timestamp, f"its commit was forbidden: {reason}")
        refused.retriable = False
        return refused

    def _ask_hooks(self) -> None:
        """Have the hooks agree to the commit. What they raise forbids it, and is the cause of the refusal."""
        try:
            self._call(self._services.hooks.before_commit)
        except Exception as error:
            reason = f"the hook before_commit raised {error!r}"
            self.forbid_commit(reason)
            raise self._refused(self._standing.forbidden or reason) from error

    def _call(self, hook: Callable[[Transaction], None]) -> None:
        """Call a hook, which must not end the transaction."""
        self._standing.in_hook = True
        try:
            hook(self)
        finally:
            self._standing.in_hook = False

    def _has_committed(self, committed: Committed) -> None:
        self._standing.status = TransactionStatus.COMMITTED
        notify(self._services.hooks.after_commit, self, committed)

    def _has_aborted(self) -> None:
        self._standing.status = TransactionStatus.ABORTED
        notify(self._services.hooks.after_rollback, self)

    def _jobs(self) -> dict[str, Job]:
        return self._services.manifest.jobs(self.start_timestamp) if self._shared else {}
