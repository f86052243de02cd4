"""What speaks TLS for a gateway that does not, as stunnel or a sidecar does elsewhere: on loopback, in a thread."""

from __future__ import annotations

import asyncio
import contextlib
import ssl
import threading
from collections.abc import Iterator

from access.server_files import ServerFiles
from access.tls import server_context

CHUNK_BYTES = 2**16
WAIT_SECONDS_MAX = 10.0


class TlsTerminator:
    """Made by ``tls_before``. ``handshakes`` came to their end, ``refused`` did not."""

    def __init__(self, port: int, context: ssl.SSLContext) -> None:
        self.port = 0
        self.handshakes = 0
        self.refused = 0
        self._behind = port
        self._context = context
        self._loop = asyncio.new_event_loop()
        self._connections: set[asyncio.Task[None]] = set()
        self._ready = threading.Event()
        self._thread = threading.Thread(target=self._run, name="TLS terminator", daemon=True)
        self._thread.start()
        assert self._ready.wait(WAIT_SECONDS_MAX)

    def stop(self) -> None:
        self._loop.call_soon_threadsafe(self._stopping.set)
        self._thread.join(WAIT_SECONDS_MAX)
        assert not self._thread.is_alive()

    def hang_up(self) -> None:
        """On everybody; new connections are taken on."""
        self._loop.call_soon_threadsafe(self._cancel_all)

    def _run(self) -> None:
        with asyncio.Runner(loop_factory=lambda: self._loop) as runner:
            runner.run(self._serve())

    async def _serve(self) -> None:
        self._stopping = asyncio.Event()
        self._loop.set_exception_handler(self._failed)  # a handshake that did not come about
        server = await asyncio.start_server(self._connected, "127.0.0.1", 0, ssl=self._context)
        self.port = server.sockets[0].getsockname()[1]
        self._ready.set()
        await self._stopping.wait()
        server.close()
        self._cancel_all()
        await asyncio.gather(*self._connections, return_exceptions=True)

    def _failed(self, _loop: asyncio.AbstractEventLoop, _context: object) -> None:
        self.refused += 1

    async def _connected(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.handshakes += 1
        task = asyncio.current_task()
        assert task is not None
        self._connections.add(task)
        try:
            behind_reader, behind_writer = await asyncio.open_connection("127.0.0.1", self._behind)
            try:
                ways = (
                    asyncio.create_task(_copy(reader, behind_writer)),
                    asyncio.create_task(_copy(behind_reader, writer)),
                )
                try:
                    await asyncio.wait(ways, return_when=asyncio.FIRST_COMPLETED)
                finally:
                    for way in ways:
                        way.cancel()
                    await asyncio.gather(*ways, return_exceptions=True)
            finally:
                behind_writer.transport.abort()
        except (OSError, asyncio.CancelledError):
            pass
        finally:
            writer.transport.abort()
            self._connections.discard(task)

    def _cancel_all(self) -> None:
        for each in self._connections:
            each.cancel()


async def _copy(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    with contextlib.suppress(OSError):
        while data := await reader.read(CHUNK_BYTES):
            writer.write(data)
            await writer.drain()


@contextlib.contextmanager
def tls_before(port: int, files: ServerFiles) -> Iterator[TlsTerminator]:
    """TLS on a port of its own, for what listens in clear text at ``port``; with a client's authority in ``files``
    whoever connects has to show a certificate of it.
    """
    terminator = TlsTerminator(port, server_context(files))
    try:
        yield terminator
    finally:
        terminator.stop()
