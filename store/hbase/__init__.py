"""HBase's Thrift gateway as a ``CellStore``: an adapter, a pool of connections, settings with limits."""

from store.hbase.adapter import HBaseCellStore
from store.hbase.settings import PoolSettings, RequestLimits

__all__ = ["HBaseCellStore", "PoolSettings", "RequestLimits"]
