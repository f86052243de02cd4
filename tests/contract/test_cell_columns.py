"""Rows as columns: what is written and read so is what is written and read row by row, on every store.

HBase appears three times: with our own kernels for the bytes, row by row through HappyBase's client, the twin that the
kernels are held to, and with shadow cells in a family of their own.
"""

from __future__ import annotations

import itertools
import random
import uuid
from collections.abc import Iterator, Sequence

import numpy as np
import pytest

from store import (
    ROW_KEY_BYTES_MAX,
    Cell,
    CellStore,
    Family,
    InvalidCell,
    KeyRange,
    MemoryCellStore,
    Row,
    RowPut,
    TableMissing,
    columns,
)
from store.columns import CellColumns, ColumnsByRows, batches_of_columns, gathered, in_pieces
from store.hbase import HBaseCellStore, RequestLimits
from store.validation import VALUE_BYTES_MAX
from tests.contract.shadows_apart import ShadowsApart

COLUMNS = (b"f:b", b"f:a", b"g:", b"g:\x00", b"f:ab")
_numbers = itertools.count()


class RowByRow(ColumnsByRows, HBaseCellStore):
    """HBase with HappyBase's client for every call."""


@pytest.fixture(
    scope="module",
    params=[
        "memory",
        "memory, shadows apart",
        *(pytest.param(name, marks=pytest.mark.integration) for name in ("kernels", "row by row", "shadows apart")),
    ],
)
def store(request: pytest.FixtureRequest) -> Iterator[CellStore]:
    opened: CellStore
    if request.param.startswith("memory"):
        opened = MemoryCellStore()
    else:
        kind = RowByRow if request.param == "row by row" else HBaseCellStore
        opened = kind(
            request.getfixturevalue("services").thrift,
            limits=RequestLimits(rows_max=7, column_rows_max=7, request_bytes_max=2_000),
        )
    if "apart" in request.param:
        opened = ShadowsApart(opened)
    yield opened
    opened.close()


@pytest.fixture(scope="module")
def table(store: CellStore) -> Iterator[str]:
    name = f"contract_{uuid.uuid4().hex[:12]}"
    store.create_table(name, [Family("f"), Family("g")])
    yield name
    store.drop_table(name)


@pytest.fixture
def area() -> KeyRange:
    """Where no other test writes."""
    number = next(_numbers)
    return KeyRange(b"%08d" % number, b"%08d" % (number + 1))


def scanned(
    store: CellStore,
    table: str,
    key_range: KeyRange,
    known: Sequence[bytes] = COLUMNS,
    *,
    columns: Sequence[bytes] = (b"f", b"g"),
    before: int | None = None,
    batch_rows: int = 500,
    without_qualifier: bytes | None = None,
) -> list[tuple[bytes, Row]]:
    found = list(
        store.scan_columns(
            table,
            key_range,
            columns,
            known,
            before=before,
            batch_rows=batch_rows,
            without_qualifier=without_qualifier,
        )
    )
    assert all(0 < batch.cells.rows <= batch_rows and batch.cells.columns == tuple(known) for batch in found)
    return [row for batch in found for row in batch.rows_at(range(batch.cells.rows))]


def some_rows(area: KeyRange, seed: int, count: int) -> list[RowPut]:
    chance = random.Random(seed)
    lengths = (0, 1, 3, 8, 200)

    def value() -> bytes:
        return chance.randbytes(chance.choice(lengths))

    return [
        RowPut(
            area.start + b"%05d" % index + chance.randbytes(chance.randrange(3)),
            {column: value() for column in chance.sample(COLUMNS, chance.randint(1, len(COLUMNS)))},
        )
        for index in range(count)
    ]


def got(
    store: CellStore,
    table: str,
    rows: Sequence[bytes],
    known: Sequence[bytes] = COLUMNS,
    *,
    columns: Sequence[bytes] = (b"f", b"g"),
    before: int | None = None,
) -> list[tuple[bytes, Row]]:
    found = list(store.get_columns(table, rows, columns, known, before=before))
    assert all(batch.cells.rows and batch.cells.columns == tuple(known) for batch in found)
    return [row for batch in found for row in batch.rows_at(range(batch.cells.rows))]


class TestGet:
    @pytest.mark.parametrize("known", [COLUMNS, COLUMNS[:1], ()], ids=["all known", "one known", "none known"])
    def test_rows_come_as_one_by_one(
        self, store: CellStore, table: str, area: KeyRange, known: Sequence[bytes]
    ) -> None:
        puts = some_rows(area, 11, 60)
        store.put(table, puts, 5)
        store.put(table, puts[::2], 6)
        rows = [put.row for put in puts[::-1]] + [area.start + b"none"]
        for before in (None, 7, 6, 5):
            expected = store.get_many(table, rows, [b"f", b"g"], before=before)
            assert dict(got(store, table, rows, known, before=before)) == expected
        assert bool(expected) is False

    def test_only_chosen_columns_come_and_rows_without_them_do_not(
        self, store: CellStore, table: str, area: KeyRange
    ) -> None:
        one, other = area.start + b"1", area.start + b"2"
        store.put(table, [RowPut(one, {b"f:a": b"1", b"g:a": b"2"}), RowPut(other, {b"g:a": b"3"})], 5)
        assert got(store, table, [one, other], columns=[b"f"]) == [(one, {b"f:a": Cell(b"1", 5)})]
        assert got(store, table, []) == []

    def test_what_cannot_be_asked_is_refused_at_the_call(self, store: CellStore, table: str, area: KeyRange) -> None:
        for rows, chosen, before in (([b""], [b"f"], None), ([b"r"], [], None), ([b"r"], [b"f"], -1)):
            with pytest.raises(InvalidCell):
                store.get_columns(table, rows, chosen, [], before=before)

    def test_a_table_that_is_missing_is_told(self, store: CellStore) -> None:
        with pytest.raises(TableMissing):
            list(store.get_columns("nowhere", [b"r"], [b"f"], []))


class TestPut:
    def test_what_is_put_as_columns_is_read_row_by_row(self, store: CellStore, table: str, area: KeyRange) -> None:
        puts = some_rows(area, 1, 60)
        store.put_columns(table, CellColumns.of_puts(puts), 7)
        read = {
            row: ({column: cell.value for column, cell in cells.items()}, {cell.timestamp for cell in cells.values()})
            for row, cells in store.scan(table, area, [b"f", b"g"])
        }
        assert read == {put.row: (dict(put.columns), {7}) for put in puts}

    def test_an_absent_cell_leaves_what_is_there(self, store: CellStore, table: str, area: KeyRange) -> None:
        store.put(table, [RowPut(area.start + b"r", {b"f:a": b"old", b"f:b": b"old"})], 5)
        cells = CellColumns.of_puts(
            [RowPut(area.start + b"q", {b"f:a": b"new"}), RowPut(area.start + b"r", {b"f:b": b"new"})]
        )
        store.put_columns(table, cells, 6)
        assert {column: cell.value for column, cell in store.get(table, area.start + b"r", [b"f"]).items()} == {
            b"f:a": b"old",
            b"f:b": b"new",
        }

    def test_a_part_of_the_rows(self, store: CellStore, table: str, area: KeyRange) -> None:
        puts = some_rows(area, 2, 30)
        store.put_columns(table, CellColumns.of_puts(puts).slice(10, 20), 7)
        assert [row for row, _ in store.scan(table, area, [b"f", b"g"])] == [put.row for put in puts[10:20]]

    def test_nothing_to_write_is_written(self, store: CellStore, table: str, area: KeyRange) -> None:
        store.put_columns(table, CellColumns.of_puts([]), 7)
        assert list(store.scan(table, area, [b"f"])) == []

    def test_values_larger_than_a_request(self, store: CellStore, table: str, area: KeyRange) -> None:
        puts = [RowPut(area.start + b"%d" % index, {b"f:a": bytes([index]) * 700_000}) for index in range(3)]
        store.put_columns(table, CellColumns.of_puts(puts), 7)
        assert scanned(store, table, area) == [(put.row, store.get(table, put.row, [b"f"])) for put in puts]

    @pytest.mark.parametrize(
        ("cells", "says"),
        [
            (CellColumns.of_puts([RowPut(b"a", {b"f:a": b"1"}), RowPut(b"", {b"f:a": b"1"})]), "a row key is 1 to"),
            (CellColumns.of_puts([RowPut(bytes(ROW_KEY_BYTES_MAX + 1), {b"f:a": b"1"})]), "a row key is 1 to"),
            (CellColumns.of_puts([RowPut(b"a", {b"a": b"1"})]), "family:qualifier"),
            (CellColumns.of_puts([RowPut(b"a", {b"f:a": b"1"}), RowPut(b"b", {})]), "no cell in any column"),
            (CellColumns.of_puts([RowPut(b"a", {b"f:a": bytes(VALUE_BYTES_MAX + 1)})]), "a value is at most"),
            (CellColumns.of_values((b"f:a", b"f:a"), [b"r"], [{b"f:a": b"1"}]), "named twice"),
        ],
    )
    def test_what_cannot_be_held_is_refused_whole(
        self, store: CellStore, table: str, area: KeyRange, cells: CellColumns, says: str
    ) -> None:
        with pytest.raises(InvalidCell, match=says):
            store.put_columns(table, cells, 7)
        assert list(store.scan(table, area, [b"f"])) == []

    def test_a_missing_table_and_a_missing_family_are_named_as_such(
        self, store: CellStore, table: str, area: KeyRange
    ) -> None:
        with pytest.raises(TableMissing):
            store.put_columns("nowhere", CellColumns.of_puts([RowPut(area.start + b"a", {b"f:a": b"1"})]), 7)
        with pytest.raises(TableMissing):
            store.put_columns(table, CellColumns.of_puts([RowPut(area.start + b"a", {b"none:a": b"1"})]), 7)


class TestScan:
    @pytest.mark.parametrize("batch_rows", [1, 7, 500])
    def test_it_gives_what_a_scan_row_by_row_gives(
        self, store: CellStore, table: str, area: KeyRange, batch_rows: int
    ) -> None:
        for timestamp in (5, 6, 7):
            store.put(table, some_rows(area, timestamp, 50), timestamp)
        for before in (None, 7, 6, 5):
            rows = list(store.scan(table, area, [b"f", b"g"], before=before))
            assert scanned(store, table, area, before=before, batch_rows=batch_rows) == rows

    def test_columns_that_are_not_named_come_one_by_one(self, store: CellStore, table: str, area: KeyRange) -> None:
        store.put(table, some_rows(area, 1, 100), 5)
        rows = list(store.scan(table, area, [b"f", b"g"]))
        for known in ((b"f:a",), (b"g:", b"f:none"), ()):
            assert scanned(store, table, area, known) == rows
        (batch,) = store.scan_columns(table, area, [b"f", b"g"], (b"f:a",))
        assert all(b"f:a" not in cells for cells in batch.others.values())

    def test_a_choice_and_a_range(self, store: CellStore, table: str, area: KeyRange) -> None:
        store.put(table, some_rows(area, 3, 60), 5)
        key_range = KeyRange(area.start + b"00010", area.start + b"00030")
        expected = list(store.scan(table, key_range, [b"f:a", b"g"]))
        assert scanned(store, table, key_range, columns=[b"f:a", b"g"], batch_rows=6) == expected
        assert 0 < len(expected) <= 20
        assert scanned(store, table, KeyRange(b"b", b"a")) == []
        assert scanned(store, table, KeyRange(b"z", b"")) == []

    @pytest.mark.parametrize("qualifier", [b"a", b"", b"\x00", b"it's", b"')", b"nobody"])
    def test_without_a_qualifier(self, store: CellStore, table: str, area: KeyRange, qualifier: bytes) -> None:
        """Rows that have nothing else go with it, and nothing else goes."""
        store.put(table, some_rows(area, 6, 40), 5)
        named = {family + b":" + qualifier: b"v" for family in (b"f", b"g")}
        puts = [RowPut(area.start + b"%05d" % (100 + number), named) for number in range(20)]
        store.put(table, [*puts, RowPut(puts[3].row, {b"f:other": b"v"})], 5)
        rows = list(store.scan(table, area, [b"f", b"g"]))
        left = [
            (row, {column: cell for column, cell in cells.items() if column[2:] != qualifier}) for row, cells in rows
        ]
        kept = [(row, cells) for row, cells in left if cells]
        assert scanned(store, table, area, without_qualifier=qualifier, batch_rows=7) == kept
        assert len(kept) < len(rows) or qualifier == b"nobody"

    def test_batches_outlive_those_after_them(self, store: CellStore, table: str, area: KeyRange) -> None:
        store.put(table, some_rows(area, 4, 40), 5)
        batches = list(store.scan_columns(table, area, [b"f", b"g"], COLUMNS, batch_rows=9))
        keys = [key for batch in batches for key in batch.cells.row_keys()]
        assert keys == [row for row, _ in store.scan(table, area, [b"f", b"g"])]
        assert len({key[:13] for key in keys}) == 40

    def test_timestamps_are_those_of_the_cells(self, store: CellStore, table: str, area: KeyRange) -> None:
        store.put(table, [RowPut(area.start + b"r", {b"f:a": b"1", b"f:b": b"1"})], 5)
        store.put(table, [RowPut(area.start + b"r", {b"f:b": b"2"})], 2**62)
        (batch,) = store.scan_columns(table, area, [b"f"], (b"f:a", b"f:b"))
        assert batch.timestamps.tolist() == [[5], [2**62]]
        assert batch.cells.values(1) == [b"2"]

    def test_a_missing_table_a_missing_family_and_bad_bounds(
        self, store: CellStore, table: str, area: KeyRange
    ) -> None:
        with pytest.raises(TableMissing):
            list(store.scan_columns("nowhere", area, [b"f"], COLUMNS))
        with pytest.raises(TableMissing):
            list(store.scan_columns(table, area, [b"none"], COLUMNS))
        with pytest.raises(InvalidCell):
            store.scan_columns(table, area, [], COLUMNS)
        with pytest.raises(InvalidCell):
            store.scan_columns(table, area, [b"f"], COLUMNS, batch_rows=0)

    def test_what_was_read_can_be_written_elsewhere(self, store: CellStore, table: str, area: KeyRange) -> None:
        store.put(table, some_rows(area, 5, 30), 5)
        other = f"{table}_copy"
        store.create_table(other, [Family("f"), Family("g")])
        for batch in store.scan_columns(table, area, [b"f", b"g"], COLUMNS, batch_rows=11):
            store.put_columns(other, batch.cells, 5)
        assert scanned(store, other, area) == scanned(store, table, area)
        store.drop_table(other)


@pytest.mark.parametrize(
    ("rows_max", "bytes_wanted", "sizes"), [(100, 1, [7] * 5 + [5]), (20, 10**6, [14, 14, 12]), (100, 10**6, [40])]
)
def test_batches_that_are_gathered_have_the_same_rows(rows_max: int, bytes_wanted: int, sizes: list[int]) -> None:
    rows = [
        (put.row, {column: Cell(value, index) for column, value in put.columns.items()})
        for index, put in enumerate(some_rows(KeyRange(b"", b""), 7, 40))
    ]
    parts = batches_of_columns(rows, COLUMNS[:2], 7)
    found = list(gathered(parts, rows_max, bytes_wanted))
    assert [batch.cells.rows for batch in found] == sizes
    assert [row for batch in found for row in batch.rows_at(range(batch.cells.rows))] == rows


def test_rows_in_pieces_are_the_same_rows(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(columns, "PLACES_MAX", 6)
    widths = [1, 1, 1, 3, 2, 9, 1, 3, 3]
    puts = [RowPut(b"%d" % row, {b"f:%d" % each: b"x" for each in range(width)}) for row, width in enumerate(widths)]
    pieces = list(in_pieces(iter(puts)))
    assert [put for cells in pieces for put in cells.puts()] == puts
    assert [(cells.rows, len(cells.columns)) for cells in pieces] == [(3, 1), (2, 3), (1, 9), (2, 3), (1, 3)]
    assert list(in_pieces([])) == []


def test_slices_and_rows_of_a_batch() -> None:
    puts = some_rows(KeyRange(b"", b""), 6, 20)
    cells = CellColumns.of_puts(puts)
    assert [(put.row, dict(put.columns)) for put in cells.puts()] == [(put.row, dict(put.columns)) for put in puts]
    assert [put.row for put in cells.slice(3, 5).puts()] == [put.row for put in puts[3:5]]
    keys = [put.row for put in puts]
    assert cells.slice(3, 9).joined_keys() == b"".join(keys[3:9])
    assert cells.only(np.arange(len(puts)) % 2 == 0).joined_keys() == b"".join(keys[::2])
    assert cells.slice(3, 3).joined_keys() == b""
    assert cells.value_lengths.dtype == np.int64
