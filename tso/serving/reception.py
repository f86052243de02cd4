"""Who comes in, and what they may ask: the hello's answer, and one table of the role that each kind of request needs.

The invariant: a kind of request that has no role in the table is granted to nobody. A frame costs one look into an
array of 256 that is made when a connection is let in.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import lru_cache
from typing import Final

from access import AccessRole, Bearer, Gate, Refusal, Refused, hash_of
from wire import (
    Frame,
    HelloReply,
    HelloRequest,
    Kind,
    NotAllowed,
    NotAllowedCode,
    ProtocolError,
    common_version,
    decode,
)

ROLE_OF_KIND: Final[Mapping[Kind, AccessRole]] = {
    Kind.BEGIN_REQUEST: AccessRole.TRANSACT,
    Kind.COMMIT_REQUEST: AccessRole.TRANSACT,
    Kind.WRITE_SET_PART: AccessRole.TRANSACT,
    Kind.LARGE_COMMIT_REQUEST: AccessRole.TRANSACT,
    Kind.ABORT_REQUEST: AccessRole.TRANSACT,
    Kind.HEARTBEAT_REQUEST: AccessRole.TRANSACT,
    Kind.OUTCOME_REQUEST: AccessRole.READ,
    Kind.STATUS_REQUEST: AccessRole.READ,
    # Counts and durations, no names of tables or rows; and a monitoring system's token should be able to do no more.
    Kind.METRICS_REQUEST: AccessRole.READ,
    Kind.LIVES_REQUEST: AccessRole.READ,
    Kind.DETAILS_REQUEST: AccessRole.READ,
    Kind.HINDRANCE_REQUEST: AccessRole.READ,
    Kind.HANDOVER_REQUEST: AccessRole.OPERATE,
    Kind.DRAIN_REQUEST: AccessRole.OPERATE,
}

NOTHING: Final = bytes(256)

_CODES: Final = {
    Refusal.NO_TOKEN: NotAllowedCode.NO_TOKEN,
    Refusal.UNKNOWN_TOKEN: NotAllowedCode.UNKNOWN_TOKEN,
    Refusal.EXPIRED: NotAllowedCode.EXPIRED,
    Refusal.ROLE_MISSING: NotAllowedCode.ROLE_MISSING,
    Refusal.TOO_MANY_CONNECTIONS: NotAllowedCode.TOO_MANY_CONNECTIONS,
}


@lru_cache(maxsize=8)
def kinds_allowed(roles: frozenset[AccessRole]) -> bytes:
    """For each number of a kind, 1 where these roles may ask for it."""
    allowed = bytearray(NOTHING)
    for kind, role in ROLE_OF_KIND.items():
        allowed[kind] = role in roles
    return bytes(allowed)


@dataclass(slots=True)
class Visitor:
    """A connection that was let in."""

    bearer: Bearer
    held: bytes
    """The hash of the secret that it came with."""
    reply: HelloReply

    @property
    def allowed(self) -> bytes:
        """What it may ask for now."""
        return kinds_allowed(self.bearer.token.roles)

    def refusal(self, frame: Frame) -> NotAllowed:
        """Why a frame is not granted. Raises ``ProtocolError`` where nobody may send it."""
        role = ROLE_OF_KIND.get(frame.kind)
        if frame.kind is Kind.HELLO_REQUEST:
            raise ProtocolError("hello is said once on a connection", frame.request_id)
        if role is None:
            raise ProtocolError(f"{frame.kind.name} is not a request", frame.request_id)
        token = self.bearer.token
        return NotAllowed(
            NotAllowedCode.ROLE_MISSING,
            f"{frame.kind.name} asks for the role {role}: the token {token.name} has {', '.join(sorted(token.roles))}",
        )


class Reception:
    """Lets visitors in by a gate. ``refresh`` brings its tokens up to date, given a monotonic time in seconds."""

    def __init__(self, gate: Gate, refresh: Callable[[float], object] = lambda now_s: None) -> None:
        self._gate = gate
        self.refresh = refresh

    def receive(self, hello: HelloRequest) -> Visitor | NotAllowed:
        """Let somebody in, or say why not."""
        version = common_version(hello)
        if isinstance(version, NotAllowed):
            return version
        try:
            bearer = self._gate.enter(hello.token, _now())
        except Refused as error:
            return not_allowed(error)
        held = hash_of(hello.token) if self._gate.asks else b""
        return Visitor(bearer, held, HelloReply(version, tuple(sorted(bearer.token.roles))))

    def check(self, visitor: Visitor) -> NotAllowed | None:
        """Why a visitor may not stay any longer."""
        if not self._gate.asks:
            return None
        try:
            self._gate.check(visitor.bearer, visitor.held, _now())
        except Refused as error:
            return not_allowed(error)
        return None

    def leave(self, visitor: Visitor) -> None:
        """A visitor has gone."""
        self._gate.leave(visitor.bearer)


def opened(frame: Frame) -> HelloRequest:
    """The hello that a connection begins with. Raises ``ProtocolError`` where it begins with anything else."""
    if frame.kind is not Kind.HELLO_REQUEST:
        raise ProtocolError(
            f"{frame.kind.name} came before a hello: say hello first, as clients of this release do",
            frame.request_id,
        )
    message = decode(frame)
    assert isinstance(message, HelloRequest)
    return message


def not_allowed(refused: Refused) -> NotAllowed:
    """The frame that says so."""
    return NotAllowed(_CODES[refused.refusal], refused.reason)


def _now() -> datetime:
    return datetime.fromtimestamp(time.time(), UTC)
