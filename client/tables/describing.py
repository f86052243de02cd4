"""What is known of a table, as a value and in words. Needs no oracle."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from client.catalog.shadow_family import SHADOW_FAMILY
from client.errors import InvalidRequest
from client.manager import TransactionManager
from client.snapshots.resolver import OutcomeCache, Resolver
from client.spark.errors import InvalidMapping
from client.spark.mapping import KeyColumn, TableMapping, ValueColumn
from client.spark.tables import table_mapping
from client.transactions.guards import Guards
from commit_table.timestamps import wall_time_of
from store import ALL_VERSIONS, Family, KeyRange


@dataclass(frozen=True, slots=True)
class Description:
    """A table: its mapping (``None`` where it has none), and how HBase keeps it.

    ``fenced_at``: the timestamp of the newest fence, 0 where it was never fenced. ``plain_through``: of a table that
    was adopted, up to which timestamp its cells are plain; else 0. ``shadow_family``: in which family its shadow cells
    lie; ``None`` where each lies in that of its versions.
    """

    table: str
    conflict_level: str
    mapping: TableMapping | None
    families: Sequence[Family]
    regions: Sequence[KeyRange]
    fenced_at: int
    plain_through: int
    shadow_family: str | None

    def to_fields(self) -> dict[str, Any]:
        """For JSON; the bounds of regions in hexadecimal digits."""
        return {
            "table": self.table,
            "conflict_level": self.conflict_level,
            "row_key": None if self.mapping is None else list(self.mapping.row_key),
            "salt_buckets": None if self.mapping is None else self.mapping.salt_buckets,
            "columns": None if self.mapping is None else _columns(self.mapping),
            "families": [
                {"name": family.name, "versions_max": family.versions_max, "all_versions": _keeps_all(family)}
                for family in self.families
            ],
            "regions": [{"start": start.hex(), "stop": stop.hex()} for start, stop in self.regions],
            "fenced_at": self.fenced_at or None,
            "plain_through": self.plain_through or None,
            "shadow_family": self.shadow_family,
        }

    def lines(self) -> Iterator[str]:
        """In words."""
        yield f"table {self.table}"
        if self.mapping is None:
            yield "  no mapping: programs read and write its cells as bytes; import, export and Spark cannot"
        else:
            buckets = self.mapping.salt_buckets
            within = f", in each of {buckets} salt buckets" if buckets else ""
            yield f"  rows are sorted by {', '.join(self.mapping.row_key)}{within}"
            for column in _columns(self.mapping):
                yield f"  {column['name']}: {column['type']}, {column['place']}"
        if self.plain_through:
            yield f"  adopted: cells up to timestamp {self.plain_through} were there before the first transaction"
        yield f"  two transactions conflict when they write the same {self.conflict_level}"
        for family in self.families:
            yield f"  family {family.name}: {_versions(family)}"
        if self.shadow_family is None:
            yield "  shadow cells lie beside the cells that they are of"
        else:
            yield f"  shadow cells lie in family {self.shadow_family}, which is Pythia's: do not alter that"
        yield f"  {len(self.regions)} region{'s' if len(self.regions) > 1 else ''}"
        if self.fenced_at:
            moment = wall_time_of(self.fenced_at).isoformat(timespec="milliseconds")
            yield f"  fenced last at {self.fenced_at} ({moment})"
        else:
            yield "  never fenced"


def describe(manager: TransactionManager, table: str) -> Description:
    """Raises ``InvalidRequest`` where there is no such table, ``StoreUnavailable``."""
    if not manager.catalog.has_entry(table):
        raise InvalidRequest(f"Pythia knows no table {table!r}: see `pythia table list`, or create it")
    entry = manager.catalog.fresh_entry(table)
    return Description(
        table,
        entry.conflict_level,
        _mapping(manager, table),
        sorted(manager.store.families(table).values(), key=lambda family: family.name),
        manager.store.regions(table),
        _fenced_at(manager, table),
        entry.plain_through,
        SHADOW_FAMILY if entry.shadows_apart else None,
    )


def tables(manager: TransactionManager) -> list[str]:
    """The tables of an installation, without those that are Pythia's own, sorted."""
    own = manager.catalog.tables_of_nobody
    return [name for name in manager.store.table_names() if name not in own and manager.catalog.has_entry(name)]


def _mapping(manager: TransactionManager, table: str) -> TableMapping | None:
    if not manager.catalog.fresh_entry(table).description:
        return None
    try:
        return table_mapping(manager, table)
    except InvalidMapping:
        return None  # a description of another kind


def _fenced_at(manager: TransactionManager, table: str) -> int:
    resolver = Resolver(manager.store, manager.commit_table, OutcomeCache(1), heal=False)
    fence = Guards(manager.store, resolver, manager.catalog).fence_since(0, [table])
    return 0 if fence is None else fence.timestamp


def _columns(mapping: TableMapping) -> list[dict[str, str]]:
    return [
        {
            "name": column.name,
            "type": column.type,
            "place": "row key" if isinstance(column, KeyColumn) else f"cell {_cell_of(mapping, column)}",
        }
        for column in mapping.columns
    ]


def _cell_of(mapping: TableMapping, column: ValueColumn) -> str:
    (cell,) = mapping.cells_of([column.name])
    return cell.decode()


def _keeps_all(family: Family) -> bool:
    return family.versions_max >= ALL_VERSIONS


def _versions(family: Family) -> str:
    if _keeps_all(family):
        return "keeps all versions of a cell, as snapshots need; do not alter that"
    return (
        f"keeps only {family.versions_max} versions of a cell, and snapshots need them all: alter it in HBase's shell "
        f"to VERSIONS => {ALL_VERSIONS}"
    )
