"""The server's side of virtual TCP, as asyncio presents it to a protocol."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Final

from tests.simulation.network import Endpoint, Network
from tests.simulation.processes import Process

if TYPE_CHECKING:
    from tests.simulation.event_loop import VirtualLoop

AnyProtocol = asyncio.Protocol | asyncio.BufferedProtocol

READ_BYTES_MAX: Final = 256 * 2**10


class VirtualTransport(asyncio.Transport):
    """One accepted connection, and the protocol that it feeds."""

    def __init__(self, loop: VirtualLoop, endpoint: Endpoint, protocol: AnyProtocol) -> None:
        super().__init__()
        self._loop = loop
        self._endpoint = endpoint
        self._protocol = protocol
        self._closing = False
        self._reading = False
        endpoint.on_change = self._changed
        protocol.connection_made(self)
        self._changed()

    def write(self, data: bytes | bytearray | memoryview) -> None:
        if not self._closing and not self._endpoint.broken:
            self._endpoint.send(bytes(data))

    def close(self) -> None:
        self._end(None, self._endpoint.close)

    def abort(self) -> None:
        self._end(None, self._endpoint.reset)

    def is_closing(self) -> bool:
        return self._closing

    def get_write_buffer_size(self) -> int:
        return 0

    def get_extra_info(self, name: str, default: Any = None) -> Any:
        return default

    def _changed(self) -> None:
        """Called by the virtual kernel at any time: the loop looks when its process runs."""
        if not self._reading and not self._closing and self._endpoint.is_readable:
            self._reading = True
            self._loop.call_soon_threadsafe(self._read)

    def _read(self) -> None:
        self._reading = False
        if self._closing:
            return
        if self._endpoint.received:
            self._pass_on(self._protocol)
            self._changed()
        elif self._endpoint.broken:
            self._end(ConnectionResetError(104, "Connection reset by peer"), self._endpoint.close)
        elif not self._protocol.eof_received():
            self.close()

    def _pass_on(self, protocol: AnyProtocol) -> None:
        if isinstance(protocol, asyncio.Protocol):
            protocol.data_received(self._endpoint.read(READ_BYTES_MAX))
        else:
            buffer = memoryview(protocol.get_buffer(-1)).cast("B")
            data = self._endpoint.read(len(buffer))
            buffer[: len(data)] = data
            protocol.buffer_updated(len(data))

    def _end(self, error: Exception | None, leave: Callable[[], None]) -> None:
        if self._closing:
            return
        self._closing = True
        leave()
        self._loop.call_soon(self._protocol.connection_lost, error)


class ListeningSocket:
    """What ``Server.sockets`` shows of a listening socket."""

    def __init__(self, host: str, port: int) -> None:
        self._address = (host, port)

    def setsockopt(self, *arguments: Any) -> None:
        """Options make no difference here."""

    def getsockname(self) -> tuple[str, int]:
        return self._address


class VirtualServer:
    """``asyncio.Server`` on one address."""

    def __init__(
        self, network: Network, process: Process, host: str, port: int, accept: Callable[[Endpoint], None]
    ) -> None:
        self._stop = network.listen(process, f"{host}:{port}", accept)
        self.sockets = (ListeningSocket(host, port),)

    def close(self) -> None:
        self._stop()

    async def wait_closed(self) -> None:
        """Nothing is left to wait for."""
