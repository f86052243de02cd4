"""Workloads on the real client and oracle, and their own checks on histories made up to break each promise."""

from __future__ import annotations

import threading
from concurrent.futures import ThreadPoolExecutor
from random import Random
from typing import cast

import pytest

from client import InvalidRequest, NoPrimary, Transaction, TransactionManager
from histories import History, HistoryError, Kind, Outcome, Recorder, RecordingTransaction, check, drive
from histories.workloads import WORKLOADS, Bank, Counter, GrowingSet, LongFork, OnCall, Register, Workload, WriteSkew
from store import StoreUnavailable
from tests.unit.histories.made_up import aborted, at, committed, history, reader, unknown

THREADS = 3
STEPS = 25


def run_steps(workload: Workload, recorder: Recorder) -> None:
    """A number of steps in each thread, all at the same time."""
    barrier = threading.Barrier(THREADS)

    def work(number: int) -> None:
        chooser = Random(number)
        barrier.wait(20)
        for _ in range(STEPS):
            workload.step(recorder, chooser)

    with ThreadPoolExecutor(THREADS) as pool:
        list(pool.map(work, range(THREADS)))


@pytest.mark.parametrize("name", sorted(WORKLOADS))
def test_a_workload_on_the_real_oracle_is_snapshot_isolated(manager: TransactionManager, name: str) -> None:
    workload = WORKLOADS[name]("kept")
    workload.setup(manager)
    recorder = Recorder(manager, workload.cells)
    run_steps(workload, recorder)
    final_state = workload.final_state(recorder)
    recorded = recorder.history(name)
    assert recorded.transactions[-1].external_reads().keys() == set(workload.keys)
    assert len(recorded.transactions) > THREADS * STEPS
    assert sum(each.outcome is Outcome.COMMITTED for each in recorded.transactions) > THREADS * STEPS / 4
    assert any(not each.is_read_only for each in recorded.transactions if each.outcome is Outcome.COMMITTED)
    assert check(recorded, final_state) == []
    assert workload.check(recorded) == []


def stepped(workload: Workload, manager: TransactionManager) -> Recorder:
    """What twenty steps of it did, one after the other."""
    workload.setup(manager)
    recorder = Recorder(manager, workload.cells)
    for number in range(20):
        workload.step(recorder, Random(number))
    return recorder


def test_write_skew_happens(manager: TransactionManager) -> None:
    workload = WriteSkew("kept", duties=1)
    recorder = stepped(workload, manager)
    final_state = workload.final_state(recorder)
    skews = workload.skews(recorder.history())
    assert skews > 0
    assert check(recorder.history(), final_state) == []
    assert f"{skews} times" in workload.remark(recorder.history())


def test_guards_keep_write_skew_from_happening(manager: TransactionManager) -> None:
    workload = OnCall("kept", duties=1)
    recorder = stepped(workload, manager)
    recorded = recorder.history()
    conflicts = [each for each in recorded.transactions if each.reason == "Conflict"]
    assert conflicts
    assert all(each.guarded for each in conflicts)
    assert check(recorded, workload.final_state(recorder)) == workload.check(recorded) == []


def test_a_table_is_set_up_once(manager: TransactionManager) -> None:
    Bank("kept").setup(manager)
    assert manager.catalog.entry("kept").conflict_level == "cell"
    with pytest.raises(InvalidRequest):
        Bank("kept").setup(manager)


class ReadCommittedTransaction:
    """Reads whatever has committed by the moment of each read: what a client must not do."""

    def __init__(self, manager: TransactionManager, transaction: Transaction) -> None:
        self._manager = manager
        self._transaction = transaction

    def __getattr__(self, name: str) -> object:
        return getattr(self._transaction, name)

    def get(self, table: str, row: bytes, columns: list[bytes], *, guarded: bool) -> dict[bytes, bytes]:
        del guarded
        return self._manager.snapshot().get(table, row, columns)


class ReadCommittedManager:
    def __init__(self, manager: TransactionManager) -> None:
        self._manager = manager

    def transaction(self, *, read_only: bool = False) -> Transaction:
        begun = self._manager.transaction(read_only=read_only)
        return cast(Transaction, ReadCommittedTransaction(self._manager, begun))


def test_a_client_that_reads_without_its_snapshot_is_found(manager: TransactionManager) -> None:
    bank = Bank("kept", accounts=2)
    bank.setup(manager)
    recorder = Recorder(cast(TransactionManager, ReadCommittedManager(manager)), bank.cells)
    source, target = bank.keys

    def transfer(transaction: RecordingTransaction) -> None:
        transaction.write(source, 90)
        transaction.write(target, 110)

    def look(transaction: RecordingTransaction) -> None:
        transaction.read(source)
        recorder.run(transfer)
        transaction.read(target)

    seen = recorder.run(look)
    recorded = recorder.history()
    (found,) = check(recorded)
    assert (found.kind, found.transactions[0]) == (Kind.FUTURE_READ, seen.id)
    (broken,) = bank.check(recorded)
    assert (broken.kind, broken.transactions) == (Kind.INVARIANT, (seen.id,))
    assert "saw 210 in all, not 200" in broken.text


ACCOUNTS = Bank("kept", accounts=2).keys
SET = GrowingSet("kept", sets=1, elements=2).keys
X, Y = LongFork("kept", pairs=1).keys
ADDED = at(committed(5, 4, 6, f"w {SET[0]} 5"), 1, 2, 3, 4)
NOT_FOUND = reader(9, 8, f"r {SET[0]} -, r {SET[1]} -")
(COUNTER,) = Counter("kept", counters=1).keys
LEFT, RIGHT = OnCall("kept", duties=1).keys

BAD_AND_GOOD: list[tuple[Workload, History, History, str]] = [
    (
        Bank("kept", accounts=2),
        history(reader(9, 8, f"r {ACCOUNTS[0]} 5 60, r {ACCOUNTS[1]} -")),
        history(reader(9, 8, f"r {ACCOUNTS[0]} 5 60, r {ACCOUNTS[1]} 5 140"), reader(10, 8, f"r {ACCOUNTS[0]} 5 60")),
        "saw 160 in all, not 200",
    ),
    (
        Bank("kept", accounts=2),
        history(aborted(9, 8, f"r {ACCOUNTS[0]} 5 -1")),
        history(aborted(9, 8, f"r {ACCOUNTS[0]} 5 0")),
        "saw an account at -1",
    ),
    (
        GrowingSet("kept", sets=1, elements=2),
        history(reader(9, 8, f"r {SET[0]} 5, r {SET[1]} -"), reader(10, 9, f"r {SET[0]} -, r {SET[1]} -")),
        history(reader(9, 8, f"r {SET[0]} 5, r {SET[1]} -"), reader(10, 9, f"r {SET[0]} 5, r {SET[1]} 6")),
        "saw ['set/000/0000'], and the later 10 does not",
    ),
    (
        GrowingSet("kept", sets=1, elements=2),
        history(ADDED, at(NOT_FOUND, 5, 6)),
        history(ADDED, at(NOT_FOUND, 4, 6)),
        "transaction 5 added set/000/0000, and the last reader, 9, misses it",
    ),
    (
        LongFork("kept", pairs=1),
        history(reader(9, 8, f"r {X} 5 1, r {Y} -"), reader(10, 9, f"r {Y} 6 1, r {X} -")),
        history(reader(9, 8, f"r {X} 5 1, r {Y} -"), reader(10, 9, f"r {Y} 6 1, r {X} 5 1")),
        f"transaction 10 saw {X} before and {Y} after what transaction 9 saw",
    ),
    (
        Counter("kept", counters=1),
        history(at(committed(5, 4, 6, f"w {COUNTER} 5 1"), 1, 2, 3, 4), at(reader(9, 8, f"r {COUNTER} -"), 5, 6)),
        history(at(committed(5, 4, 6, f"w {COUNTER} 5 1"), 1, 2, 3, 4), at(reader(9, 8, f"r {COUNTER} -"), 4, 6)),
        f"saw {COUNTER} at 0, which is not from 1 to 1",
    ),
    (
        Counter("kept", counters=1),
        history(at(aborted(5, 4, f"w {COUNTER} 5 1"), 1, 2, 3, 4), at(reader(9, 8, f"r {COUNTER} 5 1"), 5, 6)),
        history(at(unknown(5, 4, f"w {COUNTER} 5 1"), 1, 2, 3), at(reader(9, 8, f"r {COUNTER} 5 1"), 5, 6)),
        f"saw {COUNTER} at 1, which is not from 0 to 0",
    ),
    (
        Register("kept"),
        history(committed(5, 4, 6, "w register 5 1", "a"), reader(9, 4, "r register -", "a")),
        history(committed(5, 4, 6, "w register 5 1", "a"), reader(9, 4, "r register -", "b"), aborted(10, 9, "")),
        "session a: transaction 9 saw 0 after 5 had 1",
    ),
    (
        Register("kept"),
        history(reader(5, 4, "r register 2 2"), aborted(6, 5, "w register 6 9"), reader(9, 4, "r register 1 1")),
        history(reader(5, 4, "r register 2 2"), aborted(6, 5, "w register 6 9"), reader(9, 4, "r register 2 2")),
        "session p: transaction 9 saw 1 after 5 had 2",
    ),
    (
        OnCall("kept", duties=1),
        history(reader(9, 8, f"r {LEFT} 5, r {RIGHT} 6")),
        history(reader(9, 8, f"r {LEFT} 5, r {RIGHT} -"), reader(10, 9, f"r {LEFT} -, r {RIGHT} 6")),
        f"transaction 9 found nobody on call, of the duty of '{LEFT}'",
    ),
]  # fmt: skip


@pytest.mark.parametrize(("workload", "bad", "good", "says"), BAD_AND_GOOD)
def test_a_broken_promise_is_found(workload: Workload, bad: History, good: History, says: str) -> None:
    (found,) = workload.check(bad)
    assert found.kind is Kind.INVARIANT
    assert says in found.text
    assert workload.check(good) == []


class Failing(Workload):
    """Fails as it is told to, and then goes on."""

    name = "failing"
    promise = "none"

    def __init__(self, *errors: Exception) -> None:
        super().__init__("kept")
        self.keys = ["x"]
        self._errors = list(errors)
        self.stop = threading.Event()

    def step(self, recorder: Recorder, random: Random) -> None:
        if self._errors:
            raise self._errors.pop()
        recorder.run(lambda transaction: transaction.read("x"))

    def broken(self, history: History) -> list[tuple[str, tuple[int, ...]]]:  # type: ignore[override]
        return []


def test_driving_ends_when_the_recorder_is_full(manager: TransactionManager) -> None:
    workload = Bank("kept")
    workload.setup(manager)
    recorder = Recorder(manager, workload.cells, transactions_max=50)
    driven = drive(workload, recorder, threads=THREADS, seconds=600)
    assert (driven.full, driven.steps, driven.unavailable) == (True, 50, 0)
    assert check(recorder.history()) == []


def test_driving_goes_on_after_passing_failures(manager: TransactionManager) -> None:
    workload = Failing(NoPrimary(5, "none"), StoreUnavailable("away"))
    workload.setup(manager)
    driven = drive(workload, Recorder(manager, workload.cells, transactions_max=10), threads=1, seconds=600)
    assert (driven.steps, driven.unavailable, driven.full) == (10, 2, True)


def test_driving_ends_with_the_first_error_of_another_kind(manager: TransactionManager) -> None:
    for error in (InvalidRequest("a mistake"), ZeroDivisionError()):
        workload = Failing(error)
        with pytest.raises(type(error)):
            drive(workload, Recorder(manager, workload.cells), threads=1, seconds=600)


def test_driving_ends_when_it_is_told_to_or_the_time_is_up(manager: TransactionManager) -> None:
    workload = Failing()
    workload.setup(manager)
    stop = threading.Event()
    stop.set()
    assert drive(workload, Recorder(manager, workload.cells), threads=2, seconds=600, stop=stop).steps == 0
    assert drive(workload, Recorder(manager, workload.cells), threads=2, seconds=0.05).full is False


@pytest.mark.parametrize(("threads", "seconds"), [(0, 1.0), (1, 0.0), (1, 1e9), (10_000, 1.0)])
def test_numbers_that_make_no_run_are_refused(manager: TransactionManager, threads: int, seconds: float) -> None:
    with pytest.raises(HistoryError, match="threads are from"):
        drive(Failing(), Recorder(manager, Bank("kept").cells), threads=threads, seconds=seconds)


class UnreadableManager:
    def __init__(self, manager: TransactionManager) -> None:
        self._manager = manager

    def transaction(self, *, read_only: bool = False) -> Transaction:
        return cast(Transaction, UnreadableTransaction(self._manager.transaction(read_only=read_only)))


class UnreadableTransaction:
    def __init__(self, transaction: Transaction) -> None:
        self._transaction = transaction

    def __getattr__(self, name: str) -> object:
        return getattr(self._transaction, name)

    def scan(self, table: str, **options: object) -> None:
        raise StoreUnavailable("away")


def test_a_final_state_that_cannot_be_read_is_an_error(manager: TransactionManager) -> None:
    bank = Bank("kept")
    recorder = Recorder(cast(TransactionManager, UnreadableManager(manager)), bank.cells)
    with pytest.raises(HistoryError, match="could not be read, last for StoreUnavailable"):
        bank.final_state(recorder)
