"""Threads that are there when they are needed, and what a transaction does at once by them."""

from __future__ import annotations

import threading
import time
import weakref
from collections.abc import Callable, Sequence
from functools import partial

import pytest

from client import Conflict, TransactionAborted, TransactionManager
from client.manager import HELPER_THREAD
from client.transactions import helper_threads
from client.transactions.helper_threads import HelperThreads, call_at_once
from store import RowPut
from store.faults import Fault
from tests.forked import entered_in_a_thread, in_child
from tests.unit.client.conftest import A, Installation
from tests.unit.client.transacting import get, open_with

WAIT_SECONDS_MAX = 20.0
NAME = "helper of a test"


def await_ends() -> None:
    """Of all helpers' threads."""
    for thread in threading.enumerate():
        if thread.name in (NAME, HELPER_THREAD):
            thread.join(WAIT_SECONDS_MAX)
            assert not thread.is_alive()


@pytest.fixture(autouse=True)
def soon_idle(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(helper_threads, "IDLE_SECONDS_MAX", 0.2)


def test_calls_are_made_at_once_and_the_first_in_the_callers_thread() -> None:
    meeting = threading.Barrier(3)
    names: dict[int, str] = {}

    def call(place: int) -> Callable[[], None]:
        def made() -> None:
            meeting.wait(WAIT_SECONDS_MAX)
            names[place] = threading.current_thread().name

        return made

    call_at_once(HelperThreads(NAME, 2), [call(place) for place in range(3)])
    assert names == {0: threading.current_thread().name, 1: NAME, 2: NAME}


@pytest.mark.parametrize("threads_max", [0, 1])
def test_where_no_thread_is_free_the_caller_makes_them_itself(threads_max: int) -> None:
    helpers, held, made = HelperThreads(NAME, threads_max), threading.Event(), []
    too_long = threading.Timer(2.0, held.set)
    too_long.start()
    if threads_max:
        assert helpers.submit(lambda: held.wait(WAIT_SECONDS_MAX))
    here = threading.current_thread().name
    call_at_once(helpers, [lambda: made.append(threading.current_thread().name)] * 3)
    assert made == [here] * 3
    too_long.cancel()
    held.set()


def test_no_more_threads_than_was_said_and_what_waits_is_done_in_its_order() -> None:
    helpers, done = HelperThreads(NAME, 1), []
    ended = threading.Event()
    for number in range(10):
        assert helpers.submit(lambda number=number: done.append((number, threading.active_count())))  # type: ignore[misc]
    assert helpers.submit(ended.set)
    assert ended.wait(WAIT_SECONDS_MAX)
    assert [number for number, _ in done] == list(range(10))
    assert helpers._threads == 1


def test_threads_without_work_end_and_others_begin() -> None:
    helpers = HelperThreads(NAME, 2)
    for _ in range(2):
        ended = threading.Event()
        assert helpers.submit(ended.set)
        assert ended.wait(WAIT_SECONDS_MAX)
        await_ends()
        assert helpers._threads == 0


def test_the_error_of_the_first_that_failed_is_raised_once_all_have_ended() -> None:
    meeting, ended = threading.Barrier(3), []

    def call(place: int, error: Exception | None) -> Callable[[], None]:
        def made() -> None:
            meeting.wait(WAIT_SECONDS_MAX)
            ended.append(place)
            if error is not None:
                raise error

        return made

    errors = None, ValueError("second"), ValueError("third")
    with pytest.raises(ValueError, match="second"):
        call_at_once(HelperThreads(NAME, 2), [call(place, error) for place, error in enumerate(errors)])
    assert sorted(ended) == [0, 1, 2]


def test_nothing_of_it_is_under_way_any_more_when_it_returns() -> None:
    ended: list[int] = []

    def slow() -> None:
        time.sleep(0.05)
        ended.append(1)

    call_at_once(HelperThreads(NAME, 1), [lambda: None, slow])
    assert ended == [1]


class Ended(BaseException):
    """As of a process that dies, in tests that play it."""


def test_whatever_ends_a_call_elsewhere_ends_the_callers() -> None:
    def end() -> None:
        raise Ended

    helpers, made = HelperThreads(NAME, 1), []
    with pytest.raises(Ended):
        call_at_once(helpers, [lambda: made.append(0), end, lambda: made.append(2)])
    assert sorted(made) == [0, 2]  # the last may have found the thread free again, before the caller made the first
    assert helpers._threads == 1


def test_one_call_or_none_needs_no_thread() -> None:
    helpers, made = HelperThreads(NAME, 2), []
    call_at_once(helpers, [])
    call_at_once(helpers, [lambda: made.append(1)])
    assert (made, helpers._threads) == ([1], 0)


def test_what_fails_ends_no_thread(caplog: pytest.LogCaptureFixture) -> None:
    helpers, ended = HelperThreads(NAME, 1), threading.Event()
    assert helpers.submit(lambda: 1 // 0)
    assert helpers.submit(ended.set)
    assert ended.wait(WAIT_SECONDS_MAX)
    assert f"a call in the thread {NAME} failed" in caplog.text


class Written:
    """What a transaction has a thread write."""


def test_a_thread_that_waits_holds_nothing_of_what_it_did(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(helper_threads, "IDLE_SECONDS_MAX", WAIT_SECONDS_MAX)
    helpers, written = HelperThreads("idle helper of a test", 1), Written()
    here = weakref.ref(written)
    assert helpers.submit(partial(id, written))
    del written
    while here() is not None and helpers._threads:
        time.sleep(0.01)
    assert helpers._threads == 1


def test_where_no_thread_can_be_started_the_caller_makes_all(monkeypatch: pytest.MonkeyPatch) -> None:
    def start(thread: threading.Thread) -> None:
        raise RuntimeError("can't start new thread")

    monkeypatch.setattr(threading.Thread, "start", start)
    helpers, made = HelperThreads(NAME, 2), []
    assert not helpers.submit(lambda: made.append(0))
    call_at_once(helpers, [lambda: made.append(1)] * 2)
    assert made == [1, 1]


def test_a_child_has_threads_of_its_own() -> None:
    helpers = HelperThreads(NAME, 1)
    held = threading.Event()
    assert helpers.submit(lambda: held.wait(WAIT_SECONDS_MAX))
    made: list[str] = []

    def child() -> list[str]:
        def note() -> None:
            meeting.wait(WAIT_SECONDS_MAX)
            made.append(threading.current_thread().name)

        meeting = threading.Barrier(2)
        call_at_once(helpers, [note, note])
        return sorted(made)

    with entered_in_a_thread(helpers._changed):
        assert in_child(child) == sorted([NAME, threading.current_thread().name])
    held.set()


class Meeting:
    """A put waits until another table is put to as well."""

    def __init__(self, installation: Installation) -> None:
        self._put = installation.store.put
        self.meeting = threading.Barrier(2)
        self.met = 0

    def __call__(self, table: str, puts: Sequence[RowPut], timestamp: int) -> None:
        if table in ("t", "u"):
            self.meeting.wait(WAIT_SECONDS_MAX)
            self.met += 1
        self._put(table, puts, timestamp)


@pytest.fixture
def two_tables(installation: Installation) -> TransactionManager:
    manager = installation.manager()
    manager.create_table("u", ["f"])
    with manager.transaction() as transaction:  # so that what is looked up once has been
        transaction.put("u", b"before", {A: b"1"})
    return manager


def test_a_transaction_writes_to_all_its_tables_at_once(
    installation: Installation, two_tables: TransactionManager, monkeypatch: pytest.MonkeyPatch
) -> None:
    meeting = Meeting(installation)
    monkeypatch.setattr(installation.store, "put", meeting)
    transaction = open_with(two_tables, b"r", b"1")
    transaction.put("u", b"r", {A: b"2"})
    transaction.commit()
    assert meeting.met == 4, "tentative versions, and shadow cells"
    monkeypatch.undo()
    assert (get(two_tables, b"r"), get(two_tables, b"r", table="u")) == (b"1", b"2")


def test_one_that_lost_is_marked_in_all_its_tables_at_once(
    installation: Installation, two_tables: TransactionManager, monkeypatch: pytest.MonkeyPatch
) -> None:
    transaction = open_with(two_tables, b"r", b"late")
    transaction.put("u", b"r", {A: b"late"})
    with two_tables.transaction() as first:
        first.put("u", b"r", {A: b"first"})
    meeting = Meeting(installation)
    monkeypatch.setattr(installation.store, "put", meeting)
    with pytest.raises(Conflict):
        transaction.commit()
    assert meeting.met == 4


@pytest.mark.parametrize("fault", [Fault.LOST, Fault.DONE, Fault.LATE])
def test_where_one_table_cannot_be_written_nothing_is_seen_in_any(
    installation: Installation, two_tables: TransactionManager, fault: Fault
) -> None:
    transaction = open_with(two_tables, b"r", b"1")
    transaction.put("u", b"r", {A: b"1"})
    installation.store.plan("put", fault)
    with pytest.raises(TransactionAborted, match="never taken up"):
        transaction.commit()
    installation.store.deliver_late()
    assert (get(two_tables, b"r"), get(two_tables, b"r", table="u")) == (None, None)
