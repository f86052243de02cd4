"""Runs functions in transactions and writes down what they did, when, and how it ended.

Invariant: whatever may have committed is in the history. A transaction takes its place before it begins, and one whose
end went wrong in any way is recorded as unknown.
"""

from __future__ import annotations

import itertools
import os
import threading
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import NamedTuple

from client import Aborted, Committed, OutcomeUnknown, PythiaError, Transaction, TransactionAborted, TransactionManager
from histories.cells import Cell, CellMapping, decode, encode
from histories.errors import HistoryError, RecorderFull
from histories.history import (
    History,
    Key,
    Operation,
    OperationKind,
    Outcome,
    RealTime,
    RecordedTransaction,
)
from store import StoreError

TRANSACTIONS_MAX = 200_000
"""About 1 KB each."""
REPEAT_SHIFT = 60
"""Values are start timestamps, which stay below 2**60 until the year 2109; above, repeated writes are numbered."""
WRITES_OF_A_KEY_MAX = 1 << (63 - REPEAT_SHIFT)
SETTLED = "Settled"
"""Reason of a transaction whose abort was learned only afterwards."""


class RecordingTransaction:
    """What a recorded function reads and writes through. Made by ``Recorder.run``; used by one thread."""

    def __init__(self, transaction: Transaction, cells: CellMapping) -> None:
        self._transaction = transaction
        self._cells = cells
        self._writes: dict[Key, int] = {}
        self.operations: list[Operation] = []
        self.guarded: set[Key] = set()

    @property
    def start_timestamp(self) -> int:
        """The transaction's id."""
        return self._transaction.start_timestamp

    def read(self, key: Key, *, guarded: bool = False) -> Operation:
        """What the transaction sees in the key's cell; ``guarded``: nobody else is to change that before it commits."""
        table, row, column = self._cells.cell(key)
        content = self._transaction.get(table, row, [column], guarded=guarded).get(column)
        if guarded:
            self.guarded.add(key)
        return self._found(key, content)

    def scan(self, keys: Iterable[Key]) -> list[Operation]:
        """Read the keys, one at least, with one scan; also whatever else lies between the first and the last.

        A key that the scan does not meet was read as absent.
        """
        sought = {self._cells.cell(key): key for key in keys}
        if not sought:
            raise HistoryError("a scan reads one key at least")
        table, _, column = next(iter(sought))
        found = {}
        rows = self._transaction.scan(table, start=min(sought).row, stop=max(sought).row + b"\x00", columns=[column])
        for row, values in rows:
            if column in values:
                found[Cell(table, row, column)] = values[column]
        unsought = {cell: self._cells.key(cell) for cell in found if cell not in sought}
        return [self._found(key, found.get(cell)) for cell, key in (sought | unsought).items()]

    def write(self, key: Key, payload: int | None = None) -> Operation:
        """Write a value that no other write of this key ever uses, and ``payload`` beside it.

        Raises ``HistoryError`` beyond ``WRITES_OF_A_KEY_MAX`` writes of one key in one transaction.
        """
        repeats = self._writes.get(key, 0)
        if repeats == WRITES_OF_A_KEY_MAX:
            raise HistoryError(f"a recorded transaction writes a key {WRITES_OF_A_KEY_MAX} times at most")
        self._writes[key] = repeats + 1
        value = self.start_timestamp | repeats << REPEAT_SHIFT
        table, row, column = self._cells.cell(key)
        self._transaction.put(table, row, {column: encode(value, payload)})
        return self._did(Operation(OperationKind.WRITE, key, value, payload))

    def delete(self, key: Key) -> Operation:
        """Leave nothing in the key's cell."""
        table, row, column = self._cells.cell(key)
        self._transaction.delete(table, row, [column])
        return self._did(Operation(OperationKind.WRITE, key, None))

    def _found(self, key: Key, content: bytes | None) -> Operation:
        value, payload = (None, None) if content is None else decode(content)
        return self._did(Operation(OperationKind.READ, key, value, payload))

    def _did(self, operation: Operation) -> Operation:
        self.operations.append(operation)
        return operation


class _Session(threading.local):
    """A thread's own place among the processes of a history; ``number`` 0: it has none yet."""

    number = 0
    depth = 0


class _Begun(NamedTuple):
    process: str
    transaction: Transaction
    recording: RecordingTransaction
    sent_ns: int
    answered_ns: int


class Recorder:
    """Runs functions in transactions of ``manager`` and keeps what they did. Safe to share between threads.

    ``cells``: where keys lie. ``process``: what this operating-system process is called in the history; each thread is
    a process of its own below it, and a new one after an outcome that nobody learned, as in Jepsen.
    ``transactions_max``: how many are kept. ``monotonic_ns``: the clock of the real times.
    """

    def __init__(
        self,
        manager: TransactionManager,
        cells: CellMapping,
        *,
        process: str | None = None,
        transactions_max: int = TRANSACTIONS_MAX,
        monotonic_ns: Callable[[], int] = time.monotonic_ns,
    ) -> None:
        if transactions_max < 1:
            raise HistoryError(f"transactions_max is 1 at least, not {transactions_max}")
        self._manager = manager
        self._cells = cells
        self._process = str(os.getpid()) if process is None else process
        self._transactions_max = transactions_max
        self._monotonic_ns = monotonic_ns
        self._lock = threading.Lock()
        self._session = _Session()
        self._numbers = itertools.count(1)
        self._recorded: list[RecordedTransaction] = []
        self._under_way = 0

    def run(
        self, function: Callable[[RecordingTransaction], object], *, read_only: bool = False
    ) -> RecordedTransaction:
        """Call ``function`` in one transaction, commit it, and return what is recorded of it.

        An abort, an outcome that stays unknown, and a passing failure of the services end in the record, not in an
        error. Raises ``NoPrimary`` where no transaction began, ``RecorderFull`` before it begins one too many, and
        what ``function`` raises, after that transaction was rolled back. Functions may run others within: those are
        transactions of another process in the history.
        """
        with self._place(), self._in_session() as process:
            sent_ns = self._monotonic_ns()
            transaction = self._manager.transaction(read_only=read_only)
            answered_ns = self._monotonic_ns()
            recording = RecordingTransaction(transaction, self._cells)
            begun = _Begun(process, transaction, recording, sent_ns, answered_ns)
            try:
                function(recording)
            except BaseException as error:
                transaction.rollback()
                recorded = self._record(begun, Outcome.ABORTED, reason=type(error).__name__)
                if _passes(error):
                    return recorded
                raise
            return self._commit(begun)

    def settle(self) -> int:
        """Ask the commit table about every unknown outcome. Returns how many nobody can tell yet.

        Raises ``StoreUnavailable`` where the store does not answer.
        """
        with self._lock:
            unknown = [(at, each) for at, each in enumerate(self._recorded) if each.outcome is Outcome.UNKNOWN]
        unsettled = 0
        for position, transaction in unknown:
            outcome = self._manager.outcome(transaction.id)
            if isinstance(outcome, Committed):
                settled = replace(
                    transaction, outcome=Outcome.COMMITTED, commit_timestamp=outcome.commit_timestamp, reason=""
                )
            elif isinstance(outcome, Aborted):
                settled = replace(transaction, outcome=Outcome.ABORTED, reason=SETTLED)
            else:
                unsettled += 1
                continue
            with self._lock:
                self._recorded[position] = settled
        return unsettled

    def history(self, workload: str | None = None) -> History:
        """All that has ended by now, each process's transactions in their order."""
        with self._lock:
            return History(tuple(self._recorded), workload)

    def _commit(self, begun: _Begun) -> RecordedTransaction:
        commit_sent_ns = self._monotonic_ns()
        try:
            committed = begun.transaction.commit()
        except TransactionAborted as error:
            return self._record(
                begun, Outcome.ABORTED, commit_sent_ns, self._monotonic_ns(), reason=type(error).__name__
            )
        except BaseException as error:
            self._session.number = 0
            recorded = self._record(begun, Outcome.UNKNOWN, commit_sent_ns, reason=type(error).__name__)
            if isinstance(error, OutcomeUnknown):
                return recorded
            raise
        answered_ns = self._monotonic_ns()
        timestamp = committed.commit_timestamp
        return self._record(begun, Outcome.COMMITTED, commit_sent_ns, answered_ns, commit_timestamp=timestamp)

    def _record(
        self,
        begun: _Begun,
        outcome: Outcome,
        commit_sent_ns: int | None = None,
        commit_answered_ns: int | None = None,
        *,
        commit_timestamp: int | None = None,
        reason: str = "",
    ) -> RecordedTransaction:
        recorded = RecordedTransaction(
            process=begun.process,
            id=begun.transaction.start_timestamp,
            snapshot=begun.transaction.snapshot_timestamp,
            outcome=outcome,
            operations=tuple(begun.recording.operations),
            commit_timestamp=commit_timestamp,
            reason=reason,
            real_time=RealTime(begun.sent_ns, begun.answered_ns, commit_sent_ns, commit_answered_ns),
            guarded=frozenset(begun.recording.guarded),
        )
        with self._lock:
            self._recorded.append(recorded)
        return recorded

    @contextmanager
    def _place(self) -> Iterator[None]:
        with self._lock:
            if len(self._recorded) + self._under_way >= self._transactions_max:
                raise RecorderFull(
                    f"the recorder holds {self._transactions_max:,} transactions, as many as it may: save its history "
                    f"and start another one, or raise transactions_max"
                )
            self._under_way += 1
        try:
            yield
        finally:
            with self._lock:
                self._under_way -= 1

    @contextmanager
    def _in_session(self) -> Iterator[str]:
        """The name of the process that the calling thread is now."""
        session = self._session
        if session.number == 0:
            session.number = next(self._numbers)
        name = f"{self._process}/{session.number}" + f".{session.depth}" * bool(session.depth)
        session.depth += 1
        try:
            yield name
        finally:
            session.depth -= 1


def _passes(error: BaseException) -> bool:
    """Whether the services failed in a way that another transaction may not meet."""
    return isinstance(error, (PythiaError, StoreError)) and error.retriable
