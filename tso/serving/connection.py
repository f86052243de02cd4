"""One client's connection to the oracle: its frames, its answers, and what it may hold and do.

The invariant: no frame is looked into that is not granted, and none is before the hello (`tso.serving.reception`).
"""

from __future__ import annotations

import asyncio
import logging
from typing import TYPE_CHECKING, Final, cast

from access import EVERYBODY, Bearer
from access.tls import HANDSHAKE_BEGIN
from tso.serving.reception import NOTHING, Visitor, opened
from wire import (
    HELLO_BYTES_MAX,
    AbortRequest,
    BadRequest,
    DetailsRequest,
    DrainRequest,
    Frame,
    FrameDecoder,
    HandoverRequest,
    HeartbeatRequest,
    HelloRequest,
    HindranceRequest,
    Kind,
    LargeCommitRequest,
    LivesRequest,
    Message,
    MetricsRequest,
    NotAllowed,
    NotAllowedCode,
    OutcomeRequest,
    Overloaded,
    ProtocolError,
    StatusRequest,
    WriteSetPart,
    decode,
    encode,
)

if TYPE_CHECKING:
    from tso.serving.server import Server

log: Final = logging.getLogger(__name__)

QUESTIONS_PER_TURN_MAX: Final = 8
"""Of one connection in one turn of the event loop; more of them are refused as ``Overloaded``. They are answered on the
spot, so that no count of unanswered requests bounds them, and some are long to answer."""

REJECTION_MS: Final = 300
"""How long an answer to a wrong token takes."""

_NO_CERTIFICATE: Final = NotAllowed(
    NotAllowedCode.TLS_NEEDED, "a client's certificate is asked for: set tls_certificate_file and tls_key_file"
)
_QUESTIONS: Final = frozenset(
    {Kind.STATUS_REQUEST, Kind.METRICS_REQUEST, Kind.DETAILS_REQUEST, Kind.HINDRANCE_REQUEST, Kind.LIVES_REQUEST}
)
_REFUSALS: Final = {Overloaded: "overloaded", BadRequest: "bad_request", NotAllowed: "not_allowed"}

Request = (
    Frame
    | WriteSetPart
    | LargeCommitRequest
    | AbortRequest
    | OutcomeRequest
    | HeartbeatRequest
    | StatusRequest
    | MetricsRequest
    | DetailsRequest
    | HindranceRequest
    | HandoverRequest
    | DrainRequest
    | LivesRequest
)
"""Begins and commits stay frames: the pipeline reads those of all connections together."""

_BEGIN: Final = Kind.BEGIN_REQUEST
_COMMIT: Final = Kind.COMMIT_REQUEST


class Connection(asyncio.Protocol):
    """One client's connection. Answers of one wake-up go out in one write."""

    def __init__(self, server: Server, refusal: NotAllowed | None = None, *, certificate_needed: bool = False) -> None:
        self._certificate_needed = certificate_needed
        self._refusal = refusal
        """What it is told whatever it says."""
        self._server = server
        self._limits = server.limits
        self._requests_max = server.limits.connection_requests_max
        self._loop = asyncio.get_running_loop()
        self._decoder = FrameDecoder(frame_bytes_max=min(HELLO_BYTES_MAX, server.limits.frame_bytes_max))
        self._allowed = NOTHING
        """By kind of frame, whether it is granted: the one question that a frame costs."""
        self._visitor: Visitor | None = None
        self._bearer = Bearer(EVERYBODY)
        self._rejected = False
        self._partial_since_s: float | None = None
        self._unanswered = 0
        self._questions = 0
        """In this turn of the event loop."""
        self._outgoing: list[bytes] = []
        self.held_bytes = 0
        """Of a frame that is not whole yet, as the server's books have them."""
        self.came_s = self.active_s = self._loop.time()
        """When it last sent something or was answered, on the loop's clock."""
        self.closing = False
        """Nothing is read of it any more; it may still be reading its last answers."""
        self._transport: asyncio.Transport
        self.gone: asyncio.Future[None] = self._loop.create_future()
        """Done when the connection is."""

    @property
    def is_in(self) -> bool:
        """Whether it has said hello, and may stay."""
        return self._visitor is not None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Let it say hello, or turn it away."""
        self._transport = cast(asyncio.Transport, transport)  # some event loops' transports only look like one
        if self._certificate_needed and not transport.get_extra_info("peercert"):
            self._refusal = _NO_CERTIFICATE
        if not self._server.let_say_hello(self):
            self._abort()

    def connection_lost(self, error: Exception | None) -> None:
        """Forget it; answers that are still owed go nowhere."""
        self._close()
        self._server.forget(self)
        if self._visitor is not None:
            self._bearer.requests -= self._unanswered
            self._bearer = Bearer(EVERYBODY)  # what is answered from now on is counted there, where nobody looks
            self._server.reception.leave(self._visitor)
        self.gone.set_result(None)

    def data_received(self, data: bytes) -> None:
        """Bytes came: every whole frame is a request."""
        if self.closing:
            return
        if self._refusal is not None:
            self.turn_away(self._refusal)
            return
        self.active_s = self._loop.time()
        decoder, completed = self._decoder, False
        try:
            decoder.take(data)
            while (frame := decoder.next_frame()) is not None:
                completed = True
                self._request(frame)
        except ProtocolError as error:
            begins_tls = not self.is_in and data.startswith(HANDSHAKE_BEGIN)
            self.refuse(ProtocolError("this port does not speak TLS") if begins_tls else error)
            return
        if self._decoder.buffered_bytes or self.held_bytes:
            self._account(completed=completed)

    def send(self, message: Message, request_id: int) -> None:
        """Answer a request; nothing happens when the connection has gone."""
        self.send_frame(encode(message, request_id))

    def send_frame(self, frame: bytes) -> None:
        """See ``Requester``."""
        self._unanswered -= 1
        self._bearer.requests -= 1
        self.active_s = self._loop.time()
        self._write(frame)

    def refuse(self, error: ProtocolError) -> None:
        """See ``Requester``."""
        log.info("closing a connection of %s: %s", self._transport.get_extra_info("peername"), error.reason)
        self.turn_away(BadRequest(error.reason), error.request_id)

    def drop(self) -> None:
        """Close the connection, after the answers that were given; what is owed stays unanswered."""
        if self.closing:
            return
        self.flush()
        self._close()
        self._transport.close()
        self._loop.call_later(self._limits.linger_ms_max / 1000, self._transport.abort)

    def look_after(self, now_s: float) -> None:
        """Drop the connection if it has not said hello for too long, or may not stay any more."""
        if self._visitor is None:
            if (now_s - self.came_s) * 1000 > self._limits.hello_ms_max:
                self.turn_away(BadRequest(f"no hello came in {self._limits.hello_ms_max} ms"))
        elif (refusal := self._server.reception.check(self._visitor)) is not None:
            self.turn_away(refusal)
        else:
            self._allowed = self._visitor.allowed

    def drop_if_unfinished(self, now_s: float) -> None:
        """Drop the connection if the frame that it is sending has been under way for too long."""
        since_s = self._partial_since_s
        if since_s is not None and (now_s - since_s) * 1000 > self._limits.partial_frame_ms_max:
            self.turn_away(BadRequest(f"a frame was not completed in {self._limits.partial_frame_ms_max} ms"))

    def is_idle(self, now_s: float) -> bool:
        """Whether it is owed nothing, sends nothing, and has been so for `connection_idle_ms_min`."""
        idle_ms = (now_s - self.active_s) * 1000
        return not self._unanswered and not self.held_bytes and idle_ms >= self._limits.connection_idle_ms_min

    def turn_away(self, message: Overloaded | BadRequest | NotAllowed, request_id: int = 0) -> None:
        """Say why, and close the connection."""
        if self.closing:
            return
        self._server.metering.refused(_REFUSALS[type(message)])
        self._write(encode(message, request_id))
        self.drop()

    def _request(self, frame: Frame) -> None:
        kind, bearer = frame.kind, self._bearer
        if not self._allowed[kind]:
            self._not_allowed(frame)
            return
        read_together = kind is _BEGIN or kind is _COMMIT
        request = frame if read_together else cast(Request, decode(frame))
        self._unanswered += 1
        bearer.requests += 1
        beyond = self._unanswered > self._requests_max or bearer.is_beyond
        if not read_together and kind in _QUESTIONS:
            self._questions += 1
            beyond = beyond or self._questions > QUESTIONS_PER_TURN_MAX
        if beyond:
            self._server.metering.refused("overloaded")
            self.send(Overloaded(self._limits.retry_after_ms), frame.request_id)
        else:
            self._server.handle(self, frame.request_id, request)

    def _not_allowed(self, frame: Frame) -> None:
        """A frame that is not granted: most often the hello."""
        if self._rejected or self.closing:
            return
        if self._visitor is None:
            self._hello(opened(frame), frame.request_id)
            return
        refusal = self._visitor.refusal(frame)
        self._unanswered += 1
        self._bearer.requests += 1
        self._server.metering.refused("not_allowed")
        self.send(refusal, frame.request_id)

    def _hello(self, hello: HelloRequest, request_id: int) -> None:
        visitor = self._server.reception.receive(hello)
        if isinstance(visitor, NotAllowed):
            self._reject(visitor, request_id)
            return
        self._visitor, self._bearer, self._allowed = visitor, visitor.bearer, visitor.allowed
        self._decoder.take_up_to(self._limits.frame_bytes_max)
        if self._server.let_in(self):
            self._write(encode(visitor.reply, request_id))
        else:
            log.warning("turned a connection away: %d are open", len(self._server.connections) - 1)
            self.turn_away(Overloaded(self._limits.retry_after_ms))
            self._rejected, self._allowed = True, NOTHING

    def _reject(self, refusal: NotAllowed, request_id: int) -> None:
        """Who tries tokens waits for each answer, and nobody else does; nothing more is read of him meanwhile."""
        log.warning("did not let in %s: %s", self._transport.get_extra_info("peername"), refusal.text)
        self._rejected = True
        if refusal.code is NotAllowedCode.NO_COMMON_VERSION:
            self.turn_away(refusal, request_id)
            return
        self._transport.pause_reading()
        self._loop.call_later(REJECTION_MS / 1000, self.turn_away, refusal, request_id)

    def _account(self, *, completed: bool) -> None:
        held, before = self._decoder.buffered_bytes, self.held_bytes
        if held == 0:
            self._partial_since_s = None
        elif completed or self._partial_since_s is None:
            self._partial_since_s = self._loop.time()
        self.held_bytes = held
        self._server.hold(held - before)

    def _write(self, frame: bytes) -> None:
        if self.closing:
            return
        if not self._outgoing:
            self._server.unflushed(self)
        self._outgoing.append(frame)

    def flush(self) -> None:
        """Send what there is to send."""
        self._questions = 0
        if self.closing or not self._outgoing:
            return
        self._transport.write(b"".join(self._outgoing))
        self._outgoing.clear()
        if self._transport.get_write_buffer_size() > self._limits.connection_write_bytes_max:
            log.warning("dropped a connection that does not read its answers")
            self._abort()

    def _abort(self) -> None:
        self._close()
        self._transport.abort()

    def _close(self) -> None:
        """Read nothing more, and give back at once what is held: it may linger, and others need the room."""
        self.closing = True
        self._partial_since_s = None
        self._decoder = FrameDecoder(frame_bytes_max=self._limits.frame_bytes_max)
        more_bytes, self.held_bytes = -self.held_bytes, 0
        self._server.hold(more_bytes)
