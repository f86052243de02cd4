"""Thrift requests out of puts, and cells out of Thrift's answers; the tight loops of the adapter.

Every request is bounded in rows and in bytes. Per cell as little as possible happens in Python: what a mutation leaves
at its default is not sent at all, which halves the time to build and encode it.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import islice
from typing import Any, Final, TypeVar

from store.cells import Cell, RowPut
from store.garbage import collector_paused
from store.hbase.settings import RequestLimits
from store.hbase.thrift_types import BatchMutation, Mutation

T = TypeVar("T")

_CELL_BYTES: Final = 50
"""What a cell of an answer takes beside its value: its column, its timestamp, Thrift's frame, a part of the row key."""

_new = tuple.__new__  # Half the time of calling Cell, whose constructor only names its two arguments.


class PutMutation:
    """A Thrift ``Mutation`` that puts: a lighter object of the same shape. Fields that are ``None`` are not sent."""

    __slots__ = ("column", "value")

    isDelete = None  # noqa: N815 — Thrift's name
    writeToWAL = None  # noqa: N815 — Thrift's name
    thrift_spec = Mutation.thrift_spec

    def __init__(self, column: bytes, value: bytes) -> None:
        self.column = column
        self.value = value


def put_requests(puts: Iterable[RowPut], limits: RequestLimits) -> Iterator[list[BatchMutation]]:
    """The rows of ``puts`` in order, in lists within the limits; a single row that is larger is a list of its own."""
    request: list[RowPut] = []
    request_bytes = 0
    for put in puts:
        put_bytes = len(put.row) + sum(map(len, put.columns)) + sum(map(len, put.columns.values()))
        if request and (len(request) >= limits.rows_max or request_bytes + put_bytes > limits.request_bytes_max):
            yield _mutations(request)
            request, request_bytes = [], 0
        request.append(put)
        request_bytes += put_bytes
    if request:
        yield _mutations(request)


def _mutations(request: list[RowPut]) -> list[BatchMutation]:
    with collector_paused():
        return [
            BatchMutation(row, [PutMutation(column, value) for column, value in columns.items()])
            for row, columns in request
        ]


def delete_request(rows: Iterable[bytes], families: Iterable[str]) -> list[BatchMutation]:
    """Remove whole families of each row: Thrift's own call to remove a row takes one at a time."""
    removals = [Mutation(isDelete=True, column=family.encode()) for family in families]
    return [BatchMutation(row, removals) for row in rows]


def delete_columns_requests(
    columns: Mapping[bytes, Sequence[bytes]], limits: RequestLimits
) -> Iterator[list[BatchMutation]]:
    """Remove columns of rows, in lists within the limits; a single row that is larger is a list of its own."""
    request: list[BatchMutation] = []
    request_bytes = 0
    for row, chosen in columns.items():
        if not chosen:
            continue  # of a row without mutations the gateway makes a request that HBase refuses
        row_bytes = len(row) + sum(map(len, chosen))
        if request and (len(request) >= limits.rows_max or request_bytes + row_bytes > limits.request_bytes_max):
            yield request
            request, request_bytes = [], 0
        request.append(BatchMutation(row, [Mutation(isDelete=True, column=column) for column in chosen]))
        request_bytes += row_bytes
    if request:
        yield request


def pieces(items: Sequence[T], size: int) -> Iterator[list[T]]:
    """``items`` in lists of at most ``size``."""
    rest = iter(items)
    while piece := list(islice(rest, size)):
        yield piece


def cells_of(columns: dict[bytes, Any]) -> dict[bytes, Cell]:
    """Thrift's cells as ours."""
    return {column: _new(Cell, (cell.value, cell.timestamp)) for column, cell in columns.items()}


def bytes_of(rows: Iterable[Mapping[bytes, Cell]]) -> int:
    """How large the answer with the cells of ``rows`` was, more or less: what is exact takes twice the time."""
    return sum([_CELL_BYTES + len(cell.value) for cells in rows for cell in cells.values()])
