"""Requests that a web page had a browser send: which of them are let through.

A browser sends what any page asks it to from where it runs, which is inside where this server may be trusted to be, and
with its certificate. Two ways of that are told apart from what users do. A page of another site asks for a change
(cross-site request forgery): browsers say so in ``Origin`` and ``Sec-Fetch-Site``, which no page can set. Or a page
has its own name point here once it is loaded (DNS rebinding): then ``Host`` has that name; no page can choose an
address, or a name without dots, for itself. What is no browser sends none of the first, and is asked nothing by them.

The invariant: no page that was not served here changes anything; without tokens, none reads anything either.
"""

from __future__ import annotations

from collections.abc import Collection
from ipaddress import ip_address
from typing import Final

from starlette.types import ASGIApp, Receive, Scope, Send

from rest.answering import problem_response
from rest.problems import Problem

_CHANGES_NOTHING: Final = frozenset({"GET", "HEAD"})
_TELLS_NOTHING: Final = "/v1/health/"
"""Whoever watches over a process asks by any name."""
_OWN_SITES: Final = frozenset({"same-origin", "none"})
"""``none``: the user's own doing, not a page's."""


class ForeignPages:
    """ASGI middleware. ``names``: the hosts with dots that this server goes by; ``None``: any, since what no page has
    is asked for: a token, or a certificate for the name.
    """

    def __init__(self, app: ASGIApp, names: Collection[str] | None) -> None:
        self._app = app
        self._names = None if names is None else frozenset(name.lower().removesuffix(".") for name in names)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Let the request on, or answer why not."""
        if scope["type"] == "http":
            names = None if scope["path"].startswith(_TELLS_NOTHING) else self._names
            refusal = refusal_of(scope["method"], _headers(scope), names)
            if refusal:
                problem = Problem("foreign-page", refusal, headers={"Connection": "close"})
                await problem_response(problem)(scope, receive, send)
                return
        await self._app(scope, receive, send)


def refusal_of(method: str, headers: dict[str, list[str]], names: Collection[str] | None) -> str:
    """Why a request is not let through; empty where it is. ``headers`` by their names in small letters."""
    hosts = headers.get("host", [])
    if names is not None:
        for host in hosts:
            if not is_own_host(_without_port(host), names):
                return (
                    f"the host {host!r} is no name of this server: ask by its address, have rest_names name it, or "
                    "have tokens asked for (tokens_file)"
                )
    if method in _CHANGES_NOTHING:
        return ""
    if sites := headers.get("sec-fetch-site"):  # what the browser knows; between it and us Host may have changed
        return "" if _OWN_SITES.issuperset(sites) else "a page of another site asked for it"
    for origin in headers.get("origin", []):
        if origin.partition("://")[2] not in hosts:
            return f"a page of {origin!r} asked for it"
    return ""


def is_own_host(host: str, names: Collection[str]) -> bool:
    """Whether no page of anybody else can be at this host, which has no port any more."""
    name = host.lower().removesuffix(".")
    if "." not in name or name.endswith(".localhost") or name in names:
        return True
    try:
        ip_address(name)
    except ValueError:
        return False
    return True


def _without_port(host: str) -> str:
    """``[::1]:80`` becomes ``::1``, which has no dot."""
    if host.startswith("["):
        return host[1:].partition("]")[0]
    return host.partition(":")[0]


def _headers(scope: Scope) -> dict[str, list[str]]:
    found: dict[str, list[str]] = {}
    for name, value in scope["headers"]:
        found.setdefault(name.decode("latin-1").lower(), []).append(value.decode("latin-1"))
    return found
