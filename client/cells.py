"""How a transaction's cells look in a data table. Pure.

* A *tentative version* is an ordinary cell at HBase timestamp = start timestamp.
* The *shadow cell*, one per row, family and transaction, lies beside it at the same timestamp under a reserved
  qualifier that sorts first. Its value is the commit timestamp, or 0 for an aborted transaction. (Omid writes one
  shadow cell per cell; a transaction commits as a whole, so one per row and family says as much.)
* A *tombstone* is a value that says "deleted": a native HBase delete would cover older versions that older snapshots
  still read.
* The *row marker* says "this row exists" where a layer above has rows without values.

Values are stored as they are, so that other readers of the table understand them, except those that begin with the
tombstone's byte: they get it once more in front. 0xC1 was chosen since it never begins UTF-8 text.
"""

from __future__ import annotations

import struct
from collections.abc import Collection, Iterable, Mapping
from functools import lru_cache
from typing import TypeAlias

import numpy as np
import numpy.typing as npt
import xxhash

from client.errors import InvalidRequest
from client.key_hashing import hashed_part, hashes_of_cells, hashes_of_rows
from store import ROW_KEY_BYTES_MAX, InvalidCell, RowPut
from store.columns import CellColumns
from store.validation import check_puts

RESERVED_PREFIX = b"\x00"
SHADOW_QUALIFIER = b"\x00"
ROW_MARKER_QUALIFIER = b"\x00row"
ROW_MARKER_VALUE = b"\x01"
TOMBSTONE = b"\xc1"

ABORTED_SHADOW = 0
"""What a shadow cell holds in place of a commit timestamp when the transaction aborted."""

COLUMNS_REMEMBERED_MAX = 2**16
"""Columns whose parts are kept taken apart: a scan asks for those of each cell, and a table has few different ones."""

ConflictKeys: TypeAlias = npt.NDArray[np.uint64]
"""Ids of cells or rows, as the oracle compares them."""

_TIMESTAMP = struct.Struct(">q")


@lru_cache(COLUMNS_REMEMBERED_MAX)
def family_of(column: bytes) -> bytes:
    """The family's name in ``b"family:qualifier"``."""
    return column.partition(b":")[0]


def shadow_column(family: bytes) -> bytes:
    """The column of a family's shadow cells."""
    return family + b":" + SHADOW_QUALIFIER


def row_marker_column(family: bytes) -> bytes:
    """The column of a family's row markers."""
    return family + b":" + ROW_MARKER_QUALIFIER


@lru_cache(COLUMNS_REMEMBERED_MAX)
def is_shadow(column: bytes) -> bool:
    """Whether a column holds shadow cells."""
    return column.partition(b":")[2] == SHADOW_QUALIFIER


@lru_cache(COLUMNS_REMEMBERED_MAX)
def is_reserved(column: bytes) -> bool:
    """Whether a column belongs to Pythia: its qualifier begins with a zero byte."""
    return column.partition(b":")[2].startswith(RESERVED_PREFIX)


def without_reserved(values: Mapping[bytes, bytes]) -> dict[bytes, bytes]:
    """What a caller gets to see of a row's columns."""
    return {column: value for column, value in values.items() if not is_reserved(column)}


def row_bytes(row: bytes, values: Mapping[bytes, bytes]) -> int:
    """How large a row is for whoever gets it: its key, columns and values."""
    return len(row) + sum(len(column) + len(value) for column, value in values.items())


def encode_shadow(commit_timestamp: int) -> bytes:
    """A shadow cell's value: a commit timestamp or ``ABORTED_SHADOW``."""
    return _TIMESTAMP.pack(commit_timestamp)


def decode_shadow(value: bytes) -> int:
    """A commit timestamp or ``ABORTED_SHADOW``."""
    commit_timestamp: int = _TIMESTAMP.unpack(value)[0]
    return commit_timestamp


def encode_value(value: bytes) -> bytes:
    """A value as it is stored."""
    return TOMBSTONE + value if value.startswith(TOMBSTONE) else value


def decode_value(stored: bytes) -> bytes | None:
    """The value, or ``None`` for a tombstone."""
    if not stored.startswith(TOMBSTONE):
        return stored
    return stored[1:] if len(stored) > 1 else None


def cell_id(table: str, row: bytes, column: bytes) -> int:
    """The 64-bit hash by which the oracle knows a cell; two cells with one hash conflict needlessly, never wrongly."""
    return xxhash.xxh3_64_intdigest(_hashed_parts(table, row) + column)


def row_id(table: str, row: bytes) -> int:
    """The 64-bit hash by which the oracle knows a row of a table with row-level conflicts."""
    return xxhash.xxh3_64_intdigest(_hashed_parts(table, row))


def guard_id(catalog_table: str, table: str) -> int:
    """The conflict key that a fence of a table writes, and all its writers guard (``client.transactions.guards``).

    It is the id of the table's own row in the catalog's table. Applications have no cells there, and an id takes in the
    table's name with its length: so it meets the key of a data cell by chance only, as any two ids may.
    """
    return row_id(catalog_table, table.encode())


def write_set(table: str, rows: Mapping[bytes, Iterable[bytes]], *, by_row: bool) -> set[int]:
    """The conflict keys of rows and the columns written in each: ids of the rows, or of each cell."""
    if by_row:
        return {row_id(table, row) for row in rows}
    return {cell_id(table, row, column) for row, columns in rows.items() for column in columns}


def write_set_of_columns(table: str, cells: CellColumns, *, by_row: bool) -> ConflictKeys:
    """The same of rows that come as columns, each key once for each of them."""
    before = hashed_part(table.encode())
    if by_row:
        return hashes_of_rows(before, cells.data, cells.key_starts, cells.key_lengths)
    return hashes_of_cells(before, cells)


def validate_row(row: bytes) -> None:
    """Raise ``InvalidRequest`` for a row key that HBase cannot hold."""
    if not isinstance(row, bytes):
        raise InvalidRequest(f"a row key is bytes, not {type(row).__name__}: encode it")
    if not 1 <= len(row) <= ROW_KEY_BYTES_MAX:
        raise InvalidRequest(f"a row key has 1 to {ROW_KEY_BYTES_MAX:,} bytes, not {len(row):,}")


def validate_column(column: bytes) -> None:
    """Raise ``InvalidRequest`` for a column that is not the caller's to name."""
    if not isinstance(column, bytes):
        raise InvalidRequest(f"a column is bytes, b'family:qualifier', not {type(column).__name__}")
    family, colon, _ = column.partition(b":")
    if not family or not colon:
        raise InvalidRequest(f"a column is b'family:qualifier', not {column!r}")
    if is_reserved(column):
        raise InvalidRequest(f"column {column!r} is reserved: a qualifier may not begin with a zero byte")


def require_list(columns: object) -> None:
    """Raise ``InvalidRequest`` for columns that are no list: a single one would be taken apart into its bytes, and what
    can be gone through only once names nothing any more when it is used.
    """
    if isinstance(columns, (bytes, str)):
        raise InvalidRequest(f"columns are a list of names, b'family:qualifier': write [{columns!r}]")
    if not isinstance(columns, Collection):
        raise InvalidRequest(f"columns are a list of names, b'family:qualifier', not {columns!r}: write list(…)")


def validate_columns(columns: Collection[bytes]) -> None:
    """Raise ``InvalidRequest`` for columns that cannot be deleted; of none at all it cannot be said what is meant."""
    require_list(columns)
    if not columns:
        raise InvalidRequest("columns names nothing: name at least one column, or leave it out to delete them all")
    for column in columns:
        validate_column(column)


def validate_choice(column: bytes) -> None:
    """Raise ``InvalidRequest`` for what names neither a family nor a column to read."""
    if isinstance(column, bytes) and column and b":" not in column:
        return
    validate_column(column)


def stored_values(row: bytes, values: Mapping[bytes, bytes], timestamp: int) -> dict[bytes, bytes]:
    """What a put of these values stores in a row.

    Raises ``InvalidRequest`` for what the store would refuse once it is too late to do anything about it.
    """
    validate_row(row)
    if not isinstance(values, Mapping):
        raise InvalidRequest(f"put takes a dictionary, {{b'family:qualifier': b'value'}}, not {values!r}")
    if not values:
        raise InvalidRequest("put writes at least one column")
    for column, value in values.items():
        validate_column(column)
        if not isinstance(value, bytes):
            raise InvalidRequest(f"a value is bytes, not {type(value).__name__}: encode it")
    stored = {column: encode_value(value) for column, value in values.items()}
    try:
        check_puts([RowPut(row, stored)], timestamp)
    except InvalidCell as error:
        raise InvalidRequest(str(error)) from error
    return stored


def _hashed_parts(table: str, row: bytes) -> bytes:
    return hashed_part(table.encode()) + hashed_part(row)
