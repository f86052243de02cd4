"""How a route is added: with its role, its answer's model, what its errors look like, and which parameters it takes."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Final

from fastapi import APIRouter, Depends, FastAPI, Request
from fastapi.responses import JSONResponse, Response
from pydantic import BaseModel

from rest.problems import MEDIA_TYPE, Problem
from rest.roles import ROLES, Require

_PROBLEM: dict[str, Any] = {
    "description": "A problem document; `/v1/problems/{code}` explains each code.",
    "content": {MEDIA_TYPE: {"schema": {"$ref": "#/components/schemas/ProblemDocument"}}},
}
_SAYS_NOTHING: Final = (b"", b"{}", b"null")
"""What libraries send where their caller gave nothing."""


class Routes:
    """Adds routes to a router. ``require`` makes the dependency that a role asks for."""

    def __init__(self, router: APIRouter, require: Require) -> None:
        self._router = router
        self._require = require

    def add(
        self,
        method: str,
        path: str,
        handler: Callable[..., Any],
        answer: type[BaseModel] | None,
        *,
        status: int = 200,
        tags: Iterable[str],
        response_class: type[Response] = JSONResponse,
    ) -> None:
        """``handler``'s name is the operation's, by which ``ROLES`` knows it; ``answer`` its model, if it
        has one; ``response_class`` tells the document of what media type the answer is. Raises ``KeyError`` for one
        without a role.
        """
        name: str = handler.__name__
        role = ROLES[name]
        self._router.add_api_route(
            path,
            handler,
            methods=[method],
            response_model=answer,
            status_code=status,
            response_class=response_class,
            operation_id=name,
            tags=list(tags),
            dependencies=[Depends(self._require(role)), *([Depends(_only_known(name))] if role != "open" else [])],
            responses={"4XX": _PROBLEM, "5XX": _PROBLEM},
            openapi_extra={"x-role": role},
        )


@dataclass(frozen=True, slots=True)
class Takes:
    """What an operation takes: its query parameters, whether each may come several times, and whether it has a body."""

    queries: Mapping[str, bool]
    body: bool


def takes_of(app: FastAPI) -> dict[str, Takes]:
    """Operation → what it takes, as the OpenAPI document has it."""
    operations = (operation for methods in app.openapi()["paths"].values() for operation in methods.values())
    return {
        operation["operationId"]: Takes(
            {one["name"]: _is_list(one["schema"]) for one in operation.get("parameters", ()) if one["in"] == "query"},
            "requestBody" in operation,
        )
        for operation in operations
    }


def _is_list(schema: Mapping[str, Any]) -> bool:
    return any(one.get("type") == "array" for one in schema.get("anyOf", [schema]))


def _only_known(name: str) -> Callable[..., Any]:
    """The dependency that refuses a query parameter that the operation does not have, a second one of a name, and a
    body where it has none.

    To overlook it would be to do something else than was asked for: with ``?columns=…`` in place of ``?column=…``, or
    with the columns in a body, a whole row would be deleted.
    """

    async def check(request: Request) -> None:
        takes: Takes = request.app.state.takes[name]
        known = takes.queries
        if not takes.body and (await request.body()).strip() not in _SAYS_NOTHING:
            raise Problem("invalid-request", "this operation has no body: what one says would be overlooked")
        unknown = sorted(request.query_params.keys() - known.keys())
        if unknown:
            there = f"it takes {', '.join(sorted(known))}" if known else "it takes none"
            raise Problem("invalid-request", f"there is no query parameter {', '.join(unknown)} here: {there}")
        given = [one for one, _ in request.query_params.multi_items()]
        repeated = sorted(one for one, several in known.items() if not several and given.count(one) > 1)
        if repeated:
            raise Problem("invalid-request", f"the query parameter {', '.join(repeated)} comes more than once")

    return check
