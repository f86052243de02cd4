"""Who serves: a standby names the primary's REST, and a transaction is served to its end by who holds it."""

from __future__ import annotations

from dataclasses import dataclass, field

import pytest

from configuration.rest_limits import RestLimits
from drills.waiting import wait_until
from lease import Create, LeaseRecord, SetData, ZnodePaths
from lease.coordinator import create_root
from lease.memory import MemoryCoordinator, MemoryTree
from rest.whereabouts import AlwaysHere, LeaseWatch, Place, place_in
from tests.unit.client.conftest import Installation
from tests.unit.client.transacting import fail_over
from tests.unit.rest.asking import begin, commit, problem, put, read, refused
from tests.unit.rest.conftest import WAIT_S, RunningRest, Serve

ELSEWHERE = Place(here=False, holder="b", rest="127.0.0.1:5999")


@dataclass
class Told:
    """Whereabouts that a test says."""

    place: Place | None = field(default_factory=lambda: Place(here=True))

    def now(self) -> Place | None:
        return self.place


TRANSACTIONAL = [
    ("POST", "/v1/transactions"),
    ("POST", "/v1/transactions/5/commit"),
    ("GET", "/v1/transactions/5/tables/accounts/rows"),
    ("POST", "/v1/oracle/begin"),
    ("GET", "/v1/oracle/outcomes/5"),
    ("POST", "/v1/oracle/snapshot"),
]


def test_a_standby_names_the_rest_of_the_primary(serve_rest: Serve) -> None:
    client = serve_rest(Told(ELSEWHERE)).client
    for method, path in TRANSACTIONAL:
        answer = client.request(method, path)
        assert refused(answer) == (421, "not-primary"), path
        assert problem(answer)["primary"] == "http://127.0.0.1:5999"
    ready = client.get("/v1/health/ready")
    assert refused(ready) == (421, "not-primary")
    assert "primary" not in problem(ready), "who has no token is not told where it is"
    for path in ("/v1/health/live", "/v1/status", "/v1/timestamps/5"):
        assert client.get(path).status_code == 200


def test_without_any_primary_the_request_may_be_sent_again_later(serve_rest: Serve) -> None:
    answer = serve_rest(Told(None)).client.post("/v1/transactions")
    assert refused(answer) == (503, "no-primary")
    assert answer.headers["retry-after"] == "1"
    assert problem(answer)["retry_with"] == "request"


def test_a_primary_without_rest_is_not_made_up(serve_rest: Serve) -> None:
    answer = serve_rest(Told(Place(here=False, holder="b"))).client.post("/v1/transactions")
    assert problem(answer)["primary"] is None


def test_a_transaction_is_served_to_its_end_by_who_holds_it(serve_rest: Serve) -> None:
    told = Told()
    client = serve_rest(told).client
    id = begin(client)
    told.place = ELSEWHERE
    assert put(client, id, "held-on-standby", "1").status_code == 200
    committed = commit(client, id)
    assert committed.status_code == 200
    assert commit(client, id).json() == committed.json()
    assert refused(client.post("/v1/transactions")) == (421, "not-primary")


def record(*addresses: str, released: bool = False) -> LeaseRecord:
    return LeaseRecord("b", "nonce", addresses, 5, released, 2_000)


@pytest.mark.parametrize(
    ("stored", "place"),
    [
        (None, None),
        (record("own:1"), Place(here=True, holder="b")),
        (record("own:1", "own:2"), Place(here=True, holder="b", rest="own:2")),
        (record("other:1", "other:2"), Place(here=False, holder="b", rest="other:2")),
        (record("other:1"), Place(here=False, holder="b")),
    ],
)
def test_the_second_address_of_the_lease_is_that_of_rest(stored: LeaseRecord | None, place: Place | None) -> None:
    assert place_in(stored, "own:1") == place


def test_a_change_of_the_lease_is_noticed() -> None:
    tree, paths = MemoryTree(), ZnodePaths("/pythia")
    operator = MemoryCoordinator(tree)
    create_root(operator, paths, 1)
    operator.commit([Create(paths.lease, record("own:1").encode())], timeout_ms=1)
    watch = LeaseWatch(MemoryCoordinator(tree), paths.root, "own:1")
    try:
        until(watch, Place(here=True, holder="b"))
        operator.commit([SetData(paths.lease, record("other:1", "other:2").encode(), None)], timeout_ms=1)
        until(watch, Place(here=False, holder="b", rest="other:2"))
        operator.commit([SetData(paths.lease, record("other:1", released=True).encode(), None)], timeout_ms=1)
        until(watch, None)
    finally:
        watch.close()


def until(watch: LeaseWatch, place: Place | None) -> None:
    wait_until(lambda: watch.now() == place, str(place), WAIT_S, lambda: str(watch.now()))


def test_an_open_transaction_and_a_repeated_commit_outlive_a_failover(own_installation: Installation) -> None:
    installation = own_installation
    rest = RunningRest(installation, RestLimits(), AlwaysHere(), installation.find_primary() or "")
    try:
        done, open_one = begin(rest.client), begin(rest.client)
        put(rest.client, done, "done", "1")
        put(rest.client, open_one, "open", "1")
        committed = commit(rest.client, done).json()
        fail_over(installation)
        other = RunningRest(installation, RestLimits(), AlwaysHere(), installation.find_primary() or "")
        try:
            assert commit(other.client, done).json() == committed
            assert commit(rest.client, open_one).json()["outcome"] == "committed"
            later = begin(other.client)
            assert read(other.client, later, "done") == read(other.client, later, "open") == {"d:a": "1"}
        finally:
            other.stop()
    finally:
        rest.stop()
