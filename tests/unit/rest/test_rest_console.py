"""The console: what its page may do, what its routes tell, and who may hand over."""

from __future__ import annotations

import re
import socket
import threading
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace

import httpx
import numpy as np
import pytest

from access import Credentials
from configuration.rest_limits import RestLimits
from drills.waiting import wait_until
from fleet import Observed, Report, ask_everything, observe
from lease import Create, History, Member, ZnodePaths
from lease.memory import MemoryCoordinator
from rest import overview
from rest.console_routes import HEADERS, console_files
from rest.installation import Look, installation_metrics, installation_state
from rest.installation_models import LeaseClock
from rest.problems import Problem
from rest.roles import ROLES, Role
from rest.shared import Shared
from rest.whereabouts import AlwaysHere
from tests.imports import ROOT
from tests.unit.client.conftest import LEASE_MS, SETTINGS, Installation
from tests.unit.rest.asking import problem, refused
from tests.unit.rest.conftest import WAIT_S, RunningRest, Served
from wire import (
    VERSION,
    BadRequest,
    DetailsReply,
    Frame,
    FrameDecoder,
    HelloReply,
    MetricsRequest,
    StatusReply,
    StatusRequest,
    decode,
    encode,
)
from wire import Role as OracleRole
from wire.metrics import MetricsReply

INSTALLATION, METRICS, HAND_OVER = "/v1/installation", "/v1/installation/metrics", "/v1/installation/hand-over"
PATHS = ZnodePaths(SETTINGS.root)
TOLD_AT_MS = 700


def test_the_page_may_load_only_its_own_files_and_stand_in_no_frame(served: Served) -> None:
    for path in ("/console", *(f"/console/{name}" for name in console_files())):
        answer = served.client.get(path)
        assert answer.status_code == 200, path
        policy = dict(part.strip().split(" ", 1) for part in answer.headers["content-security-policy"].split(";"))
        assert policy.pop("default-src") == policy.pop("frame-ancestors") == "'none'"
        assert re.fullmatch(r"'self' 'sha256-\S{44}'", policy.pop("script-src"))
        assert set(policy.values()) == {"'self'", "'none'"}
        assert answer.headers["x-content-type-options"] == "nosniff"
        assert answer.headers["x-frame-options"] == "DENY"
        assert {name.lower() for name in HEADERS} <= answer.headers.keys()


def test_the_page_names_no_other_server_and_each_of_its_files_is_used() -> None:
    texts = {name: content.decode() for name, content in console_files().items()}
    everything = "".join(texts.values())
    others = set(re.findall(r"(?:https?:)?//[a-z][^\s\"'`$]*", everything)) - {"http://www.w3.org/2000/svg"}
    assert not {other for other in others if "." in other}
    for name in texts.keys() - {"index.html"}:
        assert re.search(rf"(console|\.)/{re.escape(name)}\"", everything), f"nothing loads {name}"
    assert not re.search(r"innerHTML|outerHTML|insertAdjacentHTML|document\.write|eval\(", everything)
    assert "style=" not in texts["index.html"], "the policy allows no style attribute"


def test_the_package_has_the_page() -> None:
    assert 'rest = ["console/*"]' in (ROOT / "pyproject.toml").read_text()


@pytest.mark.parametrize("name", ["nothing.js", "..%2fapp.py", "%2e%2e", "__init__.py"])
def test_there_are_no_other_files(served: Served, name: str) -> None:
    assert refused(served.client.get(f"/console/{name}")) == (404, "not-found")


def test_the_installation_is_told_with_its_primary(served: Served) -> None:
    until_history(served.client, 1)
    told = served.client.get(INSTALLATION).json()
    (member,) = told["members"]
    assert (member["holder"], member["role"], member["own"], member["warm"]) == ("a", "primary", True, True)
    assert told["primary"] == "a"
    assert told["elected"] is True
    assert told["problems"] == []
    assert told["lease"]["lease_ms"] == LEASE_MS
    assert 0 < told["lease"]["remaining_ms"] <= LEASE_MS
    (tenure,) = told["history"]
    assert (tenure["epoch"], tenure["cause"], tenure["outage_ms"]) == (told["epoch"], "first start", None)


def test_the_metrics_are_those_of_the_primary(served: Served) -> None:
    before = served.client.get(METRICS).json()
    assert before["process"] == "a"
    served.manager.oracle.begin()
    wait_until(
        lambda: begun(served.client) > before["samples"]["pythia_begins_total"], "the begin to be counted", WAIT_S
    )


def begun(client: httpx.Client) -> float:
    samples: dict[str, float] = client.get(METRICS).json()["samples"]
    return samples["pythia_begins_total"]


def until_history(client: httpx.Client, tenures: int) -> None:
    wait_until(lambda: len(client.get(INSTALLATION).json()["history"]) == tenures, f"{tenures} tenures", WAIT_S)


def test_a_transaction_that_sends_heartbeats_is_listed_with_its_age(served: Served) -> None:
    begun = served.manager.oracle.begin()
    start = begun.first_start_timestamp
    served.manager.oracle.heartbeat({start: begun.snapshot})
    wait_until(lambda: told_of(served.client, start) != [], "the transaction to be listed", WAIT_S)
    (one,) = told_of(served.client, start)
    assert one["snapshot"] == str(begun.snapshot)
    assert int(one["age_ms"]) >= 0
    served.manager.oracle.abort(start)


def told_of(client: httpx.Client, start_timestamp: int) -> list[dict[str, str]]:
    transactions: list[dict[str, str]] = client.get(INSTALLATION).json()["transactions"]
    return [one for one in transactions if one["start_timestamp"] == str(start_timestamp)]


def test_without_a_standby_nothing_is_handed_over(served: Served) -> None:
    answer = served.client.post(HAND_OVER)
    assert refused(answer) == (409, "cannot-hand-over")
    assert "no standby answers" in problem(answer)["detail"]
    assert served.client.get(INSTALLATION).json()["primary"] == "a"


@pytest.fixture
def pair(own_installation: Installation) -> Iterator[tuple[Installation, RunningRest]]:
    """A primary a, a standby b, and the REST beside the primary."""
    standby = own_installation.oracle("b")
    rest = RunningRest(own_installation, RestLimits(), AlwaysHere(), own_installation.find_primary() or "")
    wait_until(lambda: roles(rest) == {"a": "primary", "b": "standby"}, "a primary and a standby", WAIT_S)
    assert standby.address
    yield own_installation, rest
    rest.stop()


def roles(rest: RunningRest) -> dict[str, str]:
    return {one["holder"]: one["role"] for one in members(rest)}


def members(rest: RunningRest) -> list[dict[str, str]]:
    found: list[dict[str, str]] = rest.client.get(INSTALLATION).json()["members"]
    return found


def test_a_hand_over_is_done_and_stands_in_the_history(pair: tuple[Installation, RunningRest]) -> None:
    _, rest = pair
    wait_until(lambda: all(one["warm"] for one in members(rest)), "warm oracles", WAIT_S)
    answer = rest.client.post(HAND_OVER)
    assert answer.status_code == 200, answer.text
    done = answer.json()
    assert (done["from_holder"], done["to_holder"]) == ("a", "b")
    until_history(rest.client, 2)
    told = rest.client.get(INSTALLATION).json()
    tenure = told["history"][-1]
    assert (tenure["holder"], tenure["epoch"], tenure["cause"]) == ("b", done["to_epoch"], "handed over")
    assert 0 <= tenure["outage_ms"] <= done["took_ms"] + 1
    wait_until(lambda: roles(rest) == {"a": "standby", "b": "primary"}, "the hand-over", WAIT_S)


def test_only_operators_hand_over(own_installation: Installation) -> None:
    def only(allowed: set[Role]) -> Callable[[Role], Callable[[], None]]:
        def require(role: Role) -> Callable[[], None]:
            def check() -> None:
                if role not in allowed:
                    raise Problem("not-found", f"the role {role} is not yours")

            return check

        return require

    assert ROLES["console_page"] == ROLES["console_file"] == "open", "a login has to be shown before there is a token"
    address = own_installation.find_primary() or ""
    allowed = only({"open", "read", "transact"})
    rest = RunningRest(own_installation, RestLimits(), AlwaysHere(), address, require=allowed)
    try:
        assert rest.client.get("/console").status_code == 200
        assert rest.client.get(INSTALLATION).status_code == 200
        answer = rest.client.post(HAND_OVER)
        assert refused(answer) == (404, "not-found")
        assert "the role operate is not yours" in problem(answer)["detail"]
    finally:
        rest.stop()


def test_an_oracle_that_is_alone_says_so(own_installation: Installation) -> None:
    address = own_installation.find_primary() or ""
    rest = RunningRest(own_installation, RestLimits(), AlwaysHere(), address, elected=False)
    try:
        told = rest.client.get(INSTALLATION).json()
        assert told["elected"] is False
        assert [one["role"] for one in told["members"]] == ["primary"]
        assert told["history"] == []
        answer = rest.client.post(HAND_OVER)
        assert refused(answer) == (409, "cannot-hand-over")
        assert "runs alone" in problem(answer)["detail"]
    finally:
        rest.stop()


def test_who_does_not_answer_is_silent_and_without_zookeeper_the_last_members_stand(
    pair: tuple[Installation, RunningRest],
) -> None:
    installation, rest = pair
    with socket.create_server(("127.0.0.1", 0)) as nobody:
        gone = Member("c", "standby", f"127.0.0.1:{nobody.getsockname()[1]}")
    operator = MemoryCoordinator(installation.tree)
    operator.commit([Create(f"{PATHS.members}/c-0", gone.encode())], timeout_ms=1)
    wait_until(lambda: roles(rest).get("c") == "silent", "the third to be told as silent", WAIT_S)
    (silent,) = (one for one in rest.client.get(INSTALLATION).json()["members"] if one["holder"] == "c")
    assert silent["problem"]
    assert silent["warm"] is None
    assert rest.coordinator is not None
    rest.coordinator.unreachable = True
    wait_until(lambda: rest.client.get(INSTALLATION).json()["problems"] != [], "a problem to be told", WAIT_S)
    told = rest.client.get(INSTALLATION).json()
    assert told["problems"] == ["ZooKeeper: the coordinator does not answer"]
    assert {one["holder"] for one in told["members"]} == {"a", "b", "c"}
    assert len(told["history"]) == 1
    assert refused(rest.client.post(HAND_OVER)) == (409, "cannot-hand-over")


def test_many_pages_ask_the_oracles_once(served: Served, monkeypatch: pytest.MonkeyPatch) -> None:
    asked, go_on = list[int](), threading.Event()

    def counted(members: Sequence[Member], *, timeout_ms: float, credentials: Credentials) -> list[Observed]:
        asked.append(len(members))
        assert go_on.wait(WAIT_S)
        return observe(members, timeout_ms=timeout_ms, credentials=credentials)

    mine = overview_of(served)
    monkeypatch.setattr(mine, "_looks", Shared(mine._look, 60_000))
    monkeypatch.setattr("rest.overview.observe", counted)
    answers: list[int] = []
    threads = [
        threading.Thread(target=lambda: answers.append(served.client.get(INSTALLATION).status_code)) for _ in range(5)
    ]
    for thread in threads:
        thread.start()
    wait_until(lambda: asked != [], "the first to ask", WAIT_S)
    go_on.set()
    for thread in threads:
        thread.join(WAIT_S)
    assert answers == [200] * 5
    assert asked == [1]


def overview_of(served: Served) -> overview.Overview:
    found: overview.Overview = served.rest.app.state.services.overview
    return found


def told(role: OracleRole, holder: str, epoch: int, remaining_ms: int) -> Observed:
    none = np.zeros(0, np.int64)
    status = StatusReply(role, holder, "h:1", "", epoch)
    numbers = MetricsReply(role, holder, "h:1", ("up",), np.array([float(epoch)]))
    details = DetailsReply(none, none, none, "", True, 2_000, remaining_ms)
    return Observed(Member(holder, "standby", "h:1"), Report(status, numbers, details), TOLD_AT_MS)


def test_of_two_who_say_that_they_serve_the_newer_epoch_is_believed() -> None:
    observed = (told(OracleRole.PRIMARY, "a", 5, 100), told(OracleRole.PRIMARY, "b", 6, 900))
    for order in (observed, observed[::-1]):
        look = Look(1_000, 1, order, History(), ())
        state = installation_state(look, "/pythia", "h:2", elected=True)
        assert (state.primary, state.epoch) == ("b", "6")
        assert state.lease == LeaseClock(told_by="b", lease_ms=2_000, remaining_ms=900)
        assert installation_metrics(look).samples == {"up": 6.0}


def test_the_numbers_are_of_when_the_primary_told_them() -> None:
    look = Look(1_000, TOLD_AT_MS + 800, (told(OracleRole.PRIMARY, "a", 5, 100),), History(), ())
    assert installation_metrics(look).monotonic_ms == TOLD_AT_MS


def test_without_a_primary_the_standby_tells_the_lease_which_may_take_over_first() -> None:
    observed = (told(OracleRole.STANDBY, "a", 0, 700), told(OracleRole.STANDBY, "b", 0, 600))
    look = Look(1_000, 1, observed, History(), ())
    state = installation_state(look, "/pythia", "h:2", elected=True)
    assert (state.primary, state.epoch, state.horizon, state.transaction_life_ms) == ("", "", None, None)
    assert state.lease == LeaseClock(told_by="b", lease_ms=2_000, remaining_ms=600)
    assert installation_metrics(look).process == ""


def test_what_keeps_a_standby_from_taking_over_is_told() -> None:
    free = told(OracleRole.STANDBY, "a", 0, 700)
    assert free.report is not None
    kept = replace(free, report=replace(free.report, hindrance="the gateway is gone"))
    state = installation_state(Look(1_000, 1, (free, kept), History(), ()), "/pythia", "h:2", elected=True)
    assert [one.hindrance for one in state.members] == ["", "the gateway is gone"]


@pytest.mark.parametrize("with_details", [True, False])
def test_of_an_oracle_of_an_older_release_is_shown_what_it_tells(with_details: bool) -> None:
    """It refuses a frame that it does not know and hangs up, after it has answered the ones before."""
    none = np.zeros(0, np.int64)
    details, unknown = (
        DetailsReply(none, none, none, "", True, 2_000, 900),
        BadRequest("there is no frame of that kind"),
    )
    status = StatusReply(OracleRole.STANDBY, "old", "h:1", "")
    numbers = MetricsReply(OracleRole.STANDBY, "old", "h:1", ("up",), [1.0])  # type: ignore[arg-type]

    def serve(listening: socket.socket) -> None:
        connection, _ = listening.accept()
        with connection:
            decoder, frames = FrameDecoder(), list[Frame]()
            opened = next(decoder.feed(connection.recv(65_536)))
            connection.sendall(encode(HelloReply(VERSION, ("read",)), opened.request_id))
            while len(frames) < 4:
                received = connection.recv(65_536)
                assert received, "it hung up before it had asked"
                frames += list(decoder.feed(received))
            assert [type(decode(frame)) for frame in frames[:2]] == [StatusRequest, MetricsRequest]
            answers = [status, numbers, *[details] * with_details, unknown]
            connection.sendall(
                b"".join(encode(answer, frame.request_id) for answer, frame in zip(answers, frames, strict=False))
            )

    with socket.create_server(("127.0.0.1", 0)) as listening:
        thread = threading.Thread(target=serve, args=(listening,))
        thread.start()
        report = ask_everything(f"127.0.0.1:{listening.getsockname()[1]}", 1000 * WAIT_S)
        thread.join(WAIT_S)
    assert report.status == status
    assert report.details == (details if with_details else None)
    assert report.hindrance == ""
