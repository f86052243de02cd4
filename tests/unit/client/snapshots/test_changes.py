"""What changed between two snapshots: put on top of what the earlier one sees, it gives what the later one sees."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from client import ChangedColumns, ChangedRow, ChangesPage, InvalidRequest, TransactionManager
from client.catalog.entry import ShownFrom
from client.cells import ROW_MARKER_VALUE, TOMBSTONE, row_marker_column
from client.snapshots import column_scans, plain_cells
from client.snapshots.all_columns import FIRST_ROWS_MAX
from client.snapshots.changes import ChangesReader
from client.snapshots.moments import SINCE_THE_BEGINNING
from client.snapshots.pages import PageLimits
from client.snapshots.visibility import View
from store import RowPut
from tests.unit.client.snapshots.page_by_page import page_by_page
from tests.unit.client.snapshots.worlds import (
    BEGUN_WITH,
    COLUMNS,
    EPOCH,
    FAMILIES,
    OLD_EPOCH,
    TABLE,
    WHOLE,
    Writer,
    expected,
    history,
    make_world,
    write,
    writers_of_a_history,
)


def by_columns(
    reader: ChangesReader,
    since: int,
    known: Sequence[bytes] | None = COLUMNS,
    columns: Sequence[bytes] | None = None,
) -> dict[bytes, ChangedRow]:
    return {each.row: each for each in rows_of(reader.scan_changed_columns(TABLE, WHOLE, columns, known, since, 2))}


def rows_of(batches: Iterable[ChangedColumns]) -> list[ChangedRow]:
    """Every row of batches by itself."""
    return [row for batch in batches for row in batch.by_row()]


def by_pages(reader: ChangesReader, since: int, columns: Sequence[bytes] | None = None) -> dict[bytes, ChangedRow]:
    """By pages of one row each, by such as look at one row each, and by a single one: all three say the same."""
    alike = [
        {each.row: each for page in pages(reader, since, columns, rows_max, looked_at_max) for each in page.rows}
        for rows_max, looked_at_max in ((1, 99), (99, 1), (99, 99))
    ]
    assert alike[0] == alike[1] == alike[2]
    return alike[0]


def pages(
    reader: ChangesReader, since: int, columns: Sequence[bytes] | None, rows_max: int, looked_at_max: int
) -> Iterator[ChangesPage]:
    limits = PageLimits(rows_max, 2**20, looked_at_max)
    for page in page_by_page(lambda rest: reader.changes_page(TABLE, rest, columns, since, limits), WHOLE):
        assert len(page.rows) <= min(rows_max, looked_at_max)
        yield page


def by_row(reader: ChangesReader, since: int, columns: Sequence[bytes] | None = None) -> dict[bytes, ChangedRow]:
    return {each.row: each for each in reader.scan_changes(TABLE, WHOLE, columns, since)}


def commits_seen(writers: list[Writer], snapshot: int, columns: Sequence[bytes] = COLUMNS) -> dict[bytes, int]:
    """Of each row the last commit to what a snapshot sees of it."""
    newest: dict[tuple[bytes, bytes], int] = {}
    for writer in writers:
        if writer.commit_timestamp is not None and writer.commit_timestamp <= snapshot:
            for place in writer.cells:
                newest[place] = max(newest.get(place, 0), writer.commit_timestamp)
    rows: dict[bytes, int] = {}
    for (row, column), commit in newest.items():
        if column in columns:
            rows[row] = max(rows.get(row, 0), commit)
    return rows


@given(
    writers_of_a_history,
    st.integers(OLD_EPOCH, 3_000),
    st.integers(EPOCH, 3_000),
    st.sampled_from([0, 1, 64]),
    st.sampled_from([1, 500]),
    st.booleans(),
)
def test_changes_on_top_of_the_earlier_snapshot_are_the_later_one(
    writers: list[Writer], since: int, snapshot: int, asked_for_max: int, probe_rows: int, is_adopted: bool
) -> None:
    since = min(since, snapshot)
    world, past = make_world(), history(writers)
    if is_adopted:
        world.adopt()
    for writer in past:
        write(world, writer)
    begun_with = BEGUN_WITH if is_adopted else {}
    earlier, later = (expected(past, moment, begun_with) for moment in (since, snapshot))
    changed = {row: commit for row, commit in commits_seen(past, snapshot).items() if commit > since}
    want = {row: ChangedRow(row, later.get(row), commit) for row, commit in changed.items()}
    assert {**earlier, **{row: later.get(row, {}) for row in want}} == {
        **{row: {} for row in want},
        **later,
    }, "the model's own claim"
    reader = world.reader(View(snapshot, EPOCH))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(plain_cells, "TRANSACTIONS_FROM", OLD_EPOCH)
        patch.setattr(column_scans, "WRITERS_ASKED_FOR_MAX", asked_for_max)
        patch.setattr(column_scans, "PROBE_ROWS", probe_rows)
        assert by_columns(reader, since) == want
        assert by_columns(world.reader(View(snapshot, EPOCH)), since) == want
        assert by_columns(world.reader(View(snapshot, EPOCH)), since, None) == want
        assert by_pages(world.reader(View(snapshot, EPOCH)), since) == want
        assert by_row(reader, since) == want
        assert by_columns(reader, since) == want, "as it was healed"
        for column in COLUMNS:
            chosen = commits_seen(past, snapshot, [column])
            alone = {
                row: ChangedRow(row, {column: later[row][column]} if column in later.get(row, {}) else None, commit)
                for row, commit in chosen.items()
                if commit > since
            }
            assert by_row(reader, since, [column]) == alone
            assert by_columns(reader, since, [column], [column]) == alone
            assert by_columns(reader, since, None, [column]) == by_pages(reader, since, [column]) == alone
            known = {
                row: each._replace(values=each.values and {c: v for c, v in each.values.items() if c == column})
                for row, each in want.items()
            }
            assert by_columns(world.reader(View(snapshot, EPOCH)), since, [column]) == known, "others count, too"
        for found in (
            by_row(reader, SINCE_THE_BEGINNING),
            by_columns(reader, SINCE_THE_BEGINNING),
            by_columns(reader, SINCE_THE_BEGINNING, None),
            by_pages(reader, SINCE_THE_BEGINNING),
        ):
            assert {row: each.values for row, each in found.items()} == later


def test_a_row_without_values_is_there_and_a_value_that_looks_like_a_tombstone_is_one() -> None:
    world = make_world(outcomes_remembered=9)
    marker = row_marker_column(b"f")
    for start, row, column, value in (
        (2_100, b"escaped", b"f:a", TOMBSTONE + TOMBSTONE + b"text"),
        (2_200, b"marked", marker, ROW_MARKER_VALUE),
        (2_300, b"gone", b"f:a", TOMBSTONE),
    ):
        world.store.put(TABLE, [RowPut(row, {column: value})], start)
        world.resolver.remember(start, start + 5)
    reader = world.reader(View(2_500, EPOCH))
    want = {
        b"escaped": ChangedRow(b"escaped", {b"f:a": TOMBSTONE + b"text"}, 2_105),
        b"gone": ChangedRow(b"gone", None, 2_305),
        b"marked": ChangedRow(b"marked", {}, 2_205),
    }
    assert by_row(reader, 2_050) == by_columns(reader, 2_050) == by_columns(reader, 2_050, None) == want
    del want[b"escaped"]
    assert by_row(reader, 2_105) == by_columns(reader, 2_105) == by_columns(reader, 2_105, None) == want


def test_a_row_is_there_as_long_as_it_has_a_column_that_nobody_names() -> None:
    world = make_world()
    world.resolver.remember(2_100, 2_105)
    both = frozenset({(b"r1", b"f:a"), (b"r1", b"f:b")})
    write(world, Writer(2_100, both, False, 5, recorded=True, marked="all"))
    write(world, Writer(2_200, frozenset({(b"r1", b"f:a")}), True, 5, recorded=True, marked="all"))
    changed = by_columns(world.reader(View(2_500, EPOCH)), 2_150, [b"f:a"])
    assert changed == {b"r1": ChangedRow(b"r1", {}, 2_205)}


def test_columns_that_come_late_or_in_few_rows_are_among_all_columns() -> None:
    """A scan of all columns begins anew where many rows have others, and takes few of them one by one."""
    world = make_world(outcomes_remembered=9)
    for start in (2_100, 2_200):
        world.resolver.remember(start, start + 5)
    rows = [b"%04d" % number for number in range(1_500)]
    many, few = rows[FIRST_ROWS_MAX + 7 :], rows[11::97]
    for kept in (rows, many):
        world.store.put(TABLE, [RowPut(row, {b"f:%d" % len(kept): b"1"}) for row in kept], 2_100)
    world.store.put(TABLE, [RowPut(row, {b"f:x%s" % row: b"2"}) for row in few], 2_200)
    reader = world.reader(View(2_500, EPOCH))

    def values(row: bytes) -> dict[bytes, bytes]:
        wide = {b"f:%d" % len(many): b"1"} if row in many else {}
        return {b"f:%d" % len(rows): b"1", **wide, **({b"f:x%s" % row: b"2"} if row in few else {})}

    def changed(since: int) -> dict[bytes, ChangedRow]:
        return {each.row: each for each in rows_of(reader.scan_changed_columns(TABLE, WHOLE, None, None, since, 1_000))}

    assert changed(2_105) == {row: ChangedRow(row, values(row), 2_205) for row in few}
    assert changed(2_050) == {row: ChangedRow(row, values(row), 2_205 if row in few else 2_105) for row in rows}
    assert {row: each.values for row, each in changed(SINCE_THE_BEGINNING).items()} == {
        row: values(row) for row in rows
    }


def test_of_a_row_that_changed_all_columns_come_where_all_are_asked_for() -> None:
    world = make_world(outcomes_remembered=9)
    for start in (2_100, 2_200):
        world.resolver.remember(start, start + 5)
    rows = [b"%04d" % number for number in range(1_000)]
    world.store.put(TABLE, [RowPut(row, {b"f:a": b"1"}) for row in rows], 2_100)
    world.store.put(TABLE, [RowPut(rows[-1], {b"f:x": b"1"})], 2_100)
    world.store.put(TABLE, [RowPut(rows[-1], {b"f:a": b"2"})], 2_200)
    changed = rows_of(world.reader(View(2_500, EPOCH)).scan_changed_columns(TABLE, WHOLE, None, None, 2_150, 1_000))
    assert changed == [ChangedRow(rows[-1], {b"f:a": b"2", b"f:x": b"1"}, 2_205)]


@pytest.mark.parametrize("shown_from", [ShownFrom(vacuumed_below=2_100), ShownFrom(dropped_below=2_100)])
def test_what_an_earlier_snapshot_saw_may_be_gone(shown_from: ShownFrom) -> None:
    world = make_world()
    write(world, Writer(2_150, frozenset({(b"r1", b"f:a")}), False, 5, recorded=True, marked="all"))
    reader = ChangesReader(
        world.store, world.resolver, View(2_500, EPOCH), FAMILIES, shown_from=lambda table: shown_from
    )
    for changes in (by_row, by_columns, by_pages):
        with pytest.raises(InvalidRequest, match="cannot be read as of 2099 any more"):
            changes(reader, 2_099)
        assert list(changes(reader, 2_100)) == list(changes(reader, SINCE_THE_BEGINNING)) == [b"r1"]


def test_a_page_is_told_only_where_nothing_of_it_was_vacuumed_meanwhile() -> None:
    world = make_world()
    write(world, Writer(2_150, frozenset({(b"r1", b"f:a"), (b"r2", b"f:a")}), False, 5, recorded=True, marked="all"))
    vacuumed = ShownFrom(vacuumed_below=2_100)
    reader = ChangesReader(world.store, world.resolver, View(2_500, EPOCH), FAMILIES, shown_from=lambda table: vacuumed)
    for rows_max, looked_at_max in ((1, 99), (99, 1)):
        with pytest.raises(InvalidRequest, match="cannot be read as of 2099 any more"):
            next(pages(reader, 2_099, None, rows_max, looked_at_max))
        first = next(pages(reader, 2_100, None, rows_max, looked_at_max))
        assert ([each.row for each in first.rows], first.looked_at_to) == ([b"r1"], b"r1")


def test_changes_of_transactions(manager: TransactionManager) -> None:
    with manager.transaction() as transaction:
        for row in (b"kept", b"changed", b"deleted"):
            transaction.put("t", row, {b"f:a": b"1", b"f:b": b"1"})
    earlier = manager.snapshot().timestamp
    transaction = manager.transaction()
    transaction.put("t", b"changed", {b"f:a": b"2"})
    transaction.put("t", b"new", {b"f:a": b"1"})
    transaction.delete("t", b"deleted")
    commit = transaction.commit().commit_timestamp
    open_transaction = manager.transaction()
    open_transaction.put("t", b"kept", {b"f:a": b"3"})
    later = manager.snapshot()
    want = [
        ChangedRow(b"changed", {b"f:a": b"2", b"f:b": b"1"}, commit),
        ChangedRow(b"deleted", None, commit),
        ChangedRow(b"new", {b"f:a": b"1"}, commit),
    ]
    assert list(later.changes("t", earlier)) == want
    assert rows_of(later.changes_columns("t", earlier, [b"f:a", b"f:b"])) == want
    assert rows_of(later.changes_columns("t", earlier)) == want
    assert list(later.changes("t", earlier, prefix=b"de")) == want[1:2]
    assert rows_of(later.changes_columns("t", earlier, [b"f:a"], start=b"n")) == want[2:]
    assert list(later.changes("t", later.timestamp)) == []
    assert [each.row for each in later.changes("t", 0)] == [b"changed", b"kept", b"new"]
    open_transaction.rollback()


def test_a_page_of_changes_ends_at_its_rows_its_bytes_and_after_so_many_rows_looked_at(
    manager: TransactionManager,
) -> None:
    rows = [b"%04d" % number for number in range(20)]
    with manager.transaction() as transaction:
        for row in rows:
            transaction.put("t", row, {b"f:a": b"1"})
    earlier = manager.snapshot().timestamp
    with manager.transaction() as transaction:
        for row in rows[8:16]:
            transaction.put("t", row, {b"f:a": b"2" * 100})
    later = manager.snapshot()

    def page(**options: Any) -> tuple[list[bytes], bytes | None]:
        found = later.changes_page("t", earlier, **options)
        return [each.row for each in found.rows], found.looked_at_to

    assert page() == (rows[8:16], None)
    assert page(rows_max=3) == (rows[8:11], rows[10])
    assert page(rows_max=3, start=rows[10] + b"\x00") == (rows[11:14], rows[13])
    assert page(bytes_max=150) == (rows[8:10], rows[9])
    assert page(looked_at_max=8) == ([], rows[7]), "where nothing changed a page ends, too"
    assert page(looked_at_max=8, start=rows[4]) == (rows[8:12], rows[11])
    assert page(looked_at_max=8, start=rows[14], stop=rows[19]) == (rows[14:16], None)
    assert page(start=rows[16], columns=[b"f:b"]) == ([], None)


@pytest.mark.parametrize("since", [-1, 1_700_000_000_000, True, "2013-07-04", None, 2**62])
def test_since_when_has_to_be_a_moment_before(manager: TransactionManager, since: object) -> None:
    snapshot = manager.snapshot()
    for changes in (
        lambda: snapshot.changes("t", since),  # type: ignore[arg-type]
        lambda: snapshot.changes_columns("t", since, [b"f:a"]),  # type: ignore[arg-type]
        lambda: snapshot.changes_page("t", since).rows,  # type: ignore[arg-type]
    ):
        with pytest.raises(InvalidRequest, match=r"a moment is|of the year 1970|in their order"):
            next(iter(changes()), None)
