"""Cells written to the gateway by the event loop itself: no thread, no Thrift object, one array copied a put.

Connections follow the rules of ``store.hbase.pool``: bounded in number, discarded before the gateway drops them, kept
only after an answer. A put that meets a kept connection that has died is sent again, once and at once, on a fresh one:
all cells name their timestamp, so that repeating is harmless. Everything else is for the caller to repeat, an oracle
that has to look at its lease before each try.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Callable

from store.bulk import check_lines
from store.errors import StoreError, StoreUnavailable, TableMissing
from store.hbase.answers import Kind
from store.hbase.async_connection import AsyncConnection
from store.hbase.encoding import PutRequest
from store.hbase.failures import ConnectionLost, GatewayFailure, meaning_of, meaning_of_answer, not_connected
from store.hbase.gateways import gateways_at
from store.hbase.settings import PoolSettings
from store.lines import ByteLines

log = logging.getLogger(__name__)

_CLOSED = "the putter is closed"
_DEFAULT_SETTINGS = PoolSettings()


class GatewayPutter:
    """A ``store.bulk.BulkPutter`` to the gateway at ``address``: ``"host:port"``, or several, separated by commas.

    What may stand before an address is told in ``store.hbase.addresses``. Raises what ``gateways_at`` does.
    Nothing is connected before the first put. What ``settings`` say of repeating is not used here. ``monotonic`` gives
    seconds.
    """

    def __init__(
        self,
        address: str,
        settings: PoolSettings = _DEFAULT_SETTINGS,
        *,
        monotonic: Callable[[], float] = time.monotonic,
    ) -> None:
        self._addresses, self._settings = gateways_at(address, settings)
        self._monotonic = monotonic
        self._places = asyncio.Semaphore(settings.connections_max)
        self._idle: list[tuple[AsyncConnection, float]] = []
        self._in_use: set[AsyncConnection] = set()
        self._closed = False

    async def put(self, table: str, rows: ByteLines, columns: ByteLines, values: ByteLines, timestamp: int) -> None:
        """See ``BulkPutter``. One request; it waits for one of the connections to come free."""
        check_lines(table, rows, columns, values, timestamp)
        if not len(rows):
            return
        await self._take_place()
        try:
            await self._put(PutRequest(table, rows, columns, values, timestamp))
        finally:
            self._places.release()

    async def close(self) -> None:
        """See ``BulkPutter``. A put under way ends with ``StoreUnavailable``."""
        self._closed = True
        connections = [*self._in_use, *(connection for connection, _ in self._idle)]
        self._idle.clear()
        for connection in connections:
            connection.close(_CLOSED)
        for connection in connections:
            await connection.wait_closed()

    async def _take_place(self) -> None:
        if not self._places.locked():
            await self._places.acquire()  # at once, so without a timer
            return
        try:
            async with asyncio.timeout(self._settings.lease_wait_ms / 1_000):
                await self._places.acquire()
        except TimeoutError:
            raise StoreUnavailable(
                f"all {self._settings.connections_max} connections to the HBase gateway were in use for "
                f"{self._settings.lease_wait_ms} ms: raise connections_max, or put less at once"
            ) from None

    async def _put(self, request: PutRequest) -> None:
        """Holds one of the places, so that idle, used and opening connections together never exceed their limit."""
        connection = self._take_kept()
        if connection is not None:
            try:
                await self._ask(connection, request)
                return
            except ConnectionLost as error:
                log.debug("sent again on a fresh connection: %s", str(error))
        await self._ask(await self._open(), request)

    def _take_kept(self) -> AsyncConnection | None:
        """The connection used last that is still usable; those that are not, or are too old, are closed."""
        oldest_ms = self._now_ms() - self._settings.idle_ms_max
        while self._idle and self._idle[0][1] <= oldest_ms:
            self._idle.pop(0)[0].close()
        while self._idle:
            connection, _ = self._idle.pop()
            if connection.is_usable:
                return connection
            connection.close()
        return None

    async def _open(self) -> AsyncConnection:
        """A connection to the first gateway in turn that accepts one."""
        failures: list[str] = []
        for address in self._addresses.in_turn(self._now_ms()):
            self._require_open()
            try:
                return await AsyncConnection.open(address, self._settings)
            except OSError as error:
                self._addresses.failed(address, self._now_ms())
                failures.append(f"{address}: {meaning_of(error)}")
        raise not_connected(failures)

    async def _ask(self, connection: AsyncConnection, request: PutRequest) -> None:
        """Put on this connection; afterwards it is kept after an answer, and closed after anything else."""
        self._in_use.add(connection)
        try:
            self._require_open()
            await _put_on(connection, request)
        except GatewayFailure:
            self._give_up(connection)
            raise
        except StoreError:
            self._keep(connection)
            raise
        else:
            self._keep(connection)
        finally:
            self._in_use.discard(connection)

    def _keep(self, connection: AsyncConnection) -> None:
        if self._closed:
            connection.close()
        else:
            self._idle.append((connection, self._now_ms()))

    def _give_up(self, connection: AsyncConnection) -> None:
        """Close it, and the idle ones to the same gateway: the next put had better try another."""
        self._addresses.failed(connection.address, self._now_ms())
        connection.close()
        for idle, _ in self._idle:
            if idle.address == connection.address:
                idle.close()

    def _require_open(self) -> None:
        if self._closed:
            raise StoreUnavailable(_CLOSED)

    def _now_ms(self) -> float:
        return self._monotonic() * 1_000


async def _put_on(connection: AsyncConnection, request: PutRequest) -> None:
    """Of a table that is missing, the answer to a put says only that all its retries are used up: ask for the table."""
    answer = await connection.put(request)
    refusal = meaning_of_answer(answer)
    if answer.kind is Kind.IO_ERROR and isinstance(refusal, GatewayFailure):
        about_the_table = meaning_of_answer(await connection.is_table_enabled(request.table))
        if isinstance(about_the_table, TableMissing):
            raise about_the_table
    if refusal is not None:
        raise refusal
