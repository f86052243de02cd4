"""The application: routes, what they need, and the order of what a request passes through.

``require`` is the one place where authentication comes in: it makes, for each role, the dependency that lets a caller
pass or raises a ``Problem``.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections.abc import AsyncIterator, Callable, Collection
from importlib.metadata import PackageNotFoundError, version

from fastapi import APIRouter, FastAPI
from starlette.types import ASGIApp

from configuration.rest_limits import RestLimits
from rest.admission import Admission
from rest.answering import install_handlers
from rest.bodies import RouteOfPlainObjects
from rest.callers import Callers
from rest.console_routes import add_console_routes
from rest.metering import NO_ROUTE, Counted, RestMetering
from rest.oracle_routes import add_oracle_routes
from rest.pages import ForeignPages
from rest.problems import Problem
from rest.roles import Require, open_to_all
from rest.routing import Routes, takes_of
from rest.service_routes import add_service_routes
from rest.services import Installation, Services
from rest.table_routes import add_table_routes

_log = logging.getLogger(__name__)

EXPIRE_INTERVAL_MS = 1_000

_DESCRIPTION = """Snapshot-isolated transactions over HBase tables, and the oracle behind them.

Timestamps and ids are texts: they have 63 and 64 bits. Errors are problem documents (RFC 9457) whose `code` says what
happened and whose `retry` says whether to try again. Rows, columns and values are UTF-8, or base64
with `?encoding=base64`.
"""


def create_app(connect: Callable[[], Installation], limits: RestLimits, *, require: Require = open_to_all) -> FastAPI:
    """The application without its admission (``admitted``). ``connect`` is called once its event loop runs."""

    metering = RestMetering()

    @contextlib.asynccontextmanager
    async def lifespan(app: FastAPI) -> AsyncIterator[None]:
        services = Services(connect(), limits, metering)
        app.state.services = services
        expiring = asyncio.create_task(_expire_for_ever(services))
        try:
            yield
        finally:
            expiring.cancel()
            await services.close()

    app = FastAPI(
        title="Pythia",
        version=_version(),
        description=_DESCRIPTION,
        openapi_url="/v1/openapi.json",
        docs_url=None,  # its page would load scripts from elsewhere
        redoc_url=None,
        redirect_slashes=False,  # a path with a slash more is another one, and none here
        lifespan=lifespan,
    )
    router = APIRouter(route_class=RouteOfPlainObjects)
    routes = Routes(router, require)
    add_service_routes(routes)
    add_oracle_routes(routes)
    add_table_routes(routes)
    add_console_routes(routes)
    app.include_router(router)
    app.state.takes = takes_of(app)
    app.state.metering = metering
    metering.expect([NO_ROUTE, *app.state.takes])
    install_handlers(app, router.routes, limits.retry_after_ms)
    return app


def admitted(
    app: FastAPI, limits: RestLimits, callers: Callers | None = None, own_names: Collection[str] | None = ()
) -> ASGIApp:
    """The application, for requests that are within the limits, say who asks, and come from no other site's page.

    All are counted, those too that are turned away.
    """
    metering: RestMetering = app.state.metering
    admission = Admission(app, limits)
    metering.read_gauge("pythia_rest_requests", lambda: admission.requests)
    metering.read_gauge("pythia_rest_requests_max", lambda: limits.requests_max)
    known = admission if callers is None else callers.before(admission, limits)
    return Counted(ForeignPages(known, own_names if callers is None else None), metering)


async def _expire_for_ever(services: Services) -> None:
    while True:
        await asyncio.sleep(EXPIRE_INTERVAL_MS / 1000)
        try:
            await services.held_transactions.expire()
        except Problem as problem:
            _log.warning("transactions that are not used could not be rolled back now: %s", str(problem))
        except Exception:  # without this loop they would stay for good
            _log.exception("transactions that are not used could not be rolled back now")


def _version() -> str:
    try:
        return version("pythia-tso")
    except PackageNotFoundError:
        return "0"
