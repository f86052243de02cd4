"""Rows that a request names, of several tables, read together: as many of them as an answer may hold, and those
guarded where that is asked for.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Final, NamedTuple, Protocol

from client import Transaction
from client.cells import row_bytes

READ_FIRST: Final = 16
"""Rows that are asked for before anything is known of their size."""
READ_TOGETHER_MAX: Final = 500


class Read(NamedTuple):
    """A row, and which columns of it; ``None``: all of them."""

    table: str
    row: bytes
    columns: tuple[bytes, ...] | None


class Source(Protocol):
    """A transaction or a snapshot."""

    def get_many(
        self, table: str, rows: Collection[bytes], columns: Sequence[bytes] | None = None
    ) -> dict[bytes, dict[bytes, bytes]]:
        """Rows by their keys."""
        ...


def read_all(source: Source, reads: Sequence[Read], bytes_max: int) -> list[dict[bytes, bytes]]:
    """Column → value of each row, in the order of ``reads``; empty where there is none.

    Of one row at least; of the others as long as all have no more than ``bytes_max`` bytes. Raises as ``get_many``.
    """
    found: list[dict[bytes, bytes]] = []
    found_bytes, together = 0, READ_FIRST
    while len(found) < len(reads):
        some = reads[len(found) : len(found) + together]
        for read, values in zip(some, _together(source, some), strict=True):
            found_bytes += row_bytes(read.row, values)
            if found and found_bytes > bytes_max:
                return found
            found.append(values)
        bytes_each = max(1, found_bytes // len(found))
        together = max(1, min(READ_TOGETHER_MAX, (bytes_max - found_bytes) // bytes_each))
    return found


def read_and_guard(transaction: Transaction, reads: Sequence[Read], bytes_max: int) -> list[dict[bytes, bytes]]:
    """``read_all``, and the rows that it gave are guarded. Raises as ``Transaction.guard``, and some of them may be."""
    found = read_all(transaction, reads, bytes_max)
    for (table, columns), rows in _alike(reads[: len(found)]).items():
        transaction.guard(table, rows, columns)
    return found


def _together(source: Source, reads: Sequence[Read]) -> list[dict[bytes, bytes]]:
    """By one call for each table and choice of columns."""
    alike = _alike(reads)
    found = {(table, columns): source.get_many(table, keys, columns) for (table, columns), keys in alike.items()}
    return [found[table, columns].get(row, {}) for table, row, columns in reads]


def _alike(reads: Sequence[Read]) -> dict[tuple[str, tuple[bytes, ...] | None], list[bytes]]:
    """Table and choice of columns → rows."""
    rows: dict[tuple[str, tuple[bytes, ...] | None], list[bytes]] = {}
    for table, row, columns in reads:
        rows.setdefault((table, columns), []).append(row)
    return rows
