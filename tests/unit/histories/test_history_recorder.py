"""The recorder on the real client and oracle: what it writes down is what happened."""

from __future__ import annotations

import itertools
import threading
from concurrent.futures import ThreadPoolExecutor
from typing import cast

import pytest

from client import (
    Aborted,
    Committed,
    Conflict,
    InvalidRequest,
    NoPrimary,
    OutcomeUnknown,
    Transaction,
    TransactionManager,
    Undecided,
)
from histories import (
    CellMapping,
    HistoryError,
    Outcome,
    RealTime,
    RecordedTransaction,
    Recorder,
    RecorderFull,
    RecordingTransaction,
    check,
)
from histories.cells import Cell, decode, encode
from histories.recorder import SETTLED, WRITES_OF_A_KEY_MAX
from store import StoreUnavailable

CELLS = CellMapping("kept", b"d:v")


@pytest.fixture
def recorder(manager: TransactionManager) -> Recorder:
    """On a clock that ticks once a look."""
    manager.create_table(CELLS.table, ["d"])
    return Recorder(manager, CELLS, process="here", monotonic_ns=itertools.count(1).__next__)


def told(transaction: RecordedTransaction) -> list[tuple[str, object, int | None, int | None]]:
    return [(each.kind.value, each.key, each.value, each.payload) for each in transaction.operations]


def test_what_a_transaction_did_is_recorded(recorder: Recorder, manager: TransactionManager) -> None:
    def work(transaction: RecordingTransaction) -> None:
        assert transaction.read("x").value is None
        assert transaction.write("x", 70).value == transaction.start_timestamp
        transaction.write(5)
        transaction.read("x")
        transaction.delete("y")

    first = recorder.run(work)
    second = recorder.run(lambda transaction: transaction.scan(["y", "x"]), read_only=True)
    value = first.id
    assert told(first) == [
        ("r", "x", None, None), ("w", "x", value, 70), ("w", 5, value, None), ("r", "x", value, 70),
        ("w", "y", None, None),
    ]  # fmt: skip
    assert told(second) == [("r", "y", None, None), ("r", "x", value, 70)]
    assert manager.outcome(first.id) == Committed(first.commit_timestamp or 0)
    assert first.snapshot < first.id < (first.commit_timestamp or 0) <= second.snapshot == second.commit_timestamp
    assert (first.real_time, second.real_time) == (RealTime(1, 2, 3, 4), RealTime(5, 6, 7, 8))
    assert first.process == second.process == "here/1"
    assert recorder.history("name").transactions == (first, second)
    assert recorder.history("name").workload == "name"
    assert check(recorder.history(), {"x": value, 5: value}) == []


def test_a_scan_also_records_what_it_was_not_asked_for(recorder: Recorder) -> None:
    recorder.run(lambda transaction: [transaction.write(key) for key in ("a", "b", "c")])
    scanned = recorder.run(lambda transaction: transaction.scan(["a", "bb", "c"]))
    assert [each.key for each in scanned.operations] == ["a", "bb", "c", "b"]
    with pytest.raises(HistoryError, match="one key at least"):
        recorder.run(lambda transaction: transaction.scan([]))


def test_a_key_written_again_in_a_transaction_gets_another_value(recorder: Recorder) -> None:
    written = recorder.run(lambda transaction: [transaction.write("x") for _ in range(WRITES_OF_A_KEY_MAX)])
    values = [each.value for each in written.operations]
    assert len(set(values)) == WRITES_OF_A_KEY_MAX
    assert all(0 < cast(int, value) < 2**63 for value in values)
    with pytest.raises(HistoryError, match="8 times at most"):
        recorder.run(lambda transaction: [transaction.write("x") for _ in range(WRITES_OF_A_KEY_MAX + 1)])
    assert check(recorder.history(), {"x": values[-1]}) == []


def test_a_conflict_is_recorded_and_no_error(recorder: Recorder) -> None:
    def lose(transaction: RecordingTransaction) -> None:
        transaction.write("x")
        winner = recorder.run(lambda other: other.write("x"))
        assert (winner.outcome, winner.process) == (Outcome.COMMITTED, "here/1.1")

    loser = recorder.run(lose)
    assert (loser.outcome, loser.reason, loser.process) == (Outcome.ABORTED, Conflict.__name__, "here/1")
    assert loser.real_time is not None
    assert loser.real_time.commit_answered_ns is not None
    assert check(recorder.history()) == []


def test_an_error_of_the_function_is_raised_and_its_transaction_is_recorded(recorder: Recorder) -> None:
    def fail(transaction: RecordingTransaction) -> None:
        transaction.write("x")
        raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        recorder.run(fail)
    (failed,) = recorder.history().transactions
    assert (failed.outcome, failed.reason, len(failed.operations)) == (Outcome.ABORTED, "ZeroDivisionError", 1)
    assert recorder.run(lambda transaction: transaction.read("x")).operations[0].value is None


def test_a_mistake_is_raised(recorder: Recorder) -> None:
    with pytest.raises(InvalidRequest, match="read-only"):
        recorder.run(lambda transaction: transaction.write("x"), read_only=True)
    with pytest.raises(HistoryError, match="a key that is a number"):
        recorder.run(lambda transaction: transaction.read(-1))


def test_a_store_that_fails_for_a_while_is_recorded_and_no_error(recorder: Recorder) -> None:
    def fail(transaction: RecordingTransaction) -> None:
        raise StoreUnavailable("away")

    assert recorder.run(fail).reason == "StoreUnavailable"


def test_a_foreign_cell_is_an_error(recorder: Recorder, manager: TransactionManager) -> None:
    with manager.transaction() as transaction:
        transaction.put(CELLS.table, CELLS.cell("x").row, {CELLS.column: b"7 x"})
    with pytest.raises(HistoryError, match="not b'7 x'"):
        recorder.run(lambda transaction: transaction.read("x"))


class LosingTransaction:
    """Its commit takes place, or not, and its answer is lost."""

    def __init__(self, transaction: Transaction, takes_place: bool | None, error: Exception | None) -> None:
        self._transaction = transaction
        self._takes_place = takes_place
        self._error = error or OutcomeUnknown(transaction.start_timestamp, 5)

    def __getattr__(self, name: str) -> object:
        return getattr(self._transaction, name)

    def commit(self) -> Committed:
        if self._takes_place:
            self._transaction.commit()
        raise self._error


class LosingManager:
    """Begins transactions whose answers are lost while ``takes_place`` and ``error`` say how."""

    def __init__(self, manager: TransactionManager) -> None:
        self._manager = manager
        self.losing = False
        self.takes_place = False
        self.error: Exception | None = None

    def __getattr__(self, name: str) -> object:
        return getattr(self._manager, name)

    def transaction(self, *, read_only: bool = False) -> Transaction:
        transaction = self._manager.transaction(read_only=read_only)
        if not self.losing:
            return transaction
        return cast(Transaction, LosingTransaction(transaction, self.takes_place, self.error))


@pytest.fixture
def losing(manager: TransactionManager) -> LosingManager:
    manager.create_table(CELLS.table, ["d"])
    return LosingManager(manager)


def test_unknown_outcomes_are_recorded_and_settled(losing: LosingManager, manager: TransactionManager) -> None:
    recorder = Recorder(cast(TransactionManager, losing), CELLS, process="here")
    losing.losing = True
    identities = []
    for key, takes_place in (("x", True), ("y", False), ("z", False)):
        losing.takes_place = takes_place
        lost = recorder.run(lambda transaction, key=key: transaction.write(key))  # type: ignore[misc]
        assert (lost.outcome, lost.reason) == (Outcome.UNKNOWN, "OutcomeUnknown")
        assert lost.real_time is not None
        assert lost.real_time.commit_answered_ns is None
        identities.append(lost.id)
    losing.losing = False
    recorder.run(lambda transaction: transaction.scan(["x", "y", "z"]), read_only=True)
    assert check(recorder.history(), {"x": identities[0]}) == []
    assert manager.outcome(identities[2]) == Undecided()
    assert manager.abort(identities[1]) == Aborted()
    assert recorder.settle() == 1
    outcomes = [(each.outcome, each.reason) for each in recorder.history().transactions]
    assert outcomes == [
        (Outcome.COMMITTED, ""),
        (Outcome.ABORTED, SETTLED),
        (Outcome.UNKNOWN, "OutcomeUnknown"),
        (Outcome.COMMITTED, ""),
    ]
    assert check(recorder.history(), {"x": identities[0]}) == []
    processes = [each.process for each in recorder.history().transactions]
    assert processes == ["here/1", "here/2", "here/3", "here/4"], "who does not know how it ended is a new process"


def test_an_unforeseen_error_of_a_commit_is_raised_and_recorded_as_unknown(losing: LosingManager) -> None:
    recorder = Recorder(cast(TransactionManager, losing), CELLS)
    losing.losing, losing.takes_place, losing.error = True, True, ZeroDivisionError()
    with pytest.raises(ZeroDivisionError):
        recorder.run(lambda transaction: transaction.write("x"))
    (lost,) = recorder.history().transactions
    assert (lost.outcome, lost.reason) == (Outcome.UNKNOWN, "ZeroDivisionError")
    assert recorder.settle() == 0


class NoManager:
    def transaction(self, *, read_only: bool = False) -> Transaction:
        raise NoPrimary(5, "none")


def test_where_nothing_begins_nothing_is_recorded() -> None:
    recorder = Recorder(cast(TransactionManager, NoManager()), CELLS, transactions_max=1)
    for _ in range(3):
        with pytest.raises(NoPrimary):
            recorder.run(lambda transaction: None)
    assert recorder.history().transactions == ()


def test_a_full_recorder_begins_nothing(manager: TransactionManager) -> None:
    recorder = Recorder(manager, CELLS, transactions_max=2)

    def nest(transaction: RecordingTransaction) -> None:
        recorder.run(lambda inner: None)
        with pytest.raises(RecorderFull, match="holds 2 transactions, as many as it may"):
            recorder.run(lambda inner: None)

    recorder.run(nest)
    with pytest.raises(RecorderFull):
        recorder.run(nest)
    assert len(recorder.history().transactions) == 2
    with pytest.raises(HistoryError, match="1 at least"):
        Recorder(manager, CELLS, transactions_max=0)


def test_threads_are_processes_of_their_own(recorder: Recorder) -> None:
    barrier = threading.Barrier(4)

    def work(number: int) -> None:
        barrier.wait(20)
        for _ in range(5):
            recorder.run(lambda transaction: [transaction.read("x"), transaction.write("x", number)])

    with ThreadPoolExecutor(4) as pool:
        list(pool.map(work, range(4)))
    recorded = recorder.history()
    assert {each.process for each in recorded.transactions} == {f"here/{number}" for number in range(1, 5)}
    assert len(recorded.transactions) == 20
    assert check(recorded) == []


@pytest.mark.parametrize("key", ["", "a", "ä/1", 0, 7, 10**19 - 1])
def test_keys_and_cells_name_each_other(key: str | int) -> None:
    assert CELLS.key(CELLS.cell(key)) == key


def test_cells_of_no_key_are_refused() -> None:
    for cell in (Cell("other", b"sx", b"d:v"), Cell("kept", b"sx", b"d:w"), Cell("kept", b"x", b"d:v")):
        with pytest.raises(HistoryError, match="not the cell of any key"):
            CELLS.key(cell)
    assert CELLS.cell(9).row < CELLS.cell(10).row < CELLS.cell("a").row


def test_cells_hold_values_and_payloads() -> None:
    for pair in ((1, None), (2**62, 0), (5, -7)):
        assert decode(encode(*pair)) == pair
    for content in (b"", b"x", b"1 2 3", b"01", b"1 ", b"+1", b"1_0"):
        with pytest.raises(HistoryError, match="a value and perhaps a payload"):
            decode(content)
