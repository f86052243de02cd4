"""A scan that outlives connections, and never reads another scan's rows.

The gateway numbers its scanners 0, 1, 2… from its start, whichever connection opened them. After a restart, or behind a
balancer with several gateways, a number we still hold is *somebody else's scanner*. Hence the invariant: a scanner is
asked only over the connection that opened it, and that connection proves that it is the same gateway. When it is gone,
or a request failed in the middle, a new scanner is opened after the last row that was given. Between batches the
connection is in the pool, for all to use.

A scan may take long between two rows. Each try that got no answer in time is followed by one that waits twice as long,
and for a single row (``store.hbase.patience``): only the longest wait ends it, and not ``unavailable_after_ms``.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Final, Generic, Protocol, TypeVar

from store.answer_size import AnswerSize
from store.cells import KeyRange, Row
from store.columns import ScannedColumns
from store.garbage import collector_paused
from store.hbase.column_answers import ColumnAnswerReader
from store.hbase.column_calls import next_rows
from store.hbase.connection import GatewayConnection
from store.hbase.failures import BREAKDOWNS, AnswerSlow, ScannerLost
from store.hbase.gateway import Gateway
from store.hbase.patience import Patience
from store.hbase.requests import bytes_of, cells_of
from store.hbase.thrift_types import IllegalArgument, TScan

BATCH_BYTES_WANTED: Final = 2 * 2**20
"""Of rows that are given together: each batch costs whoever decodes it some hundred microseconds."""
ROWS_FIRST: Final = 16
"""Asked for before anything is known of their size: of the largest values, 160 MB."""

Batch = TypeVar("Batch")


@dataclass(frozen=True, slots=True)
class ScanRequest:
    """What is scanned; ``before`` is an exclusive bound on timestamps. ``without_qualifier``: see ``CellStore``."""

    table: bytes
    key_range: KeyRange
    columns: list[bytes]
    before: int
    batch_rows: int
    reverse: bool = False
    without_qualifier: bytes | None = None


class Form(Protocol[Batch]):
    """In which form a scan's rows are asked for and given."""

    def fetch(self, connection: GatewayConnection, scanner: int, rows: int) -> Batch:
        """The next rows of a scanner of the gateway, at most so many."""
        ...

    def rows(self, batch: Batch) -> int:
        """How many rows these are."""
        ...

    def answer_bytes(self, batch: Batch) -> int:
        """How large the answer was that they came in, more or less."""
        ...

    def last_key(self, batch: Batch) -> bytes:
        """The key of the last one."""
        ...

    def only(self, batch: Batch, is_wanted: Callable[[bytes], bool]) -> Batch:
        """Those with a key that is wanted."""
        ...


class RowForm:
    """Row by row, through Thrift's library; both ways."""

    def fetch(self, connection: GatewayConnection, scanner: int, rows: int) -> list[tuple[bytes, Row]]:
        """See ``Form``."""
        with collector_paused():
            results: list[Any] = connection.client.scannerGetList(scanner, rows)
            return [(result.row, cells_of(result.columns)) for result in results]

    def rows(self, batch: list[tuple[bytes, Row]]) -> int:
        """See ``Form``."""
        return len(batch)

    def answer_bytes(self, batch: list[tuple[bytes, Row]]) -> int:
        """See ``Form``."""
        return bytes_of(cells for _, cells in batch)

    def last_key(self, batch: list[tuple[bytes, Row]]) -> bytes:
        """See ``Form``."""
        return batch[-1][0]

    def only(self, batch: list[tuple[bytes, Row]], is_wanted: Callable[[bytes], bool]) -> list[tuple[bytes, Row]]:
        """See ``Form``."""
        return [row for row in batch if is_wanted(row[0])]


class ColumnForm:
    """As columns, read by a kernel. Forward only."""

    def __init__(self, columns: Sequence[bytes], *, framed: bool) -> None:
        self._reader = ColumnAnswerReader(columns, framed=framed)

    def fetch(self, connection: GatewayConnection, scanner: int, rows: int) -> ScannedColumns:
        """See ``Form``."""
        return next_rows(connection, scanner, rows, self._reader)

    def rows(self, batch: ScannedColumns) -> int:
        """See ``Form``."""
        return batch.cells.rows

    def answer_bytes(self, batch: ScannedColumns) -> int:
        """See ``Form``."""
        return len(batch.cells.data)

    def last_key(self, batch: ScannedColumns) -> bytes:
        """See ``Form``."""
        return batch.cells.row_key(-1)

    def only(self, batch: ScannedColumns, is_wanted: Callable[[bytes], bool]) -> ScannedColumns:
        """See ``Form``. Of a forward scan only the first row can be one that was given before."""
        return batch if is_wanted(batch.cells.row_key(0)) else batch.without_first()


@dataclass(frozen=True, slots=True)
class _Open:
    """A scanner of the gateway, and the only connection over which its number means anything."""

    connection: GatewayConnection
    number: int


class Scanner(Generic[Batch]):
    """One scan; ``batches`` may be called once. ``size`` and ``patience`` are its own."""

    def __init__(
        self, gateway: Gateway, request: ScanRequest, form: Form[Batch], size: AnswerSize, patience: Patience
    ) -> None:
        self._gateway = gateway
        self._request = request
        self._form = form
        self._size = size
        self._patience = patience
        self._open: _Open | None = None
        self._last: bytes | None = None
        self._finished = False

    def batches(self) -> Iterator[Batch]:
        """The rows of the range, in order; no batch is empty."""
        try:
            while not self._finished:
                batch = self._gateway.repeat(self._fetch, prefer=self._open.connection if self._open else None)
                rows = self._form.rows(batch)
                self._finished = self._open is None
                if not rows:
                    return
                last = self._form.last_key(batch)
                wanted = self._form.only(batch, self._is_wanted)
                self._last = last
                self._finished = self._finished or self._is_past(last)
                if self._form.rows(wanted):
                    yield wanted
        finally:
            self._abandon()

    def _fetch(self, connection: GatewayConnection) -> Batch:
        # A scanner whose request fails may have moved on: it must not be asked again.
        scanner, self._open = self._open, None
        if scanner is None or scanner.connection is not connection:
            scanner = _Open(connection, self._open_on(connection))
        asked = max(self._size.rows(self._request.batch_rows), self._rows_min)
        try:
            batch = self._patiently(connection, scanner.number, asked)
            if self._form.rows(batch) < asked:
                connection.client.scannerClose(scanner.number)
            else:
                self._open = scanner
        except IllegalArgument as error:
            raise ScannerLost("the gateway has dropped the scanner") from error
        except AnswerSlow:
            self._size.was_slow()
            raise
        except BREAKDOWNS:
            self._size.was_lost(asked)
            raise
        self._size.came(self._form.rows(batch), self._form.answer_bytes(batch))
        return batch

    def _patiently(self, connection: GatewayConnection, scanner: int, rows: int) -> Batch:
        waited_ms = self._patience.wait_ms
        try:
            with connection.patient(waited_ms):
                return self._form.fetch(connection, scanner, rows)
        except TimeoutError as error:
            if self._patience.grow() or rows > self._rows_min:
                raise AnswerSlow(f"the scan had no answer for {waited_ms} ms") from error
            raise

    def _open_on(self, connection: GatewayConnection) -> int:
        request, (start, stop) = self._request, self._request.key_range
        first = stop if request.reverse else start
        if self._last is not None:
            first = self._last if request.reverse else self._last + b"\x00"
        scan = TScan(
            startRow=first,
            stopRow=_below(start) if request.reverse else stop,
            timestamp=request.before,
            columns=request.columns,
            caching=request.batch_rows,
            reversed=request.reverse,
            filterString=None if request.without_qualifier is None else _without(request.without_qualifier),
        )
        number: int = connection.client.scannerOpenWithScan(request.table, scan, {})
        return number

    @property
    def _rows_min(self) -> int:
        """How many rows to ask for to get a new one: a backward scan that goes on begins at the last one given."""
        return 2 if self._request.reverse and self._last is not None else 1

    def _is_wanted(self, row: bytes) -> bool:
        """HBase's backward scans include the row they start at; ours start below ``stop``, or the last one given."""
        if row == self._last:
            return False
        start, stop = self._request.key_range
        return not self._request.reverse or (row >= start and (not stop or row < stop))

    def _is_past(self, row: bytes) -> bool:
        start, stop = self._request.key_range
        if self._request.reverse:
            return row < start
        return bool(stop) and row + b"\x00" >= stop  # a scan from a key to itself is, to HBase, one of that row

    def _abandon(self) -> None:
        if self._open is not None:
            scanner, self._open = self._open, None
            self._gateway.if_idle(scanner.connection, lambda connection: connection.client.scannerClose(scanner.number))


def _without(qualifier: bytes) -> bytes:
    """What keeps cells from leaving the region server, in the language of HBase's filters: a quote is doubled there."""
    return b"QualifierFilter(!=, 'binary:" + qualifier.replace(b"'", b"''") + b"')"


def _below(key: bytes) -> bytes:
    """A key below ``key``, with no more than very unusual ones between: HBase's backward scans exclude their end."""
    if not key or key.endswith(b"\x00"):
        return key[:-1]
    return key[:-1] + bytes([key[-1] - 1]) + b"\xff" * 8
