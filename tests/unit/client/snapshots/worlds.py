"""Stores in which writers of every kind have been: what readers are tried on, and what the model says they see.

A history is a list of what each writer did and when it committed. What there is of it are HBase's cells, some shadow
cells, and the commit table.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType

from hypothesis import strategies as st

from client import CatalogEntry
from client.cells import TOMBSTONE
from client.snapshots.changes import ChangesReader
from client.snapshots.resolver import OutcomeCache, Resolver, Site
from client.snapshots.visibility import NOT_COMMITTED, View
from commit_table import CommitTable
from store import Cell, Family, KeyRange, RowPut
from store.faults import FaultyCellStore
from tests.recording import record

OLD_EPOCH, EPOCH = 1_000, 2_000
TABLE, COMMITS = "t", "commits"
ROWS = (b"r1", b"r2", b"r3")
COLUMNS = (b"f:a", b"f:b", b"g:a")
WHOLE = KeyRange(b"", b"")


class AgreedTables:
    """Every table has the same families."""

    def __init__(self, *families: str, plain_through: int = 0) -> None:
        self._entry = CatalogEntry("cell", families, plain_through=plain_through)

    def entry(self, table: str) -> CatalogEntry:
        return self._entry

    def fresh_entry(self, table: str) -> CatalogEntry:
        return self._entry


FAMILIES = AgreedTables("f", "g")


@dataclass(frozen=True)
class Writer:
    """``commit_after`` its start; ``None``: it never commits. ``marked``: which of its sites have shadow cells."""

    start: int
    cells: frozenset[tuple[bytes, bytes]]
    deletes: bool
    commit_after: int | None
    recorded: bool
    marked: str

    @property
    def commit_timestamp(self) -> int | None:
        return None if self.commit_after is None else self.start + self.commit_after

    def value(self) -> bytes:
        return TOMBSTONE if self.deletes else b"%d" % self.start


PLAIN_THROUGH, STRAY = 900, 950
PLAIN: Mapping[tuple[bytes, bytes], Sequence[Cell]] = {
    (b"r1", b"f:a"): [Cell(b"plain", PLAIN_THROUGH), Cell(b"below", 7)],
    (b"r1", b"f:b"): [Cell(b"of who went on without transactions", STRAY), Cell(TOMBSTONE, 800), Cell(b"below", 3)],
    (b"r2", b"f:a"): [Cell(b"of who went on without transactions", STRAY)],
    (b"r3", b"g:a"): [Cell(TOMBSTONE + b"text", 700)],
}
BEGUN_WITH: Mapping[bytes, Mapping[bytes, bytes]] = {
    b"r1": {b"f:a": b"plain", b"f:b": TOMBSTONE},
    b"r3": {b"g:a": TOMBSTONE + b"text"},
}


@dataclass
class World:
    store: FaultyCellStore
    commits: CommitTable
    resolver: Resolver
    tables: AgreedTables = FAMILIES

    def reader(self, view: View) -> ChangesReader:
        return ChangesReader(self.store, self.resolver, view, self.tables)

    def adopt(self) -> None:
        """The table had cells already that no transaction wrote, and gets one more."""
        self.tables = AgreedTables("f", "g", plain_through=PLAIN_THROUGH)
        for (row, column), cells in PLAIN.items():
            for value, timestamp in cells:
                self.store.put(TABLE, [RowPut(row, {column: value})], timestamp)


def make_world(store: FaultyCellStore | None = None, outcomes_remembered: int = 2) -> World:
    store = store or FaultyCellStore()
    store.create_table(TABLE, [Family("f"), Family("g")])
    commits = CommitTable(store, COMMITS)
    commits.create()
    return World(store, commits, Resolver(store, commits, OutcomeCache(outcomes_remembered), heal=True))


def write(world: World, writer: Writer) -> None:
    for row, column in writer.cells:
        world.store.put(TABLE, [RowPut(row, {column: writer.value()})], writer.start)
    sites = sorted({Site(TABLE, row, column[:1]) for row, column in writer.cells})
    epoch = OLD_EPOCH if writer.start < EPOCH else EPOCH
    if writer.commit_timestamp is None:
        if writer.recorded:  # an abort through the oracle
            world.commits.abort(writer.start)
            world.resolver.write_shadows(sites[: len(sites) // 2], writer.start, NOT_COMMITTED)
        return
    if writer.recorded:
        record(world.store, COMMITS, {writer.start: writer.commit_timestamp}, epoch)
    kept = sites if writer.marked == "all" or not writer.recorded else sites[::2] if writer.marked == "some" else []
    world.resolver.write_shadows(kept, writer.start, writer.commit_timestamp)


def expected(
    writers: list[Writer], snapshot: int, begun_with: Mapping[bytes, Mapping[bytes, bytes]] = MappingProxyType({})
) -> dict[bytes, dict[bytes, bytes]]:
    rows: dict[bytes, dict[bytes, bytes | None]] = {row: {**values} for row, values in begun_with.items()}
    for writer in sorted(writers, key=lambda writer: writer.start):
        if writer.commit_timestamp is not None and writer.commit_timestamp <= snapshot:
            for row, column in writer.cells:
                rows.setdefault(row, {})[column] = None if writer.deletes else writer.value()
    visible = {
        row: {column: value for column, value in values.items() if value is not None} for row, values in rows.items()
    }
    return {row: values for row, values in visible.items() if values}


writers_of_a_history = st.lists(
    st.builds(
        Writer,
        start=st.integers(1_010, 2_900),
        cells=st.frozensets(st.tuples(st.sampled_from(ROWS), st.sampled_from(COLUMNS)), min_size=1, max_size=4),
        deletes=st.booleans(),
        commit_after=st.none() | st.integers(1, 9),
        recorded=st.booleans(),
        marked=st.sampled_from(["all", "some", "none"]),
    ),
    max_size=8,
    unique_by=lambda writer: writer.start // 10,
)


def history(writers: list[Writer]) -> list[Writer]:
    """One writer after the other, as writers of the same cell are under snapshot isolation; epochs do not overlap."""
    return [Writer(w.start // 10 * 10, w.cells, w.deletes, w.commit_after, w.recorded, w.marked) for w in writers]
