"""Read-your-writes: the buffer over what the snapshot shows, for single rows and for scans."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from client import InvalidRequest
from client.cells import TOMBSTONE, decode_value
from client.write_buffer import WriteBuffer, tombstones
from store import KeyRange

Rows = dict[bytes, dict[bytes, bytes]]

rows = st.dictionaries(
    st.binary(min_size=1, max_size=2),
    st.dictionaries(st.sampled_from([b"f:a", b"f:b", b"g:a"]), st.sampled_from([b"1", b"2", TOMBSTONE]), min_size=1),
)
ALL = KeyRange(b"", b"")


def without_deleted(rows: Rows) -> Rows:
    visible = {
        row: {column: value for column, value in values.items() if decode_value(value) is not None}
        for row, values in rows.items()
    }
    return {row: values for row, values in visible.items() if values}


@given(rows, rows)
def test_a_scan_shows_the_snapshot_under_the_own_writes(stored: Rows, own: Rows) -> None:
    buffer = WriteBuffer(2**20)
    for row, values in own.items():
        buffer.write("t", row, values)
    snapshot = without_deleted(stored)
    merged = {row: snapshot.get(row, {}) | own.get(row, {}) for row in {*snapshot, *own}}
    scanned = list(buffer.overlay_scan("t", ALL, sorted(snapshot.items()), None))
    assert scanned == sorted(without_deleted(merged).items())


def test_own_rows_outside_the_range_are_left_out() -> None:
    buffer = WriteBuffer(2**20)
    for row in (b"a", b"b", b"c"):
        buffer.write("t", row, {b"f:a": b"1"})
    assert [row for row, _ in buffer.overlay_scan("t", KeyRange(b"b", b"c"), [], None)] == [b"b"]
    assert list(buffer.overlay_scan("other", ALL, [], None)) == []


def test_a_choice_of_columns_holds_for_own_writes() -> None:
    buffer = WriteBuffer(2**20)
    buffer.write("t", b"r", {b"f:a": b"1", b"g:a": b"2"})
    assert buffer.overlay("t", b"r", None, [b"g"]) == {b"g:a": b"2"}
    assert buffer.overlay("t", b"r", {b"f:b": b"3"}, [b"f:b"]) == {b"f:b": b"3"}


def test_a_deleted_row_is_gone() -> None:
    buffer = WriteBuffer(2**20)
    buffer.write("t", b"r", tombstones([b"f:a"]))
    assert buffer.overlay("t", b"r", {b"f:a": b"1"}, None) is None


def test_what_is_overwritten_counts_no_more() -> None:
    buffer = WriteBuffer(1_000)
    for number in range(1_000):
        buffer.write("t", b"r", {b"f:a": b"%d" % number})
        buffer.write("t", b"r", tombstones([b"f:a", b"f:b"]))
    buffer.write("t", b"r", {b"f:a": bytes(300)})
    with pytest.raises(InvalidRequest, match="transaction_bytes_max"):
        buffer.write("t", b"r", {b"f:a": bytes(1_000)})
    buffer.write("t", b"r", {b"f:a": b"", b"f:c": b""})
    with pytest.raises(InvalidRequest, match="transaction_bytes_max"):
        buffer.write("t", b"s", {b"f:a": bytes(300)})


def test_a_full_buffer_refuses_and_keeps_what_it_has() -> None:
    buffer = WriteBuffer(1_000)
    buffer.write("t", b"r", {b"f:a": b"1"})
    with pytest.raises(InvalidRequest, match="transaction_bytes_max"):
        buffer.write("t", b"r", {b"f:a": bytes(2_000)})
    assert buffer.overlay("t", b"r", None, None) == {b"f:a": b"1"}
