"""Connections, bounded in number, in how long they may take over the head of a request, and over reading answers.

The invariant: whoever sends a whole request in time is served, however many others open connections and send slowly or
not at all. uvicorn bounds how long a connection may idle *between* requests (`timeout_keep_alive`) and how large a head
may be (`h11_max_incomplete_event_size`), but waits for the first head, or a half of one, for ever, and so it does for a
client that asks and never reads: its request would hold a place of those that are worked on.
"""

from __future__ import annotations

import asyncio
import logging
from typing import Any, ClassVar

import h11
from uvicorn.protocols.http.h11_impl import H11Protocol

from configuration.rest_limits import RestLimits
from rest.metering import HEAD_TOO_SLOW, NO_ROOM, UNREAD, RestMetering

UNREAD_BYTES_MAX = 1
"""More of an answer than this, unread, is timed, since closing a connection waits for the last of it to be read. Not 0:
asyncio's TLS transport would take nothing at all for too much, and never write again.
"""

_log = logging.getLogger(__name__)


class BoundedProtocol(H11Protocol):
    """uvicorn's HTTP/1.1 connection with these bounds. Use ``bounded_protocol``."""

    limits: ClassVar[RestLimits]
    metering: ClassVar[RestMetering]
    waiting: ClassVar[dict[BoundedProtocol, asyncio.TimerHandle | None]]
    """Connections whose client has not sent a whole request, the longest first, with what ends a begun head."""

    _unread: asyncio.TimerHandle | None = None
    """Ends the connection while some of an answer lies unread."""

    def connection_made(self, transport: Any) -> None:
        """Make room, and give it its time for the first head."""
        super().connection_made(transport)
        transport.set_write_buffer_limits(high=UNREAD_BYTES_MAX)
        if len(self.connections) > self.limits.connections_max:
            self._make_room()
        self._await_head()

    def data_received(self, data: bytes) -> None:
        """Look whether a head was begun, or is whole."""
        super().data_received(data)
        self._look()

    def on_response_complete(self) -> None:
        """From here on another request may come."""
        super().on_response_complete()
        self._look()

    def pause_writing(self) -> None:
        """Give the client its time to read."""
        super().pause_writing()
        self._unread = self.loop.call_later(self.limits.unread_ms_max / 1000, self._drop, UNREAD)

    def resume_writing(self) -> None:
        """It has read."""
        super().resume_writing()
        self._stop_watching_reads()

    def connection_lost(self, exc: Exception | None) -> None:
        """Forget it."""
        self._settle()
        self._stop_watching_reads()
        super().connection_lost(exc)

    def _look(self) -> None:
        state = self.conn.their_state
        if self.transport.is_closing() or state not in (h11.IDLE, h11.SEND_BODY):
            self._settle()
        elif state is h11.IDLE and self.conn.trailing_data[0]:
            if self.waiting.get(self) is None:
                self._await_head()
        elif state is h11.SEND_BODY or self not in self.waiting:
            self._wait_untimed()  # a body has a time of its own (`rest.admission`), idling has uvicorn's

    def _wait_untimed(self) -> None:
        timer = self.waiting.get(self)
        if timer is not None:
            timer.cancel()
        self.waiting[self] = None

    def _await_head(self) -> None:
        self.waiting[self] = self.loop.call_later(self.limits.header_ms_max / 1000, self._drop, HEAD_TOO_SLOW)

    def _settle(self) -> None:
        timer = self.waiting.pop(self, None)
        if timer is not None:
            timer.cancel()

    def _stop_watching_reads(self) -> None:
        if self._unread is not None:
            self._unread.cancel()
            self._unread = None

    def _make_room(self) -> None:
        longest = next(iter(self.waiting), None)
        _log.info("%d connections are open: closed one to make room", len(self.connections) - 1)
        (longest or self)._drop(NO_ROOM)

    def _drop(self, cause: str) -> None:
        self.metering.closed(cause)
        self._settle()
        self.transport.abort()


def bounded_protocol(limits: RestLimits, metering: RestMetering) -> type[BoundedProtocol]:
    """The protocol of one server, whose connections know of each other."""
    return type("ServersProtocol", (BoundedProtocol,), {"limits": limits, "metering": metering, "waiting": {}})
