"""One connection to one oracle: the opening, then requests out and answers in. For its event loop's thread only."""

from __future__ import annotations

import asyncio
import socket
import ssl
from typing import TYPE_CHECKING, cast

from client.connection.exchange import Exchange
from client.errors import ReplyLost
from wire import Greeting, HelloReply, ProtocolError
from wire.greeting import Answer

if TYPE_CHECKING:
    from client.connection.dispatch import Dispatcher


class Line(asyncio.BufferedProtocol):
    """One connection to one oracle."""

    def __init__(self, dispatcher: Dispatcher, address: str, greeting: Greeting) -> None:
        self.address = address
        self.welcome: asyncio.Future[Answer] = dispatcher.loop.create_future()
        """What the oracle says to the hello; before that nothing else is sent."""
        self._greeting = greeting
        self.is_open = False
        """The hello was answered well: requests may go out."""
        self.has_answered = False
        """Whether any request was ever answered."""
        self.exchange = Exchange(dispatcher.queue, lambda tickets, why: dispatcher.refused(self, tickets, why))
        self._dispatcher = dispatcher
        self._settling = False
        self._transport: asyncio.Transport | None = None
        self._reason = "the connection was closed"

    def no_answer(self) -> ReplyLost:
        """What a caller gets who stops waiting for it."""
        return ReplyLost(f"no answer from the oracle at {self.address}: it took too long")

    def late_ms(self, now_s: float) -> float:
        """How long the oldest request has waited for its answer; 0 where none waits."""
        oldest_s = self.exchange.oldest_s()
        return 0.0 if oldest_s is None else 1000 * (now_s - oldest_s)

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Say hello."""
        self._transport = cast(asyncio.Transport, transport)  # some event loops' transports only look like one
        plain = transport.get_extra_info("socket")
        if plain is not None:
            plain.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self.send(self._greeting.first)

    def get_buffer(self, sizehint: int) -> memoryview:
        """Where to receive into."""
        return self._dispatcher.receive_buffer

    def buffer_updated(self, nbytes: int) -> None:
        """Answers came."""
        data = bytes(self._dispatcher.receive_buffer[:nbytes])
        if not self.welcome.done():
            self._greeted(data)
            return
        try:
            self.exchange.received(data)
        except ProtocolError as error:
            self._nonsense(error)
            return
        self.has_answered = True
        if not self._settling:
            self._settle()

    def _greeted(self, data: bytes) -> None:
        try:
            answer = self._greeting.received(data)
        except ProtocolError as error:
            self.welcome.set_exception(ConnectionError(f"it does not speak our protocol: {error}"))
        else:
            if answer is not None:
                self.welcome.set_result(answer)
                self.is_open = isinstance(answer, HelloReply)

    def _settle(self) -> None:
        self._settling = False
        try:
            self._settling = self.exchange.settle()
        except ProtocolError as error:
            self._nonsense(error)
            return
        self._dispatcher.answered(self)
        if self._settling:
            self._dispatcher.loop.call_soon(self._settle)
        else:
            self._dispatcher.leave_if_idle(self)

    def _nonsense(self, error: ProtocolError) -> None:
        self.leave(str(error))
        self._dispatcher.forget(self)

    def connection_lost(self, error: Exception | None) -> None:
        """Report it."""
        if not self.welcome.done():
            if isinstance(error, ssl.SSLError):
                self.welcome.set_exception(error)
                return
            why = f": {error}" if error else ""
            if self._transport is not None and self._transport.get_extra_info("ssl_object") is not None:
                why += ": does it accept the certificate of this client?"
            self.welcome.set_exception(ConnectionError(f"it hung up before it answered our hello{why}"))
        elif self.is_open:
            self._dispatcher.lost(self, str(error) if error else self._reason)

    def send(self, data: bytes) -> None:
        """Send frames."""
        assert self._transport is not None
        self._transport.write(data)

    def leave(self, reason: str) -> None:
        """Hang up, for that reason; what is under way is lost."""
        self._reason = reason
        self.abort()

    def abort(self) -> None:
        """Hang up."""
        self.welcome.cancel()
        if self._transport is not None:
            self._transport.abort()
