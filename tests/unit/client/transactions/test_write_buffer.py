"""Read-your-writes: the buffer over what the snapshot shows, for single rows and for scans, and going back in it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from client import InvalidRequest
from client.cells import TOMBSTONE, decode_value
from client.transactions.write_buffer import Mark, WriteBuffer, tombstones
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
    backward = buffer.overlay_scan("t", ALL, sorted(snapshot.items(), reverse=True), None, reverse=True)
    assert list(backward) == scanned[::-1]


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


columns_written = st.dictionaries(
    st.sampled_from([b"f:a", b"f:b", b"g:a"]), st.sampled_from([b"1", b"22", TOMBSTONE]), min_size=1
)
writes = st.tuples(st.just("write"), st.sampled_from([b"r", b"s"]), columns_written, st.booleans())
marks = st.tuples(st.just("mark"))
undos = st.tuples(st.just("undo to"), st.integers(0, 3))
forgets = st.tuples(st.just("forget"), st.integers(0, 3))
histories = st.lists(st.one_of(writes, writes, marks, undos, forgets), max_size=25)


def contents(buffer: WriteBuffer) -> dict[str, Rows]:
    return {table: {row: dict(values) for row, values in rows.items()} for table, rows in buffer.rows()}


def compared(steps: Sequence[tuple[Any, ...]]) -> dict[bytes, set[bytes]]:
    """Row → columns that some write writes which is not conflict-free."""
    rows: dict[bytes, set[bytes]] = {}
    for _, row, values, conflict_free in (step for step in steps if step[0] == "write"):
        if not conflict_free:
            rows.setdefault(row, set()).update(values)
    return rows


def write(buffer: WriteBuffer, step: tuple[Any, ...]) -> None:
    buffer.write("t", step[1], step[2], conflict_free=step[3])


def replayed(steps: Sequence[tuple[Any, ...]]) -> WriteBuffer:
    buffer = WriteBuffer(2**20)
    for step in steps:
        if step[0] == "write":
            write(buffer, step)
        else:
            buffer.mark()
    return buffer


@given(histories)
def test_a_buffer_is_what_its_writes_that_were_not_undone_and_its_marks_make_it(history: list[tuple[Any, ...]]) -> None:
    """The model keeps the steps that still count, and writes them anew after each step, without ever undoing one."""
    buffer = WriteBuffer(2**20)
    counting: list[tuple[Any, ...]] = []
    marks: list[Mark] = []
    for step in history:
        places = [place for place, each in enumerate(counting) if each[0] == "mark"]
        if step[0] == "write":
            write(buffer, step)
            counting.append(step)
        elif step[0] == "mark":
            marks.append(buffer.mark())
            counting.append(step)
        elif step[1] < len(marks) and step[0] == "undo to":
            buffer.undo_to(marks[step[1]])
            del counting[places[step[1]] + 1 :], marks[step[1] + 1 :]
        elif step[1] < len(marks):
            del counting[places[step[1]]], marks[step[1]]
            buffer.keep_only(marks)
        model = replayed(counting)
        assert contents(buffer) == contents(model)
        assert bool(buffer) == bool(contents(model))
        assert buffer.size_bytes == model.size_bytes
        rows = buffer.compared_rows().get("t", {})
        assert {row: set(values) for row, values in rows.items()} == compared(counting)
        for mark, place in zip(marks, [place for place, each in enumerate(counting) if each[0] == "mark"], strict=True):
            then = replayed([each for each in counting[:place] if each[0] == "write"])
            assert list(buffer.overlay_scan("t", ALL, [], None, mark)) == list(then.overlay_scan("t", ALL, [], None))
            for row in (b"r", b"s"):
                assert buffer.overlay("t", row, None, None, mark) == then.overlay("t", row, None, None)


def test_a_cell_as_of_a_mark_is_what_was_written_before_it_whatever_came_after_later_marks() -> None:
    buffer = WriteBuffer(2**20)
    marks: list[Mark] = []
    for value in (b"1", b"2", b"3"):
        buffer.write("t", b"r", {b"f:a": value})
        marks.append(buffer.mark())
    buffer.write("t", b"r", {b"f:a": b"4"})
    assert [buffer.overlay("t", b"r", None, None, mark) for mark in marks] == [
        {b"f:a": value} for value in (b"1", b"2", b"3")
    ]


def test_what_an_undone_write_took_is_free_again() -> None:
    buffer = WriteBuffer(1_000)
    buffer.write("t", b"r", {b"f:a": b"1"})
    mark = buffer.mark()
    for _ in range(10):
        buffer.write("t", b"s", {b"f:a": bytes(300)})
        with pytest.raises(InvalidRequest, match="transaction_bytes_max"):
            buffer.write("t", b"s", {b"f:b": bytes(300)})
        buffer.undo_to(mark)
    buffer.keep_only([])
    buffer.write("t", b"s", {b"f:a": bytes(500)})


def test_what_a_mark_keeps_counts_and_counts_once() -> None:
    buffer = WriteBuffer(1_500)
    buffer.write("t", b"r", {b"f:a": bytes(500)})
    buffer.mark()
    for number in range(100):
        buffer.write("t", b"r", {b"f:a": b"%d" % number})
    with pytest.raises(InvalidRequest, match="transaction_bytes_max"):
        buffer.write("t", b"s", {b"f:a": bytes(400)})
    buffer.keep_only([])
    buffer.write("t", b"s", {b"f:a": bytes(400)})


def test_a_write_that_is_refused_notes_nothing() -> None:
    buffer = WriteBuffer(1_000)
    buffer.write("t", b"r", {b"f:a": b"1"})
    mark = buffer.mark()
    with pytest.raises(InvalidRequest, match="transaction_bytes_max"):
        buffer.write("t", b"r", {b"f:a": bytes(2_000)})
    buffer.undo_to(mark)
    assert contents(buffer) == {"t": {b"r": {b"f:a": b"1"}}}


def test_a_scan_shows_the_own_rows_of_its_beginning() -> None:
    buffer = WriteBuffer(2**20)
    for row in (b"a", b"b", b"c"):
        buffer.write("t", row, {b"f:a": b"old"})
    mark = buffer.mark()
    buffer.write("t", b"c", {b"f:a": b"newer"})
    scans = [buffer.overlay_scan("t", ALL, [(b"d", {b"f:a": b"stored"})], None, as_of) for as_of in (None, mark)]
    firsts = [next(scan) for scan in scans]
    buffer.write("t", b"b", {b"f:b": b"new"})
    buffer.write("t", b"b", {b"f:c": b"new"})
    buffer.write("t", b"d", {b"f:a": b"new"})
    buffer.write("t", b"e", {b"f:a": b"new"})
    buffer.undo_to(mark)
    assert firsts == [(b"a", {b"f:a": b"old"})] * 2
    for scan, last in zip(scans, (b"newer", b"old"), strict=True):
        assert list(scan) == [(b"b", {b"f:a": b"old"}), (b"c", {b"f:a": last}), (b"d", {b"f:a": b"stored"})]
