"""The coordinator on kazoo over a server of ours that says as much of ZooKeeper's protocol as it takes."""

from __future__ import annotations

import contextlib
import socket
import struct
import threading
import time
from collections.abc import Callable, Iterator
from typing import TypeAlias

import pytest
from kazoo.client import KazooClient

from lease import CoordinatorUnavailable, InvalidLeaseSettings
from lease import zookeeper as under_test
from lease.zookeeper import ZooKeeperCoordinator
from tests.forked import forked
from tests.socket_frames import framed, receive_frame, send_frame

SESSION_MS = 400
LIMIT_S = 20.0
SYNC, PING, CLOSE, NO_NODE = 9, 11, -11, -101
SASL, AUTHENTICATION_FAILED = 102, -115
SET_ACL, NO_AUTHENTICATION, BAD_VERSION = 7, -102, -103
SaslServer: TypeAlias = Callable[[bytes], bytes | None]
PATH = struct.pack(">i2s", 2, b"/n")


class HalfZooKeeper:
    """Has no nodes. Like ZooKeeper it hangs up on a client that has seen more than it has itself (``transactions``)."""

    def __init__(self) -> None:
        self.transactions = 1000
        self.sessions = 0
        self.closes = True
        self.holds_back = 0
        """So many answers, which go out with the one after them."""
        self.session_ms = SESSION_MS
        self.says_of_grants = NO_NODE
        self.known: Callable[[], SaslServer] | None = None
        """Makes who each connection agrees on Kerberos with."""
        self._listener = socket.create_server(("127.0.0.1", 0))
        self._sockets: list[socket.socket] = []
        threading.Thread(target=self._accept, daemon=True).start()

    @property
    def address(self) -> str:
        return f"127.0.0.1:{self._listener.getsockname()[1]}"

    def lose_data(self) -> None:
        self.transactions = 1
        sockets, self._sockets = self._sockets, []
        for one in sockets:
            _shut(one)

    def close(self) -> None:
        _shut(self._listener)
        self.lose_data()

    def agree(self, client: socket.socket, number: int, token: bytes, server: SaslServer | None) -> None:
        """As ZooKeeper, which answers with nothing where it knows nothing of SASL, and hangs up on whom it refuses."""
        answer = server(token) if server else None
        if server is not None and answer is None:
            send_frame(client, struct.pack(">iqi", number, 0, AUTHENTICATION_FAILED))
            raise EOFError
        said = struct.pack(">i", -1) if answer is None else framed(answer)
        send_frame(client, struct.pack(">iqi", number, 0, 0) + said)

    def _accept(self) -> None:
        with contextlib.suppress(OSError):
            while True:
                client, _ = self._listener.accept()
                self._sockets.append(client)
                threading.Thread(target=self._serve, args=(client,), daemon=True).start()

    def _serve(self, client: socket.socket) -> None:
        with contextlib.suppress(OSError, EOFError):
            seen = struct.unpack_from(">q", receive_frame(client), 4)[0]
            if seen > self.transactions:
                raise EOFError
            self.sessions += 1
            send_frame(client, struct.pack(">iiqi16s?", 0, self.session_ms, self.sessions, 16, b"", False))
            held: list[bytes] = []
            server = self.known() if self.known else None
            while True:
                request = receive_frame(client)
                number, kind = struct.unpack_from(">ii", request)
                if kind == SASL:
                    self.agree(client, number, request[12:], server)
                    continue
                if kind == CLOSE and not self.closes:
                    continue
                error = 0 if kind in (SYNC, PING, CLOSE) else self.says_of_grants if kind == SET_ACL else NO_NODE
                said = PATH if kind == SYNC else b""
                answer = struct.pack(">iqi", number, self.transactions, error) + said
                if kind == PING:
                    send_frame(client, answer)
                    continue
                held.append(answer)
                if kind != CLOSE and len(held) <= self.holds_back:
                    continue
                client.sendall(b"".join(map(framed, held)))
                held.clear()
        _shut(client)


def _shut(one: socket.socket) -> None:
    with contextlib.suppress(OSError):
        one.shutdown(socket.SHUT_RDWR)
    one.close()


@pytest.fixture
def server() -> Iterator[HalfZooKeeper]:
    with contextlib.closing(HalfZooKeeper()) as server:
        yield server


@pytest.fixture
def coordinator(server: HalfZooKeeper) -> Iterator[ZooKeeperCoordinator]:
    with ZooKeeperCoordinator(server.address, session_timeout_ms=SESSION_MS) as coordinator:
        assert coordinator.read("/n", timeout_ms=1000 * LIMIT_S) is None
        yield coordinator


def read_again(coordinator: ZooKeeperCoordinator) -> None:
    end_s = time.monotonic() + LIMIT_S
    while True:
        try:
            coordinator.read("/n", timeout_ms=100)
        except CoordinatorUnavailable:
            assert time.monotonic() < end_s, "it never connects again"
        else:
            return


def test_a_zookeeper_that_lost_its_data_is_connected_to_by_a_client_that_has_seen_nothing(
    server: HalfZooKeeper, coordinator: ZooKeeperCoordinator
) -> None:
    session_id = coordinator.session_id()
    server.lose_data()
    read_again(coordinator)
    assert coordinator.session_id() not in (None, session_id)


def test_a_read_that_has_to_be_new_takes_one_trip_to_the_server_and_back(
    server: HalfZooKeeper, coordinator: ZooKeeperCoordinator
) -> None:
    """As a write does: a ZooKeeper that is so slow that a lease can just be kept must not keep all from taking over."""
    server.holds_back = 1
    assert coordinator.read("/n", timeout_ms=1000 * LIMIT_S, synced=True) is None
    server.holds_back = 0


def test_a_client_that_is_connected_is_not_replaced(server: HalfZooKeeper, coordinator: ZooKeeperCoordinator) -> None:
    for _ in range(8):
        time.sleep(SESSION_MS / 1000 / 2)
        coordinator.read("/n", timeout_ms=1000 * LIMIT_S)
    assert server.sessions == 1


def test_one_client_at_a_time_is_being_stopped(
    server: HalfZooKeeper, coordinator: ZooKeeperCoordinator, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nobody waits for that: it may take ten seconds."""
    stopped, stop = threading.Event(), under_test._stop
    stopping: list[KazooClient] = []

    def slowly(client: KazooClient) -> None:
        stopping.append(client)
        stopped.wait(LIMIT_S)
        stop(client)

    monkeypatch.setattr(under_test, "_stop", slowly)
    server.lose_data()
    read_again(coordinator)
    server.transactions = 1000
    coordinator.read("/n", timeout_ms=1000 * LIMIT_S)
    server.lose_data()
    end_s = time.monotonic() + 4 * SESSION_MS / 1000
    while time.monotonic() < end_s:
        with pytest.raises(CoordinatorUnavailable):
            coordinator.read("/n", timeout_ms=100)
    assert len(stopping) == 1
    stopped.set()
    read_again(coordinator)


def test_a_child_that_is_forked_while_a_client_is_being_stopped_opens_its_own(
    server: HalfZooKeeper, coordinator: ZooKeeperCoordinator, monkeypatch: pytest.MonkeyPatch
) -> None:
    stopped, stop = threading.Event(), under_test._stop

    def slowly(client: KazooClient) -> None:
        stopped.wait(LIMIT_S)
        stop(client)

    monkeypatch.setattr(under_test, "_stop", slowly)
    server.lose_data()
    read_again(coordinator)
    session_id = coordinator.session_id()

    def read_there() -> int | None:
        read_again(coordinator)
        return coordinator.session_id()

    with forked(read_there) as child:
        assert child.result() not in (None, session_id)
    stopped.set()
    assert coordinator.session_id() == session_id
    coordinator.read("/n", timeout_ms=1000 * LIMIT_S)


def test_what_the_old_client_says_is_not_said_of_the_new_one(
    server: HalfZooKeeper, coordinator: ZooKeeperCoordinator
) -> None:
    old = coordinator._client
    server.lose_data()
    read_again(coordinator)
    for state in ("CONNECTED", "LOST"):  # what it is already is not told again
        old._make_state_change(state)
    coordinator.read("/n", timeout_ms=100)


@pytest.mark.parametrize("host", ["a..b", "a" * 64])
def test_what_cannot_be_a_host_is_refused_before_anybody_waits_for_it(host: str) -> None:
    with pytest.raises(InvalidLeaseSettings, match="cannot be the name of one of ZooKeeper's hosts"):
        ZooKeeperCoordinator(f"127.0.0.1:2181,{host}:2181")


@pytest.mark.parametrize(("says", "may"), [(BAD_VERSION, True), (NO_AUTHENTICATION, False), (NO_NODE, False)])
def test_who_may_change_a_node_is_zookeepers_to_say(
    server: HalfZooKeeper, coordinator: ZooKeeperCoordinator, says: int, may: bool
) -> None:
    """It looks at what is granted before it looks at the version, which no node has."""
    server.says_of_grants = says
    assert coordinator.may_grant("/n", timeout_ms=1000 * LIMIT_S) is may
