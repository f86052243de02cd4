"""Snapshots with a name: each one a row of a table of Pythia's own, there for as long as nobody drops it.

A named snapshot holds back the vacuum, and neither waits for the other. Each writes first, and then looks what the
other has written:

* who names a snapshot puts its record, not finished yet, and *then* reads the vacuum marks. Where one lies above the
  snapshot, the record goes again; else it is marked as finished;
* who vacuums puts a mark for the whole installation as far as it means to go, and *then* reads the names, unfinished
  ones among them, and goes no further than the oldest (``client.vacuum.run``).

The store answers a write only when every later read sees it, so of the two at least one sees the other. Hence the
invariant: a snapshot that is finished, and was not dropped, lies at or above all that any vacuum marks or drops. It
holds from the record's first write on without a gap, since finishing replaces that very record by compare-and-set.

A name that is moved goes forward only, and by a single write: whatever a vacuum sees of it, before or after, lies at or
below where it is in the end, and the vacuum goes no further than that.

Who is killed halfway leaves an unfinished record. It holds back the vacuum, cannot be read, and is replaced by whoever
creates a snapshot of that name.
"""

from __future__ import annotations

import uuid
from collections.abc import Callable
from dataclasses import replace

from client.catalog.catalog import Catalog
from client.catalog.own_table import OwnTable
from client.errors import InvalidRequest
from client.snapshots.moments import validate_name
from client.snapshots.record import NamedSnapshot
from commit_table import system_table
from commit_table.timestamps import wall_time_of
from store import ALL_ROWS, Applied, CellStore, Family, StoreUnavailable

_RECORD = b"s:record"
_ATTEMPTS_MAX = 10

Replaceable = Callable[[NamedSnapshot | None], bool]
"""Whether what stands under a name may be replaced."""


class NamedSnapshots:
    """The named snapshots of an installation. Thread-safe."""

    def __init__(self, store: CellStore, catalog: Catalog, root: str) -> None:
        self._store = store
        self._catalog = catalog
        self._own = OwnTable(store, system_table(root, "snapshots"), Family("s", versions_max=1))

    def create_table(self) -> None:
        """Make the table of the names unless it is there."""
        self._own.name()

    def create(self, name: str, timestamp: int, epoch: int) -> NamedSnapshot:
        """Name a moment that is known, in this epoch, to be settled.

        Raises ``InvalidRequest`` where the name is taken or the moment was vacuumed, ``StoreUnavailable``: then the
        name may stand unfinished, until it is created again or dropped.
        """
        validate_name(name)
        self._catalog.require_level()  # a vacuum's marks do not say in which format they are
        claimed = NamedSnapshot(name, timestamp, epoch, is_finished=False, made=uuid.uuid4().hex)
        if not self._replace(name, _is_free, claimed.encode()):
            raise InvalidRequest(f"there is a snapshot {name!r} already: drop it first, or choose another name")
        below = self._catalog.vacuums.below_anywhere()
        if timestamp < below:
            self._replace(name, lambda stored: stored == claimed, claimed.encode_dropped())
            raise InvalidRequest(
                f"the moment {timestamp} ({_time(timestamp)}) cannot be named {name!r}: a vacuum drops, or has "
                f"dropped, what is only seen below {below} ({_time(below)}). Name a later one"
            )
        finished = replace(claimed, is_finished=True)
        if not self._replace(name, lambda stored: stored == claimed, finished.encode()):
            raise InvalidRequest(
                f"somebody else has created or dropped a snapshot {name!r} meanwhile: look, and repeat"
            )
        return finished

    def move(self, name: str, timestamp: int, epoch: int) -> NamedSnapshot:
        """Have a name stand for a later moment, which is known, in this epoch, to be settled.

        Raises ``InvalidRequest`` where there is no such name, or it stands for a still later moment, or somebody else
        had it meanwhile; ``StoreUnavailable``: then it may have been moved.
        """
        standing = self.find(name)
        self._catalog.require_level()
        if timestamp < standing.timestamp:
            raise InvalidRequest(
                f"the snapshot {name!r} is of {standing.timestamp} ({_time(standing.timestamp)}) and is moved forward "
                f"only, not to {timestamp} ({_time(timestamp)}), of which a vacuum may have dropped something"
            )
        moved = replace(standing, timestamp=timestamp, epoch=epoch)
        if not self._replace(name, lambda stored: stored == standing, moved.encode()):
            raise InvalidRequest(
                f"somebody else has moved or dropped the snapshot {name!r} meanwhile: look, and repeat"
            )
        return moved

    def find(self, name: str) -> NamedSnapshot:
        """The finished snapshot of that name. Raises ``InvalidRequest`` where there is none, ``StoreUnavailable``."""
        validate_name(name)
        found = self._read(name)[1]
        if found is None:
            raise InvalidRequest(
                f"there is no snapshot {name!r}: manager.snapshots(), or pythia snapshot list, tells which there are"
            )
        if not found.is_finished:
            raise InvalidRequest(f"the creation of the snapshot {name!r} is under way, or failed halfway: repeat it")
        return found

    def all(self) -> list[NamedSnapshot]:
        """Every one by name, unfinished ones among them. Raises ``StoreUnavailable``."""
        rows = self._store.scan(self._own.name(), ALL_ROWS, [_RECORD])
        found = (NamedSnapshot.parse(row.decode(), cells[_RECORD].value) for row, cells in rows)
        return [snapshot for snapshot in found if snapshot is not None]

    def drop(self, name: str) -> None:
        """Give a name up, finished or not. Raises ``InvalidRequest`` where there is none, ``StoreUnavailable``."""
        validate_name(name)
        doomed = self._read(name)[1]
        if doomed is None:
            raise InvalidRequest(f"there is no snapshot {name!r} to drop")
        made = doomed.made  # it may be finished meanwhile; another of its name stays
        self._replace(name, lambda stored: stored is not None and stored.made == made, doomed.encode_dropped())

    def _replace(self, name: str, is_replaceable: Replaceable, value: bytes) -> bool:
        """Put ``value``, which stands for one thing only, in the place of what may be replaced; whether it was put."""
        for _ in range(_ATTEMPTS_MAX):
            stored, snapshot = self._read(name)
            if stored == value:
                return True
            if not is_replaceable(snapshot):
                return False
            answer = self._store.compare_and_set(
                self._own.name(), name.encode(), check=_RECORD, expected=stored, put=_RECORD, value=value
            )
            if isinstance(answer, Applied):
                return True
        raise StoreUnavailable(f"the snapshot {name!r} could not be written in {_ATTEMPTS_MAX} attempts: repeat it")

    def _read(self, name: str) -> tuple[bytes | None, NamedSnapshot | None]:
        cell = self._store.get(self._own.name(), name.encode(), [_RECORD]).get(_RECORD)
        stored = None if cell is None else cell.value
        return stored, NamedSnapshot.parse(name, stored)


def _is_free(stored: NamedSnapshot | None) -> bool:
    """Whose creation was not finished may be dead; if not, he finds out."""
    return stored is None or not stored.is_finished


def _time(timestamp: int) -> str:
    return f"{wall_time_of(timestamp):%Y-%m-%d %H:%M:%S} UTC"
