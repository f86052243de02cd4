"""The console: its page, which holds nothing secret and asks nobody but this server, and the routes that it asks.

The page is files of this package, read once. Its headers let it run and load only these, be shown in no frame, and send
nothing anywhere else; so a value that came in as text can at worst be shown as text.
"""

from __future__ import annotations

import re
from base64 import b64encode
from collections.abc import Mapping
from functools import cache
from hashlib import sha256
from importlib.resources import files
from typing import Annotated

from fastapi import Depends, Response
from fastapi.responses import HTMLResponse

from fleet import CannotHandOver, HandoverUncertain
from lease import LeaseError
from rest import installation_models as models
from rest.installation import installation_metrics as metrics_of
from rest.installation import installation_state
from rest.overview import HandoverUnderWay
from rest.problems import Problem
from rest.routing import Routes
from rest.services import Services, services_of

Anyone = Annotated[Services, Depends(services_of)]

PAGE = "index.html"
_MEDIA_TYPES = {
    ".html": "text/html; charset=utf-8",
    ".css": "text/css; charset=utf-8",
    ".js": "text/javascript; charset=utf-8",
    ".svg": "image/svg+xml",
}
_INLINE_SCRIPT = re.compile(rb"<script>(.*?)</script>", re.DOTALL)


@cache
def console_files() -> Mapping[str, bytes]:
    """Name → content of all that the page consists of."""
    return {one.name: one.read_bytes() for one in (files("rest") / "console").iterdir() if one.is_file()}


def _own_script() -> str:
    """The one script that stands in the page itself, as the policy names it."""
    (script,) = _INLINE_SCRIPT.findall(console_files()[PAGE].replace(b"\r\n", b"\n"))  # as browsers read it
    return f"'sha256-{b64encode(sha256(script).digest()).decode()}'"


HEADERS: Mapping[str, str] = {
    "Content-Security-Policy": f"default-src 'none'; script-src 'self' {_own_script()}; style-src 'self'; "
    "img-src 'self'; connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'",
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cache-Control": "no-cache",
}


def add_console_routes(routes: Routes) -> None:
    """The page under /console, and what it asks under /v1/installation."""
    tags = ["console"]
    routes.add("GET", "/console", console_page, None, tags=tags, response_class=HTMLResponse)
    routes.add("GET", "/console/{file}", console_file, None, tags=tags, response_class=Response)
    tags = ["installation"]
    routes.add("GET", "/v1/installation", installation, models.InstallationState, tags=tags)
    routes.add("GET", "/v1/installation/metrics", installation_metrics, models.InstallationMetrics, tags=tags)
    routes.add("POST", "/v1/installation/hand-over", hand_over, models.HandedOver, tags=tags)


async def console_page() -> Response:
    """The console, a page for browsers."""
    return _file(PAGE)


async def console_file(file: str) -> Response:
    """A part of the console's page."""
    return _file(file)


def _file(name: str) -> Response:
    suffix = name[name.rfind(".") :]
    if name not in console_files() or suffix not in _MEDIA_TYPES:
        raise Problem("not-found", f"the console has no file {name!r}: it begins at /console")
    return Response(console_files()[name], headers=dict(HEADERS), media_type=_MEDIA_TYPES[suffix])


async def installation(services: Anyone) -> models.InstallationState:
    """How the whole installation is: answered by every process, with or without a primary."""
    overview = services.overview
    look = await overview.look()
    return installation_state(look, overview.root, overview.own_address, elected=overview.elected)


async def installation_metrics(services: Anyone) -> models.InstallationMetrics:
    """What the primary has counted, as numbers: the same that `/metrics` of its own REST has as text."""
    return metrics_of(await services.overview.look())


async def hand_over(services: Anyone) -> models.HandedOver:
    """Have the primary finish what is under way and a standby take over: clients see a pause, and no error."""
    if not services.overview.elected:
        raise Problem("cannot-hand-over", "this oracle runs alone: there is no other to hand over to")
    try:
        done = await services.overview.hand_over(services.limits.deadline_ms)
    except HandoverUnderWay:
        raise Problem("cannot-hand-over", "a hand-over that was asked for here is still under way") from None
    except HandoverUncertain as error:
        raise Problem("hand-over-uncertain", str(error)) from error
    except (CannotHandOver, LeaseError) as error:
        raise Problem("cannot-hand-over", str(error)) from error
    return models.HandedOver(
        from_holder=done.from_holder,
        to_holder=done.to_holder,
        from_epoch=str(done.from_epoch),
        to_epoch=str(done.to_epoch),
        took_ms=done.took_ms,
    )
