"""The binary protocol's front door: connections, frames, and what is answered without the oracle.

Whatever a connection sends, it can only hurt itself: a broken frame gets its reason and the connection is closed; a
connection that does not read its answers, or never completes its frames, is dropped; everything it may hold is bounded.
Where all connections together reach a bound, who holds most goes, or who has been idle for longest, and never one that
holds nothing and works. Who has not said hello yet may hold next to nothing, and takes no place of those who have.
A standby answers `NotPrimary` with the primary's address at once, and every process answers `StatusRequest`,
`MetricsRequest`, `DetailsRequest` and `HindranceRequest`.
"""

from __future__ import annotations

import asyncio
import logging
import socket
from collections.abc import Callable, Sequence
from typing import Any, Protocol

from access import Gate
from access.tls import ServerTls
from tso.metering import Metering
from tso.persistence.arrivals import Arrival
from tso.persistence.pipeline import Pipeline
from tso.persistence.refusing import refuse
from tso.serving.connection import Connection, Request
from tso.serving.details import Own, details
from tso.serving.listening import cannot_listen, written
from tso.serving.observing import lives, metrics
from tso.serving.reception import Reception
from tso.serving.tls_door import TlsDoor
from tso.serving.wakefulness import Wakefulness
from tso.settings import Limits
from wire import (
    DetailsRequest,
    DrainRequest,
    Frame,
    HandoverRequest,
    HindranceReply,
    HindranceRequest,
    LivesReply,
    LivesRequest,
    MetricsRequest,
    NotAllowed,
    NotAllowedCode,
    NotPrimary,
    Overloaded,
    Role,
    StatusReply,
    StatusRequest,
)

log = logging.getLogger(__name__)

_SWEEP_MS = 1_000
"""How often each connection is looked after."""


class _Listener(Protocol):
    """What listens, on any event loop: asyncio has a tuple of sockets, libuv's a list of what only looks like some."""

    @property
    def sockets(self) -> Sequence[socket.socket]: ...

    def close(self) -> None: ...


def _sockets_of(listener: _Listener) -> Sequence[socket.socket]:
    return listener.sockets


class Server:
    """Accepts connections and hands their requests to the pipeline of the moment. One event loop's thread only."""

    def __init__(self, holder: str, limits: Limits, metering: Metering, reception: Reception | None = None) -> None:
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
        self.drain: Callable[[Connection, int, int], None] = lambda connection, request_id, limit_ms: None
        """What any process does when it is asked to finish within a limit and to end; it answers the request."""
        self.connections: set[Connection] = set()
        self.reception = reception or Reception(Gate())
        """Who may come in."""
        self.receive_bytes = 0
        self.closing = False
        """The door is shut: who was let in a moment ago is sent away, and not waited for."""
        self._for_everybody: dict[type[Request], Callable[[Connection, int, Any], None]] = {
            StatusRequest: lambda connection, request_id, _: connection.send(self.status(), request_id),
            MetricsRequest: lambda connection, request_id, _: connection.send(metrics(self), request_id),
            DetailsRequest: lambda connection, request_id, _: connection.send(details(self), request_id),
            HindranceRequest: lambda connection, request_id, _: connection.send(
                HindranceReply(self.own.hindrance), request_id
            ),
            DrainRequest: lambda connection, request_id, drain: self.drain(connection, request_id, drain.limit_ms),
        }
        """What a standby answers, too."""
        self._outside: dict[Connection, None] = {}
        """Who has not said hello yet, the oldest first."""
        self._unflushed: list[Connection] = []
        self._flushing = False
        self._holder = holder
        self._loop: asyncio.AbstractEventLoop
        self._wakefulness: Wakefulness
        self._listener: _Listener | None = None
        self._doors: list[TlsDoor] = []
        self._sweep: asyncio.TimerHandle | None = None

    async def listen(self, host: str, port: int, tls: ServerTls | None = None) -> str:
        """Open the door; port 0 lets the system choose. Returns the address as ``host:port``. Raises ``OSError``."""
        loop = self._loop = asyncio.get_running_loop()
        self._wakefulness = Wakefulness(loop, self.limits.awake_us_max)
        try:
            self._listener = await loop.create_server(lambda: Connection(self), host, port, start_serving=tls is None)
        except OSError as error:
            raise cannot_listen(host, port, error) from error
        sockets = _sockets_of(self._listener)
        for listening in sockets:  # each connection inherits it: a client's host may just vanish
            listening.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
        bound_host, bound_port = sockets[0].getsockname()[:2]
        if tls is not None:
            self._doors = [self._tls_door(listening.dup(), tls) for listening in sockets]
        self.address = written(bound_host, bound_port)
        self._sweep = loop.call_later(_SWEEP_MS / 1000, self._drop_unfinished)
        return self.address

    def _tls_door(self, listening: socket.socket, tls: ServerTls) -> TlsDoor:
        listening.listen()
        listening.setblocking(False)
        advice = "this port speaks TLS only: set tls_authority_file (PYTHIA_CLIENT_TLS_AUTHORITY_FILE)"
        refusal = NotAllowed(NotAllowedCode.TLS_NEEDED, advice)
        return TlsDoor(
            listening,
            lambda: tls.context(self.metering.clock_s()),
            lambda: Connection(self, certificate_needed=tls.is_mutual),
            lambda: Connection(self, refusal),
            self.limits.hello_ms_max,
        )

    async def close(self) -> None:
        """Close the door and every connection, after what was answered has been sent, or `linger_ms_max`."""
        self.closing = True
        if self._sweep is not None:
            self._sweep.cancel()
        for door in self._doors:
            door.close()
        if self._listener is not None:
            self._listener.close()
        for connection in list(self.connections):
            connection.drop()
        while self.connections:
            await asyncio.wait({connection.gone for connection in self.connections})

    def handle(self, connection: Connection, request_id: int, request: Request) -> None:
        """One request. Its answer goes to the connection, now or later."""
        pipeline = self.pipeline
        if isinstance(request, Frame) and pipeline is not None and pipeline.serving:
            self._submit(pipeline, connection, request_id, request)  # as a rule: nothing is looked up for it
            return
        for_everybody = self._for_everybody.get(type(request))
        if for_everybody is not None:
            for_everybody(connection, request_id, request)
        elif pipeline is None or not pipeline.serving:
            self.metering.refused("not_primary")
            connection.send(self.not_primary, request_id)
        elif type(request) is HandoverRequest:
            self.hand_over(connection, request_id)
        elif type(request) is LivesRequest:
            match lives(pipeline, request, self.metering):
                case LivesReply() as reply:
                    connection.send(reply, request_id)
                case refusal:
                    refuse(Arrival(connection, request_id, request), refusal, self.metering)
        else:
            self._submit(pipeline, connection, request_id, request)

    def _submit(self, pipeline: Pipeline, connection: Connection, request_id: int, request: Request) -> None:
        pipeline.submit(Arrival(connection, request_id, request))
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

    def send_answers(self) -> None:
        """Send all answers now."""
        connections, self._unflushed = self._unflushed, []
        for connection in connections:
            connection.flush()

    def _flush(self) -> None:
        self._flushing = False
        self.send_answers()
        if self.pipeline is not None:
            self._wakefulness.stay(self.pipeline.owed)

    def let_say_hello(self, connection: Connection) -> bool:
        """Whether a new connection may. Of those that have not yet, the oldest goes where they are too many."""
        inside = len(self.connections) - len(self._outside)
        self.metering.connections += 1
        self.connections.add(connection)
        self._outside[connection] = None
        if len(self._outside) > self.limits.connections_max:
            next(iter(self._outside)).drop()
        # Even those that are being told that there are too many are too many; and nobody comes in after the end.
        return not self.closing and inside < 2 * self.limits.connections_max

    def let_in(self, connection: Connection) -> bool:
        """Whether a connection that has said hello may stay."""
        self._outside.pop(connection, None)
        return self.make_room(self._loop.time())

    def forget(self, connection: Connection) -> None:
        """A connection has gone."""
        self._outside.pop(connection, None)
        self.connections.discard(connection)

    def make_room(self, now_s: float) -> bool:
        """Whether the newest connection may stay; if need be, the longest idle one is closed for it."""
        staying = [connection for connection in self.connections if connection.is_in and not connection.closing]
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
        self._sweep = loop.call_later(_SWEEP_MS / 1000, self._drop_unfinished)  # first: whatever fails, there is a next
        self.reception.refresh(self.metering.clock_s())
        for connection in list(self.connections):
            connection.drop_if_unfinished(loop.time())
            connection.look_after(loop.time())
