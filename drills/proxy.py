"""Proxies on loopback that stand before a service, so that one process can be cut off from one side of the world.

They work on bytes and know no protocol. All of a drill's proxies share one event loop in a thread of its own. What is
sent into a black hole is held and arrives when the proxy passes again, as after a partition of a network that heals:
so a write that a process sent before it lost its lease can be made to arrive after somebody else has taken over.
"""

from __future__ import annotations

import asyncio
import contextlib
import socket
import struct
import threading
from collections.abc import Coroutine
from enum import Enum
from typing import Any, Final, Self, TypeVar

LOOPBACK: Final = "127.0.0.1"
CHUNK_BYTES: Final = 64 * 1_024
"""What a connection in a black hole holds in each direction; the rest waits in the sockets' buffers."""
ORDER_SECONDS_MAX: Final = 10.0
"""How long an order to the event loop may take."""
DELAY_MS_MAX: Final = 60_000

_RESET_ON_CLOSE: Final = struct.pack("ii", 1, 0)

Result = TypeVar("Result")


class Mode(Enum):
    """What a proxy does with its connections."""

    PASS = "pass"
    """Forward everything."""
    CUT = "cut"
    """Reset every connection, and each new one at once."""
    BLACK_HOLE = "black hole"
    """Accept, keep, forward nothing."""
    SLOW = "slow"
    """Forward everything, each piece after a delay."""


class Proxies:
    """The event loop of a drill's proxies; a context manager, at whose end they are all gone."""

    def __init__(self) -> None:
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, name="proxies", daemon=True)
        self._opened: list[Proxy] = []
        self._thread.start()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_exception: object) -> None:
        self.close()

    def open(self, name: str, target: str | None = None) -> Proxy:
        """A proxy on a port that the system chooses, before ``target``; one without resets callers.

        ``target`` is ``host:port``; how it is spoken to may stand before that, as in ``tls://host:port``, and is as
        well said of the proxy, which passes TLS on as it passes all else.
        """
        proxy = Proxy(name, target, self)
        self.order(proxy._listen())
        self._opened.append(proxy)
        return proxy

    def close(self) -> None:
        """Reset all connections, and end the loop and its thread."""
        if not self._thread.is_alive():
            return
        for proxy in self._opened:
            self.order(proxy._end())
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join(ORDER_SECONDS_MAX)
        self._loop.close()

    def order(self, work: Coroutine[Any, Any, Result]) -> Result:
        """Have the loop do something, and wait for it."""
        return asyncio.run_coroutine_threadsafe(work, self._loop).result(ORDER_SECONDS_MAX)


class Proxy:
    """One listening port and the service behind it. Its methods may be called from any thread."""

    def __init__(self, name: str, target: str | None, proxies: Proxies) -> None:
        self.name = name
        self.port = 0
        transport, slashes, bare = (target or "").rpartition("://")
        self._spoken_as = transport + slashes
        self._target = bare or None
        self._proxies = proxies
        self._mode = Mode.PASS
        self._delay_seconds = 0.0
        self._gate = asyncio.Event()
        self._gate.set()
        self._server: asyncio.Server | None = None
        self._links: set[_Link] = set()

    @property
    def address(self) -> str:
        """Where it listens, and how it is spoken to: as what it was opened before."""
        return f"{self._spoken_as}{LOOPBACK}:{self.port}"

    @property
    def mode(self) -> Mode:
        """What it does now."""
        return self._mode

    @property
    def held_bytes(self) -> int:
        """What clients sent and the service has not been given."""
        return sum(link.held_bytes for link in list(self._links))

    @property
    def connections(self) -> int:
        """Connections that are open."""
        return len(self._links)

    def set_target(self, target: str) -> None:
        """Put it before another service, for the connections to come."""
        self._target = target

    def set_mode(self, mode: Mode, *, delay_ms: int = 0) -> None:
        """Do something else from now on; ``delay_ms`` is for ``SLOW``. Raises ``ValueError`` for an absurd one."""
        if (mode is Mode.SLOW) != (0 < delay_ms <= DELAY_MS_MAX):
            raise ValueError(f"a slow proxy has a delay of 1 to {DELAY_MS_MAX} ms, and no other has one: {delay_ms}")
        self._proxies.order(self._change(mode, delay_ms / 1_000))

    async def _listen(self) -> None:
        self._server = await asyncio.start_server(self._accept, LOOPBACK, 0, limit=CHUNK_BYTES)
        self.port = self._server.sockets[0].getsockname()[1]

    async def _change(self, mode: Mode, delay_seconds: float) -> None:
        self._mode, self._delay_seconds = mode, delay_seconds
        if mode is Mode.BLACK_HOLE:
            self._gate.clear()
        else:
            self._gate.set()
        if mode is Mode.CUT:
            await self._reset_all()

    async def _end(self) -> None:
        if self._server is not None:
            self._server.close()
        self._mode = Mode.CUT
        await self._reset_all()

    async def _reset_all(self) -> None:
        links = list(self._links)
        for link in links:
            link.reset()
        await asyncio.gather(*(link.ended.wait() for link in links))

    async def _accept(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        link = _Link(self, reader, writer)
        self._links.add(link)
        try:
            await link.run()
        finally:
            self._links.discard(link)
            link.ended.set()

    async def _pass(self) -> None:
        """Hold up what comes until it may go on; raises ``ConnectionError`` where it never may."""
        await self._gate.wait()
        if self._mode is Mode.CUT:
            raise ConnectionResetError(f"{self.name} is cut")
        if self._delay_seconds:
            await asyncio.sleep(self._delay_seconds)

    async def _dial(self) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
        await self._pass()
        if self._target is None:
            raise ConnectionRefusedError(f"{self.name} has no target yet")
        host, _, port = self._target.rpartition(":")
        return await asyncio.open_connection(host, int(port), limit=CHUNK_BYTES)


class _Link:
    """One accepted connection and, once it is dialled, the one to the service."""

    def __init__(self, proxy: Proxy, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.held_bytes = 0
        self.ended = asyncio.Event()
        self._proxy = proxy
        self._reader = reader
        self._writers = [writer]
        self._work: asyncio.Future[Any] | None = None

    def reset(self) -> None:
        """End both connections so that both ends see a reset, not an orderly close."""
        if self._work is not None:
            self._work.cancel()
        for writer in self._writers:
            _reset(writer)

    async def run(self) -> None:
        """Forward in both directions until both have ended, or one fails."""
        self._work = asyncio.ensure_future(self._forward())
        try:
            await self._work
        except (OSError, asyncio.CancelledError):
            self.reset()
        for writer in self._writers:
            writer.close()
            with contextlib.suppress(OSError):
                await writer.wait_closed()

    async def _forward(self) -> None:
        reader, writer = await self._proxy._dial()
        self._writers.append(writer)
        there = asyncio.ensure_future(self._pump(self._reader, writer, from_client=True))
        back = asyncio.ensure_future(self._pump(reader, self._writers[0], from_client=False))
        try:
            await asyncio.gather(there, back)
        finally:
            for pump in (there, back):
                pump.cancel()
            await asyncio.gather(there, back, return_exceptions=True)

    async def _pump(self, source: asyncio.StreamReader, sink: asyncio.StreamWriter, *, from_client: bool) -> None:
        while chunk := await source.read(CHUNK_BYTES):
            self.held_bytes += len(chunk) * from_client
            try:
                await self._proxy._pass()
            finally:
                self.held_bytes -= len(chunk) * from_client
            sink.write(chunk)
            await sink.drain()
        await self._proxy._pass()
        if sink.can_write_eof():
            sink.write_eof()


def _reset(writer: asyncio.StreamWriter) -> None:
    connection = writer.get_extra_info("socket")
    with contextlib.suppress(OSError):
        connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, _RESET_ON_CLOSE)
    writer.transport.abort()
