"""What a client's transactions and snapshots meet when the oracle changes under them, or forgets."""

from __future__ import annotations

import dataclasses
import threading
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from typing import Any, NoReturn

import numpy as np
import pytest

from client import (
    Aborted,
    Committed,
    Conflict,
    InvalidRequest,
    NoPrimary,
    OutcomeUnknown,
    TableFenced,
    Transaction,
    TransactionAborted,
    TransactionHandle,
    TransactionManager,
)
from client.cells import cell_id, encode_value
from client.connection.deadline import Deadline
from client.connection.tickets import Decision
from client.transactions.revalidation import Revalidator
from client.vacuum.run import _mark
from commit_table import CommitTable, layout
from commit_table.timestamps import compose, milliseconds_of
from store import RowPut
from store.faults import Fault
from testkit import small_limits
from tests.recording import record
from tests.unit.client.conftest import COMMITS, SETTINGS, Installation, in_bulk
from tests.unit.client.transacting import fail_over, get, open_with, put
from wire import Reason

A, B = b"f:a", b"f:b"
HANGS_SECONDS = 20.0


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
    record(installation.store, COMMITS, {start: start + 1}, old_epoch)
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
    record(installation.store, COMMITS, {start: decided}, old_epoch)
    assert not isinstance(manager.outcome(start), Committed)
    assert get(installation.manager(), b"r") == b"rival"


def test_a_late_write_of_the_old_primary_cannot_commit_a_rival_that_was_passed_by(installation: Installation) -> None:
    manager = installation.manager()
    rival, transaction = open_with(manager, b"r", b"rival"), open_with(manager, b"r", b"1")
    manager.store.put("t", [RowPut(b"r", {A: encode_value(b"rival")})], rival.start_timestamp)
    fail_over(installation)
    transaction.commit()
    record(installation.store, COMMITS, {rival.start_timestamp: transaction.start_timestamp + 1}, rival.epoch)
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
    record(installation.store, COMMITS, {start: recorded}, transaction.epoch)
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
    put_cells = installation.store.put

    def late_abort_before_the_commit(name: str, puts: Sequence[RowPut], timestamp: int) -> None:
        if name == COMMITS:
            CommitTable(installation.store, COMMITS).abort(start)  # a fence at infinity, asked for long ago
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
    small = small_limits(conflict_map_entries_max=8, commit_share_max=0.5)
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
    empty_installation.serve(limits=small_limits(conflict_map_entries_max=8, commit_share_max=0.5))
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
        return in_bulk(manager, [RowPut(row, {A: encode_value(b"bulk")}) for row in rows])

    survivor, loser = job([b"a%04d" % n for n in range(1200)]), job([b"b%04d" % n for n in range(1200)])
    put(manager, b"b1100", b"rival")
    fail_over(installation)
    survivor.commit()
    with pytest.raises(Conflict):
        loser.commit()
    snapshot = manager.snapshot()
    assert sum(1 for _ in snapshot.scan("t", prefix=b"a")) == 1200
    assert [row for row, _ in snapshot.scan("t", prefix=b"b")] == [b"b1100"]


@pytest.mark.parametrize("guarded", [[], [b"f:null"]])
def test_after_a_failover_a_bulk_write_conflicts_in_the_cells_that_it_wrote_and_in_no_others(
    installation: Installation, guarded: list[bytes]
) -> None:
    """Its record names the columns of all its rows together: one row's null is another one's value."""
    manager = installation.manager()
    rows = [RowPut(b"r1", {A: b"bulk", b"f:null": b"bulk"}), RowPut(b"r2", {A: b"bulk"})]
    transaction = in_bulk(manager, rows)
    if guarded:
        transaction.guard("t", [b"r2"], guarded)
    with manager.transaction() as other:
        other.put("t", b"r2", {b"f:null": b"rival"})
    fail_over(installation)
    if guarded:
        with pytest.raises(Conflict):
            transaction.commit()
        return
    transaction.commit()
    assert manager.snapshot().get("t", b"r2") == {A: b"bulk", b"f:null": b"rival"}


def test_a_store_that_fails_while_a_transaction_is_revalidated_aborts_it_whole(installation: Installation) -> None:
    manager = installation.manager()
    transaction = open_with(manager, b"r", b"1")
    fail_over(installation)
    installation.store.plan("get_many", Fault.LOST)
    with pytest.raises(TransactionAborted, match="never taken up"):
        transaction.commit()
    assert get(manager, b"r") is None


@pytest.mark.parametrize("shared", [False, True])
def test_a_commit_whose_answer_was_lost_is_not_told_as_aborted_before_that_is_known(
    installation: Installation, monkeypatch: pytest.MonkeyPatch, shared: bool
) -> None:
    manager = installation.manager()
    transaction = open_with(manager, b"r", b"1")
    if shared:
        transaction.handle()
    decide = manager.oracle.commit

    def refuse(*arguments: Any) -> NoReturn:
        raise InvalidRequest("100000 requests of this kind wait to be sent to the oracle")

    def lose(*arguments: Any, **options: Any) -> Decision:
        assert decide(*arguments, **options).commit_timestamp
        for call in ("begin", "abort"):
            monkeypatch.setattr(manager.oracle, call, refuse)
        return Decision(0, Reason.TOO_OLD, after_loss=True)  # as of an oracle that knows nothing of it

    monkeypatch.setattr(manager.oracle, "commit", lose)
    with pytest.raises(OutcomeUnknown):
        transaction.commit()
    monkeypatch.undo()
    assert get(installation.manager(), b"r") == b"1"
    assert isinstance(transaction.rollback(), Committed)


def test_a_vacuum_that_sets_its_mark_while_conflicts_are_looked_for_is_one(
    installation: Installation, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It may have deleted what was looked for."""
    manager = installation.manager()
    transaction = open_with(manager, b"r", b"1")
    fail_over(installation)
    look = Revalidator._check

    def vacuumed_meanwhile(self: Revalidator, *arguments: Any) -> None:
        look(self, *arguments)
        _mark(manager, "t", transaction.start_timestamp, manager.oracle.begin().first_start_timestamp)

    monkeypatch.setattr(Revalidator, "_check", vacuumed_meanwhile)
    with pytest.raises(TableFenced):
        transaction.commit()
    assert get(manager, b"r") is None


def test_a_vacuum_s_mark_stands_against_nobody_who_lived(installation: Installation) -> None:
    """However late it was set: it is a fence at the horizon, below all who read then."""
    manager = installation.manager()
    transaction = open_with(manager, b"r", b"1")
    _mark(manager, "t", transaction.snapshot_timestamp, manager.oracle.begin().first_start_timestamp)
    fail_over(installation)
    transaction.commit()
    assert get(manager, b"r") == b"1"


def test_who_commits_again_without_asking_is_sent_to_its_first_commit(installation: Installation) -> None:
    """Whoever uses the oracle without the library's transactions; its first commit lands after the failover."""
    manager = installation.manager()
    begun = manager.oracle.begin()
    start, keys = begun.first_start_timestamp, np.array([cell_id("t", b"r", A)], np.uint64)
    first = manager.oracle.begin().first_start_timestamp  # what the first oracle decided it to commit at
    installation.store.put("t", [RowPut(b"r", {A: encode_value(b"1")})], start)
    fail_over(installation)
    refused = manager.oracle.commit(start, begun.snapshot, keys, None, Deadline(5_000))
    assert refused.reason is Reason.TOO_OLD
    later = manager.oracle.begin()
    record_of_first = {layout.commit_column(start): layout.commit_value(first)}
    installation.store.put(COMMITS, [RowPut(layout.row_key(start), record_of_first)], begun.epoch)
    seen = manager.snapshot()
    assert seen.get("t", b"r") == {A: b"1"}
    for _ in range(2):
        again = manager.oracle.commit(start, begun.snapshot, keys, None, Deadline(5_000), validated=later.snapshot)
        assert again.reason is Reason.TOO_OLD
    assert manager.outcome(start) == manager.abort(start) == Committed(first)
    assert installation.manager().resume_snapshot(seen.handle()).get("t", b"r") == {A: b"1"}


def test_a_primary_whose_event_loop_hangs_is_followed_by_another(empty_installation: Installation) -> None:
    empty_installation.lease_ms = 500
    hanging = empty_installation.oracle("a")
    hanging.await_primary()
    following, goes_on = empty_installation.oracle("b"), threading.Event()
    hanging._loop.call_soon_threadsafe(goes_on.wait, HANGS_SECONDS)
    assert following._primary.wait(HANGS_SECONDS / 2)
    empty_installation.find_primary = lambda: following.address
    manager = empty_installation.manager()
    manager.create_table("t", ["f"])
    put(manager, b"r", b"1")
    goes_on.set()
    put(manager, b"r", b"2")
    assert get(manager, b"r") == b"2"


def test_without_any_primary_a_commit_says_so_after_the_deadline_and_leaves_nothing(installation: Installation) -> None:
    manager = installation.manager(settings=dataclasses.replace(SETTINGS, deadline_ms=100))
    transaction = open_with(manager, b"r", b"1")
    installation._oracles.pop(0).stop()
    installation.find_primary = lambda: None
    with pytest.raises((TransactionAborted, OutcomeUnknown), match=r"outcome|no primary oracle answered within 1"):
        transaction.commit()
    following = installation.oracle("b")
    following.await_primary()
    installation.find_primary = lambda: following.address
    assert get(installation.manager(), b"r") is None


def test_a_transaction_whose_manager_was_closed_is_aborted_at_once_and_says_why(installation: Installation) -> None:
    manager = installation.manager()
    transaction = open_with(manager, b"r", b"1")
    manager.oracle.close()
    with pytest.raises(TransactionAborted, match="never taken up: the client is closed") as caught:
        transaction.commit()
    assert not caught.value.retriable
    assert get(installation.manager(), b"r") is None


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


def test_a_time_is_told_once_to_name_too_little_where_timestamps_are_far_ahead_of_the_clock(
    installation: Installation, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    manager = installation.manager()
    commit = put(manager, b"r", b"1").commit_timestamp
    now = datetime.fromtimestamp(milliseconds_of(commit) / 1000, UTC)
    manager.snapshot(at=now)
    assert "ahead of this machine's clock" not in caplog.text
    monkeypatch.setattr("client.manager.wall_ms", lambda: milliseconds_of(commit) - 3_600_000)
    manager.snapshot(at=commit)
    assert "ahead of this machine's clock" not in caplog.text, "a timestamp names what it says"
    for _ in range(2):
        assert manager.snapshot(at=now - timedelta(hours=1)).get("t", b"r") == {}
    assert caplog.text.count("s ahead of this machine's clock") == 1


def test_a_past_moment_is_read_with_every_oracle_down(installation: Installation) -> None:
    manager = installation.manager()
    commit = put(manager, b"r", b"1").commit_timestamp
    begun = manager.snapshot()
    fail_over(installation)  # the new epoch's record says that everything before it is settled
    unsettled = put(manager, b"r", b"2").commit_timestamp
    installation._oracles.pop(0).stop()
    installation.find_primary = lambda: None
    assert begun.get("t", b"r") == {A: b"1"}
    stranger = installation.manager(settings=dataclasses.replace(SETTINGS, deadline_ms=300))
    assert stranger.snapshot(at=commit).get("t", b"r") == {A: b"1"}
    with pytest.raises(NoPrimary) as caught:
        stranger.snapshot(at=unsettled)
    assert caught.value.waited_ms >= 150  # the oracle was asked after other steps of the same call


def test_a_moment_of_an_older_epoch_stays_as_it_was_when_read(installation: Installation) -> None:
    manager = installation.manager()
    undecided = open_with(manager, b"r", b"late")
    manager.store.put("t", [RowPut(b"r", {A: encode_value(b"late")})], undecided.start_timestamp)
    decided = manager.oracle.begin().first_start_timestamp
    moment = put(manager, b"s", b"1").commit_timestamp
    fail_over(installation)
    assert installation.manager().snapshot(at=moment).get("t", b"r") == {}
    record(installation.store, COMMITS, {undecided.start_timestamp: decided}, undecided.epoch)
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
