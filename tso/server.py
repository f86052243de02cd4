"""The binary protocol's front door: connections, frames, and what is answered without the oracle.

Whatever a connection sends, it can only hurt itself: a broken frame gets its reason and the connection is closed; a
connection that does not read its answers, or never completes its frames, is dropped; everything it may hold is bounded.
Where all connections together reach a bound, who holds most goes, or who has been idle for longest, and never one that
holds nothing and works.
A standby answers `NotPrimary` with the primary's address at once, and every process answers `StatusRequest`,
`MetricsRequest` and `DetailsRequest`.
"""

from __future__ import annotations

import asyncio
import logging
import socket
from collections.abc import Callable
from typing import cast

from tso.arrivals import Arrival
from tso.details import Own, details
from tso.metering import Metering
from tso.observing import metrics
from tso.pipeline import Pipeline
from tso.settings import Limits
from wire import (
    AbortRequest,
    BadRequest,
    BeginRequest,
    DetailsRequest,
    Frame,
    FrameDecoder,
    HandoverRequest,
    HeartbeatRequest,
    Kind,
    LargeCommitRequest,
    Message,
    MetricsRequest,
    NotPrimary,
    OutcomeRequest,
    Overloaded,
    ProtocolError,
    Role,
    StatusReply,
    StatusRequest,
    WriteSetPart,
    decode,
    encode,
)

log = logging.getLogger(__name__)

_SWEEP_MS = 1_000
"""How often connections with an old partial frame are looked for."""

_RECEIVE_BYTES = 256 * 2**10
"""Read of one connection in one turn of the event loop: the next one's turn comes before the rest."""

Request = (
    Frame
    | BeginRequest
    | WriteSetPart
    | LargeCommitRequest
    | AbortRequest
    | OutcomeRequest
    | HeartbeatRequest
    | StatusRequest
    | MetricsRequest
    | DetailsRequest
    | HandoverRequest
)
"""A commit request stays a frame: the pipeline reads those of all connections together."""


class Server:
    """Accepts connections and hands their requests to the pipeline of the moment. One event loop's thread only."""

    def __init__(self, holder: str, limits: Limits, metering: Metering) -> None:
        self.limits = limits
        self.metering = metering
        self.address = ""
        self.pipeline: Pipeline | None = None
        """Of the tenure that this process holds; ``None`` on a standby."""
        self.not_primary = NotPrimary()
        """What a standby answers: where the primary is, as far as is known."""
        self.own = Own()
        self.hand_over: Callable[[Connection, int], None] = lambda connection, request_id: None
        """What a primary does when it is asked to hand over; it answers the request."""
        self.connections: set[Connection] = set()
        self.receive_bytes = 0
        self.receive_buffer = memoryview(bytearray(_RECEIVE_BYTES))
        """What came last, of any connection: it is taken out before anything else is received."""
        self.closing = False
        """The door is shut: who was let in a moment ago is sent away, and not waited for."""
        self._unflushed: list[Connection] = []
        self._flushing = False
        self._holder = holder
        self._loop: asyncio.AbstractEventLoop
        self._listener: asyncio.Server | None = None
        self._sweep: asyncio.TimerHandle | None = None

    async def listen(self, host: str, port: int) -> str:
        """Open the door; port 0 lets the system choose. Returns the address as ``host:port``. Raises ``OSError``."""
        loop = self._loop = asyncio.get_running_loop()
        self._listener = await loop.create_server(lambda: Connection(self), host, port)
        for listening in self._listener.sockets:  # each connection inherits it: a client's host may just vanish
            listening.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
        bound_host, bound_port = self._listener.sockets[0].getsockname()[:2]
        self.address = f"[{bound_host}]:{bound_port}" if ":" in bound_host else f"{bound_host}:{bound_port}"
        self._sweep = loop.call_later(_SWEEP_MS / 1000, self._drop_unfinished)
        return self.address

    async def close(self) -> None:
        """Close the door and every connection, after what was answered has been sent, or `linger_ms_max`."""
        self.closing = True
        if self._sweep is not None:
            self._sweep.cancel()
        if self._listener is not None:
            self._listener.close()
        for connection in list(self.connections):
            connection.drop()
        while self.connections:
            await asyncio.wait({connection.gone for connection in self.connections})

    def handle(self, connection: Connection, request_id: int, request: Request) -> None:
        """One request. Its answer goes to the connection, now or later."""
        if isinstance(request, StatusRequest):
            connection.send(self.status(), request_id)
        elif isinstance(request, MetricsRequest):
            connection.send(metrics(self), request_id)
        elif isinstance(request, DetailsRequest):
            connection.send(details(self), request_id)
        elif self.pipeline is None or not self.pipeline.serving:
            self.metering.refused("not_primary")
            connection.send(self.not_primary, request_id)
        elif isinstance(request, HandoverRequest):
            self.hand_over(connection, request_id)
        else:
            self.pipeline.submit(Arrival(connection, request_id, request))
            self.flush_soon()  # after the pipeline's pass, in the same turn of the event loop

    def unflushed(self, connection: Connection) -> None:
        """A connection has answers to send."""
        self._unflushed.append(connection)
        self.flush_soon()

    def flush_soon(self) -> None:
        """Send all answers at the end of this turn of the event loop, or in the next one."""
        if not self._flushing:
            self._flushing = True
            self._loop.call_soon(self._flush)

    def _flush(self) -> None:
        self._flushing = False
        connections, self._unflushed = self._unflushed, []
        for connection in connections:
            connection.flush()

    def make_room(self, now_s: float) -> bool:
        """Whether the newest connection may stay; if need be, the longest idle one is closed for it."""
        staying = [connection for connection in self.connections if not connection.closing]
        if len(staying) <= self.limits.connections_max:
            return True
        idle = [connection for connection in staying if connection.is_idle(now_s)]
        if idle:
            log.info("closed an idle connection to make room: %d are open", len(staying) - 1)
            min(idle, key=lambda connection: connection.active_s).drop()
        return bool(idle)

    def hold(self, more_bytes: int) -> None:
        """Keep the books on what is held of frames that are not whole. Beyond the limit, who holds most goes."""
        self.receive_bytes += more_bytes
        while self.receive_bytes > self.limits.receive_bytes_max:
            largest = max(self.connections, key=lambda connection: connection.held_bytes)
            log.warning("dropped a connection that held %d bytes of a frame", largest.held_bytes)
            largest.turn_away(Overloaded(self.limits.retry_after_ms))

    def status(self) -> StatusReply:
        """This process as it is now."""
        pipeline = self.pipeline
        if pipeline is None or pipeline.ended:
            primary = self.not_primary.primary_address
            return StatusReply(Role.STANDBY, self._holder, self.address, primary, connections=len(self.connections))
        oracle = pipeline.oracle
        return StatusReply(
            Role.PRIMARY if pipeline.serving else Role.DRAINING,
            self._holder,
            self.address,
            self.address,
            epoch=oracle.epoch,
            ceiling=oracle.range.ceiling,
            last_timestamp=oracle.range.last,
            durable_watermark=oracle.snapshot,
            low_watermark=oracle.conflicts.low_watermark,
            conflict_map_entries=len(oracle.conflicts),
            begins=oracle.counts.begins,
            commits=oracle.counts.commits,
            refused_commits=oracle.counts.refused_commits,
            transactions_in_flight=pipeline.transactions_in_flight,
            connections=len(self.connections),
            horizon=pipeline.horizon,
        )

    def _drop_unfinished(self) -> None:
        loop = asyncio.get_running_loop()
        for connection in list(self.connections):
            connection.drop_if_unfinished(loop.time())
        self._sweep = loop.call_later(_SWEEP_MS / 1000, self._drop_unfinished)


class Connection(asyncio.BufferedProtocol):
    """One client's connection. Answers of one wake-up go out in one write."""

    def __init__(self, server: Server) -> None:
        self._server = server
        self._limits = server.limits
        self._loop = asyncio.get_running_loop()
        self._decoder = FrameDecoder(frame_bytes_max=server.limits.frame_bytes_max)
        self._partial_since_s: float | None = None
        self._unanswered = 0
        self._outgoing: list[bytes] = []
        self.held_bytes = 0
        """Of a frame that is not whole yet, as the server's books have them."""
        self.active_s = self._loop.time()
        """When it last sent something or was answered, on the loop's clock."""
        self.closing = False
        """Nothing is read of it any more; it may still be reading its last answers."""
        self._transport: asyncio.Transport
        self.gone: asyncio.Future[None] = self._loop.create_future()
        """Done when the connection is."""

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Count it, or turn it away."""
        self._transport = cast(asyncio.Transport, transport)  # some event loops' transports only look like one
        others = len(self._server.connections)
        self._server.metering.connections += 1
        self._server.connections.add(self)
        # Even those that are being told that there are too many are too many; and nobody comes in after the end.
        if self._server.closing or others >= 2 * self._limits.connections_max:
            self._abort()
        elif not self._server.make_room(self._loop.time()):
            log.warning("turned a connection away: %d are open", others)
            self.turn_away(Overloaded(self._limits.retry_after_ms))

    def connection_lost(self, error: Exception | None) -> None:
        """Forget it; answers that are still owed go nowhere."""
        self._close()
        self._server.connections.discard(self)
        self.gone.set_result(None)

    def get_buffer(self, sizehint: int) -> memoryview:
        """Where to receive into."""
        return self._server.receive_buffer

    def buffer_updated(self, nbytes: int) -> None:
        """Bytes came: every whole frame is a request."""
        if self.closing:
            return
        self.active_s = self._loop.time()
        completed = False
        try:
            for frame in self._decoder.feed(self._server.receive_buffer[:nbytes]):
                completed = True
                self._request(frame)
        except ProtocolError as error:
            self.refuse(error)
            return
        if self._decoder.buffered_bytes or self.held_bytes:
            self._account(completed=completed)

    def send(self, message: Message, request_id: int) -> None:
        """Answer a request; nothing happens when the connection has gone."""
        self.send_frame(encode(message, request_id))

    def send_frame(self, frame: bytes) -> None:
        """See ``Requester``."""
        self._unanswered -= 1
        self.active_s = self._loop.time()
        self._write(frame)

    def refuse(self, error: ProtocolError) -> None:
        """See ``Requester``."""
        log.info("closing a connection: %s", error.reason)
        self.turn_away(BadRequest(error.reason), error.request_id)

    def drop(self) -> None:
        """Close the connection, after the answers that were given; what is owed stays unanswered."""
        if self.closing:
            return
        self.flush()
        self._close()
        self._transport.close()
        self._loop.call_later(self._limits.linger_ms_max / 1000, self._transport.abort)

    def drop_if_unfinished(self, now_s: float) -> None:
        """Drop the connection if the frame that it is sending has been under way for too long."""
        since_s = self._partial_since_s
        if since_s is not None and (now_s - since_s) * 1000 > self._limits.partial_frame_ms_max:
            self.turn_away(BadRequest(f"a frame was not completed in {self._limits.partial_frame_ms_max} ms"))

    def is_idle(self, now_s: float) -> bool:
        """Whether it is owed nothing, sends nothing, and has been so for `connection_idle_ms_min`."""
        idle_ms = (now_s - self.active_s) * 1000
        return not self._unanswered and not self.held_bytes and idle_ms >= self._limits.connection_idle_ms_min

    def turn_away(self, message: Overloaded | BadRequest, request_id: int = 0) -> None:
        """Say why, and close the connection."""
        self._server.metering.refused("overloaded" if isinstance(message, Overloaded) else "bad_request")
        self._write(encode(message, request_id))
        self.drop()

    def _request(self, frame: Frame) -> None:
        request = frame if frame.kind is Kind.COMMIT_REQUEST else decode(frame)
        if not isinstance(request, Request):
            raise ProtocolError(f"{request.KIND.name} is not a request", frame.request_id)
        self._unanswered += 1
        if self._unanswered > self._limits.connection_requests_max:
            self._server.metering.refused("overloaded")
            self.send(Overloaded(self._limits.retry_after_ms), frame.request_id)
        else:
            self._server.handle(self, frame.request_id, request)

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
