"""What a store holds, in plain values: cells, rows, families, ranges of keys, and the bounds of keys and timestamps.

Pure. All other limits stand with their checks, in `store.validation`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final, NamedTuple

ROW_KEY_BYTES_MAX = 32_512
"""HBase keeps a row key's length in a signed 16-bit integer, and looks a row's region up under a longer key: the
table's name (200 bytes at most in this room), the row key and a number. A longer row key fails or not, depending on
what the gateway has looked up before."""

CELL_TIMESTAMP_MAX = 2**63 - 2
"""The largest cell timestamp. HBase has signed 64-bit ones, and puts the server's time in place of the very largest."""

ALL_VERSIONS = 2**31 - 1
"""``Family.versions_max`` of a family that never drops a version by itself."""


FOR_EVER_SECONDS = 2**31 - 1
"""``Family.lives_seconds_max`` of a family that never drops a cell for its age."""


class Cell(NamedTuple):
    """One version of one column."""

    value: bytes
    timestamp: int


Row = Mapping[bytes, Cell]
"""Of one row: column ``b"family:qualifier"`` → its newest cell below the bound that the read named."""


class RowPut(NamedTuple):
    """Columns to write in one row; all land, or none (HBase writes a row atomically)."""

    row: bytes
    columns: Mapping[bytes, bytes]


@dataclass(frozen=True, slots=True)
class Family:
    """A column family: its name, how many versions of a column the store keeps, and for how long after the moment
    that their timestamps say in milliseconds.
    """

    name: str
    versions_max: int = ALL_VERSIONS
    lives_seconds_max: int = FOR_EVER_SECONDS


class KeyRange(NamedTuple):
    """Rows with ``start <= key < stop``; an empty ``stop`` means up to the end of the table."""

    start: bytes
    stop: bytes


ALL_ROWS: Final = KeyRange(b"", b"")
"""Of a table."""
