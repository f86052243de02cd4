"""Rows out of the gateway's answers by a kernel: as Thrift wrote them, in pieces of any size, and bytes that lie."""

from __future__ import annotations

import struct
from collections.abc import Callable, Sequence
from typing import Any

import happybase  # noqa: F401 — loads the module Hbase_thrift
import pytest
from Hbase_thrift import Hbase, TCell, TRowResult
from hypothesis import given
from hypothesis import strategies as st
from thriftpy2.protocol import TBinaryProtocol
from thriftpy2.transport import TMemoryBuffer

from store.cells import Cell, Row
from store.columns import ScannedColumns
from store.hbase.answers import Answer, Kind, NotAnAnswer
from store.hbase.column_answers import ColumnAnswerReader
from store.hbase.thrift_types import GatewayIOError, IllegalArgument

_protocol: Any = TBinaryProtocol
_memory: Any = TMemoryBuffer
COLUMNS = (b"f:b", b"f:a", b"g:")
Rows = Sequence[tuple[bytes, Row]]

names = st.sampled_from([*COLUMNS, b"f:aa", b"f:", b"other:x"])
cells = st.builds(Cell, st.binary(max_size=20), st.integers(-(2**63), 2**63 - 1))
some_rows = st.lists(st.tuples(st.binary(max_size=9), st.dictionaries(names, cells, max_size=6)), max_size=8)


def answer(rows: Rows, **fields: Any) -> bytes:
    """As Thrift's own library writes it."""
    memory = _memory()
    protocol = _protocol(memory)
    protocol.write_message_begin("scannerGetList", 2, 0)
    result = Hbase.scannerGetList_result()
    if not fields:
        result.success = [
            TRowResult(row=key, columns={name: TCell(cell.value, cell.timestamp) for name, cell in sorted(row.items())})
            for key, row in rows
        ]
    for name, value in fields.items():
        setattr(result, name, value)
    result.write(protocol)
    written: bytes = memory.getvalue()
    return written


def arriving(data: bytes, size: int) -> Callable[[memoryview], int]:
    """A connection over which ``size`` bytes at a time arrive, and which hangs up then."""
    at = 0

    def receive(buffer: memoryview) -> int:
        nonlocal at
        piece = data[at : at + min(size, len(buffer))]
        buffer[: len(piece)] = piece
        at += len(piece)
        return len(piece)

    return receive


def read(data: bytes, size: int = 2**20, *, framed: bool = False) -> ScannedColumns | Answer:
    return ColumnAnswerReader(COLUMNS, framed=framed).read(arriving(data, size), 0, 1_000)


def rows_of(scanned: ScannedColumns | Answer) -> list[tuple[bytes, Row]]:
    assert isinstance(scanned, ScannedColumns)
    assert scanned.cells.columns == COLUMNS
    return scanned.rows_at(range(scanned.cells.rows))


@given(some_rows, st.integers(1, 40), st.booleans())
def test_rows_come_as_they_were_written_in_pieces_of_any_size(rows: Rows, size: int, framed: bool) -> None:
    data = answer(rows)
    sent = struct.pack(">i", len(data)) + data if framed else data
    assert rows_of(read(sent, size, framed=framed)) == [(key, dict(row)) for key, row in rows]


def test_many_cells_in_columns_that_nobody_named() -> None:
    rows = [(b"%d" % row, {b"x:%d" % column: Cell(b"v", column) for column in range(300)}) for row in range(3)]
    assert rows_of(read(answer(rows))) == rows


def test_an_answer_larger_than_what_was_expected() -> None:
    rows = [(b"%d" % row, {b"f:a": Cell(bytes([row]) * 200_000, row)}) for row in range(9)]
    reader = ColumnAnswerReader(COLUMNS, framed=False)
    for _ in range(2):
        assert rows_of(reader.read(arriving(answer(rows), 70_000), 0, 1_000)) == rows


def test_the_gateways_exceptions_are_answers() -> None:
    assert read(answer([], io=GatewayIOError(message=b"lost")), 3) == Answer(Kind.IO_ERROR, b"lost")
    assert read(answer([], ia=IllegalArgument(message=b"no scanner"))) == Answer(Kind.ILLEGAL_ARGUMENT, b"no scanner")


ROWS = [(b"key", {b"f:a": Cell(b"1", 5), b"g:": Cell(b"", 6)}), (b"other", {b"h:z": Cell(b"2", 7)})]


def test_more_rows_than_were_asked_for_are_refused_before_memory_is_taken_for_them() -> None:
    lying = bytearray(answer(ROWS))
    struct.pack_into(">i", lying, lying.index(b"\x0f\x00\x00\x0c") + 4, 1_001)
    with pytest.raises(NotAnAnswer, match="a list of 1001 rows, where 1000 were asked for"):
        read(bytes(lying))


@pytest.mark.parametrize("end", range(0, len(answer(ROWS)), 3))
def test_an_answer_that_breaks_off_is_a_hang_up(end: int) -> None:
    with pytest.raises(EOFError):
        read(answer(ROWS)[:end])


@given(st.data())
def test_bytes_that_lie_are_refused_or_lead_to_places_within_the_answer(data: st.DataObject) -> None:
    lying = bytearray(answer(ROWS))
    for _ in range(data.draw(st.integers(1, 3))):
        lying[data.draw(st.integers(0, len(lying) - 1))] = data.draw(st.integers(0, 255))
    try:
        found = read(bytes(lying))
    except (NotAnAnswer, EOFError):
        return
    if isinstance(found, ScannedColumns):
        cells = found.cells
        assert (cells.key_starts + cells.key_lengths <= len(lying)).all()
        assert (cells.value_starts + cells.value_lengths <= len(lying)).all()


@pytest.mark.parametrize("rest", [b"\x00", b"more"])
def test_bytes_after_the_answer_are_refused(rest: bytes) -> None:
    with pytest.raises(NotAnAnswer):
        read(answer(ROWS) + rest)


def test_a_frame_of_another_length_is_refused() -> None:
    data = answer(ROWS)
    with pytest.raises(NotAnAnswer, match="frame"):
        read(struct.pack(">i", len(data) + 1) + data, framed=True)


def test_another_method_or_number_is_refused() -> None:
    with pytest.raises(NotAnAnswer):
        read(answer(ROWS).replace(b"scannerGetList", b"scannerGetLost"))
    data = bytearray(answer(ROWS))
    data[4 + 4 + len("scannerGetList") + 3] = 9
    with pytest.raises(NotAnAnswer):
        read(bytes(data))
