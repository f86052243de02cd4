"""Level 2, transactions over tables: begun, read, written, and ended with plain requests."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from typing import Annotated

from fastapi import Depends, Query, Request, Response

from client import ChangesPage, RowsPage, Savepoint, Snapshot, Transaction
from client.positions import moment_since
from client.snapshots.moments import parse_since
from client.snapshots.ranges import end_of_prefix
from configuration.rest_limits import RestLimits
from rest import models
from rest.answering import IdempotencyKey, answered
from rest.held_transactions import Held
from rest.problems import Problem
from rest.reads import Read, read_all, read_and_guard
from rest.routing import Routes
from rest.services import Services, primary_of, services_of
from rest.texts import Encoding, columns_of, to_bytes, to_text, to_texts, to_values
from rest.writes import Delete, Put, Write

Columns = Annotated[list[str] | None, Query(alias="column", description="A family, or `family:qualifier`.")]

_TRANSACTION = "/v1/transactions/{id}"
_ROWS = "/tables/{table}/rows"


async def holder_of(request: Request, id: models.Timestamp) -> Services:
    """A dependency: whoever holds a transaction serves it to its end, wherever the primary is by now."""
    services = await services_of(request)
    if not services.held_transactions.holds(int(id)):
        services.require_primary()
    return services


Primary = Annotated[Services, Depends(primary_of)]
Holder = Annotated[Services, Depends(holder_of)]
Anyone = Annotated[Services, Depends(services_of)]


@dataclass(frozen=True, slots=True)
class RangeQuery:
    """Which rows of a table to list. ``next`` of one page is ``after`` for the following one."""

    start: bytes
    stop: bytes
    prefix: bytes
    after: bytes
    limit: int | None
    columns: list[bytes] | None
    encoding: Encoding

    def rows_max(self, limits: RestLimits) -> int:
        """Rows of a page."""
        return min(self.limit or limits.rows_per_page_max, limits.rows_per_page_max)

    def bounds(self, *, reverse: bool = False) -> tuple[bytes, bytes] | None:
        """The first key, and the one behind the last (``b""``: none); ``None`` where there can be no row any more.

        ``reverse``: what comes ``after`` a row are the ones before it. Raises ``Problem``.
        """
        first, stop = self.start, self.stop
        if stop and stop < first:
            raise Problem("invalid-request", "stop lies before start: no row can be meant")
        if self.prefix:
            if first or stop:
                raise Problem("invalid-request", "give either prefix, or start and stop")
            first, stop = self.prefix, end_of_prefix(self.prefix)
        if self.after and reverse:
            stop = min(stop or self.after, self.after)
        elif self.after:
            first = max(first, self.after + b"\x00")
        return None if stop and first >= stop else (first, stop)


async def range_of(
    start: str = "",
    stop: str = "",
    prefix: str = "",
    after: str = "",
    limit: Annotated[int | None, Query(ge=1)] = None,
    column: Columns = None,
    encoding: Encoding = "utf-8",
) -> RangeQuery:
    """A dependency."""
    return RangeQuery(
        start=to_bytes(start, encoding),
        stop=to_bytes(stop, encoding),
        prefix=to_bytes(prefix, encoding),
        after=to_bytes(after, encoding),
        limit=limit,
        columns=columns_of(column, encoding),
        encoding=encoding,
    )


Range = Annotated[RangeQuery, Depends(range_of)]
Reverse = Annotated[bool, Query(description="From the last row of the range to the first.")]


def add_table_routes(routes: Routes) -> None:
    """Everything under /v1/transactions and /v1/snapshots."""
    tags = ["transactions"]
    routes.add("POST", "/v1/transactions", begin_transaction, models.TransactionState, status=201, tags=tags)
    routes.add("GET", _TRANSACTION, show_transaction, models.TransactionState, tags=tags)
    routes.add("POST", f"{_TRANSACTION}/commit", commit_transaction, models.Committed, tags=tags)
    routes.add("DELETE", _TRANSACTION, roll_back_transaction, models.RolledBack, tags=tags)
    routes.add("GET", f"{_TRANSACTION}{_ROWS}", scan_rows, models.Page, tags=tags)
    routes.add("GET", f"{_TRANSACTION}{_ROWS}/{{row:path}}", read_row, models.Row, tags=tags)
    routes.add("POST", f"{_TRANSACTION}/reads", read_rows, models.RowsRead, tags=tags)
    routes.add("PUT", f"{_TRANSACTION}{_ROWS}/{{row:path}}", put_row, models.Taken, tags=tags)
    routes.add("DELETE", f"{_TRANSACTION}{_ROWS}/{{row:path}}", delete_row, models.Taken, tags=tags)
    routes.add("POST", f"{_TRANSACTION}/writes", write_rows, models.Taken, tags=tags)
    routes.add("POST", f"{_TRANSACTION}/claims", claim_key, models.Claimed, tags=tags)
    savepoints = f"{_TRANSACTION}/savepoints"
    routes.add("POST", savepoints, make_savepoint, models.TransactionState, status=201, tags=tags)
    routes.add("POST", f"{savepoints}/{{name}}/rollback", roll_back_to_savepoint, models.TransactionState, tags=tags)
    routes.add("DELETE", f"{savepoints}/{{name}}", release_savepoint, models.TransactionState, tags=tags)
    tags = ["snapshots"]
    routes.add("GET", f"/v1/snapshots/{{moment}}{_ROWS}", scan_rows_at, models.Page, tags=tags)
    routes.add("GET", f"/v1/snapshots/{{moment}}{_ROWS}/{{row:path}}", read_row_at, models.Row, tags=tags)
    routes.add("POST", "/v1/snapshots/{moment}/reads", read_rows_at, models.RowsRead, tags=tags)
    changes = "/v1/snapshots/{moment}/tables/{table}/changes"
    routes.add("GET", changes, scan_changes_at, models.ChangesPage, tags=tags)


async def begin_transaction(
    request: Request, services: Primary, body: models.BeginTransactionBody | None = None, key: IdempotencyKey = None
) -> Response:
    """Begin a transaction that is held here until it is ended, or not used for too long."""
    read_only = body is not None and body.read_only

    async def work() -> models.TransactionState:
        return _state(await services.held_transactions.begin(read_only=read_only), services.limits)

    return await answered(request, services, key, 201, work)


async def show_transaction(services: Holder, id: models.Timestamp) -> models.TransactionState:
    """How an open transaction is; that it was looked at keeps it open."""
    async with services.held_transactions.using(int(id)) as held:
        return _state(held, services.limits)


async def commit_transaction(
    request: Request, services: Holder, id: models.Timestamp, key: IdempotencyKey = None
) -> Response:
    """Make everything visible at once. Repeated, it gets the same answer, also from another process."""

    async def work() -> models.Committed:
        commit_timestamp = await services.held_transactions.commit(int(id))
        return models.Committed(start_timestamp=id, commit_timestamp=str(commit_timestamp))

    return await answered(request, services, key, 200, work)


async def roll_back_transaction(services: Holder, id: models.Timestamp) -> models.RolledBack:
    """Give a transaction up: nothing of it was or will be visible."""
    await services.held_transactions.roll_back(int(id))
    return models.RolledBack(start_timestamp=id)


async def read_row(
    services: Holder,
    id: models.Timestamp,
    table: models.TableName,
    row: str,
    column: Columns = None,
    encoding: Encoding = "utf-8",
) -> models.Row:
    """A row as the transaction sees it, its own writes included."""
    key, columns = to_bytes(row, encoding), columns_of(column, encoding)
    async with services.held_transactions.using(int(id)) as held:
        values = await services.held_transactions.in_thread(lambda: held.transaction.get(table, key, columns))
    return models.Row(row=row, values=to_texts(values, encoding))


async def scan_rows(
    services: Holder, id: models.Timestamp, table: models.TableName, chosen: Range, reverse: Reverse = False
) -> models.Page:
    """Rows in key order, or from the last to the first, a page at a time."""
    async with services.held_transactions.using(int(id)) as held:
        read = partial(_read_page, held.transaction, table, chosen, services.limits, reverse=reverse)
        return _page(await services.held_transactions.in_thread(read), chosen.encoding)


async def read_rows(
    services: Holder, id: models.Timestamp, body: models.GuardableReadsBody, encoding: Encoding = "utf-8"
) -> models.RowsRead:
    """Rows by their keys, of any tables, as the transaction sees them."""
    reads = _reads(body, encoding, services.limits)
    async with services.held_transactions.using(int(id)) as held:
        read_some = read_and_guard if body.guarded else read_all
        read = partial(read_some, held.transaction, reads, services.limits.page_bytes_max)
        return _rows_read(body, await services.held_transactions.in_thread(read), encoding)


async def put_row(
    services: Holder,
    id: models.Timestamp,
    table: models.TableName,
    row: str,
    body: models.PutBody,
    encoding: Encoding = "utf-8",
) -> models.Taken:
    """Write columns of a row. Nobody else sees it before the commit."""
    return await _write(services, id, [Put(table, to_bytes(row, encoding), to_values(body.values, encoding))])


async def delete_row(
    services: Holder,
    id: models.Timestamp,
    table: models.TableName,
    row: str,
    column: Columns = None,
    encoding: Encoding = "utf-8",
) -> models.Taken:
    """Delete columns of a row, by default all that the transaction sees."""
    return await _write(services, id, [Delete(table, to_bytes(row, encoding), columns_of(column, encoding))])


async def write_rows(
    services: Holder, id: models.Timestamp, body: models.WritesBody, encoding: Encoding = "utf-8"
) -> models.Taken:
    """Puts and deletes in any tables: all of them are taken, or none."""
    most = services.limits.writes_per_request_max
    if len(body.writes) > most:
        raise Problem("invalid-request", f"one request takes {most:,} writes (writes_per_request_max)")
    return await _write(services, id, [_as_write(write, encoding) for write in body.writes])


async def claim_key(services: Holder, id: models.Timestamp, body: models.ClaimBody) -> models.Claimed:
    """Have this transaction be the one that lands what a key names, if nobody has before.

    Of two that claim one key and overlap one commits. Repeated, it gets the same answer.
    """
    async with services.held_transactions.using(int(id)) as held:
        return models.Claimed(claimed=await services.held_transactions.claim(held, body.key, body.table))


async def make_savepoint(services: Holder, id: models.Timestamp, body: models.SavepointBody) -> models.TransactionState:
    """Name this moment of the transaction."""
    async with services.held_transactions.using(int(id)) as held:
        if body.name in held.savepoints:
            raise Problem(
                "invalid-request", f"there is a savepoint {body.name!r}: release it first, or take another name"
            )
        if len(held.savepoints) >= services.limits.savepoints_max:
            raise Problem("invalid-request", f"at most {services.limits.savepoints_max} savepoints (savepoints_max)")
        held.savepoints[body.name] = await services.held_transactions.in_thread(held.transaction.savepoint)
        return _state(held, services.limits)


async def roll_back_to_savepoint(
    services: Holder, id: models.Timestamp, name: models.SavepointName
) -> models.TransactionState:
    """Undo what was written after a savepoint, which stays; those made after it are gone."""
    async with services.held_transactions.using(int(id)) as held:
        savepoint = _savepoint(held, name)
        await services.held_transactions.in_thread(lambda: held.transaction.rollback_to(savepoint))
        _drop_closed(held)
        return _state(held, services.limits)


async def release_savepoint(
    services: Holder, id: models.Timestamp, name: models.SavepointName
) -> models.TransactionState:
    """Do without a savepoint, and those made after it; what was written stays."""
    async with services.held_transactions.using(int(id)) as held:
        savepoint = _savepoint(held, name)
        await services.held_transactions.in_thread(lambda: held.transaction.release(savepoint))
        _drop_closed(held)
        return _state(held, services.limits)


async def read_row_at(
    services: Anyone,
    moment: models.Moment,
    table: models.TableName,
    row: str,
    column: Columns = None,
    encoding: Encoding = "utf-8",
) -> models.Row:
    """A row as of a past moment. Answered by every process, with no oracle alive."""
    key, columns = to_bytes(row, encoding), columns_of(column, encoding)
    values = await services.held_transactions.in_thread(
        lambda: services.manager.snapshot(at=moment).get(table, key, columns)
    )
    return models.Row(row=row, values=to_texts(values, encoding))


async def scan_rows_at(
    services: Anyone, moment: models.Moment, table: models.TableName, chosen: Range, reverse: Reverse = False
) -> models.Page:
    """Rows as of a past moment, a page at a time. Answered by every process, with no oracle alive."""

    def read() -> RowsPage:
        return _read_page(services.manager.snapshot(at=moment), table, chosen, services.limits, reverse=reverse)

    return _page(await services.held_transactions.in_thread(read), chosen.encoding)


async def read_rows_at(
    services: Anyone, moment: models.Moment, body: models.ReadsBody, encoding: Encoding = "utf-8"
) -> models.RowsRead:
    """Rows by their keys, of any tables, as of a past moment. Answered by every process, with no oracle alive."""
    reads = _reads(body, encoding, services.limits)

    def read() -> list[dict[bytes, bytes]]:
        return read_all(services.manager.snapshot(at=moment), reads, services.limits.page_bytes_max)

    return _rows_read(body, await services.held_transactions.in_thread(read), encoding)


async def scan_changes_at(
    services: Anyone, moment: models.Moment, table: models.TableName, since: models.Since, chosen: Range
) -> models.ChangesPage:
    """Rows that are different from what they were at an earlier moment, a page at a time. Answered by every process."""
    bounds, limits = chosen.bounds(), services.limits

    def read() -> models.ChangesPage:
        snapshot = services.manager.snapshot(at=moment)
        earlier = moment_since(services.manager, parse_since(since))
        if bounds is None:
            return _page_of_changes(ChangesPage([], None), snapshot.timestamp, chosen.encoding)
        start, stop = bounds
        page = snapshot.changes_page(
            table,
            earlier,
            start=start,
            stop=stop,
            columns=chosen.columns,
            rows_max=chosen.rows_max(limits),
            bytes_max=limits.page_bytes_max,
            looked_at_max=limits.rows_looked_at_max,
        )
        return _page_of_changes(page, snapshot.timestamp, chosen.encoding)

    return await services.held_transactions.in_thread(read)


async def _write(services: Services, id: str, writes: Sequence[Write]) -> models.Taken:
    async with services.held_transactions.using(int(id)) as held:
        await services.held_transactions.write(held, writes)
        return models.Taken(written_bytes=held.transaction.written_bytes)


def _as_write(write: models.PutWrite | models.DeleteWrite, encoding: Encoding) -> Write:
    row = to_bytes(write.row, encoding)
    if isinstance(write, models.PutWrite):
        return Put(write.table, row, to_values(write.values, encoding))
    return Delete(write.table, row, columns_of(write.columns, encoding))


def _reads(body: models.ReadsBody, encoding: Encoding, limits: RestLimits) -> list[Read]:
    most = limits.reads_per_request_max
    if len(body.reads) > most:
        raise Problem("invalid-request", f"one request takes {most:,} reads (reads_per_request_max)")
    return [_as_read(read, encoding) for read in body.reads]


def _as_read(read: models.RowToRead, encoding: Encoding) -> Read:
    columns = columns_of(read.columns, encoding)
    return Read(read.table, to_bytes(read.row, encoding), None if columns is None else tuple(columns))


def _rows_read(body: models.ReadsBody, found: list[dict[bytes, bytes]], encoding: Encoding) -> models.RowsRead:
    return models.RowsRead(
        rows=[
            models.RowOfTable(table=asked.table, row=asked.row, values=to_texts(values, encoding))
            for asked, values in zip(body.reads, found, strict=False)  # those that the answer has room for
        ]
    )


def _read_page(
    source: Transaction | Snapshot, table: str, chosen: RangeQuery, limits: RestLimits, *, reverse: bool
) -> RowsPage:
    bounds = chosen.bounds(reverse=reverse)
    if bounds is None:
        return RowsPage([], None)
    start, stop = bounds
    return source.scan_page(
        table,
        start=start,
        stop=stop,
        columns=chosen.columns,
        reverse=reverse,
        rows_max=chosen.rows_max(limits),
        bytes_max=limits.page_bytes_max,
        looked_at_max=limits.rows_looked_at_max,
    )


def _page(page: RowsPage, encoding: Encoding) -> models.Page:
    return models.Page(
        rows=[models.Row(row=to_text(row, encoding), values=to_texts(values, encoding)) for row, values in page.rows],
        next=_next(page, encoding),
    )


def _next(page: RowsPage | ChangesPage, encoding: Encoding) -> str | None:
    return None if page.looked_at_to is None else to_text(page.looked_at_to, encoding)


def _page_of_changes(page: ChangesPage, timestamp: int, encoding: Encoding) -> models.ChangesPage:
    return models.ChangesPage(
        rows=[
            models.ChangedRow(
                row=to_text(row, encoding),
                values=None if values is None else to_texts(values, encoding),
                commit_timestamp=str(commit_timestamp),
            )
            for row, values, commit_timestamp in page.rows
        ],
        next=_next(page, encoding),
        snapshot=str(timestamp),
    )


def _state(held: Held, limits: RestLimits) -> models.TransactionState:
    transaction = held.transaction
    return models.TransactionState(
        id=str(transaction.start_timestamp),
        snapshot=str(transaction.snapshot_timestamp),
        read_only=held.read_only,
        written_bytes=transaction.written_bytes,
        savepoints=list(held.savepoints),
        expires_in_ms=limits.transaction_idle_ms_max,
    )


def _savepoint(held: Held, name: str) -> Savepoint:
    if name not in held.savepoints:
        raise Problem("not-found", f"transaction {held.transaction.start_timestamp} has no savepoint {name!r}")
    return held.savepoints[name]


def _drop_closed(held: Held) -> None:
    held.savepoints = {name: savepoint for name, savepoint in held.savepoints.items() if savepoint.is_open}
