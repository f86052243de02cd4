"""A library that does not work at the installation's level is told so at once, by ZooKeeper or by the data."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from client import ClientSettings, NoPrimary, TransactionManager, UpgradeNeeded
from client.bulk_writes import shadow_pass
from client.catalog.age import ENTRY_AGE_SECONDS_MAX
from client.connection.primary import ZooKeeperDirectory
from client.inquiry.asking import inquire
from client.transactions import commit as committing
from commit_table.level_record import LevelOfData
from lease import LeaseRecord, LevelRefused, SetData, ZnodePaths, monotonic_ms
from lease.coordinator import Create, create_root
from lease.memory import MemoryCoordinator, MemoryTree
from store import CellStore
from store.columns import CellColumns
from tests.unit.client.bulk_writing import puts, shadow
from tests.unit.client.bulk_writing import write as bulk_write
from tests.unit.client.conftest import SETTINGS, A, Installation, written_in_bulk

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
    settings = ClientSettings(zookeeper="127.0.0.1:1", thrift="127.0.0.1:1")
    directory = ZooKeeperDirectory(settings, connect=lambda timeout_ms: coordinator)
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


def raise_level(installation: Installation) -> None:
    LevelOfData(installation.store, SETTINGS.root).raise_to(2)


@pytest.fixture
def time_passes(monkeypatch: pytest.MonkeyPatch) -> Callable[[], None]:
    """As much as nothing is believed for."""

    def pass_time() -> None:
        later = monotonic_ms() + 1_000 * (ENTRY_AGE_SECONDS_MAX + 1)
        monkeypatch.setattr("client.catalog.age.monotonic_ms", lambda: later)

    return pass_time


def test_who_only_reads_cells_is_told_by_the_data(installation: Installation, time_passes: Callable[[], None]) -> None:
    manager = installation.manager()
    with manager.transaction() as transaction:
        transaction.put("t", b"r", {A: b"1"})
    snapshot = manager.snapshot()
    raise_level(installation)
    assert snapshot.get("t", b"r") == {A: b"1"}, "it is believed for a while"
    with pytest.raises(UpgradeNeeded, match=r"requires level 2.*works at level 1"):
        installation.manager().resume_snapshot(snapshot.handle()).get("t", b"r")
    time_passes()
    with pytest.raises(UpgradeNeeded):
        snapshot.get("t", b"r")


def test_a_writer_at_work_is_told_before_its_next_rows(
    installation: Installation, time_passes: Callable[[], None]
) -> None:
    manager = installation.manager()
    transaction = manager.transaction()
    writer = manager.attempt_writer(transaction.handle(), "t", "job", partition=0, attempt=0)
    writer.write(CellColumns.of_puts(puts(b"a")))
    raise_level(installation)
    time_passes()
    with pytest.raises(UpgradeNeeded, match="requires level 2"):
        writer.write(CellColumns.of_puts(puts(b"b")))
    assert manager.store.versions("t", b"a", A, limit=1)
    assert not manager.store.versions("t", b"b", A, limit=1)


@pytest.mark.parametrize("writers_max", [1, 4])
def test_shadow_cells_are_written_only_as_long_as_their_format_is_the_installations(
    installation: Installation,
    time_passes: Callable[[], None],
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
    writers_max: int,
) -> None:
    manager = installation.manager(settings=replace(SETTINGS, shadow_writers_max=writers_max))
    transaction = manager.transaction()
    partitions = range(40)
    for partition in partitions:
        bulk_write(manager, transaction.handle(), "job", b"%02d" % partition, partition=partition)
    manager.manifest.seal(transaction.start_timestamp, "job", [(partition, 0) for partition in partitions])

    def write_and_raise(store: CellStore, start_timestamp: int, shadows: shadow_pass.Shadows) -> None:
        write(store, start_timestamp, shadows)
        raise_level(installation)
        time_passes()

    write = shadow_pass._write
    monkeypatch.setattr(shadow_pass, "_write", write_and_raise)
    monkeypatch.setattr(shadow_pass, "WRITE_ROWS_MAX", 1)
    committed = transaction.commit()
    shadows = [shadow(manager, b"%02d" % partition) for partition in partitions]
    assert set(shadows) == {None, committed.commit_timestamp}
    assert shadows.count(committed.commit_timestamp) <= 3 * writers_max, "those that were under way"
    assert "are left to readers: the data that" in caplog.text
    assert list(manager.manifest.transactions()) == [transaction.start_timestamp], "a newer library finishes it"
    with pytest.raises(UpgradeNeeded):
        manager.finish_bulk_writes()


def test_a_record_is_said_to_last_only_as_long_as_its_format_is_the_installations(
    installation: Installation, time_passes: Callable[[], None], monkeypatch: pytest.MonkeyPatch
) -> None:
    without = installation.manager(settings=replace(SETTINGS, bulk_shadow_cells="none"))
    transaction = written_in_bulk(without)
    write_shadows = committing._write_shadows

    def write_and_raise(*arguments: Any) -> None:
        write_shadows(*arguments)
        raise_level(installation)
        time_passes()

    monkeypatch.setattr(committing, "_write_shadows", write_and_raise)
    transaction.commit()
    assert not without.commit_table.record(transaction.start_timestamp).is_lasting
    assert list(without.manifest.transactions()) == [transaction.start_timestamp], "a newer library finishes it"


@pytest.mark.parametrize(
    "ask",
    [
        lambda manager, start: manager.outcome(start),
        lambda manager, start: inquire(manager, None, [start]),
        lambda manager, start: manager.finish_bulk_writes(),
        lambda manager, start: manager.create_snapshot("name", at=start),
    ],
    ids=["outcome", "inquire", "finish_bulk_writes", "create_snapshot"],
)
def test_records_of_another_level_are_not_read(
    installation: Installation, ask: Callable[[TransactionManager, int], object]
) -> None:
    """Rows of the commit table, manifests and a vacuum's marks: what they look like at another level nobody knows."""
    manager = installation.manager()
    with manager.transaction() as transaction:
        transaction.put("t", b"r", {A: b"1"})
    raise_level(installation)
    with pytest.raises(UpgradeNeeded, match="requires level 2"):
        ask(installation.manager(), transaction.start_timestamp)
    assert not manager.snapshots()


def test_no_table_is_made_at_a_level_that_is_not_known(installation: Installation) -> None:
    raise_level(installation)
    with pytest.raises(UpgradeNeeded):
        installation.manager().create_table("another", ["f"])
    assert "another" not in installation.store.table_names()
