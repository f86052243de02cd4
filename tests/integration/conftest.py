"""Real processes for integration tests: an oracle on the shared services, with its own znode root and tables."""

from __future__ import annotations

import signal
import sys
import uuid
from collections.abc import Iterator
from dataclasses import dataclass

import pytest

from access.services import GATEWAY, ZOOKEEPER, TlsFiles
from benchmarks.compiled_code import Code, compiled_code
from client import ClientSettings, TransactionManager
from commit_table import CommitTable, table_name
from store.hbase import HBaseCellStore
from tests.conftest import Services
from tests.integration.oracle_processes import (
    LONG_LEASE_MS,
    SHORT_LIFE_MS,
    OracleProcess,
    OracleWithRest,
    flags_of,
    primary,
)

COMPILING_SECONDS_MAX = 3_000
"""For a test that has what it needs compiled before, which another process may be doing, on a slow machine."""


@pytest.fixture(scope="session")
def compiled() -> Code:
    """The project compiled; as it is installed where there is no compiler, which is said."""
    return compiled_code(lambda step: print(step.text, file=sys.stderr))


@pytest.fixture(scope="session")
def oracle(services: Services) -> Iterator[ClientSettings]:
    """Where a primary oracle serves, of an installation that no other test run shares."""
    root = f"/pythia-test-{uuid.uuid4().hex[:8]}"
    settings = ClientSettings(zookeeper=services.zookeeper, thrift=services.thrift, root=root)
    with primary(settings):
        yield settings


@pytest.fixture(scope="session")
def manager(oracle: ClientSettings) -> Iterator[TransactionManager]:
    """One manager for a test run; tests take tables or rows of their own."""
    with TransactionManager.connect(oracle) as manager:
        yield manager


class Oracle(OracleProcess):
    """One that tests of failover may kill."""

    def __init__(self, name: str, settings: ClientSettings, lease_ms: int) -> None:
        super().__init__(settings, name=name, lease_ms=lease_ms)
        self.address = self.until_standby()


@dataclass
class Installation:
    """A root of its own on the shared services, and the processes started on it."""

    services: Services
    root: str
    table: CommitTable
    oracles: list[Oracle]

    @property
    def settings(self) -> ClientSettings:
        """By which its clients find it."""
        return ClientSettings(zookeeper=self.services.zookeeper, thrift=self.services.thrift, root=self.root)

    def start(self, name: str, lease_ms: int = LONG_LEASE_MS) -> Oracle:
        self.oracles.append(Oracle(name, self.settings, lease_ms))
        return self.oracles[-1]


@pytest.fixture
def installation(services: Services) -> Iterator[Installation]:
    root = f"/tso-process-{uuid.uuid4().hex[:8]}"
    store = HBaseCellStore(services.thrift)
    made = Installation(services, root, CommitTable(store, table_name(root)), [])
    try:
        yield made
    finally:
        for oracle in made.oracles:
            oracle.end(signal.SIGKILL)
        if table_name(root) in store.table_names():
            store.drop_table(table_name(root))
        store.close()


@pytest.fixture
def oracle_of_its_own(services: Services) -> Iterator[tuple[ClientSettings, OracleProcess]]:
    """An installation whose oracle soon gives up what it hears nothing of."""
    settings = ClientSettings(services.zookeeper, services.thrift, root=f"/forgetful-{uuid.uuid4().hex[:8]}")
    serving = OracleProcess(settings, "--limit", f"transaction_life_ms={SHORT_LIFE_MS}")
    try:
        serving.until_standby()
        serving.until_primary()
        yield settings, serving
    finally:
        serving.end()


@pytest.fixture
def forgetful(oracle_of_its_own: tuple[ClientSettings, OracleProcess]) -> Iterator[TransactionManager]:
    """A manager of that installation; and its tables' end."""
    settings, _ = oracle_of_its_own
    with TransactionManager.connect(settings) as manager:
        yield manager
        for table in manager.store.table_names():
            if settings.root.strip("/") in table:
                manager.store.drop_table(table)


def _tls_settings(tls: TlsFiles) -> dict[str, str]:
    services = (GATEWAY, ZOOKEEPER)
    return {TlsFiles.setting(service, name): path for service in services for name, path in tls.named().items()}


@pytest.fixture
def secured_settings(secured: Services) -> ClientSettings:
    """Of an installation of its own, whose ZooKeeper and gateway speak TLS and ask for a certificate."""
    root = f"/pythia-tls-{uuid.uuid4().hex[:8]}"
    return ClientSettings(secured.zookeeper, secured.thrift, root, **_tls_settings(secured.tls))  # type: ignore[arg-type]


@pytest.fixture
def secured_oracle(secured: Services, secured_settings: ClientSettings) -> Iterator[OracleWithRest]:
    oracle = OracleWithRest("a", secured_settings, *flags_of(_tls_settings(secured.tls)))
    try:
        oracle.until_primary()
        yield oracle
    finally:
        oracle.end()
