"""Asking one oracle process something: a blocking question over a connection of its own, for operators' tools.

A question is sent once and never repeated: a hand-over that were asked again would be a second one.
"""

from __future__ import annotations

import contextlib
import socket
import ssl
import time
from collections.abc import Sequence

from access import BadCredentials, Credentials
from access.tls import what_failed
from fleet.told import Report
from wire import (
    BadRequest,
    DetailsReply,
    DetailsRequest,
    DrainReply,
    DrainRequest,
    FrameDecoder,
    Greeting,
    HandoverReply,
    HandoverRequest,
    HelloReply,
    HindranceReply,
    HindranceRequest,
    Message,
    MetricsReply,
    MetricsRequest,
    NotAllowed,
    NotPrimary,
    Overloaded,
    ProtocolError,
    StatusReply,
    StatusRequest,
    decode,
    encode,
)

_CHUNK_BYTES = 65_536
ANONYMOUS = Credentials()
"""No more than the environment has."""
_ANSWER_GRACE_MS = 5_000
"""To release the lease and to answer, after what was under way has been finished."""
ASKED_MS_MAX = 3_600_000
"""How long somebody may be waited for: an hour. The system's clock takes no time of any length."""
_HUNG_UP = "the connection was closed without an answer: its process may be ending, or have just ended"


class NoAnswer(Exception):
    """The process could not be asked; the text says why."""


class NotLetIn(NoAnswer):
    """There is a process, and it does not let us in, or not do that; or what we have to show of us cannot be used."""


class _Refused(Exception):
    """The answer to our hello."""


def ask_status(address: str, timeout_ms: float, credentials: Credentials = ANONYMOUS) -> StatusReply:
    """The state of the process at ``host:port``. Raises ``NoAnswer`` when there is none within ``timeout_ms``."""
    reply = _ask(address, StatusRequest(), timeout_ms, credentials)
    if not isinstance(reply, StatusReply):
        raise NoAnswer(f"{address} answered {reply}")
    return reply


def ask_everything(address: str, timeout_ms: float, credentials: Credentials = ANONYMOUS) -> Report:
    """What the process at ``host:port`` tells of itself. Raises ``NoAnswer`` without an answer in ``timeout_ms``."""
    questions = [StatusRequest(), MetricsRequest(), DetailsRequest(), HindranceRequest()]
    match _ask_all(address, questions, timeout_ms, credentials):
        case [NotAllowed(text=text), *_]:
            raise NotLetIn(f"{address}: {text}")
        case [StatusReply() as status, MetricsReply() as metrics, *others]:
            # A process of a release that does not know one of the questions refuses it, and hangs up.
            details = next((other for other in others if isinstance(other, DetailsReply)), None)
            hindrance = next((other.hindrance for other in others if isinstance(other, HindranceReply)), "")
            return Report(status, metrics, details, hindrance)
        case replies:
            raise NoAnswer(f"{address} answered {replies}")


def ask_metrics(address: str, timeout_ms: float, credentials: Credentials = ANONYMOUS) -> MetricsReply:
    """The metrics of the process at ``host:port``. Raises ``NoAnswer`` when there are none within ``timeout_ms``."""
    reply = _ask(address, MetricsRequest(), timeout_ms, credentials)
    if not isinstance(reply, MetricsReply):
        raise NoAnswer(f"{address} answered {reply}")
    return reply


def ask_to_hand_over(address: str, timeout_ms: float, credentials: Credentials = ANONYMOUS) -> int:
    """Have the primary at ``host:port`` release its lease; its epoch, once that is done. Raises ``NoAnswer``."""
    reply = _ask(address, HandoverRequest(), timeout_ms, credentials)
    if isinstance(reply, NotPrimary):
        raise NoAnswer(f"{address} is not primary any more: look at pythia tso status, and ask again")
    if not isinstance(reply, HandoverReply):
        raise NoAnswer(f"{address}: {reply.text}" if isinstance(reply, BadRequest) else f"{address} answered {reply}")
    return reply.epoch


def ask_to_drain(address: str, limit_ms: int, credentials: Credentials = ANONYMOUS) -> DrainReply:
    """Have the process at ``host:port`` finish what is under way within ``limit_ms`` and end.

    Raises ``NoAnswer``: then it may end all the same, unless it said why not.
    """
    reply = _ask(address, DrainRequest(limit_ms), limit_ms + _ANSWER_GRACE_MS, credentials)
    if not isinstance(reply, DrainReply):
        raise NoAnswer(f"{address}: {reply.text}" if isinstance(reply, BadRequest) else f"{address} answered {reply}")
    return reply


def _ask(address: str, request: Message, timeout_ms: float, credentials: Credentials) -> Message:
    (reply,) = _ask_all(address, [request], timeout_ms, credentials)
    if isinstance(reply, NotAllowed):
        raise NotLetIn(f"{address}: {reply.text}")
    return reply


def _ask_all(address: str, requests: Sequence[Message], timeout_ms: float, credentials: Credentials) -> list[Message]:
    """The answers, in the order of the requests, to the first that is refused as a whole."""
    host, _, port = address.rpartition(":")
    deadline_s = time.monotonic() + timeout_ms / 1000
    try:
        greeting = Greeting(credentials.token())
        tls, bare = credentials.tls(), host.strip("[]")
        with contextlib.ExitStack() as opened:
            connection = opened.enter_context(socket.create_connection((bare, int(port)), timeout=timeout_ms / 1000))
            if tls is not None:
                name = credentials.server_name(bare)
                connection = opened.enter_context(tls.wrap_socket(connection, server_hostname=name))
            _say_hello(connection, greeting, deadline_s)
            connection.sendall(b"".join(encode(request, number) for number, request in enumerate(requests)))
            return _receive(connection, len(requests), deadline_s)
    except ssl.SSLError as error:
        raise NotLetIn(f"{address}: {what_failed(error)}") from error
    except (_Refused, BadCredentials) as error:
        raise NotLetIn(f"{address}: {error}") from error
    except (OSError, ProtocolError, ValueError) as error:  # such as an address that is none
        raise NoAnswer(f"{address}: {_in_words(error, timeout_ms)}") from error


def _in_words(error: Exception, timeout_ms: float) -> str:
    """Why there was no answer: the system has numbers for what an operator meets at each restart."""
    if isinstance(error, ConnectionRefusedError):
        return "nothing listens there: its process may have just ended"
    if isinstance(error, ConnectionError):
        return _HUNG_UP
    if isinstance(error, TimeoutError):
        return f"no answer within {timeout_ms:.0f} ms"
    return str(error)


def _say_hello(connection: socket.socket, greeting: Greeting, deadline_s: float) -> None:
    """Raises ``_Refused`` where the oracle does not let us in, ``ProtocolError`` for what is no oracle's answer."""
    connection.sendall(greeting.first)
    answer = None
    while answer is None:
        answer = greeting.received(_chunk(connection, deadline_s))
    if isinstance(answer, Overloaded):
        raise _Refused("it has too many connections")
    if not isinstance(answer, HelloReply):
        raise _Refused(answer.text)


def _receive(connection: socket.socket, answers: int, deadline_s: float) -> list[Message]:
    """So many answers; what an oracle says of itself it says in the order in which it was asked."""
    decoder, received = FrameDecoder(), list[Message]()
    while len(received) < answers and not any(isinstance(answer, BadRequest) for answer in received):
        received += [decode(frame) for frame in decoder.feed(_chunk(connection, deadline_s))]
    return received


def _chunk(connection: socket.socket, deadline_s: float) -> bytes:
    left_s = deadline_s - time.monotonic()
    if left_s <= 0:
        raise TimeoutError
    connection.settimeout(left_s)
    data = connection.recv(_CHUNK_BYTES)
    if not data:
        raise ProtocolError(_HUNG_UP)
    return data
