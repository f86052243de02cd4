"""Writing into one transaction from many processes: the record of it, retries, failed jobs, and who ends it."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from typing import Any

import pytest

from client import (
    Aborted,
    CommitStep,
    Committed,
    Conflict,
    InvalidRequest,
    OutcomeUnknown,
    TransactionAborted,
    TransactionHandle,
    TransactionHooks,
    TransactionManager,
    TransactionStatus,
)
from client.bulk_writes import writing
from client.bulk_writes.manifest import ENTRY_BYTES_MAX, Manifest, joined
from client.bulk_writes.writing import LOOK_MS_MAX
from client.cells import ABORTED_SHADOW, cell_id, decode_shadow, row_marker_column
from commit_table import Outcome
from lease.clocks import monotonic_ms
from store import MemoryCellStore, RowPut, StoreUnavailable
from store.columns import CellColumns
from store.faults import Fault
from tests.unit.client.bulk_writing import puts, rows_seen, shadow, write
from tests.unit.client.conftest import SETTINGS, A, Installation, written_in_bulk


def test_several_jobs_and_plain_writes_land_together(installation: Installation, manager: TransactionManager) -> None:
    elsewhere = installation.manager()
    with manager.transaction() as transaction:
        handle = TransactionHandle.from_json(transaction.handle().to_json())
        write(elsewhere, handle, "first", b"a", b"b")
        elsewhere.manifest.seal(handle.start_timestamp, "first", [(0, 0)])
        write(elsewhere, handle, "second", b"c")
        elsewhere.manifest.seal(handle.start_timestamp, "second", [(0, 0)])
        transaction.put("t", b"d", {A: b"1"})
        assert rows_seen(elsewhere) == []
        assert [row for row, _ in transaction.scan("t")] == [b"a", b"b", b"c", b"d"]
        assert [row for row, _ in elsewhere.resume(handle).scan("t")] == [b"a", b"b", b"c"]
    assert rows_seen(elsewhere) == [b"a", b"b", b"c", b"d"]
    assert all(shadow(manager, row) for row in (b"a", b"b", b"c", b"d"))
    assert manager.manifest.jobs(handle.start_timestamp) == {}


def test_bulk_writes_conflict_like_any_other(installation: Installation, manager: TransactionManager) -> None:
    transaction = manager.transaction()
    write(manager, transaction.handle(), "job", b"a")
    manager.manifest.seal(transaction.start_timestamp, "job", [(0, 0)])
    with installation.manager().transaction() as rival:
        rival.put("t", b"a", {A: b"rival"})
    with pytest.raises(Conflict):
        transaction.commit()
    assert manager.snapshot().get("t", b"a") == {A: b"rival"}
    marks = manager.store.versions("t", b"a", b"f:\x00", before=transaction.start_timestamp + 1, limit=1)
    assert [decode_shadow(mark.value) for mark in marks] == [ABORTED_SHADOW]


def test_a_job_that_did_not_end_keeps_its_transaction_from_committing(manager: TransactionManager) -> None:
    transaction = manager.transaction()
    write(manager, transaction.handle(), "broken", b"a")
    transaction.put("t", b"b", {A: b"1"})
    with pytest.raises(TransactionAborted, match="bulk write broken failed"):
        transaction.commit()
    assert rows_seen(manager) == []
    assert shadow(manager, b"a") == ABORTED_SHADOW


def test_a_repeated_task_changes_nothing(manager: TransactionManager) -> None:
    transaction = manager.transaction()
    handle = transaction.handle()
    write(manager, handle, "job", b"a", attempt=0)
    write(manager, handle, "job", b"a", b"b", attempt=1)
    manager.manifest.seal(transaction.start_timestamp, "job", [(0, 1)])
    transaction.commit()
    with pytest.raises(InvalidRequest, match="has committed"):
        write(manager, handle, "job", b"a", attempt=0)  # a straggler, after all is over
    assert rows_seen(manager) == [b"a", b"b"]


def test_a_task_repeated_with_other_rows_is_found_out(manager: TransactionManager) -> None:
    transaction = manager.transaction()
    write(manager, transaction.handle(), "job", b"a", b"stray", attempt=0)
    write(manager, transaction.handle(), "job", b"a", attempt=1)
    manager.manifest.seal(transaction.start_timestamp, "job", [(0, 1)])
    with pytest.raises(TransactionAborted, match=r"not deterministic.*persist") as caught:
        transaction.commit()
    assert "stray" in str(caught.value)
    assert rows_seen(manager) == []


def test_of_many_rows_that_were_not_repeated_some_are_sought_and_few_named(
    manager: TransactionManager, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("client.transactions.commit.UNREPEATED_SOUGHT_MAX", 2)
    transaction = manager.transaction()
    write(manager, transaction.handle(), "job", *(b"stray-%d" % number for number in range(9)), attempt=0)
    write(manager, transaction.handle(), "job", b"a", attempt=1)
    manager.manifest.seal(transaction.start_timestamp, "job", [(0, 1)])
    with pytest.raises(TransactionAborted, match=r"\(9 rows or cells, such as ") as caught:
        transaction.commit()
    assert str(caught.value).count("stray-") == 2


def test_rows_whose_column_names_fill_more_than_a_cell_are_refused_and_nothing_is_written(
    manager: TransactionManager, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("client.bulk_writes.manifest.COLUMNS_BYTES_MAX", 1_000)
    transaction = manager.transaction()
    writer = manager.attempt_writer(transaction.handle(), "t", "job", partition=0, attempt=0)
    row = {b"f:%040d" % number: b"1" for number in range(20)}
    with pytest.raises(InvalidRequest, match=r"the names of the 20 columns .* or such rows through transaction.put"):
        writer.write(CellColumns.of_puts([RowPut(b"a", row)]))
    assert manager.manifest.jobs(transaction.start_timestamp) == {}
    assert manager.store.get("t", b"a", [b"f"]) == {}
    for column, value in row.items():
        writer.write(CellColumns.of_puts([RowPut(b"a", {column: value})]))
    manager.manifest.seal(transaction.start_timestamp, "job", [(0, 0)])
    transaction.commit()
    assert manager.snapshot().get("t", b"a") == row


def test_rows_are_on_record_before_any_of_them_is_written(
    installation: Installation, manager: TransactionManager
) -> None:
    transaction = manager.transaction()
    handle = transaction.handle()
    writer = manager.attempt_writer(handle, "t", "job", partition=0, attempt=0)
    installation.store.plan("put", Fault.DONE)
    with pytest.raises(StoreUnavailable):
        writer.write(CellColumns.of_puts(puts(b"a")))
    assert manager.store.versions("t", b"a", A, limit=1) == []
    assert manager.manifest.jobs(handle.start_timestamp)["job"].keys[0, 0]["t"] == [[cell_id("t", b"a", A)]]


class _WhileItCommits(TransactionHooks):
    """Calls something once a commit has read what it judges, and before that is decided."""

    def __init__(self, call: Callable[[], None]) -> None:
        self._call = call

    def commit_step(self, step: CommitStep, start_timestamp: int) -> None:
        if step is CommitStep.WRITTEN:
            self._call()


def test_what_is_written_while_the_commit_runs_is_refused_and_hides_nobody(installation: Installation) -> None:
    """A repetition of a task that is still at work: what it writes has been judged by nobody."""
    straggling = installation.manager()
    refused: list[pytest.ExceptionInfo[InvalidRequest]] = []

    def straggle() -> None:
        with pytest.raises(InvalidRequest, match=r"is being ended .* this was not") as told:
            write(straggling, handle, job, b"a", b"theirs", b"nobody's", attempt=1)
        refused.append(told)

    manager = installation.manager(hooks=_WhileItCommits(straggle))
    transaction = manager.transaction()
    handle = transaction.handle()
    job = manager.open_job(handle)
    write(manager, handle, job, b"a")
    with straggling.transaction() as other:
        other.put("t", b"theirs", {A: b"acknowledged"})
    manager.seal_job(handle, job, [(0, 0)])
    transaction.commit()
    assert len(refused) == 1
    assert dict(straggling.snapshot().scan("t")) == {b"a": {A: b"1"}, b"theirs": {A: b"acknowledged"}}


def test_what_was_recorded_before_the_commit_began_is_judged_by_it(
    installation: Installation, manager: TransactionManager, monkeypatch: pytest.MonkeyPatch
) -> None:
    transaction = manager.transaction()
    handle = transaction.handle()
    job = manager.open_job(handle)
    write(manager, handle, job, b"a")
    put_columns = installation.store.put_columns
    ended: list[pytest.ExceptionInfo[TransactionAborted]] = []

    def commit_first(*arguments: Any, **named: Any) -> None:
        monkeypatch.undo()
        manager.seal_job(handle, job, [(0, 0)])
        with pytest.raises(TransactionAborted, match="repeated with other rows") as told:
            transaction.commit()
        ended.append(told)
        put_columns(*arguments)

    monkeypatch.setattr(installation.store, "put_columns", commit_first)
    write(installation.manager(), handle, job, b"more", attempt=1)
    assert len(ended) == 1
    assert rows_seen(manager) == []


def test_a_task_that_is_held_up_as_it_writes_writes_nothing_into_a_transaction_that_has_ended(
    installation: Installation, manager: TransactionManager, monkeypatch: pytest.MonkeyPatch
) -> None:
    """By then a vacuum may have deleted what its repetition wrote: HBase forgets that, and it would be back."""
    transaction = manager.transaction()

    def end() -> None:
        transaction.commit()
        now_ms = monotonic_ms() + LOOK_MS_MAX
        monkeypatch.setattr(writing, "monotonic_ms", lambda: now_ms)

    with pytest.raises(InvalidRequest, match="has committed"):
        write_held_up(installation, manager, monkeypatch, transaction.handle(), end)


def write_held_up(
    installation: Installation,
    manager: TransactionManager,
    monkeypatch: pytest.MonkeyPatch,
    handle: TransactionHandle,
    then: Callable[[], object],
) -> None:
    """Write a row by an attempt whose first request finds no gateway. Before it goes on its repetition writes the row,
    the job is sealed without it, and what ``then`` does is done.
    """
    job = manager.open_job(handle)
    put_columns = installation.store.put_columns

    def hold_up(*arguments: Any, before_each: Callable[[], None]) -> None:
        monkeypatch.undo()
        before_each()
        write(manager, handle, job, b"a", attempt=1)
        manager.seal_job(handle, job, [(0, 1)])
        then()
        put_columns(*arguments, before_each=before_each)

    monkeypatch.setattr(installation.store, "put_columns", hold_up)
    write(installation.manager(), handle, job, b"a")


def test_a_task_looks_for_the_end_of_its_transaction_once_for_what_follows_soon(
    installation: Installation, manager: TransactionManager, monkeypatch: pytest.MonkeyPatch
) -> None:
    """But anew for what it has recorded since: the commit may have read the record without that."""
    handle = manager.transaction().handle()
    attempt_writer = manager.attempt_writer(handle, "t", manager.open_job(handle), partition=0, attempt=0)
    looks: list[int] = []
    look, put_columns = manager.manifest.is_end_claimed, installation.store.put_columns

    def count(start_timestamp: int) -> bool:
        looks.append(start_timestamp)
        return look(start_timestamp)

    def put_in_three(*arguments: Any, before_each: Callable[[], None]) -> None:
        for _ in range(3):
            before_each()
        put_columns(*arguments)

    monkeypatch.setattr(manager.manifest, "is_end_claimed", count)
    monkeypatch.setattr(installation.store, "put_columns", put_in_three)
    monkeypatch.setattr(writing, "monotonic_ms", lambda: 0.0)
    for written in range(1, 3):
        attempt_writer.write(CellColumns.of_puts([RowPut(b"r", {A: b"1"})]))
        assert len(looks) == written


def test_a_task_that_does_not_count_writes_nothing_any_more_once_its_bulk_write_is_sealed(
    installation: Installation, manager: TransactionManager, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What it saw of its transaction just before does not count: the next job may write the same rows."""
    transaction = manager.transaction()
    with pytest.raises(InvalidRequest, match="has ended without this attempt"):
        write_held_up(installation, manager, monkeypatch, transaction.handle(), lambda: None)


def test_to_seal_a_bulk_write_takes_longer_only_where_an_attempt_does_not_count(
    manager: TransactionManager, monkeypatch: pytest.MonkeyPatch
) -> None:
    waits: list[None] = []
    monkeypatch.setattr("client.manager.await_last_looks", lambda: waits.append(None))
    handle = manager.transaction().handle()
    other = manager.open_job(handle)
    write(manager, handle, other, b"a", attempt=9)
    for winners, expected in (([(0, 0), (1, 2)], 0), ([(0, 0), (1, 1)], 1), ([], 2)):
        job = manager.open_job(handle)
        write(manager, handle, job, b"a")
        write(manager, handle, job, b"b", partition=1, attempt=2)
        manager.seal_job(handle, job, winners)
        assert len(waits) == expected
    manager.seal_job(handle, manager.open_job(handle), [(0, 0)])
    assert len(waits) == 2


def test_a_task_that_recorded_its_rows_too_late_writes_none(
    installation: Installation, manager: TransactionManager, monkeypatch: pytest.MonkeyPatch
) -> None:
    straggling = installation.manager()
    transaction = written_in_bulk(manager)
    handle = transaction.handle()
    record = straggling.manifest.record

    def commit_first(*arguments: Any) -> int:
        transaction.commit()
        return record(*arguments)

    monkeypatch.setattr(straggling.manifest, "record", commit_first)
    with pytest.raises(InvalidRequest, match="has committed"):
        write(straggling, handle, "job", b"late")
    assert rows_seen(manager) == [b"r"]


def test_a_task_that_looks_for_a_claim_as_its_commit_ends_writes_nothing(
    installation: Installation, manager: TransactionManager, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The claim goes with the record; what tells of the commit then is the commit table."""
    straggling = installation.manager()
    transaction = manager.transaction()
    handle = transaction.handle()
    job = manager.open_job(handle)
    write(manager, handle, job, b"r")
    manager.seal_job(handle, job, [(0, 0)])
    look = straggling.manifest.is_end_claimed

    def commit_first(start_timestamp: int) -> bool:
        transaction.commit()
        return look(start_timestamp)

    monkeypatch.setattr(straggling.manifest, "is_end_claimed", commit_first)
    late = straggling.attempt_writer(handle, "t", job, partition=0, attempt=1)
    with pytest.raises(InvalidRequest, match="has committed"):
        late.write(CellColumns.of_puts([RowPut(b"r", {A: b"late"})]))
    assert manager.snapshot().get("t", b"r") == {A: b"1"}


def test_no_job_is_begun_while_the_transaction_commits(installation: Installation) -> None:
    other = installation.manager()

    def begin_a_job() -> None:
        with pytest.raises(InvalidRequest, match="is being ended"):
            other.open_job(handle)

    manager = installation.manager(hooks=_WhileItCommits(begin_a_job))
    transaction = manager.transaction()
    handle = transaction.handle()
    transaction.put("t", b"a", {A: b"1"})
    transaction.commit()
    assert rows_seen(other) == [b"a"]


def test_a_job_that_is_announced_as_somebody_claims_the_end_is_refused(
    manager: TransactionManager, monkeypatch: pytest.MonkeyPatch
) -> None:
    handle, announce = manager.transaction().handle(), manager.manifest.open

    def claimed_before(start_timestamp: int, job: str) -> None:
        assert manager.manifest.claim_end(start_timestamp, "another process")
        announce(start_timestamp, job)

    monkeypatch.setattr(manager.manifest, "open", claimed_before)
    with pytest.raises(InvalidRequest, match="is being ended"):
        manager.open_job(handle)


def test_a_job_that_is_refused_since_somebody_claimed_the_end_leaves_the_commit_alone(
    installation: Installation, manager: TransactionManager, monkeypatch: pytest.MonkeyPatch
) -> None:
    transaction, other, claim = manager.transaction(), installation.manager(), manager.manifest.claim_end
    write(manager, transaction.handle(), "job", b"a")
    manager.manifest.seal(transaction.start_timestamp, "job", [(0, 0)])

    def then_refuse_another_job(start_timestamp: int, claimant: str) -> bool:
        is_mine = claim(start_timestamp, claimant)
        with pytest.raises(InvalidRequest, match="is being ended"):
            other.open_job(transaction.handle())
        return is_mine

    monkeypatch.setattr(manager.manifest, "claim_end", then_refuse_another_job)
    transaction.commit()
    assert rows_seen(other) == [b"a"]


def test_a_task_that_comes_after_its_bulk_write_has_ended_writes_nothing_over_a_later_one(
    manager: TransactionManager,
) -> None:
    transaction = manager.transaction()
    handle = transaction.handle()
    late = manager.attempt_writer(handle, "t", "first", partition=0, attempt=1)
    late.write(CellColumns.of_puts(puts(b"a")))
    write(manager, handle, "first", b"a", b"b", attempt=2)
    manager.manifest.seal(transaction.start_timestamp, "first", [(0, 2)])
    second = manager.attempt_writer(handle, "t", "second", partition=0, attempt=0)
    second.write(CellColumns.of_puts(puts(b"b", value=b"2")))
    manager.manifest.seal(transaction.start_timestamp, "second", [(0, 0)])
    with pytest.raises(InvalidRequest, match="has ended without this attempt of partition 0"):
        late.write(CellColumns.of_puts(puts(b"b")))
    transaction.commit()
    assert manager.snapshot().get("t", b"b") == {A: b"2"}


@pytest.mark.parametrize(("table", "question"), [("commit_table", "outcome"), ("manifest", "jobs")])
def test_a_commit_that_could_not_begin_may_be_tried_again(
    manager: TransactionManager, monkeypatch: pytest.MonkeyPatch, table: str, question: str
) -> None:
    transaction = written_in_bulk(manager)
    monkeypatch.setattr(getattr(manager, table), question, _unavailable)
    with pytest.raises(StoreUnavailable):
        transaction.commit()
    assert transaction.status is TransactionStatus.ACTIVE
    monkeypatch.undo()
    transaction.commit()
    assert rows_seen(manager) == [b"r"]


def test_a_block_whose_commit_could_not_begin_is_rolled_back(
    manager: TransactionManager, monkeypatch: pytest.MonkeyPatch
) -> None:
    with pytest.raises(StoreUnavailable), written_in_bulk(manager) as transaction:
        monkeypatch.setattr(manager.commit_table, "outcome", _unavailable)
    monkeypatch.undo()
    assert transaction.status is TransactionStatus.ABORTED
    assert manager.outcome(transaction.start_timestamp) == Aborted()


def _unavailable(start_timestamp: int) -> Outcome:
    raise StoreUnavailable("for a moment")


def test_another_process_may_end_the_transaction(installation: Installation, manager: TransactionManager) -> None:
    transaction = manager.transaction()
    handle = transaction.handle()
    write(manager, handle, "job", b"a")
    elsewhere = installation.manager()
    elsewhere.manifest.seal(handle.start_timestamp, "job", [(0, 0)])
    committed = elsewhere.resume(handle).commit()
    assert rows_seen(manager) == [b"a"]
    assert transaction.rollback() == committed
    assert rows_seen(manager) == [b"a"]


def test_a_process_that_starts_over_learns_that_its_transaction_had_committed(
    installation: Installation, manager: TransactionManager
) -> None:
    transaction = manager.transaction()
    handle = transaction.handle()
    write(manager, handle, "job", b"a")
    manager.manifest.seal(handle.start_timestamp, "job", [(0, 0)])
    committed = transaction.commit()
    assert installation.manager().resume(handle).commit() == committed
    late = installation.manager().resume(handle)
    late.put("t", b"late", {A: b"1"})
    with pytest.raises(InvalidRequest, match="committed by another process"):
        late.commit()
    assert rows_seen(installation.manager()) == [b"a"]


def test_a_conflict_is_for_good_for_every_process_that_shares_the_transaction(
    installation: Installation, manager: TransactionManager
) -> None:
    transaction = manager.transaction()
    handle = transaction.handle()
    write(manager, handle, "job", b"a")
    manager.manifest.seal(handle.start_timestamp, "job", [(0, 0)])
    with installation.manager().transaction() as rival:
        rival.put("t", b"a", {A: b"rival"})
    with pytest.raises(Conflict):
        transaction.commit()
    with pytest.raises(TransactionAborted, match="rolled it back"):
        installation.manager().resume(handle).commit()


def test_a_job_that_is_announced_keeps_its_transaction_from_committing(manager: TransactionManager) -> None:
    transaction = manager.transaction()
    handle = transaction.handle()
    manager.open_job(handle)
    with pytest.raises(TransactionAborted, match="failed or has not ended"):
        transaction.commit()
    with pytest.raises(TransactionAborted, match="rolled back"):
        manager.open_job(handle)
    with pytest.raises(TransactionAborted, match="rolled back"):
        manager.seal_job(handle, "job", [])


def test_a_shared_transaction_in_which_nothing_was_written_ends_for_all(
    installation: Installation, manager: TransactionManager
) -> None:
    transaction = manager.transaction()
    handle = transaction.handle()
    committed = transaction.commit()
    assert manager.outcome(handle.start_timestamp) == committed
    with pytest.raises(InvalidRequest, match="has committed"):
        write(installation.manager(), handle, "late", b"a")


def test_a_handle_of_another_installation_is_refused(manager: TransactionManager) -> None:
    foreign = TransactionHandle(30, 20, 10, dataclasses.replace(SETTINGS, root="/other"))
    with pytest.raises(InvalidRequest, match="belongs to /other"):
        manager.resume(foreign)


def test_a_shared_transaction_that_cannot_be_settled_stays_unmarked(
    installation: Installation, manager: TransactionManager
) -> None:
    transaction = manager.transaction()
    handle = transaction.handle()
    write(manager, handle, "job", b"a")
    manager.manifest.seal(handle.start_timestamp, "job", [(0, 0)])
    find_primary, installation.find_primary = installation.find_primary, lambda: None
    late = installation.manager(settings=dataclasses.replace(SETTINGS, deadline_ms=100)).resume(handle)
    with pytest.raises(OutcomeUnknown):
        late.commit()
    assert shadow(manager, b"a") is None
    installation.find_primary = find_primary
    with pytest.raises(InvalidRequest, match="being ended by another process"):
        transaction.commit()
    assert late.rollback() == Aborted()
    assert rows_seen(manager) == []


def test_of_two_that_end_a_shared_transaction_at_once_only_one_may_write_into_it(
    installation: Installation, manager: TransactionManager
) -> None:
    transaction = manager.transaction()
    handle = transaction.handle()
    other = installation.manager().resume(handle)
    other.put("t", b"a", {A: b"other"})
    transaction.put("t", b"b", {A: b"1"})
    steps: list[CommitStep] = []

    class EndToo(TransactionHooks):
        def commit_step(self, step: CommitStep, start_timestamp: int) -> None:
            if step is CommitStep.WRITTEN:
                with pytest.raises(InvalidRequest, match="being ended by another process"):
                    other.commit()
            steps.append(step)

    observed = installation.manager(hooks=EndToo()).resume(handle)
    observed.put("t", b"c", {A: b"1"})
    observed.commit()
    assert CommitStep.WRITTEN in steps
    with pytest.raises(InvalidRequest, match="not part of it"):
        transaction.commit()
    assert rows_seen(manager) == [b"c"]


def test_a_shared_transaction_that_is_rolled_back_can_be_committed_by_nobody(
    installation: Installation, manager: TransactionManager
) -> None:
    transaction = manager.transaction()
    handle = transaction.handle()
    write(manager, handle, "job", b"a")
    manager.manifest.seal(handle.start_timestamp, "job", [(0, 0)])
    late = installation.manager().resume(handle)
    late.put("t", b"b", {A: b"1"})
    assert transaction.rollback() == Aborted()
    with pytest.raises(TransactionAborted):
        late.commit()
    with pytest.raises(TransactionAborted, match="rolled it back"):
        installation.manager().resume(handle).commit()
    assert rows_seen(manager) == []


def test_rows_of_an_older_transaction_stay_visible_under_an_aborted_one(manager: TransactionManager) -> None:
    with manager.transaction() as first:
        first.put("t", b"a", {A: b"old"})
    second = manager.transaction()
    write(manager, second.handle(), "job", b"a")
    second.rollback()
    assert manager.snapshot().get("t", b"a") == {A: b"old"}


def test_a_marked_row_without_values_exists(manager: TransactionManager) -> None:
    transaction = manager.transaction()
    writer = manager.attempt_writer(transaction.handle(), "t", "job", partition=0, attempt=0)
    writer.write(CellColumns.of_puts([RowPut(b"a", {row_marker_column(b"f"): b"\x01"})]))
    manager.manifest.seal(transaction.start_timestamp, "job", [(0, 0)])
    transaction.commit()
    assert list(manager.snapshot().scan("t", columns=[A])) == [(b"a", {})]
    with manager.transaction() as delete:
        delete.delete("t", b"a")
    assert rows_seen(manager) == []


@pytest.mark.parametrize(
    "wrong",
    [RowPut(b"", {A: b"1"}), RowPut(bytes(40_000), {A: b"1"}), RowPut(b"a", {}), RowPut(b"a", {b"f:\x00": b"1"})],
)
def test_rows_that_cannot_be_written_are_refused_before_anything_is(manager: TransactionManager, wrong: RowPut) -> None:
    transaction = manager.transaction()
    writer = manager.attempt_writer(transaction.handle(), "t", "job", partition=0, attempt=0)
    with pytest.raises(InvalidRequest):
        writer.write(CellColumns.of_puts([*puts(b"good"), wrong]))
    assert manager.manifest.jobs(transaction.start_timestamp) == {}
    with pytest.raises(InvalidRequest, match="no table"):
        manager.attempt_writer(transaction.handle(), "nowhere", "job", partition=0, attempt=0)


def test_the_record_holds_many_long_row_keys_and_tells_transactions_apart() -> None:
    manifest = Manifest(MemoryCellStore(), "/pythia")
    rows = [b"%06d" % number + bytes(10_000) for number in range(300)]
    assert sum(map(len, rows)) > 2 * ENTRY_BYTES_MAX
    cells = CellColumns.of_puts(puts(*rows))
    sequence = manifest.record(100, "job", (3, 2**40), 0, "t", "cell", cells)
    assert sequence > 2
    also = CellColumns.of_puts([RowPut(rows[0], {b"g:b": b"1"})])
    manifest.record(100, "job", (3, 2**40), sequence, "t", "cell", also)
    manifest.record(101, "job", (0, 0), 0, "t", "cell", CellColumns.of_puts(puts(b"other")))
    job = manifest.jobs(100)["job"]
    assert job.winners is None
    expected = {cell_id("t", rows[0], b"g:b"), *(cell_id("t", row, A) for row in rows)}
    assert set(joined(job.keys[3, 2**40]["t"]).tolist()) == expected
    pieces = list(manifest.pieces(100))
    assert [row for piece in pieces for row in piece.rows()] == [*rows, rows[0]]
    assert {piece.columns for piece in pieces} == {frozenset({A}), frozenset({b"g:b"})}
    assert {(piece.job, piece.attempt, piece.table) for piece in pieces} == {("job", (3, 2**40), "t")}
    assert list(manifest.transactions()) == [100, 101]
    manifest.forget(100)
    assert manifest.jobs(100) == {}
    assert list(manifest.jobs(101)) == ["job"]


@pytest.mark.parametrize("name", ["", "a\0b"])
def test_a_job_has_a_name_without_zero_bytes(name: str) -> None:
    with pytest.raises(InvalidRequest, match="job's name"):
        Manifest(MemoryCellStore(), "/pythia").seal(1, name, [])


def test_a_commit_reports_when_it_took_place(manager: TransactionManager) -> None:
    transaction = manager.transaction()
    transaction.put("t", b"a", {A: b"1"})
    committed = transaction.commit()
    assert isinstance(committed, Committed)
    assert committed.commit_timestamp > transaction.start_timestamp > transaction.snapshot_timestamp


def test_one_attempt_may_write_into_two_tables(manager: TransactionManager) -> None:
    manager.create_table("u", ["f"])
    transaction = manager.transaction()
    handle = transaction.handle()
    job = manager.open_job(handle)
    for table in ("t", "u"):
        writer = manager.attempt_writer(handle, table, job, partition=0, attempt=0)
        writer.write(CellColumns.of_puts([RowPut(b"a", {A: b"1"})]))
    manager.seal_job(handle, job, [(0, 0)])
    recorded = manager.manifest.pieces(handle.start_timestamp)
    assert {(piece.table, *piece.rows()) for piece in recorded} == {("t", b"a"), ("u", b"a")}
    transaction.commit()


def test_a_table_that_was_made_anew_with_another_conflict_level_takes_no_commit(
    installation: Installation, manager: TransactionManager
) -> None:
    transaction = manager.transaction()
    handle = transaction.handle()
    write(manager, handle, "job", b"a")
    manager.manifest.record(handle.start_timestamp, "job", (1, 0), 0, "t", "row", CellColumns.of_puts(puts(b"b")))
    manager.manifest.seal(handle.start_timestamp, "job", [(0, 0), (1, 0)])
    with pytest.raises(TransactionAborted, match="made anew"):
        transaction.commit()
