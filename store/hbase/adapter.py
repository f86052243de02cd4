"""HBase as a ``CellStore``: each method checks its arguments, makes requests of bounded size, and maps the answer.

Everything goes through the raw Thrift calls of HappyBase's client: its own methods lose timestamps (a bound without
columns is ignored), and hide which connection a scan uses. Reads always carry a bound, as an exclusive one; writes
always carry their timestamp, so that repeating them is harmless.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from itertools import chain

from store import validation
from store.answer_size import AnswerSize
from store.cells import Cell, Family, KeyRange, Row, RowPut
from store.columns import CellColumns, ScannedColumns, check_columns, gathered
from store.errors import TableMissing
from store.hbase.binary_protocol import GET_ROWS
from store.hbase.column_answers import ColumnAnswerReader
from store.hbase.column_calls import put_rows, rows_of_keys
from store.hbase.column_encoding import column_put_requests
from store.hbase.connection import GatewayConnection
from store.hbase.failures import BREAKDOWNS, GatewayFailure, is_about
from store.hbase.gateway import Call, Gateway
from store.hbase.patience import Patience
from store.hbase.regions import RegionStarts, covering
from store.hbase.requests import bytes_of, cells_of, delete_columns_requests, delete_request, pieces, put_requests
from store.hbase.scanner import BATCH_BYTES_WANTED, ROWS_FIRST, Batch, ColumnForm, Form, RowForm, Scanner, ScanRequest
from store.hbase.settings import PoolSettings, RequestLimits
from store.hbase.several_regions import TablesOfSeveralRegions
from store.hbase.thrift_types import BatchMutation, ColumnDescriptor, GatewayIOError, Mutation
from store.key_order import in_key_order
from store.protocol import Applied, CompareAndSet, Rejected, Unknown

_DEFAULT_SETTINGS = PoolSettings()
_DEFAULT_LIMITS = RequestLimits()
_GET_ROWS_FIRST = 64
"""Of many rows that are read by their keys, before anything is known of their size: mostly all of them."""


class HBaseCellStore:
    """The tables behind the Thrift 1 gateway at ``address``: ``"host:port"``, or several, separated by commas.

    What may stand before an address is told in ``store.hbase.addresses``. Raises what ``gateways_at`` does
    (``store.hbase.gateways``). Nothing is connected before the first call. Connections are spread over several
    gateways, and go to the others while one fails. ``thrift2``: the same of Thrift 2 gateways to the same HBase, which
    are asked for nothing but tables of several regions; empty where there are none.
    """

    def __init__(
        self,
        address: str,
        settings: PoolSettings = _DEFAULT_SETTINGS,
        limits: RequestLimits = _DEFAULT_LIMITS,
        *,
        thrift2: str = "",
    ) -> None:
        self._gateway = Gateway(address, settings)
        self._of_several_regions = TablesOfSeveralRegions(thrift2, address, settings)
        self._settings = settings
        self._limits = limits
        self._region_starts = RegionStarts(self._ask_region_starts, monotonic=time.monotonic)

    def create_table(self, table: str, families: Sequence[Family], split_keys: Sequence[bytes] = ()) -> None:
        """See ``CellStore``."""
        validation.check_families(families)
        validation.check_split_keys(split_keys)
        name, descriptors = _name(table), [_descriptor(family) for family in families]
        if split_keys:
            self._of_several_regions.create(table, families, split_keys)
            return

        def create(connection: GatewayConnection) -> None:
            with connection.patient():
                connection.client.createTable(name, descriptors)

        self._gateway.repeat(create)

    def require_thrift2(self) -> None:
        """Raise ``StoreError`` unless a table of several regions could be made now; changes nothing."""
        self._of_several_regions.require_gateway()

    def drop_table(self, table: str) -> None:
        """See ``CellStore``."""
        self.families(table)
        name = _name(table)
        self._gateway.repeat(lambda connection: _disable(connection, name))
        self._gateway.repeat(lambda connection: _drop(connection, name))

    def table_names(self) -> list[str]:
        """See ``CellStore``."""
        names = self._gateway.repeat(lambda connection: connection.client.getTableNames())
        return sorted(name.decode() for name in names)

    def families(self, table: str) -> dict[str, Family]:
        """See ``CellStore``."""
        name = _name(table)
        descriptors = self._gateway.repeat(lambda connection: connection.client.getColumnDescriptors(name))
        found = ((key.decode().rstrip(":"), descriptor) for key, descriptor in descriptors.items())
        return {name: Family(name, each.maxVersions, each.timeToLive) for name, each in found}

    def regions(self, table: str) -> list[KeyRange]:
        """See ``CellStore``. Asked again, as after a failure, while the answer does not cover the table."""
        name = _name(table)

        def fetch(connection: GatewayConnection) -> list[KeyRange]:
            regions = connection.client.getTableRegions(name)
            named = [KeyRange(region.startKey, region.endKey) for region in regions]
            return covering(table, named) if named else []

        found = self._gateway.repeat(fetch)
        if not found:
            raise TableMissing(f"there is no table {table}")
        return found

    def get(self, table: str, row: bytes, columns: Sequence[bytes], *, before: int | None = None) -> Row:
        """See ``CellStore``."""
        validation.check_row(row)
        name, choices, bound = _name(table), validation.chosen(columns), validation.bound(before)
        results = self._gateway.repeat(
            lambda connection: connection.client.getRowWithColumnsTs(name, row, choices, bound, {})
        )
        return cells_of(results[0].columns) if results else {}

    def get_many(
        self, table: str, rows: Sequence[bytes], columns: Sequence[bytes], *, before: int | None = None
    ) -> dict[bytes, Row]:
        """See ``CellStore``."""
        validation.check_rows(rows)
        name, choices, bound = _name(table), validation.chosen(columns), validation.bound(before)

        def read(connection: GatewayConnection, keys: Sequence[bytes]) -> tuple[dict[bytes, Row], int]:
            results = connection.client.getRowsWithColumnsTs(name, list(keys), choices, bound, {})
            found: dict[bytes, Row] = {result.row: cells_of(result.columns) for result in results}
            return found, bytes_of(found.values())

        return {row: cells for found in self._by_keys(rows, read) for row, cells in found.items()}

    def get_columns(
        self,
        table: str,
        rows: Sequence[bytes],
        columns: Sequence[bytes],
        known: Sequence[bytes],
        *,
        before: int | None = None,
    ) -> Iterator[ScannedColumns]:
        """See ``CellStore``. Past Thrift's library."""
        validation.check_rows(rows)
        name, choices, bound = _name(table), validation.chosen(columns), validation.bound(before)
        reader = ColumnAnswerReader(known, GET_ROWS, framed=self._gateway.framed)

        def read(connection: GatewayConnection, keys: Sequence[bytes]) -> tuple[ScannedColumns, int]:
            batch = rows_of_keys(connection, name, keys, choices, bound, reader)
            return batch, len(batch.cells.data)

        found = (batch for batch in self._by_keys(rows, read) if batch.cells.rows)
        return gathered(found, self._limits.column_rows_max, BATCH_BYTES_WANTED)

    def versions(self, table: str, row: bytes, column: bytes, *, before: int | None = None, limit: int) -> list[Cell]:
        """See ``CellStore``."""
        validation.check_row(row)
        validation.check_column(column)
        validation.check_count(limit, "the limit of versions")
        name, bound = _name(table), validation.bound(before)
        cells = self._gateway.repeat(lambda connection: connection.client.getVerTs(name, row, column, bound, limit, {}))
        return [Cell(cell.value, cell.timestamp) for cell in cells]

    def scan(
        self,
        table: str,
        key_range: KeyRange,
        columns: Sequence[bytes],
        *,
        before: int | None = None,
        batch_rows: int = 500,
        reverse: bool = False,
    ) -> Iterator[tuple[bytes, Row]]:
        """See ``CellStore``."""
        request = _scan_request(table, key_range, columns, before, batch_rows, reverse=reverse)
        if key_range.stop and key_range.start >= key_range.stop:
            return iter(())
        return self._scanned_rows(request)

    def scan_columns(
        self,
        table: str,
        key_range: KeyRange,
        columns: Sequence[bytes],
        known: Sequence[bytes],
        *,
        before: int | None = None,
        batch_rows: int = 500,
        without_qualifier: bytes | None = None,
    ) -> Iterator[ScannedColumns]:
        """See ``CellStore``. Past Thrift's library."""
        request = _scan_request(table, key_range, columns, before, batch_rows)
        request = replace(request, without_qualifier=without_qualifier)
        if key_range.stop and key_range.start >= key_range.stop:
            return iter(())
        form = ColumnForm(known, framed=self._gateway.framed)
        return gathered(self._batches(request, form), batch_rows, BATCH_BYTES_WANTED)

    def put_columns(
        self, table: str, cells: CellColumns, timestamp: int, *, before_each: Callable[[], None] = lambda: None
    ) -> None:
        """See ``CellStore``. Past Thrift's library."""
        check_columns(table, cells, timestamp)
        cells = in_key_order(cells)
        for request in column_put_requests(table, cells, timestamp, self._limits, framed=self._gateway.framed):
            self._write(table.encode(), partial(put_rows, request=request), before_each)

    def put(self, table: str, puts: Sequence[RowPut], timestamp: int) -> None:
        """See ``CellStore``. Sent in requests within the limits, one after the other."""
        name = _name(table)
        validation.check_puts(puts, timestamp)
        for request in put_requests(puts, self._limits):
            self._write(name, _mutate(name, request, timestamp))

    def delete(self, table: str, rows: Sequence[bytes], timestamp: int) -> None:
        """See ``CellStore``."""
        validation.check_rows(rows)
        validation.check_timestamp(timestamp)
        name, families = _name(table), self.families(table)
        for piece in pieces(rows, self._limits.rows_max):
            self._write(name, _mutate(name, delete_request(piece, families), timestamp))

    def delete_columns(self, table: str, columns: Mapping[bytes, Sequence[bytes]], timestamp: int) -> None:
        """See ``CellStore``."""
        name = _name(table)
        validation.check_rows(columns)
        for column in {column for chosen in columns.values() for column in chosen}:
            validation.check_column(column)
        validation.check_timestamp(timestamp)
        for request in delete_columns_requests(columns, self._limits):
            self._write(name, _mutate(name, request, timestamp))

    def compare_and_set(
        self, table: str, row: bytes, *, check: bytes, expected: bytes | None, put: bytes, value: bytes
    ) -> CompareAndSet:
        """See ``CellStore``."""
        validation.check_compare_and_set(row, check, expected, put, value)
        name, mutation = _name(table), Mutation(column=put, value=value)
        try:
            applied = self._gateway.once(
                lambda connection: connection.client.checkAndPut(name, row, check, expected, mutation, {})
            )
        except GatewayFailure as failure:
            return Unknown(str(failure))
        return Applied() if applied else Rejected()

    def close(self) -> None:
        """See ``CellStore``."""
        self._gateway.close()

    def _scanned_rows(self, request: ScanRequest) -> Iterator[tuple[bytes, Row]]:
        batches = self._batches(request, RowForm())
        return chain.from_iterable(batches)

    def _batches(self, request: ScanRequest, form: Form[Batch]) -> Iterator[Batch]:
        size = AnswerSize(self._limits.answer_bytes_wanted, ROWS_FIRST)
        patience = Patience(self._settings.request_timeout_ms, self._settings.administration_timeout_ms)
        for part in self._region_starts.parts(request.table, request.key_range, reverse=request.reverse):
            yield from Scanner(self._gateway, replace(request, key_range=part), form, size, patience).batches()

    def _by_keys(
        self, keys: Sequence[bytes], read: Callable[[GatewayConnection, Sequence[bytes]], tuple[Batch, int]]
    ) -> Iterator[Batch]:
        """The rows with these keys, in answers of bounded size; ``read`` gives one, and its bytes, more or less."""
        size = AnswerSize(self._limits.answer_bytes_wanted, _GET_ROWS_FIRST)

        def fetch(connection: GatewayConnection) -> tuple[int, Batch]:
            piece = keys[asked : asked + size.rows(self._limits.rows_max)]
            try:
                found, answer_bytes = read(connection, piece)
            except BREAKDOWNS:
                size.was_lost(len(piece))
                raise
            size.came(len(piece), answer_bytes)
            return len(piece), found

        asked = 0
        while asked < len(keys):
            count, found = self._gateway.repeat(fetch)
            asked += count
            yield found

    def _ask_region_starts(self, name: bytes) -> list[bytes]:
        regions = self._gateway.repeat(lambda connection: connection.client.getTableRegions(name))
        return [region.startKey for region in regions]

    def _write(self, name: bytes, ask: Call[None], before_each: Callable[[], None] = lambda: None) -> None:
        """Of a table that is missing, the gateway's answer to a write says only that all its retries are used up.

        What asks for the table must need no permission that the write does not: else its refusal hides what failed.
        """

        def write(connection: GatewayConnection) -> None:
            try:
                ask(connection)
            except GatewayIOError:
                connection.client.isTableEnabled(name)
                raise

        self._gateway.repeat(write, before_each=before_each)


def _mutate(name: bytes, request: list[BatchMutation], timestamp: int) -> Call[None]:
    def ask(connection: GatewayConnection) -> None:
        if len(request) == 1:  # of a single row the gateway has HBase itself take care, without another thread
            connection.client.mutateRowTs(name, request[0].row, request[0].mutations, timestamp, {})
        else:
            connection.client.mutateRowsTs(name, request, timestamp, {})

    return ask


def _scan_request(
    table: str,
    key_range: KeyRange,
    columns: Sequence[bytes],
    before: int | None,
    batch_rows: int,
    *,
    reverse: bool = False,
) -> ScanRequest:
    validation.check_range(key_range)
    validation.check_count(batch_rows, "the rows of a batch")
    return ScanRequest(
        _name(table), key_range, validation.chosen(columns), validation.bound(before), batch_rows, reverse
    )


def _name(table: str) -> bytes:
    validation.check_table(table)
    return table.encode()


def _descriptor(family: Family) -> ColumnDescriptor:
    """With HBase's own defaults; Thrift's are no block cache and no Bloom filter."""
    return ColumnDescriptor(
        name=family.name.encode() + b":",
        maxVersions=family.versions_max,
        timeToLive=family.lives_seconds_max,
        bloomFilterType="ROW",
        blockCacheEnabled=True,
    )


def _disable(connection: GatewayConnection, name: bytes) -> None:
    """Disable a table, or find that an earlier try did, and dropped it even."""
    with connection.patient():
        try:
            connection.client.disableTable(name)
        except GatewayIOError as error:
            if not is_about(error, "TableNotEnabledException") and not is_about(error, "TableNotFoundException"):
                raise


def _drop(connection: GatewayConnection, name: bytes) -> None:
    """Drop a table, or find that an earlier try did."""
    with connection.patient():
        try:
            connection.client.deleteTable(name)
        except GatewayIOError as error:
            if not is_about(error, "table does not exist") and not is_about(error, "TableNotFoundException"):
                raise
