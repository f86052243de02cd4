"""The commit table on the twin and on real HBase: commits, fences, and those who are late."""

from __future__ import annotations

import itertools
import time
import uuid
from collections.abc import Callable, Iterator

import pytest

from client.vacuum.finished import drop_commit_rows
from client.vacuum.report import VacuumReport
from commit_table import Aborted, CommitTable, Committed, Forgotten, TransactionRecord, Undecided
from commit_table.layout import row_key
from commit_table.timestamps import compose
from store import CellStore, MemoryCellStore
from store.hbase import HBaseCellStore
from tests import recording

Record = Callable[[dict[int, int], int], None]


@pytest.fixture(scope="module", params=["memory", pytest.param("hbase", marks=pytest.mark.integration)])
def store(request: pytest.FixtureRequest) -> Iterator[CellStore]:
    if request.param == "memory":
        yield MemoryCellStore()
        return
    store = HBaseCellStore(request.getfixturevalue("services").thrift)
    yield store
    store.close()


@pytest.fixture(scope="module")
def name() -> str:
    return f"commits_{uuid.uuid4().hex[:8]}"


@pytest.fixture(scope="module")
def table(store: CellStore, name: str) -> Iterator[CommitTable]:
    table = CommitTable(store, name)
    table.create()
    table.create()  # making it again is harmless
    yield table
    store.drop_table(name)


@pytest.fixture
def record(store: CellStore, name: str) -> Record:
    """Records commits as an oracle of an epoch does."""
    return lambda commits, epoch: recording.record(store, name, commits, epoch)


@pytest.fixture(scope="module")
def begin() -> Callable[[], int]:
    """Start timestamps that no other test has."""
    counter = itertools.count(compose(time.time_ns() // 1_000_000))
    return lambda: next(counter)


EPOCH = compose(1_000_000_000_000)
NEXT_EPOCH = compose(9_000_000_000_000)
"""Far above every start timestamp of these tests: all of them are from an older epoch."""


def test_what_is_not_recorded_is_undecided(table: CommitTable, begin: Callable[[], int]) -> None:
    assert table.outcome(begin()) == Undecided()


def test_a_recorded_commit_counts(table: CommitTable, record: Record, begin: Callable[[], int]) -> None:
    first, second = begin(), begin()
    record({first: first + 10, second: second + 10}, EPOCH)
    assert table.outcomes([first, second, begin()]) | {} == {
        first: Committed(first + 10),
        second: Committed(second + 10),
        second + 1: Undecided(),
    }


def test_many_outcomes_over_many_milliseconds(table: CommitTable, record: Record, begin: Callable[[], int]) -> None:
    starts = [begin() + (number << 18) for number in range(600)]
    record({start: start + 1 for start in starts[::2]}, EPOCH)
    outcomes = table.outcomes(starts)
    assert all(outcomes[start] == Committed(start + 1) for start in starts[::2])
    assert all(outcomes[start] == Undecided() for start in starts[1::2])


def test_a_fence_voids_a_late_commit_of_the_older_epoch(
    table: CommitTable, record: Record, begin: Callable[[], int]
) -> None:
    start = begin()
    assert table.resolve(start, NEXT_EPOCH) == Undecided()
    record({start: start + 1}, EPOCH)
    assert table.outcome(start) == Undecided()
    assert table.resolve(start, NEXT_EPOCH) == Undecided()


def test_a_fenced_transaction_may_commit_in_the_new_epoch(
    table: CommitTable, record: Record, begin: Callable[[], int]
) -> None:
    start = begin()
    table.resolve(start, NEXT_EPOCH)
    record({start: NEXT_EPOCH + 5}, NEXT_EPOCH)
    assert table.outcome(start) == Committed(NEXT_EPOCH + 5)


def test_a_late_write_of_the_older_epoch_never_covers_the_newer_one(
    table: CommitTable, record: Record, begin: Callable[[], int]
) -> None:
    start = begin()
    table.resolve(start, NEXT_EPOCH)
    record({start: NEXT_EPOCH + 5}, NEXT_EPOCH)
    record({start: start + 1}, EPOCH)
    assert table.outcome(start) == Committed(NEXT_EPOCH + 5)


def test_a_commit_that_stands_is_learnt_and_not_fenced(
    table: CommitTable, record: Record, begin: Callable[[], int]
) -> None:
    start = begin()
    record({start: start + 1}, EPOCH)
    assert table.resolve(start, NEXT_EPOCH) == Committed(start + 1)
    assert table.abort(start) == Committed(start + 1)
    assert table.outcome(start) == Committed(start + 1)


def test_an_abort_is_for_good(table: CommitTable, record: Record, begin: Callable[[], int]) -> None:
    start = begin()
    assert table.abort(start) == Aborted()
    record({start: NEXT_EPOCH + 5}, NEXT_EPOCH)
    assert table.outcome(start) == Aborted()
    assert table.resolve(start, NEXT_EPOCH) == Aborted()


def test_what_is_forgotten_is_not_aborted(table: CommitTable, record: Record) -> None:
    """Long before all others of these tests."""
    assert table.forgotten_below() == 0
    forgotten, recorded, known = compose(1), compose(2), compose(3)
    record({recorded: recorded + 1}, EPOCH)
    table.forget_below(known)
    table.forget_below(recorded)
    assert table.forgotten_below() == known
    with pytest.raises(Forgotten, match=f"transaction {forgotten} cannot be aborted any more"):
        table.abort(forgotten)
    assert table.outcome(forgotten) == Undecided()
    assert table.abort(recorded) == Committed(recorded + 1)
    assert table.abort(known) == Aborted()


def test_a_record_that_lasts_says_so_of_its_own_transaction_only(
    table: CommitTable, record: Record, begin: Callable[[], int]
) -> None:
    lasting, neighbour, fenced, open_one = begin(), begin(), begin(), begin()
    table.resolve(fenced, NEXT_EPOCH)
    record({lasting: lasting + 10, neighbour: neighbour + 10}, EPOCH)
    record({fenced: NEXT_EPOCH + 5}, NEXT_EPOCH)
    for start in (lasting, lasting, fenced, open_one):
        table.let_last(start)
    outcomes = table.outcomes([lasting, neighbour, fenced, open_one])
    assert outcomes == {
        lasting: Committed(lasting + 10),
        neighbour: Committed(neighbour + 10),
        fenced: Committed(NEXT_EPOCH + 5),
        open_one: Undecided(),
    }
    assert [start for start, outcome in outcomes.items() if isinstance(outcome, Committed) and outcome.is_lasting] == [
        lasting,
        fenced,
    ]
    assert table.resolve(lasting, NEXT_EPOCH) == Committed(lasting + 10)
    assert table.abort(open_one) == Aborted()


def test_of_the_transactions_of_a_millisecond_only_the_records_that_last_stay(
    store: CellStore, name: str, table: CommitTable, record: Record
) -> None:
    """With their fences, and with the mark: the next vacuum has to know them again."""
    lasting, fenced, other, aborted = (compose(40, counter) for counter in range(1, 5))
    table.resolve(fenced, EPOCH)
    table.abort(aborted)
    record({lasting: lasting + 9, other: other + 9}, compose(30))
    record({fenced: EPOCH + 9}, EPOCH)
    for start in (lasting, fenced, other):
        table.let_last(start)
    report = VacuumReport(False, 0, 0)
    drop_commit_rows(store, name, report, 41, EPOCH, [lasting, fenced])
    assert report.commit_table_rows_lasting == 1
    left = store.get(name, row_key(lasting), [b"c", b"f"])
    assert len(left) == 5, "two commits, two marks, a fence"
    records = {start: table.record(start) for start in (lasting, fenced, other, aborted)}
    assert records == {
        lasting: TransactionRecord(lasting + 9, 0, is_lasting=True),
        fenced: TransactionRecord(EPOCH + 9, EPOCH, is_lasting=True),
        other: TransactionRecord(None),
        aborted: TransactionRecord(None),
    }
    drop_commit_rows(store, name, report, 41, EPOCH)
    assert store.get(name, row_key(lasting), [b"c", b"f"]) == {}


def test_a_smaller_fence_takes_nothing_back(table: CommitTable, record: Record, begin: Callable[[], int]) -> None:
    start = begin()
    table.resolve(start, NEXT_EPOCH)
    table.resolve(start, NEXT_EPOCH - 100)
    record({start: NEXT_EPOCH - 50}, EPOCH)
    assert table.outcome(start) == Undecided()


def test_recording_again_changes_nothing(table: CommitTable, record: Record, begin: Callable[[], int]) -> None:
    start = begin()
    for _ in range(2):
        record({start: start + 1}, EPOCH)
    assert table.outcome(start) == Committed(start + 1)
