"""Who asks: the token of each request, known before its body is read, and before any route.

The invariant: where tokens are asked for, no route that asks for a role runs without a token that has it, and what
belongs to a caller (`CALLER`) is nobody else's. Wrong tokens are answered late, and only so many at once, so that
trying them costs whoever tries, and nobody else.
"""

from __future__ import annotations

import asyncio
import time
from collections import Counter
from collections.abc import Callable
from datetime import UTC, datetime
from typing import Annotated, Any, Final

from fastapi import Request, Security
from fastapi.security import HTTPBearer
from starlette.types import ASGIApp, Receive, Scope, Send

from access import AccessRole, Gate, Refusal, Refused, Token, TokensFile, require
from configuration.rest_limits import RestLimits
from rest.answering import problem_response
from rest.owners import CALLER
from rest.problems import Problem
from rest.roles import Require, Role

REJECTION_MS: Final = 300
REJECTIONS_MAX: Final = 100
"""Wrong tokens that wait for their answers at once; others have theirs without waiting, and without a look."""
_KEY: Final = "pythia.caller"
_SCHEME = HTTPBearer(auto_error=False, bearerFormat="opaque", description="A token that `pythia token create` made.")


class Identification:
    """ASGI middleware before all others. Belongs to one event loop."""

    def __init__(self, app: ASGIApp, gate: Gate, refresh: Callable[[float], object], limits: RestLimits) -> None:
        self._app = app
        self._gate = gate
        self._refresh = refresh
        self._limits = limits
        self._under_way: Counter[str] = Counter()
        self._waiting = 0

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Find out who asks, and let the request on in that name."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        self._refresh(time.monotonic())
        try:
            scope[_KEY] = await self._identify(scope)
        except Refused as refused:
            scope[_KEY] = refused
            if _has_body(scope):  # which is not read of just anybody; what is open to all has none
                problem = problem_of_refusal(refused)
                problem.headers["Connection"] = "close"
                await problem_response(problem)(scope, receive, send)
                return
        await self._run(scope, receive, send)

    async def _run(self, scope: Scope, receive: Receive, send: Send) -> None:
        caller = scope[_KEY]
        if isinstance(caller, Refused):
            await self._app(scope, receive, send)
            return
        under_way, limits = self._under_way[caller.name], self._limits
        if under_way >= min(caller.requests_in_flight_max, limits.requests_per_token_max):
            name = "requests_in_flight_max" if under_way >= caller.requests_in_flight_max else "requests_per_token_max"
            problem = Problem(
                "too-many-requests",
                f"the token {caller.name} has {under_way} requests under way ({name})",
                retry_after_ms=limits.retry_after_ms,
                headers={"Connection": "close"},
            )
            await problem_response(problem)(scope, receive, send)
            return
        self._under_way[caller.name] += 1
        before = CALLER.set(caller.name)
        try:
            await self._app(scope, receive, send)
        finally:
            CALLER.reset(before)
            self._under_way[caller.name] -= 1

    async def _identify(self, scope: Scope) -> Token:
        secret = _secret_of(scope)
        try:
            return self._gate.identify(secret, datetime.now(UTC)).token
        except Refused as refused:
            if secret and self._waiting < REJECTIONS_MAX:
                self._waiting += 1
                try:
                    await asyncio.sleep(REJECTION_MS / 1000)
                finally:
                    self._waiting -= 1
            if refused.refusal is Refusal.NO_TOKEN:
                reason = "a token is asked for here, and none was given"
                raise Refused(Refusal.NO_TOKEN, reason) from refused
            raise


def by_token(role: Role) -> Callable[..., Any]:
    """The dependency that lets callers with a role pass."""
    if role == "open":
        return _pass

    async def allow(request: Request, _: Annotated[object, Security(_SCHEME)]) -> None:
        caller = request.scope[_KEY]
        try:
            if isinstance(caller, Refused):
                raise caller
            require(caller, AccessRole(role), f"{request.method} {request.url.path}")
        except Refused as refused:
            raise problem_of_refusal(refused) from refused

    return allow


async def _pass() -> None:
    """Open to all."""


class Callers:
    """How one process finds out who asks; ``path``: of the file of tokens. Raises ``BadTokens``, ``OSError``."""

    def __init__(self, path: str) -> None:
        tokens = TokensFile(path, time.monotonic())
        self._refresh = tokens.refresh
        self._gate = Gate(lambda: tokens.current)
        self.require: Require = by_token

    def before(self, app: ASGIApp, limits: RestLimits) -> ASGIApp:
        """The application behind this."""
        return Identification(app, self._gate, self._refresh, limits)


def problem_of_refusal(refused: Refused) -> Problem:
    """401 for who is not known, 403 for who may not."""
    if refused.refusal is Refusal.ROLE_MISSING:
        return Problem(
            "role-missing", refused.reason, headers={"WWW-Authenticate": 'Bearer error="insufficient_scope"'}
        )
    error = "" if refused.refusal is Refusal.NO_TOKEN else ' error="invalid_token"'
    code = "token-missing" if refused.refusal is Refusal.NO_TOKEN else "token-refused"
    return Problem(code, refused.reason, headers={"WWW-Authenticate": f"Bearer{error}"})


def _secret_of(scope: Scope) -> str:
    given = [value for name, value in scope["headers"] if name == b"authorization"]
    scheme, _, secret = (given[0] if len(given) == 1 else b"").partition(b" ")
    return secret.strip().decode("latin-1") if scheme.lower() == b"bearer" else ""


def _has_body(scope: Scope) -> bool:
    headers = dict(scope["headers"])
    return b"transfer-encoding" in headers or headers.get(b"content-length", b"0").strip() != b"0"
