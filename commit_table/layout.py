"""Where a transaction's record lies in the commit table.

One row per millisecond of start timestamps, one column per transaction. A busy millisecond is then one row with many
columns, which HBase takes several times faster than as many rows, and finished time is dropped by whole rows.

==========  =====================================================================================
row key     1 salt byte (a hash of the block) + the block, ``start_timestamp >> 18``, 8 bytes
``c:tx``    the commit timestamp, 8 bytes; the *cell timestamp is the epoch* that wrote it, so that
            a deposed oracle's late write can never cover a newer epoch's
``f:txF``   a fence at F: the qualifier names it, so that fences never overwrite one another
``f:lasting`` and ``tx``: the record *lasts*, for as long as the transaction has cells without a
            shadow cell. It lies among the fences, which are read whole, so that it costs no
            request; the first byte of a ``tx`` is 3 at most
==========  =====================================================================================

``tx`` is the low 18 bits of the start timestamp in 3 bytes. Integers are big-endian. The salt spreads neighbouring
milliseconds over the key space, for a table of several regions.
"""

from __future__ import annotations

import struct
from collections.abc import Collection, Iterable, Iterator

from commit_table.rule import TransactionRecord
from commit_table.timestamps import COUNTER_BITS, TIMESTAMP_MAX, counter_of
from store import Family, KeyRange, Row
from store.making import even_split_keys

COMMIT_FAMILY = Family("c", versions_max=1)
FENCE_FAMILY = Family("f", versions_max=1)
FENCE_COLUMNS = b"f"
FENCE_VALUE = b"\x01"
_LASTING = b"f:lasting"
OWN_ROW = b"\x00"
"""Of the installation itself, and no transaction's: it sorts before them all."""

_TIMESTAMP = struct.Struct(">q")
COUNTER_BYTES = 3
SALTS = 256
GOLDEN_RATIO_64 = 0x9E3779B97F4A7C15  # Fibonacci hashing (Knuth, TAOCP 6.4): spreads consecutive integers evenly
_MASK_64 = 2**64 - 1


def row_key(start_timestamp: int) -> bytes:
    """The row that holds a transaction's record. Raises ``ValueError`` for an integer that is no timestamp."""
    if not 0 < start_timestamp < TIMESTAMP_MAX:
        raise ValueError(f"a start timestamp lies between 0 and {TIMESTAMP_MAX}, not {start_timestamp}")
    block = start_timestamp >> COUNTER_BITS
    salt = (block * GOLDEN_RATIO_64 & _MASK_64) >> 56
    return bytes((salt,)) + _TIMESTAMP.pack(block)


def rows_before(block: int) -> Iterator[KeyRange]:
    """Where the rows of all blocks below ``block`` lie, the installation's own not among them."""
    for salt in range(SALTS):
        prefix = bytes((salt,))
        yield KeyRange(prefix + _TIMESTAMP.pack(0), prefix + _TIMESTAMP.pack(block))


def split_keys(regions: int) -> list[bytes]:
    """Where all of so many regions begin but the first one, for as many salts in each, give or take one.

    Raises ``ValueError`` for fewer than one, or more than there are salts.
    """
    if not 1 <= regions <= SALTS:
        raise ValueError(f"the commit table has 1 to {SALTS} regions, one for each salt at most, not {regions}")
    return even_split_keys(SALTS, regions)


def commit_column(start_timestamp: int) -> bytes:
    """The column with the commit timestamp."""
    return b"c:" + _transaction(start_timestamp)


def fence_column(start_timestamp: int, fence: int) -> bytes:
    """The column that fences the transaction at ``fence``."""
    return b"f:" + _transaction(start_timestamp) + _TIMESTAMP.pack(fence)


def lasting_column(start_timestamp: int) -> bytes:
    """The column that says that the transaction's record stays."""
    return _LASTING + _transaction(start_timestamp)


def commit_value(commit_timestamp: int) -> bytes:
    """The commit timestamp as it is stored."""
    return _TIMESTAMP.pack(commit_timestamp)


def record_columns(start_timestamps: Iterable[int]) -> list[bytes]:
    """What to read to learn the records of these transactions; fences are few, so their family is read whole."""
    return [*{commit_column(start_timestamp) for start_timestamp in start_timestamps}, FENCE_COLUMNS]


def parse_record(start_timestamp: int, row: Row) -> TransactionRecord:
    """The record of one transaction in a row that was read with its ``record_columns``."""
    commit = row.get(commit_column(start_timestamp))
    prefix = b"f:" + _transaction(start_timestamp)
    fences = (_TIMESTAMP.unpack(column[len(prefix) :])[0] for column in row if column.startswith(prefix))
    return TransactionRecord(
        commit_timestamp=None if commit is None else _TIMESTAMP.unpack(commit.value)[0],
        largest_fence=max(fences, default=0),
        is_lasting=lasting_column(start_timestamp) in row,
    )


def columns_of_others(row: Row, start_timestamps: Collection[int]) -> list[bytes]:
    """What of a whole row is of no record of these transactions."""
    staying = {_transaction(start_timestamp) for start_timestamp in start_timestamps}
    return [column for column in row if _transaction_of(column) not in staying]


def _transaction_of(column: bytes) -> bytes:
    if column.startswith(_LASTING):
        return column[len(_LASTING) :]
    return column[len(b"c:") :][:COUNTER_BYTES]


def _transaction(start_timestamp: int) -> bytes:
    return counter_of(start_timestamp).to_bytes(COUNTER_BYTES, "big")
