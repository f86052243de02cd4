"""Up to where the commit table has been forgotten: that nothing is on record of an older transaction says nothing.

A vacuum drops the rows of transactions that ended long ago, once their cells tell what became of them, and says so
here *before*. Who finds no record looks here *then*, before an older transaction is called undecided, and fenced at
infinity: one that committed would be aborted so, for all who meet a cell of it without its shadow cell.

It lies beside the installation's level, in a row that no transaction's can be. Its cell's timestamp is the bound
itself: of several the largest stands, whoever writes last.
"""

from __future__ import annotations

from commit_table.layout import OWN_ROW
from store import CellStore, RowPut, TableMissing

COLUMN = b"c:forgotten-below"


class Forgotten(Exception):
    """What became of a transaction was on record, if it ended, and has been dropped; the text says what to do."""

    def __init__(self, start_timestamp: int, below: int) -> None:
        super().__init__(
            f"transaction {start_timestamp} cannot be aborted any more: a vacuum has dropped what was on record of "
            f"those that began before {below}; if it committed its cells are visible, and if not they never will be"
        )


def forgotten_below(store: CellStore, table: str) -> int:
    """Of transactions that began before this timestamp nothing has to be on record; 0: of none. Raises
    ``StoreUnavailable``.
    """
    try:
        cell = store.get(table, OWN_ROW, [COLUMN]).get(COLUMN)
    except TableMissing:
        return 0
    return 0 if cell is None else cell.timestamp


def forget_below(store: CellStore, table: str, below: int) -> None:
    """Say that the records of transactions that began before ``below`` are about to go. Raises ``StoreUnavailable``."""
    store.put(table, [RowPut(OWN_ROW, {COLUMN: b"%d" % below})], below)
