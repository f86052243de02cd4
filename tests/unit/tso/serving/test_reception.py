"""The opening of a connection, and what each role may ask: over real sockets, by the table of all kinds."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import pytest

from access.changes import LOOK_MS
from access.roles import AccessRole, with_implied
from client import AsyncOracleClient, ClientSettings
from client.connection.primary import SoloDirectory
from client.errors import AccessDenied
from fleet import NotLetIn, ask_status
from tests.tokens import Keyring, one_of_each
from tests.unit.tso.calling import begin, commit_request, ids, transact
from tso.serving.reception import ROLE_OF_KIND, kinds_allowed
from versions import RELEASE
from wire import (
    VERSION,
    AbortRequest,
    BadRequest,
    BeginReply,
    BeginRequest,
    DetailsRequest,
    DrainRequest,
    HandoverRequest,
    HeartbeatRequest,
    HelloReply,
    HelloRequest,
    HindranceRequest,
    Kind,
    LargeCommitRequest,
    LivesRequest,
    Message,
    MetricsRequest,
    NotAllowed,
    NotAllowedCode,
    OutcomeRequest,
    Overloaded,
    StatusReply,
    StatusRequest,
    WriteSetPart,
    common_version,
    encode,
)
from wire.frames import OPENING_KINDS

if TYPE_CHECKING:
    from tests.unit.tso.conftest import House, RunHouse

REQUESTS: dict[Kind, Message] = {
    message.KIND: message
    for message in (
        BeginRequest(1),
        commit_request(BeginReply(9, 1, 8, 7), [1]),
        WriteSetPart(7, 5, 6, 9, 1, 2, np.array([1], "<u8")),
        LargeCommitRequest(7, 5, 6, 9),
        AbortRequest(ids(5)),
        OutcomeRequest(ids(5)),
        HeartbeatRequest(ids(5), ids(4)),
        StatusRequest(),
        MetricsRequest(),
        DetailsRequest(),
        HindranceRequest(),
        LivesRequest(ids(5)),
        HandoverRequest(),
        DrainRequest(1),
    )
}
"""One of each kind; what comes of it does not matter here."""


def is_request(kind: Kind) -> bool:
    return kind % 2 == 1 and kind < 128 and kind not in OPENING_KINDS


def test_every_kind_of_request_asks_for_a_role_and_nothing_else_does() -> None:
    requests = {kind for kind in Kind if is_request(kind)}
    assert set(ROLE_OF_KIND) == requests, "give the new kind its role in ROLE_OF_KIND"
    assert set(REQUESTS) == requests, "and an example of it here"


@pytest.mark.parametrize("role", AccessRole)
def test_a_role_is_granted_its_kinds_and_no_other(role: AccessRole) -> None:
    roles = with_implied({role})
    allowed = {number for number, granted in enumerate(kinds_allowed(roles)) if granted}
    assert allowed == {int(kind) for kind, asked in ROLE_OF_KIND.items() if asked in roles}
    assert not any(kinds_allowed(frozenset()))


@pytest.mark.parametrize("role", AccessRole)
def test_from_no_door_does_a_token_get_what_its_role_has_not(
    run_house: RunHouse, tmp_path: Path, role: AccessRole
) -> None:
    keyring, roles = one_of_each(tmp_path), with_implied({role})

    async def scenario(house: House) -> None:
        await house.start_primary("a", tokens_file=str(keyring.path))
        caller = await house.call("a", keyring.secrets[role])
        for kind, request in REQUESTS.items():
            if kind in (Kind.HANDOVER_REQUEST, Kind.DRAIN_REQUEST) and AccessRole.OPERATE in roles:
                continue  # there is nobody to hand over to, and the process would end
            answer = await caller.ask(request)
            refused = isinstance(answer, NotAllowed)
            assert refused == (ROLE_OF_KIND[kind] not in roles), (kind, answer)
            if isinstance(answer, NotAllowed):
                assert answer.code is NotAllowedCode.ROLE_MISSING
                assert f"{kind.name} asks for the role {ROLE_OF_KIND[kind]}" in answer.text
                assert f"the token {role} has" in answer.text
        assert isinstance(await caller.ask(StatusRequest()), StatusReply), "the connection has to stay"

    run_house(scenario)


@pytest.mark.parametrize("kind", REQUESTS, ids=lambda kind: kind.name)
def test_nothing_is_answered_before_a_hello(run_house: RunHouse, kind: Kind) -> None:
    async def scenario(house: House) -> None:
        process = await house.start_primary("a")
        caller = await house.knock("a")
        caller.send(REQUESTS[kind])
        caller.send(BeginRequest(1))
        received = await caller.receive()
        assert received is not None
        assert isinstance(received[1], BadRequest)
        assert "say hello first" in received[1].text
        assert await caller.receive() is None
        assert process.server.pipeline is not None
        assert process.server.pipeline.oracle.counts.begins == 0
        await transact(await house.call("a"), [1])

    run_house(scenario)


def test_a_hello_is_answered_with_version_release_and_roles_by_a_standby_as_well(
    run_house: RunHouse, tmp_path: Path
) -> None:
    keyring = one_of_each(tmp_path)

    async def scenario(house: House) -> None:
        await house.start_primary("a", tokens_file=str(keyring.path))
        await house.start("b", tokens_file=str(keyring.path))
        for name in ("a", "b"):
            caller = await house.knock(name)
            assert await caller.hello(keyring.secrets["operate"]) == (
                0,
                HelloReply(VERSION, ("operate", "read"), 1, VERSION, RELEASE),
            )
            caller.writer.write(encode(HelloRequest(), 5))
            answer = await caller.receive()
            assert answer is not None
            assert isinstance(answer[1], BadRequest)
            assert "said once" in answer[1].text

    run_house(scenario)


@pytest.mark.parametrize(
    ("token", "code"), [("", NotAllowedCode.NO_TOKEN), ("pythia_wrong", NotAllowedCode.UNKNOWN_TOKEN)]
)
def test_without_a_token_of_the_file_nothing_is_had(
    run_house: RunHouse, tmp_path: Path, token: str, code: NotAllowedCode
) -> None:
    keyring = one_of_each(tmp_path)

    async def scenario(house: House) -> None:
        process = await house.start_primary("a", tokens_file=str(keyring.path))
        good, bad = await house.call("a", keyring.secrets["transact"]), await house.knock("a")
        bad.writer.write(encode(HelloRequest(token), 0) + encode(BeginRequest(7), 1))
        await transact(good, [1])  # who waits for his refusal holds up nobody
        received = await bad.receive()
        assert received is not None
        assert isinstance(received[1], NotAllowed)
        assert received[1].code is code
        assert not token or token not in received[1].text
        assert await bad.receive() is None
        assert process.server.pipeline is not None
        assert process.server.pipeline.oracle.counts.begins == 1

    run_house(scenario)


def test_an_expired_token_and_too_many_connections_are_refused_as_such(run_house: RunHouse, tmp_path: Path) -> None:
    keyring = Keyring(tmp_path / "tokens.toml")
    old = keyring.add("old", AccessRole.READ, more="expires = 2001-01-01\n")
    one = keyring.add("one", AccessRole.READ, more="connections_max = 1\n")

    async def scenario(house: House) -> None:
        process = await house.start_primary("a", tokens_file=str(keyring.path))
        first = await house.call("a", one)
        for secret, code in ((old, NotAllowedCode.EXPIRED), (one, NotAllowedCode.TOO_MANY_CONNECTIONS)):
            received = await (await house.knock("a")).hello(secret)
            assert received is not None
            assert isinstance(received[1], NotAllowed)
            assert received[1].code is code
        await first.close()
        await house.until(lambda: not process.server.connections)
        await house.call("a", one)

    run_house(scenario)


@pytest.mark.interpreted
def test_requests_of_a_token_are_bounded_over_its_connections(
    run_house: RunHouse, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    keyring = Keyring(tmp_path / "tokens.toml")
    few = keyring.add("few", AccessRole.TRANSACT, more="requests_in_flight_max = 2\n")
    other = keyring.add("other", AccessRole.TRANSACT)

    async def scenario(house: House) -> None:
        process = await house.start_primary("a", tokens_file=str(keyring.path))
        pipeline, swallowed = process.server.pipeline, list[object]()
        assert pipeline is not None
        one, two, free = await house.call("a", few), await house.call("a", few), await house.call("a", other)
        with monkeypatch.context() as held:
            held.setattr(pipeline, "submit", swallowed.append)
            for caller in (one, two):
                caller.send(BeginRequest(1))
            await house.until(lambda: len(swallowed) == 2)
        assert isinstance(await free.ask(BeginRequest(1)), BeginReply)
        two.send(StatusRequest())
        received = await two.receive()
        assert received is not None
        assert isinstance(received[1], Overloaded)
        await one.close()  # what it is owed is owed no more
        await house.until(lambda: len(process.server.connections) == 2)
        two.send(StatusRequest())
        assert isinstance((await two.receive() or (0, None))[1], StatusReply)

    run_house(scenario)


def test_who_does_not_say_hello_is_closed_and_takes_nobodys_place(run_house: RunHouse) -> None:
    async def scenario(house: House) -> None:
        process = await house.start_primary("a", connections_max=3, connection_idle_ms_min=1)
        working = [await house.call("a") for _ in range(3)]
        silent = [await house.knock("a") for _ in range(3)]
        await house.until(lambda: len(process.server.connections) == 6)
        await house.knock("a")
        assert await silent[0].receive() is None, "of those who have not said hello, the oldest goes"
        for caller in working:
            await begin(caller)

    run_house(scenario)


def test_a_hello_that_does_not_come_is_not_waited_for(run_house: RunHouse) -> None:
    async def scenario(house: House) -> None:
        await house.start_primary("a", hello_ms_max=1)
        received = await (await house.knock("a")).receive()
        assert received is not None
        assert isinstance(received[1], BadRequest)
        assert "no hello came" in received[1].text

    run_house(scenario)


def test_a_frame_before_the_hello_may_be_as_long_as_a_hello_and_no_longer(run_house: RunHouse) -> None:
    async def scenario(house: House) -> None:
        await house.start_primary("a")
        caller = await house.knock("a")
        caller.send(AbortRequest(np.arange(1, 1000)))
        received = await caller.receive()
        assert received is not None
        assert isinstance(received[1], BadRequest)
        assert "over the limit of 4096" in received[1].text

    run_house(scenario)


@pytest.mark.parametrize(
    ("change", "code"),
    [
        (lambda text: text.replace("tokens.transact", "tokens.renamed"), NotAllowedCode.UNKNOWN_TOKEN),
        (
            lambda text: text.replace("[tokens.operate]", "expires = 2001-01-01\n[tokens.operate]"),
            NotAllowedCode.EXPIRED,
        ),
    ],
    ids=["withdrawn", "ended"],
)
def test_a_token_that_is_withdrawn_or_ends_closes_its_connections(
    run_house: RunHouse, tmp_path: Path, change: Callable[[str], str], code: NotAllowedCode
) -> None:
    keyring = one_of_each(tmp_path)

    async def scenario(house: House) -> None:
        process = await house.start_primary("a", tokens_file=str(keyring.path))
        gone, staying = (
            await house.call("a", keyring.secrets["transact"]),
            await house.call("a", keyring.secrets["read"]),
        )
        keyring.path.write_text(change(keyring.path.read_text()))
        process.server.reception.refresh(process.metering.clock_s() + LOOK_MS)
        for connection in list(process.server.connections):
            connection.look_after(0.0)
        gone.send(StatusRequest())
        received = await gone.receive()
        assert received is not None
        assert isinstance(received[1], NotAllowed)
        assert (received[0], received[1].code) == (0, code)
        assert await gone.receive() is None
        assert isinstance(await staying.ask(StatusRequest()), StatusReply)

    run_house(scenario)


def test_a_connection_gets_the_roles_that_its_token_has_now(run_house: RunHouse, tmp_path: Path) -> None:
    keyring = one_of_each(tmp_path)

    async def scenario(house: House) -> None:
        process = await house.start_primary("a", tokens_file=str(keyring.path))
        caller = await house.call("a", keyring.secrets["transact"])
        await begin(caller)
        keyring.path.write_text(keyring.path.read_text().replace('["transact"]', '["read"]'))
        process.server.reception.refresh(process.metering.clock_s() + LOOK_MS)
        connection = next(iter(process.server.connections))
        connection.look_after(0.0)
        assert isinstance(await caller.ask(BeginRequest(1)), NotAllowed)
        assert isinstance(await caller.ask(StatusRequest()), StatusReply)

    run_house(scenario)


@pytest.mark.parametrize(
    ("theirs", "ours", "chosen"),
    [((1, 1), (1, 1), 1), ((1, 9), (1, 1), 1), ((1, 3), (2, 5), 3), ((2, 5), (1, 3), 3), ((3, 3), (1, 5), 3)],
)
def test_the_highest_version_that_both_speak_is_chosen(
    theirs: tuple[int, int], ours: tuple[int, int], chosen: int
) -> None:
    assert common_version(HelloRequest("", *theirs, "9.9"), *ours) == chosen


@pytest.mark.parametrize(
    ("theirs", "ours", "upgrade"), [((1, 2), (3, 4), "upgrade the client"), ((5, 6), (1, 4), "upgrade the oracle")]
)
def test_without_a_common_version_it_is_said_which_side_to_upgrade(
    theirs: tuple[int, int], ours: tuple[int, int], upgrade: str
) -> None:
    refusal = common_version(HelloRequest("", *theirs, "9.9"), *ours)
    assert isinstance(refusal, NotAllowed)
    assert refusal.code is NotAllowedCode.NO_COMMON_VERSION
    assert refusal.text.endswith(upgrade)
    assert "9.9" in refusal.text


def test_a_client_of_a_later_version_alone_is_told_and_closed(run_house: RunHouse) -> None:
    async def scenario(house: House) -> None:
        await house.start_primary("a")
        caller = await house.knock("a")
        caller.writer.write(encode(HelloRequest("", VERSION + 1, VERSION + 2, "9.9"), 0))
        received = await caller.receive()
        assert received is not None
        assert isinstance(received[1], NotAllowed)
        assert "upgrade the oracle" in received[1].text
        assert await caller.receive() is None

    run_house(scenario)


def test_the_library_is_refused_at_once_and_in_words(run_house: RunHouse, tmp_path: Path) -> None:
    keyring = one_of_each(tmp_path)

    async def scenario(house: House) -> None:
        process = await house.start_primary("a", tokens_file=str(keyring.path))
        address = process.server.address

        def client(**settings: str) -> AsyncOracleClient:
            return AsyncOracleClient(SoloDirectory(address), ClientSettings("", "t:1", oracle=address, **settings))  # type: ignore[arg-type]

        for settings, words in (
            ({}, r"set token_file \(PYTHIA_TOKEN_FILE\)"),
            ({"token_file": str(tmp_path / "none")}, "No such file"),
            ({"token_file": keyring.file_of("read")}, "BEGIN_REQUEST asks for the role transact"),
        ):
            asking = client(**settings)
            with pytest.raises(AccessDenied, match=words) as caught:
                await asking.begin()
            assert keyring.secrets["read"] not in str(caught.value)
            asking.close()
        asking = client(token_file=keyring.file_of("transact"))
        assert (await asking.begin()).transactions == 1
        asking.close()

    run_house(scenario)


def test_an_oracle_with_too_many_connections_is_there_though_it_lets_nobody_in(run_house: RunHouse) -> None:
    async def scenario(house: House) -> None:
        process = await house.start_primary("a", connections_max=1)
        await house.call("a")
        with pytest.raises(NotLetIn, match="too many connections"):
            await asyncio.to_thread(ask_status, process.server.address, 5_000)

    run_house(scenario)


def test_whose_connection_is_closed_for_nonsense_is_in_the_log(
    run_house: RunHouse, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO, "tso.serving.connection")

    async def scenario(house: House) -> None:
        await house.start_primary("a")
        stranger = await house.knock("a")
        stranger.writer.write(b"GET / HTTP/1.1\r\n\r\n")
        await stranger.receive()
        assert f"closing a connection of {stranger.writer.get_extra_info('sockname')}: " in caplog.text

    run_house(scenario)


def test_an_operators_question_without_a_token_says_so(run_house: RunHouse, tmp_path: Path) -> None:
    keyring = one_of_each(tmp_path)

    async def scenario(house: House) -> None:
        process = await house.start_primary("a", tokens_file=str(keyring.path))
        with pytest.raises(NotLetIn, match="a token is asked for"):
            await asyncio.to_thread(ask_status, process.server.address, 5_000)

    run_house(scenario)
