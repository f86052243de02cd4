"""One manager in two processes: a fork while everything is connected, on the real HBase and ZooKeeper."""

from __future__ import annotations

import atexit
import time
import uuid
from collections.abc import Iterator

import pytest

from client import ClientSettings, TransactionManager
from client.connection.primary import ZooKeeperDirectory
from client.spark import connections
from commit_table import Committed
from lease.paths import ZnodePaths
from lease.zookeeper import ZooKeeperCoordinator
from store import KeyRange, RowPut
from tests.conftest import Services
from tests.forked import forked, in_child

pytestmark = pytest.mark.integration

A = b"f:a"
SECONDS = 1.0
ROUNDS = 5
TIMEOUT_MS = 10_000


@pytest.fixture
def manager(oracle: ClientSettings) -> Iterator[TransactionManager]:
    with TransactionManager.connect(oracle) as manager:
        yield manager


@pytest.fixture
def table(manager: TransactionManager) -> Iterator[str]:
    name = f"forking_{uuid.uuid4().hex[:8]}"
    manager.create_table(name, ["f"])
    yield name
    manager.drop_table(name)


def read_own_row(manager: TransactionManager, table: str, row: bytes) -> tuple[int, set[bytes | None]]:
    """For a second: how many reads, and what was met."""
    met: set[bytes | None] = set()
    reads, end_s = 0, time.monotonic() + SECONDS
    while time.monotonic() < end_s:
        cells = manager.store.get(table, row, [A])
        met.add(cells[A].value if A in cells else None)
        reads += 1
    return reads, met


def test_two_processes_read_at_once_and_each_meets_its_own_row(manager: TransactionManager, table: str) -> None:
    manager.store.put(table, [RowPut(name, {A: name}) for name in (b"parent", b"child")], 5)
    for _ in range(ROUNDS):
        with forked(lambda: read_own_row(manager, table, b"child")) as child:
            reads, met = read_own_row(manager, table, b"parent")
            assert met == {b"parent"}
            reads_of_child, met_by_child = child.result()
            assert met_by_child == {b"child"}
        assert reads
        assert reads_of_child


def test_a_child_begins_and_commits_and_its_parent_goes_on(manager: TransactionManager, table: str) -> None:
    with manager.transaction() as before:
        before.put(table, b"before", {A: b"1"})
    manager.snapshot(at=manager.snapshot().timestamp)  # by ZooKeeper's word
    open_before = manager.transaction()
    open_before.put(table, b"parent", {A: b"2"})

    def child() -> dict[bytes, dict[bytes, bytes]]:
        for number in range(10):
            with manager.transaction() as transaction:
                assert transaction.get(table, b"before") == {A: b"1"}
                transaction.put(table, b"child", {A: b"%d" % number})
        seen = dict(manager.snapshot(at=manager.snapshot().timestamp).scan(table))
        manager.close()
        return seen

    with forked(child) as process:
        for number in range(10):
            with manager.transaction() as transaction:
                transaction.put(table, b"also", {A: b"%d" % number})
        seen = process.result()
    assert (seen[b"before"], seen[b"child"]) == ({A: b"1"}, {A: b"9"})
    assert isinstance(open_before.commit(), Committed)
    assert dict(manager.snapshot().scan(table)) == {
        b"before": {A: b"1"}, b"parent": {A: b"2"}, b"also": {A: b"9"}, b"child": {A: b"9"},
    }  # fmt: skip


def test_a_scan_that_was_open_at_the_fork_goes_on_in_the_parent(manager: TransactionManager, table: str) -> None:
    rows = [b"%04d" % number for number in range(500)]
    manager.store.put(table, [RowPut(row, {A: row}) for row in rows], 5)
    everything = KeyRange(b"", b"")
    scan = iter(manager.store.scan(table, everything, [A], batch_rows=50))
    first = next(scan)[0]

    def child() -> list[bytes]:
        return [row for row, _ in manager.store.scan(table, everything, [A], batch_rows=50)]

    assert in_child(child) == rows
    assert [first, *(row for row, _ in scan)] == rows


def test_a_child_finds_the_primary_by_a_session_of_its_own(oracle: ClientSettings) -> None:
    directory = ZooKeeperDirectory(oracle)
    primary = directory.primary(TIMEOUT_MS)
    assert primary is not None
    assert directory._coordinator is not None
    session = directory._coordinator.session_id()

    def child() -> tuple[str | None, bool, int | None]:
        found = directory.primary(TIMEOUT_MS)
        moved = directory.has_moved(primary, TIMEOUT_MS)
        assert directory._coordinator is not None
        return found, moved, directory._coordinator.session_id()

    found, moved, session_of_child = in_child(child)
    assert (found, moved) == (primary, False)
    assert session_of_child not in (None, session)
    assert directory.primary(TIMEOUT_MS) == primary
    assert directory._coordinator.session_id() == session
    directory.close()


def test_a_child_ends_neither_its_parents_session_nor_its_connection(services: Services) -> None:
    path = ZnodePaths(f"/forking-{uuid.uuid4().hex[:8]}").root
    with ZooKeeperCoordinator(services.zookeeper) as coordinator:
        session = coordinator.session_id()
        coordinator.read(path, timeout_ms=TIMEOUT_MS)
        states: list[str] = []
        coordinator._client.add_listener(states.append)

        in_child(coordinator.close)
        assert coordinator.read(path, timeout_ms=TIMEOUT_MS) is None
        assert (coordinator.session_id(), states) == (session, [])


def test_a_child_that_ends_as_python_does_waits_for_no_thread(oracle: ClientSettings) -> None:
    """With ``atexit``: the managers of the Spark data source are closed there."""
    manager = connections.manager_for(oracle)
    manager.snapshot(at=manager.snapshot().timestamp)

    def child() -> None:
        manager.snapshot()
        atexit._run_exitfuncs()

    in_child(child)
    assert manager.snapshot().timestamp
    connections.close_managers()
