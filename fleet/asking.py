"""Asking one oracle process something: a blocking question over a connection of its own, for operators' tools.

A question is sent once and never repeated: a hand-over that were asked again would be a second one.
"""

from __future__ import annotations

import socket
import time
from collections.abc import Sequence
from dataclasses import dataclass

from wire import (
    BadRequest,
    DetailsReply,
    DetailsRequest,
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


class NoAnswer(Exception):
    """The process could not be asked; the text says why."""


def ask_status(address: str, timeout_ms: float) -> StatusReply:
    """The state of the process at ``host:port``. Raises ``NoAnswer`` when there is none within ``timeout_ms``."""
    reply = _ask(address, StatusRequest(), timeout_ms)
    if not isinstance(reply, StatusReply):
        raise NoAnswer(f"{address} answered {reply}")
    return reply


@dataclass(frozen=True, slots=True)
class Report:
    """All that one process tells of itself; ``details``: ``None`` from one of a release that knows no such question."""

    status: StatusReply
    metrics: MetricsReply
    details: DetailsReply | None


def ask_everything(address: str, timeout_ms: float) -> Report:
    """What the process at ``host:port`` tells of itself. Raises ``NoAnswer`` without an answer in ``timeout_ms``."""
    replies = _ask_all(address, [StatusRequest(), MetricsRequest(), DetailsRequest()], timeout_ms)
    status, metrics, details = replies
    if not (
        isinstance(status, StatusReply)
        and isinstance(metrics, MetricsReply)
        and isinstance(details, DetailsReply | BadRequest)
    ):
        raise NoAnswer(f"{address} answered {replies}")
    return Report(status, metrics, details if isinstance(details, DetailsReply) else None)


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


def _ask(address: str, request: Message, timeout_ms: float) -> Message:
    return _ask_all(address, [request], timeout_ms)[0]


def _ask_all(address: str, requests: Sequence[Message], timeout_ms: float) -> list[Message]:
    """The answers, in the order of the requests."""
    host, _, port = address.rpartition(":")
    deadline_s = time.monotonic() + timeout_ms / 1000
    try:
        with socket.create_connection((host.strip("[]"), int(port)), timeout=timeout_ms / 1000) as connection:
            connection.sendall(b"".join(encode(request, number) for number, request in enumerate(requests)))
            return _receive(connection, len(requests), deadline_s)
    except (OSError, ProtocolError) as error:
        raise NoAnswer(f"{address}: {error}") from error


def _receive(connection: socket.socket, answers: int, deadline_s: float) -> list[Message]:
    """So many answers; what an oracle says of itself it says in the order in which it was asked."""
    decoder, received = FrameDecoder(), list[Message]()
    while (left_s := deadline_s - time.monotonic()) > 0:
        connection.settimeout(left_s)
        data = connection.recv(_CHUNK_BYTES)
        if not data:
            raise ProtocolError("the connection was closed without an answer")
        received += [decode(frame) for frame in decoder.feed(data)]
        if len(received) >= answers:
            return received
    raise TimeoutError("no answer in time")
