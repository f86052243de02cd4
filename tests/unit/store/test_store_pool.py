"""The pool's rules, on connections that are made of nothing, and a clock that stands still unless told."""

from __future__ import annotations

import contextlib
import itertools
import threading
from concurrent.futures import Future, ThreadPoolExecutor
from functools import partial

import pytest

from store import StoreUnavailable
from store.hbase import PoolSettings, pool
from store.hbase.pool import ConnectionPool
from tests.interrupts import interrupted_at

TIME_TO_GO_WRONG_SECONDS = 0.1


class Answer(Exception):
    """Stands for an error after which the connection is sound."""


class FakeConnection:
    def __init__(self, number: int) -> None:
        self.number = number
        self.is_open = True
        self.hung_up = False

    def is_usable(self) -> bool:
        return not self.hung_up

    def close(self) -> None:
        self.is_open = False


class Setting:
    """A pool, its clock, and every connection it ever made."""

    def __init__(self, connections_max: int = 3, lease_wait_ms: int = 20) -> None:
        self.now = 1_000.0
        self.made: list[FakeConnection] = []
        self.refuse = False
        settings = PoolSettings(connections_max=connections_max, lease_wait_ms=lease_wait_ms, idle_ms_max=45_000)
        self.pool = ConnectionPool(self._connect, settings, answers=(Answer,), monotonic=lambda: self.now)

    def _connect(self) -> FakeConnection:
        if self.refuse:
            raise ConnectionRefusedError("nobody there")
        self.made.append(FakeConnection(len(self.made)))
        return self.made[-1]

    def use(self) -> int:
        with self.pool.lease() as connection:
            assert connection.is_open
            return connection.number

    def fill(self, count: int) -> None:
        """Leave ``count`` connections idle."""
        if count:
            with self.pool.lease():
                self.fill(count - 1)


def test_a_connection_is_used_again() -> None:
    setting = Setting()
    assert [setting.use() for _ in range(3)] == [0, 0, 0]


def test_one_older_than_the_limit_is_closed_and_never_handed_out() -> None:
    setting = Setting()
    setting.fill(2)
    setting.now += 44.9
    assert setting.use() == 0
    setting.now += 0.1
    assert setting.use() == 0
    assert [connection.is_open for connection in setting.made] == [True, False]
    setting.now += 45
    assert setting.use() == 2
    assert [connection.is_open for connection in setting.made] == [False, False, True]


def test_one_that_was_hung_up_is_closed_and_never_handed_out() -> None:
    setting = Setting()
    setting.fill(2)
    setting.made[0].hung_up = True
    assert setting.use() == 1
    assert not setting.made[0].is_open


def test_after_an_answer_it_is_kept_and_after_anything_else_closed() -> None:
    setting = Setting()
    with pytest.raises(Answer), setting.pool.lease():
        raise Answer
    assert setting.use() == 0
    for error in (OSError, ValueError, KeyboardInterrupt, GeneratorExit):
        before = len(setting.made)
        with pytest.raises(error), setting.pool.lease():
            raise error
        assert not setting.made[before - 1].is_open
        assert setting.use() == before


def test_an_empty_pool_is_a_clear_and_bounded_error() -> None:
    setting = Setting(connections_max=2)
    with setting.pool.lease(), setting.pool.lease():
        with pytest.raises(StoreUnavailable, match=r"all 2 connections .* raise connections_max"):
            setting.use()
        with pytest.raises(StoreUnavailable), setting.pool.lease(fresh=True):
            pass
    assert setting.use() in (0, 1)
    assert len(setting.made) == 2


def test_a_waiting_call_gets_the_connection_that_comes_back() -> None:
    setting = Setting(connections_max=1, lease_wait_ms=30_000)
    started = threading.Event()

    def wait_for_it() -> int:
        started.set()
        return setting.use()

    with ThreadPoolExecutor(1) as threads:
        with setting.pool.lease():
            waiting = threads.submit(wait_for_it)
            assert started.wait(timeout=30)
        assert waiting.result(timeout=30) == 0


def test_fresh_takes_the_place_of_the_oldest_idle_one() -> None:
    setting = Setting(connections_max=2)
    setting.fill(2)
    with setting.pool.lease(fresh=True) as connection:
        assert connection.number == 2
    assert [connection.is_open for connection in setting.made] == [True, False, True]


def test_a_failed_connect_gives_its_place_back() -> None:
    setting = Setting(connections_max=1)
    setting.refuse = True
    for _ in range(3):
        with pytest.raises(ConnectionRefusedError):
            setting.use()
    setting.refuse = False
    assert setting.use() == 0


def test_the_preferred_one_is_waited_for_and_any_other_taken_when_it_is_gone() -> None:
    setting = Setting(lease_wait_ms=30_000)
    setting.fill(2)
    wanted = setting.made[0]

    def use_wanted() -> int:
        with setting.pool.lease(prefer=wanted) as connection:
            return connection.number

    assert use_wanted() == 0
    with ThreadPoolExecutor(1) as threads:
        with setting.pool.lease(prefer=wanted) as leased:
            assert leased is wanted
            waiting = threads.submit(use_wanted)
        assert waiting.result(timeout=30) == 0
    wanted.hung_up = True
    assert use_wanted() == 1
    assert not wanted.is_open


def test_the_preferred_one_is_not_waited_for_as_long_as_for_any(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pool, "PREFERRED_WAIT_MS", 5)
    setting = Setting(connections_max=2, lease_wait_ms=30_000)
    setting.fill(1)
    wanted = setting.made[0]
    with setting.pool.lease(prefer=wanted):
        for _ in range(2):  # one that is opened, and one that is idle
            with setting.pool.lease(prefer=wanted) as connection:
                assert connection.number == 1


def test_only_a_full_pool_is_told_to_be_full() -> None:
    setting = Setting(connections_max=2)
    setting.fill(2)
    wanted = setting.made[0]
    with setting.pool.lease(prefer=wanted):
        with setting.pool.lease(prefer=wanted) as connection:
            assert connection.number == 1
        full = pytest.raises(StoreUnavailable, match="all 2 connections")
        with setting.pool.lease(), full, setting.pool.lease(prefer=wanted):
            pass


def test_lease_if_idle_never_waits() -> None:
    setting = Setting()
    setting.fill(1)
    connection = setting.made[0]
    with setting.pool.lease_if_idle(connection) as leased:
        assert leased
        with setting.pool.lease_if_idle(connection) as again:
            assert not again
    with pytest.raises(OSError, match="broken"), setting.pool.lease_if_idle(connection):
        raise OSError("broken")
    assert not connection.is_open


def test_close_closes_idle_ones_now_and_leased_ones_when_they_come_back() -> None:
    setting = Setting()
    setting.fill(2)
    with setting.pool.lease() as connection:
        setting.pool.close()
        assert [each for each in setting.made if each.is_open] == [connection]
    assert not [each for each in setting.made if each.is_open]
    with pytest.raises(StoreUnavailable, match="closed"):
        setting.use()


def test_never_more_than_the_limit_whatever_the_threads_do() -> None:
    setting = Setting(connections_max=3, lease_wait_ms=30_000)
    guard = threading.Lock()
    in_use: set[int] = set()
    most = 0

    def work(turn: int) -> None:
        nonlocal most
        with setting.pool.lease(fresh=turn % 5 == 0) as connection:
            with guard:
                assert connection.number not in in_use
                in_use.add(connection.number)
                made = list(setting.made)  # of these, whoever is open a moment later was open now
                most = max(most, sum(each.is_open for each in made))
            with guard:
                in_use.remove(connection.number)
            if turn % 7 == 0:
                raise OSError

    def survive(turn: int) -> None:
        try:
            work(turn)
        except OSError:
            return

    with ThreadPoolExecutor(8) as threads:
        list(threads.map(survive, range(400)))
    assert most <= 3


def test_nobody_opens_a_connection_in_the_place_of_one_that_is_not_closed_yet(monkeypatch: pytest.MonkeyPatch) -> None:
    setting = Setting(connections_max=1, lease_wait_ms=30_000)
    with ThreadPoolExecutor(1) as other:
        following: list[Future[int]] = []

        def close(connection: FakeConnection) -> None:
            following.append(other.submit(setting.use))
            with contextlib.suppress(TimeoutError):
                following[0].result(TIME_TO_GO_WRONG_SECONDS)
            assert len(setting.made) == 1
            connection.is_open = False

        monkeypatch.setattr(FakeConnection, "close", close)
        with contextlib.suppress(OSError), setting.pool.lease():
            raise OSError
        assert following[0].result() == 1


@pytest.mark.parametrize("fresh", [False, True])
@pytest.mark.parametrize("idle", [0, 1, 2])
@pytest.mark.parametrize("raises", [None, Answer])
def test_whoever_is_interrupted_keeps_no_place_and_no_lock(
    idle: int, fresh: bool, raises: type[Exception] | None
) -> None:
    def use(setting: Setting) -> None:
        with contextlib.suppress(Answer), setting.pool.lease(fresh=fresh):
            if raises is not None:
                raise raises

    def interrupted(moment: int) -> bool:
        setting = Setting(connections_max=2)
        setting.fill(idle)
        came_to_it = interrupted_at(moment, partial(use, setting))
        assert not setting.pool._lock.locked()
        setting.fill(2)
        return came_to_it

    assert sum(1 for _ in itertools.takewhile(interrupted, itertools.count(1))) > 5
