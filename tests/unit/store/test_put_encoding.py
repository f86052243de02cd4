"""Requests are, byte by byte, what Thrift's own library writes, and read back as what was to be written."""

from __future__ import annotations

import struct
from typing import Any

import happybase  # noqa: F401 — loads the module Hbase_thrift
import numpy as np
import pytest
from Hbase_thrift import Hbase
from hypothesis import given
from hypothesis import strategies as st
from thriftpy2.protocol import TBinaryProtocol
from thriftpy2.transport import TMemoryBuffer

from store.bulk import LINE_OVERHEAD_BYTES, PUT_BYTES_MAX
from store.hbase.encoding import PutRequest, RequestBuffer, keys_question, table_question
from store.hbase.requests import PutMutation
from store.hbase.thrift_types import BatchMutation
from store.lines import ByteLines
from store.validation import TABLE_NAME_BYTES_MAX

CALL = 1
_protocol: Any = TBinaryProtocol
_memory: Any = TMemoryBuffer


def lines(texts: list[bytes]) -> ByteLines:
    return np.array([list(text) for text in texts], np.uint8).reshape(len(texts), -1)


def thrifts_own(method: str, sequence: int, **arguments: Any) -> bytes:
    memory = _memory()
    protocol = _protocol(memory)
    protocol.write_message_begin(method, CALL, sequence)
    given = getattr(Hbase, f"{method}_args")()
    for name, value in arguments.items():
        setattr(given, name, value)
    given.write(protocol)
    written: bytes = memory.getvalue()
    return written


def batches(rows: list[bytes], columns: list[bytes], values: list[bytes]) -> list[BatchMutation]:
    made: list[BatchMutation] = []
    for row, column, value in zip(rows, columns, values, strict=True):
        if not made or made[-1].row != row:
            made.append(BatchMutation(row, []))
        made[-1].mutations.append(PutMutation(column, value))
    return made


def request(rows: list[bytes], columns: list[bytes], values: list[bytes], timestamp: int = 5) -> PutRequest:
    return PutRequest("commits", lines(rows), lines(columns), lines(values), timestamp)


@st.composite
def cells(draw: st.DrawFn) -> tuple[list[bytes], list[bytes], list[bytes]]:
    """Rows that often repeat, and columns and values of any bytes, each of one width."""
    count = draw(st.integers(1, 12))
    widths = draw(st.tuples(st.integers(1, 10), st.integers(2, 9), st.integers(0, 9)))
    few = draw(st.lists(st.binary(min_size=widths[0], max_size=widths[0]), min_size=1, max_size=3))
    rows = draw(st.lists(st.sampled_from(few), min_size=count, max_size=count))
    columns, values = (
        draw(st.lists(st.binary(min_size=width, max_size=width), min_size=count, max_size=count))
        for width in widths[1:]
    )
    return rows, columns, values


@given(cells(), st.integers(0, 2**63 - 2), st.integers(1, 2**31 - 1), st.booleans())
def test_a_put_is_what_thrift_writes(
    put: tuple[list[bytes], list[bytes], list[bytes]], timestamp: int, sequence: int, framed: bool
) -> None:
    wanted = batches(*put)
    if len(wanted) == 1:
        name, what = "mutateRowTs", {"row": wanted[0].row, "mutations": wanted[0].mutations}
    else:
        name, what = "mutateRowsTs", {"rowBatches": wanted}
    expected = thrifts_own(name, sequence, tableName=b"commits", timestamp=timestamp, **what)
    method, written = RequestBuffer(framed=framed).put(request(*put, timestamp), sequence)
    assert method == name.encode()
    assert written == (struct.pack(">i", len(expected)) if framed else b"") + expected


@given(
    st.lists(st.binary(max_size=9), max_size=6),
    st.lists(st.binary(min_size=1, max_size=9), min_size=1, max_size=3),
    st.integers(1, 2**63 - 1),
    st.integers(1, 2**31 - 1),
    st.booleans(),
)
def test_a_question_for_rows_by_their_keys_is_what_thrift_writes(
    keys: list[bytes], columns: list[bytes], before: int, sequence: int, framed: bool
) -> None:
    expected = thrifts_own(
        "getRowsWithColumnsTs",
        sequence,
        tableName=b"t",
        rows=keys,
        columns=columns,
        timestamp=before,
        attributes={},
    )
    asked = keys_question(b"t", keys, columns, before, sequence, framed=framed)
    assert asked == (struct.pack(">i", len(expected)) if framed else b"") + expected


def test_thrift_reads_what_was_to_be_written() -> None:
    rows, columns, values = [b"r1", b"r1", b"r2"], [b"c:a", b"c:b", b"c:a"], [b"1", b"2", b"3"]
    _, written = RequestBuffer(framed=False).put(request(rows, columns, values), 7)
    protocol = _protocol(_memory(bytes(written)), decode_response=False)
    assert protocol.read_message_begin() == ("mutateRowsTs", CALL, 7)
    read = Hbase.mutateRowsTs_args()
    read.read(protocol)
    assert (read.tableName, read.timestamp) == (b"commits", 5)
    assert [(batch.row, [(each.column, each.value) for each in batch.mutations]) for batch in read.rowBatches] == [
        (b"r1", [(b"c:a", b"1"), (b"c:b", b"2")]),
        (b"r2", [(b"c:a", b"3")]),
    ]


@pytest.mark.parametrize("framed", [False, True])
def test_the_next_request_lies_over_the_one_before_and_nothing_of_it_is_left(framed: bool) -> None:
    buffer = RequestBuffer(framed=framed)
    large = request([b"%05d" % number for number in range(2_000)], [b"c:a"] * 2_000, [b"12345678"] * 2_000)
    small = request([b"r"], [b"c:b"], [b"1"], 6)
    for put in (small, large, small):
        assert buffer.put(put, 9) == RequestBuffer(framed=framed).put(put, 9)


def test_arrays_that_are_read_only_or_have_gaps_are_written_all_the_same() -> None:
    plain = request([b"r1", b"r2"], [b"c:a", b"c:b"], [b"1", b"2"])
    spaced = np.zeros((4, 4), np.uint8)[::2, ::2]
    spaced[:] = plain.rows
    fixed = np.frombuffer(b"c:ac:b", np.uint8).reshape(2, 3)
    odd = PutRequest("commits", spaced, fixed, plain.values, 5)
    assert RequestBuffer(framed=False).put(odd, 1) == RequestBuffer(framed=False).put(plain, 1)


def test_a_commit_takes_28_bytes_in_a_row_that_others_share() -> None:
    def size(count: int) -> int:
        commits = request([b"r" * 9] * count, [b"c:abc"] * count, [b"8" * 8] * count)
        return len(RequestBuffer(framed=False).put(commits, 1)[1])

    assert size(101) - size(100) == 28


def test_no_put_within_the_limit_is_larger_than_a_frame_may_be() -> None:
    count = PUT_BYTES_MAX // (1 + 2 + 0 + LINE_OVERHEAD_BYTES)
    rows = np.arange(count, dtype=np.uint8).reshape(-1, 1)
    table = "t" * TABLE_NAME_BYTES_MAX
    columns, values = np.full((count, 2), ord(":"), np.uint8), np.empty((count, 0), np.uint8)
    assert len(RequestBuffer(framed=True).put(PutRequest(table, rows, columns, values, 1), 1)[1]) <= 2 * 2**20


@pytest.mark.parametrize("framed", [False, True])
def test_the_question_for_a_table_is_what_thrift_writes(framed: bool) -> None:
    expected = thrifts_own("isTableEnabled", 3, tableName=b"commits")
    written = table_question("commits", 3, framed=framed)
    assert written == (struct.pack(">i", len(expected)) if framed else b"") + expected
