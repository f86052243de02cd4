"""A library that does not work at the installation's level is told so at once, by ZooKeeper or by the data."""

from __future__ import annotations

import time

import pytest

from client import ClientSettings, NoPrimary, UpgradeNeeded
from client.catalog import ENTRY_AGE_SECONDS_MAX
from client.primary import ZooKeeperDirectory
from commit_table.level_record import LevelOfData
from lease import LeaseRecord, LevelRefused, SetData, ZnodePaths
from lease.coordinator import Create, create_root
from lease.memory import MemoryCoordinator, MemoryTree
from tests.unit.client.conftest import SETTINGS, A, Installation

PATHS = ZnodePaths("/pythia")


def lease(level: int) -> bytes:
    return LeaseRecord("holder", "nonce", ("a:1",), 5, False, 2_000, level=level).encode()


@pytest.fixture
def coordinator() -> MemoryCoordinator:
    coordinator = MemoryCoordinator(MemoryTree())
    create_root(coordinator, PATHS, 1)
    coordinator.commit([Create(PATHS.lease, lease(1))], timeout_ms=1)
    return coordinator


def test_the_lease_says_when_a_library_is_too_old(coordinator: MemoryCoordinator) -> None:
    directory = ZooKeeperDirectory(ClientSettings(zookeeper="127.0.0.1:1", thrift="127.0.0.1:1"))
    directory._coordinator = coordinator  # type: ignore[assignment]
    assert directory.primary(1_000) == "a:1"
    assert not directory.has_moved("a:1", 1_000)
    coordinator.commit([SetData(PATHS.lease, lease(2), None)], timeout_ms=1)
    assert [directory.has_moved("a:1", 1_000) for _ in range(2)] == [True] * 2, "the connection has to be left"
    with pytest.raises(LevelRefused, match="upgrade this program"):
        directory.primary(1_000)


def test_whoever_waits_for_the_oracle_is_told_and_does_not_wait_for_long(installation: Installation) -> None:
    def too_old() -> str:
        raise LevelRefused("upgrade this program")

    installation.find_primary = too_old
    other = installation.manager(settings=ClientSettings("h:1", "h:2", deadline_ms=600_000))
    with pytest.raises(UpgradeNeeded, match=r"^upgrade this program$") as told:
        other.transaction()
    assert isinstance(told.value, NoPrimary)
    assert not told.value.retriable


def test_who_only_reads_cells_is_told_by_the_data(installation: Installation, monkeypatch: pytest.MonkeyPatch) -> None:
    manager = installation.manager()
    with manager.transaction() as transaction:
        transaction.put("t", b"r", {A: b"1"})
    snapshot = manager.snapshot()
    LevelOfData(installation.store, SETTINGS.root).raise_to(2)
    assert snapshot.get("t", b"r") == {A: b"1"}, "it is believed for a while"
    with pytest.raises(UpgradeNeeded, match=r"requires level 2.*works at level 1"):
        installation.manager().resume_snapshot(snapshot.handle()).get("t", b"r")
    later = time.monotonic() + ENTRY_AGE_SECONDS_MAX + 1
    monkeypatch.setattr("client.catalog.time.monotonic", lambda: later)
    with pytest.raises(UpgradeNeeded):
        snapshot.get("t", b"r")


def test_no_table_is_made_at_a_level_that_is_not_known(installation: Installation) -> None:
    LevelOfData(installation.store, SETTINGS.root).raise_to(2)
    with pytest.raises(UpgradeNeeded):
        installation.manager().create_table("another", ["f"])
    assert "another" not in installation.store.table_names()
