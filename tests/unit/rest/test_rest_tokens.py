"""Tokens at REST's door: every route by the table, what belongs to whom, and HTTPS."""

from __future__ import annotations

import asyncio
import re
import ssl
import time
from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest
from starlette.types import Message, Receive, Scope, Send

from access import EVERY_ROLE
from access.roles import AccessRole, with_implied
from access.server_files import ServerFiles
from access.tls import ServerTls, client_context
from client import AccessDenied
from configuration.rest_limits import RestLimits
from rest.app import create_app
from rest.callers import Callers, by_token
from rest.owners import CALLER
from rest.problems import problem_of
from rest.roles import ROLES
from store import StoreClosed
from tests.certificates import Authority
from tests.tokens import Keyring, one_of_each
from tests.unit.rest.conftest import WAIT_S, RunningRest, Serve, unconnected

APP = create_app(unconnected, RestLimits(), require=by_token)
CHUNKS = 100_000
"""Of 1,000 bytes: more than the buffers of two sockets."""
OPERATIONS = [
    (one["operationId"], method.upper(), re.sub(r"\{.*?\}", "5", path), one)
    for path, methods in APP.openapi()["paths"].items()
    for method, one in methods.items()
]


@pytest.fixture
def keyring(tmp_path: Path) -> Keyring:
    keyring = one_of_each(tmp_path)
    keyring.add("other", AccessRole.TRANSACT)
    return keyring


@pytest.fixture
def rest(serve_rest: Serve, keyring: Keyring) -> RunningRest:
    return serve_rest(callers=Callers(str(keyring.path)), transactions_per_token_max=3)


def of(keyring: Keyring, name: str) -> dict[str, str]:
    return {"Authorization": f"Bearer {keyring.secrets[name]}"}


def test_no_route_is_had_without_its_role_and_each_is_with_it(keyring: Keyring) -> None:
    """By the application alone: nothing behind it is reached, so that what passes ends in a fault."""
    door = Callers(str(keyring.path)).before(APP, RestLimits())
    assert {name for name, *_ in OPERATIONS} == set(ROLES)

    async def ask_all() -> None:
        transport = httpx.ASGITransport(door, raise_app_exceptions=False)
        async with httpx.AsyncClient(transport=transport, base_url="http://here") as client:
            for name, method, path, _ in OPERATIONS:
                role = ROLES[name]
                answer = await client.request(method, path)
                assert (answer.status_code == 401) == (role != "open"), (name, answer.text)
                for held in AccessRole:
                    answer = await client.request(method, path, headers=of(keyring, held))
                    allowed = role == "open" or role in with_implied({held})
                    assert (answer.status_code == 403) == (not allowed), (name, held, answer.text)
                    assert answer.status_code != 401

    asyncio.run(ask_all())
    assert set(ROLES.values()) - {"open"} <= set(EVERY_ROLE)


def test_the_document_says_which_routes_ask_for_a_token() -> None:
    assert APP.openapi()["components"]["securitySchemes"]["HTTPBearer"]["scheme"] == "bearer"
    for name, *_, one in OPERATIONS:
        assert bool(one.get("security")) == (ROLES[name] != "open"), name


@pytest.mark.parametrize(
    ("authorization", "code", "challenge"),
    [
        (None, "token-missing", "Bearer"),
        ("Basic YTpi", "token-missing", "Bearer"),
        ("Bearer", "token-missing", "Bearer"),
        ("Bearer pythia_wrong", "token-refused", 'Bearer error="invalid_token"'),
    ],
)
@pytest.mark.parametrize("body", [None, {"read_only": True}])
def test_who_is_not_known_is_told_how_to_be(
    rest: RunningRest, authorization: str | None, code: str, challenge: str, body: object
) -> None:
    headers = {} if authorization is None else {"Authorization": authorization}
    answer = rest.client.post("/v1/transactions", headers=headers, json=body)
    assert answer.status_code == 401
    assert answer.headers["content-type"] == "application/problem+json"
    assert answer.headers["www-authenticate"] == challenge
    assert answer.json()["code"] == code
    assert answer.json()["detail"].count("Authorization: Bearer") == (code == "token-missing")
    assert "wrong" not in answer.text


def test_a_missing_role_is_named(rest: RunningRest, keyring: Keyring) -> None:
    answer = rest.client.post("/v1/transactions", headers=of(keyring, "read"))
    assert answer.status_code == 403
    assert answer.json()["code"] == "role-missing"
    assert "asks for the role transact: the token read has read" in answer.json()["detail"]
    assert answer.headers["www-authenticate"] == 'Bearer error="insufficient_scope"'
    assert rest.client.get("/v1/health/live").status_code == 200
    assert rest.client.get("/metrics", headers=of(keyring, "operate")).status_code == 200


def test_a_body_of_somebody_unknown_is_not_read(rest: RunningRest) -> None:
    sent = 0

    def endless() -> Iterator[bytes]:
        nonlocal sent
        for _ in range(CHUNKS):
            sent += 1
            yield bytes(1_000)

    try:
        answer = rest.client.post("/v1/oracle/begin", content=endless())
        assert answer.status_code == 401
    except httpx.TransportError:
        pass  # it hung up in the middle, as it may
    assert sent < CHUNKS


def test_a_transaction_is_its_callers_alone(rest: RunningRest, keyring: Keyring) -> None:
    mine, theirs = of(keyring, "transact"), of(keyring, "other")
    id = rest.client.post("/v1/transactions", headers=mine).json()["id"]
    path = f"/v1/transactions/{id}"
    row = f"{path}/tables/accounts/rows/token-row"
    assert rest.client.put(row, json={"values": {"d:balance": "1"}}, headers=mine).status_code == 200
    snapshot = rest.client.get(path, headers=mine).json()["snapshot"]
    commit = {"start_timestamp": id, "snapshot": snapshot, "cell_ids": []}
    for method, where, body in (
        ("GET", path, None),
        ("GET", row, None),
        ("PUT", row, {"values": {"d:balance": "2"}}),
        ("DELETE", path, None),
        ("POST", f"{path}/commit", None),
        ("POST", f"{path}/savepoints", {"name": "s"}),
        ("POST", f"{path}/claims", {"key": "order"}),
        ("POST", "/v1/oracle/abort", {"start_timestamps": [id]}),
        ("POST", "/v1/oracle/commit", commit),
        ("POST", "/v1/oracle/commits", {"commits": [commit]}),
        ("POST", "/v1/oracle/heartbeat", {"transactions": [{"start_timestamp": id, "snapshot": snapshot}]}),
    ):
        answer = rest.client.request(method, where, json=body, headers=theirs)
        assert (answer.status_code, answer.json()["code"]) == (404, "transaction-unknown"), (method, where, answer.text)
    assert rest.client.post(f"{path}/commit", headers=mine).json()["outcome"] == "committed"
    assert rest.client.post(f"{path}/commit", headers=theirs).json()["code"] == "transaction-unknown"
    assert rest.client.delete(path, headers=theirs).json()["code"] == "transaction-unknown"


def test_idempotency_keys_are_a_callers_own(rest: RunningRest, keyring: Keyring) -> None:
    key = {"Idempotency-Key": "same"}
    first = rest.client.post("/v1/oracle/begin", headers=of(keyring, "transact") | key).json()
    assert rest.client.post("/v1/oracle/begin", headers=of(keyring, "transact") | key).json() == first
    other = rest.client.post("/v1/oracle/begin", headers=of(keyring, "other") | key)
    assert other.status_code == 200
    assert other.json()["start_timestamps"] != first["start_timestamps"]


def test_what_one_token_holds_is_bounded_and_leaves_room_for_others(rest: RunningRest, keyring: Keyring) -> None:
    mine = of(keyring, "transact")
    ids = [rest.client.post("/v1/transactions", headers=mine).json()["id"] for _ in range(3)]
    answer = rest.client.post("/v1/transactions", headers=mine)
    assert (answer.status_code, answer.json()["code"]) == (429, "too-many-transactions")
    assert rest.client.post("/v1/transactions", headers=of(keyring, "other")).status_code == 201
    rest.client.delete(f"/v1/transactions/{ids[0]}", headers=mine)
    assert rest.client.post("/v1/transactions", headers=mine).status_code == 201


@pytest.mark.parametrize(
    ("own", "of_rest", "named"), [(1, 9, "requests_in_flight_max"), (9, 1, "requests_per_token_max")]
)
def test_requests_of_a_token_at_once_are_bounded(keyring: Keyring, own: int, of_rest: int, named: str) -> None:
    few = keyring.add("few", AccessRole.TRANSACT, more=f"requests_in_flight_max = {own}\n")
    release, let_in, refusals = asyncio.Event(), list[str](), list[bytes]()

    async def slow(scope: Scope, receive: Receive, send: Send) -> None:
        let_in.append(CALLER.get())
        await release.wait()

    async def sent(message: Message) -> None:
        assert message.get("status", 429) == 429
        refusals.append(message.get("body", b""))

    async def receive() -> Message:
        return {}

    async def until(those: list[str]) -> None:
        while let_in != those:
            await asyncio.sleep(0)

    async def main() -> None:
        door = Callers(str(keyring.path)).before(slow, RestLimits(requests_per_token_max=of_rest))

        def ask(secret: str) -> asyncio.Future[None]:
            headers = [(b"authorization", b"Bearer " + secret.encode())]
            scope = {"type": "http", "method": "GET", "path": "/", "headers": headers}
            return asyncio.ensure_future(door(scope, receive, sent))

        async with asyncio.timeout(WAIT_S):
            asked = ask(few)
            await until(["few"])
            await ask(few)
            assert named.encode() in b"".join(refusals)
            others = ask(keyring.secrets["other"])
            await until(["few", "other"])
            release.set()
            await asyncio.gather(asked, others)
            refusals.clear()
            await ask(few)
        assert let_in == ["few", "other", "few"]
        assert not refusals

    asyncio.run(main())


def test_what_the_oracle_does_not_grant_to_rest_itself_is_no_fault_of_the_caller() -> None:
    problem = problem_of(AccessDenied("the token rest has read"), 100)
    assert (problem.code, problem.kind.status) == ("oracle-refuses", 503)


def test_a_store_that_is_closed_as_the_process_ends_is_no_fault_of_the_caller() -> None:
    assert problem_of(StoreClosed(), 100).code == "store-unavailable"


def test_https_goes_on_with_the_certificate_that_was_put_there_last(
    serve_rest: Serve, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("access.changes.LOOK_MS", 0)
    first, second = Authority(tmp_path / "first"), Authority(tmp_path / "second")
    files, following = first.issue("rest"), second.issue("rest")
    rest = serve_rest(tls=ServerTls(files, time.monotonic()))
    for authority in (first, second):
        with httpx.Client(base_url=rest.url, verify=client_context(authority.certificate), timeout=WAIT_S) as asking:
            assert asking.get("/v1/health/live").status_code == 200
        Path(files.key).write_bytes(Path(following.key).read_bytes())
        Path(files.certificate).write_bytes(Path(following.certificate).read_bytes())


def test_https_with_the_same_files_and_a_clients_certificate(serve_rest: Serve, tmp_path: Path) -> None:
    authority = Authority(tmp_path / "authority")
    server, client = authority.issue("rest"), authority.issue("client")
    secure = serve_rest(tls=ServerTls(server, time.monotonic()))
    mutual_files = ServerFiles(server.certificate, server.key, authority.certificate)
    mutual = serve_rest(tls=ServerTls(mutual_files, time.monotonic()))
    trusting = client_context(authority.certificate)
    showing = client_context(authority.certificate, client.certificate, client.key)
    for url, context, welcome in (
        (secure.url, trusting, True),
        (secure.url, ssl.create_default_context(), False),
        (mutual.url, showing, True),
        (mutual.url, trusting, False),
        (secure.url.replace("https", "http"), trusting, False),
    ):
        with httpx.Client(base_url=url, verify=context, timeout=WAIT_S) as asking:
            if welcome:
                assert asking.get("/v1/health/live").status_code == 200
            else:
                with pytest.raises(httpx.TransportError):
                    asking.get("/v1/health/live")
