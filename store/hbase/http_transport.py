"""HTTP on connections to a gateway, by threads and by the event loop: what is framed above goes by requests below."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from concurrent.futures import Future
from functools import partial
from typing import cast

from access.kdc import Begun, begin, wait_begun
from access.sasl import Layer
from access.services import GATEWAY, Kerberos
from store.hbase.carried import CarriedSocket, CarriedTransport
from store.hbase.http import HttpTalk
from store.hbase.punctual import PunctualSocket


class HttpSocket(CarriedSocket):
    """One over which requests go by HTTP.

    With ``kerberos`` each shows who asks; a KDC is waited for ``limit_ms``.
    """

    def __init__(
        self, connected: PunctualSocket, talk: HttpTalk, host: str, kerberos: Kerberos | None, limit_ms: int
    ) -> None:
        super().__init__(connected, talk)
        self._talk = talk
        self._begun: Callable[[], Begun | None] = lambda: None
        if kerberos is not None:
            self._begun = partial(wait_begun, kerberos, GATEWAY, host, Layer.NONE, limit_ms)

    @property
    def is_over(self) -> bool:
        """Whether the gateway has said that it takes no more requests."""
        return self._talk.is_over

    def sendall(self, data: bytes | memoryview) -> None:
        """See ``CarriedSocket``."""
        for message in self._talk.messages(data):
            self._connected.sendall(self._talk.request(message, self._begun()))


class HttpProtocol(asyncio.Protocol):
    """Stands between a transport and ``served``, which sends and gets frames."""

    def __init__(self, served: asyncio.Protocol, talk: HttpTalk, host: str, kerberos: Kerberos | None) -> None:
        self._served = served
        self._talk = talk
        self._begin = None if kerberos is None else partial(begin, kerberos, GATEWAY, host, Layer.NONE)

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """See ``asyncio.Protocol``."""
        self._transport = cast(asyncio.Transport, transport)  # some event loops' transports only look like one
        self._served.connection_made(HttpTransport(self._transport, self._talk, self._begin, self.connection_lost))

    def data_received(self, data: bytes) -> None:
        """See ``asyncio.Protocol``."""
        try:
            frames = self._talk.unseal(data)
        except ConnectionError as error:
            self.connection_lost(error)
            self._transport.abort()
            return
        if frames:
            self._served.data_received(frames)

    def connection_lost(self, error: Exception | None) -> None:
        """See ``asyncio.Protocol``."""
        self._served.connection_lost(error)


class HttpTransport(CarriedTransport):
    """One over which requests go by HTTP.

    ``begin``: where the gateway asks for Kerberos; a request goes out once that has come to its end.
    """

    def __init__(
        self,
        transport: asyncio.Transport,
        talk: HttpTalk,
        begin: Callable[[], Future[Begun]] | None,
        lost: Callable[[ConnectionError], None],
    ) -> None:
        super().__init__(transport, lost)
        self._talk = talk
        self._begin = begin

    def write(self, data: bytes | bytearray | memoryview) -> None:
        """See ``asyncio.Transport``."""
        try:
            for message in self._talk.messages(data):
                if self._begin is None:
                    self._transport.write(self._talk.request(message))
                else:
                    asyncio.wrap_future(self._begin()).add_done_callback(partial(self._write_shown, message))
        except ConnectionError as error:
            self.give_up(error)

    def is_closing(self) -> bool:
        """See ``asyncio.Transport``; also where the gateway has said that it takes no more requests."""
        return self._talk.is_over or super().is_closing()

    def _write_shown(self, message: bytes, begun: asyncio.Future[Begun]) -> None:
        """A connection that was given up meanwhile takes nothing more."""
        try:
            self._transport.write(self._talk.request(message, begun.result()))
        except ConnectionError as error:
            self.give_up(error)
