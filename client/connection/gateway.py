"""The way to HBase, from where its settings say that it is."""

from __future__ import annotations

from access.tls import BadTls
from client.errors import InvalidSettings
from client.settings import ClientSettings
from store.hbase import HBaseCellStore, PoolSettings
from store.hbase.tls_files import TlsFiles


def store_of(settings: ClientSettings) -> HBaseCellStore:
    """Nothing is connected yet. Raises ``InvalidSettings`` for files of TLS that cannot be used."""
    pool = PoolSettings(
        connections_max=settings.store_connections_max,
        unavailable_after_ms=settings.deadline_ms,
        tls=TlsFiles.named_in(settings),
    )
    try:
        return HBaseCellStore(settings.thrift, pool)
    except BadTls as error:
        raise InvalidSettings(f"thrift {settings.thrift}: {error}") from error
