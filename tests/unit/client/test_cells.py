"""How cells look in a table: every value survives, no two cells share a conflict key by construction."""

from __future__ import annotations

import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from client import InvalidRequest, cells
from client.key_hashing import HASHED_BYTES_MAX
from client.snapshots.ranges import end_of_prefix, key_range
from store import KeyRange, RowPut
from store.columns import CellColumns

values = st.binary() | st.binary().map(lambda value: cells.TOMBSTONE + value)


@given(values)
def test_every_value_survives_and_none_reads_as_deleted(value: bytes) -> None:
    assert cells.decode_value(cells.encode_value(value)) == value


@given(st.text())
def test_text_is_stored_as_it_is(text: str) -> None:
    assert cells.encode_value(text.encode("utf-8", "surrogatepass")) == text.encode("utf-8", "surrogatepass")


def test_a_tombstone_reads_as_deleted() -> None:
    assert cells.decode_value(cells.TOMBSTONE) is None


@pytest.mark.parametrize("outcome", [1, 2**62, cells.ABORTED_SHADOW])
def test_a_shadow_cell_holds_the_outcome(outcome: int) -> None:
    assert cells.decode_shadow(cells.encode_shadow(outcome)) == outcome


def test_names_that_run_together_to_the_same_bytes_are_different_cells() -> None:
    ids = {cells.cell_id(*cell) for cell in (("t", b"ab", b"c:d"), ("t", b"a", b"bc:d"), ("ta", b"b", b"c:d"))}
    assert len(ids) == 3


def test_a_row_level_write_set_has_one_key_a_row() -> None:
    rows = {b"r1": [b"f:a", b"f:b"], b"r2": [b"f:a"]}
    assert len(cells.write_set("t", rows, by_row=True)) == 2
    assert len(cells.write_set("t", rows, by_row=False)) == 3


@pytest.mark.parametrize("key_bytes", range(1, HASHED_BYTES_MAX + 20))
def test_rows_as_columns_have_the_conflict_keys_that_one_row_has(key_bytes: int) -> None:
    rows = [random.Random(seed).randbytes(key_bytes) for seed in range(3)]
    columns = CellColumns.of_puts([RowPut(row, {b"f:a": b"1"}) for row in rows])
    assert cells.write_set_of_columns("t", columns, by_row=True).tolist() == [cells.row_id("t", row) for row in rows]


@given(
    st.text(min_size=1, max_size=20),
    st.dictionaries(
        st.binary(min_size=1, max_size=40),
        st.dictionaries(st.sampled_from([b"f:a", b"g:bc", b"f:" + b"d" * 180]), st.just(b"1")),
        max_size=6,
    ),
)
def test_cells_as_columns_have_the_conflict_keys_that_one_cell_has(
    table: str, rows: dict[bytes, dict[bytes, bytes]]
) -> None:
    columns = CellColumns.of_puts([RowPut(row, values) for row, values in rows.items()])
    expected = [cells.cell_id(table, row, column) for row in rows for column in columns.columns if column in rows[row]]
    assert cells.write_set_of_columns(table, columns, by_row=False).tolist() == expected


@pytest.mark.parametrize("row", [b"", bytes(32_768), "text", None])
def test_a_row_key_that_hbase_cannot_hold_is_refused(row: bytes) -> None:
    with pytest.raises(InvalidRequest, match="row key"):
        cells.validate_row(row)


@pytest.mark.parametrize("column", [b"f", b":q", b"f:\x00", b"f:\x00row", b"f:\x00mine", "f:q", b""])
def test_a_column_that_is_not_the_callers_is_refused(column: bytes) -> None:
    with pytest.raises(InvalidRequest, match="column"):
        cells.validate_column(column)


@pytest.mark.parametrize("column", [b"f:", b"f:q", b"f:q:r", b"f:\xff"])
def test_every_other_column_is_the_callers(column: bytes) -> None:
    cells.validate_column(column)


@given(st.binary(min_size=1), st.binary())
def test_a_prefix_is_a_range(prefix: bytes, rest: bytes) -> None:
    start, stop = key_range(b"", b"", prefix)
    assert start <= prefix + rest
    assert not stop or prefix + rest < stop


@pytest.mark.parametrize(("prefix", "end"), [(b"a", b"b"), (b"a\xff", b"b"), (b"\xff\xff", b"")])
def test_the_end_of_a_prefix(prefix: bytes, end: bytes) -> None:
    assert end_of_prefix(prefix) == end


def test_a_range_is_given_in_one_way() -> None:
    assert key_range(b"a", b"b", b"") == KeyRange(b"a", b"b")
    with pytest.raises(InvalidRequest, match="either prefix"):
        key_range(b"a", b"", b"b")
    with pytest.raises(InvalidRequest, match="before start"):
        key_range(b"b", b"a", b"")
