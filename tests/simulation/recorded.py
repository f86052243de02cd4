"""Transactions that note in the journal what they read and wrote: the workload's view of the client library."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from client import (
    Committed,
    NoPrimary,
    OutcomeUnknown,
    Snapshot,
    Transaction,
    TransactionAborted,
    TransactionManager,
)
from store import StoreError
from tests.simulation.journal import Cell, Journal, Record, Told
from tests.simulation.timestamps import shown

TABLES = ("cells", "rows")
"""One with conflicts by cell, one by row."""
ROWS = (b"r0", b"r1")
COLUMNS = (b"f:a", b"f:b", b"g:a")

Place = tuple[str, bytes, bytes]
"""Table, row, column."""


def cell_of(place: Place) -> Cell:
    """The cell's name in the journal."""
    table, row, column = place
    return f"{table}/{row.decode()}/{column.decode()}"


def value_of(stored: bytes | None) -> int:
    """A value as the journal has it; 0 for none."""
    return 0 if stored is None else int(stored)


class RecordedTransaction:
    """A transaction of the library, and its record."""

    def __init__(self, journal: Journal, transaction: Transaction, record: Record) -> None:
        self.transaction = transaction
        self.record = record
        self._journal = journal

    @classmethod
    def begin(
        cls, journal: Journal, manager: TransactionManager, who: str, *, read_only: bool = False
    ) -> RecordedTransaction:
        """Begin one. Raises ``NoPrimary``."""
        sent = journal.moment()
        return cls.wrap(journal, manager.transaction(read_only=read_only), who, sent)

    @classmethod
    def wrap(cls, journal: Journal, transaction: Transaction, who: str, begin_sent: int) -> RecordedTransaction:
        """Record one that was begun after ``begin_sent``."""
        start, snapshot = transaction.start_timestamp, transaction.snapshot_timestamp
        record = journal.begun(who, begin_sent, start, snapshot, transaction.epoch)
        journal.tell(f"begun {shown(start)}, snapshot {shown(snapshot)}")
        return cls(journal, transaction, record)

    def get(self, place: Place) -> int:
        """Read one cell."""
        table, row, column = place
        values = self.transaction.get(table, row, [column])
        value = value_of(values.get(column))
        self.record.read(cell_of(place), value)
        self._journal.tell(f"{shown(self.record.start)} reads {cell_of(place)} = {value}")
        return value

    def guard(self, place: Place) -> None:
        """Have nobody else change one cell before the commit."""
        table, row, column = place
        self.transaction.guard(table, [row], [column])
        self.record.guarded.add(cell_of(place))
        self._journal.tell(f"{shown(self.record.start)} guards {cell_of(place)}")

    def put(self, place: Place) -> None:
        """Write a new value to one cell."""
        table, row, column = place
        value = self._journal.new_value()
        self.record.write(cell_of(place), value)
        self._journal.tell(f"{shown(self.record.start)} writes {cell_of(place)} = {value}")
        self.transaction.put(table, row, {column: b"%d" % value})

    def delete(self, place: Place) -> None:
        """Delete one cell."""
        table, row, column = place
        self.record.write(cell_of(place), 0)
        self._journal.tell(f"{shown(self.record.start)} deletes {cell_of(place)}")
        self.transaction.delete(table, row, [column])

    def scan(self, table: str) -> None:
        """Read a whole table."""
        scan_into(self._journal, self.record, self.transaction, table)

    def commit(self) -> None:
        """Commit, and note what came of it."""
        with self.settling():
            committed = self.transaction.commit()
            self.told_committed(committed)

    def told_committed(self, committed: Committed) -> None:
        """Note that the caller was told of the commit."""
        self._journal.tell(f"{shown(self.record.start)} COMMITTED at {shown(committed.commit_timestamp)}")
        self._journal.told(self.record, Told.COMMITTED, commit_timestamp=committed.commit_timestamp)

    @contextmanager
    def settling(self) -> Iterator[None]:
        """Note how a call ends that may end the transaction; what the library promises to raise is swallowed."""
        if self.record.commit_sent is None:
            self.record.commit_sent = self._journal.moment()
        try:
            yield
        except TransactionAborted as error:
            self._end(Told.ABORTED, error)
        except OutcomeUnknown as error:
            self._end(Told.UNKNOWN, error)
        except (NoPrimary, StoreError) as error:
            self._end(Told.NOTHING, error)

    def _end(self, told: Told, error: Exception) -> None:
        self._journal.tell(f"{shown(self.record.start)} {told.name}: {type(error).__name__}: {error}")
        name = "never taken up" if "never taken up" in str(error) else type(error).__name__
        self._journal.told(self.record, told, error=name)


def scan_into(journal: Journal, record: Record, source: Transaction | Snapshot, table: str) -> None:
    """Read a whole table, and note every cell of it, also those that were not there."""
    found = {(row, column): value for row, values in source.scan(table) for column, value in values.items()}
    for row in ROWS:
        for column in COLUMNS:
            record.read(cell_of((table, row, column)), value_of(found.get((row, column))))
    seen = ", ".join(
        f"{row.decode()}/{column.decode()}={value.decode()}" for (row, column), value in sorted(found.items())
    )
    journal.tell(f"{shown(record.start)} scans {table}: {seen}")
