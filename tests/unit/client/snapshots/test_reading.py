"""Reads against a model: any history of writers, any loss of shadow cells, any vacuum of the commit table.

The model is a list of what each writer did and when it committed. The reader sees HBase cells, some shadow cells, and
the commit table; it must come to what the model says, whatever is missing and whoever is late.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import islice
from types import SimpleNamespace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from client import InvalidRequest
from client.catalog.entry import ShownFrom
from client.cells import ROW_MARKER_VALUE, TOMBSTONE, decode_shadow, is_reserved, row_marker_column
from client.snapshots import all_columns, column_scans, plain_cells, reading, settler, stored_cells
from client.snapshots.changes import ChangesReader
from client.snapshots.moments import SINCE_THE_BEGINNING
from client.snapshots.pages import PageLimits, VisibleRow
from client.snapshots.reading import SnapshotReader
from client.snapshots.resolver import OutcomeCache, Resolver, Site
from client.snapshots.visibility import NOT_COMMITTED, OPEN, View
from commit_table import Committed, Outcome, Undecided
from store import ROW_KEY_BYTES_MAX, Cell, KeyRange, Row, RowPut, StoreUnavailable, columns
from store.columns import CellColumns, ScannedColumns
from store.faults import Fault, FaultyCellStore
from tests.recording import record
from tests.unit.client.snapshots.page_by_page import page_by_page
from tests.unit.client.snapshots.worlds import (
    BEGUN_WITH,
    COLUMNS,
    COMMITS,
    EPOCH,
    FAMILIES,
    OLD_EPOCH,
    ROWS,
    TABLE,
    WHOLE,
    World,
    Writer,
    expected,
    history,
    make_world,
    write,
    writers_of_a_history,
)


@pytest.fixture
def world() -> World:
    return make_world()


def by_columns(reader: SnapshotReader, columns: Sequence[bytes] | None = None) -> dict[bytes, Mapping[bytes, bytes]]:
    """What a scan as columns shows."""
    return dict(rows_of(reader.scan_columns(TABLE, WHOLE, columns, columns or COLUMNS, 2)))


def by_pages(reader: SnapshotReader, columns: Sequence[bytes] | None = None) -> dict[bytes, dict[bytes, bytes]]:
    """By pages of one row each, by such as look at one row each, and by a single one: all three say the same."""
    alike = [dict(rows_of_pages(reader, columns, limits)) for limits in ((1, 99), (99, 1), (99, 99))]
    assert alike[0] == alike[1] == alike[2]
    return alike[0]


def rows_of_pages(
    reader: SnapshotReader, columns: Sequence[bytes] | None, limits: tuple[int, int]
) -> Iterator[VisibleRow]:
    rows_max, looked_at_max = limits
    most = PageLimits(rows_max, 2**20, looked_at_max)
    for page in page_by_page(lambda rest: reader.scan_page(TABLE, rest, columns, most, reserved=False), WHOLE):
        assert len(page.rows) <= min(rows_max, looked_at_max)
        yield from page.rows


def by_all_columns(
    reader: SnapshotReader, columns: Sequence[bytes] | None = None
) -> dict[bytes, Mapping[bytes, bytes]]:
    """What one shows that is told of no column."""
    return dict(rows_of(reader.scan_columns(TABLE, WHOLE, columns, None, 2)))


def by_changes(reader: ChangesReader) -> dict[bytes, Mapping[bytes, bytes]]:
    """What one shows of all that has changed since the beginning."""
    changes = reader.scan_changed_columns(TABLE, WHOLE, None, COLUMNS, SINCE_THE_BEGINNING, 2)
    return dict(rows_of(batch.cells for batch in changes))


def rows_of(batches: Iterable[CellColumns]) -> list[RowPut]:
    """The rows of batches, in their order."""
    return [put for batch in batches for put in batch.puts()]


@given(
    writers_of_a_history,
    st.integers(EPOCH, 3_000),
    st.sampled_from([0, 1, 64]),
    st.sampled_from([1, 500]),
    st.sampled_from([0, 1, 8]),
    st.integers(1, 4),
    st.integers(0, 4),
    st.booleans(),
)
def test_a_reader_sees_what_the_model_says(
    writers: list[Writer],
    snapshot: int,
    asked_for_max: int,
    probe_rows: int,
    before_pages: int,
    page_versions: int,
    expected_columns: int,
    is_adopted: bool,
) -> None:
    world, past = make_world(), history(writers)
    if is_adopted:
        world.adopt()
    for writer in past:
        write(world, writer)
    reader = world.reader(View(snapshot, EPOCH))
    want = expected(past, snapshot, BEGUN_WITH if is_adopted else {})
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(plain_cells, "TRANSACTIONS_FROM", OLD_EPOCH)
        patch.setattr(column_scans, "WRITERS_ASKED_FOR_MAX", asked_for_max)
        patch.setattr(column_scans, "PROBE_ROWS", probe_rows)
        patch.setattr(settler, "REQUESTS_BEFORE_PAGES", before_pages)
        patch.setattr(settler, "PAGE_VERSIONS_FIRST", page_versions)
        patch.setattr(all_columns, "EXPECTED_COLUMNS_MAX", expected_columns)
        assert by_columns(reader) == want
        assert by_columns(world.reader(View(snapshot, EPOCH))) == want
        assert by_all_columns(world.reader(View(snapshot, EPOCH))) == want
        for _ in range(2):  # once to ask and heal, once from what was healed
            assert dict(reader.scan(TABLE, KeyRange(b"", b""), None)) == want
            assert list(reader.scan(TABLE, WHOLE, None, reverse=True)) == sorted(want.items(), reverse=True)
        assert {row: values for row in ROWS if (values := reader.row(TABLE, row, None))} == want
        backward = [*ROWS[::-1], b"none", *ROWS]
        assert list(reader.rows(TABLE, backward, None).items()) == sorted(want.items(), reverse=True)
        for column in COLUMNS:
            chosen = {row: {column: values[column]} for row, values in want.items() if column in values}
            assert dict(reader.scan(TABLE, KeyRange(b"", b""), [column])) == chosen
            assert reader.rows(TABLE, ROWS, [column]) == chosen
            assert by_columns(world.reader(View(snapshot, EPOCH)), [column]) == chosen
            assert by_all_columns(world.reader(View(snapshot, EPOCH)), [column]) == chosen
        assert by_columns(reader) == want
        assert by_all_columns(reader) == want
        patch.setattr(stored_cells, "SCAN_FIRST_ROWS", 1)
        for row_by_row_max in (1, 2, 99):
            patch.setattr(reading, "ROW_BY_ROW_MAX", row_by_row_max)
            assert by_pages(reader) == by_pages(world.reader(View(snapshot, EPOCH))) == want
            for column in COLUMNS:
                chosen = {row: {column: values[column]} for row, values in want.items() if column in values}
                assert by_pages(reader, [column]) == chosen


@given(writers_of_a_history, st.integers(EPOCH, 3_000))
def test_whoever_was_not_committed_for_a_reader_never_comes_to_be(writers: list[Writer], snapshot: int) -> None:
    """Zombies of the older epoch record their commits after the reader looked: it must look the same again."""
    world, past = make_world(), history(writers)
    zombies = [w for w in past if w.start + 9 < EPOCH and w.commit_after is None and not w.recorded]
    for writer in past:
        write(world, writer)
    want = expected(past, snapshot)
    reader = world.reader(View(snapshot, EPOCH))
    assert dict(reader.scan(TABLE, KeyRange(b"", b""), None)) == want
    for zombie in zombies:
        record(world.store, COMMITS, {zombie.start: zombie.start + 5}, OLD_EPOCH)
    assert dict(world.reader(View(snapshot, EPOCH)).scan(TABLE, KeyRange(b"", b""), None)) == want


def test_columns_that_are_not_asked_for_make_a_row_exist(world: World) -> None:
    write(world, Writer(2_100, frozenset({(b"r1", b"f:a"), (b"r2", b"g:a")}), False, 5, recorded=True, marked="all"))
    reader = world.reader(View(2_500, EPOCH))
    found = [put for batch in reader.scan_columns(TABLE, WHOLE, None, [b"f:a"]) for put in batch.puts()]
    assert found == [RowPut(b"r1", {b"f:a": b"2100"}), RowPut(b"r2", {})]


def test_a_scan_as_columns_goes_on_after_the_longest_key(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(column_scans, "PROBE_ROWS", 1)
    rows = [b"r".ljust(ROW_KEY_BYTES_MAX, b"r"), b"s"]
    write(world, Writer(2_100, frozenset((row, b"f:a") for row in rows), False, 5, recorded=True, marked="all"))
    reader = world.reader(View(2_500, EPOCH))
    assert [put.row for batch in reader.scan_columns(TABLE, WHOLE, None, COLUMNS) for put in batch.puts()] == rows


def test_more_writers_than_are_expected_of_a_batch(world: World) -> None:
    starts = [2_100 + 2 * number for number in range(200)]
    for start in starts:
        world.store.put(TABLE, [RowPut(b"%d" % start, {b"f:a": b"1"})], start)
        if start % 4:
            record(world.store, COMMITS, {start: start + 1}, EPOCH)
    reader = world.reader(View(2_300, EPOCH))
    found = [put.row for batch in reader.scan_columns(TABLE, WHOLE, None, COLUMNS) for put in batch.puts()]
    assert found == [b"%d" % start for start in starts if start % 4 and start < 2_300]


class Scans(FaultyCellStore):
    """Notes of each scan as columns where it begins, whether with shadow cells, and which others it expects.
    ``meanwhile`` happens once, while somebody looks at a batch without them that has the row b1.
    """

    def __init__(self) -> None:
        super().__init__()
        self.begun: list[tuple[bytes, bool]] = []
        self.expected: list[set[bytes]] = []
        self.meanwhile: Callable[[], None] = lambda: None

    def scan_columns(
        self,
        table: str,
        key_range: KeyRange,
        columns: Sequence[bytes],
        known: Sequence[bytes],
        *,
        without_qualifier: bytes | None = None,
        **further: Any,
    ) -> Iterator[ScannedColumns]:
        self.begun.append((key_range.start, without_qualifier is None))
        self.expected.append({column for column in known if not is_reserved(column)})
        for batch in super().scan_columns(
            table, key_range, columns, known, without_qualifier=without_qualifier, **further
        ):
            if without_qualifier is not None and b"b1" in batch.cells.row_keys():
                self.meanwhile()
                self.meanwhile = lambda: None
            yield batch


def written_by_many(world: World, rows: Mapping[int, int]) -> None:
    """``rows``: the row's number and its writer, each of which committed right after, with a shadow cell."""
    for number, start in rows.items():
        row = b"r%04d" % number
        world.store.put(TABLE, [RowPut(row, {b"f:a": b"%d" % start})], start)
        record(world.store, COMMITS, {start: start + 1}, EPOCH)
        world.resolver.write_shadows([Site(TABLE, row, b"f")], start, start + 1)


def test_what_few_wrote_is_scanned_without_shadow_cells() -> None:
    store = Scans()
    world = make_world(store, outcomes_remembered=100)
    written_by_many(world, {number: 2_100 + 10 * (number % 3) for number in range(100)})
    reader = world.reader(View(2_500, EPOCH))
    assert len([put for batch in reader.scan_columns(TABLE, WHOLE, None, COLUMNS, 7) for put in batch.puts()]) == 100
    assert store.begun == [(b"", True), (b"r0006\x00", False)]


@pytest.mark.parametrize("rows", [3, 7])
def test_what_ends_with_its_first_rows_is_asked_for_once(rows: int) -> None:
    store = Scans()
    world = make_world(store, outcomes_remembered=100)
    written_by_many(world, dict.fromkeys(range(rows), 2_100))
    reader = world.reader(View(2_500, EPOCH))
    assert len([put for batch in reader.scan_columns(TABLE, WHOLE, None, COLUMNS, 8) for put in batch.puts()]) == rows
    assert store.begun == [(b"", True)]


@pytest.mark.parametrize("scanned", [by_columns, by_all_columns, by_changes])
def test_a_writer_of_whom_a_vacuum_took_the_record_meanwhile_is_not_taken_for_aborted(
    scanned: Callable[[ChangesReader], dict[bytes, Mapping[bytes, bytes]]],
) -> None:
    """Its commit-table row has gone before; the first place that it wrote to goes between the read and the question."""
    store = Scans()
    world = make_world(store, outcomes_remembered=100)
    old, young = 2_100, 2_200
    before = (b"a1", b"a2", b"a3", b"a4")
    for row in (*before, b"b1", b"b5"):
        world.store.put(TABLE, [RowPut(row, {b"f:a": b"old"})], old)
    for row in (b"b1", b"b5"):
        world.store.put(TABLE, [RowPut(row, {b"f:a": TOMBSTONE})], young)
    world.store.put(TABLE, [RowPut(b"b9", {b"f:a": b"young"})], young)
    world.resolver.write_shadows([Site(TABLE, row, b"f") for row in (*before, b"b1", b"b5")], old, old + 1)
    world.resolver.write_shadows([Site(TABLE, row, b"f") for row in (b"b1", b"b5", b"b9")], young, young + 1)
    store.meanwhile = lambda: world.store.delete(TABLE, [b"b1"], young)
    assert scanned(world.reader(View(2_500, EPOCH))) == {
        **{row: {b"f:a": b"old"} for row in before},
        b"b9": {b"f:a": b"young"},
    }
    assert [with_shadow_cells for _, with_shadow_cells in store.begun[-2:]] == [False, True]
    assert store.begun[-1][0] == b"b1"


def many_rows(world: World, columns_of: Callable[[int], Iterable[bytes]], rows: int = 100) -> list[RowPut]:
    """What one transaction wrote, and committed."""
    puts = [RowPut(b"r%04d" % number, dict.fromkeys(sorted(columns_of(number)), b"1")) for number in range(rows)]
    world.store.put(TABLE, puts, 2_100)
    record(world.store, COMMITS, {2_100: 2_101}, EPOCH)
    return puts


def test_a_scan_of_all_columns_goes_on_expecting_what_it_has_met() -> None:
    store = Scans()
    world = make_world(store)
    puts = many_rows(world, lambda number: [b"f:a"] if number < 50 else [b"f:a", b"g:a"])
    reader = world.reader(View(2_500, EPOCH))
    assert rows_of(reader.scan_columns(TABLE, WHOLE, None, None, 10)) == puts
    assert [(start, expected) for (start, _), expected in zip(store.begun, store.expected, strict=True)] == [
        (b"", set()),
        (b"r0009\x00", {b"f:a"}),
        (b"r0019\x00", {b"f:a"}),  # without shadow cells, from here on
        (b"r0059\x00", {b"f:a", b"g:a"}),
        (b"r0069\x00", {b"f:a", b"g:a"}),
    ]


def test_few_rows_with_other_columns_are_no_reason_to_begin_anew() -> None:
    store = Scans()
    world = make_world(store)
    puts = many_rows(world, lambda number: [b"f:a", b"g:%d" % number] if number % 8 == 7 else [b"f:a"])
    reader = world.reader(View(2_500, EPOCH))
    assert rows_of(reader.scan_columns(TABLE, WHOLE, None, None, 8)) == puts
    assert store.expected == [set(), {b"f:a", b"g:7"}, {b"f:a", b"g:7"}]


def test_where_every_row_has_columns_of_its_own_few_are_expected(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(all_columns, "EXPECTED_COLUMNS_MAX", 12)
    monkeypatch.setattr(all_columns, "PLACES_MAX", 60)
    monkeypatch.setattr(columns, "PLACES_MAX", 60)
    store = Scans()
    world = make_world(store)
    puts = many_rows(world, lambda number: [b"f:a", b"g:%d" % number, b"f:%d" % number])
    batches = list(world.reader(View(2_500, EPOCH)).scan_columns(TABLE, WHOLE, None, None, 10))
    assert [RowPut(put.row, dict(sorted(put.columns.items()))) for put in rows_of(batches)] == puts
    assert max(map(len, store.expected)) == 12
    assert len(store.begun) < 12
    assert max(each.value_lengths.size for each in batches) <= 60


def test_a_batch_that_expects_many_columns_has_few_rows(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(all_columns, "PLACES_MAX", 60)
    world = make_world()
    puts = many_rows(world, lambda number: [b"f:%d" % column for column in range(10)])
    batches = list(world.reader(View(2_500, EPOCH)).scan_columns(TABLE, WHOLE, None, None, 50))
    assert rows_of(batches) == puts
    assert max(each.rows for each in batches) == 6
    assert {each.rows for each in batches[-7:-1]} == {6}


def test_columns_that_nobody_asked_for_have_writers_too() -> None:
    store = Scans()
    world = make_world(store, outcomes_remembered=1_000)
    written_by_many(world, dict.fromkeys(range(200), 2_100))
    for number in range(20, 200):
        world.store.put(TABLE, [RowPut(b"r%04d" % number, {b"f:b": b"1"})], 3_000 + number)
        record(world.store, COMMITS, {3_000 + number: 4_000 + number}, EPOCH)
    reader = world.reader(View(9_000, EPOCH))
    found = [put.row for batch in reader.scan_columns(TABLE, WHOLE, None, [b"f:a"], 20) for put in batch.puts()]
    assert found == [b"r%04d" % number for number in range(200)]
    assert store.begun == [(b"", True), (b"r0019\x00", False), (b"r0080", True)]


def test_from_where_many_wrote_on_the_shadow_cells_come_along() -> None:
    store = Scans()
    world = make_world(store, outcomes_remembered=1_000)
    written_by_many(world, {number: 2_100 + (10 * max(0, number - 59)) for number in range(300)})
    reader = world.reader(View(9_000, EPOCH))
    found = [put.row for batch in reader.scan_columns(TABLE, WHOLE, None, COLUMNS, 100) for put in batch.puts()]
    assert found == [b"r%04d" % number for number in range(300)]
    assert store.begun == [(b"", True), (b"r0099\x00", False), (b"r0100", True)]


def test_columns_heal_nothing(world: World) -> None:
    """A shadow cell that a batch was read without is not missing."""
    write(world, Writer(2_100, frozenset({(b"r1", b"f:a")}), False, 5, recorded=True, marked="all"))
    write(world, Writer(2_200, frozenset({(b"r1", b"f:b")}), False, 500, recorded=True, marked="none"))
    assert by_columns(world.reader(View(2_500, EPOCH))) == {b"r1": {b"f:a": b"2100"}}
    assert [shadow.timestamp for shadow in world.store.versions(TABLE, b"r1", b"f:\x00", limit=9)] == [2_100]


@pytest.mark.parametrize("marked", ["all", "none"])
def test_columns_do_not_show_what_committed_after_the_snapshot(world: World, marked: str) -> None:
    write(world, Writer(2_100, frozenset({(b"r1", b"f:a"), (b"r2", b"f:a")}), False, 5, recorded=True, marked="all"))
    write(world, Writer(2_200, frozenset({(b"r1", b"f:a")}), False, 300, recorded=True, marked=marked))
    assert by_columns(world.reader(View(2_499, EPOCH))) == {b"r1": {b"f:a": b"2100"}, b"r2": {b"f:a": b"2100"}}
    assert by_columns(world.reader(View(2_500, EPOCH))) == {b"r1": {b"f:a": b"2200"}, b"r2": {b"f:a": b"2100"}}


def test_escaped_values_markers_and_own_versions_in_columns(world: World) -> None:
    write(world, Writer(2_100, frozenset({(b"r1", b"f:a"), (b"r1", b"f:b")}), False, 5, recorded=True, marked="all"))
    world.store.put(TABLE, [RowPut(b"r1", {b"f:a": TOMBSTONE + TOMBSTONE + b"x", b"f:b": TOMBSTONE})], 2_600)
    world.store.put(TABLE, [RowPut(b"r2", {b"f:a": TOMBSTONE, row_marker_column(b"f"): ROW_MARKER_VALUE})], 2_600)
    own = world.reader(View(2_500, EPOCH, own=2_600))
    for known in (COLUMNS, None):
        found = rows_of(own.scan_columns(TABLE, WHOLE, None, known))
        assert found == [RowPut(b"r1", {b"f:a": TOMBSTONE + b"x"}), RowPut(b"r2", {})]
    assert by_columns(world.reader(View(2_500, EPOCH))) == {b"r1": {b"f:a": b"2100", b"f:b": b"2100"}}


def test_a_scan_as_columns_below_the_mark_is_refused_before_it_shows_anything(world: World) -> None:
    write(world, Writer(2_100, frozenset({(b"r1", b"f:a")}), False, 5, recorded=True, marked="all"))
    view = View(2_500, EPOCH)
    reader = SnapshotReader(world.store, world.resolver, view, FAMILIES, shown_from=lambda table: ShownFrom(2_600))
    with pytest.raises(InvalidRequest, match="was vacuumed"):
        next(reader.scan_columns(TABLE, WHOLE, None, COLUMNS))


def test_a_missing_shadow_cell_is_healed(world: World) -> None:
    write(world, Writer(2_100, frozenset({(b"r1", b"f:a")}), False, 5, recorded=True, marked="none"))
    world.reader(View(2_500, EPOCH)).row(TABLE, b"r1", None)
    [shadow] = world.store.versions(TABLE, b"r1", b"f:\x00", limit=1)
    assert (shadow.timestamp, decode_shadow(shadow.value)) == (2_100, 2_105)


@pytest.mark.parametrize("fenced", [False, True])
def test_where_the_record_lasts_no_shadow_cell_is_written_by_readers(
    world: World, fenced: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nor by one who meets the commit only as it fences."""
    start = 900 if fenced else 2_100
    write(world, Writer(start, frozenset({(b"r1", b"f:a")}), False, 5, recorded=True, marked="none"))
    write(world, Writer(2_200, frozenset({(b"r2", b"f:a")}), False, 5, recorded=True, marked="none"))
    world.commits.let_last(start)
    with monkeypatch.context() as patched:
        if fenced:
            patched.setattr(world.commits, "outcomes", lambda starts: dict.fromkeys(starts, Undecided()))
        for _ in range(2):
            assert world.reader(View(2_500, EPOCH)).row(TABLE, b"r1", None) == {b"f:a": b"%d" % start}
    assert world.reader(View(2_500, EPOCH)).row(TABLE, b"r2", None) == {b"f:a": b"2200"}
    assert world.store.versions(TABLE, b"r1", b"f:\x00", limit=1) == []
    assert len(world.store.versions(TABLE, b"r2", b"f:\x00", limit=1)) == 1


def test_of_whom_nothing_is_remembered_it_is_not_remembered_either_that_the_record_lasts() -> None:
    cache = OutcomeCache(2)
    for writer in (1, 2, 3):
        cache.remember(writer, 10 * writer, is_lasting=writer != 2)
    assert [cache.is_lasting(writer) for writer in (1, 2, 3)] == [False, False, True]


def test_healing_that_fails_is_no_failure_of_the_read(world: World) -> None:
    write(world, Writer(2_100, frozenset({(b"r1", b"f:a")}), False, 5, recorded=True, marked="none"))
    world.store.plan("put", Fault.LOST)
    assert world.reader(View(2_500, EPOCH)).row(TABLE, b"r1", None) == {b"f:a": b"2100"}


def test_reads_do_not_wait_each_time_for_a_table_that_takes_no_writes(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    now_s = 1_000.0
    monkeypatch.setattr("client.snapshots.resolver.time", SimpleNamespace(monotonic=lambda: now_s))
    write(world, Writer(2_100, frozenset({(b"r1", b"f:a")}), False, 5, recorded=True, marked="none"))
    puts: list[str] = []

    def refuse(table: str, *_: object) -> None:
        nonlocal now_s
        puts.append(table)
        now_s += 30.0
        raise StoreUnavailable("too busy")

    with monkeypatch.context() as patched:
        patched.setattr(world.store, "put", refuse)
        for _ in range(5):
            assert world.reader(View(2_500, EPOCH)).row(TABLE, b"r1", None) == {b"f:a": b"2100"}
    assert puts == [TABLE]
    now_s += 299.0
    world.reader(View(2_500, EPOCH)).row(TABLE, b"r1", None)
    assert not world.store.versions(TABLE, b"r1", b"f:\x00", limit=1)
    now_s += 1.0
    world.reader(View(2_500, EPOCH)).row(TABLE, b"r1", None)
    assert world.store.versions(TABLE, b"r1", b"f:\x00", limit=1)


def test_a_reader_told_not_to_heal_writes_nothing(world: World) -> None:
    write(world, Writer(2_100, frozenset({(b"r1", b"f:a")}), False, 5, recorded=True, marked="none"))
    resolver = Resolver(world.store, world.commits, OutcomeCache(10), heal=False)
    reader = SnapshotReader(world.store, resolver, View(2_500, EPOCH), FAMILIES)
    assert reader.row(TABLE, b"r1", None) == {b"f:a": b"2100"}
    assert world.store.versions(TABLE, b"r1", b"f:\x00", limit=1) == []


def test_an_undecided_writer_of_the_own_epoch_is_not_fenced(world: World) -> None:
    write(world, Writer(2_100, frozenset({(b"r1", b"f:a")}), False, None, recorded=False, marked="none"))
    assert world.reader(View(2_500, EPOCH)).row(TABLE, b"r1", None) is None
    record(world.store, COMMITS, {2_100: 2_600}, EPOCH)
    assert world.commits.outcome(2_100) == Committed(2_600)
    assert world.reader(View(2_700, EPOCH)).row(TABLE, b"r1", None) == {b"f:a": b"2100"}


def test_own_versions_are_seen_over_the_snapshots(world: World) -> None:
    write(world, Writer(2_100, frozenset({(b"r1", b"f:a"), (b"r1", b"f:b")}), False, 5, recorded=True, marked="all"))
    world.store.put(TABLE, [RowPut(b"r1", {b"f:a": b"own"})], 2_600)
    world.store.put(TABLE, [RowPut(b"r1", {b"f:a": b"between", b"f:b": b"between"})], 2_550)
    assert world.reader(View(2_500, EPOCH, own=2_600)).row(TABLE, b"r1", None) == {b"f:a": b"own", b"f:b": b"2100"}


def test_a_cell_at_timestamp_zero_is_shown_to_nobody(world: World) -> None:
    write(world, Writer(2_100, frozenset({(b"r1", b"f:b")}), False, 5, recorded=True, marked="all"))
    world.store.put(TABLE, [RowPut(b"r1", {b"f:a": b"of nobody"})], 0)
    assert world.reader(View(2_500, EPOCH)).row(TABLE, b"r1", None) == {b"f:b": b"2100"}
    assert dict(world.reader(View(2_500, EPOCH)).scan(TABLE, KeyRange(b"", b""), [b"f:a"])) == {}


def test_the_outcomes_that_are_used_stay_remembered() -> None:
    cache = OutcomeCache(2)
    for writer in (1, 2):
        cache.remember(writer, writer + 100)
    assert cache.get(1) == 101
    cache.remember(3, 103)
    assert [cache.get(writer) for writer in (1, 2, 3)] == [101, OPEN, 103]


class Requests(FaultyCellStore):
    """Counts the requests of reads, and how many bytes of values each answer with versions has."""

    def __init__(self) -> None:
        super().__init__()
        self.count = self.puts = 0
        self.answer_bytes: list[int] = []

    def get(self, *arguments: Any, **further: Any) -> Row:
        self.count += 1
        return super().get(*arguments, **further)

    def get_many(self, *arguments: Any, **further: Any) -> dict[bytes, Row]:
        self.count += 1
        return super().get_many(*arguments, **further)

    def versions(self, *arguments: Any, **further: Any) -> list[Cell]:
        self.count += 1
        found = super().versions(*arguments, **further)
        self.answer_bytes.append(sum(len(cell.value) for cell in found))
        return found

    def put(self, *arguments: Any) -> None:
        self.puts += 1
        super().put(*arguments)


def never_seen(world: World, starts: range, value: bytes = b"never", *, marked: bool = True) -> None:
    """Versions of one column whose writers were aborted."""
    for start in starts:
        world.store.put(TABLE, [RowPut(b"r1", {b"f:a": value})], start)
        if marked:
            world.resolver.write_shadows([Site(TABLE, b"r1", b"f")], start, NOT_COMMITTED)


SEEN = Writer(2_100, frozenset({(b"r1", b"f:a")}), False, 5, recorded=True, marked="all")


@pytest.mark.parametrize(("invisible", "marked", "requests"), [(3, True, 6), (6, False, 22), (5_000, True, 40)])
def test_many_invisible_versions_on_top_of_a_visible_one(invisible: int, marked: bool, requests: int) -> None:
    """A few are looked at one by one, more by pages; for one that is not marked its shadow cell is asked for."""
    store = Requests()
    world = make_world(store)
    write(world, SEEN)
    never_seen(world, range(2_200, 2_200 + invisible), marked=marked)
    reader = world.reader(View(9_000, EPOCH))
    reads: list[Callable[[], object]] = [
        lambda: reader.row(TABLE, b"r1", None),
        lambda: dict(reader.scan(TABLE, WHOLE, None))[b"r1"],
        lambda: by_columns(reader)[b"r1"],
    ]
    for read in reads:
        store.count = 0
        assert read() == {b"f:a": b"2100"}
        assert store.count <= requests
    store.count = 0
    assert reader.newest_commit(TABLE, [b"r1"], None) == 2_105
    assert store.count <= requests


def test_what_large_transactions_left_in_many_rows_is_looked_below_by_one_request_for_each(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(stored_cells, "SCAN_FIRST_ROWS", 100)
    store = Requests()
    world = make_world(store)
    rows = [b"r%03d" % number for number in range(100)]
    for start, outcome in ((2_100, 2_105), (2_200, NOT_COMMITTED), (2_300, NOT_COMMITTED), (2_400, NOT_COMMITTED)):
        store.put(TABLE, [RowPut(row, {b"f:a": b"%d" % start, b"f:b": b"x"}) for row in rows], start)
        world.resolver.write_shadows([Site(TABLE, row, b"f") for row in rows], start, outcome)
    found = dict(world.reader(View(2_500, EPOCH)).scan(TABLE, WHOLE, [b"f:a"]))
    assert found == {row: {b"f:a": b"2100"} for row in rows}
    assert store.count == 3


def test_large_invisible_versions_are_read_few_at_a_time(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(settler, "PAGE_BYTES_WANTED", 10_000)
    monkeypatch.setattr(settler, "PAGE_VERSIONS_FIRST", 4)
    store = Requests()
    world = make_world(store)
    write(world, SEEN)
    never_seen(world, range(2_200, 2_400), bytes(2_000))
    assert world.reader(View(9_000, EPOCH)).row(TABLE, b"r1", None) == {b"f:a": b"2100"}
    assert len(store.answer_bytes) > 40
    assert max(store.answer_bytes) <= 10_000


def test_nothing_is_asked_about_what_lies_below_a_visible_version(world: World) -> None:
    """Who began in an older epoch and is asked about is fenced, and could not commit any more."""
    world.store.put(TABLE, [RowPut(b"r1", {b"f:a": b"undecided"})], 1_100)
    write(world, SEEN)
    never_seen(world, range(2_200, 2_220))
    assert world.reader(View(9_000, EPOCH)).row(TABLE, b"r1", None) == {b"f:a": b"2100"}
    record(world.store, COMMITS, {1_100: 1_105}, OLD_EPOCH)
    assert world.commits.outcome(1_100) == Committed(1_105)


def test_of_several_commits_below_what_is_invisible_the_newest_is_seen(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(settler, "REQUESTS_BEFORE_PAGES", 0)
    for start in (2_100, 2_200, 2_300):
        write(world, Writer(start, SEEN.cells, False, 5, recorded=True, marked="none"))
    never_seen(world, range(2_400, 2_402))
    assert world.reader(View(9_000, EPOCH)).row(TABLE, b"r1", None) == {b"f:a": b"2300"}


def test_a_shadow_cell_that_lies_below_a_page_of_others_is_not_missing() -> None:
    store = Requests()
    world = make_world(store)
    write(world, SEEN)
    for start in range(2_101, 2_200):
        store.put(TABLE, [RowPut(b"r1", {b"f:b": b"other"})], start)
        world.resolver.write_shadows([Site(TABLE, b"r1", b"f")], start, NOT_COMMITTED)
    never_seen(world, range(2_200, 2_220))
    store.puts = 0
    assert world.reader(View(9_000, EPOCH)).row(TABLE, b"r1", [b"f:a"]) == {b"f:a": b"2100"}
    assert store.puts == 0


def test_what_is_missing_below_many_invisible_versions_is_healed(world: World) -> None:
    write(world, Writer(2_100, SEEN.cells, False, 5, recorded=True, marked="none"))
    never_seen(world, range(2_200, 2_220))
    assert world.reader(View(9_000, EPOCH)).row(TABLE, b"r1", None) == {b"f:a": b"2100"}
    (shadow,) = world.store.versions(TABLE, b"r1", b"f:\x00", before=2_101, limit=9)
    assert (shadow.timestamp, decode_shadow(shadow.value)) == (2_100, 2_105)


def test_a_column_that_cannot_be_read_says_what_helps(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(settler, "INVISIBLE_VERSIONS_MAX", 20)
    write(world, SEEN)
    never_seen(world, range(2_200, 2_300))
    with pytest.raises(StoreUnavailable, match=r"column b'f:a' of row b'r1' has more than 20 .* written again"):
        world.reader(View(9_000, EPOCH)).row(TABLE, b"r1", None)
    write(world, Writer(2_300, SEEN.cells, False, 5, recorded=True, marked="all"))
    assert world.reader(View(9_000, EPOCH)).row(TABLE, b"r1", None) == {b"f:a": b"2300"}


class Drawn(FaultyCellStore):
    """Counts the rows that were drawn from its scans."""

    def __init__(self) -> None:
        super().__init__()
        self.rows = 0

    def scan(self, *arguments: Any, **further: Any) -> Iterator[tuple[bytes, Row]]:
        for each in super().scan(*arguments, **further):
            self.rows += 1
            yield each


@pytest.mark.parametrize(("value_bytes", "drawn"), [(10, 500), (30_000, 48), (400_000, 16)])
def test_a_scan_holds_few_large_rows(monkeypatch: pytest.MonkeyPatch, value_bytes: int, drawn: int) -> None:
    monkeypatch.setattr(stored_cells, "BATCH_BYTES_MAX", 1_000_000)
    store = Drawn()
    world = make_world(store)
    rows = [b"r%04d" % number for number in range(600)]
    store.put(TABLE, [RowPut(row, {b"f:a": bytes(value_bytes)}) for row in rows], 2_100)
    record(store, COMMITS, {2_100: 2_105}, EPOCH)
    store.rows = 0
    scan = world.reader(View(2_500, EPOCH)).scan(TABLE, WHOLE, None)
    first = [row for row, _ in islice(scan, stored_cells.SCAN_FIRST_ROWS)]
    assert store.rows == len(first) == 16
    following, _ = next(scan)
    assert store.rows - len(first) == drawn
    assert [*first, following, *(row for row, _ in scan)] == rows


def test_a_scan_of_all_columns_shows_its_first_rows_before_it_has_looked_at_many() -> None:
    world = make_world()
    rows = [b"r%04d" % number for number in range(600)]
    world.store.put(TABLE, [RowPut(row, {b"f:a": b"1"}) for row in rows], 2_100)
    record(world.store, COMMITS, {2_100: 2_105}, EPOCH)
    batches = world.reader(View(2_500, EPOCH)).scan_columns(TABLE, WHOLE, None, None, 500)
    assert [batch.rows for batch in batches] == [16, 500, 84]


def test_a_commit_that_was_shadowed_and_vacuumed_between_the_questions_is_found(world: World) -> None:
    """Recorded, shadowed and its record dropped, all after the reader had found nothing: the last look finds it."""
    late = Writer(1_100, frozenset({(b"r1", b"f:a")}), False, 5, recorded=False, marked="all")
    world.store.put(TABLE, [RowPut(b"r1", {b"f:a": late.value()})], late.start)
    resolve = world.commits.resolve

    def fence_too_late(start_timestamp: int, fence: int) -> Outcome:
        world.resolver.write_shadows([Site(TABLE, b"r1", b"f")], late.start, late.start + 5)
        return resolve(start_timestamp, fence)

    world.commits.resolve = fence_too_late  # type: ignore[method-assign]
    assert world.reader(View(2_500, EPOCH)).row(TABLE, b"r1", None) == {b"f:a": b"1100"}


def test_a_writer_of_an_older_epoch_that_was_not_committed_never_comes_to_be(world: World) -> None:
    write(world, Writer(1_100, frozenset({(b"r1", b"f:a")}), False, None, recorded=False, marked="none"))
    assert world.reader(View(2_500, EPOCH)).row(TABLE, b"r1", None) is None
    record(world.store, COMMITS, {1_100: 1_105}, OLD_EPOCH)
    assert world.reader(View(2_500, EPOCH)).row(TABLE, b"r1", None) is None


def test_the_shadow_cell_of_another_writer_says_nothing_of_an_open_one(world: World) -> None:
    write(world, Writer(2_100, frozenset({(b"r1", b"f:b")}), False, 5, recorded=True, marked="all"))
    write(world, Writer(2_200, frozenset({(b"r1", b"f:a")}), False, None, recorded=False, marked="none"))
    assert world.reader(View(2_500, EPOCH)).row(TABLE, b"r1", None) == {b"f:b": b"2100"}


def test_a_commit_that_came_right_before_the_fence_is_found(world: World) -> None:
    write(world, Writer(1_100, frozenset({(b"r1", b"f:a")}), False, None, recorded=False, marked="none"))
    resolve = world.commits.resolve

    def commit_first(start_timestamp: int, fence: int) -> Outcome:
        record(world.store, COMMITS, {1_100: 1_105}, OLD_EPOCH)
        return resolve(start_timestamp, fence)

    world.commits.resolve = commit_first  # type: ignore[method-assign]
    assert world.reader(View(2_500, EPOCH)).row(TABLE, b"r1", None) == {b"f:a": b"1100"}


def test_a_commit_of_the_own_epoch_that_was_vacuumed_before_the_question_is_found(world: World) -> None:
    """The row was read before its shadow cell was written, the commit table after its record was dropped."""
    world.store.put(TABLE, [RowPut(b"r1", {b"f:a": b"2100"})], 2_100)

    def ask_too_late(start_timestamps: Sequence[int]) -> dict[int, Outcome]:
        world.resolver.write_shadows([Site(TABLE, b"r1", b"f")], 2_100, 2_105)
        return dict.fromkeys(start_timestamps, Undecided())

    world.commits.outcomes = ask_too_late  # type: ignore[method-assign]
    assert world.reader(View(2_500, EPOCH)).row(TABLE, b"r1", None) == {b"f:a": b"2100"}


def test_a_fenced_writer_that_commits_in_the_new_epoch_is_seen(world: World) -> None:
    write(world, Writer(1_100, frozenset({(b"r1", b"f:a")}), False, None, recorded=False, marked="none"))
    assert world.reader(View(2_500, EPOCH)).row(TABLE, b"r1", None) is None
    record(world.store, COMMITS, {1_100: 2_600}, EPOCH)
    assert world.reader(View(2_500, EPOCH)).row(TABLE, b"r1", None) is None
    assert world.reader(View(2_700, EPOCH)).row(TABLE, b"r1", None) == {b"f:a": b"1100"}
