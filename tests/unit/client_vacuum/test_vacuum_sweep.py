"""Any history, vacuumed: every snapshot at or above the horizon reads as the model says, before, amid and after.

Also where the vacuum is killed at any call to the store, half of which took place, and repeated; and where another
vacuum, with a horizon of its own, does all its work between any two calls of the first. All of that of a table that is
Pythia's from the beginning, and of one that was adopted.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import ClassVar

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from client import CatalogEntry
from client.catalog.entry import ShownFrom
from client.cells import TOMBSTONE
from client.snapshots import plain_cells, settler
from client.snapshots.all_columns import ExpectedColumns
from client.snapshots.changed_rows import ChangedRow
from client.snapshots.changes import ChangesReader
from client.snapshots.reading import SnapshotReader
from client.snapshots.resolver import OutcomeCache, Resolver, Site
from client.snapshots.visibility import NOT_COMMITTED, View
from client.vacuum import clean_rows, sweep
from client.vacuum.finished import drop_commit_rows
from client.vacuum.plan import horizons
from client.vacuum.report import TableReport, VacuumReport
from client.vacuum.sweep import Sweep
from client.vacuum.swept import NOT_SWEPT, Sweeping, Swept
from commit_table import Aborted, CommitTable, Committed, Undecided, layout
from commit_table.timestamps import compose
from store import Cell, Family, KeyRange, RowPut, StoreUnavailable
from tests.examples import examples
from tests.recording import record
from tests.unit.client_vacuum.watching import Killed, WatchedStore

TABLE, COMMITS = "t", "commits"
OLD_EPOCH, EPOCH = compose(1), compose(20)
END_MS = 60
ROWS = (b"r1", b"r2")
COLUMNS = (b"f:a", b"f:b", b"g:a")
EVERYTHING = KeyRange(b"", b"")
FEW = settings(max_examples=examples(50))
"""Each test runs six times (``expected_columns``, ``is_adopted``), with the same examples."""
WAIT_SECONDS_MAX = 30
TOO_MANY_WOULD_COME_SECONDS = 0.2
Place = tuple[bytes, bytes]


@dataclass(frozen=True)
class Writer:
    """``commit_ms``: later than its start; ``None``: it never commits. ``ended``: whether its end is on record.
    ``lasts``: whether the record says of itself that it is to last, also where it is gone or says nothing else.
    """

    start_ms: int
    cells: frozenset[Place]
    deletes: bool
    commit_ms: int | None
    ended: bool
    marked: str
    lasts: bool = False

    @property
    def start(self) -> int:
        return compose(self.start_ms, 3)

    @property
    def commit(self) -> int | None:
        return None if self.commit_ms is None else compose(self.start_ms + self.commit_ms, 5)

    def value(self) -> bytes:
        return TOMBSTONE if self.deletes else b"%d" % self.start_ms


@pytest.fixture(autouse=True, scope="module", params=[0, 2, 3], ids=["row by row", "two columns", "all columns"])
def expected_columns(request: pytest.FixtureRequest) -> Iterator[None]:
    """So many are expected from the first row on, and one row is worth a scan; by itself it is not. Rows come together,
    or one after the other, by what was found out at those before.
    """

    class Expected(ExpectedColumns):
        def __init__(self, key_range: KeyRange) -> None:
            super().__init__(key_range)
            self._met = set(COLUMNS[: request.param])

    with pytest.MonkeyPatch.context() as patch:
        if request.param:
            patch.setattr(clean_rows, "ROWS_WORTH_A_SCAN", 1)
            patch.setattr(sweep, "ExpectedColumns", Expected)
            patch.setattr(sweep, "COLUMN_BATCH_ROWS", 4 - request.param)
        yield


PLAIN_THROUGH, STRAY = 900, 1_000
PLAIN: Mapping[Place, Sequence[Cell]] = {
    (b"r1", b"f:a"): [Cell(b"plain", PLAIN_THROUGH), Cell(b"below", 7), Cell(b"at the bottom", 3)],
    (b"r1", b"f:b"): [Cell(b"of who went on without transactions", STRAY), Cell(TOMBSTONE, 800)],
    (b"r2", b"f:a"): [Cell(b"of who went on without transactions", STRAY)],
    (b"r2", b"g:a"): [Cell(TOMBSTONE + b"text", 700), Cell(b"below", 699)],
    (b"r3", b"f:a"): [Cell(b"that nobody ever wrote", 600), Cell(b"below", 599)],
    (b"r4", b"g:a"): [Cell(b"of who went on without transactions", STRAY)],
}
"""What programs without transactions put, the newest first: above ``PLAIN_THROUGH`` after the table was adopted."""
BEGUN_WITH: Mapping[bytes, Mapping[bytes, bytes]] = {
    b"r1": {b"f:a": b"plain", b"f:b": TOMBSTONE},
    b"r2": {b"g:a": TOMBSTONE + b"text"},
    b"r3": {b"f:a": b"that nobody ever wrote"},
}
"""Of that, what everybody sees."""


@pytest.fixture(autouse=True, scope="module", params=[False, True], ids=["", "adopted"])
def is_adopted(request: pytest.FixtureRequest) -> Iterator[None]:
    """Whether the table was adopted."""
    with pytest.MonkeyPatch.context() as patch:
        if request.param:
            patch.setattr(plain_cells, "TRANSACTIONS_FROM", compose(1))
            patch.setattr(World, "plain_through", PLAIN_THROUGH)
        yield


@pytest.fixture(autouse=True, scope="module")
def few_calls() -> Iterator[None]:
    """A vacuum looks for the rows of these few milliseconds, and not behind each salt, most of which have none."""

    def rows_before(block: int) -> Iterator[KeyRange]:
        for milliseconds in range(block):
            row = layout.row_key(compose(milliseconds, 1))
            yield KeyRange(row, row + b"\0")

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(layout, "rows_before", rows_before)
        yield


class Tables:
    """One table."""

    def entry(self, table: str) -> CatalogEntry:
        return CatalogEntry("cell", ("f", "g"), plain_through=World.plain_through)

    fresh_entry = entry


class World:
    """A store with a table and a commit table, and what happens in them."""

    plain_through: ClassVar[int] = 0

    def __init__(self) -> None:
        self.store = WatchedStore()
        self.store.create_table(TABLE, [Family("f"), Family("g")])
        self.commits = CommitTable(self.store, COMMITS)
        self.commits.create()
        self.resolver = Resolver(self.store, self.commits, OutcomeCache(100), heal=True)
        self.asked_to_abort: list[int] = []
        self.swept = Swept()
        for (row, column), cells in PLAIN.items() if self.plain_through else ():
            for value, timestamp in cells:
                self.store.put(TABLE, [RowPut(row, {column: value})], timestamp)

    def abort(self, start: int) -> Committed | Aborted:
        assert start >= compose(1), "no transaction's"
        self.asked_to_abort.append(start)
        return self.commits.abort(start)

    def write(self, writer: Writer) -> None:
        for row, column in writer.cells:
            self.store.put(TABLE, [RowPut(row, {column: writer.value()})], writer.start)
        sites = sorted({Site(TABLE, row, column[:1]) for row, column in writer.cells})
        if writer.lasts:
            self.commits.let_last(writer.start)
        if writer.commit is None:
            if writer.ended:
                self.commits.abort(writer.start)
                self.resolver.write_shadows(sites[: len(sites) // 2], writer.start, NOT_COMMITTED)
            return
        if writer.ended:
            record(self.store, COMMITS, {writer.start: writer.commit}, OLD_EPOCH if writer.start < EPOCH else EPOCH)
        some = {"all": sites, "some": sites[::2], "none": []}[writer.marked]
        self.resolver.write_shadows(some if writer.ended else sites, writer.start, writer.commit)

    def read(self, snapshot: int) -> dict[bytes, dict[bytes, bytes]]:
        resolver = Resolver(self.store, self.commits, OutcomeCache(100), heal=False)
        reader = SnapshotReader(self.store, resolver, View(snapshot, EPOCH), Tables())
        return dict(reader.scan(TABLE, EVERYTHING, None))

    def changes(self, since: int, snapshot: int) -> list[ChangedRow]:
        resolver = Resolver(self.store, self.commits, OutcomeCache(100), heal=False)
        reader = ChangesReader(self.store, resolver, View(snapshot, EPOCH), Tables())
        return list(reader.scan_changes(TABLE, EVERYTHING, None, since))

    def read_below_mark(self, snapshot: int, mark: Callable[[], int]) -> dict[bytes, dict[bytes, bytes]]:
        """As long as the table's mark allows; column by column many versions at a time."""
        resolver = Resolver(self.store, self.commits, OutcomeCache(100), heal=True)
        reader = SnapshotReader(
            self.store, resolver, View(snapshot, EPOCH), Tables(), shown_from=lambda table: ShownFrom(mark())
        )
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(settler, "REQUESTS_BEFORE_PAGES", 0)
            return dict(reader.scan(TABLE, EVERYTHING, None))

    def vacuum(
        self,
        horizon: int,
        *,
        dry_run: bool = False,
        lasting: int = 2,
        everything: bool = False,
        reads_at_once: int = 1,
        parts: Sequence[KeyRange] = (EVERYTHING,),
    ) -> tuple[TableReport, VacuumReport]:
        done, left = TableReport(), Swept(horizon)
        for part in parts:
            sweep = Sweep(
                self.store,
                self.commits,
                self.abort,
                horizon,
                lasting_records_max=lasting,
                dry_run=dry_run,
                reads_at_once=reads_at_once,
            )
            sweeping = Sweeping(horizon, self.plain_through, NOT_SWEPT if everything else self.swept)
            for report in sweep.table(TABLE, [b"f", b"g"], sweeping, part):
                done.add(report)
            left = left.and_of(sweeping.swept())
        if not dry_run:
            self.swept = max(self.swept, left, key=lambda swept: swept.through)
        limits = horizons(horizon, compose(END_MS), 0, 0)
        whole = VacuumReport(dry_run, *limits)
        drop_commit_rows(self.store, COMMITS, whole, limits.first_block_kept, EPOCH, left.unshadowed)
        return done, whole

    def everything(self) -> dict[tuple[str, bytes, bytes], list[Cell]]:
        cells = {}
        for table, families in ((TABLE, [b"f", b"g"]), (COMMITS, [b"c", b"f"])):
            for row, columns in self.store.scan(table, EVERYTHING, families):
                for column in columns:
                    cells[table, row, column] = self.store.versions(table, row, column, limit=1_000)
        return cells


def expected(writers: Sequence[Writer], snapshot: int) -> dict[bytes, dict[bytes, bytes]]:
    begun_with = BEGUN_WITH if World.plain_through else {}
    rows: dict[bytes, dict[bytes, bytes | None]] = {row: {**values} for row, values in begun_with.items()}
    for writer in sorted(writers, key=lambda writer: writer.start):
        if writer.commit is not None and writer.commit <= snapshot:
            for row, column in writer.cells:
                rows.setdefault(row, {})[column] = None if writer.deletes else writer.value()
    visible = {row: {c: value for c, value in values.items() if value is not None} for row, values in rows.items()}
    return {row: values for row, values in visible.items() if values}


histories = st.lists(
    st.builds(
        Writer,
        start_ms=st.integers(2, 50),
        cells=st.frozensets(st.tuples(st.sampled_from(ROWS), st.sampled_from(COLUMNS)), min_size=1, max_size=4),
        deletes=st.booleans(),
        commit_ms=st.none() | st.integers(0, 8),
        ended=st.booleans(),
        marked=st.sampled_from(["all", "some", "none"]),
        lasts=st.booleans(),
    ),
    max_size=9,
    unique_by=lambda writer: writer.start_ms,
)
"""Writers of one cell may overlap, as conflict-free ones do."""
moments = st.builds(compose, st.integers(1, 55), st.sampled_from([0, 3, 5, 2**18 - 1]))


lasting_numbers = st.just([9] * 3) | st.lists(st.sampled_from([0, 1, 2, 9]), min_size=3, max_size=3)
"""How many records may last, of vacuums one after the other. Of 9 or fewer that are met all do."""


def made(writers: Sequence[Writer], horizon: int) -> World:
    """Everybody has written who began by then; others write later."""
    world = World()
    for writer in writers:
        if writer.start <= horizon:
            world.write(writer)
    return world


def check(world: World, writers: Sequence[Writer], horizon: int) -> None:
    commits = [writer.commit for writer in writers if writer.commit is not None]
    for snapshot in {horizon, *commits, *(commit - 1 for commit in commits), compose(END_MS)}:
        if snapshot >= horizon:
            assert world.read(snapshot) == expected(writers, snapshot)


def live_on(world: World, writers: Sequence[Writer], horizon: int) -> None:
    """Those who began above the horizon write only now: no delete may hide it. Then comes one more vacuum."""
    for writer in writers:
        if writer.start > horizon:
            world.write(writer)
    check(world, writers, horizon)
    world.vacuum(compose(END_MS))
    check(world, writers, compose(END_MS))


@FEW
@given(histories, moments)
def test_every_snapshot_at_or_above_the_horizon_reads_the_same(writers: list[Writer], horizon: int) -> None:
    world = made(writers, horizon)
    old = [writer for writer in writers if writer.start <= horizon]
    world.vacuum(horizon)
    check(world, old, horizon)
    live_on(world, writers, horizon)


@FEW
@given(histories, moments, moments)
def test_what_changed_since_the_horizon_or_later_stays_the_same(
    writers: list[Writer], horizon: int, since: int
) -> None:
    world, end = made(writers, compose(END_MS)), compose(END_MS)
    since = max(horizon, since)
    before = {snapshot: world.changes(since, snapshot) for snapshot in (since, (since + end) // 2, end)}
    for earlier, later in ((since, (since + end) // 2), (since, end)):
        rows = expected(writers, earlier)
        for row, values, _ in before[later]:
            rows.pop(row, None)
            if values is not None:
                rows[row] = values
        assert rows == expected(writers, later)
    world.vacuum(horizon)
    assert {snapshot: world.changes(since, snapshot) for snapshot in before} == before


@FEW
@given(histories, moments)
def test_nothing_that_could_go_stays(writers: list[Writer], horizon: int) -> None:
    world = made(writers, horizon)
    reported, _ = world.vacuum(horizon)
    left = world.everything()
    by_start = {writer.start: writer for writer in writers}
    committed = {writer.start: writer.commit for writer in writers} | {STRAY: None}
    unshadowed = {
        cell.timestamp
        for (name, row, column), cells in left.items()
        if name == TABLE and not column.endswith(b":\x00")
        for cell in cells
        if cell.timestamp > World.plain_through
        and all(shadow.timestamp != cell.timestamp for shadow in left.get((TABLE, row, column[:2] + b"\x00"), []))
    }
    lasting = {start >> 18 for start in unshadowed if by_start[start].lasts}
    assert len(lasting) <= 2
    assert {int.from_bytes(row[1:]) for name, row, _ in left if name == COMMITS} - {(horizon + 1) >> 18} == lasting - {
        (horizon + 1) >> 18
    }
    counted = 0
    for (name, _, column), cells in left.items():
        assert not column.endswith(b":\x00") or cells[-1].timestamp > World.plain_through
        if name == COMMITS or column.endswith(b":\x00"):
            continue
        plain = [cell for cell in cells if cell.timestamp <= World.plain_through]
        written = cells[: len(cells) - len(plain)]
        commits = [committed[cell.timestamp] for cell in written] + [World.plain_through] * bool(plain)
        lowest = commits[-1]
        assert lowest is not None, "what aborted lies at the bottom"
        settled = [commit for commit in commits if commit is not None and commit <= horizon]
        assert len(settled) <= 1
        assert not settled or settled == [lowest]
        assert plain or lowest > horizon or cells[-1].value != TOMBSTONE
        counted += len(commits)
    assert counted == reported.versions_kept + reported.aborted_cells_kept
    again, _ = world.vacuum(horizon)
    assert (again.columns_trimmed, again.columns_removed, again.shadow_cells_written) == (0, 0, 0)
    assert world.everything() == left


def deleted_twice(first_ms: int, second_ms: int, commit_ms: int) -> list[Writer]:
    """By two transactions, of which the second one takes so long to commit."""
    cell = frozenset({(b"r1", b"f:a")})
    return [
        Writer(first_ms, cell, deletes=True, commit_ms=0, ended=True, marked="all"),
        Writer(second_ms, cell, deletes=True, commit_ms=commit_ms, ended=True, marked="all"),
    ]


def below_what_aborted(first_ms: int, second_ms: int) -> list[Writer]:
    """One that does without shadow cells, under one that never committed."""
    cell = frozenset({(b"r1", b"f:a")})
    return [
        Writer(first_ms, cell, deletes=False, commit_ms=0, ended=True, marked="none", lasts=True),
        Writer(second_ms, cell, deletes=False, commit_ms=None, ended=True, marked="all"),
    ]


def in_two_columns(first_ms: int, second_ms: int) -> list[Writer]:
    """One that does without shadow cells, and beside it one with them."""
    return [
        Writer(first_ms, frozenset({(b"r1", b"f:a")}), False, commit_ms=0, ended=True, marked="none", lasts=True),
        Writer(second_ms, frozenset({(b"r1", b"f:b")}), False, commit_ms=0, ended=True, marked="all"),
    ]


def partly_without(first_ms: int, second_ms: int) -> list[Writer]:
    """One that does without shadow cells for some of its rows, and one that never committed above one that has its own.

    Hypothesis found it: by that shadow cell the outcome was known, and nobody asked whether the record lasts.
    """
    cells = frozenset({(b"r1", b"f:a"), (b"r2", b"f:a")})
    return [
        Writer(first_ms, cells, deletes=False, commit_ms=0, ended=True, marked="some", lasts=True),
        Writer(second_ms, frozenset({(b"r1", b"f:a")}), False, commit_ms=None, ended=False, marked="all"),
    ]


@settings(max_examples=examples(75))
@given(histories, st.lists(moments, min_size=2, max_size=3, unique=True), lasting_numbers)
@example(partly_without(2, 3), [compose(3), compose(3, 3)], [9] * 3)
@example(deleted_twice(2, 3, 4), [compose(5), compose(10)], [9] * 3)
@example(below_what_aborted(2, 3), [compose(5), compose(10)], [9] * 3)
@example(in_two_columns(2, 3), [compose(5), compose(10), compose(15)], [9] * 3)
@example(in_two_columns(2, 3), [compose(5), compose(10), compose(15)], [9, 0, 0])
def test_vacuum_after_vacuum_leaves_what_one_leaves_that_goes_over_everything(
    writers: list[Writer], horizons: list[int], lasting: list[int]
) -> None:
    one_after_the_other, at_once = World(), World()
    written = -1
    for horizon, lasting_max in zip(sorted(horizons), lasting, strict=False):
        for writer in writers:
            if written < writer.start <= horizon:
                one_after_the_other.write(writer)
                at_once.write(writer)
        written = horizon
        one_after_the_other.vacuum(horizon, lasting=lasting_max)
        at_once.vacuum(horizon, lasting=lasting_max, everything=True, reads_at_once=3)
        old = [writer for writer in writers if writer.start <= horizon]
        check(one_after_the_other, old, horizon)
        if set(lasting) == {9}:
            assert one_after_the_other.everything() == at_once.everything()
    live_on(one_after_the_other, writers, horizon)


@settings(max_examples=examples(75))
@given(histories, st.lists(moments, min_size=2, max_size=3, unique=True), lasting_numbers)
def test_a_vacuum_that_goes_less_far_than_one_before_leaves_what_later_ones_need(
    writers: list[Writer], horizons: list[int], lasting: list[int]
) -> None:
    world = made(writers, max(horizons))
    old = [writer for writer in writers if writer.start <= max(horizons)]
    for done, (horizon, lasting_max) in enumerate(zip(horizons, lasting, strict=False), 1):
        world.vacuum(horizon, lasting=lasting_max)
        check(world, old, max(horizons[:done]))


@pytest.mark.parametrize("second", [compose(4, 3), compose(5, 2)])
@pytest.mark.parametrize("commit_ms", [None, 8])
def test_a_record_that_lasts_is_needed_below_several_that_not_all_see(second: int, commit_ms: int | None) -> None:
    """Also by a vacuum that does not go as far as the one before, and sees another one of these as the newest."""
    cell = frozenset({(b"r1", b"f:a")})
    writers = [
        Writer(3, cell, deletes=False, commit_ms=0, ended=True, marked="none", lasts=True),
        Writer(4, cell, deletes=False, commit_ms=commit_ms, ended=True, marked="all"),
        Writer(5, cell, deletes=False, commit_ms=commit_ms, ended=True, marked="all"),
    ]
    world = made(writers, compose(5, 3))
    for horizon in (compose(5, 3), second, compose(6)):
        world.vacuum(horizon)
        check(world, writers, compose(6))


@pytest.mark.parametrize("marked", [True, False])
@pytest.mark.parametrize("beside", [True, False])
def test_a_record_that_lasts_is_needed_below_what_came_late(marked: bool, beside: bool) -> None:
    """A process that the oracle gave up writes on once a vacuum has been there, and may mark that it aborted."""
    lasting = Writer(3, frozenset({(b"r1", b"f:a")}), False, commit_ms=0, ended=True, marked="none", lasts=True)
    other = Writer(6, frozenset({(b"r1", b"f:b")}), False, commit_ms=0, ended=True, marked="all")
    writers = [lasting, other] if beside else [lasting]
    world = made(writers, compose(7))
    world.vacuum(compose(7))
    late = compose(5, 3)
    world.store.put(TABLE, [RowPut(b"r1", {b"f:a": b"late"})], late)
    if marked:
        world.resolver.write_shadows([Site(TABLE, b"r1", b"f")], late, NOT_COMMITTED)
    for horizon in (compose(8), compose(9)):
        world.vacuum(horizon)
        check(world, writers, compose(9))


@FEW
@given(histories, st.lists(moments, min_size=2, max_size=2, unique=True))
def test_in_parts_a_table_is_vacuumed_as_in_one(writers: list[Writer], horizons: list[int]) -> None:
    first, second = sorted(horizons)
    in_parts, in_one = made(writers, first), made(writers, first)
    for horizon in (first, second):
        parted, _ = in_parts.vacuum(horizon, lasting=9, parts=[KeyRange(b"", b"r2"), KeyRange(b"r2", b"")])
        whole, _ = in_one.vacuum(horizon, lasting=9)
        check(in_parts, [writer for writer in writers if writer.start <= first], horizon)
        assert parted.versions_kept == whole.versions_kept
        if not any(writer.lasts for writer in writers):  # else one part may not know that another has a shadow cell
            assert (in_parts.everything(), in_parts.swept) == (in_one.everything(), in_one.swept)


@FEW
@given(histories, moments)
def test_a_dry_run_changes_nothing_and_counts_what_is_done(writers: list[Writer], horizon: int) -> None:
    world = made(writers, horizon)
    before = world.everything()
    counted, whole = world.vacuum(horizon, dry_run=True)
    assert world.everything() == before
    done, whole_done = world.vacuum(horizon)
    undecided = counted.transactions_undecided
    assert done.transactions_aborted >= undecided
    if not undecided:
        assert counted == done
        assert whole.commit_table_rows_dropped == whole_done.commit_table_rows_dropped
        assert whole.commit_table_rows_lasting == whole_done.commit_table_rows_lasting


@FEW
@given(histories, moments, st.data())
def test_killed_at_any_call_and_repeated(writers: list[Writer], horizon: int, data: st.DataObject) -> None:
    calls = _calls_of_a_vacuum(writers, horizon)
    world = made(writers, horizon)

    def die() -> None:
        raise Killed

    old = [writer for writer in writers if writer.start <= horizon]
    world.store.at, world.store.then = world.store.calls + data.draw(st.integers(1, calls)), die
    try:
        world.vacuum(horizon)
    except Killed:
        check(world, old, horizon)
        world.vacuum(horizon)
    check(world, old, horizon)
    live_on(world, writers, horizon)


@FEW
@given(histories, moments, moments, st.data())
def test_another_vacuum_between_any_two_calls(
    writers: list[Writer], horizon: int, other: int, data: st.DataObject
) -> None:
    calls, later = _calls_of_a_vacuum(writers, horizon), max(horizon, other)
    world = made(writers, later)
    old = [writer for writer in writers if writer.start <= later]

    def vacuum_too() -> None:
        world.vacuum(other, lasting=data.draw(st.integers(0, 2)))
        check(world, old, later)

    world.store.at, world.store.then = world.store.calls + data.draw(st.integers(1, calls)), vacuum_too
    world.vacuum(horizon)
    check(world, old, later)
    live_on(world, writers, later)


def test_a_commit_that_another_vacuum_settles_between_two_looks_is_kept() -> None:
    """Its shadow cell was missing at the first look, and its record is gone at the second."""
    writer = Writer(2, frozenset({(b"r1", b"f:a")}), False, 1, ended=True, marked="none")
    for call in range(1, _calls_of_a_vacuum([writer], compose(9)) + 1):
        world = made([writer], compose(9))
        world.store.at, world.store.then = world.store.calls + call, partial(world.vacuum, compose(9))
        world.vacuum(compose(9))
        check(world, [writer], compose(9))
        assert world.asked_to_abort == []


def test_a_commit_that_comes_before_the_abort_and_is_settled_by_another_vacuum_is_kept() -> None:
    writer = Writer(2, frozenset({(b"r1", b"f:a")}), False, 1, ended=True, marked="none")
    world, horizon = World(), compose(9)
    world.store.put(TABLE, [RowPut(b"r1", {b"f:a": writer.value()})], writer.start)

    def abort_too_late(start: int) -> Committed | Aborted:
        world.write(writer)
        world.vacuum(horizon)
        return world.commits.abort(start)

    sweep = Sweep(world.store, world.commits, abort_too_late, horizon)
    list(sweep.table(TABLE, [b"f", b"g"], Sweeping(horizon, World.plain_through)))
    check(world, [writer], horizon)


@FEW
@given(histories, moments, st.integers(1, 12))
def test_a_vacuum_between_any_two_calls_of_a_reader_by_pages(writers: list[Writer], horizon: int, call: int) -> None:
    world = made(writers, horizon)
    old = [writer for writer in writers if writer.start <= horizon]
    snapshot, mark = compose(END_MS), 0

    def vacuum() -> None:
        nonlocal mark
        mark = horizon + 1
        world.vacuum(horizon)

    world.store.at, world.store.then = world.store.calls + call, vacuum
    assert world.read_below_mark(snapshot, lambda: mark) == expected(old, snapshot)
    live_on(world, writers, horizon)


def test_commit_rows_go_up_to_the_first_that_is_kept_and_what_a_later_epoch_recorded_stays() -> None:
    """There may be one since the vacuum's horizon was known, and it may have had an old transaction commit."""
    world = World()
    dropped, kept, recorded_later = compose(5), compose(6), compose(4)
    record(world.store, COMMITS, {dropped: dropped + 1, kept: kept + 1}, OLD_EPOCH)
    record(world.store, COMMITS, {recorded_later: EPOCH + 1}, EPOCH)
    drop_commit_rows(world.store, COMMITS, VacuumReport(False, 0, 0), 6, OLD_EPOCH)
    assert world.commits.outcomes([dropped, kept, recorded_later]) == {
        dropped: Undecided(),
        kept: Committed(kept + 1),
        recorded_later: Committed(EPOCH + 1),
    }


def test_a_record_that_lasts_is_needed_below_a_version_that_only_later_snapshots_see() -> None:
    cells = frozenset({(b"r1", b"f:a")})
    lasting = Writer(3, cells, False, 1, ended=True, marked="none", lasts=True)
    later = Writer(8, cells, False, 4, ended=True, marked="all")
    world = made([lasting, later], compose(10))
    world.vacuum(compose(10))
    check(world, [lasting, later], compose(10))
    assert world.commits.outcome(lasting.start) == Committed(lasting.start + (1 << 18) + 2)


def test_a_record_that_lasts_is_needed_by_a_row_that_is_clean(monkeypatch: pytest.MonkeyPatch) -> None:
    """And by no other: that it lasts is found out at one that goes."""
    monkeypatch.setattr(World, "plain_through", 0)
    world, start, commit = World(), compose(3, 3), compose(4, 5)
    for row, value in ((b"r1", TOMBSTONE), (b"r2", b"1")):
        world.store.put(TABLE, [RowPut(row, {b"f:a": value})], start)
    world.commits.let_last(start)
    record(world.store, COMMITS, {start: commit}, OLD_EPOCH)
    done, _ = world.vacuum(compose(10))
    assert (done.columns_removed, done.versions_kept, done.shadow_cells_left_out) == (1, 1, 1)
    assert world.commits.outcome(start) == Committed(commit, is_lasting=True)
    assert world.read(compose(END_MS)) == {b"r2": {b"f:a": b"1"}}


def test_a_vacuum_takes_few_large_rows_at_a_time(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sweep, "BATCH_BYTES_MAX", 1_000)
    monkeypatch.setattr(sweep, "COLUMN_BATCH_ROWS", 100)
    world = World()
    for size in (10, 400):
        world.store.create_table(f"t{size}", [Family("f"), Family("g")])
        rows = [RowPut(b"r%03d" % number, {b"f:a": bytes(size)}) for number in range(200)]
        world.store.put(f"t{size}", rows, compose(2))
    swept = Sweep(world.store, world.commits, world.abort, compose(10))
    taken = {
        size: [report.rows for report in swept.table(f"t{size}", [b"f", b"g"], Sweeping(compose(10), 0))]
        for size in (10, 400)
    }
    assert {size: (sum(rows), max(rows)) for size, rows in taken.items()} == {10: (200, 100), 400: (200, 16)}


@pytest.mark.parametrize(("reads_at_once", "requests", "together"), [(1, 5, 1), (3, 5, 3), (3, 2, 2), (3, 1, 1)])
def test_so_many_requests_wait_for_the_store_at_a_time(reads_at_once: int, requests: int, together: int) -> None:
    world, lock, under_way = World(), threading.Lock(), [0, 0]
    let_go = threading.Event()
    met = threading.Barrier(together, threading.Timer(TOO_MANY_WOULD_COME_SECONDS, let_go.set).start)

    def read(number: int) -> int:
        with lock:
            under_way[0] += 1
            under_way[1] = max(under_way)
        if number < together:
            met.wait(WAIT_SECONDS_MAX)
        assert let_go.wait(WAIT_SECONDS_MAX)
        with lock:
            under_way[0] -= 1
        return number

    sweep = Sweep(world.store, world.commits, world.abort, compose(10), reads_at_once=reads_at_once)
    assert sweep.answers([partial(read, number) for number in range(requests)]) == list(range(requests))
    assert under_way == [0, together]


def test_a_request_that_fails_ends_the_sweep() -> None:
    def fail() -> None:
        raise StoreUnavailable("no gateway")

    world = World()
    sweep = Sweep(world.store, world.commits, world.abort, compose(10), reads_at_once=3)
    with pytest.raises(StoreUnavailable, match="no gateway"):
        sweep.answers([lambda: None, fail, lambda: None])


def _calls_of_a_vacuum(writers: Sequence[Writer], horizon: int) -> int:
    world = made(writers, horizon)
    before = world.store.calls
    world.vacuum(horizon)
    return world.store.calls - before
