"""How far each import has come, on record in the very transactions that land its rows.

The record is one cell for each import, in a table of its own. Hence the invariants: what it says has landed has landed,
whoever died when; and of two processes that run one import at a time only one can commit.

An import is told from others by the table's incarnation and the contents of its files, so that running a command again
goes on where it stopped, and a table that was dropped and made anew is filled anew.
"""

from __future__ import annotations

import hashlib
from typing import Final

from client.cells import encode_value
from client.errors import InvalidRequest
from client.manager import TransactionManager
from client.transaction import Transaction
from commit_table import system_table
from store import RowPut

PURPOSE: Final = "imports"
_FAMILY: Final = "i"
_ROWS: Final = b"i:rows"


class ImportRecord:
    """How many rows of one import have landed. Makes the installation's table for such records where it is missing."""

    def __init__(self, manager: TransactionManager, table: str, digest: str) -> None:
        self._manager = manager
        self.table = system_table(manager.settings.root, PURPOSE)
        incarnation = manager.catalog.incarnation(table)
        self._row = table.encode() + b"\x00" + hashlib.sha256(f"{incarnation} {digest}".encode()).hexdigest().encode()
        self._make_table()

    def read(self) -> int:
        """As it has committed by now. Raises ``NoPrimary``, ``StoreUnavailable``."""
        return _parsed(self._manager.snapshot().get(self.table, self._row))

    def require(self, transaction: Transaction, expected: int) -> None:
        """Raise ``InvalidRequest`` where somebody else has landed rows of the import by the transaction's snapshot.

        Who lands them later conflicts with the transaction.
        """
        found = _parsed(transaction.get(self.table, self._row))
        if found != expected:
            raise InvalidRequest(f"another process imports the same files: it has landed {found:,} rows; let it end")

    def put(self, rows: int) -> RowPut:
        """The row to write beside the rows that land."""
        return RowPut(self._row, {_ROWS: encode_value(str(rows).encode())})

    def _make_table(self) -> None:
        if self._manager.catalog.has_entry(self.table):
            return
        try:
            self._manager.create_table(self.table, [_FAMILY])
        except InvalidRequest:
            if not self._manager.catalog.has_entry(self.table):  # else another process was faster
                raise


def _parsed(values: dict[bytes, bytes]) -> int:
    return int(values.get(_ROWS, b"0"))
