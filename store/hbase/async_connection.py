"""One connection of the event loop to a gateway, with one request under way at most, and a limit on each wait.

No thread waits: the request goes out as far as the socket takes it, and the loop tells when bytes come.

Invariants: the sequence numbers of a connection only grow, and an answer is taken for the request with its number; a
request that ended in anything but an answer leaves the connection closed, so that no late answer meets another request;
the bytes of a request lie in the connection's own buffer, which the next request alone writes over.
"""

from __future__ import annotations

import asyncio
from typing import cast

from access.service_tls import context_for_connection, in_words, not_agreed
from store.hbase.addresses import Address
from store.hbase.answers import Answer, AnswerReader, NotAnAnswer
from store.hbase.binary_protocol import IS_TABLE_ENABLED, SEQUENCE_MAX
from store.hbase.encoding import PutRequest, RequestBuffer, table_question
from store.hbase.failures import ConnectionLost, GatewayFailure
from store.hbase.http import HttpTalk
from store.hbase.http_transport import HttpProtocol
from store.hbase.kerberos import AgreeingProtocol
from store.hbase.settings import PoolSettings


class AsyncConnection(asyncio.Protocol):
    """Made by ``open``. For the tasks of one event loop, one at a time.

    Both questions raise ``GatewayFailure``, as ``ConnectionLost`` when the gateway hung up; the connection is closed
    then.
    """

    def __init__(self, address: Address, settings: PoolSettings) -> None:
        self.address = address
        self._request_timeout_ms = settings.request_timeout_ms
        self._framed = address.framed
        self._buffer = RequestBuffer(framed=self._framed)
        self._sequence = 0
        self._loop = asyncio.get_running_loop()
        self._transport: asyncio.Transport | None = None
        self._lost = asyncio.Event()
        self._reader: AnswerReader | None = None
        self._answered: asyncio.Future[Answer] = self._loop.create_future()
        self._answer_due = 0.0
        self._timer: asyncio.TimerHandle | None = None

    @classmethod
    async def open(cls, address: Address, settings: PoolSettings) -> AsyncConnection:
        """Connect. Raises ``OSError``, as ``TimeoutError`` after ``connect_timeout_ms``, which Kerberos has for itself
        once more.
        """
        limit_ms, connection = settings.connect_timeout_ms, cls(address, settings)
        agreeing, served = None, cast(asyncio.Protocol, connection)
        if address.http:
            who = settings.kerberos if address.kerberos else None
            served = HttpProtocol(connection, HttpTalk(address), address.host, who)
        elif address.kerberos:
            served = agreeing = await AgreeingProtocol.begun(settings.kerberos, address.host, connection, limit_ms)
        context = context_for_connection(settings.tls) if address.tls else None
        name = settings.tls.server_name or address.host if address.tls else None
        try:
            async with asyncio.timeout(limit_ms / 1_000):
                await asyncio.get_running_loop().create_connection(
                    lambda: served, address.host, address.port, ssl=context, server_hostname=name
                )
        except OSError as error:
            raise (not_agreed(error, limit_ms) if address.tls else error) from None
        if agreeing is not None:
            await agreeing.wait_agreed(limit_ms)
        return connection

    @property
    def is_usable(self) -> bool:
        """Whether the gateway is still there, as far as the event loop has noticed."""
        return self._transport is not None and not self._transport.is_closing()

    async def put(self, request: PutRequest) -> Answer:
        """Ask to write cells."""
        sequence = self._next_sequence()
        method, call = self._buffer.put(request, sequence)
        return await self._ask(method, sequence, call)

    async def is_table_enabled(self, table: str) -> Answer:
        """Ask whether a table is enabled; what matters is how the gateway says that there is none."""
        sequence = self._next_sequence()
        return await self._ask(IS_TABLE_ENABLED, sequence, table_question(table, sequence, framed=self._framed))

    def close(self, reason: str = "the connection is closed") -> None:
        """Hang up; a request under way ends with a ``GatewayFailure``."""
        self._fail(GatewayFailure(reason))

    async def wait_closed(self) -> None:
        """Return when nothing is left of a connection that was closed."""
        await self._lost.wait()

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """See ``asyncio.Protocol``."""
        self._transport = cast(asyncio.Transport, transport)  # some event loops' transports only look like one

    def data_received(self, data: bytes) -> None:
        """See ``asyncio.Protocol``. Between two requests nothing is to be read."""
        try:
            if self._reader is None:
                raise NotAnAnswer(f"{len(data)} bytes that nobody asked for")
            answer = self._reader.feed(data)
        except NotAnAnswer as error:
            self._fail(GatewayFailure(f"the gateway at {self.address} sent {error}"))
            return
        if answer is not None:
            self._reader = None
            if not self._answered.done():
                self._answered.set_result(answer)

    def connection_lost(self, error: Exception | None) -> None:
        """See ``asyncio.Protocol``."""
        why = in_words(error) if error is not None else "hung up"
        self._fail(ConnectionLost(f"the connection to the HBase gateway at {self.address} broke: {why}"))
        if self._timer is not None:
            self._timer.cancel()
        self._lost.set()

    async def _ask(self, method: bytes, sequence: int, request: bytes | memoryview) -> Answer:
        assert self._reader is None, "one request at a time"
        if self._transport is None or self._transport.is_closing():
            raise ConnectionLost(f"the HBase gateway at {self.address} has hung up")
        self._answered = self._loop.create_future()
        self._reader = AnswerReader(method, sequence, framed=self._framed)
        self._answer_due = self._loop.time() + self._request_timeout_ms / 1_000
        if self._timer is None:
            self._timer = self._loop.call_at(self._answer_due, self._look_at_clock)
        try:
            self._transport.write(request)
            return await self._answered
        except BaseException:
            self.close()
            raise

    def _look_at_clock(self) -> None:
        """One timer serves many requests: it comes when the first is due, and then waits for the one under way."""
        self._timer = None
        if self._reader is None:
            return
        if self._loop.time() < self._answer_due:
            self._timer = self._loop.call_at(self._answer_due, self._look_at_clock)
        else:
            limit_ms = self._request_timeout_ms
            self._fail(GatewayFailure(f"the HBase gateway at {self.address} gave no answer in {limit_ms} ms"))

    def _next_sequence(self) -> int:
        self._sequence = self._sequence % SEQUENCE_MAX + 1
        return self._sequence

    def _fail(self, failure: GatewayFailure) -> None:
        if self._reader is not None and not self._answered.done():
            self._answered.set_exception(failure)
        self._reader = None
        if self._transport is not None:
            self._transport.abort()
