"""How far each import, copy and restore has come, on record in the very transactions that land its rows.

The record is one row for each of them, in a table of its own. Hence the invariants: what it says has landed has landed,
whoever died when; and of two processes that run one import at a time only one can commit.

An import is told from others by the table's incarnation and by what lands in it, so that running a command again goes
on where it stopped, and a table that was dropped and made anew is filled anew.
"""

from __future__ import annotations

import hashlib
from typing import Final, NamedTuple

from client.catalog.record_tables import IMPORTS
from client.cells import encode_value
from client.errors import InvalidRequest
from client.manager import TransactionManager
from client.transactions.transaction import Transaction
from store import RowPut

_ROWS: Final = b"i:rows"
_LAST_KEY: Final = b"i:last_key"


class Progress(NamedTuple):
    """``rows`` have landed; ``last_key``: of them the row key that was last, where that says where to go on."""

    rows: int = 0
    last_key: bytes = b""


class ImportRecord:
    """How much of one import has landed. Makes the installation's table for such records where it is missing.

    ``what``: text that tells it from others into the same table.
    """

    def __init__(self, manager: TransactionManager, table: str, what: str) -> None:
        self._manager = manager
        incarnation = manager.catalog.incarnation(table)
        self._row = table.encode() + b"\x00" + hashlib.sha256(f"{incarnation} {what}".encode()).hexdigest().encode()
        self.table = manager.catalog.create_record_table(IMPORTS)

    def read(self) -> Progress:
        """As it has committed by now. Raises ``NoPrimary``, ``StoreUnavailable``."""
        return _parsed(self._manager.snapshot().get(self.table, self._row))

    def require(self, transaction: Transaction, expected: Progress) -> None:
        """Raise ``InvalidRequest`` where somebody else has landed rows of the import by the transaction's snapshot.

        Who lands them later conflicts with the transaction.
        """
        found = _parsed(transaction.get(self.table, self._row))
        if found != expected:
            raise InvalidRequest(f"another process lands the same: it has landed {found.rows:,} rows; let it end")

    def put(self, progress: Progress) -> RowPut:
        """The row to write beside the rows that land."""
        values = {_ROWS: str(progress.rows).encode(), _LAST_KEY: progress.last_key}
        return RowPut(self._row, {column: encode_value(value) for column, value in values.items()})


def _parsed(values: dict[bytes, bytes]) -> Progress:
    return Progress(int(values.get(_ROWS, b"0")), values.get(_LAST_KEY, b""))
