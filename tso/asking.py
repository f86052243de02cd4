"""Asking one oracle process something: a blocking question over a connection of its own, for operators' tools."""

from __future__ import annotations

import socket
import time

from wire import (
    BadRequest,
    DrainReply,
    DrainRequest,
    FrameDecoder,
    HandoverReply,
    HandoverRequest,
    Message,
    MetricsReply,
    MetricsRequest,
    NotPrimary,
    ProtocolError,
    StatusReply,
    StatusRequest,
    decode,
    encode,
)

_CHUNK_BYTES = 65_536
_ANSWER_GRACE_MS = 5_000
"""To release the lease and to answer, after what was under way has been finished."""


class NoAnswer(Exception):
    """The process could not be asked; the text says why."""


def ask_status(address: str, timeout_ms: float) -> StatusReply:
    """The state of the process at ``host:port``. Raises ``NoAnswer`` when there is none within ``timeout_ms``."""
    reply = _ask(address, StatusRequest(), timeout_ms)
    if not isinstance(reply, StatusReply):
        raise NoAnswer(f"{address} answered {reply}")
    return reply


def ask_metrics(address: str, timeout_ms: float) -> MetricsReply:
    """The metrics of the process at ``host:port``. Raises ``NoAnswer`` when there are none within ``timeout_ms``."""
    reply = _ask(address, MetricsRequest(), timeout_ms)
    if not isinstance(reply, MetricsReply):
        raise NoAnswer(f"{address} answered {reply}")
    return reply


def ask_to_hand_over(address: str, timeout_ms: float) -> int:
    """Have the primary at ``host:port`` release its lease; its epoch, once that is done. Raises ``NoAnswer``."""
    reply = _ask(address, HandoverRequest(), timeout_ms)
    if isinstance(reply, NotPrimary):
        raise NoAnswer(f"{address} is not primary any more: look at pythia tso status, and ask again")
    if not isinstance(reply, HandoverReply):
        raise NoAnswer(f"{address} answered {reply}")
    return reply.epoch


def ask_to_drain(address: str, limit_ms: int) -> DrainReply:
    """Have the process at ``host:port`` finish what is under way within ``limit_ms`` and end.

    Raises ``NoAnswer``: then it may end all the same, unless it said why not.
    """
    reply = _ask(address, DrainRequest(limit_ms), limit_ms + _ANSWER_GRACE_MS)
    if not isinstance(reply, DrainReply):
        raise NoAnswer(f"{address}: {reply.text}" if isinstance(reply, BadRequest) else f"{address} answered {reply}")
    return reply


def _ask(address: str, request: Message, timeout_ms: float) -> Message:
    host, _, port = address.rpartition(":")
    deadline_s = time.monotonic() + timeout_ms / 1000
    try:
        with socket.create_connection((host.strip("[]"), int(port)), timeout=timeout_ms / 1000) as connection:
            connection.sendall(encode(request, 1))
            return _receive(connection, deadline_s)
    except (OSError, ProtocolError) as error:
        raise NoAnswer(f"{address}: {error}") from error


def _receive(connection: socket.socket, deadline_s: float) -> Message:
    decoder = FrameDecoder()
    while (left_s := deadline_s - time.monotonic()) > 0:
        connection.settimeout(left_s)
        data = connection.recv(_CHUNK_BYTES)
        if not data:
            raise ProtocolError("the connection was closed without an answer")
        for frame in decoder.feed(data):
            return decode(frame)
    raise TimeoutError("no answer in time")
