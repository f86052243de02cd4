"""The store on a real gateway that goes away: behind a proxy that cuts, swallows, and comes back.

From the store's side a cut with nobody listening, then a listener again, is a restart of the gateway.
"""

from __future__ import annotations

import contextlib
import itertools
import select
import socket
import threading
import uuid
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING

import pytest

from drills.waiting import wait_until
from store import Applied, Cell, Family, KeyRange, Rejected, RowPut, StoreUnavailable, Unknown
from store.hbase import HBaseCellStore, PoolSettings

if TYPE_CHECKING:
    from tests.conftest import Services

pytestmark = pytest.mark.integration

WAIT_S = 30.0


class Proxy:
    """Carries bytes between a port of its own and the gateway, as long as it is told to."""

    def __init__(self, gateway: str) -> None:
        host, port = gateway.rsplit(":", 1)
        self._target = (host, int(port))
        self._port = 0
        self._pairs: list[tuple[socket.socket, socket.socket]] = []
        self._threads: list[threading.Thread] = []
        self.carried = 0
        """Requests seen, give or take how they were cut into packets."""
        self.swallow_answers = False
        self.up()

    @property
    def address(self) -> str:
        return f"127.0.0.1:{self._port}"

    def up(self) -> None:
        self._listener = socket.create_server(("127.0.0.1", self._port))
        self._port = self._listener.getsockname()[1]
        self._run(self._accept, self._listener)

    def down(self) -> None:
        """As when the gateway dies: nobody listens, every connection is cut."""
        _hang_up(self._listener)
        self.cut()
        for thread in self._threads:
            thread.join(timeout=30)
        self._threads.clear()

    def cut(self) -> None:
        """Cut every connection; new ones are welcome."""
        while self._pairs:
            for side in self._pairs.pop():
                _hang_up(side)

    def _run(self, work: Callable[..., None], *arguments: socket.socket) -> None:
        thread = threading.Thread(target=work, args=arguments, daemon=True)
        self._threads.append(thread)
        thread.start()

    def _accept(self, listener: socket.socket) -> None:
        with contextlib.suppress(OSError):
            while True:
                near, _ = listener.accept()
                far = socket.create_connection(self._target)
                self._pairs.append((near, far))
                self._run(self._carry, near, far)
        listener.close()

    def _carry(self, near: socket.socket, far: socket.socket) -> None:
        with contextlib.suppress(OSError, ValueError), near, far:
            while True:
                for ready in select.select([near, far], [], [])[0]:
                    data = ready.recv(65_536)
                    if not data:
                        return
                    self.carried += ready is near
                    if ready is near:
                        far.sendall(data)
                    elif not self.swallow_answers:
                        near.sendall(data)


def _hang_up(side: socket.socket) -> None:
    with contextlib.suppress(OSError):
        side.shutdown(socket.SHUT_RDWR)


@pytest.fixture(scope="module")
def direct(services: Services) -> Iterator[HBaseCellStore]:
    store = HBaseCellStore(services.thrift)
    yield store
    store.close()


@pytest.fixture(scope="module")
def table(direct: HBaseCellStore) -> Iterator[str]:
    name = f"proxied_{uuid.uuid4().hex[:12]}"
    direct.create_table(name, [Family("f")])
    yield name
    direct.drop_table(name)


@pytest.fixture
def proxy(services: Services) -> Iterator[Proxy]:
    proxy = Proxy(services.thrift)
    yield proxy
    proxy.down()


@pytest.fixture
def store(proxy: Proxy) -> Iterator[HBaseCellStore]:
    store = HBaseCellStore(proxy.address, PoolSettings(connections_max=4, request_timeout_ms=2_000))
    yield store
    store.close()


def put_and_get(store: HBaseCellStore, table: str, row: bytes, timestamp: int) -> None:
    store.put(table, [RowPut(row, {b"f:a": b"%d" % timestamp})], timestamp)
    assert store.get(table, row, [b"f:a"]) == {b"f:a": Cell(b"%d" % timestamp, timestamp)}


def test_connections_cut_while_idle_go_unnoticed(proxy: Proxy, store: HBaseCellStore, table: str) -> None:
    for turn in range(1, 6):
        put_and_get(store, table, b"idle", turn)
        proxy.cut()
    row = b"set once"
    assert store.compare_and_set(table, row, check=b"f:a", expected=None, put=b"f:a", value=b"1") == Applied()


def test_restarts_under_traffic_show_in_no_call(proxy: Proxy, store: HBaseCellStore, table: str) -> None:
    finished = threading.Event()

    def traffic(worker: int) -> int:
        for turn in itertools.count(1):
            put_and_get(store, table, b"worker %d" % worker, turn)
            if finished.is_set():
                return turn
        raise AssertionError

    with ThreadPoolExecutor(4) as threads:
        working = [threads.submit(traffic, worker) for worker in range(4)]
        try:
            for _ in range(5):
                wait_until(lambda seen=proxy.carried: proxy.carried > seen + 40, "bytes to pass", WAIT_S)  # type: ignore[misc]
                proxy.down()
                proxy.up()
        finally:
            finished.set()
        assert all(each.result(timeout=60) > 1 for each in working)


def test_a_gateway_that_falls_silent_is_left_for_a_fresh_connection(
    proxy: Proxy, store: HBaseCellStore, table: str
) -> None:
    put_and_get(store, table, b"silence", 1)
    proxy.swallow_answers = True
    with ThreadPoolExecutor(1) as threads:
        seen = proxy.carried
        waiting = threads.submit(put_and_get, store, table, b"silence", 2)
        wait_until(lambda: proxy.carried > seen, "bytes to pass", WAIT_S)
        proxy.swallow_answers = False
        waiting.result(timeout=60)


def test_a_compare_and_set_whose_answer_is_lost_is_unknown_and_done_once(
    proxy: Proxy, store: HBaseCellStore, direct: HBaseCellStore, table: str
) -> None:
    def compare_and_set(value: bytes) -> object:
        return store.compare_and_set(table, b"lost answer", check=b"f:a", expected=None, put=b"f:a", value=value)

    assert store.get(table, b"lost answer", [b"f:a"]) == {}
    proxy.swallow_answers = True
    assert isinstance(compare_and_set(b"first"), Unknown)
    proxy.swallow_answers = False
    wait_until(
        lambda: len(direct.versions(table, b"lost answer", b"f:a", limit=9)) == 1, "the version to be there", WAIT_S
    )
    assert compare_and_set(b"second") == Rejected()
    assert [cell.value for cell in direct.versions(table, b"lost answer", b"f:a", limit=9)] == [b"first"]


def test_a_gateway_that_stays_away_is_unavailable_within_the_limit(proxy: Proxy, table: str) -> None:
    proxy.down()
    store = HBaseCellStore(proxy.address, PoolSettings(unavailable_after_ms=200))
    with pytest.raises(StoreUnavailable, match=r"has not served the call for \d+ ms"):
        store.get(table, b"r", [b"f"])
    with pytest.raises(StoreUnavailable):
        store.compare_and_set(table, b"r", check=b"f:a", expected=None, put=b"f:a", value=b"1")
    proxy.up()


@pytest.mark.parametrize("reverse", [False, True])
def test_a_scan_is_cut_again_and_again_and_gives_each_row_once(
    proxy: Proxy, store: HBaseCellStore, table: str, reverse: bool
) -> None:
    rows = [b"scan/%05d" % number for number in range(300)]
    store.put(table, [RowPut(row, {b"f:a": row}) for row in rows], 5)
    met = []
    for row, cells in store.scan(table, KeyRange(b"scan/", b"scan0"), [b"f"], batch_rows=16, reverse=reverse):
        assert cells == {b"f:a": Cell(row, 5)}
        met.append(row)
        if len(met) % 37 == 0:
            proxy.cut()
        if len(met) % 101 == 0:
            proxy.down()
            proxy.up()
    assert met == (rows[::-1] if reverse else rows)


def test_scans_of_several_threads_share_few_connections(services: Services, direct: HBaseCellStore, table: str) -> None:
    rows = [b"shared/%05d" % number for number in range(200)]
    direct.put(table, [RowPut(row, {b"f:a": b"1"}) for row in rows], 5)
    store = HBaseCellStore(services.thrift, PoolSettings(connections_max=2))

    def scan(_: int) -> list[bytes]:
        return [row for row, _ in store.scan(table, KeyRange(b"shared/", b"shared0"), [b"f"], batch_rows=7)]

    with ThreadPoolExecutor(6) as threads:
        assert list(threads.map(scan, range(6))) == [rows] * 6
    store.close()


def test_a_large_put_arrives_whole(direct: HBaseCellStore, table: str) -> None:
    puts = [RowPut(b"many/%06d" % number, {b"f:a": b"x" * 20, b"f:b": b"y"}) for number in range(20_000)]
    puts.append(RowPut(b"many/wide", {b"f:%06d" % number: b"z" * 200 for number in range(20_000)}))
    direct.put(table, puts, 5)
    scan = direct.scan(table, KeyRange(b"many/", b"many0"), [b"f"])
    assert all(
        row == put.row and {column: cell.value for column, cell in cells.items()} == put.columns
        for (row, cells), put in zip(scan, puts, strict=True)
    )
