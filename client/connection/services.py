"""The ways to HBase and to ZooKeeper, from where settings say that these are."""

from __future__ import annotations

from access.kerberos import BadKerberos
from access.services import GATEWAY, ZOOKEEPER, Kerberos, TlsFiles
from access.tls import BadTls
from client.errors import InvalidSettings
from client.settings import ClientSettings
from lease.zookeeper import ZooKeeperCoordinator
from store.hbase import HBaseCellStore, PoolSettings


def store_of(settings: ClientSettings) -> HBaseCellStore:
    """Nothing is connected yet. Raises ``InvalidSettings`` for what no TLS or Kerberos can be spoken with."""
    pool = PoolSettings(
        connections_max=settings.store_connections_max,
        unavailable_after_ms=settings.deadline_ms,
        tls=TlsFiles.named_in(settings, GATEWAY),
        kerberos=Kerberos.named_in(settings, GATEWAY),
    )
    try:
        return HBaseCellStore(settings.thrift, pool, thrift2=settings.thrift2)
    except (BadTls, BadKerberos) as error:
        named = f"thrift {settings.thrift}" + (f", thrift2 {settings.thrift2}" if settings.thrift2 else "")
        raise InvalidSettings(f"{named}: {error}") from error


def zookeeper_of(settings: ClientSettings, connect_timeout_ms: int = 10_000) -> ZooKeeperCoordinator:
    """A session, connected. Raises what ``ZooKeeperCoordinator`` does."""
    return ZooKeeperCoordinator(
        settings.zookeeper,
        tls=TlsFiles.named_in(settings, ZOOKEEPER),
        kerberos=Kerberos.named_in(settings, ZOOKEEPER),
        connect_timeout_ms=connect_timeout_ms,
    )
