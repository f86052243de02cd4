"""What every CellStore does, on the twin and on real HBase: the rooms above rely on each line of it."""

from __future__ import annotations

import itertools
from collections.abc import Callable

import pytest

from store import (
    ALL_ROWS,
    CELL_TIMESTAMP_MAX,
    FOR_EVER_SECONDS,
    ROW_KEY_BYTES_MAX,
    CannotPreSplit,
    Cell,
    CellStore,
    Family,
    InvalidCell,
    KeyRange,
    MemoryCellStore,
    RowPut,
    StoreUnavailable,
    TableExists,
    TableMissing,
    validation,
)
from store.hbase import HBaseCellStore
from store.validation import REGIONS_MAX


def rows_under(row: bytes, count: int) -> list[bytes]:
    return [row + b"/%05d" % index for index in range(count)]


def under(row: bytes) -> KeyRange:
    return KeyRange(row + b"/", row + b"0")


class TestTables:
    def test_families_are_as_created(self, store: CellStore, table: str) -> None:
        assert store.families(table) == {
            "f": Family("f"),
            "g": Family("g"),
            "latest": Family("latest", versions_max=1),
        }

    def test_a_family_says_for_how_long_it_keeps_cells(self, store: CellStore, table: str) -> None:
        name = f"{table}_short"
        store.create_table(name, [Family("f", lives_seconds_max=86_400), Family("g")])
        assert {family.name: family.lives_seconds_max for family in store.families(name).values()} == {
            "f": 86_400,
            "g": FOR_EVER_SECONDS,
        }
        store.drop_table(name)
        with pytest.raises(InvalidCell, match="keeps cells for 1 to"):
            store.create_table(name, [Family("f", lives_seconds_max=0)])

    def test_table_is_listed(self, store: CellStore, table: str) -> None:
        names = store.table_names()
        assert table in names
        assert names == sorted(names)

    def test_second_create_is_refused(self, store: CellStore, table: str) -> None:
        with pytest.raises(TableExists):
            store.create_table(table, [Family("f")])

    def test_drop(self, store: CellStore, table: str) -> None:
        name = f"{table}_dropped"
        store.create_table(name, [Family("f")])
        store.put(name, [RowPut(b"r", {b"f:a": b"1"})], 5)
        store.drop_table(name)
        assert name not in store.table_names()
        with pytest.raises(TableMissing):
            store.get(name, b"r", [b"f"])

    def test_regions_cover_all_keys_without_gaps(self, store: CellStore, table: str) -> None:
        regions = store.regions(table)
        assert regions[0].start == b""
        assert regions[-1].stop == b""
        assert all(left.stop == right.start for left, right in itertools.pairwise(regions))

    def test_regions_begin_where_they_were_said_to(self, store: CellStore, table: str, parts: bool) -> None:
        name, families, split_keys = f"{table}_parted", [Family("f"), Family("g", 2, 86_400)], [b"m", b"\x00", b"m\x00"]
        if not parts:
            with pytest.raises(CannotPreSplit, match=r"to have 4 regions.*thrift2"):
                store.create_table(name, families, split_keys)
            assert name not in store.table_names()
            return
        store.create_table(name, families, split_keys)
        bounds = [b"", b"\x00", b"m", b"m\x00", b""]
        assert store.regions(name) == [KeyRange(*pair) for pair in itertools.pairwise(bounds)]
        assert store.families(name) == {family.name: family for family in families}
        rows = [b"\x00", b"l\xff", b"m", b"m\x00", b"z"]
        store.put(name, [RowPut(row, {b"f:a": row}) for row in rows], 5)
        assert [row for row, _ in store.scan(name, ALL_ROWS, [b"f"], batch_rows=2)] == rows
        with pytest.raises(TableExists):
            store.create_table(name, families, split_keys)
        store.drop_table(name)
        assert name not in store.table_names()

    def test_missing_table_is_named_as_such_by_every_call(self, store: CellStore) -> None:
        calls: list[Callable[[], object]] = [
            lambda: store.drop_table("nowhere"),
            lambda: store.families("nowhere"),
            lambda: store.regions("nowhere"),
            lambda: store.get("nowhere", b"r", [b"f"]),
            lambda: store.get_many("nowhere", [b"r"], [b"f"]),
            lambda: store.versions("nowhere", b"r", b"f:a", limit=1),
            lambda: list(store.scan("nowhere", KeyRange(b"", b""), [b"f"])),
            lambda: store.put("nowhere", [RowPut(b"r", {b"f:a": b"1"})], 5),
            lambda: store.delete("nowhere", [b"r"], 5),
            lambda: store.compare_and_set("nowhere", b"r", check=b"f:a", expected=None, put=b"f:a", value=b"1"),
        ]
        for call in calls:
            with pytest.raises(TableMissing):
                call()

    def test_missing_family_is_named_as_such_by_every_call(self, store: CellStore, table: str, row: bytes) -> None:
        calls: list[Callable[[], object]] = [
            lambda: store.get(table, row, [b"none"]),
            lambda: store.get_many(table, [row], [b"none:a"]),
            lambda: store.versions(table, row, b"none:a", limit=1),
            lambda: list(store.scan(table, KeyRange(b"", b""), [b"none"])),
            lambda: store.put(table, [RowPut(row, {b"none:a": b"1"})], 5),
            lambda: store.compare_and_set(table, row, check=b"none:a", expected=None, put=b"f:a", value=b"1"),
            lambda: store.compare_and_set(table, row, check=b"f:a", expected=None, put=b"none:a", value=b"1"),
        ]
        for call in calls:
            with pytest.raises(TableMissing):
                call()


class TestReads:
    def test_newest_cell_below_an_exclusive_bound(self, store: CellStore, table: str, row: bytes) -> None:
        for timestamp in (10, 20, 30):
            store.put(table, [RowPut(row, {b"f:a": b"at %d" % timestamp})], timestamp)
        found = {
            before: store.get(table, row, [b"f:a"], before=before).get(b"f:a") for before in (0, 10, 11, 20, 21, None)
        }
        assert found == {
            0: None,
            10: None,
            11: Cell(b"at 10", 10),
            20: Cell(b"at 10", 10),
            21: Cell(b"at 20", 20),
            None: Cell(b"at 30", 30),
        }

    def test_families_columns_and_the_empty_qualifier(self, store: CellStore, table: str, row: bytes) -> None:
        store.put(table, [RowPut(row, {b"f:": b"0", b"f:a": b"1", b"f:ab": b"2", b"g:a": b"3"})], 5)
        read = {choice: set(store.get(table, row, [choice])) for choice in (b"f", b"f:", b"f:a", b"g", b"f:none")}
        assert read == {
            b"f": {b"f:", b"f:a", b"f:ab"},
            b"f:": {b"f:"},
            b"f:a": {b"f:a"},
            b"g": {b"g:a"},
            b"f:none": set(),
        }

    @pytest.mark.parametrize("columns", [[b"f", b"f:a"], [b"f:a", b"f"], [b"f", b"f"]])
    def test_a_family_is_read_whole_whatever_is_named_beside_it(
        self, store: CellStore, table: str, row: bytes, columns: list[bytes]
    ) -> None:
        store.put(table, [RowPut(row, {b"f:a": b"1", b"f:b": b"2"})], 5)
        assert set(store.get(table, row, columns)) == {b"f:a", b"f:b"}
        assert [set(cells) for _, cells in store.scan(table, KeyRange(row, row + b"\x00"), columns)] == [
            {b"f:a", b"f:b"}
        ]

    def test_absent_row_is_empty(self, store: CellStore, table: str, row: bytes) -> None:
        assert store.get(table, row, [b"f"]) == {}
        assert store.versions(table, row, b"f:a", limit=3) == []

    def test_get_many_leaves_out_rows_without_a_cell(self, store: CellStore, table: str, row: bytes) -> None:
        rows = rows_under(row, 20)
        store.put(table, [RowPut(key, {b"f:a": key}) for key in rows[::2]], 5)
        store.put(table, [RowPut(rows[1], {b"f:a": b"later"})], 9)
        read = store.get_many(table, [*rows, rows[0]], [b"f"], before=9)
        assert read == {key: {b"f:a": Cell(key, 5)} for key in rows[::2]}
        assert store.get_many(table, [], [b"f"]) == {}

    def test_versions_newest_first(self, store: CellStore, table: str, row: bytes) -> None:
        for timestamp in (10, 30, 20):
            store.put(table, [RowPut(row, {b"f:a": b"v", b"f:ab": b"other"})], timestamp)
        assert [cell.timestamp for cell in store.versions(table, row, b"f:a", limit=9)] == [30, 20, 10]
        assert [cell.timestamp for cell in store.versions(table, row, b"f:a", limit=2)] == [30, 20]
        assert [cell.timestamp for cell in store.versions(table, row, b"f:a", before=30, limit=9)] == [20, 10]

    def test_any_bytes(self, store: CellStore, table: str, row: bytes) -> None:
        key, column, value = row + bytes(range(256)), b"f:" + bytes(range(256)), bytes(range(256)) * 4
        store.put(table, [RowPut(key, {column: value, b"f:empty": b""})], 5)
        assert store.get(table, key, [b"f"]) == {column: Cell(value, 5), b"f:empty": Cell(b"", 5)}

    def test_largest_row_key_and_timestamp(self, store: CellStore, table: str, row: bytes) -> None:
        key = row.ljust(ROW_KEY_BYTES_MAX, b"x")
        store.put(table, [RowPut(key, {b"f:a": b"1"})], CELL_TIMESTAMP_MAX)
        assert store.get(table, key, [b"f:a"]) == {b"f:a": Cell(b"1", CELL_TIMESTAMP_MAX)}
        assert store.get(table, key, [b"f:a"], before=CELL_TIMESTAMP_MAX) == {}
        assert next(store.scan(table, KeyRange(key, b""), [b"f:a"], batch_rows=1))[0] == key


class TestScans:
    @pytest.mark.parametrize("batch_rows", [1, 2, 5, 6, 100])
    @pytest.mark.parametrize("reverse", [False, True])
    def test_rows_in_order(self, store: CellStore, table: str, row: bytes, batch_rows: int, reverse: bool) -> None:
        rows = rows_under(row, 6)
        store.put(table, [RowPut(key, {b"f:a": key, b"g:b": b"2"}) for key in rows], 5)
        scanned = list(store.scan(table, under(row), [b"f", b"g:b"], batch_rows=batch_rows, reverse=reverse))
        expected = [(key, {b"f:a": Cell(key, 5), b"g:b": Cell(b"2", 5)}) for key in rows]
        assert scanned == (expected[::-1] if reverse else expected)

    @pytest.mark.parametrize("reverse", [False, True])
    @pytest.mark.parametrize(("first", "end"), [(0, 6), (1, 4), (2, 3), (3, 3), (4, 2)])
    def test_start_is_inclusive_and_stop_exclusive(
        self, store: CellStore, table: str, row: bytes, first: int, end: int, reverse: bool
    ) -> None:
        rows = [*rows_under(row, 6), row + b"/a"]
        store.put(table, [RowPut(key, {b"f:a": b"1"}) for key in rows], 5)
        scan = store.scan(table, KeyRange(rows[first], rows[end]), [b"f"], batch_rows=2, reverse=reverse)
        assert [key for key, _ in scan] == rows[first:end][:: -1 if reverse else 1]

    def test_backwards_down_to_keys_that_are_hard_to_step_below(self, store: CellStore, table: str, row: bytes) -> None:
        keys = [row + tail for tail in (b"", b"\x00", b"\x00\x00", b"\x00\xff\xff", b"\x01", b"\x01\x00")]
        store.put(table, [RowPut(key, {b"f:a": b"1"}) for key in keys], 5)
        for place, start in enumerate(keys):
            scan = store.scan(table, KeyRange(start, row + b"\x02"), [b"f"], batch_rows=2, reverse=True)
            assert [key for key, _ in scan] == keys[place:][::-1]

    def test_open_ends(self, store: CellStore, table: str, row: bytes) -> None:
        store.put(table, [RowPut(row, {b"f:a": b"1"})], 5)
        forward = [key for key, _ in store.scan(table, KeyRange(b"", b""), [b"f:a"], batch_rows=3)]
        backward = [key for key, _ in store.scan(table, KeyRange(b"", b""), [b"f:a"], batch_rows=3, reverse=True)]
        assert row in forward
        assert forward == sorted(set(forward)) == backward[::-1]

    def test_bound_and_columns_decide_which_rows_are_met(self, store: CellStore, table: str, row: bytes) -> None:
        early, late, other = rows_under(row, 3)
        store.put(table, [RowPut(early, {b"f:a": b"old"})], 10)
        store.put(table, [RowPut(early, {b"f:a": b"new"}), RowPut(late, {b"f:a": b"new"})], 20)
        store.put(table, [RowPut(other, {b"g:a": b"1"})], 5)
        assert list(store.scan(table, under(row), [b"f"], before=20)) == [(early, {b"f:a": Cell(b"old", 10)})]

    def test_on_from_right_after_the_longest_key(self, store: CellStore, table: str) -> None:
        """Of a table with the longest name, whose regions HBase looks up under the longest keys of all."""
        name = f"{table}_".ljust(validation.TABLE_NAME_BYTES_MAX, "n")
        store.create_table(name, [Family("f")])
        longest = b"l".ljust(ROW_KEY_BYTES_MAX, b"x")
        after = longest + b"\x00"
        try:
            assert list(store.scan(name, KeyRange(after, b""), [b"f"])) == []
            store.put(name, [RowPut(key, {b"f:a": b"1"}) for key in (b"k", longest, b"m")], 5)
            expected = {
                KeyRange(after, b""): [b"m"],
                KeyRange(longest + b"\xff", b"n"): [b"m"],
                KeyRange(b"", after): [b"k", longest],
            }
            for key_range, rows in expected.items():
                assert [key for key, _ in store.scan(name, key_range, [b"f"])] == rows
                assert [key for key, _ in store.scan(name, key_range, [b"f"], reverse=True)] == rows[::-1]
                parts = store.scan_columns(name, key_range, [b"f"], [])
                assert b"".join(part.cells.joined_keys() for part in parts) == b"".join(rows)
        finally:
            store.drop_table(name)

    def test_empty_range(self, store: CellStore, table: str, row: bytes) -> None:
        assert list(store.scan(table, under(row), [b"f"])) == []
        assert list(store.scan(table, under(row), [b"f"], reverse=True)) == []

    def test_abandoned_scan_leaves_the_store_usable(self, store: CellStore, table: str, row: bytes) -> None:
        store.put(table, [RowPut(key, {b"f:a": b"1"}) for key in rows_under(row, 10)], 5)
        for _ in range(20):
            scan = store.scan(table, under(row), [b"f"], batch_rows=2)
            next(scan)
            del scan
        assert len(list(store.scan(table, under(row), [b"f"], batch_rows=2))) == 10

    def test_two_scans_at_once_and_writes_between(self, store: CellStore, table: str, row: bytes) -> None:
        rows = rows_under(row, 9)
        store.put(table, [RowPut(key, {b"f:a": b"1"}) for key in rows], 5)
        met = []
        for (left, _), (right, _) in zip(
            store.scan(table, under(row), [b"f"], batch_rows=2),
            store.scan(table, under(row), [b"f"], batch_rows=3, reverse=True),
            strict=True,
        ):
            store.put(table, [RowPut(left, {b"g:seen": b"1"})], 6)
            met.append((left, right))
        assert met == list(zip(rows, rows[::-1], strict=True))


class TestWrites:
    def test_put_of_more_than_one_request_holds(self, store: CellStore, table: str, row: bytes) -> None:
        puts = [RowPut(key, {b"f:a": b"x" * 100, b"f:b": key}) for key in rows_under(row, 50)]
        puts.append(RowPut(row + b"/large", {b"f:a": b"x" * 10_000}))
        store.put(table, puts, 5)
        read = dict(store.scan(table, under(row), [b"f"]))
        assert read == {put.row: {c: Cell(v, 5) for c, v in put.columns.items()} for put in puts}

    def test_repeating_a_put_changes_nothing(self, store: CellStore, table: str, row: bytes) -> None:
        for _ in range(2):
            store.put(table, [RowPut(row, {b"f:a": b"1"})], 5)
        assert store.versions(table, row, b"f:a", limit=9) == [Cell(b"1", 5)]

    def test_older_put_is_accepted_and_not_the_newest(self, store: CellStore, table: str, row: bytes) -> None:
        for column in (b"f:a", b"latest:a"):
            store.put(table, [RowPut(row, {column: b"new"})], 20)
            store.put(table, [RowPut(row, {column: b"old"})], 10)
            assert store.get(table, row, [column]) == {column: Cell(b"new", 20)}

    def test_family_with_one_version_shows_the_newest(self, store: CellStore, table: str, row: bytes) -> None:
        for timestamp in (10, 20, 30):
            store.put(table, [RowPut(row, {b"latest:a": b"%d" % timestamp})], timestamp)
        assert store.versions(table, row, b"latest:a", limit=9) == [Cell(b"30", 30)]

    def test_delete_covers_what_is_at_or_below(self, store: CellStore, table: str, row: bytes) -> None:
        rows = rows_under(row, 20)
        for timestamp in (10, 20, 30):
            store.put(table, [RowPut(key, {b"f:a": b"1", b"g:b": b"2"}) for key in rows], timestamp)
        store.delete(table, rows, 20)
        assert [c.timestamp for c in store.versions(table, rows[0], b"f:a", limit=9)] == [30]
        store.delete(table, rows[:-1], 30)
        assert [key for key, _ in store.scan(table, under(row), [b"f", b"g"])] == rows[-1:]

    def test_columns_are_deleted_at_or_below_and_others_are_not(self, store: CellStore, table: str, row: bytes) -> None:
        rows = rows_under(row, 20)
        for timestamp in (10, 20, 30):
            store.put(table, [RowPut(key, {b"f:a": b"1", b"f:": b"2", b"g:a": b"3"}) for key in rows], timestamp)
        store.delete_columns(table, {key: [b"f:a", b"f:"] for key in rows[:-1]} | {rows[-1]: [b"g:a"]}, 20)
        left = [
            [
                [cell.timestamp for cell in store.versions(table, key, column, limit=9)]
                for column in (b"f:a", b"f:", b"g:a")
            ]
            for key in rows
        ]
        assert left == [[[30], [30], [30, 20, 10]]] * 19 + [[[30, 20, 10], [30, 20, 10], [30]]]

    def test_a_deleted_column_hides_later_puts_at_or_below_in_itself_only(
        self, store: CellStore, table: str, row: bytes
    ) -> None:
        store.delete_columns(table, {row: [b"f:a"]}, 20)
        store.put(table, [RowPut(row, {b"f:a": b"hidden", b"f:b": b"seen"})], 20)
        assert store.get(table, row, [b"f"]) == {b"f:b": Cell(b"seen", 20)}
        store.put(table, [RowPut(row, {b"f:a": b"seen"})], 21)
        assert store.get(table, row, [b"f:a"]) == {b"f:a": Cell(b"seen", 21)}

    def test_delete_also_hides_later_puts_at_or_below(self, store: CellStore, table: str, row: bytes) -> None:
        store.delete(table, [row], 20)
        store.put(table, [RowPut(row, {b"f:a": b"hidden"})], 20)
        assert store.get(table, row, [b"f"]) == {}
        store.put(table, [RowPut(row, {b"f:a": b"seen"})], 21)
        assert store.get(table, row, [b"f"]) == {b"f:a": Cell(b"seen", 21)}

    def test_nothing_to_write_is_nothing(self, store: CellStore, table: str) -> None:
        store.put(table, [], 5)
        store.delete(table, [], 5)
        store.delete_columns(table, {}, 5)
        store.delete_columns(table, {b"r": []}, 5)


class TestBadArguments:
    def test_every_call_refuses_what_cannot_be_held(self, store: CellStore, table: str, row: bytes) -> None:
        good = RowPut(row, {b"f:a": b"1"})
        calls: list[Callable[[], object]] = [
            lambda: store.create_table("a/b", [Family("f")]),
            lambda: store.create_table("x" * 300, [Family("f")]),
            lambda: store.create_table("nofamilies", []),
            lambda: store.create_table("parted", [Family("f")], [b"a", b""]),
            lambda: store.create_table("parted", [Family("f")], [b"a", b"b", b"a"]),
            lambda: store.create_table("parted", [Family("f")], [b"x" * (ROW_KEY_BYTES_MAX + 1)]),
            lambda: store.create_table("parted", [Family("f")], [b"%05d" % number for number in range(REGIONS_MAX)]),
            lambda: store.get(f"default:{table}", row, [b"f"]),
            lambda: store.put(f"default:{table}", [good], 5),
            lambda: store.get(table, b"", [b"f"]),
            lambda: store.get(table, b"x" * 40_000, [b"f"]),
            lambda: store.get(table, row, []),
            lambda: store.get(table, row, [b":a"]),
            lambda: store.get(table, row, [b"f"], before=-1),
            lambda: store.get_many(table, [row, b""], [b"f"]),
            lambda: store.versions(table, row, b"f", limit=1),
            lambda: store.versions(table, row, b"f:a", limit=0),
            lambda: store.scan(table, KeyRange(b"x" * (ROW_KEY_BYTES_MAX + 2), b""), [b"f"]),
            lambda: store.scan(table, KeyRange(b"", b"x" * (ROW_KEY_BYTES_MAX + 2)), [b"f"]),
            lambda: store.scan(table, KeyRange(b"", b""), [b"f"], batch_rows=0),
            lambda: store.put(table, [good, RowPut(b"", {b"f:a": b"1"})], 5),
            lambda: store.put(table, [good, RowPut(row, {})], 5),
            lambda: store.put(table, [good, RowPut(row, {b"f": b"1"})], 5),
            lambda: store.put(table, [good, RowPut(row, {b"f:a": b"x" * (10 * 2**20)})], 5),
            lambda: store.put(table, [good], -1),
            lambda: store.put(table, [good], CELL_TIMESTAMP_MAX + 1),
            lambda: store.delete(table, [row, b""], 5),
            lambda: store.delete(table, [row], CELL_TIMESTAMP_MAX + 1),
            lambda: store.delete_columns(table, {b"": [b"f:a"]}, 5),
            lambda: store.delete_columns(table, {row: [b"f"]}, 5),
            lambda: store.delete_columns(table, {row: [b"f:a"]}, -1),
            lambda: store.compare_and_set(table, row, check=b"f:a", expected=b"", put=b"f:a", value=b"1"),
            lambda: store.compare_and_set(table, row, check=b"f:a", expected=None, put=b"f:a", value=b""),
            lambda: store.compare_and_set(table, row, check=b"f", expected=None, put=b"f:a", value=b"1"),
        ]
        for call in calls:
            with pytest.raises(InvalidCell):
                call()
        assert store.get(table, row, [b"f"]) == {}


def test_closed_store_says_so(request: pytest.FixtureRequest, store: CellStore, table: str) -> None:
    if isinstance(store, HBaseCellStore):
        closed: CellStore = HBaseCellStore(request.getfixturevalue("services").thrift)
    else:
        closed = MemoryCellStore()
    closed.table_names()
    closed.close()
    closed.close()
    with pytest.raises(StoreUnavailable, match="closed"):
        closed.table_names()
    with pytest.raises(StoreUnavailable, match="closed"):
        closed.compare_and_set(table, b"r", check=b"f:a", expected=None, put=b"f:a", value=b"1")
