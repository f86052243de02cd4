"""What every writer of a table, and whoever guards its rows, checks for: that it was not fenced after its snapshot.

A *fence* of a table is a cell in the table's row of the catalog's own table, written by a transaction as any other:
tentative version, commit, shadow cell. A writer of the table carries that row's conflict key as a *guard* in its
commit, which the oracle compares and does not enter; so a fence conflicts with every writer that took its snapshot
before it, and writers do not conflict with one another through it. Where the oracle does not remember, after a failover
or an eviction, the fence lies in the data like all else that counts, and is looked for there. (Omid keeps its fences in
the memory of the oracle, where a failover loses them.)

The invariant: a transaction that wrote a table, or guards rows of it, either is decided before a fence of it, and then
commits below it, or it never commits, if its snapshot is older than the fence.
"""

from __future__ import annotations

from collections.abc import Collection
from typing import NamedTuple

from client.catalog.catalog import FENCE_FAMILY, Catalog
from client.catalog.entry import CatalogEntry
from client.cells import guard_id
from client.snapshots.reading import SnapshotReader
from client.snapshots.resolver import Resolver
from client.snapshots.visibility import View
from commit_table.timestamps import TIMESTAMP_MAX
from store import CellStore

FENCE_COLUMN = FENCE_FAMILY.encode() + b":fence"
FENCE_VALUE = b"1"

_ENTRY = CatalogEntry("row", (FENCE_FAMILY,))
_BY_NOW = View(TIMESTAMP_MAX - 1, epoch=0)
"""Whatever has committed, by as much as can be known without having anybody fenced in the commit table."""


class Fence(NamedTuple):
    """A fence that stands: of which table, and when it committed."""

    table: str
    timestamp: int


class Guards:
    """The fences of an installation's tables. Thread-safe.

    For a ``SnapshotReader`` and the judging of a commit it is what is agreed on about tables, the catalog's own among
    them, in which applications can neither read nor write.
    """

    def __init__(self, store: CellStore, resolver: Resolver, catalog: Catalog) -> None:
        self._catalog = catalog
        self.table = catalog.own_table
        """Where the fences lie: a row for each table, with conflicts by row."""
        self._reader = SnapshotReader(store, resolver, _BY_NOW, self)

    def entry(self, table: str) -> CatalogEntry:
        """As ``Catalog.entry``."""
        return _ENTRY if table == self.table else self._catalog.entry(table)

    def fresh_entry(self, table: str) -> CatalogEntry:
        """As ``Catalog.fresh_entry``."""
        return _ENTRY if table == self.table else self._catalog.fresh_entry(table)

    def keys(self, tables: Collection[str]) -> list[int]:
        """What a transaction guards that wrote these tables, or guards rows of them."""
        return [guard_id(self.table, table) for table in self._guarded(tables)]

    def fence_since(self, snapshot: int, tables: Collection[str], reader: SnapshotReader | None = None) -> Fence | None:
        """A fence of one of these tables that committed above ``snapshot``; ``None`` where there is none.

        ``reader`` says at which moment, and has these guards for its tables; by default as far as is known by now.
        Raises ``StoreUnavailable``.
        """
        for table in self._guarded(tables):
            fenced_at = (reader or self._reader).newest_commit(self.table, [table.encode()], None)
            if fenced_at > snapshot:
                return Fence(table, fenced_at)
        return None

    def _guarded(self, tables: Collection[str]) -> list[str]:
        """A fence guards nothing: the row that it writes is in its write set."""
        return sorted(set(tables) - {self.table})
