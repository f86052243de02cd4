"""Who is let in, and who is in: tokens, and what their holders use at the moment. Pure.

The invariant: at most ``connections_max`` connections and ``requests_in_flight_max`` requests of one token are counted
at any time, and whoever is counted in is counted out once. For one thread.
"""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime

from access.roles import AccessRole
from access.tokens import EVERYBODY, Refusal, Refused, Token, Tokens


class Bearer:
    """All who hold one token, in this process."""

    __slots__ = ("connections", "requests", "token")

    def __init__(self, token: Token) -> None:
        self.token = token
        self.connections = 0
        self.requests = 0
        """Not answered yet."""

    @property
    def is_beyond(self) -> bool:
        """Whether one request is too many."""
        return self.requests > self.token.requests_in_flight_max


class Gate:
    """Lets holders of tokens in. ``tokens`` gives those in force now; ``None``: everybody may do everything."""

    def __init__(self, tokens: Callable[[], Tokens] | None = None) -> None:
        self._tokens = tokens
        self._bearers: dict[str, Bearer] = {}

    @property
    def asks(self) -> bool:
        """Whether tokens are asked for."""
        return self._tokens is not None

    def identify(self, secret: str, now: datetime) -> Bearer:
        """Who that is, and counted nowhere. Raises ``Refused``."""
        token = EVERYBODY if self._tokens is None else self._tokens().find(secret)
        token.check_current(now)
        bearer = self._bearers.get(token.name)
        if bearer is None:
            return Bearer(token)
        bearer.token = token
        return bearer

    def enter(self, secret: str, now: datetime) -> Bearer:
        """Let a connection in. Raises ``Refused``."""
        bearer = self.identify(secret, now)
        token = bearer.token
        if bearer.connections >= token.connections_max:
            raise Refused(
                Refusal.TOO_MANY_CONNECTIONS,
                f"the token {token.name} holds {bearer.connections} connections, as many as its connections_max allows",
            )
        bearer.connections += 1
        self._bearers[token.name] = bearer
        return bearer

    def leave(self, bearer: Bearer) -> None:
        """A connection that was let in has gone."""
        bearer.connections -= 1
        if not bearer.connections:
            self._bearers.pop(bearer.token.name, None)

    def check(self, bearer: Bearer, held: bytes, now: datetime) -> None:
        """Whether a connection may stay that came in with a secret of the hash ``held``. Raises ``Refused``."""
        if self._tokens is None:
            return
        token = self._tokens().by_name.get(bearer.token.name)
        if token is None or held not in token.hashes:
            raise Refused(Refusal.UNKNOWN_TOKEN, f"the token {bearer.token.name} was withdrawn")
        token.check_current(now)
        bearer.token = token


def require(token: Token, role: AccessRole, what: str) -> None:
    """Raises ``Refused`` where a token has not got the role that ``what`` asks for."""
    if role not in token.roles:
        held = ", ".join(sorted(token.roles))
        raise Refused(
            Refusal.ROLE_MISSING, f"{what} asks for the role {role}: the token {token.name} has {held or 'none'}"
        )
