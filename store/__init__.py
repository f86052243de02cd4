"""Cells behind one small Protocol: HBase through happybase, and a twin in memory.

HBase's adapter is imported from ``store.hbase``, so that whoever needs only the Protocol or the twin loads no Thrift.
"""

from store.cells import (
    ALL_ROWS,
    ALL_VERSIONS,
    CELL_TIMESTAMP_MAX,
    FOR_EVER_SECONDS,
    ROW_KEY_BYTES_MAX,
    Cell,
    Family,
    KeyRange,
    Row,
    RowPut,
)
from store.errors import (
    CannotPreSplit,
    InvalidCell,
    StoreClosed,
    StoreError,
    StoreUnavailable,
    TableExists,
    TableMissing,
)
from store.memory import MemoryCellStore
from store.protocol import Applied, CellStore, CompareAndSet, Rejected, Unknown

__all__ = [
    "ALL_ROWS",
    "ALL_VERSIONS",
    "CELL_TIMESTAMP_MAX",
    "FOR_EVER_SECONDS",
    "ROW_KEY_BYTES_MAX",
    "Applied",
    "CannotPreSplit",
    "Cell",
    "CellStore",
    "CompareAndSet",
    "Family",
    "InvalidCell",
    "KeyRange",
    "MemoryCellStore",
    "Rejected",
    "Row",
    "RowPut",
    "StoreClosed",
    "StoreError",
    "StoreUnavailable",
    "TableExists",
    "TableMissing",
    "Unknown",
]
