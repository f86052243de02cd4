"""What this process is asked and answers, counted for Prometheus. Belongs to its event loop."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterable, Iterator
from typing import Final

from fastapi.routing import APIRoute
from prometheus_client.core import GaugeMetricFamily, Metric
from prometheus_client.registry import Collector
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from client.metrics.instruments import Instruments
from rest.metric_families import FAMILIES
from rest.problems import MEDIA_TYPE

NO_ROUTE: Final = "none"
"""The operation of what never came to a route: a path that there is not, or what was refused before."""
OK: Final = "ok"
GONE: Final = "gone"
FAULT: Final = "internal"
HEAD_TOO_SLOW: Final = "head_too_slow"
UNREAD: Final = "unread"
NO_ROOM: Final = "no_room"
CAUSES: Final = (HEAD_TOO_SLOW, UNREAD, NO_ROOM)
"""For which a connection is closed."""
_MEDIA_TYPE: Final = MEDIA_TYPE.encode()


class RestMetering(Collector):
    """The counts of one process, and where to read its gauges."""

    def __init__(self) -> None:
        self._instruments = Instruments(FAMILIES)
        self._gauges: dict[str, Callable[[], float]] = {}
        self._expired = self._instruments.counter("pythia_rest_expired_transactions_total")
        for cause in CAUSES:
            self._instruments.counter("pythia_rest_closed_connections_total", cause=cause)

    def expect(self, operations: Iterable[str]) -> None:
        """Have these counted from zero: where a counter begins with a fault, Prometheus sees no increase by it."""
        for operation in operations:
            for answer in (OK, FAULT):
                self._instruments.counter("pythia_rest_requests_total", operation=operation, answer=answer)

    def read_gauge(self, name: str, read: Callable[[], float]) -> None:
        """Where to read a gauge when somebody asks."""
        self._gauges[name] = read

    def answered(self, operation: str, answer: str, seconds: float) -> None:
        """A request came to its end."""
        self._instruments.counter("pythia_rest_requests_total", operation=operation, answer=answer).inc()
        self._instruments.histogram("pythia_rest_request_seconds", operation=operation).observe(seconds)

    def closed(self, cause: str) -> None:
        """A connection was closed here."""
        self._instruments.counter("pythia_rest_closed_connections_total", cause=cause).inc()

    def expired(self) -> None:
        """A transaction was rolled back that its caller had left."""
        self._expired.inc()

    def collect(self) -> Iterator[Metric]:
        """All of it; of gauges those of which it is known where to read them."""
        yield from self._instruments.collect()
        for family in FAMILIES:
            if family.kind == "gauge" and family.name in self._gauges:
                yield GaugeMetricFamily(family.name, family.text, value=self._gauges[family.name]())


class Counted:
    """ASGI middleware, before all others: counts each request once, by what its client was told."""

    def __init__(self, app: ASGIApp, metering: RestMetering) -> None:
        self._app = app
        self._metering = metering

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Let it through."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        asked = _as_get(scope)
        answer = _Answer(send)
        began_s = time.monotonic()
        try:
            await self._app(asked, receive, answer.send)
        finally:
            self._metering.answered(_operation_of(asked), answer.word, time.monotonic() - began_s)


def _operation_of(asked: Scope) -> str:
    """A route of this path that is asked for by other methods is noted as well."""
    route = asked.get("route")
    if not isinstance(route, APIRoute) or asked["method"] not in (route.methods or ()):
        return NO_ROUTE
    return route.operation_id or NO_ROUTE


class _Answer:
    """What one client is told: the code of a problem is read where the client reads it, whoever sent it."""

    def __init__(self, send: Send) -> None:
        self._send = send
        self._is_problem = False
        self._body = b""
        self.word = GONE

    async def send(self, message: Message) -> None:
        """Send a part of it on."""
        await self._send(message)
        if message["type"] == "http.response.start":
            self._is_problem = (b"content-type", _MEDIA_TYPE) in message["headers"]
            self.word = GONE if self._is_problem else OK
        elif self._is_problem:
            self._body += message.get("body", b"")
            if not message.get("more_body", False):
                self.word = json.loads(self._body)["code"]


def _as_get(scope: Scope) -> Scope:
    """What HEAD asks is what GET would be answered with; whoever sends the answer leaves its body out.

    A copy in any case, in which the route is noted that it comes to: by FastAPI.
    """
    return {**scope, "method": "GET"} if scope["method"] == "HEAD" else {**scope}
