"""A ZooKeeper that asks for Kerberos: what is agreed on, and told where the two do not agree. No KDC is asked."""

from __future__ import annotations

import contextlib
import dataclasses
from collections.abc import Iterator
from threading import Event

import pytest
from kazoo.protocol.states import KeeperState

from access.sasl import Layer
from access.services import ZOOKEEPER, Kerberos
from drills.waiting import wait_until
from lease.ensemble import Ensemble, parse_ensemble
from lease.errors import CoordinatorUnavailable, InvalidLeaseSettings
from lease.zookeeper import ZooKeeperCoordinator
from tests.unit.lease.test_zookeeper_client import HalfZooKeeper, read_again
from tests.unit.store.half_kerberos import HELLO, PROOF, Asked, HalfContext, silent_kdc, without_library

SHORT_MS = 500
LONG_MS = 20_000
ETL = Kerberos(principal="etl@REALM")
REFUSED = "not known; last: it refuses who this process is"


class Knowing:
    """ZooKeeper's side of one connection. ``chosen``: what was agreed on, by all of a server's connections."""

    def __init__(self, chosen: list[bytes], offer: int = Layer.NONE) -> None:
        self._chosen = chosen
        self._context = HalfContext()
        self._offer = offer

    def __call__(self, token: bytes) -> bytes | None:
        if token == HELLO:
            return PROOF
        if not token:
            return self._context.wrap(bytes([self._offer, 0, 0, 0]), confidential=False)
        self._chosen.append(self._context.unwrap(token, confidential=False))
        return b""


@pytest.fixture
def chosen() -> list[bytes]:
    return []


@pytest.fixture
def server(chosen: list[bytes]) -> Iterator[HalfZooKeeper]:
    with contextlib.closing(HalfZooKeeper()) as server:
        server.known = lambda: Knowing(chosen)
        yield server


@pytest.fixture(autouse=True)
def asked(monkeypatch: pytest.MonkeyPatch) -> Asked:
    return without_library(monkeypatch, [])


def session(server: HalfZooKeeper, kerberos: Kerberos = ETL, session_timeout_ms: int = 6_000) -> ZooKeeperCoordinator:
    return ZooKeeperCoordinator(
        f"kerberos://{server.address}",
        kerberos=kerberos,
        connect_timeout_ms=LONG_MS,
        session_timeout_ms=session_timeout_ms,
    )


def test_a_session_is_known_and_is_so_again_after_each_loss(
    server: HalfZooKeeper, chosen: list[bytes], asked: Asked
) -> None:
    with session(server, session_timeout_ms=SHORT_MS) as known:
        assert known.read("/n", timeout_ms=LONG_MS) is None
        server.lose_data()
        read_again(known)
    assert len(chosen) >= 2
    assert set(chosen) == {bytes([Layer.NONE, 0, 0, 0])}
    assert set(asked) == {(ETL, ZOOKEEPER, "127.0.0.1")}


def test_nothing_is_asked_before_a_session_is_known(server: HalfZooKeeper, chosen: list[bytes]) -> None:
    """Though kazoo calls it connected as soon as it has a session."""
    may_go_on = Event()

    class Slow(Knowing):
        def __call__(self, token: bytes) -> bytes | None:
            may_go_on.wait(20)
            return super().__call__(token)

    server.known, server.session_ms = lambda: Slow(chosen), 4_000
    with pytest.raises(CoordinatorUnavailable, match=r"being known, at ZooKeeper .*: no answer in time"):
        ZooKeeperCoordinator(f"kerberos://{server.address}", kerberos=ETL, connect_timeout_ms=SHORT_MS)
    may_go_on.set()


def test_who_is_refused_is_told_so_and_tries_again(server: HalfZooKeeper, chosen: list[bytes]) -> None:
    """Whoever answers for it may know it by then."""
    known = server.known
    with session(server, session_timeout_ms=SHORT_MS) as once_known:
        server.known = lambda: refuse
        server.lose_data()
        wait_until(lambda: "it refuses who this process is" in why_not(once_known), "the reason to be told", 20)
        server.known = known
        read_again(once_known)
    server.known = lambda: refuse
    with pytest.raises(CoordinatorUnavailable, match=REFUSED):
        session(server)


def test_a_refusal_that_comes_before_anything_is_asked_is_told_at_once(
    server: HalfZooKeeper, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The refusal may come between what the constructor waits for and what it asks."""
    asks = ZooKeeperCoordinator._be_answered

    def asks_late(coordinator: ZooKeeperCoordinator, timeout_ms: float) -> None:
        wait_until(lambda: coordinator._client.client_state == KeeperState.CLOSED, "the refusal", 20)
        asks(coordinator, timeout_ms)

    monkeypatch.setattr(ZooKeeperCoordinator, "_be_answered", asks_late)
    server.known = lambda: refuse
    with pytest.raises(CoordinatorUnavailable, match=REFUSED):
        session(server)


def why_not(known: ZooKeeperCoordinator) -> str:
    try:
        known.read("/n", timeout_ms=SHORT_MS)
    except CoordinatorUnavailable as error:
        return str(error)
    return ""


def refuse(token: bytes) -> bytes | None:
    """What ZooKeeper says to a token that it cannot read, or of somebody it does not let in."""
    return None


def test_a_zookeeper_that_shows_no_proof_is_sent_nothing_more(server: HalfZooKeeper, chosen: list[bytes]) -> None:
    def impostor(token: bytes) -> bytes | None:
        assert token == HELLO
        return b"another's"

    server.known = lambda: impostor
    words = r"Kerberos with zookeeper/127.0.0.1 as etl@REALM: .*proves nothing \(.* PYTHIA_ZOOKEEPER_KERBEROS_KEYTAB"
    with pytest.raises(CoordinatorUnavailable, match=words):
        session(server)
    assert not chosen


def test_a_zookeeper_that_asks_for_none_is_not_spoken_to(server: HalfZooKeeper) -> None:
    server.known = None
    with pytest.raises(
        CoordinatorUnavailable, match="nothing to say to Kerberos: where it asks for none, no kerberos:/"
    ):
        session(server)


def test_a_layer_that_zookeepers_protocol_has_not_is_not_agreed_on(server: HalfZooKeeper, chosen: list[bytes]) -> None:
    server.known = lambda: Knowing(chosen, Layer.CONFIDENTIALITY)
    with pytest.raises(CoordinatorUnavailable, match="it offers CONFIDENTIALITY to agree on"):
        session(server)
    assert not chosen


def test_a_kdc_that_does_not_answer_is_waited_for_for_a_limited_time(
    server: HalfZooKeeper, monkeypatch: pytest.MonkeyPatch
) -> None:
    with (
        silent_kdc(monkeypatch),
        pytest.raises(CoordinatorUnavailable, match=f"no KDC has answered in {SHORT_MS} ms"),
    ):
        session(server, session_timeout_ms=SHORT_MS)


def test_who_it_is_comes_from_the_environment_where_nobody_says_it(
    server: HalfZooKeeper, monkeypatch: pytest.MonkeyPatch, asked: Asked
) -> None:
    monkeypatch.setenv(Kerberos.variable(ZOOKEEPER, "service"), "zk")
    with session(server) as known:
        assert known.known is not None
        assert known.known.words == "etl@REALM by Kerberos"
    assert asked[0][0] == Kerberos("zk", "etl@REALM")


@pytest.mark.parametrize("field", [field.name for field in dataclasses.fields(Kerberos)])
def test_what_is_for_kerberos_is_refused_where_no_address_says_so(field: str) -> None:
    words = (
        rf"zookeeper_kerberos_{field} \(PYTHIA_ZOOKEEPER_KERBEROS_{field.upper()}\) is for a ZooKeeper that asks for"
    )
    for hosts in ("127.0.0.1:1", "tls://127.0.0.1:1"):
        with pytest.raises(InvalidLeaseSettings, match=words):
            ZooKeeperCoordinator(hosts, kerberos=Kerberos(**{field: "x"}))


def test_what_no_kerberos_can_be_spoken_with_is_told_before_anybody_is_asked() -> None:
    for wrong, words in (
        (
            Kerberos("zk/host"),
            "is the first part of the ZooKeeper's principal alone, as in zookeeper for zookeeper/host",
        ),
        (Kerberos(keytab_file="/nowhere"), "zookeeper_kerberos_keytab_file: .*No such file"),
    ):
        with pytest.raises(InvalidLeaseSettings, match=words):
            ZooKeeperCoordinator("kerberos://127.0.0.1:1", kerberos=wrong)


def test_an_ensemble_asks_for_kerberos_or_does_not() -> None:
    assert parse_ensemble("kerberos://a:1, kerberos://b:2") == Ensemble("a:1,b:2", kerberos=True)
    assert parse_ensemble("kerberos+tls://a:1") == Ensemble("a:1", tls=True, kerberos=True)
    for mixed in ("kerberos://a:1,b:2", "kerberos://a:1,kerberos+tls://b:2", "tls://a:1,kerberos://b:2"):
        with pytest.raises(InvalidLeaseSettings, match="all of ZooKeeper's hosts have the same before them"):
            parse_ensemble(mixed)
    for wrong in ("kerberos://", "tls+kerberos://a:1", "kerberos://tls://a:1"):
        with pytest.raises(InvalidLeaseSettings, match=r"ZooKeeper's hosts are .* kerberos://host:port where it asks"):
            parse_ensemble(wrong)
