"""Candidates on the real ZooKeeper: release, expiry, a cut connection, an answer that never comes.

No test looks at how long something took. A lease of ten minutes shows that a takeover did not wait for it; a takeover
within the limit shows that a short one was waited out.
"""

from __future__ import annotations

import contextlib
import socket
import threading
import time
import uuid
from collections.abc import Iterator

import pytest
from kazoo.client import KazooClient

from drills.waiting import wait_until
from lease import (
    Candidate,
    CoordinatorUnavailable,
    InvalidLeaseSettings,
    LeaseSettings,
    Member,
    PrimaryFinder,
    StandBy,
    Tenure,
    members,
)
from lease.coordinator import Applied, Create, Node, SetData, Unknown, create_root
from lease.memory import MemoryFloor
from lease.paths import ZnodePaths
from lease.zookeeper import ZooKeeperCoordinator
from tests.conftest import Services
from tests.integration.candidates import real_candidate

pytestmark = pytest.mark.integration

LIMIT_S = 30.0
LONG = LeaseSettings(lease_ms=600_000, request_timeout_ms=5000, ceiling_ahead_ms=1_200_000)
SHORT = LeaseSettings(lease_ms=1000)
TIMEOUT_MS = 5000


class Proxy:
    """A TCP proxy in front of ZooKeeper. While not ``answering`` it swallows what ZooKeeper says."""

    def __init__(self, target: str) -> None:
        host, port = target.split(":")
        self._target = host, int(port)
        self._listener = socket.create_server(("127.0.0.1", 0))
        self._sockets: list[socket.socket] = []
        self._lock = threading.Lock()
        self.open = True
        self.answering = True
        threading.Thread(target=self._accept, daemon=True).start()

    @property
    def address(self) -> str:
        return f"127.0.0.1:{self._listener.getsockname()[1]}"

    def cut(self) -> None:
        """Close every connection, and every new one at once, until mended."""
        self.open = False
        self.answering = True
        with self._lock:
            sockets, self._sockets = self._sockets, []
        for one in sockets:
            _shut(one)

    def mend(self) -> None:
        self.open = True

    def close(self) -> None:
        self.cut()
        _shut(self._listener)

    def _accept(self) -> None:
        with contextlib.suppress(OSError):
            while True:
                client, _ = self._listener.accept()
                if not self.open:
                    client.close()
                    continue
                server = socket.create_connection(self._target, timeout=LIMIT_S)
                with self._lock:
                    self._sockets += [client, server]
                threading.Thread(target=self._pump, args=(client, server, False), daemon=True).start()
                threading.Thread(target=self._pump, args=(server, client, True), daemon=True).start()

    def _pump(self, source: socket.socket, sink: socket.socket, is_answer: bool) -> None:
        with contextlib.suppress(OSError):
            while data := source.recv(65_536):
                if self.answering or not is_answer:
                    sink.sendall(data)
        _shut(source)
        _shut(sink)


def _shut(one: socket.socket) -> None:
    with contextlib.suppress(OSError):
        one.shutdown(socket.SHUT_RDWR)
    one.close()


class Site:
    """Sessions and candidates of one test, under a root of its own."""

    def __init__(self, zookeeper: str) -> None:
        self.root = f"/test-{uuid.uuid4().hex}"
        self.zookeeper = zookeeper
        self.closing = contextlib.ExitStack()

    def connect(self, hosts: str | None = None) -> ZooKeeperCoordinator:
        return self.closing.enter_context(ZooKeeperCoordinator(hosts or self.zookeeper))

    def proxy(self) -> Proxy:
        proxy = Proxy(self.zookeeper)
        self.closing.callback(proxy.close)
        return proxy

    def candidate(self, holder: str, settings: LeaseSettings, coordinator: ZooKeeperCoordinator) -> Candidate:
        return real_candidate(holder, coordinator, settings, self.root, MemoryFloor())


@pytest.fixture
def site(services: Services) -> Iterator[Site]:
    site = Site(services.zookeeper)
    with site.closing:
        yield site


def serve(candidate: Candidate) -> Tenure:
    """Attempt and wait, as a standby does, until the lease is ours."""
    end_s = time.monotonic() + LIMIT_S
    while time.monotonic() < end_s:
        outcome = candidate.attempt()
        if isinstance(outcome, Tenure):
            return outcome
        candidate.wait(min(outcome.wait_ms, 1000 * LIMIT_S))
    raise AssertionError("no tenure within the limit")


def test_a_released_lease_is_taken_over_by_the_watch(site: Site) -> None:
    first = serve(site.candidate("a", LONG, site.connect()))
    standby = site.candidate("b", LONG, site.connect())
    outcome = standby.attempt()
    assert isinstance(outcome, StandBy)
    assert outcome.primary == first.record
    second: list[Tenure] = []
    waiting = threading.Thread(target=lambda: second.append(serve(standby)))
    waiting.start()
    first.release()
    waiting.join(LIMIT_S)
    assert [tenure.is_held() for tenure in second] == [True]
    assert second[0].epoch >= first.ceiling
    assert not first.is_held()


def test_a_lease_that_is_not_renewed_is_taken_over(site: Site) -> None:
    first = serve(site.candidate("a", SHORT, site.connect()))
    second = serve(site.candidate("b", SHORT, site.connect()))
    assert not first.is_held()
    assert second.epoch >= first.ceiling
    assert not first.renew()


def test_a_renewed_lease_is_kept_and_its_ceiling_moves(site: Site) -> None:
    tenure = serve(site.candidate("a", LONG, site.connect()))
    ceiling = tenure.ceiling
    assert all(tenure.renew() for _ in range(20))
    assert tenure.ceiling == ceiling
    assert tenure.renew(reached=ceiling - 1)
    assert tenure.ceiling > ceiling
    assert PrimaryFinder(site.connect(), site.root).current() == tenure.record


@pytest.mark.parametrize("silently", [True, False])
def test_a_holder_that_is_cut_off_stops_before_the_standby_starts(site: Site, silently: bool) -> None:
    proxy = site.proxy()
    holder = site.candidate("a", SHORT, site.connect(proxy.address))
    first = serve(holder)
    lost = threading.Event()

    def keep() -> None:
        while first.renew():
            time.sleep(SHORT.renewal_interval_ms / 1000)
        lost.set()

    threading.Thread(target=keep, daemon=True).start()
    standby = site.candidate("b", SHORT, site.connect())
    assert isinstance(standby.attempt(), StandBy)
    if silently:
        proxy.answering = False
    else:
        proxy.cut()
    second = serve(standby)
    assert not first.is_held()
    assert lost.wait(LIMIT_S)
    proxy.cut()
    proxy.mend()
    wait_until(
        lambda: isinstance(outcome := holder.attempt(), Tenure) or outcome.problem is None,
        "ZooKeeper to answer",
        LIMIT_S,
    )
    assert not first.renew()
    assert second.epoch >= first.ceiling


def test_a_write_whose_answer_never_comes_is_unknown_and_not_repeated(site: Site) -> None:
    proxy, direct = site.proxy(), site.connect()
    create_root(direct, ZnodePaths(site.root), TIMEOUT_MS)
    path = f"{site.root}/n"
    direct.commit([Create(path, b"a")], timeout_ms=TIMEOUT_MS)
    behind = site.connect(proxy.address)
    assert behind.read(path, timeout_ms=TIMEOUT_MS, synced=True) == Node(b"a", 0)
    proxy.answering = False
    assert isinstance(behind.commit([SetData(path, b"b", None)], timeout_ms=200), Unknown)
    proxy.cut()
    proxy.mend()
    wait_until(
        lambda: isinstance(behind.commit([SetData(path, b"c", 1)], timeout_ms=200), Applied), "it to apply", LIMIT_S
    )
    assert direct.read(path, timeout_ms=TIMEOUT_MS, synced=True) == Node(b"c", 2)


def test_what_is_asked_while_cut_off_is_not_sent_later(site: Site) -> None:
    proxy, direct = site.proxy(), site.connect()
    create_root(direct, ZnodePaths(site.root), TIMEOUT_MS)
    behind = site.connect(proxy.address)
    lost = threading.Event()
    behind.read(site.root, timeout_ms=TIMEOUT_MS, changed=lost)
    proxy.cut()
    assert lost.wait(LIMIT_S), "a lost connection ends every watch"
    wait_until(lambda: behind.session_id() is None, "the session to end", LIMIT_S)
    assert isinstance(behind.commit([Create(f"{site.root}/n", b"")], timeout_ms=200), Unknown)
    with pytest.raises(CoordinatorUnavailable, match="not connected"):
        behind.read(site.root, timeout_ms=200)
    proxy.mend()
    assert behind.read(f"{site.root}/n", timeout_ms=1000 * LIMIT_S, synced=True) is None


@pytest.mark.filterwarnings("ignore::pytest.PytestUnhandledThreadExceptionWarning")
def test_a_session_survives_answers_that_kazoo_does_not(site: Site) -> None:
    """An answer out of order ends kazoo's connection thread for good; the coordinator then opens a client anew."""
    proxy = site.proxy()
    behind = site.connect(proxy.address)
    session_id = behind.session_id()
    proxy.answering = False
    with pytest.raises(CoordinatorUnavailable, match="no answer in time"):
        behind.read("/", timeout_ms=200)
    proxy.answering = True
    with pytest.raises(CoordinatorUnavailable):
        behind.read("/", timeout_ms=1000 * LIMIT_S)
    wait_until(lambda: can_read(behind), "ZooKeeper to answer", LIMIT_S)
    assert behind.session_id() not in (None, session_id)


def can_read(coordinator: ZooKeeperCoordinator) -> bool:
    with contextlib.suppress(CoordinatorUnavailable):
        return coordinator.read("/", timeout_ms=200) is not None
    return False


def test_members_outlive_an_expired_session(site: Site) -> None:
    coordinator, other = site.connect(), site.connect()
    candidate = site.candidate("a", LONG, coordinator)
    candidate.join("standby")
    tenure = serve(candidate)
    candidate.join("primary")
    expected = [Member("a", "primary", "127.0.0.1:4000")]
    assert members(other, site.root) == expected
    session_id = coordinator.session_id()
    expire(site.zookeeper, coordinator)
    wait_until(lambda: coordinator.session_id() not in (None, session_id), "another session", LIMIT_S)
    assert members(other, site.root) == []
    assert tenure.renew()
    assert members(other, site.root) == expected


def expire(zookeeper: str, coordinator: ZooKeeperCoordinator) -> None:
    """End a session under its owner's feet: open it a second time, and close it there."""
    twin = KazooClient(hosts=zookeeper, client_id=coordinator._client.client_id)
    twin.start(timeout=LIMIT_S)
    twin.stop()
    twin.close()


def test_two_first_starts_at_once_make_one_primary(site: Site) -> None:
    candidates = [site.candidate(f"p{i}", LONG, site.connect()) for i in range(4)]
    outcomes: list[Tenure | StandBy] = []
    threads = [threading.Thread(target=lambda c=c: outcomes.append(c.attempt())) for c in candidates]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(LIMIT_S)
    assert sorted(type(outcome).__name__ for outcome in outcomes) == ["StandBy"] * 3 + ["Tenure"]


def test_zookeeper_that_is_down_at_the_start_is_a_clear_error() -> None:
    with socket.create_server(("127.0.0.1", 0)) as silent:
        hosts = f"127.0.0.1:{silent.getsockname()[1]}"
        with pytest.raises(CoordinatorUnavailable, match=f"{hosts} did not answer within 300 ms"):
            ZooKeeperCoordinator(hosts, connect_timeout_ms=300, session_timeout_ms=1000)
    with pytest.raises(CoordinatorUnavailable, match="did not answer"):
        ZooKeeperCoordinator(hosts, connect_timeout_ms=300)


@pytest.mark.parametrize("hosts", ["", "localhost", "localhost:x", "127.0.0.1:2181/chroot", "127.0.0.1:0", "a:1,,b:2"])
def test_hosts_that_cannot_be_meant_are_refused(hosts: str) -> None:
    with pytest.raises(InvalidLeaseSettings, match="host:port"):
        ZooKeeperCoordinator(hosts)
