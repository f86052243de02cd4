"""Tables of records that are written in the very transactions that they tell of: how far imports and streams have come,
and which keys have landed.

Transactions write them, so they have entries as any table has. But nobody names them, saves them or puts them back.
"""

from __future__ import annotations

from typing import Final, NamedTuple

from client.catalog.entry import CatalogEntry, ConflictLevel


class RecordTable(NamedTuple):
    """One such table of each installation; ``purpose`` is what its name ends with."""

    purpose: str
    family: str
    conflict_level: ConflictLevel

    @property
    def entry(self) -> CatalogEntry:
        """What is agreed on about it."""
        return CatalogEntry(self.conflict_level, (self.family,))


IMPORTS: Final = RecordTable("imports", "i", "cell")
STREAMS: Final = RecordTable("streams", "b", "row")
CLAIMS: Final = RecordTable("claims", "c", "row")
RECORD_TABLES: Final = (IMPORTS, STREAMS, CLAIMS)
