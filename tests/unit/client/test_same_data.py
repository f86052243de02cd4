"""A library whose gateway leads to another HBase than the oracles': it writes nothing there, and reads nothing."""

from __future__ import annotations

import pytest

from client import InvalidRequest, TransactionManager
from client.connection.primary import ZooKeeperDirectory
from client.vacuum import run_vacuum
from commit_table.identity import IdentityOfData
from commit_table.table import CommitTable, table_name
from lease import LeaseRecord, SetData, ZnodePaths
from lease.coordinator import Create, create_root
from lease.memory import MemoryCoordinator, MemoryTree
from lease.records import DataRecord
from store.faults import FaultyCellStore
from tests.unit.client.conftest import SETTINGS, A, Installation, InstallationDirectory

PATHS = ZnodePaths(SETTINGS.root)
OTHER_NAME = "b" * 32


@pytest.mark.parametrize("name", [None, OTHER_NAME])
def test_a_library_at_another_hbase_is_refused_before_it_writes_anything(
    installation: Installation, name: str | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("client.vacuum.run._status_with_horizon", lambda oracle: oracle.status())  # as if it were known
    theirs = FaultyCellStore()
    if name is not None:
        CommitTable(theirs, table_name(SETTINGS.root)).create()
        IdentityOfData(theirs, SETTINGS.root).give(name)
    tables = theirs.table_names()
    manager = TransactionManager(SETTINGS, theirs, InstallationDirectory(installation))
    with manager:
        with pytest.raises(InvalidRequest, match="the gateway leads to an HBase that has"), manager.transaction() as tx:
            tx.put("t", b"r", {A: b"1"})
        with pytest.raises(InvalidRequest, match="look at thrift, zookeeper and root"):
            manager.snapshot().get("t", b"r")
        with pytest.raises(InvalidRequest, match="the gateway leads"):
            manager.create_table("mine", ["f"])
        with pytest.raises(InvalidRequest, match="the gateway leads"):
            run_vacuum(manager)
    assert theirs.table_names() == tables


def test_the_same_data_are_looked_at_once(installation: Installation) -> None:
    manager = installation.manager()
    with manager.transaction() as tx:
        tx.put("t", b"r", {A: b"1"})
    assert IdentityOfData(installation.store, SETTINGS.root).read() is not None
    MemoryCoordinator(installation.tree).commit(
        [SetData(PATHS.data, DataRecord(OTHER_NAME).encode(), None)], timeout_ms=1
    )
    assert manager.snapshot().get("t", b"r") == {A: b"1"}, "what was found is believed"


def test_the_name_is_known_with_the_primary_and_a_record_that_cannot_be_read_keeps_nobody_from_it() -> None:
    coordinator = MemoryCoordinator(MemoryTree())
    create_root(coordinator, PATHS, 1)
    lease = LeaseRecord("holder", "nonce", ("a:1",), 5, False, 2_000)
    coordinator.commit([Create(PATHS.lease, lease.encode()), Create(PATHS.data, b"rubbish")], timeout_ms=1)
    directory = ZooKeeperDirectory(SETTINGS, connect=lambda timeout_ms: coordinator)
    assert (directory.primary(1_000), directory.data) == ("a:1", None)
    coordinator.commit([SetData(PATHS.data, DataRecord(OTHER_NAME).encode(), None)], timeout_ms=1)
    assert (directory.primary(1_000), directory.data) == ("a:1", OTHER_NAME)
