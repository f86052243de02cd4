"""Requests to the gateway as Thrift bytes, written straight from columns of bytes.

Thrift's own library wants an object for each mutation, which costs 1.5 to 2 µs a cell even when it is a light one. Here
a kernel copies columns into a buffer that is kept, at a twentieth of that. Optional fields that say what the gateway
assumes anyway (``isDelete``, ``writeToWAL``, ``attributes``) are left out, which makes a commit 28 bytes.

Invariants: the size is computed first, and the kernel writes exactly that; a request is the binary protocol, strict, as
thriftpy2 would have written it, with the length before it where the transport is framed.
"""

from __future__ import annotations

import struct
from collections.abc import Sequence
from functools import lru_cache
from typing import NamedTuple

import numpy as np

from kernels import kernel
from store.columns import Bytes
from store.hbase.binary_protocol import (
    CALL,
    COUNT_BYTES,
    FRAME_BYTES,
    GET_ROWS,
    INT32,
    INT64,
    IS_TABLE_ENABLED,
    LIST,
    MAP,
    MUTATE_ROW,
    MUTATE_ROWS,
    SCANNER_GET_LIST,
    STOP,
    STRING,
    STRUCT,
    VERSION,
)
from store.lines import ByteLines, copy, packed, write_number

_SEQUENCE_AFTER_NAME = 4 + COUNT_BYTES
"""From the start of a message, beside the method's name: the version and the name's length are before it."""
_FIELD_BYTES = 3  # type and number
_STRING_FIELD_BYTES = _FIELD_BYTES + COUNT_BYTES
_STOP_BYTES = 1
_BATCH_BYTES = _STRING_FIELD_BYTES + _FIELD_BYTES + 1 + COUNT_BYTES + _STOP_BYTES
"""Of a ``BatchMutation`` beside its row and its mutations: the row's field, and the list with the type of its items."""
_TAIL_BYTES = _FIELD_BYTES + 8 + _STOP_BYTES
"""The timestamp, and the end of the arguments."""
_BUFFER_BYTES_FIRST = 4_096
_KEPT = 64


class PutRequest(NamedTuple):
    """Cells to write, one a line, already checked by ``store.bulk.check_lines``."""

    table: str
    rows: ByteLines
    columns: ByteLines
    values: ByteLines
    timestamp: int


class RequestBuffer:
    """Writes the requests of one connection, each over the one before: what it gives lasts until the next is asked for.

    It grows to the largest request so far, which ``store.bulk.PUT_BYTES_MAX`` bounds.
    """

    def __init__(self, *, framed: bool) -> None:
        self._framed = framed
        self._make_buffer(_BUFFER_BYTES_FIRST)

    def put(self, request: PutRequest, sequence: int) -> tuple[bytes, memoryview]:
        """The method and its call: ``mutateRowsTs``, where consecutive lines of one row are one ``BatchMutation``; or
        ``mutateRowTs`` where all are, which takes a gateway seven tenths of the time: it asks no other thread.
        """
        rows, columns, values = packed(request.rows), packed(request.columns), packed(request.values)
        batches = count_batches(rows)
        is_one = batches == 1
        method, head = (
            (MUTATE_ROW, _one_row_head(request.table, self._framed))
            if is_one
            else (MUTATE_ROWS, put_head(request.table, self._framed))
        )
        mutation = _mutation(columns.shape[1], values.shape[1])
        batches_bytes = batches * (_BATCH_BYTES + rows.shape[1]) - is_one * _STOP_BYTES
        size = len(head) + batches_bytes + len(rows) * mutation.size + _TAIL_BYTES
        if size > len(self._bytes):
            self._make_buffer(size)
        self._bytes[: len(head)] = head
        if self._framed:
            struct.pack_into(">i", self._bytes, 0, size - FRAME_BYTES)
        number_request(self._bytes, method, sequence, framed=self._framed)
        if not is_one:
            struct.pack_into(">i", self._bytes, len(head) - COUNT_BYTES, batches)
        end = write_batches(self._array, len(head), mutation, rows, columns, values, request.timestamp, is_one)
        assert end == size, "the size that was computed is the size that was written"
        return method, memoryview(self._bytes)[:size]

    def _make_buffer(self, size: int) -> None:
        self._bytes = bytearray(size)
        self._array = np.frombuffer(self._bytes, np.uint8)


def number_request(request: bytearray | memoryview, method: bytes, sequence: int, *, framed: bool) -> None:
    """Give a call of ``method`` that is complete but for it its sequence number."""
    at = (FRAME_BYTES if framed else 0) + _SEQUENCE_AFTER_NAME + len(method)
    struct.pack_into(">i", request, at, sequence)


def table_question(table: str, sequence: int, *, framed: bool) -> bytes:
    """The call of ``isTableEnabled``: the cheapest way to learn whether a table is there."""
    message = _call(IS_TABLE_ENABLED, sequence) + _string_field(1, table.encode()) + bytes([STOP])
    return (struct.pack(">i", len(message)) if framed else b"") + message


def rows_question(scanner: int, rows: int, sequence: int, *, framed: bool) -> bytes:
    """The call of ``scannerGetList``: the next rows of a scanner."""
    message = _call(SCANNER_GET_LIST, sequence) + struct.pack(">bhibhib", INT32, 1, scanner, INT32, 2, rows, STOP)
    return (struct.pack(">i", len(message)) if framed else b"") + message


def keys_question(
    table: bytes, keys: Sequence[bytes], columns: Sequence[bytes], before: int, sequence: int, *, framed: bool
) -> bytes:
    """The call of ``getRowsWithColumnsTs``: the rows with these keys, by their newest cells below ``before``."""
    message = b"".join(
        (
            _call(GET_ROWS, sequence),
            _string_field(1, table),
            _strings_field(2, keys),
            _strings_field(3, columns),
            struct.pack(">bhqbhbbib", INT64, 4, before, MAP, 5, STRING, STRING, 0, STOP),
        )
    )
    return (struct.pack(">i", len(message)) if framed else b"") + message


@lru_cache(maxsize=_KEPT)
def put_head(table: str, framed: bool) -> bytes:
    """A put up to and including the number of its batches; sequence and numbers are yet to be filled in."""
    return _head(MUTATE_ROWS, table, framed) + struct.pack(">bhbi", LIST, 2, STRUCT, 0)


@lru_cache(maxsize=_KEPT)
def _one_row_head(table: str, framed: bool) -> bytes:
    """A put of one row up to it; the sequence is yet to be filled in."""
    return _head(MUTATE_ROW, table, framed)


def _head(method: bytes, table: str, framed: bool) -> bytes:
    frame = b"\x00" * FRAME_BYTES if framed else b""
    return frame + _call(method, 0) + _string_field(1, table.encode())


@lru_cache(maxsize=_KEPT)
def _mutation(column_bytes: int, value_bytes: int) -> Bytes:
    """One whose column and value are yet to be filled in."""
    fields = _string_field(2, bytes(column_bytes)) + _string_field(3, bytes(value_bytes))
    return np.array(bytearray(fields + bytes([STOP])), np.uint8)


def _call(method: bytes, sequence: int) -> bytes:
    return struct.pack(f">Ii{len(method)}si", VERSION | CALL, len(method), method, sequence)


def _strings_field(number: int, values: Sequence[bytes]) -> bytes:
    lengths = np.array([len(value) for value in values], ">i4").tobytes()
    parts = [b""] * (2 * len(values))
    parts[::2] = [lengths[at : at + COUNT_BYTES] for at in range(0, len(lengths), COUNT_BYTES)]
    parts[1::2] = values
    return struct.pack(">bhbi", LIST, number, STRING, len(values)) + b"".join(parts)


def _string_field(number: int, text: bytes) -> bytes:
    return struct.pack(f">bhi{len(text)}s", STRING, number, len(text), text)


@kernel()
def _differs(rows: ByteLines, line: int) -> bool:
    """Whether a line's row is not the one of the line before."""
    place = rows.shape[1] - 1  # neighbours in the order of their keys differ at the end
    while place >= 0 and rows[line, place] == rows[line - 1, place]:
        place -= 1
    return bool(place >= 0)


@kernel("int64(uint8[:, ::1])")
def count_batches(rows: ByteLines) -> int:
    """How many runs of lines share a row."""
    batches = 0
    for line in range(rows.shape[0]):
        if line == 0 or _differs(rows, line):
            batches += 1
    return batches


@kernel()
def _write_field_start(buffer: Bytes, at: int, kind: int, number: int) -> int:
    """Type and number of a field; returns where its content starts."""
    buffer[at] = kind
    return write_number(buffer, at + 1, number, 2)


@kernel()
def _write_string_field(buffer: Bytes, at: int, number: int, text: Bytes) -> int:
    """A field with the bytes ``text``; returns where it ends."""
    at = write_number(buffer, _write_field_start(buffer, at, STRING, number), text.shape[0], COUNT_BYTES)
    return int(copy(buffer, at, text, 0, text.shape[0]))


@kernel("int64(uint8[::1], int64, uint8[::1], uint8[:, ::1], uint8[:, ::1], uint8[:, ::1], int64, int64)")
def write_batches(
    buffer: Bytes,
    at: int,
    mutation: Bytes,
    rows: ByteLines,
    columns: ByteLines,
    values: ByteLines,
    timestamp: int,
    is_one: int,
) -> int:
    """Write the batches and what follows them; returns where they end. ``buffer`` is known to have room from ``at``.

    ``mutation`` is one whose column and value are yet to be filled in. ``is_one`` (1, else 0): the fields of the only
    batch are the call's own, each with the number after the one that it has in a batch.
    """
    column_at = _STRING_FIELD_BYTES
    value_at = column_at + columns.shape[1] + _STRING_FIELD_BYTES
    line = 0
    while line < rows.shape[0]:
        first_line = line
        at = _write_string_field(buffer, at, 1 + is_one, rows[line])
        count_at = _write_field_start(buffer, at, LIST, 2 + is_one) + 1
        buffer[count_at - 1] = STRUCT
        at = count_at + COUNT_BYTES
        while line == first_line or (line < rows.shape[0] and not _differs(rows, line)):
            for place in range(mutation.shape[0]):
                buffer[at + place] = mutation[place]
            for place in range(columns.shape[1]):
                buffer[at + column_at + place] = columns[line, place]
            for place in range(values.shape[1]):
                buffer[at + value_at + place] = values[line, place]
            at += mutation.shape[0]
            line += 1
        write_number(buffer, count_at, line - first_line, COUNT_BYTES)
        if not is_one:
            buffer[at] = STOP
            at += 1
    at = write_number(buffer, _write_field_start(buffer, at, INT64, 3 + is_one), timestamp, 8)
    buffer[at] = STOP
    return int(at + 1)
