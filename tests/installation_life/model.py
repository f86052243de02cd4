"""What an installation has to do, on dictionaries: the specification that its lives are held against. Pure.

A version of a cell is visible to a snapshot if its writer committed at or below it; of several the one of the writer
that *began* last is seen. A transaction commits unless somebody committed above its snapshot to what it is compared by.
"""

from __future__ import annotations

import enum
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from copy import deepcopy
from dataclasses import dataclass, field

from client.cells import is_reserved

Row = dict[bytes, bytes]
Content = dict[bytes, Row]
"""Row key → column → value."""
Place = tuple[bytes, bytes]
"""Row key and column."""
CLAIMS = "(claims)"
"""In place of a table: where claims lie, by table and key."""


class Verdict(enum.Enum):
    """What may become of a commit."""

    COMMITS = "it commits"
    ABORTS = "it is refused"
    EITHER = "it may be one or the other"


@dataclass(frozen=True)
class Version:
    """What one transaction left of one cell. ``value``: ``None`` where it deleted it."""

    start: int
    commit: int
    value: bytes | None
    conflict_free: bool = False


@dataclass
class Table:
    """One table, from its making to its drop. ``plain``: what lay in it when it was adopted."""

    by_row: bool
    shown_from: int
    """A snapshot below this is from before it was made, or adopted."""
    plain: dict[Place, bytes] = field(default_factory=dict)
    versions: defaultdict[Place, list[Version]] = field(default_factory=lambda: defaultdict(list))
    fences: list[int] = field(default_factory=list)
    fenced_perhaps: list[int] = field(default_factory=list)
    """By when a fence stood, if it did: whoever set it was not told."""

    def visible(self, snapshot: int) -> dict[Place, bytes]:
        """Every cell that a snapshot sees, reserved ones too."""
        seen = dict(self.plain)
        for place, versions in self.versions.items():
            newest = max((each for each in versions if each.commit <= snapshot), key=_start, default=None)
            if newest is not None:
                seen.pop(place, None)
                if newest.value is not None:
                    seen[place] = newest.value
        return seen

    def changed(self, since: int, until: int) -> tuple[set[bytes], set[bytes]]:
        """The rows that have to be told as changed, and those that may be: hidden by who began later."""
        surely, maybe = set(), set()
        for (row, _), versions in self.versions.items():
            below = [each for each in versions if each.commit <= until]
            if any(each.commit > since for each in below):
                maybe.add(row)
                if max(below, key=_start).commit > since:
                    surely.add(row)
        return surely, maybe


def _start(version: Version) -> int:
    return version.start


def rows_of(cells: Mapping[Place, bytes]) -> Content:
    """Cells by rows, without reserved columns: these only say that there is a row."""
    rows: Content = {}
    for (row, column), value in sorted(cells.items()):
        columns = rows.setdefault(row, {})
        if not is_reserved(column):
            columns[column] = value
    return rows


@dataclass(frozen=True)
class Write:
    """What a transaction holds of one cell. ``conflict_free``: it never wrote it otherwise."""

    value: bytes | None
    conflict_free: bool = False


Writes = dict[str, dict[Place, Write]]


def overlaid(cells: dict[Place, bytes], writes: Iterable[tuple[Place, Write]]) -> dict[Place, bytes]:
    """Cells as they are with such writes above them."""
    cells = dict(cells)
    for place, write in writes:
        cells.pop(place, None)
        if write.value is not None:
            cells[place] = write.value
    return cells


class OpenTransaction:
    """One transaction that has not ended: what it wrote, and what it relies on."""

    def __init__(self, start: int, snapshot: int) -> None:
        self.start = start
        self.snapshot = snapshot
        self.buffered: Writes = {}
        self.bulk: Writes = {}
        self.bulk_jobs = 0
        self.has_unrepeated = False
        self.checkpointed: Writes | None = None
        self.guarded: set[tuple[str, bytes, bytes | None]] = set()
        self.shared = False

    def put(self, table: str, place: Place, value: bytes | None, *, conflict_free: bool = False) -> None:
        """Write one cell, or delete it."""
        cells = self.buffered.setdefault(table, {})
        before = cells.get(place)
        cells[place] = Write(value, conflict_free and (before is None or before.conflict_free))

    def put_in_bulk(self, table: str, cells: Mapping[Place, bytes | None]) -> None:
        """Write cells the way of bulk writers."""
        self.bulk.setdefault(table, {}).update((place, Write(value)) for place, value in cells.items())

    def state(self) -> tuple[Writes, Writes | None]:
        """What a savepoint goes back to."""
        return deepcopy((self.buffered, self.checkpointed))

    def go_back_to(self, state: tuple[Writes, Writes | None]) -> None:
        """Undo what was put since."""
        self.buffered, self.checkpointed = deepcopy(state)

    def checkpoint(self) -> None:
        """Have ``before_checkpoint`` show what was put up to here."""
        self.checkpointed = deepcopy(self.buffered)

    def seen(self, table: str, cells: dict[Place, bytes], own_writes: str) -> dict[Place, bytes]:
        """What it sees of a table of which its snapshot sees these cells."""
        if own_writes == "none":
            return cells
        if own_writes == "before_checkpoint":
            return overlaid(cells, (self.checkpointed or {}).get(table, {}).items())
        cells = overlaid(cells, self.bulk.get(table, {}).items())
        return overlaid(cells, self.buffered.get(table, {}).items())

    def writes(self) -> Iterator[tuple[str, Place, Write]]:
        """Everything that it wrote; a cell that was put and written in bulk is as it was put, and no conflict-free
        one.
        """
        for table in {**self.bulk, **self.buffered}:
            bulk, buffered = self.bulk.get(table, {}), self.buffered.get(table, {})
            for place in {**bulk, **buffered}:
                write = buffered.get(place) or bulk[place]
                yield table, place, Write(write.value, write.conflict_free and place not in bulk)


class Model:
    """Everything that has committed."""

    def __init__(self) -> None:
        self.tables: dict[str, Table] = {}
        self.dropped: dict[str, int] = {}
        """When the last table of a name was dropped."""
        self.committed: dict[int, int] = {}
        """Start timestamp → commit timestamp."""
        self.ended: list[tuple[OpenTransaction, int, Mapping[str, Table]]] = []
        """Those who wrote something, and into which tables."""

    def make(self, name: str, *, by_row: bool, shown_from: int, plain: Mapping[Place, bytes] | None = None) -> None:
        """There is a table of that name from now on."""
        self.tables[name] = Table(by_row, shown_from, dict(plain or {}))

    def drop(self, name: str, now: int) -> None:
        """There is none any more."""
        del self.tables[name]
        self.dropped[name] = now

    def seen(self, table: str, snapshot: int) -> dict[Place, bytes]:
        """The cells that a snapshot sees."""
        return self.tables[table].visible(snapshot)

    def claimed(self, transaction: OpenTransaction, place: Place) -> bytes | None:
        """Of which incarnation a claim is on record that a transaction sees, its own ones too."""
        return transaction.seen(CLAIMS, self.seen(CLAIMS, transaction.snapshot), "all").get(place)

    def verdict(self, transaction: OpenTransaction) -> Verdict:
        """What has to become of its commit."""
        writes = list(transaction.writes())
        if transaction.has_unrepeated:
            return Verdict.ABORTS
        if not writes:
            return Verdict.EITHER if transaction.guarded and transaction.shared else Verdict.COMMITS
        tables = {table for table, _, _ in writes} | {table for table, _, _ in transaction.guarded}
        if any(self._fenced_at(table) > transaction.snapshot for table in tables):
            return Verdict.ABORTS
        snapshot, verdict = transaction.snapshot, Verdict.COMMITS
        for table, row, column in compared(transaction):
            found = met(self.tables[table], row, column, snapshot)
            if found is Verdict.ABORTS:
                return found
            if found is Verdict.EITHER:
                verdict = found
        if any(at > snapshot for table in tables for at in self.tables[table].fenced_perhaps):
            return Verdict.EITHER
        return verdict

    def commit(self, transaction: OpenTransaction, commit: int, tables: Mapping[str, Table]) -> None:
        """It has committed, into these tables, of which some may have been dropped by now."""
        self.committed[transaction.start] = commit
        self.ended.append((transaction, commit, tables))
        for table, place, write in transaction.writes():
            tables[table].versions[place].append(Version(transaction.start, commit, write.value, write.conflict_free))

    def anomalies(self) -> Iterator[str]:
        """Transactions that have committed although somebody committed, in between, to what they are compared by."""
        for transaction, commit, tables in self.ended:
            for name, row, column in compared(transaction):
                table = tables[name]
                if any(transaction.snapshot < fence < commit for fence in table.fences):
                    yield f"{transaction.start} passed by a fence of {name}"
                if met(table, row, column, transaction.snapshot, commit) is Verdict.ABORTS:
                    yield f"{transaction.start} passed by another one at {name} {row!r} {column!r}"

    def _fenced_at(self, table: str) -> int:
        fences = self.tables[table].fences if table in self.tables else []
        return max([*fences, self.dropped.get(table, 0)])


def compared(transaction: OpenTransaction) -> set[tuple[str, bytes, bytes | None]]:
    """The cells, or whole rows, that nobody may have committed to since its snapshot."""
    written = {(table, *place) for table, place, write in transaction.writes() if not write.conflict_free}
    return written | transaction.guarded


def met(table: Table, row: bytes, column: bytes | None, since: int, until: int = 2**63) -> Verdict:
    """Whether somebody committed between two moments to a cell, or to its row where that is what is compared.

    What was written conflict-free the oracle does not remember, and those see it who look at the data themselves; and
    these do not see what lies below it, by who began earlier.
    """
    found = Verdict.COMMITS
    for place, versions in table.versions.items():
        if place[0] != row or not (table.by_row or column is None or place[1] == column):
            continue
        for each in versions:
            if since < each.commit < until:
                if not each.conflict_free and not any(
                    other.conflict_free and other.start > each.start for other in versions
                ):
                    return Verdict.ABORTS
                found = Verdict.EITHER
    return found
