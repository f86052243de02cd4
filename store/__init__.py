"""Cells behind one small Protocol: HBase through happybase, and a twin in memory."""

from store.errors import InvalidCell, StoreError, StoreUnavailable, TableExists, TableMissing
from store.protocol import (
    ALL_VERSIONS,
    ROW_KEY_BYTES_MAX,
    TIMESTAMP_MAX,
    Applied,
    Cell,
    CellStore,
    CompareAndSet,
    Family,
    KeyRange,
    Rejected,
    Row,
    RowPut,
    Unknown,
)

__all__ = [
    "ALL_VERSIONS",
    "ROW_KEY_BYTES_MAX",
    "TIMESTAMP_MAX",
    "Applied",
    "Cell",
    "CellStore",
    "CompareAndSet",
    "Family",
    "InvalidCell",
    "KeyRange",
    "Rejected",
    "Row",
    "RowPut",
    "StoreError",
    "StoreUnavailable",
    "TableExists",
    "TableMissing",
    "Unknown",
]
