"""A table that is made by whoever needs it first."""

from __future__ import annotations

from collections.abc import Sequence

from store.cells import Family
from store.errors import TableExists
from store.protocol import CellStore


def create_missing(store: CellStore, table: str, families: Sequence[Family]) -> None:
    """Make a table unless it is there; several processes may do so at once. Raises ``StoreUnavailable``.

    The list of tables is asked for first: whoever may not make one has no need to, where it is there.
    """
    if table in store.table_names():
        return
    try:
        store.create_table(table, families)
    except TableExists:
        return  # another process was faster
