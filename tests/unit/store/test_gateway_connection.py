"""One connection of the event loop: its numbers, its clock, and bytes that nobody asked for.

The gateway here is a few lines on the same event loop; the clock is moved by hand.
"""

from __future__ import annotations

import asyncio
import struct
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import Any

import numpy as np
import pytest

from store.hbase import PoolSettings
from store.hbase.addresses import Address
from store.hbase.answers import Answer, Kind
from store.hbase.async_connection import AsyncConnection
from store.hbase.binary_protocol import MUTATE_ROW, REPLY, VERSION
from store.hbase.encoding import PutRequest
from store.hbase.failures import ConnectionLost, GatewayFailure
from tests.unit.store.loop_clock import LoopClock

TIMEOUT_MS = 10_000
SEQUENCE_AT = 8 + len(MUTATE_ROW)
CELL = np.full((1, 3), ord(":"), np.uint8)
REQUEST = PutRequest("t", CELL, CELL, CELL, 5)
DONE = Answer(Kind.DONE)


class Script:
    """Holds each request until it is answered."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._reader = reader
        self._writer = writer

    async def sequence(self) -> int:
        """Of the next request."""
        request = await self._reader.read(65_536)
        number: int = struct.unpack_from(">i", request, SEQUENCE_AT)[0]
        return number

    def send(self, data: bytes) -> None:
        self._writer.write(data)

    def done(self, sequence: int) -> None:
        self.send(struct.pack(f">Ii{len(MUTATE_ROW)}sib", VERSION | REPLY, len(MUTATE_ROW), MUTATE_ROW, sequence, 0))

    async def ended(self) -> bool:
        return not await self._reader.read()

    def hang_up(self) -> None:
        self._writer.close()


@asynccontextmanager
async def connected() -> AsyncIterator[tuple[AsyncConnection, Script]]:
    scripts: asyncio.Queue[Script] = asyncio.Queue()

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        scripts.put_nowait(Script(reader, writer))

    server = await asyncio.start_server(serve, "127.0.0.1", 0)
    port = server.sockets[0].getsockname()[1]
    connection = await AsyncConnection.open(Address("127.0.0.1", port), PoolSettings(request_timeout_ms=TIMEOUT_MS))
    script = await scripts.get()
    try:
        yield connection, script
    finally:
        connection.close()
        await connection.wait_closed()
        script.hang_up()
        server.close()
        await server.wait_closed()


def run(test: Callable[[AsyncConnection, Script], Awaitable[None]]) -> None:
    async def main() -> None:
        async with connected() as (connection, script):
            await test(connection, script)

    asyncio.run(asyncio.wait_for(main(), 60))


def test_every_request_has_a_number_of_its_own() -> None:
    async def test(connection: AsyncConnection, script: Script) -> None:
        for expected in (1, 2, 3):
            asked = asyncio.create_task(connection.put(REQUEST))
            assert await script.sequence() == expected
            script.done(expected)
            assert await asked == DONE

    run(test)


def test_an_answer_has_the_whole_time_whenever_it_was_asked_for() -> None:
    """One timer serves many requests: it must not end a later one before that one's own time."""

    async def test(connection: AsyncConnection, script: Script) -> None:
        clock = LoopClock()
        for gap_ms in (0, TIMEOUT_MS - 1_000, TIMEOUT_MS - 1_000):
            asked = asyncio.create_task(connection.put(REQUEST))
            number = await script.sequence()
            await clock.pass_ms(gap_ms)
            assert not asked.done()
            script.done(number)
            assert await asked == DONE

    run(test)


@pytest.mark.parametrize("earlier", [0, 1])
def test_silence_ends_when_its_time_is_up(earlier: int) -> None:
    async def test(connection: AsyncConnection, script: Script) -> None:
        clock = LoopClock()
        for _ in range(earlier):
            asked = asyncio.create_task(connection.put(REQUEST))
            script.done(await script.sequence())
            await asked
        asked = asyncio.create_task(connection.put(REQUEST))
        await script.sequence()
        await clock.pass_ms(TIMEOUT_MS - 1_000)
        assert not asked.done()
        await clock.pass_ms(2_000)
        with pytest.raises(GatewayFailure, match="gave no answer in 10000 ms"):
            await asked
        assert not connection.is_usable
        assert await script.ended()

    run(test)


def test_a_closed_connection_leaves_no_timer() -> None:
    """It would keep the request's bytes until it comes."""

    async def test(connection: AsyncConnection, script: Script) -> None:
        timers: list[asyncio.TimerHandle] = []
        loop: Any = asyncio.get_running_loop()
        call_at = loop.call_at

        def noted(*arguments: Any, **named: Any) -> asyncio.TimerHandle:
            timers.append(call_at(*arguments, **named))
            return timers[-1]

        loop.call_at = noted
        asked = asyncio.create_task(connection.put(REQUEST))
        script.done(await script.sequence())
        await asked
        connection.close()
        await connection.wait_closed()
        assert [timer.cancelled() for timer in timers] == [True]

    run(test)


@pytest.mark.parametrize("answered", [False, True])
def test_bytes_that_nobody_asked_for_end_the_connection(answered: bool) -> None:
    async def test(connection: AsyncConnection, script: Script) -> None:
        if answered:
            asked = asyncio.create_task(connection.put(REQUEST))
            script.done(await script.sequence())
            await asked
        script.done(1)
        assert await script.ended()
        assert not connection.is_usable
        with pytest.raises(ConnectionLost, match="has hung up"):
            await connection.put(REQUEST)

    run(test)


def test_a_hang_up_is_noticed_between_two_requests() -> None:
    async def test(connection: AsyncConnection, script: Script) -> None:
        assert connection.is_usable
        script.hang_up()
        await connection.wait_closed()
        assert not connection.is_usable

    run(test)


def test_a_request_that_is_given_up_closes_the_connection() -> None:
    async def test(connection: AsyncConnection, script: Script) -> None:
        asked = asyncio.create_task(connection.put(REQUEST))
        await script.sequence()
        asked.cancel()
        with pytest.raises(asyncio.CancelledError):
            await asked
        assert await script.ended()

    run(test)


def test_close_ends_the_request_under_way_with_its_reason() -> None:
    async def test(connection: AsyncConnection, script: Script) -> None:
        asked = asyncio.create_task(connection.put(REQUEST))
        await script.sequence()
        connection.close("enough")
        with pytest.raises(GatewayFailure, match="enough"):
            await asked

    run(test)
