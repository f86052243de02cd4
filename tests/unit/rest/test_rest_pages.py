"""Pages of other sites: what a browser sends for them is refused, what users and programs send is not."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest
from starlette.types import Message

from rest.callers import Callers
from rest.pages import ForeignPages, refusal_of
from tests.tokens import one_of_each
from tests.unit.rest.asking import problem, refused
from tests.unit.rest.conftest import Serve, Served

OWN = ["tso1.example.org"]


@pytest.mark.parametrize(
    ("method", "headers", "names", "refused_for"),
    [
        ("GET", {}, OWN, ""),
        ("POST", {"host": ["127.0.0.1:5481"]}, OWN, ""),
        ("POST", {"host": ["[::1]:5481"]}, OWN, ""),
        ("POST", {"host": ["LocalHost:5481"]}, OWN, ""),
        ("POST", {"host": ["a.localhost"]}, OWN, ""),
        ("POST", {"host": ["tso-1:5481"]}, OWN, ""),
        ("POST", {"host": ["TSO1.example.org.:5481"]}, OWN, ""),
        ("POST", {"host": ["any.example.org"]}, None, ""),
        ("GET", {"host": ["evil.example.org:5481"]}, OWN, "no name of this server"),
        ("GET", {"host": ["127.0.0.1.evil.example.org"]}, OWN, "no name of this server"),
        ("POST", {"host": ["tso1.example.org.evil"]}, OWN, "no name of this server"),
        ("GET", {"host": ["localhost", "evil.example.org"]}, OWN, "no name of this server"),
        ("POST", {"host": ["localhost:5481"], "origin": ["http://localhost:5481"]}, OWN, ""),
        ("POST", {"host": ["tso1:5481"], "origin": ["https://tso1:5481"]}, None, ""),
        ("POST", {"host": ["localhost:5481"], "origin": ["http://localhost:8080"]}, OWN, "a page of"),
        ("DELETE", {"host": ["localhost:5481"], "origin": ["null"]}, None, "a page of"),
        ("OPTIONS", {"host": ["localhost"], "origin": ["http://evil.example.org"]}, None, "a page of"),
        ("GET", {"host": ["localhost"], "origin": ["http://evil.example.org"]}, OWN, ""),
        ("POST", {"host": ["localhost"], "sec-fetch-site": ["cross-site"]}, OWN, "another site"),
        ("POST", {"host": ["localhost"], "sec-fetch-site": ["same-site"]}, None, "another site"),
        ("POST", {"host": ["localhost"], "sec-fetch-site": ["same-origin"]}, OWN, ""),
        ("POST", {"host": ["localhost"], "sec-fetch-site": ["none"]}, OWN, ""),
        ("POST", {"host": ["tso:1"], "origin": ["https://console"], "sec-fetch-site": ["same-origin"]}, None, ""),
        ("POST", {"host": ["tso:1"], "origin": ["http://tso:1"], "sec-fetch-site": ["cross-site"]}, None, "another"),
        ("GET", {"host": ["localhost"], "sec-fetch-site": ["cross-site"]}, OWN, ""),
    ],
)
def test_which_requests_of_pages_are_let_through(
    method: str, headers: dict[str, list[str]], names: list[str] | None, refused_for: str
) -> None:
    refusal = refusal_of(method, headers, names)
    assert refused_for in refusal
    assert bool(refusal) == bool(refused_for)


def test_a_page_whose_name_was_made_to_point_here_gets_nothing(served: Served) -> None:
    for method, path in (("GET", "/v1/status"), ("GET", "/console"), ("POST", "/v1/oracle/begin")):
        answer = served.client.request(method, path, headers={"Host": "evil.example.org:5481"})
        assert refused(answer) == (403, "foreign-page")
    assert "rest_names" in problem(answer)["detail"]
    assert served.client.get("/v1/health/live", headers={"Host": "evil.example.org"}).status_code == 200


def test_a_page_of_another_site_changes_nothing(served: Served) -> None:
    for headers in ({"Origin": "http://evil.example.org"}, {"Sec-Fetch-Site": "cross-site"}):
        answer = served.client.post("/v1/oracle/begin", headers=headers)
        assert refused(answer) == (403, "foreign-page")
    assert served.client.post("/v1/oracle/begin", headers={"Origin": served.rest.url}).status_code == 200


def test_where_tokens_are_asked_for_any_name_will_do(serve_rest: Serve, tmp_path: Path) -> None:
    keyring = one_of_each(tmp_path)
    client = serve_rest(callers=Callers(str(keyring.path))).client
    bearer = {"Authorization": f"Bearer {keyring.secrets['read']}", "Host": "tso.example.org"}
    assert client.get("/v1/status", headers=bearer).status_code == 200
    assert refused(client.post("/v1/oracle/begin", headers={**bearer, "Origin": "http://e.org"}))[0] == 403


def test_what_is_no_request_passes() -> None:
    passed: list[str] = []

    async def app(scope: Message, receive: object, send: object) -> None:
        passed.append(scope["type"])

    asyncio.run(ForeignPages(app, ())({"type": "lifespan"}, None, None))  # type: ignore[arg-type]
    assert passed == ["lifespan"]
