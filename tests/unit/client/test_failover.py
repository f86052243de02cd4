"""What a client's transactions and snapshots meet when the oracle changes under them, or forgets."""

from __future__ import annotations

import dataclasses
import gc
from collections.abc import Callable, Sequence
from datetime import UTC, datetime, timedelta

import pytest

from client import (
    Aborted,
    Committed,
    Conflict,
    InvalidRequest,
    NoPrimary,
    OutcomeUnknown,
    Transaction,
    TransactionAborted,
    TransactionExpired,
    TransactionHandle,
    TransactionManager,
)
from client.cells import encode_value
from commit_table import CommitTable, table_name
from commit_table.timestamps import compose, milliseconds_of
from store import RowPut
from store.faults import Fault
from tests.unit.client.conftest import SETTINGS, Installation
from tso.settings import Limits

A, B = b"f:a", b"f:b"


def put(manager: TransactionManager, row: bytes, value: bytes, column: bytes = A, table: str = "t") -> Committed:
    with manager.transaction() as transaction:
        transaction.put(table, row, {column: value})
    outcome = manager.outcome(transaction.start_timestamp)
    assert isinstance(outcome, Committed)
    return outcome


def get(manager: TransactionManager, row: bytes, column: bytes = A, table: str = "t") -> bytes | None:
    return manager.snapshot().get(table, row).get(column)


def open_with(manager: TransactionManager, row: bytes, value: bytes, column: bytes = A) -> Transaction:
    transaction = manager.transaction()
    transaction.put("t", row, {column: value})
    return transaction


def fail_over(installation: Installation, limits: Limits | None = None) -> None:
    """The primary goes, another of a new epoch takes its place."""
    standby = installation.oracle("standby", limits)
    installation._oracles.pop(0).stop()
    standby.await_primary()
    installation.find_primary = lambda: standby.address


def test_a_transaction_in_flight_survives_a_failover(installation: Installation) -> None:
    manager = installation.manager()
    put(manager, b"r", b"0")
    transaction = open_with(manager, b"r", b"1")
    fail_over(installation)
    committed = transaction.commit()
    assert committed.commit_timestamp > transaction.start_timestamp
    assert get(manager, b"r") == b"1"


def test_it_reads_at_its_snapshot_before_and_after(installation: Installation) -> None:
    manager = installation.manager()
    put(manager, b"r", b"0")
    transaction = manager.transaction()
    fail_over(installation)
    put(manager, b"r", b"1")
    assert transaction.get("t", b"r") == {A: b"0"}
    transaction.put("t", b"other", {A: b"2"})
    transaction.commit()


@pytest.mark.parametrize("when", ["before", "after"])
def test_its_own_conflict_is_found_on_either_side_of_the_failover(installation: Installation, when: str) -> None:
    manager = installation.manager()
    transaction = open_with(manager, b"r", b"1")
    if when == "before":
        put(manager, b"r", b"rival")
    fail_over(installation)
    if when == "after":
        put(manager, b"r", b"rival")
    with pytest.raises(Conflict):
        transaction.commit()
    assert get(manager, b"r") == b"rival"


def test_the_conflict_level_of_the_table_holds_across_a_failover(installation: Installation) -> None:
    manager = installation.manager()
    manager.create_table("by_row", ["f"], conflict_level="row")
    by_cell, by_row = manager.transaction(), manager.transaction()
    by_cell.put("t", b"r", {A: b"1"})
    by_row.put("by_row", b"r", {A: b"1"})
    put(manager, b"r", b"rival", column=B)
    put(manager, b"r", b"rival", column=B, table="by_row")
    fail_over(installation)
    by_cell.commit()
    with pytest.raises(Conflict):
        by_row.commit()
    assert manager.snapshot().get("t", b"r") == {A: b"1", B: b"rival"}


def test_a_delete_by_another_is_a_conflict_like_any_write(installation: Installation) -> None:
    manager = installation.manager()
    put(manager, b"r", b"0")
    transaction = open_with(manager, b"r", b"1")
    with manager.transaction() as rival:
        rival.delete("t", b"r")
    fail_over(installation)
    with pytest.raises(Conflict):
        transaction.commit()


def test_another_in_flight_on_the_same_cell_is_no_conflict_until_it_commits(installation: Installation) -> None:
    manager = installation.manager()
    first, second = open_with(manager, b"r", b"1"), open_with(manager, b"r", b"2")
    second.handle()
    fail_over(installation)
    first.commit()
    with pytest.raises(Conflict):
        second.commit()
    assert get(manager, b"r") == b"1"


def test_a_late_write_of_the_old_primary_is_void_and_the_new_commit_counts(installation: Installation) -> None:
    manager = installation.manager()
    transaction = open_with(manager, b"r", b"1")
    start, old_epoch = transaction.start_timestamp, transaction.epoch
    fail_over(installation)
    committed = transaction.commit()
    zombie = CommitTable(installation.store, table_name(SETTINGS.root))
    zombie.record([start], [start + 1], old_epoch)
    assert manager.outcome(start) == committed
    assert get(installation.manager(), b"r") == b"1"


def test_a_late_write_of_the_old_primary_cannot_commit_what_was_told_to_be_aborted(
    installation: Installation,
) -> None:
    manager = installation.manager()
    transaction = open_with(manager, b"r", b"1")
    start, old_epoch = transaction.start_timestamp, transaction.epoch
    decided = put(manager, b"r", b"rival").commit_timestamp + 1
    fail_over(installation)
    with pytest.raises(Conflict):
        transaction.commit()
    CommitTable(installation.store, table_name(SETTINGS.root)).record([start], [decided], old_epoch)
    assert not isinstance(manager.outcome(start), Committed)
    assert get(installation.manager(), b"r") == b"rival"


def test_a_late_write_of_the_old_primary_cannot_commit_a_rival_that_was_passed_by(installation: Installation) -> None:
    manager = installation.manager()
    rival, transaction = open_with(manager, b"r", b"rival"), open_with(manager, b"r", b"1")
    manager.store.put("t", [RowPut(b"r", {A: encode_value(b"rival")})], rival.start_timestamp)
    fail_over(installation)
    transaction.commit()
    zombie = CommitTable(installation.store, table_name(SETTINGS.root))
    zombie.record([rival.start_timestamp], [transaction.start_timestamp + 1], rival.epoch)
    assert not isinstance(manager.outcome(rival.start_timestamp), Committed)
    assert get(installation.manager(), b"r") == b"1"


def test_a_commit_between_snapshot_and_start_is_a_conflict_across_a_failover(installation: Installation) -> None:
    manager = installation.manager()
    put(manager, b"r", b"0")
    begun = manager.oracle.begin()
    committed = put(manager, b"r", b"rival").commit_timestamp
    late = manager.oracle.begin()
    assert begun.snapshot < committed < late.first_start_timestamp
    handle = TransactionHandle(late.first_start_timestamp, begun.snapshot, late.epoch, manager.settings)
    transaction = manager.resume(handle)
    transaction.put("t", b"r", {A: b"1"})
    fail_over(installation)
    with pytest.raises(Conflict):
        transaction.commit()
    assert get(manager, b"r") == b"rival"


def test_what_did_commit_before_the_failover_is_told_so_though_the_answer_was_lost(installation: Installation) -> None:
    manager = installation.manager()
    transaction = open_with(manager, b"r", b"1")
    start = transaction.start_timestamp
    recorded = manager.oracle.begin().first_start_timestamp
    CommitTable(installation.store, table_name(SETTINGS.root)).record([start], [recorded], transaction.epoch)
    fail_over(installation)
    assert transaction.commit() == Committed(recorded)
    assert get(manager, b"r") == b"1"


def test_a_late_abort_of_the_old_primary_is_found_before_the_commit_is_acknowledged(
    installation: Installation, monkeypatch: pytest.MonkeyPatch
) -> None:
    manager = installation.manager()
    transaction = open_with(manager, b"r", b"1")
    start = transaction.start_timestamp
    fail_over(installation)
    table, put_cells = table_name(SETTINGS.root), installation.store.put

    def late_abort_before_the_commit(name: str, puts: Sequence[RowPut], timestamp: int) -> None:
        if name == table:
            CommitTable(installation.store, table).abort(start)  # a fence at infinity, asked for long ago
        put_cells(name, puts, timestamp)

    monkeypatch.setattr(installation.store, "put", late_abort_before_the_commit)
    with pytest.raises(TransactionAborted):
        transaction.commit()
    monkeypatch.undo()
    assert manager.outcome(start) == Aborted()
    assert get(installation.manager(), b"r") is None
    put(manager, b"r", b"2")


def test_somebody_elses_abort_is_found_across_a_failover(installation: Installation) -> None:
    manager = installation.manager()
    transaction = open_with(manager, b"r", b"1")
    manager.abort(transaction.start_timestamp)
    fail_over(installation)
    with pytest.raises(TransactionAborted, match="aborted through the oracle"):
        transaction.commit()
    assert get(manager, b"r") is None


def test_a_transaction_survives_three_failovers_and_an_eviction(installation: Installation) -> None:
    small = Limits(conflict_map_entries_max=8, commit_share_max=0.5)
    manager = installation.manager()
    put(manager, b"r", b"0")
    transaction = open_with(manager, b"r", b"1")
    for _ in range(3):
        fail_over(installation, small)
        for number in range(10):
            put(manager, b"other%d" % number, b"x")
    assert transaction.get("t", b"r") == {A: b"1"}
    transaction.commit()
    assert get(manager, b"r") == b"1"


def test_a_transaction_whose_snapshot_was_evicted_finds_its_conflict(empty_installation: Installation) -> None:
    primary = empty_installation.oracle(limits=Limits(conflict_map_entries_max=8, commit_share_max=0.5))
    primary.await_primary()
    empty_installation.find_primary = lambda: primary.address
    manager = empty_installation.manager()
    manager.create_table("t", ["f"])
    loser, winner = open_with(manager, b"r", b"1"), open_with(manager, b"s", b"1")
    put(manager, b"r", b"rival")
    for number in range(10):
        put(manager, b"other%d" % number, b"x")
    with pytest.raises(Conflict):
        loser.commit()
    winner.commit()


def test_a_bulk_write_survives_a_failover_and_finds_its_conflicts(installation: Installation) -> None:
    manager = installation.manager()

    def job(rows: list[bytes]) -> Transaction:
        transaction = manager.transaction()
        handle = transaction.handle()
        name = manager.open_job(handle)
        writer = manager.attempt_writer(handle, "t", name, partition=0, attempt=0)
        writer.write([RowPut(row, {A: encode_value(b"bulk")}) for row in rows])
        manager.seal_job(handle, name, [(0, 0)])
        return transaction

    survivor, loser = job([b"a%04d" % n for n in range(1200)]), job([b"b%04d" % n for n in range(1200)])
    put(manager, b"b1100", b"rival")
    fail_over(installation)
    survivor.commit()
    with pytest.raises(Conflict):
        loser.commit()
    snapshot = manager.snapshot()
    assert sum(1 for _ in snapshot.scan("t", prefix=b"a")) == 1200
    assert [row for row, _ in snapshot.scan("t", prefix=b"b")] == [b"b1100"]


def test_a_store_that_fails_while_a_transaction_is_revalidated_aborts_it_whole(installation: Installation) -> None:
    manager = installation.manager()
    transaction = open_with(manager, b"r", b"1")
    fail_over(installation)
    installation.store.plan("get_many", Fault.LOST)
    with pytest.raises(TransactionAborted, match="never taken up"):
        transaction.commit()
    assert get(manager, b"r") is None


def test_without_any_primary_a_commit_says_so_after_the_deadline_and_leaves_nothing(installation: Installation) -> None:
    manager = installation.manager(settings=dataclasses.replace(SETTINGS, deadline_ms=100))
    transaction = open_with(manager, b"r", b"1")
    address = installation.find_primary()
    installation.find_primary = lambda: None
    manager.oracle.close()  # drops the connection that it holds
    manager.oracle._primary = None
    with pytest.raises((TransactionAborted, OutcomeUnknown), match=r"outcome|never taken up"):
        transaction.commit()
    installation.find_primary = lambda: address
    assert get(installation.manager(), b"r") is None


@pytest.fixture
def short_lived(empty_installation: Installation) -> Installation:
    """An oracle that gives transactions up which nothing is heard of for 300 ms."""
    primary = empty_installation.oracle(limits=Limits(transaction_life_ms=300))
    primary.await_primary()
    empty_installation.find_primary = lambda: primary.address
    empty_installation.manager().create_table("t", ["f"])
    return empty_installation


def await_end(manager: TransactionManager, transaction: Transaction) -> None:
    """Keep the oracle's time going by other transactions until it has given this one up."""
    for _ in range(10_000):
        if not manager.oracle.heartbeat({transaction.start_timestamp: transaction.snapshot_timestamp})[
            transaction.start_timestamp
        ]:
            return
        manager.oracle.begin()
    pytest.fail("the transaction is not given up")


def silent(manager: TransactionManager, of: Callable[[], Transaction]) -> Transaction:
    """A transaction that was given up, found out without a heartbeat of its own."""
    transaction = of()
    begun_ms = milliseconds_of(transaction.start_timestamp)
    while milliseconds_of(manager.oracle.begin().first_start_timestamp) < begun_ms + 1_000:
        pass
    return transaction


def test_a_transaction_that_nothing_was_heard_of_is_given_up_and_told_so(short_lived: Installation) -> None:
    manager = short_lived.manager()
    transaction = silent(manager, lambda: open_with(manager, b"r", b"1"))
    with pytest.raises(TransactionExpired, match="heard nothing"):
        transaction.commit()
    assert get(manager, b"r") is None
    assert TransactionExpired.retriable


def test_heartbeats_keep_a_transaction_alive_for_as_long_as_it_is_held(short_lived: Installation) -> None:
    manager = short_lived.manager(settings=dataclasses.replace(SETTINGS, heartbeat_interval_ms=20))
    transaction = silent(manager, lambda: open_with(manager, b"r", b"1"))
    transaction.commit()
    assert get(manager, b"r") == b"1"


def test_one_that_learns_of_its_end_by_a_heartbeat_says_so_at_its_next_use(short_lived: Installation) -> None:
    manager = short_lived.manager()
    transaction = silent(manager, lambda: open_with(manager, b"r", b"1"))
    manager.heartbeats.beat()
    manager.heartbeats.beat()
    with pytest.raises(TransactionExpired):
        transaction.get("t", b"r")


def test_somebody_who_worked_for_a_transaction_and_left_does_not_silence_it(installation: Installation) -> None:
    manager = installation.manager()
    asked: list[dict[int, int]] = []
    manager.heartbeats._oracle.heartbeat = lambda snapshots: asked.append(dict(snapshots)) or {}  # type: ignore[method-assign, func-returns-value]
    transaction = manager.transaction()
    manager.resume(transaction.handle()).get("t", b"r")
    gc.collect()
    manager.heartbeats.beat()
    manager.heartbeats.beat()
    assert asked == [{transaction.start_timestamp: transaction.snapshot_timestamp}]


def test_a_task_speaks_for_the_transaction_that_it_writes_into(installation: Installation) -> None:
    manager = installation.manager()
    handle = manager.transaction().handle()
    gc.collect()
    asked: list[dict[int, int]] = []
    manager.heartbeats._oracle.heartbeat = lambda snapshots: asked.append(dict(snapshots)) or {}  # type: ignore[method-assign, func-returns-value]
    writer = manager.attempt_writer(handle, "t", manager.open_job(handle), partition=0, attempt=0)
    manager.heartbeats.beat()
    manager.heartbeats.beat()
    assert asked == [{writer.start_timestamp: writer.snapshot_timestamp}]


def test_nobody_speaks_for_what_is_no_longer_held_or_has_ended(installation: Installation) -> None:
    manager = installation.manager()
    asked: list[dict[int, int]] = []
    manager.heartbeats._oracle.heartbeat = lambda snapshots: asked.append(dict(snapshots)) or {}  # type: ignore[method-assign, func-returns-value]
    held, ended, snapshot = manager.transaction(), manager.transaction(), manager.snapshot()
    manager.transaction()
    ended.rollback()
    gc.collect()
    manager.heartbeats.beat()
    manager.heartbeats.beat()
    assert len(asked) == 1
    assert sorted(asked[0].values()) == sorted([held.snapshot_timestamp, snapshot.timestamp])


def test_a_past_moment_is_read_by_timestamp_and_by_time(installation: Installation) -> None:
    manager = installation.manager()
    first = put(manager, b"r", b"1").commit_timestamp
    second = put(manager, b"r", b"2").commit_timestamp
    assert manager.snapshot(at=first).get("t", b"r") == {A: b"1"}
    assert manager.snapshot(at=second).get("t", b"r") == {A: b"2"}
    assert manager.snapshot(at=first - 1).get("t", b"r") == {}
    moment = datetime.fromtimestamp(milliseconds_of(second) / 1000, UTC)
    assert manager.snapshot(at=moment).get("t", b"r") == {A: b"2"}
    assert manager.snapshot(at=moment - timedelta(days=1)).get("t", b"r") == {}


def test_a_past_moment_is_read_with_every_oracle_down(installation: Installation) -> None:
    manager = installation.manager()
    commit = put(manager, b"r", b"1").commit_timestamp
    begun = manager.snapshot()
    fail_over(installation)  # the new epoch's record says that everything before it is settled
    unsettled = put(manager, b"r", b"2").commit_timestamp
    installation._oracles.pop(0).stop()
    installation.find_primary = lambda: None
    assert begun.get("t", b"r") == {A: b"1"}
    stranger = installation.manager(settings=dataclasses.replace(SETTINGS, deadline_ms=100))
    assert stranger.snapshot(at=commit).get("t", b"r") == {A: b"1"}
    with pytest.raises(NoPrimary) as caught:
        stranger.snapshot(at=unsettled)
    assert caught.value.waited_ms >= 100


def test_a_moment_of_an_older_epoch_stays_as_it_was_when_read(installation: Installation) -> None:
    manager = installation.manager()
    undecided = open_with(manager, b"r", b"late")
    manager.store.put("t", [RowPut(b"r", {A: encode_value(b"late")})], undecided.start_timestamp)
    decided = manager.oracle.begin().first_start_timestamp
    moment = put(manager, b"s", b"1").commit_timestamp
    fail_over(installation)
    assert installation.manager().snapshot(at=moment).get("t", b"r") == {}
    zombie = CommitTable(installation.store, table_name(SETTINGS.root))
    zombie.record([undecided.start_timestamp], [decided], undecided.epoch)
    assert installation.manager().snapshot(at=moment).get("t", b"r") == {}
    undecided.commit()
    assert installation.manager().snapshot(at=moment).get("t", b"r") == {}
    assert get(manager, b"r") == b"late"


@pytest.mark.parametrize("at", [0, -1, 2**63, True, "yesterday", datetime(2026, 11, 21)])
def test_what_is_no_moment_is_refused(manager: TransactionManager, at: object) -> None:
    with pytest.raises(InvalidRequest):
        manager.snapshot(at=at)  # type: ignore[arg-type]


def test_the_future_cannot_be_read(manager: TransactionManager) -> None:
    with pytest.raises(InvalidRequest, match="future"):
        manager.snapshot(at=datetime.now(UTC) + timedelta(hours=1))
    with pytest.raises(InvalidRequest, match="future"):
        manager.snapshot(at=compose(milliseconds_of(manager.snapshot().timestamp) + 3_600_000))
