"""What all clients must agree on about a table, written once, when it is made: one row a table, put if absent.

The conflict level is here, since two writers that detect conflicts by different keys would not see one another. The
description is room for a layer above: the Spark mapping of the table lies in it.
"""

from __future__ import annotations

import base64
import json
import threading
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal, get_args

from client.errors import InvalidRequest
from commit_table import system_table
from store import ALL_VERSIONS, CellStore, Family, StoreUnavailable, TableExists, TableMissing

ConflictLevel = Literal["cell", "row"]
"""Whether two transactions conflict when they write the same cell, or already when they write the same row."""

_FORMAT = 1
_ENTRY = b"t:entry"
_LEVEL = b"t:conflict_level"
_DROPPED = b"dropped"
"""In place of an entry: there was a table of that name."""
_REGISTER_ATTEMPTS_MAX = 10


@dataclass(frozen=True, slots=True)
class CatalogEntry:
    """What is agreed on about one table."""

    conflict_level: ConflictLevel
    families: tuple[str, ...]
    description: bytes = b""

    def __post_init__(self) -> None:
        if self.conflict_level not in get_args(ConflictLevel):
            raise InvalidRequest(f"conflict_level is 'cell' or 'row', not {self.conflict_level!r}")
        if not self.families:
            raise InvalidRequest("a table has at least one column family")
        for family in self.families:
            if not family or not family.isascii() or not family.isprintable() or ":" in family or "/" in family:
                raise InvalidRequest(f"a family's name is printable ASCII without ':' and '/', not {family!r}")

    @property
    def family_columns(self) -> tuple[bytes, ...]:
        """The families as a choice of what to read."""
        return tuple(family.encode() for family in self.families)

    def encode(self) -> bytes:
        """The entry as it is stored."""
        fields = {
            "format": _FORMAT,
            "conflict_level": self.conflict_level,
            "families": list(self.families),
            "description": base64.b64encode(self.description).decode(),
        }
        return json.dumps(fields).encode()

    @classmethod
    def parse(cls, table: str, value: bytes) -> CatalogEntry:
        """Read a stored entry; raises ``InvalidRequest`` for one that a newer version wrote."""
        fields: dict[str, Any] = json.loads(value)
        if fields.get("format") != _FORMAT:
            raise InvalidRequest(
                f"table {table!r} is described in format {fields.get('format')!r}, this library knows {_FORMAT}: "
                f"use a newer one"
            )
        return cls(
            conflict_level=fields["conflict_level"],
            families=tuple(fields["families"]),
            description=base64.b64decode(fields["description"]),
        )


class Catalog:
    """The agreed descriptions of an installation's tables; remembers what it read."""

    def __init__(self, store: CellStore, root: str) -> None:
        self._store = store
        self._own = OwnTable(store, system_table(root, "catalog"), Family("t", versions_max=1))
        self._own_tables = {system_table(root, purpose) for purpose in ("catalog", "commits", "manifest")}
        self._entries: dict[str, CatalogEntry] = {}

    def create_table(self, table: str, entry: CatalogEntry) -> None:
        """Make a table and agree on its entry. Raises ``InvalidRequest`` where it exists with an entry.

        After a crash between the two steps, or for a table that HBase has and Pythia does not know yet, it only adds
        the entry.
        """
        self._check_name(table)
        if self._stored_entry(table) is not None:
            raise InvalidRequest(f"table {table!r} exists already")
        try:
            self._store.create_table(table, [Family(name) for name in entry.families])
        except TableExists:
            self._check_families(table, entry.families)
        if self._agreed_level(table, entry.conflict_level) != entry.conflict_level:
            raise InvalidRequest(
                f"a table {table!r} with another conflict level than {entry.conflict_level!r} was dropped before, and "
                f"running processes may remember it: keep its level, or choose another name"
            )
        if self._register(table, entry) != entry:
            raise InvalidRequest(f"table {table!r} was created by somebody else meanwhile, with another description")

    def entry(self, table: str) -> CatalogEntry:
        """The entry of a table. A plain HBase table that has none yet is agreed on as one with cell-level conflicts.

        Raises ``InvalidRequest`` for a table that does not exist or does not keep the versions that snapshots need.
        """
        known = self._entries.get(table)
        if known is not None:
            return known
        self._check_name(table)
        stored = self._stored_entry(table)
        if stored is None:
            families = self._check_families(table, ())
            stored = self._register(table, CatalogEntry(self._agreed_level(table, "cell"), families))
        self._entries[table] = stored
        return stored

    def fresh_entry(self, table: str) -> CatalogEntry:
        """``entry`` as it is stored now: the table may have been dropped and made anew, with other families."""
        self._entries.pop(table, None)
        return self.entry(table)

    def drop_table(self, table: str) -> None:
        """Remove a table and its entry. Not part of any transaction: those open on it fail, and so do their readers."""
        self._check_name(table)
        self._store.drop_table(table)
        stored = self._stored_value(table.encode(), _ENTRY)
        if stored is not None:
            self._store.compare_and_set(
                self._own.name(), table.encode(), check=_ENTRY, expected=stored, put=_ENTRY, value=_DROPPED
            )
        self._entries.pop(table, None)

    def _check_name(self, table: str) -> None:
        if not isinstance(table, str) or not table:
            raise InvalidRequest(f"a table's name is text, not {table!r}")
        if table.startswith("default:"):
            raise InvalidRequest(f"leave 'default:' out of {table!r}: one table must have one name")
        if table in self._own_tables:
            raise InvalidRequest(f"table {table!r} is Pythia's own")

    def _check_families(self, table: str, wanted: Sequence[str]) -> tuple[str, ...]:
        try:
            families = self._store.families(table)
        except TableMissing as error:
            raise InvalidRequest(f"there is no table {table!r}: create it with manager.create_table") from error
        for name, family in families.items():
            if family.versions_max < ALL_VERSIONS:
                raise InvalidRequest(
                    f"family {name!r} of table {table!r} keeps {family.versions_max} version(s) of a cell; snapshots "
                    f"need them all until vacuum: alter the family to VERSIONS => {ALL_VERSIONS}"
                )
        missing = sorted(set(wanted) - set(families))
        if missing:
            raise InvalidRequest(f"table {table!r} exists, without the families {', '.join(missing)}")
        return tuple(sorted(wanted or families))

    def _stored_entry(self, table: str) -> CatalogEntry | None:
        stored = self._stored_value(table.encode(), _ENTRY)
        return None if stored in (None, _DROPPED) else CatalogEntry.parse(table, stored)

    def _stored_value(self, row: bytes, column: bytes) -> bytes | None:
        cell = self._store.get(self._own.name(), row, [column]).get(column)
        return None if cell is None else cell.value

    def _register(self, table: str, entry: CatalogEntry) -> CatalogEntry:
        """Put the entry unless there is one; the one that stands afterwards."""
        return CatalogEntry.parse(table, self._put_if_absent(table.encode(), _ENTRY, entry.encode()))

    def _agreed_level(self, table: str, level: ConflictLevel) -> ConflictLevel:
        """The conflict level of all tables that ever have this name, ``level`` if there was none.

        It outlives a drop: a process that still remembers the old table must not detect conflicts by other keys.
        """
        stored = self._put_if_absent(table.encode() + b"\0", _LEVEL, level.encode())
        return "row" if stored == b"row" else "cell"

    def _put_if_absent(self, row: bytes, column: bytes, value: bytes) -> bytes:
        """What stands afterwards."""
        for _ in range(_REGISTER_ATTEMPTS_MAX):
            stored = self._stored_value(row, column)
            if stored is not None and stored != _DROPPED:
                return stored
            self._store.compare_and_set(self._own.name(), row, check=column, expected=stored, put=column, value=value)
        raise StoreUnavailable(f"the catalog could not be written in {_REGISTER_ATTEMPTS_MAX} attempts")


class OwnTable:
    """One of Pythia's own tables, made when it is first needed."""

    def __init__(self, store: CellStore, name: str, family: Family) -> None:
        self._store = store
        self._name = name
        self._family = family
        self._lock = threading.Lock()
        self._made = False

    def name(self) -> str:
        """The table's name, once it stands."""
        with self._lock:
            if not self._made:
                self._make()
                self._made = True
        return self._name

    def _make(self) -> None:
        if self._name in self._store.table_names():
            return
        try:
            self._store.create_table(self._name, [self._family])
        except TableExists:
            return  # another client was faster
