"""Sockets and transports over which frames go otherwise than as they are: what all of them have."""

from __future__ import annotations

import asyncio
from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import Final, Protocol

from store.hbase.punctual import PunctualSocket

PIECE_BYTES: Final = 2**16


class Carriage(Protocol):
    """How frames are made of what comes."""

    def unseal(self, data: bytes | memoryview) -> bytes:
        """Those that are whole with ``data``, which may be none. Raises ``ConnectionError``."""


class CarriedSocket(ABC):
    """``connected``; what Thrift's library and ours ask of a socket. For one thread at a time.

    What the limits of ``PunctualSocket`` are for are the bytes that really go.
    """

    def __init__(self, connected: PunctualSocket, carriage: Carriage) -> None:
        self._connected = connected
        self._carriage = carriage
        self._opened = bytearray()

    @abstractmethod
    def sendall(self, data: bytes | memoryview) -> None:
        """Send the frames that are whole with ``data``; a part of one waits for the others."""

    def settimeout(self, seconds: float) -> None:
        """See ``PunctualSocket``."""
        self._connected.settimeout(seconds)

    def recv(self, bytes_max: int) -> bytes:
        """Some of the answer; nothing once the other side has hung up."""
        while not self._opened and (data := self._connected.recv(PIECE_BYTES)):
            self._opened += self._carriage.unseal(data)
        taken = bytes(self._opened[:bytes_max])
        del self._opened[:bytes_max]
        return taken

    def recv_into(self, buffer: memoryview) -> int:
        """Fill some of ``buffer`` with the answer; 0 bytes once the other side has hung up."""
        taken = self.recv(len(buffer))
        buffer[: len(taken)] = taken
        return len(taken)

    def shutdown(self, how: int) -> None:
        """See ``socket.socket``."""
        self._connected.shutdown(how)

    def close(self) -> None:
        """See ``socket.socket``."""
        self._connected.close()


class CarriedTransport(asyncio.Transport):
    """``transport``: as much of one as our connections ask for. ``lost`` is called where frames cannot go."""

    def __init__(self, transport: asyncio.Transport, lost: Callable[[ConnectionError], None]) -> None:
        super().__init__()
        self._transport = transport
        self._lost = lost

    def give_up(self, error: ConnectionError) -> None:
        """Hang up, and say why."""
        self._lost(error)
        self.abort()

    def is_closing(self) -> bool:
        """See ``asyncio.Transport``."""
        return self._transport.is_closing()

    def abort(self) -> None:
        """See ``asyncio.Transport``."""
        self._transport.abort()
