"""The services that the demo runs on: ZooKeeper and HBase of its own or given ones, and two oracles.

Invariant: what was started here is ended here, whatever happens, unless it is to be kept. A ``guard`` sees to it where
the demo itself is killed; where there is none, it is to be kept.
"""

from __future__ import annotations

import secrets
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from kazoo.client import KazooClient
from kazoo.handlers.threading import KazooTimeoutError

import devcluster
from client import ClientSettings
from demo.errors import DemoError
from demo.oracles import OracleOptions, Oracles
from demo.tables import TableNames
from devcluster.guard import Guard
from store.hbase import HBaseCellStore

CONNECT_SECONDS_MAX: Final = 10.0


@dataclass(frozen=True, slots=True)
class Installation:
    """Where the demo's transactions live."""

    settings: ClientSettings
    names: TableNames


@contextmanager
def own_cluster(directory: Path, *, progress: devcluster.Progress, guard: Guard | None) -> Iterator[Installation]:
    """A new, empty ZooKeeper and HBase in ``directory``. Raises ``DevClusterError``."""
    devcluster.down(directory, wipe=True, progress=progress)
    wipe = False  # after an error the cluster's logs are of use
    if guard is not None:
        guard.watch_cluster(directory, wipe=wipe)
    try:
        cluster = devcluster.up(devcluster.ClusterSettings(directory), progress)
        yield Installation(ClientSettings(cluster.zookeeper, cluster.thrift), TableNames())
        wipe = True
    finally:
        if guard is not None:
            devcluster.down(directory, wipe=wipe, progress=progress)


@contextmanager
def given_cluster(zookeeper: str, thrift: str, *, keep: bool) -> Iterator[Installation]:
    """A given ZooKeeper and HBase, on which the demo has tables and a znode of names that nobody else uses.

    Raises ``StoreUnavailable``, ``DemoError`` when they cannot be reached.
    """
    with _connected(zookeeper, thrift) as (store, _):
        store.table_names()
    name = f"demo_{secrets.token_hex(4)}"
    installation = Installation(ClientSettings(zookeeper, thrift, root=f"/{name}"), TableNames(f"{name}_"))
    try:
        yield installation
    finally:
        if not keep:
            _remove(installation)


def _remove(installation: Installation) -> None:
    """Drop the demo's tables, the installation's own ones included, and its znodes."""
    settings = installation.settings
    with _connected(settings.zookeeper, settings.thrift) as (store, client):
        for table in store.table_names():
            if table.startswith(installation.names.prefix):
                store.drop_table(table)
        client.delete(settings.root, recursive=True)


@contextmanager
def _connected(zookeeper: str, thrift: str) -> Iterator[tuple[HBaseCellStore, KazooClient]]:
    with ExitStack() as stack:
        client = KazooClient(zookeeper)
        stack.callback(client.close)
        stack.callback(client.stop)
        try:
            client.start(CONNECT_SECONDS_MAX)
        except KazooTimeoutError as error:
            raise DemoError(f"no ZooKeeper answered at {zookeeper} within {CONNECT_SECONDS_MAX:.0f} s") from error
        store = HBaseCellStore(thrift)
        stack.callback(store.close)
        yield store, client


@contextmanager
def oracles(settings: ClientSettings, logs: Path, options: OracleOptions, *, guard: Guard | None) -> Iterator[Oracles]:
    """A primary and a standby. Raises ``ProcessFailed``."""
    with ExitStack() as stack:
        started = Oracles(settings, logs, options, guard)
        stack.callback(started.stop)
        started.start_all()
        if guard is None:
            stack.pop_all()
        yield started
