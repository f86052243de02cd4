"""Fences and conflict-free writes of docs/concepts/transactions.md, on the real store and across a killed primary."""

from __future__ import annotations

import signal
import uuid
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING

import pytest

from client import Snapshot, TableFenced, Transaction, TransactionManager
from commit_table import system_table
from store import RowPut
from store.columns import CellColumns
from tests.integration.oracle_processes import SHORT_LEASE_MS

if TYPE_CHECKING:
    from tests.integration.conftest import Installation

pytestmark = pytest.mark.integration

A = b"f:a"


@pytest.fixture
def table(manager: TransactionManager) -> Iterator[str]:
    name = f"fenced_{uuid.uuid4().hex[:8]}"
    manager.create_table(name, ["f"])
    yield name
    manager.drop_table(name)


def writers(manager: TransactionManager, table: str) -> list[Transaction]:
    """One that wrote plainly, one conflict-free, one in bulk: each a row of its own."""
    plain, free, bulk = (manager.transaction() for _ in range(3))
    plain.put(table, b"plain", {A: b"1"})
    free.put(table, b"free", {A: b"1"}, conflict_free=True)
    handle = bulk.handle()
    job = manager.open_job(handle)
    manager.attempt_writer(handle, table, job, partition=0, attempt=0).write(
        CellColumns.of_puts([RowPut(b"bulk", {A: b"1"})])
    )
    manager.seal_job(handle, job, [(0, 0)])
    return [plain, free, bulk]


def rows(snapshot: Snapshot, table: str) -> list[bytes]:
    return [row for row, _ in snapshot.scan(table)]


def test_who_wrote_before_the_fence_never_commits_and_who_begins_after_it_does(
    manager: TransactionManager, table: str
) -> None:
    with manager.transaction() as before:
        before.put(table, b"before", {A: b"1"})
    old = writers(manager, table)
    fence = manager.fence(table)
    young = writers(manager, table)
    for transaction in old:
        with pytest.raises(TableFenced, match=table):
            transaction.commit()
    assert rows(manager.snapshot(), table) == [b"before"]
    for transaction in young:
        transaction.commit()
    assert rows(fence, table) == [b"before"]
    assert rows(manager.snapshot(), table) == [b"before", b"bulk", b"free", b"plain"]


def test_fences_at_once_all_return_and_the_later_ones_follow(manager: TransactionManager, table: str) -> None:
    old = writers(manager, table)
    with ThreadPoolExecutor(4) as pool:
        fences = list(pool.map(manager.fence, [table] * 4))
    assert manager.fence(table).timestamp > max(fence.timestamp for fence in fences)
    for transaction in old:
        with pytest.raises(TableFenced):
            transaction.commit()


@pytest.mark.parametrize("anew", [False, True])
def test_who_wrote_a_table_that_was_dropped_is_told_so(manager: TransactionManager, table: str, anew: bool) -> None:
    dropped = f"{table}_dropped"
    manager.create_table(dropped, ["f"])
    old = writers(manager, dropped)
    manager.drop_table(dropped)
    if anew:
        manager.create_table(dropped, ["f"])
    for transaction in old:
        with pytest.raises(TableFenced, match=dropped):
            transaction.commit()
    if anew:
        assert rows(manager.snapshot(), dropped) == []
        manager.drop_table(dropped)


def test_the_conflict_free_write_of_the_one_that_began_last_stays(manager: TransactionManager, table: str) -> None:
    first, second, third = (manager.transaction() for _ in range(3))
    first.put(table, b"r", {A: b"1"}, conflict_free=True)
    second.put(table, b"r", {A: b"2"}, conflict_free=True)
    third.delete(table, b"r", [A], conflict_free=True)
    seen = []
    for transaction in (second, first, third):
        transaction.commit()
        seen.append(manager.snapshot())
    assert [snapshot.get(table, b"r") for snapshot in seen] == [{A: b"2"}, {A: b"2"}, {}]


def test_a_fence_holds_when_the_primary_is_killed(installation: Installation) -> None:
    killed = installation.start("a", SHORT_LEASE_MS)
    killed.until_primary()
    name = f"fenced_{uuid.uuid4().hex[:8]}"
    with TransactionManager.connect(installation.settings) as manager:
        manager.create_table(name, ["f"])
        try:
            old = writers(manager, name)
            fence = manager.fence(name)
            young = writers(manager, name)
            killed.end(signal.SIGKILL)
            installation.start("b", SHORT_LEASE_MS).until_primary()
            for transaction in old:
                with pytest.raises(TableFenced, match=f"fenced at {fence.timestamp}"):
                    transaction.commit()
            for transaction in young:
                transaction.commit()
            assert rows(fence, name) == []
            assert rows(manager.snapshot(), name) == [b"bulk", b"free", b"plain"]
        finally:
            for table in (name, *(system_table(installation.root, purpose) for purpose in ("catalog", "manifest"))):
                manager.store.drop_table(table)
