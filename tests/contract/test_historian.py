"""The history of tenures on both coordinators: written by several at once, whatever a write's answer was."""

from __future__ import annotations

import threading
import uuid
from collections.abc import Callable, Iterator

import pytest

from lease import Coordinator, CoordinatorUnavailable, Historian, PastTenure, ZnodePaths, read_history
from lease.coordinator import SetData, create_root
from lease.historian import TRIES_MAX
from lease.memory import MemoryCoordinator, MemoryTree, WriteFault
from lease.zookeeper import ZooKeeperCoordinator

WAIT_S = 20.0
TIMEOUT_MS = 5_000
Connect = Callable[[], Coordinator]


def tenure(epoch: int) -> PastTenure:
    return PastTenure(epoch, "a", "a:1", "", 5, "handed over", 12, at_least=False)


@pytest.fixture(params=["memory", pytest.param("zookeeper", marks=pytest.mark.integration)])
def connect(request: pytest.FixtureRequest) -> Iterator[Connect]:
    opened: list[Coordinator] = []
    tree = MemoryTree()
    hosts = "" if request.param == "memory" else request.getfixturevalue("services").zookeeper

    def open_one() -> Coordinator:
        opened.append(ZooKeeperCoordinator(hosts) if hosts else MemoryCoordinator(tree))
        return opened[-1]

    yield open_one
    for coordinator in opened:
        coordinator.close()


@pytest.fixture
def root(connect: Connect) -> str:
    paths = ZnodePaths(f"/test-{uuid.uuid4().hex}/pythia")
    create_root(connect(), paths, TIMEOUT_MS)
    return paths.root


def until_epochs(coordinator: Coordinator, root: str, epochs: list[int]) -> None:
    for _ in range(int(WAIT_S / 0.01)):
        if [one.epoch for one in read_history(coordinator, root).tenures] == epochs:
            return
        threading.Event().wait(0.01)
    assert [one.epoch for one in read_history(coordinator, root).tenures] == epochs


def test_several_write_at_once_and_none_is_lost(connect: Connect, root: str) -> None:
    reader = connect()
    assert read_history(reader, root).tenures == ()
    historians = [Historian(connect(), root, timeout_ms=TIMEOUT_MS) for _ in range(3)]
    for epoch, historian in enumerate(historians, start=1):
        historian.note(tenure(epoch))
    until_epochs(reader, root, [1, 2, 3])


@pytest.mark.parametrize("fault", WriteFault)
def test_a_write_with_an_ambiguous_end_leaves_the_tenure_there_once(fault: WriteFault) -> None:
    tree, paths = MemoryTree(), ZnodePaths("/pythia")
    coordinator, reader = MemoryCoordinator(tree), MemoryCoordinator(tree)
    create_root(reader, paths, 1)
    coordinator.write_faults = [fault]
    Historian(coordinator, paths.root, timeout_ms=1).note(tenure(1))
    until_epochs(reader, paths.root, [1])
    coordinator.deliver_late()
    until_epochs(reader, paths.root, [1])


def test_what_is_not_understood_is_left_as_it_is(caplog: pytest.LogCaptureFixture) -> None:
    tree, paths = MemoryTree(), ZnodePaths("/pythia")
    coordinator = MemoryCoordinator(tree)
    create_root(coordinator, paths, 1)
    historian = Historian(coordinator, paths.root, timeout_ms=1)
    historian.note(tenure(1))
    until_epochs(coordinator, paths.root, [1])
    coordinator.commit([SetData(paths.history, b'{"format":9}', None)], timeout_ms=1)
    historian._add_patiently(tenure(2))
    node = coordinator.read(paths.history, timeout_ms=1)
    assert node is not None
    assert node.data == b'{"format":9}'
    assert "epoch 2 is not in the history" in caplog.text


def test_the_tries_are_bounded(monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture) -> None:
    coordinator, tries = MemoryCoordinator(MemoryTree()), list[str]()

    def read(path: str, **options: object) -> None:
        tries.append(path)
        raise CoordinatorUnavailable("the coordinator does not answer")

    monkeypatch.setattr(coordinator, "read", read)
    monkeypatch.setattr("lease.historian.PAUSE_MS_MIN", 0)
    Historian(coordinator, "/pythia", timeout_ms=1)._add_patiently(tenure(1))
    assert tries == ["/pythia/history"] * TRIES_MAX
    assert "epoch 1 is not in the history: the coordinator does not answer" in caplog.text
