"""What the clients do: small transactions over few cells, long ones, shared ones, and ones that are never finished.

Each thread of each client process does one thing after the other, as its own stream of choices says, until it is told
that no new work is wanted.
"""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import dataclass, field

from client import (
    Committed,
    InvalidRequest,
    PythiaError,
    Transaction,
    TransactionHandle,
    TransactionManager,
    TransactionStatus,
)
from store import RowPut, StoreError
from store.columns import CellColumns
from tests.simulation.journal import Journal, Told
from tests.simulation.kernel import Kernel
from tests.simulation.recorded import (
    COLUMNS,
    ROWS,
    TABLES,
    Place,
    RecordedTransaction,
    cell_of,
)
from tests.simulation.timestamps import shown

OWN_COLUMN, BULK_COLUMN = b"f:a", b"g:a"
"""In a shared transaction owner and guest write different cells: of two values at one timestamp either may stay."""


@dataclass(slots=True)
class Assignment:
    """What all client threads of a room share."""

    kernel: Kernel
    journal: Journal
    lease_ms: int
    think_ms_max: int
    weights: dict[str, int]
    is_over: Callable[[], bool]
    offers: list[Offer] = field(default_factory=list)
    """Shared transactions that wait for somebody of another process to take part."""


@dataclass(slots=True)
class Offer:
    """A transaction handed to others, as its handle, and the record of what is done in its name."""

    owner: str
    shared: RecordedTransaction
    handle_json: str
    job: str
    taken: bool = False
    ended: bool = False


class ClientThread:
    """One thread of one client process."""

    def __init__(self, assignment: Assignment, manager: TransactionManager, who: str) -> None:
        self._assignment = assignment
        self._kernel = assignment.kernel
        self._journal = assignment.journal
        self._manager = manager
        self._who = who
        self._random: random.Random = assignment.kernel.stream(f"workload/{who}")

    def run(self) -> None:
        """Work until the end of the assignment."""
        kinds = {
            "update": self._update,
            "blind": self._write_blindly,
            "scan": self._scan,
            "rerun": self._run_function,
            "long": self._update_slowly,
            "abandon": self._abandon,
            "roll back": self._roll_back,
            "share": self._share,
            "help": self._help,
            "ask": self._ask,
            "abort": self._abort,
        }
        names, weights = list(self._assignment.weights), list(self._assignment.weights.values())
        while not self._assignment.is_over():
            self._pause(self._assignment.think_ms_max)
            work = kinds[self._random.choices(names, weights)[0]]
            try:
                work()
            except InvalidRequest:
                raise
            except (PythiaError, StoreError) as error:
                self._journal.tell(f"gave up: {error}")

    def _update(self) -> None:
        transaction = self._begin()
        self._read_some(transaction, 3)
        self._write_some(transaction)
        transaction.commit()

    def _write_blindly(self) -> None:
        transaction = self._begin()
        self._write_some(transaction)
        transaction.commit()

    def _update_slowly(self) -> None:
        """As a long job does: it reads and writes with hours in between, of which a lease's end is the equivalent."""
        transaction = self._begin()
        self._read_some(transaction, 2)
        self._pause(3 * self._assignment.lease_ms)
        self._write_some(transaction)
        self._pause(self._assignment.lease_ms)
        for place in self._places(1, 2):
            transaction.get(place)
        transaction.commit()

    def _scan(self) -> None:
        transaction = self._begin(read_only=True)
        for table in TABLES:
            transaction.scan(table)
        if self._random.random() < 0.3:
            self._pause(2 * self._assignment.lease_ms)
            transaction.scan(TABLES[0])
        transaction.commit()

    def _run_function(self) -> None:
        """``manager.run``: each attempt is a transaction of its own."""
        attempts: list[RecordedTransaction] = []
        places = self._places(1, 2)
        sent = [self._journal.moment()]

        def function(transaction: Transaction) -> None:
            self._note_failed(attempts)
            attempts.append(RecordedTransaction.wrap(self._journal, transaction, self._who, sent[-1]))
            for place in places:
                attempts[-1].get(place)
                attempts[-1].put(place)
            attempts[-1].record.commit_sent = self._journal.moment()
            sent.append(self._journal.moment())

        try:
            self._manager.run(function, attempts_max=4)
        except (PythiaError, StoreError) as error:
            self._journal.tell(f"run gave up: {type(error).__name__}: {error}")
            self._note_end(attempts)
        else:
            self._journal.tell(f"run of {shown(attempts[-1].record.start)} COMMITTED")
            self._journal.told(attempts[-1].record, Told.COMMITTED)

    def _note_failed(self, attempts: list[RecordedTransaction]) -> None:
        if attempts:
            self._journal.told(attempts[-1].record, Told.ABORTED, error="rerun")

    def _note_end(self, attempts: list[RecordedTransaction]) -> None:
        if attempts and attempts[-1].transaction.status is TransactionStatus.ABORTED:
            self._note_failed(attempts)

    def _abandon(self) -> None:
        """Writes, and is never heard of again; its commit may even be under way."""
        transaction = self._begin()
        self._write_some(transaction)

    def _roll_back(self) -> None:
        transaction = self._begin()
        self._write_some(transaction)
        if self._random.random() < 0.5:
            transaction.transaction.handle()
        with transaction.settling():
            outcome = transaction.transaction.rollback()
            if isinstance(outcome, Committed):
                transaction.told_committed(outcome)
            else:
                self._journal.told(transaction.record, Told.ABORTED, error="rolled back")

    def _share(self) -> None:
        """Begin a transaction, let another process write into it in bulk, and commit it all."""
        transaction = self._begin()
        handle = transaction.transaction.handle()
        with transaction.settling():
            job = self._manager.open_job(handle)
            offer = Offer(self._who, transaction, handle.to_json(), job)
            self._assignment.offers.append(offer)
            if self._random.random() < 0.5:
                transaction.put((self._random.choice(TABLES), self._random.choice(ROWS), OWN_COLUMN))
            self._pause(self._assignment.lease_ms)
            offer.ended = True
            if not offer.taken:
                self._manager.seal_job(handle, job, [])
            self._commit_shared(transaction)

    def _commit_shared(self, transaction: RecordedTransaction) -> None:
        try:
            committed = transaction.transaction.commit()
        except InvalidRequest as error:
            # Somebody who shares it was faster: what was written here is not part of it.
            self._journal.tell(f"{shown(transaction.record.start)}: {error}")
        else:
            transaction.told_committed(committed)

    def _help(self) -> None:
        """Take part in another process's transaction, as a Spark task and its driver do."""
        offers = [each for each in self._assignment.offers if not each.taken and not each.ended]
        if not offers:
            return
        offer = self._random.choice(offers)
        offer.taken = True
        resumed = self._manager.resume(TransactionHandle.from_json(offer.handle_json))
        handle = resumed.handle()
        try:
            for partition, table in enumerate(TABLES):
                writer = self._manager.attempt_writer(handle, table, offer.job, partition=partition, attempt=1)
                writer.write(CellColumns.of_puts(self._bulk(offer, table)))
            self._manager.seal_job(handle, offer.job, [(partition, 1) for partition in range(len(TABLES))])
            self._journal.tell(f"{shown(handle.start_timestamp)}: its bulk write has ended")
            if self._random.random() < 0.2:
                resumed.rollback()
                self._journal.tell(f"rolled {shown(handle.start_timestamp)} back for its owner")
        except PythiaError as error:
            self._journal.tell(f"could not help {shown(handle.start_timestamp)}: {error}")

    def _bulk(self, offer: Offer, table: str) -> list[RowPut]:
        """Rows to write; one value for each cell, noted before anything is sent."""
        puts = []
        for row in self._random.sample(ROWS, 2):
            value = self._journal.new_value()
            offer.shared.record.write(cell_of((table, row, BULK_COLUMN)), value)
            self._journal.tell(
                f"{shown(offer.shared.record.start)} in bulk: {cell_of((table, row, BULK_COLUMN))} = {value}"
            )
            puts.append(RowPut(row, {BULK_COLUMN: b"%d" % value}))
        return puts

    def _ask(self) -> None:
        start = self._somebodys()
        if start is not None:
            self._journal.answered(self._who, start, self._manager.outcome(start))

    def _abort(self) -> None:
        start = self._somebodys()
        if start is not None:
            outcome = self._manager.abort(start)
            self._journal.tell(f"abort of {shown(start)}: {outcome}")
            self._journal.answered(self._who, start, outcome)

    def _somebodys(self) -> int | None:
        known = self._journal.known_starts()[-12:]
        return self._random.choice(known) if known else None

    def _begin(self, *, read_only: bool = False) -> RecordedTransaction:
        return RecordedTransaction.begin(self._journal, self._manager, self._who, read_only=read_only)

    def _read_some(self, transaction: RecordedTransaction, most: int) -> None:
        """Read a few cells, and guard some of them."""
        for place in self._places(1, most):
            transaction.get(place)
            if self._random.random() < 0.4:
                transaction.guard(place)

    def _write_some(self, transaction: RecordedTransaction) -> None:
        for place in self._places(1, 2):
            if self._random.random() < 0.1:
                transaction.delete(place)
            else:
                transaction.put(place)

    def _places(self, least: int, most: int) -> list[Place]:
        return [
            (self._random.choice(TABLES), self._random.choice(ROWS), self._random.choice(COLUMNS))
            for _ in range(self._random.randint(least, most))
        ]

    def _pause(self, ms_max: int) -> None:
        self._kernel.sleep_us(self._random.randrange(1, ms_max * 1000))
