"""Making tables: one that whoever needs it first makes, and one like another."""

from __future__ import annotations

from collections.abc import Sequence

from store.cells import Family
from store.errors import TableExists
from store.protocol import CellStore


def create_missing(store: CellStore, table: str, families: Sequence[Family], split_keys: Sequence[bytes] = ()) -> None:
    """Make a table unless it is there; several processes may do so at once. Raises ``StoreUnavailable``.

    The list of tables is asked for first: whoever may not make one has no need to, where it is there.
    """
    if table in store.table_names():
        return
    try:
        store.create_table(table, families, split_keys)
    except TableExists:
        return  # another process was faster


def split_keys_of(store: CellStore, table: str) -> list[bytes]:
    """Where all regions of a table begin but the first one, as ``create_table`` takes it.

    Raises ``TableMissing``, ``StoreUnavailable``.
    """
    return [region.start for region in store.regions(table)[1:]]


def even_split_keys(first_bytes: int, regions: int) -> list[bytes]:
    """The same for ``regions`` regions of a table whose keys begin with one of so many bytes, from 0 on, each as often
    as the others: with as many of them in each region, give or take one.
    """
    return [bytes((first_bytes * region // regions,)) for region in range(1, regions)]
