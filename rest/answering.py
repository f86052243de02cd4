"""How answers leave: errors as problem documents, and the same answer for the same `Idempotency-Key`."""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable, Sequence
from typing import Annotated, Any

from fastapi import FastAPI, Header, Request, Response
from fastapi.exceptions import RequestValidationError
from fastapi.responses import JSONResponse
from pydantic import BaseModel
from starlette.exceptions import HTTPException
from starlette.routing import BaseRoute, Match

from client import PythiaError
from rest.idempotency import KEY_CHARACTERS_MAX, Answer
from rest.owners import CALLER
from rest.problems import MEDIA_TYPE, Problem, problem_of
from rest.services import Services
from store import StoreError

_log = logging.getLogger(__name__)

IdempotencyKey = Annotated[
    str | None,
    Header(
        alias="Idempotency-Key",
        min_length=1,
        max_length=KEY_CHARACTERS_MAX,
        pattern=r"^[\x21-\x7e]+$",
        description="The same key with the same request gets the same answer, and the work is done once.",
    ),
]
_MISTAKES_SHOWN_MAX = 5
_CODES = {404: "not-found", 405: "method-not-allowed"}


def problem_response(problem: Problem) -> Response:
    """A problem document with its status and headers."""
    return JSONResponse(problem.body(), problem.kind.status, headers=problem.headers, media_type=MEDIA_TYPE)


async def answered(
    request: Request, services: Services, key: str | None, status: int, work: Callable[[], Awaitable[BaseModel]]
) -> Response:
    """What ``work`` gives, once for each key. A problem that stands for good is remembered like any answer."""

    async def answer() -> Answer:
        try:
            return Answer(status, (await work()).model_dump_json().encode())
        except (PythiaError, StoreError) as error:
            return _final(problem_of(error, services.limits.retry_after_ms))
        except Problem as problem:
            return _final(problem)

    if key is None:
        done = await answer()
    else:
        asked = f"{request.method} {request.url.path}?{request.url.query}\n".encode() + await request.body()
        done = await services.answers.once(CALLER.get(), key, asked, answer)
    return Response(done.body, done.status, media_type=done.media_type)


def _final(problem: Problem) -> Answer:
    """The answer to remember; raises the problem where it is none."""
    if not problem.is_final():
        raise problem
    response = problem_response(problem)
    return Answer(response.status_code, bytes(response.body), MEDIA_TYPE)


def install_handlers(app: FastAPI, routes: Sequence[BaseRoute], retry_after_ms: int) -> None:
    """Have every error leave as a problem document. ``routes``: all but the OpenAPI document's, which is only read."""

    def of_problem(_: Request, error: Exception) -> Response:
        assert isinstance(error, Problem)
        return problem_response(error)

    def of_library(_: Request, error: Exception) -> Response:
        assert isinstance(error, (PythiaError, StoreError))
        return problem_response(problem_of(error, retry_after_ms))

    def of_validation(_: Request, error: Exception) -> Response:
        assert isinstance(error, RequestValidationError)
        return problem_response(Problem("invalid-request", _mistakes(error)))

    def of_http(request: Request, error: Exception) -> Response:
        assert isinstance(error, HTTPException)
        code = _CODES.get(error.status_code, "invalid-request")
        headers = error.headers
        if code == "method-not-allowed":
            headers = {"Allow": ", ".join(sorted(_methods(routes, request) or {"GET", "HEAD"}))}
        unread = error.__cause__  # what FastAPI met as it read a body
        if unread is None:
            detail = str(error.detail)
        else:
            why = "it is nested too deeply" if isinstance(unread, RecursionError) else unread
            detail = f"the body cannot be read as JSON: {why}"
        return problem_response(Problem(code, detail, headers=headers))

    def of_fault(request: Request, error: Exception) -> Response:
        _log.error("%s %s failed", request.method, request.url.path, exc_info=error)
        closes = {"Connection": "close"}  # which the server does where an exception comes up to it
        return problem_response(Problem("internal", "the request met a fault of this server", headers=closes))

    app.add_exception_handler(Problem, of_problem)
    app.add_exception_handler(PythiaError, of_library)
    app.add_exception_handler(StoreError, of_library)
    app.add_exception_handler(RequestValidationError, of_validation)
    app.add_exception_handler(HTTPException, of_http)
    app.add_exception_handler(Exception, of_fault)


def _methods(routes: Sequence[BaseRoute], request: Request) -> set[str]:
    """All that the path of a request can be asked with: Starlette tells those of one route, and each has one."""
    matching = (route for route in routes if route.matches(request.scope)[0] is not Match.NONE)
    found = {method for route in matching for method in getattr(route, "methods", None) or ()}
    return found | {"HEAD"} if "GET" in found else found


def _mistakes(error: RequestValidationError) -> str:
    mistakes: list[dict[str, Any]] = list(error.errors())
    if any(isinstance(one.get("input"), bytes) for one in mistakes):  # FastAPI gives on what it does not take for JSON
        return "the body is read as JSON, and only with Content-Type: application/json"
    told = list(dict.fromkeys(map(_shown, mistakes)))  # what a dependency reads, too, comes twice
    more = f" and {len(told) - _MISTAKES_SHOWN_MAX} more" if len(told) > _MISTAKES_SHOWN_MAX else ""
    return "; ".join(told[:_MISTAKES_SHOWN_MAX]) + more


def _shown(mistake: dict[str, Any]) -> str:
    where = ".".join(str(part) for part in mistake["loc"])
    if mistake["type"] == "json_invalid":
        return f"{where}: {mistake['msg']}: {mistake['ctx']['error']}"
    return f"{where}: {mistake['msg']}"
