"""The tables of docs/rest.md are the code's, and every route has its role."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Callable, Iterator
from typing import Any, get_args

import fastapi.dependencies.utils
import fastapi.routing
import httpx
import pytest
from fastapi import FastAPI

from configuration.rest_limits import RestLimits
from rest import problems
from rest.app import create_app
from rest.callers import by_token
from rest.problems import KINDS, Problem
from rest.roles import ROLES, Role, open_to_all
from tests.imports import ROOT
from tests.unit.rest.conftest import unconnected

DOCS = (ROOT / "docs" / "rest.md").read_text()


def rows_under(heading: str) -> Iterator[list[str]]:
    section = DOCS.split(f"\n## {heading}\n")[1].split("\n## ")[0]
    for line in re.findall(r"^\| `.*$", section, re.MULTILINE):
        yield [cell.strip().strip("`") for cell in line.strip("|").split(" | ")]


def test_the_documented_codes_are_those_there_are() -> None:
    documented = [tuple(row) for row in rows_under("Errors")]
    assert documented == [(code, str(kind.status), kind.again, kind.title) for code, kind in KINDS.items()]


def test_every_code_is_used() -> None:
    source = "".join(path.read_text() for path in (ROOT / "rest").glob("*.py"))
    for code in KINDS:
        assert source.count(f'"{code}"') >= 2, f"{code} is in the table, and nothing answers with it"


def operations() -> dict[str, dict[str, Any]]:
    document = create_app(unconnected, RestLimits()).openapi()
    return {one["operationId"]: one for path in document["paths"].values() for one in path.values()}


def test_every_operation_has_a_role_and_every_role_an_operation() -> None:
    assert {name: one["x-role"] for name, one in operations().items()} == dict(ROLES)
    assert set(ROLES.values()) <= set(get_args(Role))


def test_every_operation_says_what_it_does() -> None:
    for name, one in operations().items():
        assert one["description"], name
        assert {"4XX", "5XX"} <= one["responses"].keys(), name


def test_the_dependency_of_its_role_stands_before_each_route() -> None:
    asked: list[Role] = []

    def require(role: Role) -> Callable[[], None]:
        def refuse() -> None:
            asked.append(role)
            raise Problem("not-found", f"you have not the role {role}")

        return refuse

    def look(operation: dict[str, Any], answer: httpx.Response) -> None:
        assert asked[:1] == [operation["x-role"]], answer.text
        asked.clear()

    asyncio.run(ask_all(create_app(unconnected, RestLimits(), require=require), look))


def test_nothing_of_a_request_goes_through_the_threads_of_fastapi(monkeypatch: pytest.MonkeyPatch) -> None:
    """They are forty, whatever ``requests_max`` says, and a change of threads costs as much as many an answer."""
    handed: list[object] = []

    async def noting(call: Callable[..., object], *arguments: Any, **named: Any) -> object:
        handed.append(call)
        return call(*arguments, **named)

    for module in (fastapi.dependencies.utils, fastapi.routing):
        monkeypatch.setattr(module, "run_in_threadpool", noting)
    asked: list[str] = []
    for require in (open_to_all, by_token):
        app = create_app(unconnected, RestLimits(), require=require)
        asyncio.run(ask_all(app, lambda operation, answer: asked.append(operation["operationId"])))
    assert set(asked) == set(ROLES)
    assert handed == []


async def ask_all(app: FastAPI, look: Callable[[dict[str, Any], httpx.Response], None]) -> None:
    """Each operation, without the application's lifespan: nothing is connected."""
    transport = httpx.ASGITransport(app, raise_app_exceptions=False)
    async with httpx.AsyncClient(transport=transport, base_url="http://here") as client:
        for path, methods in app.openapi()["paths"].items():
            for method, one in methods.items():
                look(one, await client.request(method.upper(), re.sub(r"\{.*?\}", "5", path), json={}))


def test_a_problem_says_whether_to_try_again_and_what() -> None:
    body = Problem("overloaded", "so many.", retry_after_ms=1_500, more=1).body()
    assert body == {
        "type": "/v1/problems/overloaded",
        "code": "overloaded",
        "title": KINDS["overloaded"].title,
        "status": 503,
        "detail": f"so many. {KINDS['overloaded'].advice}",
        "retry": True,
        "retry_with": "request",
        "retry_after_ms": 1_500,
        "more": 1,
    }
    assert Problem("overloaded", "", retry_after_ms=1_500).headers == {"Retry-After": "2"}
    assert "retry_with" not in Problem("conflict", "", retry=False).body()


@pytest.mark.parametrize("code", KINDS)
def test_what_may_succeed_again_is_not_remembered_for_good(code: str) -> None:
    final = Problem(code, "").is_final()
    assert final == (KINDS[code].again != "request" and KINDS[code].status < 500)
    assert problems.TYPE_PREFIX == "/v1/problems/"
