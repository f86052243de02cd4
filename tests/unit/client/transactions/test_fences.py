"""Fences: who may still commit to a table once it was fenced, who may not, and what the snapshot of a fence shows."""

from __future__ import annotations

import dataclasses
import threading
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from types import SimpleNamespace

import pytest

from client import (
    Committed,
    Conflict,
    InvalidRequest,
    NoPrimary,
    Snapshot,
    TableFenced,
    Transaction,
    TransactionAborted,
    TransactionHooks,
    TransactionManager,
    TransactionStatus,
)
from client.catalog.age import ENTRY_AGE_SECONDS_MAX
from client.cells import cell_id, decode_shadow, guard_id, row_id, shadow_column, write_set
from client.transactions.fences import place_fence
from client.transactions.guards import FENCE_COLUMN
from commit_table import system_table, table_name
from commit_table.timestamps import TIMESTAMPS_PER_MILLISECOND
from store import Family
from store.faults import Fault
from tests.unit.client import bulk_writing
from tests.unit.client.conftest import SETTINGS, Installation, begun
from tests.unit.client.transacting import fail_over, get, open_with, put

A = b"f:a"
CATALOG = system_table(SETTINGS.root, "catalog")


def test_who_wrote_the_table_and_has_not_committed_never_does(
    installation: Installation, write: Callable[[TransactionManager], Transaction]
) -> None:
    manager = installation.manager()
    transaction = write(manager)
    fence = installation.manager().fence("t")
    with pytest.raises(
        TableFenced, match=f"table 't', which it wrote or guards, was fenced at {fence.timestamp}"
    ) as caught:
        transaction.commit()
    assert (caught.value.table, caught.value.fenced_at) == ("t", fence.timestamp)
    assert caught.value.retriable
    assert transaction.status is TransactionStatus.ABORTED
    assert get(installation.manager(), b"r") is None


def test_who_begins_after_the_fence_is_not_touched_by_it(
    installation: Installation, write: Callable[[TransactionManager], Transaction]
) -> None:
    manager = installation.manager()
    fence = manager.fence("t")
    transaction = write(manager)
    assert transaction.snapshot_timestamp >= fence.timestamp
    transaction.commit()
    assert get(manager, b"r") == b"late"
    assert fence.get("t", b"r") == {}


def test_who_did_not_write_the_table_is_not_touched(manager: TransactionManager) -> None:
    manager.create_table("other", ["f"])
    elsewhere, reader, nothing_left = (manager.transaction() for _ in range(3))
    elsewhere.put("other", b"r", {A: b"1"})
    elsewhere.get("t", b"r")
    list(reader.scan("t"))
    savepoint = nothing_left.savepoint()
    nothing_left.put("t", b"r", {A: b"1"})
    nothing_left.rollback_to(savepoint)
    nothing_left.put("other", b"s", {A: b"1"})
    manager.fence("t")
    for transaction in (elsewhere, reader, nothing_left):
        transaction.commit()


def test_writers_of_one_table_do_not_conflict_through_what_they_guard(installation: Installation) -> None:
    manager = installation.manager()
    transactions = [open_with(manager, b"r%d" % number, b"1") for number in range(6)]
    for transaction in transactions[:3]:
        transaction.commit()
    fail_over(installation)
    for transaction in transactions[3:]:
        transaction.commit()


def test_the_snapshot_of_a_fence_shows_what_was_committed_before_it_and_nothing_later(
    manager: TransactionManager,
) -> None:
    before = put(manager, b"before", b"1").commit_timestamp
    fence = manager.fence("t")
    after = put(manager, b"after", b"1").commit_timestamp
    assert before < fence.timestamp < after
    assert [row for row, _ in fence.scan("t")] == [b"before"]


def test_the_snapshot_of_a_fence_is_kept_for_as_long_as_it_is_held(manager: TransactionManager) -> None:
    asked: list[dict[int, int]] = []
    manager.heartbeats._oracle.heartbeat = lambda snapshots: asked.append(dict(snapshots)) or {}  # type: ignore[method-assign, func-returns-value]
    fence = manager.fence("t")
    manager.heartbeats.beat()
    manager.heartbeats.beat()
    assert asked == [{fence.start_timestamp: fence.timestamp}]
    assert fence.start_timestamp > fence.timestamp


def test_the_snapshot_of_a_fence_is_settled_before_it_is_given(
    manager: TransactionManager, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Another's fence, on which this one relies, may be on record before all that was decided earlier is."""
    ahead = 50 * TIMESTAMPS_PER_MILLISECOND
    monkeypatch.setattr("client.manager.place_fence", lambda services, handle, table: handle.start_timestamp + ahead)
    fence = manager.fence("t")
    assert manager.oracle.begin().snapshot >= fence.timestamp
    assert fence.start_timestamp > fence.timestamp


def test_of_two_fences_at_once_the_one_that_loses_relies_on_the_other(installation: Installation) -> None:
    manager = installation.manager()
    transaction = open_with(manager, b"r", b"late")
    first, second = begun(manager), begun(manager)
    stands = place_fence(manager._services, second, "t")
    assert place_fence(manager._services, first, "t") == stands
    assert not isinstance(manager.outcome(first.start_timestamp), Committed)
    with pytest.raises(TableFenced):
        transaction.commit()


def test_many_fences_of_one_table_at_once_all_return(installation: Installation) -> None:
    transaction = open_with(installation.manager(), b"r", b"late")
    at_once = 8
    barrier = threading.Barrier(at_once)
    managers = [installation.manager() for _ in range(at_once)]

    def fence(manager: TransactionManager) -> Snapshot:
        barrier.wait(20)
        return manager.fence("t")

    with ThreadPoolExecutor(at_once) as pool:
        fences = list(pool.map(fence, managers))
    assert all(fence.timestamp > transaction.start_timestamp for fence in fences)
    with pytest.raises(TableFenced):
        transaction.commit()
    put(managers[0], b"r", b"1")


def test_a_conflict_of_a_fence_with_no_other_fence_is_told(
    manager: TransactionManager, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As where the ids of two cells are the same by chance. A fence of long ago does not do."""
    manager.fence("t")
    fencing = begun(manager)
    monkeypatch.setattr("client.cells.xxhash.xxh3_64_intdigest", lambda hashed: 7)
    put(manager, b"r", b"1")
    with pytest.raises(Conflict):
        place_fence(manager._services, fencing, "t")
    manager.fence("t")


def test_no_commit_passes_a_fence_of_its_table(installation: Installation) -> None:
    """Whatever is decided at the same moment: who commits has the fence above its commit, or below its snapshot."""
    manager, fencer = installation.manager(), installation.manager()
    ended: list[tuple[Transaction, Committed | None]] = []

    def commit(transaction: Transaction) -> None:
        try:
            ended.append((transaction, transaction.commit()))
        except TableFenced:
            ended.append((transaction, None))

    fences: list[Snapshot] = []
    with ThreadPoolExecutor(8) as pool:
        for number in range(30):
            old = [open_with(manager, b"%d-%d" % (number, row), b"1") for row in range(6)]
            commits: list[Future[None]] = [pool.submit(commit, transaction) for transaction in old[:3]]
            fencing = pool.submit(fencer.fence, "t")
            commits += [pool.submit(commit, transaction) for transaction in old[3:]]
            young = manager.transaction()
            young.put("t", b"%d-young" % number, {A: b"1"})
            commits.append(pool.submit(commit, young))
            for each in commits:
                each.result()
            fences.append(fencing.result())
    commits_at = [(transaction.snapshot_timestamp, outcome) for transaction, outcome in ended if outcome]
    assert len(ended) == 30 * 7
    for fence in fences:
        assert not [at for at in commits_at if at[0] < fence.timestamp < at[1].commit_timestamp]
        shown = sum(1 for _ in fence.scan("t"))
        assert shown == sum(1 for _, outcome in commits_at if outcome.commit_timestamp < fence.timestamp)


@pytest.mark.parametrize("table", ["nowhere", "", "bad name!", CATALOG, table_name(SETTINGS.root)])
def test_what_is_no_table_is_not_fenced(manager: TransactionManager, table: str) -> None:
    with pytest.raises(InvalidRequest, match=table if table == "nowhere" else "table"):
        manager.fence(table)


def test_applications_neither_read_nor_write_where_the_fences_lie(manager: TransactionManager) -> None:
    fence = manager.fence("t")
    uses: list[Callable[[], object]] = [
        lambda: fence.get(CATALOG, b"t"),
        lambda: list(fence.scan(CATALOG)),
        lambda: manager.transaction().put(CATALOG, b"t", {FENCE_COLUMN: b"1"}),
        lambda: manager.attempt_writer(begun(manager), CATALOG, "job", partition=0, attempt=0),
    ]
    for use in uses:
        with pytest.raises(InvalidRequest, match="own"):
            use()


def test_hooks_are_told_of_no_fence(installation: Installation) -> None:
    told: list[object] = []

    class Told(TransactionHooks):
        def before_begin(self) -> None:
            told.append("begin")

        def commit_step(self, step: object, start_timestamp: int) -> None:
            told.append(step)

    installation.manager(hooks=Told()).fence("t")
    assert told == []


def test_a_conflict_is_told_as_one_where_the_fences_cannot_be_read(installation: Installation) -> None:
    manager = installation.manager()
    transaction = open_with(manager, b"r", b"late")
    manager.fence("t")
    installation.store.plan("get_many", Fault.LOST)
    with pytest.raises(Conflict):
        transaction.commit()
    assert transaction.status is TransactionStatus.ABORTED
    assert get(installation.manager(), b"r") is None


def test_a_conflict_in_a_table_that_was_not_fenced_since_is_told_as_one(manager: TransactionManager) -> None:
    manager.fence("t")
    transaction = open_with(manager, b"r", b"late")
    put(manager, b"r", b"rival")
    with pytest.raises(Conflict):
        transaction.commit()


@pytest.mark.parametrize("anew", [False, True])
@pytest.mark.parametrize("entry_is_old", [False, True])
def test_who_wrote_a_table_that_was_dropped_is_told_so_though_it_may_be_there_again(
    installation: Installation, monkeypatch: pytest.MonkeyPatch, anew: bool, entry_is_old: bool
) -> None:
    clock = SimpleNamespace(now=1_000.0)
    monkeypatch.setattr("client.catalog.age.monotonic_ms", lambda: 1_000 * clock.now)
    manager, other = installation.manager(), installation.manager()
    transaction = open_with(manager, b"r", b"late")
    other.drop_table("t")
    if anew:
        other.create_table("t", ["f"])
    if entry_is_old:
        clock.now += ENTRY_AGE_SECONDS_MAX
    with pytest.raises(TableFenced, match="dropped"):
        transaction.commit()
    if anew:
        assert get(installation.manager(), b"r") is None
        put(other, b"r", b"1")


def test_who_began_while_a_table_was_dropped_and_wrote_the_old_one_never_commits(
    installation: Installation, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Half of what it wrote is gone with that."""
    manager, other = installation.manager(), installation.manager()
    drop, begun = installation.store.drop_table, list[Transaction]()

    def begun_before(table: str) -> None:
        begun.append(other.transaction())
        bulk_writing.write(other, begun[0].handle(), "first", b"lost")
        drop(table)

    monkeypatch.setattr(installation.store, "drop_table", begun_before)
    manager.drop_table("t")
    manager.create_table("t", ["f"])
    bulk_writing.write(other, begun[0].handle(), "second", b"in the new one")
    for job in ("first", "second"):
        other.seal_job(begun[0].handle(), job, [(0, 0)])
    with pytest.raises(TableFenced, match="dropped"):
        begun[0].commit()
    assert bulk_writing.rows_seen(installation.manager()) == []


def test_a_table_that_cannot_be_fenced_is_not_dropped(installation: Installation) -> None:
    manager = installation.manager(settings=dataclasses.replace(SETTINGS, deadline_ms=100))
    installation.find_primary = lambda: None
    with pytest.raises(NoPrimary):
        manager.drop_table("t")
    assert "t" in installation.store.table_names()


def test_running_again_after_a_drop_ends(installation: Installation) -> None:
    manager, attempts = installation.manager(), 0

    def write_and_have_the_table_dropped(transaction: Transaction) -> None:
        nonlocal attempts
        attempts += 1
        transaction.put("t", b"r", {A: b"1"})
        if attempts == 1:
            installation.manager().drop_table("t")

    with pytest.raises(TransactionAborted, match="no table t") as caught:
        manager.run(write_and_have_the_table_dropped)
    assert attempts == 2
    assert not caught.value.retriable


def test_a_plain_table_is_dropped_without_an_oracle(installation: Installation) -> None:
    """No transaction can have written it."""
    installation.store.create_table("plain", [Family("f")])
    installation.find_primary = lambda: None
    installation.manager(settings=dataclasses.replace(SETTINGS, deadline_ms=100)).drop_table("plain")
    assert "plain" not in installation.store.table_names()


def test_a_fence_is_written_like_any_cell(manager: TransactionManager) -> None:
    fence = manager.fence("t")
    versions = manager.store.versions(CATALOG, b"t", FENCE_COLUMN, limit=2)
    assert len(versions) == 1
    assert manager.outcome(versions[0].timestamp) == Committed(fence.timestamp)
    shadows = manager.store.versions(CATALOG, b"t", shadow_column(b"f"), limit=2)
    assert [(shadow.timestamp, decode_shadow(shadow.value)) for shadow in shadows] == [
        (versions[0].timestamp, fence.timestamp)
    ]


def test_the_key_of_a_fence_is_that_of_its_row_and_no_data_cells() -> None:
    key = guard_id(CATALOG, "t")
    assert write_set(CATALOG, {b"t": [FENCE_COLUMN]}, by_row=True) == {key}
    others = {
        guard_id(CATALOG, "u"),
        guard_id("other_catalog", "t"),
        row_id("t", b"t"),
        row_id(CATALOG + "t", b""),
        cell_id(CATALOG, b"t", FENCE_COLUMN),
        cell_id("t", b"", b""),
    }
    assert len(others | {key}) == 7
