"""Kerberos on connections to a gateway: agreed on before the first request, by threads and by the event loop."""

from __future__ import annotations

import asyncio
import socket
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Final, cast

from access.kdc import Begun, begin, no_kdc, wait_begun
from access.kerberos import in_words, refused
from access.sasl import Layer
from access.services import GATEWAY, Kerberos
from store.hbase.carried import PIECE_BYTES, CarriedSocket, CarriedTransport
from store.hbase.punctual import PunctualSocket
from store.hbase.sasl import Negotiation, Refused, Sealing

_HUNG_UP: Final = "it hung up before Kerberos was agreed on: where it asks for none, its address has no kerberos://"


def _too_late(limit_ms: int) -> TimeoutError:
    return TimeoutError(
        f"no Kerberos could be agreed on in {limit_ms} ms: where it asks for none, its address has no kerberos://"
    )


@contextmanager
def _in_words(kerberos: Kerberos, host: str) -> Iterator[None]:
    try:
        with in_words(kerberos, GATEWAY, host):
            yield
    except Refused as error:
        raise refused(str(error), kerberos, GATEWAY, host) from error


def _negotiation(begun: Begun) -> tuple[Negotiation, bytes]:
    """With what to send first."""
    negotiation = Negotiation(begun.agreement)
    return negotiation, negotiation.begin(begun.token)


def agree(connected: socket.socket, kerberos: Kerberos, host: str, limit_ms: int) -> Sealing | None:
    """Agree with the gateway at the other end of ``connected``; ``limit_ms`` for the KDC, and for the gateway.

    How frames are to be sealed; ``None``: they go as they are. Raises ``OSError``.
    """
    negotiation, to_send = _negotiation(wait_begun(kerberos, GATEWAY, host, Layer.CONFIDENTIALITY, limit_ms))
    until_s = time.monotonic() + limit_ms / 1_000
    with _in_words(kerberos, host):
        while True:
            connected.sendall(to_send)
            if negotiation.is_done:
                return negotiation.sealing
            connected.settimeout(max(0.001, until_s - time.monotonic()))
            try:
                data = connected.recv(PIECE_BYTES)
            except TimeoutError:
                raise _too_late(limit_ms) from None
            if not data:
                raise ConnectionError(_HUNG_UP)
            to_send = negotiation.feed(data)


class SealedSocket(CarriedSocket):
    """One whose frames are sealed."""

    def __init__(self, connected: PunctualSocket, sealing: Sealing) -> None:
        super().__init__(connected, sealing)
        self._sealing = sealing

    def sendall(self, data: bytes | memoryview) -> None:
        """See ``CarriedSocket``."""
        if sealed := self._sealing.seal(data):
            self._connected.sendall(sealed)


class AgreeingProtocol(asyncio.Protocol):
    """Agrees with a gateway, and hands the transport to ``served``; stays between the two where frames are sealed."""

    def __init__(
        self, kerberos: Kerberos, host: str, negotiation: Negotiation, first: bytes, served: asyncio.Protocol
    ) -> None:
        self._who = kerberos, host
        self._negotiation = negotiation
        self._first = first
        self._served = served
        self._agreed: asyncio.Future[None] = asyncio.get_running_loop().create_future()

    @classmethod
    async def begun(cls, kerberos: Kerberos, host: str, served: asyncio.Protocol, limit_ms: int) -> AgreeingProtocol:
        """For a connection to be made. Raises ``OSError``, as ``TimeoutError`` where no KDC answers in ``limit_ms``."""
        try:
            async with asyncio.timeout(limit_ms / 1_000):
                begun = await asyncio.wrap_future(begin(kerberos, GATEWAY, host, Layer.CONFIDENTIALITY))
        except TimeoutError:
            raise no_kdc(limit_ms) from None
        return cls(kerberos, host, *_negotiation(begun), served)

    async def wait_agreed(self, limit_ms: int) -> None:
        """Return when ``served`` has its transport. Raises ``OSError``; the connection is closed then."""
        try:
            async with asyncio.timeout(limit_ms / 1_000):
                await self._agreed
        except BaseException as error:
            self._transport.abort()
            raise (_too_late(limit_ms) if isinstance(error, TimeoutError) else error) from None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """See ``asyncio.Protocol``."""
        self._transport = cast(asyncio.Transport, transport)  # some event loops' transports only look like one
        self._transport.write(self._first)

    def data_received(self, data: bytes) -> None:
        """See ``asyncio.Protocol``."""
        try:
            with _in_words(*self._who):
                self._receive(data)
        except ConnectionError as error:
            self.connection_lost(error)
            self._transport.abort()

    def _receive(self, data: bytes) -> None:
        negotiation = self._negotiation
        if negotiation.sealing is not None and negotiation.is_done:
            self._served.data_received(negotiation.sealing.unseal(data))
            return
        self._transport.write(negotiation.feed(data))
        if not negotiation.is_done:
            return
        if negotiation.sealing is None:
            self._transport.set_protocol(self._served)
            self._served.connection_made(self._transport)
        else:
            sealed = SealedTransport(self._transport, negotiation.sealing, self.connection_lost)
            self._served.connection_made(sealed)
        if not self._agreed.done():  # nor given up
            self._agreed.set_result(None)

    def connection_lost(self, error: Exception | None) -> None:
        """See ``asyncio.Protocol``."""
        if self._negotiation.is_done:
            self._served.connection_lost(error)
        elif not self._agreed.done():
            self._agreed.set_exception(error or ConnectionError(_HUNG_UP))


class SealedTransport(CarriedTransport):
    """One whose frames are sealed."""

    def __init__(self, transport: asyncio.Transport, sealing: Sealing, lost: Callable[[ConnectionError], None]) -> None:
        super().__init__(transport, lost)
        self._sealing = sealing

    def write(self, data: bytes | bytearray | memoryview) -> None:
        """See ``asyncio.Transport``."""
        try:
            self._transport.write(self._sealing.seal(data))
        except ConnectionError as error:
            self.give_up(error)
