"""What all clients must agree on about a table, written once, when it is made: one row a table, put if absent.

Beside it, in a family of its own, lie the table's fences, which are written in transactions
(``client.transactions.guards``).

The conflict level is here, since two writers that detect conflicts by different keys would not see one another. The
description is room for a layer above: the Spark mapping of the table lies in it.

Invariants: only an empty table is agreed on by itself, since cells that no transaction wrote would be seen by nobody;
one that is not has to be adopted (``client.adoption``).

Whoever reads or writes a table asks here first, and again after a while (``client.catalog.age``). So the installation's
level is looked at here, too, for those who ask nobody else (``client.catalog.data_checks``): one that does not work at
it is refused.

A table that was dropped is made anew only when everybody has had to ask again: whoever looks at it from before the drop
finds no table, or that there was another one (``ShownFrom``), and never takes the new one for the old.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from typing import NamedTuple

from client.catalog.age import is_believed
from client.catalog.data_checks import DataChecks
from client.catalog.entry import CatalogEntry, ShownFrom, validate_table
from client.catalog.own_table import OwnTable
from client.catalog.record_tables import RECORD_TABLES, RecordTable
from client.catalog.shadow_family import SHADOW_FAMILY
from client.catalog.stored_entries import Look, StoredEntries, is_entry, wait_until_forgotten
from client.catalog.vacuum_records import VacuumRecords
from client.cells import family_of
from client.errors import InvalidRequest
from commit_table import system_table
from store import ALL_ROWS, ALL_VERSIONS, CellStore, Family, TableExists, TableMissing

FENCE_FAMILY = "f"


class _Remembered(NamedTuple):
    entry: CatalogEntry
    shown_from: ShownFrom
    read_seconds: float


_OWN_PURPOSES = ("catalog", "commits", "manifest", "snapshots")


class Catalog:
    """The agreed descriptions of an installation's tables; remembers what it read, for a while. Thread-safe."""

    def __init__(
        self, store: CellStore, root: str, *, data_of_oracles: Callable[[], str | None] = lambda: None
    ) -> None:
        """``data_of_oracles``: the name of the data that the oracles write to, where that is known already."""
        self._store = store
        self._root = root
        self.own_table = system_table(root, "catalog")
        """The table that all this lies in."""
        self._own = OwnTable(store, self.own_table, Family("t", versions_max=1), Family(FENCE_FAMILY))
        self._stored = StoredEntries(store, self._own)
        self.vacuums = VacuumRecords(store, self._own)
        self._data = DataChecks(store, root, self.own_table, data_of_oracles)
        self.own_tables = frozenset(system_table(root, purpose) for purpose in _OWN_PURPOSES)
        """Tables of the installation that are nobody's to name."""
        self.record_tables = frozenset(system_table(root, each.purpose) for each in RECORD_TABLES)
        """Tables of records that are written in the very transactions that they tell of."""
        self._entries: dict[str, _Remembered] = {}

    @property
    def tables_of_nobody(self) -> frozenset[str]:
        """Both: all of Pythia's own tables."""
        return self.own_tables | self.record_tables

    def create(self) -> None:
        """Make the table of entries, and those of records, unless they are there."""
        self._own.name()
        for records in RECORD_TABLES:
            self.create_record_table(records)

    def create_record_table(self, records: RecordTable) -> str:
        """Make it unless it is there; its name. Where it is, nothing is asked that only those are told who may make
        tables: about its families.
        """
        name = system_table(self._root, records.purpose)
        self.require_level()
        believed = self._believed(name)
        stands = self._stored.entry(name) if believed is None else believed.entry
        if stands is None or (believed is None and name not in self._store.table_names()):
            self.create_table(name, records.entry, if_missing=True)
        else:
            _require_same(name, stands, records.entry)
        return name

    def create_table(
        self, table: str, entry: CatalogEntry, *, if_missing: bool = False, split_keys: Sequence[bytes] = ()
    ) -> None:
        """Make a table and agree on its entry. Raises ``InvalidRequest`` where it exists with an entry.

        ``if_missing``: only where it exists with another entry. After a crash between the two steps, or for an empty
        table that HBase has and Pythia does not know yet, it only adds the entry. ``split_keys``: see ``CellStore``.
        """
        self._check_name(table)
        self.require_level()
        stored = self._stored.value(table)
        if is_entry(stored):
            self._check_families(table, (), missing="its drop failed halfway: drop it again")
            if not if_missing:
                raise InvalidRequest(f"table {table!r} exists already")
            _require_same(table, CatalogEntry.parse(table, stored), entry)
            return
        if stored is not None:
            wait_until_forgotten(table, stored)
        self._agree(table, replace(entry, shadows_apart=self._make(table, entry.families, split_keys)))

    def _make(self, table: str, families: Sequence[str], split_keys: Sequence[bytes]) -> bool:
        """Have a table in HBase, and know whether it has a family for shadow cells: unless it was there without."""
        apart = () if SHADOW_FAMILY in families else (SHADOW_FAMILY,)
        try:
            self._store.create_table(table, [Family(name) for name in (*families, *apart)], split_keys)
        except TableExists:
            self._check_families(table, families)
            self._check_empty(table)
            return bool(apart) and SHADOW_FAMILY in self._store.families(table)
        return bool(apart)

    def adopt_table(self, table: str, entry: CatalogEntry) -> CatalogEntry:
        """Agree on a table that HBase has, as one that was adopted; returns what is agreed on.

        Raises ``InvalidRequest`` where it is agreed on otherwise, or was made by this installation.
        """
        self._check_name(table)
        self.require_level()
        stored = self._stored.value(table)
        if stored is not None and not is_entry(stored):
            wait_until_forgotten(table, stored)
        stands = CatalogEntry.parse(table, stored) if is_entry(stored) else self._agree(table, entry)
        if not stands.plain_through:
            raise InvalidRequest(f"table {table!r} is one of this installation's already: there is nothing to adopt")
        _require_same(table, stands, entry)
        return stands

    def plain_families(self, table: str) -> tuple[str, ...]:
        """The families of a table that HBase has. Raises ``InvalidRequest`` where it has none of that name, or it
        does not keep the versions that snapshots need.
        """
        self._check_name(table)
        return self._check_families(table, (), missing="give the name that HBase knows it by")

    def _agree(self, table: str, entry: CatalogEntry) -> CatalogEntry:
        """The entry that stands afterwards; raises ``InvalidRequest`` for one that says otherwise."""
        if self._stored.agreed_level(table, entry.conflict_level) != entry.conflict_level:
            raise InvalidRequest(
                f"a table {table!r} with another conflict level than {entry.conflict_level!r} was dropped before, and "
                f"running processes may remember it: keep its level, or choose another name"
            )
        stands = self._stored.register(table, entry)
        _require_same(table, stands, entry)  # somebody else may have made it meanwhile
        return stands

    def entry(self, table: str) -> CatalogEntry:
        """The entry of a table, as it was at most ``ENTRY_AGE_SECONDS_MAX`` ago.

        A plain HBase table that has none yet and is empty is agreed on as one with cell-level conflicts. Raises
        ``InvalidRequest`` for a table that does not exist, holds what no transaction wrote, or does not keep the
        versions that snapshots need.
        """
        return self._known(table).entry

    def shown_from(self, table: str) -> ShownFrom:
        """What snapshots of a table are too old, as of when ``entry`` was read."""
        return self._known(table).shown_from

    def fresh_entry(self, table: str) -> CatalogEntry:
        """``entry`` as it is stored now: the table may have been dropped and made anew, with other families."""
        return self._read(table).entry

    def families_apart_from_shadows(self, table: str) -> tuple[bytes, ...] | None:
        """The families of a table that has one more, for its shadow cells; ``None`` of every other.

        By its entry, if it has one: nothing is agreed on by asking this, and no level is looked at. It is asked by what
        lies below all reads and writes.
        """
        if table in self.own_tables:
            return None
        known = self._believed(table)
        if known is None:
            look = self._stored.look(table)
            if look.entry is None:
                return None
            known = self._remember(table, look.entry, look)
        return known.entry.family_columns if known.entry.shadows_apart else None

    def tables(self) -> dict[str, CatalogEntry]:
        """Every table that is agreed on now, by name."""
        return self._stored.all()

    def require_level(self) -> None:
        """Raise ``UpgradeNeeded``, ``InvalidRequest`` and ``StoreUnavailable`` as ``DataChecks.require``. For those who
        go on for long without asking for an entry: before each step.
        """
        self._data.require()

    def data(self) -> str | None:
        """The name of the installation's data (``commit_table.identity``); ``None`` where no oracle has named them."""
        return self._data.name()

    def _known(self, table: str) -> _Remembered:
        self.require_level()
        return self._believed(table) or self._read(table)

    def _believed(self, table: str) -> _Remembered | None:
        """What is remembered of a table, unless it has to be read again."""
        known = self._entries.get(table)
        return known if known is not None and is_believed(known.read_seconds) else None

    def _read(self, table: str) -> _Remembered:
        self._check_name(table)
        self.require_level()
        look = self._stored.look(table)
        entry = look.entry
        if entry is None:
            families = self._check_families(table, ())
            self._check_empty(table)
            apart = len(families) > 1 and SHADOW_FAMILY in families  # whoever is making it has not said so yet
            names = tuple(name for name in families if not apart or name != SHADOW_FAMILY)
            entry = self._stored.register(
                table, CatalogEntry(self._stored.agreed_level(table, "cell"), names, shadows_apart=apart)
            )
        return self._remember(table, entry, look)

    def _remember(self, table: str, entry: CatalogEntry, look: Look) -> _Remembered:
        remembered = self._entries[table] = _Remembered(entry, look.shown_from, look.read_seconds)
        return remembered

    def has_entry(self, table: str) -> bool:
        """Whether a table is agreed on now; only then transactions can have written it."""
        self._check_name(table)
        return self._stored.entry(table) is not None

    def incarnation(self, table: str) -> str:
        """What tells a table from those that had its name before: a drop, and making it anew, changes it.

        Raises ``InvalidRequest`` where there is no such table.
        """
        self._check_name(table)
        self.require_level()
        stored = self._stored.value(table)
        if not is_entry(stored):
            self.fresh_entry(table)  # agrees on a plain table that is empty
            stored = self._stored.value(table)
        return hashlib.sha256(stored or b"").hexdigest()

    def require_families(self, table: str, columns: Iterable[bytes]) -> None:
        """Raise ``InvalidRequest`` for a column of a family that the table does not have."""
        wanted = {family_of(column) for column in columns}
        if wanted <= set(self.entry(table).family_columns):
            return
        families = set(self.fresh_entry(table).family_columns)  # it may have been made anew
        if not wanted <= families:
            unknown = ", ".join(sorted(family.decode(errors="replace") for family in wanted - families))
            known = ", ".join(sorted(family.decode(errors="replace") for family in families))
            raise InvalidRequest(f"table {table!r} has no family {unknown}; it has {known}")

    def drop_table(self, table: str, fence: Callable[[], int]) -> None:
        """Remove a table and its entry. Not part of any transaction: those open on it fail, and so do their readers.

        ``fence`` places one once HBase has no such table any more, and returns its timestamp: who took a snapshot
        before that may have read or written the old table, and has nothing to do with a new one. Ends a drop that
        failed halfway, too. Raises ``InvalidRequest`` where there is neither table nor entry, or data without an entry,
        ``StoreUnavailable`` and what ``fence`` raises where the drop has to be repeated.
        """
        self._check_name(table)
        stored = self._stored.value(table)
        try:
            if not is_entry(stored) and self._holds_data(table):
                raise InvalidRequest(
                    f"table {table!r} holds data and is none of the tables of this installation: it is another one's "
                    f"(look at the root), or a plain table. Drop it there, or in HBase's shell"
                )
            self._store.drop_table(table)
        except TableMissing as error:
            if not is_entry(stored):
                raise InvalidRequest(f"there is no table {table!r} to drop") from error
        if is_entry(stored):
            self._stored.mark_dropped(table, stored, below=fence())
        self._entries.pop(table, None)

    def _check_name(self, table: str) -> None:
        validate_table(table)
        if table in self.own_tables:
            raise InvalidRequest(f"table {table!r} is Pythia's own")

    def _check_families(
        self,
        table: str,
        wanted: Sequence[str],
        *,
        missing: str = "create it with manager.create_table, or pythia table create",
    ) -> tuple[str, ...]:
        """The table's families. ``missing``: what is said to be done where there is no such table."""
        try:
            families = self._store.families(table)
        except TableMissing as error:
            raise InvalidRequest(f"there is no table {table!r}: {missing}") from error
        for name, family in families.items():
            if family.versions_max < ALL_VERSIONS:
                raise InvalidRequest(
                    f"family {name!r} of table {table!r} keeps {family.versions_max} version(s) of a cell; snapshots "
                    f"need them all until vacuum: alter the family to VERSIONS => {ALL_VERSIONS}"
                )
        lacking = sorted(set(wanted) - set(families))
        if lacking:
            raise InvalidRequest(f"table {table!r} exists, without the families {', '.join(lacking)}")
        return tuple(sorted(wanted or families))

    def _check_empty(self, table: str) -> None:
        """Raise ``InvalidRequest`` for a table that holds cells and has no entry: no transaction wrote them.

        Their timestamps are no transactions', so that no snapshot would show them, and readers would look for the
        outcome of each.
        """
        written = self._holds_data(table)
        if written and self._stored.entry(table) is None:  # by now another process may have agreed on it and written
            raise InvalidRequest(
                f"table {table!r} holds data that was not written in transactions, which no snapshot would show: have "
                f"it adopted with manager.adopt_table or pythia table adopt, once nobody writes it but in "
                f"transactions; or leave it as it is, and pythia table copy writes its rows into a new one"
            )

    def _holds_data(self, table: str) -> bool:
        families = [family.encode() for family in self._store.families(table)]
        return next(self._store.scan(table, ALL_ROWS, families, batch_rows=1), None) is not None


def _require_same(table: str, stands: CatalogEntry, wanted: CatalogEntry) -> None:
    """Raise ``InvalidRequest`` where a table exists otherwise than it was to be made; families have no order."""
    unlike = stands.unlike(wanted)
    if unlike:
        raise InvalidRequest(f"table {table!r} exists already, and differs in {' and '.join(unlike)}")
