"""What a request writes into a transaction: how much room it takes, and that all of it is taken or nothing."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from client import Transaction
from client.transactions.claims import KEY_BYTES_MAX
from client.transactions.write_buffer import CELL_OVERHEAD_BYTES


@dataclass(frozen=True, slots=True)
class Put:
    """Columns of a row to write."""

    table: str
    row: bytes
    values: dict[bytes, bytes]

    @property
    def size_bytes(self) -> int:
        """What it takes here, about."""
        return _size(self.row, [len(column) + len(value) for column, value in self.values.items()])


@dataclass(frozen=True, slots=True)
class Delete:
    """Columns of a row to delete; ``None``: all that the transaction sees."""

    table: str
    row: bytes
    columns: list[bytes] | None

    @property
    def size_bytes(self) -> int:
        """What it takes here, about; of columns that are not named nothing is known before."""
        return _size(self.row, [len(column) for column in self.columns or (b"",)])


Write = Put | Delete
CLAIM_BYTES_MAX: Final = KEY_BYTES_MAX + CELL_OVERHEAD_BYTES + 300
"""What a claim takes here at most, about: a row that is named after a table and a key."""


def write_all(transaction: Transaction, writes: Sequence[Write]) -> None:
    """A savepoint makes many writes all or nothing; one is that by itself."""
    if len(writes) == 1:
        _write(transaction, writes[0])
        return
    with transaction.savepoint():
        for write in writes:
            _write(transaction, write)


def _write(transaction: Transaction, write: Write) -> None:
    if isinstance(write, Put):
        transaction.put(write.table, write.row, write.values)
    else:
        transaction.delete(write.table, write.row, write.columns)


def _size(row: bytes, cells: Sequence[int]) -> int:
    return sum(len(row) + cell + CELL_OVERHEAD_BYTES for cell in cells)
