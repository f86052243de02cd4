"""What is let in to be worked on: bodies of bounded size that come in bounded time, and so many requests at once.

The invariant: a request takes its place among those being worked on only when it is whole. Who sends slowly holds up
nobody but himself, and what all of them hold is bounded.
"""

from __future__ import annotations

import asyncio
from typing import Final
from urllib.parse import unquote_to_bytes

from starlette.types import ASGIApp, Message, Receive, Scope, Send

from configuration.rest_limits import RestLimits
from rest.answering import problem_response
from rest.problems import Problem

_SAID_ONCE: Final = (b"content-type", b"idempotency-key")
"""Headers of which one would be picked, and the others overlooked."""
_CONDITIONS: Final = (b"if-match", b"if-none-match", b"if-unmodified-since")
"""Under which a client wants something to be changed; answers have nothing that they could be compared with."""
_CHANGE_NOTHING: Final = ("GET", "HEAD")


class Admission:
    """ASGI middleware, before the application. Belongs to one event loop."""

    def __init__(self, app: ASGIApp, limits: RestLimits) -> None:
        self._app = app
        self._limits = limits
        self._bodies_bytes = 0
        self._requests = 0

    @property
    def requests(self) -> int:
        """That are being worked on now."""
        return self._requests

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Read the whole body, then let the request in; or answer with a problem."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        body = _Body(self._limits, self)
        try:
            try:
                _check_text(scope)
                _check_head(scope)
                await body.read(scope, receive)
                self._take_place(scope)
            except Problem as problem:
                problem.headers["Connection"] = "close"  # the rest of the body is not read
                await problem_response(problem)(scope, receive, send)
                return
            except _Gone:
                return
            try:
                await self._app(scope, body.replay(receive), send)
            finally:
                self._requests -= 1
        finally:
            self.hold(-body.held_bytes)

    def hold(self, more_bytes: int) -> None:
        """Keep the books on bodies. Raises ``Problem`` where there is no room for more."""
        if more_bytes > 0 and self._bodies_bytes + more_bytes > self._limits.bodies_bytes_max:
            raise self._overloaded("bodies of requests take too much memory")
        self._bodies_bytes += more_bytes

    def _take_place(self, scope: Scope) -> None:
        if self._requests >= self._limits.requests_max and not scope["path"].startswith("/v1/health/"):
            raise self._overloaded(f"{self._requests} requests are being worked on")
        self._requests += 1

    def _overloaded(self, why: str) -> Problem:
        return Problem("overloaded", why, retry_after_ms=self._limits.retry_after_ms)


class _Gone(Exception):
    """The client went before its body was whole."""


class _Body:
    """The body of one request."""

    def __init__(self, limits: RestLimits, books: Admission) -> None:
        self._limits = limits
        self._books = books
        self._parts: list[bytes] = []
        self.held_bytes = 0

    async def read(self, scope: Scope, receive: Receive) -> None:
        """All of it. Raises ``Problem``, ``_Gone``."""
        self._check_announced(scope)
        try:
            async with asyncio.timeout(self._limits.body_ms_max / 1000):
                while await self._take(receive):
                    pass
        except TimeoutError:
            raise Problem(
                "body-too-slow", f"it was not whole after {self._limits.body_ms_max} ms (body_ms_max)"
            ) from None

    def replay(self, receive: Receive) -> Receive:
        """What the application receives: the body in one piece, then whatever comes."""
        whole: Message | None = {"type": "http.request", "body": b"".join(self._parts), "more_body": False}
        self._parts.clear()

        async def received() -> Message:
            nonlocal whole
            message, whole = whole, None
            return message if message is not None else await receive()

        return received

    async def _take(self, receive: Receive) -> bool:
        message = await receive()
        if message["type"] == "http.disconnect":
            raise _Gone
        part: bytes = message.get("body", b"")
        self._check_size(self.held_bytes + len(part))
        self._books.hold(len(part))
        self.held_bytes += len(part)
        self._parts.append(part)
        return bool(message.get("more_body", False))

    def _check_announced(self, scope: Scope) -> None:
        announced = next((value for name, value in scope["headers"] if name == b"content-length"), b"0")
        self._check_size(int(announced) if announced.isdigit() else 0)

    def _check_size(self, size_bytes: int) -> None:
        if size_bytes > self._limits.body_bytes_max:
            raise Problem(
                "body-too-large", f"a body has at most {self._limits.body_bytes_max:,} bytes (body_bytes_max)"
            )


def _check_text(scope: Scope) -> None:
    """Raise ``Problem`` where the address is no text: what is not UTF-8 would be read as another row."""
    try:
        unquote_to_bytes(scope.get("raw_path", b"")).decode()
        unquote_to_bytes(scope["query_string"]).decode()
    except UnicodeDecodeError:
        raise Problem("invalid-request", "the address is not UTF-8: give rows and columns as base64") from None


def _check_head(scope: Scope) -> None:
    """Raise ``Problem`` where the head says two things, or what would be overlooked.

    The invariant: a server in front of this one and this one agree on where a request ends, or the connection ends: of
    two lengths of a body each might believe another one, and take for a request what belongs to a body.
    """
    names = [name for name, _ in scope["headers"]]
    if b"content-length" in names and b"transfer-encoding" in names:
        raise Problem("invalid-request", "Content-Length and Transfer-Encoding say two things of one body: send one")
    for name in _CONDITIONS:
        if name in names and scope["method"] not in _CHANGE_NOTHING:
            raise Problem(
                "invalid-request",
                f"conditions such as {name.decode().title()} are not looked at: read in a transaction and commit it, "
                "which is refused where somebody else has written meanwhile",
            )
    for name in _SAID_ONCE:
        if names.count(name) > 1:
            raise Problem("invalid-request", f"the header {name.decode().title()} comes more than once")
    for name, value in scope["headers"]:
        if name == b"content-encoding" and value.strip().lower() not in (b"", b"identity"):
            raise Problem("invalid-request", "bodies are taken as they are, not compressed: send no Content-Encoding")
