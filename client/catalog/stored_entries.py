"""The rows of the catalog's own table, one a name: what stands in them, and how that is changed.

Invariant: no two entries of a name are ever stored as the same bytes, nor two marks of a drop, so that a write whose
answer was lost and that arrives late finds its compare-and-set out of date.
"""

from __future__ import annotations

import logging
import time
import uuid
from typing import Final, NamedTuple, TypeGuard

from client.catalog.age import ENTRY_AGE_SECONDS_MAX, now_seconds
from client.catalog.entry import CatalogEntry, ConflictLevel, ShownFrom
from client.catalog.own_table import OwnTable
from client.catalog.vacuum_records import VACUUMED_BELOW
from lease.clocks import wall_ms
from store import ALL_ROWS, CellStore, RowPut, StoreUnavailable

REMADE_AFTER_SECONDS_MIN = ENTRY_AGE_SECONDS_MAX + 1.0
"""How long a name is nobody's after its table was dropped."""
CLOCKS_APART_SECONDS_MAX: Final = 30.0
"""How far apart the wall clocks of two machines may be, one of which drops a table and the other makes it anew. HBase
takes no region server whose clock is further off.
"""

_ENTRY = b"t:entry"
_LEVEL = b"t:conflict_level"
_DROPPED_BELOW = b"t:dropped_below"
"""Like the vacuum mark: when the last table of that name was dropped."""
_MARKS = (VACUUMED_BELOW, _DROPPED_BELOW)
_DROPPED = b"dropped"
"""What stands in place of an entry begins with this: there was a table of that name. Then a unique id, and by which
milliseconds of the wall clock it was dropped.
"""
_ATTEMPTS_MAX = 10


_log = logging.getLogger(__name__)


class Look(NamedTuple):
    """``entry``: ``None`` where a table is not agreed on. ``read_seconds``: when this was asked for."""

    entry: CatalogEntry | None
    shown_from: ShownFrom
    read_seconds: float


class StoredEntries:
    """What the catalog says of each name now; nothing is remembered. All calls raise ``StoreUnavailable``."""

    def __init__(self, store: CellStore, catalog: OwnTable) -> None:
        self._store = store
        self._catalog = catalog

    def value(self, table: str) -> bytes | None:
        """What stands in an entry's place, which may be the mark of a drop."""
        return self._value(table.encode(), _ENTRY)

    def entry(self, table: str) -> CatalogEntry | None:
        """What is agreed on about a table."""
        return _entry(table, self.value(table))

    def look(self, table: str) -> Look:
        """The same, and from which snapshots on it is shown."""
        read_seconds = now_seconds()
        cells = self._store.get(self._catalog.name(), table.encode(), [_ENTRY, *_MARKS])
        entry = _entry(table, cells[_ENTRY].value if _ENTRY in cells else None)
        shown_from = ShownFrom(*(int(cells[mark].value) if mark in cells else 0 for mark in _MARKS))
        return Look(entry, shown_from, read_seconds)

    def all(self) -> dict[str, CatalogEntry]:
        """Every table that is agreed on, by name."""
        rows = self._store.scan(self._catalog.name(), ALL_ROWS, [_ENTRY])
        stored = ((row.decode(), cells[_ENTRY].value) for row, cells in rows)
        return {table: CatalogEntry.parse(table, value) for table, value in stored if is_entry(value)}

    def register(self, table: str, entry: CatalogEntry) -> CatalogEntry:
        """Put the entry unless there is one; the one that stands afterwards."""
        value = entry.encode(made=uuid.uuid4().hex)
        return CatalogEntry.parse(table, self._put_if_absent(table.encode(), _ENTRY, value))

    def agreed_level(self, table: str, level: ConflictLevel) -> ConflictLevel:
        """The conflict level of all tables that ever have this name, ``level`` if there was none.

        It outlives a drop: a process that still remembers the old table must not detect conflicts by other keys.
        """
        stored = self._put_if_absent(table.encode() + b"\0", _LEVEL, level.encode())
        return "row" if stored == b"row" else "cell"

    def mark_dropped(self, table: str, entry: bytes, *, below: int) -> None:
        """Say that this very entry's table is gone, and that no snapshot below this timestamp shows another one.

        An entry that is there by now in place of that one belongs to a newer table, and stays.
        """
        self._store.put(self._catalog.name(), [RowPut(table.encode(), {_DROPPED_BELOW: b"%d" % below})], below)
        dropped = b"%s %s %d" % (_DROPPED, uuid.uuid4().hex.encode(), wall_ms())
        for _ in range(_ATTEMPTS_MAX):
            if self.value(table) != entry:
                return
            self._store.compare_and_set(
                self._catalog.name(), table.encode(), check=_ENTRY, expected=entry, put=_ENTRY, value=dropped
            )
        raise StoreUnavailable(
            f"table {table!r} is gone, but its entry in the catalog could not be removed in {_ATTEMPTS_MAX} attempts: "
            f"drop it again"
        )

    def _value(self, row: bytes, column: bytes) -> bytes | None:
        cell = self._store.get(self._catalog.name(), row, [column]).get(column)
        return None if cell is None else cell.value

    def _put_if_absent(self, row: bytes, column: bytes, value: bytes) -> bytes:
        """What stands afterwards."""
        for _ in range(_ATTEMPTS_MAX):
            stored = self._value(row, column)
            if is_entry(stored):
                return stored
            self._store.compare_and_set(
                self._catalog.name(), row, check=column, expected=stored, put=column, value=value
            )
        raise StoreUnavailable(f"the catalog could not be written in {_ATTEMPTS_MAX} attempts")


def is_entry(stored: bytes | None) -> TypeGuard[bytes]:
    """Whether there is something, and no mark of a drop."""
    return stored is not None and not stored.startswith(_DROPPED)


def wait_until_forgotten(table: str, dropped: bytes) -> None:
    """Let nobody be left who still believes in the table whose drop this marks."""
    _, _, dropped_ms = dropped.rpartition(b" ")
    if not dropped_ms.isdigit() or dropped.count(b" ") < 2:
        return  # marked by a release that said neither when nor from which snapshots on
    seconds = REMADE_AFTER_SECONDS_MIN + CLOCKS_APART_SECONDS_MAX - (wall_ms() - int(dropped_ms)) / 1000
    seconds = min(seconds, REMADE_AFTER_SECONDS_MIN)
    if seconds > 0:
        _log.info("table %s was dropped a moment ago: it is made anew in %.0f s", table, seconds)
        time.sleep(seconds)


def _entry(table: str, stored: bytes | None) -> CatalogEntry | None:
    return CatalogEntry.parse(table, stored) if is_entry(stored) else None
