"""A scan that outlives connections, and never reads another scan's rows.

The gateway numbers its scanners 0, 1, 2… from its start, whichever connection opened them. After a restart, or behind a
balancer with several gateways, a number we still hold is *somebody else's scanner*. Hence the invariant: a scanner is
asked only over the connection that opened it, and that connection proves that it is the same gateway. When it is gone,
or a request failed in the middle, a new scanner is opened after the last row that was given. Between batches the
connection is in the pool, for all to use.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from store.garbage import collector_paused
from store.hbase.connection import GatewayConnection
from store.hbase.failures import ScannerLost
from store.hbase.gateway import Gateway
from store.hbase.requests import cells_of
from store.hbase.thrift_types import IllegalArgument, TScan
from store.protocol import KeyRange, Row


@dataclass(frozen=True, slots=True)
class ScanRequest:
    """What is scanned; ``before`` is an exclusive bound on timestamps."""

    table: bytes
    key_range: KeyRange
    columns: list[bytes]
    before: int
    batch_rows: int
    reverse: bool


@dataclass(frozen=True, slots=True)
class _Open:
    """A scanner of the gateway, and the only connection over which its number means anything."""

    connection: GatewayConnection
    number: int


class Scanner:
    """One scan; ``rows`` may be called once."""

    def __init__(self, gateway: Gateway, request: ScanRequest) -> None:
        self._gateway = gateway
        self._request = request
        self._open: _Open | None = None
        self._last: bytes | None = None
        self._finished = False

    def rows(self) -> Iterator[tuple[bytes, Row]]:
        """Each row of the range, with its cells, in order."""
        try:
            while not self._finished:
                for result in self._next_batch():
                    yield result.row, cells_of(result.columns)
        finally:
            self._abandon()

    def _next_batch(self) -> list[Any]:
        results = self._gateway.repeat(self._fetch, prefer=self._open.connection if self._open else None)
        self._finished = len(results) < self._request.batch_rows
        wanted = [result for result in results if self._is_wanted(result.row)]
        if results:
            self._last = results[-1].row
            self._finished = self._finished or self._is_past(self._last)
        return wanted

    def _fetch(self, connection: GatewayConnection) -> list[Any]:
        # A scanner whose request fails may have moved on: it must not be asked again.
        scanner, self._open = self._open, None
        if scanner is None or scanner.connection is not connection:
            scanner = _Open(connection, self._open_on(connection))
        try:
            with collector_paused():
                results: list[Any] = connection.client.scannerGetList(scanner.number, self._request.batch_rows)
            if len(results) < self._request.batch_rows:
                connection.client.scannerClose(scanner.number)
            else:
                self._open = scanner
        except IllegalArgument as error:
            raise ScannerLost("the gateway has dropped the scanner") from error
        return results

    def _open_on(self, connection: GatewayConnection) -> int:
        request, (start, stop) = self._request, self._request.key_range
        first = self._last if self._last is not None else (stop if request.reverse else start)
        scan = TScan(
            startRow=first,
            stopRow=_below(start) if request.reverse else stop,
            timestamp=request.before,
            columns=request.columns,
            caching=request.batch_rows,
            reversed=request.reverse,
        )
        number: int = connection.client.scannerOpenWithScan(request.table, scan, {})
        return number

    def _is_wanted(self, row: bytes) -> bool:
        """HBase's scans include the row they start at; ours start after the last one given, or below ``stop``."""
        if row == self._last:
            return False
        start, stop = self._request.key_range
        return not self._request.reverse or (row >= start and (not stop or row < stop))

    def _is_past(self, row: bytes) -> bool:
        return self._request.reverse and row < self._request.key_range.start

    def _abandon(self) -> None:
        if self._open is not None:
            scanner, self._open = self._open, None
            self._gateway.if_idle(scanner.connection, lambda connection: connection.client.scannerClose(scanner.number))


def _below(key: bytes) -> bytes:
    """A key below ``key``, with no more than very unusual ones between: HBase's backward scans exclude their end."""
    if not key or key.endswith(b"\x00"):
        return key[:-1]
    return key[:-1] + bytes([key[-1] - 1]) + b"\xff" * 8
