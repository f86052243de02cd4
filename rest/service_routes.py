"""About the service itself: is it alive, may it be asked, how is the oracle, what does a code mean."""

from __future__ import annotations

from typing import Annotated

from fastapi import Depends, Response
from fastapi.responses import PlainTextResponse

from client import NoPrimary
from rest import models
from rest.exposition import CONTENT_TYPE, prometheus_text
from rest.installation import ROLE_NAMES
from rest.problems import KINDS, Problem
from rest.routing import Routes
from rest.services import Services, services_of
from wire import Role, StatusReply

Anyone = Annotated[Services, Depends(services_of)]


def add_service_routes(routes: Routes) -> None:
    """Health, status, and what the problem codes mean."""
    tags = ["service"]
    routes.add("GET", "/v1/health/live", live, models.Health, tags=tags)
    routes.add("GET", "/v1/health/ready", ready, models.Health, tags=tags)
    routes.add("GET", "/metrics", metrics, None, tags=tags, response_class=PlainTextResponse)
    routes.add("GET", "/v1/status", status, models.Status, tags=tags)
    routes.add("GET", "/v1/problems/{code}", problem, models.ProblemKind, tags=tags)


async def live() -> models.Health:
    """This process answers. Where it does not, restart it."""
    return models.Health()


async def ready(services: Anyone) -> models.Health:
    """The oracle beside this process is primary and answers: transactional requests may be sent here."""
    services.require_primary(told_where=False)  # this is open to who has no token
    reply = await services.own_status.get()
    if reply.role is not Role.PRIMARY:
        raise Problem(
            "no-primary", f"the oracle here is {reply.role.name.lower()}", retry_after_ms=services.limits.retry_after_ms
        )
    return models.Health()


async def metrics(services: Anyone) -> Response:
    """What the oracle beside this process counts, and what this process does, for Prometheus."""
    reply = await services.own_metrics.get()
    return Response(prometheus_text(reply, services.metering, services.metrics), media_type=CONTENT_TYPE)


async def status(services: Anyone) -> models.Status:
    """How the oracle beside this process is, and what is held here."""
    try:
        reply = await services.own_status.get()
    except NoPrimary:
        reply = None
    place = services.whereabouts.now()
    return models.Status(
        role="silent" if reply is None else ROLE_NAMES[reply.role],
        holder="" if reply is None else reply.holder,
        oracle=services.own_oracle_address,
        primary="" if reply is None else reply.primary_address,
        primary_rest="" if place is None else place.rest,
        numbers={} if reply is None else {name: str(getattr(reply, name)) for name in StatusReply.NUMBERS},
        open_transactions=services.held_transactions.transactions,
        written_bytes=services.held_transactions.written_bytes,
    )


async def problem(code: str) -> models.ProblemKind:
    """What the code of a problem document means, and what to do."""
    kind = KINDS.get(code)
    if kind is None:
        raise Problem("not-found", f"there is no problem code {code!r}; there are: {', '.join(KINDS)}")
    return models.ProblemKind(code=code, status=kind.status, title=kind.title, retry=kind.again, advice=kind.advice)
