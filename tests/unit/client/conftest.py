"""A whole installation in one process: the real oracle on a real socket, over twins of HBase and ZooKeeper."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field

import pytest

from client import ClientMetrics, ClientSettings, Transaction, TransactionHandle, TransactionHooks, TransactionManager
from client.cells import encode_value
from client.connection.primary import Settled
from commit_table import table_name
from lease import EpochRecord, LeaseSettings, ZnodePaths
from lease.data_record import read_data
from lease.memory import MemoryCoordinator, MemoryTree
from store import RowPut
from store.columns import CellColumns
from store.faults import FaultyCellStore
from testkit import OracleThread, small_limits
from tso.settings import Limits, ServeSettings

A = b"f:a"
SETTINGS = ClientSettings(zookeeper="127.0.0.1:1", thrift="127.0.0.1:1", deadline_ms=5_000, request_timeout_ms=2_000)
COMMITS = table_name(SETTINGS.root)
LEASE_MS = 60_000
"""Longer than the pauses of a shared machine: what a lost lease leads to is no fault, and not what tests expect."""


class InstallationDirectory:
    """Where an installation's primary is, as the test says, and what its record says of the past."""

    def __init__(self, installation: Installation) -> None:
        self._installation = installation

    @property
    def data(self) -> str | None:
        return read_data(MemoryCoordinator(self._installation.tree), ZnodePaths(SETTINGS.root), 1)

    def primary(self, timeout_ms: int) -> str | None:
        return self._installation.find_primary()

    def has_moved(self, address: str, timeout_ms: int) -> bool:
        return self._installation.find_primary() not in (None, address)

    def settled(self, timeout_ms: int) -> Settled | None:
        node = MemoryCoordinator(self._installation.tree).read(ZnodePaths(SETTINGS.root).epoch, timeout_ms=timeout_ms)
        if node is None:
            return None
        record = EpochRecord.parse(node.data)
        return Settled(record.durable, record.epoch)


@dataclass
class Installation:
    """What tests get: the store with its fault switches, and managers and oracles at will."""

    store: FaultyCellStore = field(default_factory=FaultyCellStore)
    tree: MemoryTree = field(default_factory=MemoryTree)
    find_primary: Callable[[], str | None] = lambda: None
    lease_ms: int = LEASE_MS
    """Of the oracles that are yet to be made."""
    _managers: list[TransactionManager] = field(default_factory=list)
    _oracles: list[OracleThread] = field(default_factory=list)

    def oracle(self, name: str = "a", limits: Limits | None = None) -> OracleThread:
        settings = ServeSettings(
            name,
            zookeeper=SETTINGS.zookeeper,
            thrift=SETTINGS.thrift,
            listen_port=0,
            root=SETTINGS.root,
            limits=limits or small_limits(),
            lease=LeaseSettings(lease_ms=self.lease_ms),
        )
        oracle = OracleThread(settings, MemoryCoordinator(self.tree), self.store)
        self._oracles.append(oracle)
        return oracle

    def serve(self, limits: Limits | None = None) -> None:
        """Have a first primary, which managers find."""
        primary = self.oracle(limits=limits)
        primary.await_primary()
        self.find_primary = lambda: primary.address

    def manager(
        self,
        *,
        settings: ClientSettings = SETTINGS,
        hooks: TransactionHooks | None = None,
        metrics: ClientMetrics | None = None,
    ) -> TransactionManager:
        manager = TransactionManager(settings, self.store, InstallationDirectory(self), hooks=hooks, metrics=metrics)
        self._managers.append(manager)
        return manager

    def close(self) -> None:
        for manager in self._managers:
            manager.close()
        for oracle in self._oracles:
            oracle.stop()


@pytest.fixture(autouse=True)
def made_anew_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """A table that was dropped; as if time had passed."""
    monkeypatch.setattr("client.catalog.stored_entries.REMADE_AFTER_SECONDS_MIN", 0.0)


@pytest.fixture
def empty_installation() -> Iterator[Installation]:
    """No oracle yet."""
    installation = Installation()
    yield installation
    installation.close()


@pytest.fixture
def installation(empty_installation: Installation) -> Installation:
    """One primary oracle, and a table ``t`` with the families f and g."""
    empty_installation.serve()
    empty_installation.manager().create_table("t", ["f", "g"])
    return empty_installation


@pytest.fixture
def manager(installation: Installation) -> TransactionManager:
    return installation.manager()


def written_plainly(manager: TransactionManager) -> Transaction:
    transaction = manager.transaction()
    transaction.put("t", b"r", {A: b"late"})
    return transaction


def written_conflict_free(manager: TransactionManager) -> Transaction:
    transaction = manager.transaction()
    transaction.put("t", b"r", {A: b"late"}, conflict_free=True)
    return transaction


def in_bulk(manager: TransactionManager, puts: Sequence[RowPut]) -> Transaction:
    """A transaction into which one bulk write has written these, as they are stored, to table ``t``."""
    transaction = manager.transaction()
    handle = transaction.handle()
    job = manager.open_job(handle)
    manager.attempt_writer(handle, "t", job, partition=0, attempt=0).write(CellColumns.of_puts(puts))
    manager.seal_job(handle, job, [(0, 0)])
    return transaction


def written_in_bulk(manager: TransactionManager) -> Transaction:
    return in_bulk(manager, [RowPut(b"r", {A: encode_value(b"late")})])


def begun(manager: TransactionManager) -> TransactionHandle:
    """What has begun, and is of no use yet."""
    begun = manager.oracle.begin()
    return TransactionHandle(begun.first_start_timestamp, begun.snapshot, begun.epoch, manager.settings)


@pytest.fixture(params=[written_plainly, written_conflict_free, written_in_bulk])
def write(request: pytest.FixtureRequest) -> Callable[[TransactionManager], Transaction]:
    """Begins a transaction that writes b"late" to f:a of row r in table ``t``, each time in another way."""
    of: Callable[[TransactionManager], Transaction] = request.param
    return of
