"""A store of the contract in whose tables shadow cells lie in a family of their own."""

from __future__ import annotations

from collections.abc import Sequence

from client.catalog.shadow_family import SHADOW_FAMILY, Families, ShadowFamilyStore
from store import CellStore, Family


class ShadowsApart(ShadowFamilyStore):
    """Gives each table that is made through it such a family, as the catalog does."""

    def __init__(self, store: CellStore) -> None:
        self._made: dict[str, Families] = {}
        super().__init__(store, self._made.get)

    def create_table(self, table: str, families: Sequence[Family], split_keys: Sequence[bytes] = ()) -> None:
        super().create_table(table, [*families, Family(SHADOW_FAMILY)] if families else [], split_keys)
        self._made[table] = tuple(family.name.encode() for family in families)
