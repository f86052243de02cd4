"""The calls that carry many rows, made without Thrift's own library: a blocking connection, bytes out, bytes in.

What goes wrong is raised as Thrift's library would raise it, so that ``store.hbase.gateway`` handles both ways alike.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from store.columns import ScannedColumns
from store.hbase.answers import Answer, AnswerReader
from store.hbase.binary_protocol import MUTATE_ROWS
from store.hbase.column_answers import ColumnAnswerReader
from store.hbase.connection import GatewayConnection
from store.hbase.encoding import keys_question, number_request, rows_question
from store.hbase.failures import exception_in

_RECEIVE_BYTES: Final = 4_096
"""At a time, of the answer to a put: hardly ever more than a few bytes."""


def put_rows(connection: GatewayConnection, request: memoryview) -> None:
    """Have rows written by a request of ``store.hbase.column_encoding``."""
    number = connection.next_number()
    number_request(request, MUTATE_ROWS, number, framed=connection.address.framed)
    connection.send(request)
    reader = AnswerReader(MUTATE_ROWS, number, framed=connection.address.framed)
    buffer = memoryview(bytearray(_RECEIVE_BYTES))
    answer = None
    while answer is None:
        received = connection.receive_into(buffer)
        if not received:
            raise EOFError("the gateway hung up before it answered")
        answer = reader.feed(bytes(buffer[:received]))
    _raise(answer)


def next_rows(connection: GatewayConnection, scanner: int, rows: int, reader: ColumnAnswerReader) -> ScannedColumns:
    """The next rows of a scanner of the gateway."""
    number = connection.next_number()
    connection.send(rows_question(scanner, rows, number, framed=connection.address.framed))
    return _rows(connection, number, rows, reader)


def rows_of_keys(
    connection: GatewayConnection,
    table: bytes,
    keys: Sequence[bytes],
    columns: Sequence[bytes],
    before: int,
    reader: ColumnAnswerReader,
) -> ScannedColumns:
    """The rows with these keys, those that there are."""
    number = connection.next_number()
    connection.send(keys_question(table, keys, columns, before, number, framed=connection.address.framed))
    return _rows(connection, number, len(keys), reader)


def _rows(connection: GatewayConnection, number: int, rows_max: int, reader: ColumnAnswerReader) -> ScannedColumns:
    answer = reader.read(connection.receive_into, number, rows_max)
    if isinstance(answer, Answer):
        _raise(answer)
        raise EOFError("the gateway answered a question for rows with nothing")
    return answer


def _raise(answer: Answer) -> None:
    error = exception_in(answer)
    if error is not None:
        raise error
