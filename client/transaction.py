"""A transaction: reads at one snapshot, sees its own writes, and lands whole or not at all."""

from __future__ import annotations

import logging
import uuid
from collections.abc import Iterable, Iterator, Mapping, Sequence
from enum import Enum
from types import TracebackType

from client import commit as committing
from client.cells import encode_value, family_of, validate_column, validate_row, validate_stored, validate_value
from client.commit import Services
from client.errors import (
    NOT_HEARD_OF,
    InvalidRequest,
    OutcomeUnknown,
    PythiaError,
    TransactionAborted,
    TransactionExpired,
)
from client.handles import TransactionHandle
from client.manifest import Job, all_rows
from client.ranges import key_range
from client.reading import SnapshotReader, without_reserved
from client.snapshot import check_choice, check_read
from client.write_buffer import WriteBuffer, tombstones
from commit_table import Aborted, Committed, Undecided
from store import StoreError

_log = logging.getLogger(__name__)


class TransactionStatus(Enum):
    """Where a transaction stands; it leaves ``ACTIVE`` once and for all."""

    ACTIVE = "active"
    COMMITTED = "committed"
    ABORTED = "aborted"
    UNKNOWN = "unknown"


class Transaction:
    """Made by ``manager.transaction()``; used once, by one thread at a time.

    As a context manager it commits at the end of the block, and rolls back when the block raises.
    """

    def __init__(
        self,
        services: Services,
        handle: TransactionHandle,
        reader: SnapshotReader,
        buffer: WriteBuffer,
        *,
        shared: bool,
        read_only: bool,
    ) -> None:
        self._services = services
        self._handle = handle
        self._reader = reader
        self._buffer = buffer
        self._shared = shared
        self._read_only = read_only
        self._status = TransactionStatus.ACTIVE
        self._expired = False

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
        return self._status

    def is_open(self) -> bool:
        """Whether it has not ended, as far as is known."""
        return self._status in (TransactionStatus.ACTIVE, TransactionStatus.UNKNOWN)

    def give_up(self) -> None:
        """Learn from the oracle that the transaction expired: whoever uses it next is told so."""
        self._expired = True

    def handle(self) -> TransactionHandle:
        """The transaction as a value, for other processes that write into it or read with it.

        From now on bulk writes may belong to the transaction, and its end goes through their record.
        """
        self._require_active()
        if self._read_only:
            raise InvalidRequest("a read-only transaction is not shared with writers: share a snapshot's handle")
        self._shared = True
        return self._handle

    def get(self, table: str, row: bytes, columns: Sequence[bytes] | None = None) -> dict[bytes, bytes]:
        """One row: column → value, own writes included; empty where there is none. See ``Snapshot.get``."""
        self._require_active()
        check_read(row, columns)
        values = self._buffer.overlay(table, row, self._reader.row(table, row, columns), columns)
        return without_reserved(values or {})

    def scan(
        self,
        table: str,
        *,
        start: bytes = b"",
        stop: bytes = b"",
        prefix: bytes = b"",
        columns: Sequence[bytes] | None = None,
    ) -> Iterator[tuple[bytes, dict[bytes, bytes]]]:
        """Rows in key order, own writes included. See ``Snapshot.scan``.

        Rows that the caller writes while it scans may or may not be met.
        """
        self._require_active()
        chosen = key_range(start, stop, prefix)
        check_choice(columns)
        stored = self._reader.scan(table, chosen, columns)
        for row, values in self._buffer.overlay_scan(table, chosen, stored, columns):
            yield row, without_reserved(values)

    def put(self, table: str, row: bytes, values: Mapping[bytes, bytes]) -> None:
        """Write columns ``b"family:qualifier"`` → value of one row. Nothing is visible to others before the commit.

        Raises ``InvalidRequest`` for what cannot be stored, and changes nothing then.
        """
        self._require_writable()
        validate_row(row)
        if not values:
            raise InvalidRequest("put writes at least one column")
        for column, value in values.items():
            validate_column(column)
            validate_value(value)
        self._require_families(table, values)
        stored = {column: encode_value(value) for column, value in values.items()}
        validate_stored(row, stored, self.start_timestamp)
        self._buffer.write(table, row, stored)

    def delete(self, table: str, row: bytes, columns: Sequence[bytes] | None = None) -> None:
        """Delete columns of a row; by default every column that the transaction sees in it."""
        self._require_writable()
        validate_row(row)
        for column in columns or ():
            validate_column(column)
        self._require_families(table, columns or ())
        if columns is None:
            columns = list(self._buffer.overlay(table, row, self._reader.row(table, row, None), None) or ())
        if columns:
            self._buffer.write(table, row, tombstones(columns))

    def commit(self) -> Committed:
        """Make everything visible at once.

        Raises ``Conflict`` and the other kinds of ``TransactionAborted`` (nothing of it is or will be visible), or
        ``OutcomeUnknown`` when the deadline came before the answer.
        """
        self._require_active()
        if self._shared:
            self._claim_end()
            ended = self._ended_by_others()
            if ended is not None:
                return ended
        elif not self._buffer:
            self._status = TransactionStatus.COMMITTED
            return Committed(self.snapshot_timestamp)
        jobs = self._jobs()
        self._status = TransactionStatus.UNKNOWN
        try:
            committed = committing.commit(self._services, self._handle, self._buffer, jobs, shared=self._shared)
        except TransactionAborted:
            self._status = TransactionStatus.ABORTED
            raise
        self._status = TransactionStatus.COMMITTED
        return committed

    def rollback(self) -> Committed | Aborted:
        """Give the transaction up. Whoever shares it may have committed it meanwhile: the answer says.

        Also settles a transaction whose ``commit`` ended in ``OutcomeUnknown``. Raises ``NoPrimary`` where a shared
        or unknown one cannot be settled now.
        """
        if self._status in (TransactionStatus.COMMITTED, TransactionStatus.ABORTED):
            raise InvalidRequest(f"transaction {self.start_timestamp} is {self._status.value} already")
        outcome: Committed | Aborted = Aborted()
        written = self._buffer if self._status is TransactionStatus.UNKNOWN else WriteBuffer(0)
        if self._shared or written:
            outcome = self._services.oracle.abort(self.start_timestamp)
        bulk = all_rows(self._jobs())
        if isinstance(outcome, Committed):
            self._status = TransactionStatus.COMMITTED
            committing.finish(
                self._services, self.start_timestamp, outcome.commit_timestamp, written, bulk, shared=self._shared
            )
            return outcome
        self._status = TransactionStatus.ABORTED
        committing.mark_aborted(self._services, self.start_timestamp, written, bulk, shared=self._shared)
        return outcome

    def __enter__(self) -> Transaction:
        self._require_active()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        if self._status is not TransactionStatus.ACTIVE:
            return
        if kind is None:
            self.commit()
            return
        try:
            self.rollback()
        except (PythiaError, StoreError) as failure:  # the caller's own error is the one to show
            _log.warning("transaction %d could not be rolled back now: %s", self.start_timestamp, failure)

    def _require_families(self, table: str, columns: Iterable[bytes]) -> None:
        """Raise ``InvalidRequest`` for a column of a family that the table does not have."""
        wanted = {family_of(column) for column in columns}
        if wanted <= set(self._services.catalog.entry(table).family_columns):
            return
        families = set(self._services.catalog.fresh_entry(table).family_columns)  # it may have been made anew
        if not wanted <= families:
            unknown = ", ".join(sorted(family.decode(errors="replace") for family in wanted - families))
            raise InvalidRequest(f"table {table!r} has no family {unknown}; it has {sorted(families)}")

    def _claim_end(self) -> None:
        """Of the processes that share a transaction only one ends it: what the others wrote would not be judged."""
        if not self._services.manifest.claim_end(self.start_timestamp, uuid.uuid4().hex):
            outcome = self._services.commit_table.outcome(self.start_timestamp)
            if isinstance(outcome, Undecided):
                raise InvalidRequest(
                    f"transaction {self.start_timestamp} is being ended by another process that shares it; if that "
                    f"process has died, manager.abort({self.start_timestamp}) ends it"
                )

    def _ended_by_others(self) -> Committed | None:
        """What another process made of a shared transaction before; ``None`` where it is still to be ended."""
        outcome = self._services.commit_table.outcome(self.start_timestamp)
        if isinstance(outcome, Aborted):
            self._status = TransactionStatus.ABORTED
            bulk = all_rows(self._jobs())
            committing.mark_aborted(self._services, self.start_timestamp, WriteBuffer(0), bulk, shared=True)
            reason = "another process that shares it rolled it back, as a failed Spark write does"
            raise TransactionAborted(self.start_timestamp, reason)
        if not isinstance(outcome, Committed):
            return None
        self._status = TransactionStatus.COMMITTED
        if self._buffer:
            raise InvalidRequest(
                f"transaction {self.start_timestamp} was committed by another process that shares it: what was put "
                "here is not part of it"
            )
        return outcome

    def _jobs(self) -> dict[str, Job]:
        return self._services.manifest.jobs(self.start_timestamp) if self._shared else {}

    def _require_active(self) -> None:
        if self._status is TransactionStatus.UNKNOWN:
            raise OutcomeUnknown(self.start_timestamp, 0)
        if self._status is not TransactionStatus.ACTIVE:
            raise InvalidRequest(
                f"transaction {self.start_timestamp} is {self._status.value}: a transaction is used once, begin another"
            )
        if self._expired:
            raise TransactionExpired(self.start_timestamp, NOT_HEARD_OF)

    def _require_writable(self) -> None:
        self._require_active()
        if self._read_only:
            raise InvalidRequest("a read-only transaction does not write")
