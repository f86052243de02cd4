"""The client's side of virtual TCP: stand-ins for ``socket`` and ``select``."""

from __future__ import annotations

import select as real_select
import socket as real_socket
from typing import Any

from tests.simulation.kernel import Kernel, WaitQueue
from tests.simulation.network import Endpoint, Network


class Socket:
    """A connected stream socket with a time-out."""

    def __init__(self, kernel: Kernel, endpoint: Endpoint, timeout_seconds: float | None) -> None:
        self._kernel = kernel
        self._waiting = WaitQueue(kernel)
        self._timeout_seconds = timeout_seconds
        self.endpoint = endpoint
        endpoint.on_change = self._waiting.wake_all

    def settimeout(self, value: float | None) -> None:
        self._timeout_seconds = value

    def setsockopt(self, *arguments: Any) -> None:
        """Options make no difference here."""

    def sendall(self, data: bytes) -> None:
        self._kernel.point("send")
        self._require_open()
        self.endpoint.send(data)

    def recv(self, bufsize: int) -> bytes:
        self._kernel.point("receive")
        self._require_open()
        if not self._waiting.wait_for(lambda: self.endpoint.is_readable, self._timeout_seconds):
            raise TimeoutError("timed out")
        if self.endpoint.received:
            return self.endpoint.read(bufsize)
        self._require_open()
        return b""

    def close(self) -> None:
        self.endpoint.close()

    def __enter__(self) -> Socket:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()

    def _require_open(self) -> None:
        if self.endpoint.closed:
            raise OSError(9, "Bad file descriptor")
        if self.endpoint.broken:
            raise ConnectionResetError(104, "Connection reset by peer")


class SocketModule:
    """Takes the place of the module ``socket``; its constants are the real ones."""

    timeout = TimeoutError
    error = OSError
    socket = Socket

    def __init__(self, kernel: Kernel, network: Network) -> None:
        self._kernel = kernel
        self._network = network

    def create_connection(self, address: tuple[str, int], timeout: float | None = None) -> Socket:
        endpoint = self._network.connect(f"{address[0]}:{address[1]}", 60.0 if timeout is None else timeout)
        return Socket(self._kernel, endpoint, timeout)

    def __getattr__(self, name: str) -> Any:
        if name.isupper():
            return getattr(real_socket, name)
        raise NotImplementedError(f"the simulation has no stand-in for socket.{name}: add one to sockets.py")


class Poll:
    """``select.poll()`` for questions that do not wait."""

    def __init__(self) -> None:
        self._sockets: list[Socket] = []

    def register(self, fd: Socket, eventmask: int) -> None:
        self._sockets.append(fd)

    def poll(self, timeout: float) -> list[tuple[int, int]]:
        if timeout != 0:
            raise NotImplementedError("the simulated poll does not wait")
        return [(each.endpoint.number, real_select.POLLIN) for each in self._sockets if each.endpoint.is_readable]


class SelectModule:
    """Takes the place of the module ``select``; its constants are the real ones."""

    poll = Poll

    def __getattr__(self, name: str) -> Any:
        if name.isupper():
            return getattr(real_select, name)
        raise NotImplementedError(f"the simulation has no stand-in for select.{name}: add one to sockets.py")
