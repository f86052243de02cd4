"""Deletes take every cell of a row, say the same when they are repeated, and an overwrite keeps what it wrote."""

from __future__ import annotations

import datetime as dt
from collections.abc import Iterator, Sequence
from typing import Any, cast

import numpy as np
import pyarrow as pa
import pytest

from client.bulk_writes.manifest import SWEEP, Attempt, Piece
from client.bulk_writes.writing import AttemptWriter
from client.cells import TOMBSTONE, row_marker_column, shadow_column
from client.spark import removal
from client.spark.codecs import RowEncoder
from client.spark.errors import InvalidData, InvalidOption
from client.spark.kept_rows import KeptRows
from client.spark.key_codec import row_key
from client.spark.key_values import key_prefixes
from client.spark.mapping import KeyColumn, TableMapping, ValueColumn
from client.spark.removal import PrefixedEncoder, RowRemover, delete_the_rest, keys_written, tombstones
from store import Family, MemoryCellStore, RowPut, columns
from store.columns import CellColumns, ScannedColumns, in_pieces, taken

MAPPING = TableMapping("t", ("k",), (KeyColumn("k", "int"), ValueColumn("v", "int"), ValueColumn("w", "int", "g")))
MARKER = row_marker_column(b"f")
MAPPED = {b"f:v": TOMBSTONE, b"g:w": TOMBSTONE, MARKER: TOMBSTONE}


def keys(*values: int | None) -> pa.RecordBatch:
    return pa.record_batch([pa.array(values, pa.int32())], ["K"])


@pytest.fixture
def store() -> MemoryCellStore:
    made = MemoryCellStore()
    made.create_table("t", [Family("f"), Family("g")])
    return made


def deletes(remover: RowRemover, *values: int) -> list[RowPut]:
    """In the order of their keys."""
    return sorted((put for cells in remover.pieces(keys(*values)) for put in cells.puts()), key=lambda put: put.row)


def test_a_delete_takes_mapped_columns_and_whatever_else_is_there(store: MemoryCellStore) -> None:
    store.put("t", [RowPut(row_key(MAPPING, 2), {b"g:other": b"x", shadow_column(b"g"): bytes(8)})], 30)
    store.put("t", [RowPut(row_key(MAPPING, 2), {b"g:newer": b"x"})], 31)
    assert deletes(RowRemover(store, MAPPING, 30), 1, 2, 1) == [
        RowPut(row_key(MAPPING, 1), MAPPED),
        RowPut(row_key(MAPPING, 2), {**MAPPED, b"g:other": TOMBSTONE}),
    ]


def test_a_repeated_delete_deletes_the_same(store: MemoryCellStore) -> None:
    store.put("t", [RowPut(row_key(MAPPING, 2), {b"g:other": b"x"})], 20)
    remover = RowRemover(store, MAPPING, 30)
    first = deletes(remover, 1, 2)
    store.put("t", first, 30)
    assert deletes(remover, 1, 2) == first


def test_rows_with_columns_of_their_own_are_taken_by_themselves_and_none_is_left_out(store: MemoryCellStore) -> None:
    rows = range(2_000)
    for row in rows[::3]:
        store.put("t", [RowPut(row_key(MAPPING, row), {b"f:x%d" % (row % 7): b"x"})], 20)
    store.put("t", [RowPut(row_key(MAPPING, row), {b"f:v": b"x"}) for row in rows[1::3]], 20)
    found = deletes(RowRemover(store, MAPPING, 30), *rows)
    assert found == [
        RowPut(row_key(MAPPING, row), MAPPED if row % 3 else {**MAPPED, b"f:x%d" % (row % 7): TOMBSTONE})
        for row in rows
    ]


class Watched(MemoryCellStore):
    """Notes for how many rows it is asked by their keys, and how many it gives of scans."""

    def __init__(self) -> None:
        super().__init__()
        self.create_table("t", [Family("f"), Family("g")])
        self.by_keys: list[int] = []
        self.scanned = 0

    def get_columns(self, table: str, rows: Sequence[bytes], *rest: Any, **further: Any) -> Iterator[ScannedColumns]:
        self.by_keys.append(len(rows))
        return super().get_columns(table, rows, *rest, **further)

    def scan_columns(self, *given: Any, **further: Any) -> Iterator[ScannedColumns]:
        for batch in super().scan_columns(*given, **further):
            self.scanned += batch.cells.rows
            yield batch


@pytest.mark.parametrize(
    ("there", "deleted", "scanned", "by_keys"),
    [
        (range(100), range(100), 100, []),
        (range(100), range(0, 100, 4), 97, []),
        (range(2_000), range(0, 2_000, 20), 10, [99]),  # ten are met, and one of them was asked for
        (range(0, 2_000, 2), range(1, 2_001, 2), 999, []),
        (range(100), [*range(50), *range(1_000, 1_020)], 100, []),
        (range(2_000), [*range(40), *range(400, 2_000, 100)], 330, [16]),
        (range(100), [5], 0, [1]),
        (range(0), range(50), 0, []),
    ],
)
def test_rows_that_lie_together_are_scanned_and_others_are_read_by_their_keys(
    there: Sequence[int], deleted: Sequence[int], scanned: int, by_keys: list[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(removal, "SCANNED_ROWS", 10)
    store = Watched()
    for row in there:
        store.put("t", [RowPut(row_key(MAPPING, row), {b"f:x%d" % row: b"x", b"f:v": b"1"})], 20)
    assert deletes(RowRemover(store, MAPPING, 30), *deleted) == [
        RowPut(row_key(MAPPING, row), {**MAPPED, **({b"f:x%d" % row: TOMBSTONE} if row in there else {})})
        for row in deleted
    ]
    assert (store.scanned, store.by_keys) == (scanned, by_keys)


@pytest.mark.parametrize(("value_bytes", "scanned", "by_keys"), [(3_000, 49, []), (10_000, 10, [10])])
def test_large_rows_are_read_by_their_keys(
    value_bytes: int, scanned: int, by_keys: list[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    """What lies between those of a delete is read for nothing; here no two of its rows are neighbours."""
    monkeypatch.setattr(removal, "SCANNED_ROWS", 10)
    monkeypatch.setattr(removal, "BYTES_MET_FOR_EACH_MAX", 20_000)
    store = Watched()
    for row in range(51):
        store.put("t", [RowPut(row_key(MAPPING, row), {b"f:v": bytes(value_bytes)})], 20)
    deleted = range(0, 51, 4)
    assert deletes(RowRemover(store, MAPPING, 30), *deleted) == [
        RowPut(row_key(MAPPING, row), MAPPED) for row in deleted
    ]
    assert (store.scanned, store.by_keys) == (scanned, by_keys)


def test_a_delete_without_rows_asks_nothing_and_one_without_a_key_is_refused(store: MemoryCellStore) -> None:
    assert deletes(RowRemover(store, MAPPING, 30)) == []
    with pytest.raises(InvalidData, match="'k' is null"):
        RowRemover(store, MAPPING, 30).pieces(keys(1, None))


def wide(row: int) -> dict[bytes, bytes]:
    """A row whose qualifiers are data, so that no other row has them."""
    return {b"f:%d-%d" % (row, number): b"x" for number in range(100)}


def test_deletes_of_rows_with_columns_of_their_own_are_written_in_bounded_pieces(
    store: MemoryCellStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(columns, "PLACES_MAX", 1_000)
    monkeypatch.setattr(removal, "PLACES_MAX", 1_000)
    store.put("t", [RowPut(row_key(MAPPING, row), wide(row)) for row in range(20)], 20)
    pieces = list(RowRemover(store, MAPPING, 30).pieces(keys(*range(20))))
    assert sorted(put.row for piece in pieces for put in piece.puts()) == [row_key(MAPPING, row) for row in range(20)]
    recorded = Recorded()
    seen = in_pieces(RowPut(row_key(MAPPING, row), wide(row)) for row in range(20))
    assert delete_the_rest(cast(AttemptWriter, recorded), MAPPING, seen, kept(row_key(MAPPING, 0))) == 20
    deleted = {put.row: put.columns for put in recorded.puts}
    assert len(deleted) == len(recorded.puts) == 20
    assert deleted[row_key(MAPPING, 0)] == dict.fromkeys(wide(0), TOMBSTONE)
    assert deleted[row_key(MAPPING, 1)] == {**MAPPED, **dict.fromkeys(wide(1), TOMBSTONE)}
    for piece in [*pieces, *recorded.pieces]:
        assert piece.value_lengths.size <= 1_000


class Recorded:
    def __init__(self) -> None:
        self.pieces: list[CellColumns] = []

    @property
    def puts(self) -> list[RowPut]:
        return [put for cells in self.pieces for put in cells.puts()]

    def write(self, cells: CellColumns) -> None:
        self.pieces.append(cells)


def test_an_overwrite_deletes_what_it_did_not_write() -> None:
    recorded = Recorded()
    seen = [
        CellColumns.of_puts(
            [
                RowPut(b"a", {b"f:v": b"1"}),
                RowPut(b"b", {b"f:v": b"1", b"f:old": b"2"}),
                RowPut(b"c", {b"g:old": b"3"}),
            ]
        ),
        CellColumns.of_puts([RowPut(b"d", {}), RowPut(b"e", {})]),
    ]
    assert delete_the_rest(cast(AttemptWriter, recorded), MAPPING, seen, kept(b"a", b"b", b"e")) == 3
    assert sorted(recorded.puts) == [
        RowPut(b"b", {b"f:old": TOMBSTONE}),
        RowPut(b"c", {**MAPPED, b"g:old": TOMBSTONE}),
        RowPut(b"d", MAPPED),
    ]
    assert tombstones(MAPPING) == MAPPED


def test_rows_of_few_columns_are_deleted_in_bounded_pieces_where_many_are_mapped(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(removal, "PLACES_MAX", 12)
    recorded = Recorded()
    rows = [RowPut(b"%d" % number, {b"f:v": b"1"}) for number in range(9)]
    assert delete_the_rest(cast(AttemptWriter, recorded), MAPPING, [CellColumns.of_puts(rows)], kept()) == 9
    assert recorded.puts == [RowPut(put.row, MAPPED) for put in rows]
    assert [each.rows for each in recorded.pieces] == [4, 4, 1]


def kept(*rows: bytes) -> KeptRows:
    return KeptRows("t", keys_written([piece("mine", (0, 1), "t", *rows)], "mine", [(0, 1)], "t"))


def piece(job: str, attempt: Attempt, table: str, *rows: bytes) -> Piece:
    data, lengths = np.frombuffer(bytearray(b"".join(rows)), np.uint8), np.array([len(row) for row in rows], np.int64)
    return Piece(job, attempt, table, frozenset({b"f:v"}), data, np.cumsum(lengths) - lengths, lengths)


def test_only_rows_of_attempts_that_count_are_kept() -> None:
    pieces = [
        piece("mine", (0, 1), "t", b"a"),
        piece("mine", (0, 1), "u", b"x"),
        piece("mine", (0, 2), "t", b"b"),
        piece("other", (0, 1), "t", b"c"),
    ]
    assert [taken(*keys) for keys in keys_written(pieces, "mine", [(0, 1), (1, 5)], "t")] == [[b"a"]]
    assert SWEEP not in {each.attempt for each in pieces}


def test_rows_outside_of_what_is_replaced_are_refused() -> None:
    encoder = PrefixedEncoder(RowEncoder(MAPPING, ["k", "v"]), (row_key(MAPPING, 7),), "[7]")
    batch = pa.record_batch([pa.array([7, 8], pa.int32()), pa.array([1, 1], pa.int32())], ["k", "v"])
    assert [cells.row_keys() for cells in encoder.pieces(batch.slice(0, 1))] == [[row_key(MAPPING, 7)]]
    with pytest.raises(InvalidData, match=r"lies outside of what overwrite_prefix=\[7\] replaces"):
        encoder.pieces(batch)


KEYED = TableMapping(
    "t",
    ("d", "s", "b", "i", "t"),
    (
        KeyColumn("d", "date"), KeyColumn("s", "string"), KeyColumn("b", "binary"), KeyColumn("i", "int"),
        KeyColumn("t", "timestamp"), ValueColumn("v", "int"),
    ),
)  # fmt: skip


def test_values_of_leading_key_columns_are_read_from_text() -> None:
    assert key_prefixes(KEYED, "o", '["2013-07-04"]') == (row_key(KEYED, dt.date(2013, 7, 4)),)
    moment = dt.datetime(2013, 7, 4, 12, tzinfo=dt.UTC)
    whole = key_prefixes(KEYED, "o", '["2013-07-04", "AA", "00ff", 7, "2013-07-04T12:00:00Z"]')
    assert whole == (row_key(KEYED, dt.date(2013, 7, 4), "AA", b"\x00\xff", 7, moment),)


def test_of_a_plain_row_key_that_is_what_the_text_begins_with() -> None:
    mapping = TableMapping("t", ("k",), (KeyColumn("k", "string", plain=True), ValueColumn("v", "int")))
    assert key_prefixes(mapping, "o", '["2013-07"]') == (b"2013-07",)
    with pytest.raises(InvalidOption, match="at least one byte"):
        key_prefixes(mapping, "o", '[""]')


@pytest.mark.parametrize(
    "text",
    [
        "", "7", "{}", "[]", "[1]", '["2013-07"]', '["2013-07-04", 1]', '["2013-07-04", "a", "xyz"]',
        '["2013-07-04", "a", "", true]', '["2013-07-04", "a", "", 1, "2013-07-04T12:00:00"]',
        '["2013-07-04", "a", "", 1, "2013-07-04T12:00:00Z", 1]', '[null]',
    ],
)  # fmt: skip
def test_other_text_is_refused_with_the_option(text: str) -> None:
    with pytest.raises(InvalidOption, match="the option 'overwrite_prefix' is a JSON list of values"):
        key_prefixes(KEYED, "overwrite_prefix", text)
