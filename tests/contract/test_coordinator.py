"""Both coordinators, the twin and the real ZooKeeper, do what ``lease.coordinator`` says."""

from __future__ import annotations

import threading
import uuid
from collections.abc import Callable, Iterator

import pytest

from lease.coordinator import (
    Applied,
    Check,
    Coordinator,
    Create,
    Delete,
    Node,
    Operation,
    Rejected,
    SetData,
    Unknown,
    create_root,
)
from lease.credentials import ZooKeeperCredentials
from lease.errors import CoordinatorUnavailable
from lease.memory import MemoryCoordinator, MemoryTree
from lease.paths import ZnodePaths
from lease.zookeeper import ZooKeeperCoordinator
from tests.conftest import Services

TIMEOUT_MS = 10_000
WAIT_S = 10.0

Connect = Callable[[], Coordinator]


def connect_to_twin() -> Connect:
    tree = MemoryTree()
    return lambda: MemoryCoordinator(tree)


@pytest.fixture(
    params=[
        "memory",
        pytest.param("zookeeper", marks=pytest.mark.integration),
        pytest.param("protected zookeeper, TLS", marks=pytest.mark.integration),
    ]
)
def connect(request: pytest.FixtureRequest) -> Iterator[Connect]:
    """Opens any number of sessions on the same tree."""
    opened: list[Coordinator] = []
    if request.param == "memory":
        open_one = connect_to_twin()
    else:
        is_plain = request.param == "zookeeper"
        services: Services = request.getfixturevalue("services" if is_plain else "secured")
        credentials = None if is_plain else ZooKeeperCredentials("pythia", "contract")
        open_one = lambda: ZooKeeperCoordinator(services.zookeeper, credentials, tls=services.tls)  # noqa: E731

    def connect_and_remember() -> Coordinator:
        opened.append(open_one())
        return opened[-1]

    yield connect_and_remember
    for coordinator in opened:
        coordinator.close()


@pytest.fixture
def root(connect: Connect) -> str:
    """A node of this test's own."""
    paths = ZnodePaths(f"/test-{uuid.uuid4().hex}/pythia")
    create_root(connect(), paths, TIMEOUT_MS)
    return paths.root


def read(coordinator: Coordinator, path: str, changed: threading.Event | None = None) -> Node | None:
    return coordinator.read(path, timeout_ms=TIMEOUT_MS, synced=True, changed=changed)


def test_what_was_written_is_read_with_its_version(connect: Connect, root: str) -> None:
    one, other = connect(), connect()
    path = f"{root}/n"
    assert read(one, path) is None
    assert one.commit([Create(path, b"a")], timeout_ms=TIMEOUT_MS) == Applied()
    assert read(other, path) == Node(b"a", 0)
    assert other.commit([SetData(path, b"", 0)], timeout_ms=TIMEOUT_MS) == Applied()
    assert one.commit([SetData(path, b"c", None)], timeout_ms=TIMEOUT_MS) == Applied()
    assert read(one, path) == Node(b"c", 2)
    assert one.read(path, timeout_ms=TIMEOUT_MS) == Node(b"c", 2)


def test_a_multi_takes_place_wholly(connect: Connect, root: str) -> None:
    coordinator = connect()
    first, second = Create(f"{root}/a", b"1"), Create(f"{root}/a/b", b"2")
    assert coordinator.commit([first, second, SetData(f"{root}/a", b"3", 0)], timeout_ms=TIMEOUT_MS) == Applied()
    assert read(coordinator, f"{root}/a") == Node(b"3", 1)
    assert read(coordinator, f"{root}/a/b") == Node(b"2", 0)


def test_a_check_that_holds_changes_nothing(connect: Connect, root: str) -> None:
    coordinator, changed = connect(), threading.Event()
    path = f"{root}/n"
    coordinator.commit([Create(path, b"a")], timeout_ms=TIMEOUT_MS)
    assert read(coordinator, path, changed) == Node(b"a", 0)
    operations: list[Operation] = [Check(path, 0), Create(f"{root}/o", b""), Check(f"{root}/o", 0)]
    assert coordinator.commit(operations, timeout_ms=TIMEOUT_MS) == Applied()
    assert read(coordinator, path) == Node(b"a", 0)
    assert not changed.is_set()


@pytest.mark.parametrize("position", [0, 1])
@pytest.mark.parametrize(
    "failing",
    [
        "set",
        "create",
        "set absent",
        "create without parent",
        "check",
        "check absent",
        "delete absent",
        "delete a parent",
    ],
)
def test_a_multi_with_one_failure_changes_nothing(connect: Connect, root: str, failing: str, position: int) -> None:
    coordinator = connect()
    path, other = f"{root}/n", f"{root}/o"
    coordinator.commit([Create(path, b"a"), Create(other, b"b")], timeout_ms=TIMEOUT_MS)
    choices: dict[str, Operation] = {
        "set": SetData(path, b"x", 1),
        "create": Create(path, b"x"),
        "set absent": SetData(f"{root}/absent", b"x", None),
        "create without parent": Create(f"{root}/absent/n", b"x"),
        "check": Check(path, 1),
        "check absent": Check(f"{root}/absent", 0),
        "delete absent": Delete(f"{root}/absent"),
        "delete a parent": Delete(root),
    }
    operations: list[Operation] = [SetData(other, b"y", 0)]
    operations.insert(position, choices[failing])
    assert coordinator.commit(operations, timeout_ms=TIMEOUT_MS) == Rejected()
    assert read(coordinator, path) == Node(b"a", 0)
    assert read(coordinator, other) == Node(b"b", 0)


def test_a_node_is_deleted_and_can_be_made_anew(connect: Connect, root: str) -> None:
    coordinator, changed = connect(), threading.Event()
    path, below = f"{root}/n", f"{root}/n/b"
    coordinator.commit([Create(path, b"a"), Create(below, b"")], timeout_ms=TIMEOUT_MS)
    coordinator.commit([SetData(path, b"b", 0)], timeout_ms=TIMEOUT_MS)
    assert read(coordinator, path, changed) == Node(b"b", 1)
    assert coordinator.commit([Delete(below), Delete(path)], timeout_ms=TIMEOUT_MS) == Applied()
    assert changed.wait(WAIT_S)
    assert read(coordinator, path) is None
    assert coordinator.commit([Create(path, b"c"), SetData(path, b"d", 0)], timeout_ms=TIMEOUT_MS) == Applied()
    assert coordinator.commit([Delete(path), Create(path, b"e")], timeout_ms=TIMEOUT_MS) == Applied()
    assert read(coordinator, path) == Node(b"e", 0)
    assert coordinator.commit([Delete(path), Check(path, 0)], timeout_ms=TIMEOUT_MS) == Rejected()


def test_of_many_at_once_one_wins(connect: Connect, root: str) -> None:
    coordinators = [connect() for _ in range(4)]
    path = f"{root}/n"
    coordinators[0].commit([Create(path, b"")], timeout_ms=TIMEOUT_MS)
    results: list[object] = []
    threads = [
        threading.Thread(target=lambda c=c: results.append(c.commit([SetData(path, b"x", 0)], timeout_ms=TIMEOUT_MS)))
        for c in coordinators
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(WAIT_S)
    assert sorted(map(repr, results)) == sorted(map(repr, [Applied(), Rejected(), Rejected(), Rejected()]))


def test_a_watch_fires_when_the_node_is_written(connect: Connect, root: str) -> None:
    one, other = connect(), connect()
    path = f"{root}/n"
    one.commit([Create(path, b"a")], timeout_ms=TIMEOUT_MS)
    changed = threading.Event()
    assert read(one, path, changed) == Node(b"a", 0)
    assert read(one, path, changed) == Node(b"a", 0)
    assert not changed.is_set()
    other.commit([SetData(path, b"b", 0)], timeout_ms=TIMEOUT_MS)
    assert changed.wait(WAIT_S)


def test_a_watch_fires_when_the_node_is_made(connect: Connect, root: str) -> None:
    one, other = connect(), connect()
    changed = threading.Event()
    assert read(one, f"{root}/n", changed) is None
    other.commit([Create(f"{root}/n", b"a")], timeout_ms=TIMEOUT_MS)
    assert changed.wait(WAIT_S)


def test_an_ephemeral_node_goes_with_its_session(connect: Connect, root: str) -> None:
    one, other = connect(), connect()
    path = f"{root}/members/m"
    assert one.commit([Create(path, b"a", ephemeral=True)], timeout_ms=TIMEOUT_MS) == Applied()
    changed = threading.Event()
    assert read(other, path, changed) == Node(b"a", 0)
    assert one.session_id() not in (None, other.session_id())
    one.close()
    assert changed.wait(WAIT_S)
    assert read(other, path) is None


def test_children_are_sorted_names(connect: Connect, root: str) -> None:
    coordinator = connect()
    assert coordinator.children(f"{root}/absent", timeout_ms=TIMEOUT_MS) == []
    assert coordinator.children(f"{root}/members", timeout_ms=TIMEOUT_MS) == []
    operations = [Create(f"{root}/members/{name}", b"") for name in ("b", "a", "c")]
    coordinator.commit([*operations, Create(f"{root}/members/a/below", b"")], timeout_ms=TIMEOUT_MS)
    assert coordinator.children(f"{root}/members", timeout_ms=TIMEOUT_MS) == ["a", "b", "c"]


def test_making_the_root_again_is_harmless(connect: Connect, root: str) -> None:
    coordinator = connect()
    create_root(coordinator, ZnodePaths(root), TIMEOUT_MS)
    assert read(coordinator, f"{root}/members") == Node(b"", 0)


def test_after_close_nothing_is_known(connect: Connect, root: str) -> None:
    coordinator = connect()
    coordinator.close()
    coordinator.close()
    with pytest.raises(CoordinatorUnavailable):
        coordinator.read(root, timeout_ms=TIMEOUT_MS)
    with pytest.raises(CoordinatorUnavailable):
        coordinator.children(root, timeout_ms=TIMEOUT_MS)
    assert isinstance(coordinator.commit([Create(f"{root}/n", b"")], timeout_ms=TIMEOUT_MS), Unknown)
    assert coordinator.session_id() is None
