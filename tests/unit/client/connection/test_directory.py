"""Where the primary is, as ZooKeeper tells it, and who notices that it has moved."""

from __future__ import annotations

from typing import ClassVar

import pytest

import client.connection.primary
from client import ClientSettings, InvalidRequest
from client.connection.deadline import Deadline
from client.connection.primary import ZooKeeperDirectory
from lease import CoordinatorUnavailable, EpochRecord, LeaseRecord, SetData, ZnodePaths
from lease.coordinator import Create, create_root
from lease.memory import MemoryCoordinator, MemoryTree

PATHS = ZnodePaths("/pythia")
SETTINGS = ClientSettings(zookeeper="127.0.0.1:1", thrift="127.0.0.1:1")


def record(address: str, *, released: bool = False) -> bytes:
    return LeaseRecord("holder", "nonce", (address,), 5, released, 2_000).encode()


@pytest.fixture
def coordinator() -> MemoryCoordinator:
    coordinator = MemoryCoordinator(MemoryTree())
    create_root(coordinator, PATHS, 1)
    coordinator.commit([Create(PATHS.lease, record("a:1"))], timeout_ms=1)
    return coordinator


@pytest.fixture
def directory(coordinator: MemoryCoordinator) -> ZooKeeperDirectory:
    directory = ZooKeeperDirectory(SETTINGS, connect=lambda timeout_ms: coordinator)
    assert directory.primary(1_000) == "a:1"
    return directory


def test_all_who_wait_learn_that_the_primary_has_moved(
    directory: ZooKeeperDirectory, coordinator: MemoryCoordinator
) -> None:
    assert [directory.has_moved("a:1", 1_000) for _ in range(3)] == [False] * 3
    coordinator.commit([SetData(PATHS.lease, record("b:1"), None)], timeout_ms=1)
    assert [directory.has_moved("a:1", 1_000) for _ in range(3)] == [True] * 3
    assert not directory.has_moved("b:1", 1_000)


def test_a_renewal_and_a_release_are_no_move(directory: ZooKeeperDirectory, coordinator: MemoryCoordinator) -> None:
    coordinator.commit([SetData(PATHS.lease, record("a:1"), None)], timeout_ms=1)
    assert not directory.has_moved("a:1", 1_000)
    coordinator.commit([SetData(PATHS.lease, record("a:1", released=True), None)], timeout_ms=1)
    assert not directory.has_moved("a:1", 1_000)


def test_what_cannot_be_found_out_is_no_move_and_is_looked_at_again(
    directory: ZooKeeperDirectory, coordinator: MemoryCoordinator
) -> None:
    coordinator.commit([SetData(PATHS.lease, record("b:1"), None)], timeout_ms=1)
    coordinator.unreachable = True
    assert not directory.has_moved("a:1", 1_000)
    coordinator.unreachable = False
    assert directory.has_moved("a:1", 1_000)


def test_the_epochs_record_says_what_is_settled(directory: ZooKeeperDirectory, coordinator: MemoryCoordinator) -> None:
    assert directory.settled(1_000) is None
    coordinator.commit([Create(PATHS.epoch, EpochRecord(5, 90, 70).encode())], timeout_ms=1)
    assert directory.settled(1_000) == (70, 5)


class Session:
    """A session with a ZooKeeper that has nothing stored."""

    opened: ClassVar[list[Session]] = []

    def __init__(self, settings: ClientSettings, connect_timeout_ms: int) -> None:
        self.closed = False
        self.opened.append(self)

    def close(self) -> None:
        self.closed = True


def test_what_is_asked_of_one_that_was_closed_opens_no_session(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(client.connection.primary, "zookeeper_of", Session)
    monkeypatch.setattr(Session, "opened", [])
    directory = ZooKeeperDirectory(SETTINGS)
    directory._connected(Deadline(1_000))
    directory.close()
    for asked in (directory.primary, directory.settled):
        with pytest.raises(CoordinatorUnavailable, match="this client is closed"):
            asked(1_000)
    assert not directory.has_moved("a:1", 1_000)
    assert [session.closed for session in Session.opened] == [True]
    directory.close()


@pytest.mark.parametrize(
    ("zookeeper", "oracle", "told"), [("", "", "neither is there"), ("h:1", "h:2", "where the oracle is, not both")]
)
def test_one_of_zookeeper_and_oracle_is_named(zookeeper: str, oracle: str, told: str) -> None:
    with pytest.raises(InvalidRequest, match=told):
        ClientSettings(zookeeper, "h:3", oracle=oracle)
