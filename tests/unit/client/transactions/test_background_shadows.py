"""A commit that does not wait for its shadow cells: what is seen meanwhile, what is bounded, and what is given up."""

from __future__ import annotations

import dataclasses
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import TypeVar

import pytest

from client import CommitStep, Conflict, StoreUnavailable, TransactionHooks, TransactionManager
from client.snapshots.resolver import Site
from client.snapshots.visibility import NOT_COMMITTED
from client.transactions import background_shadows
from client.transactions.background_shadows import SITE_BYTES, BackgroundShadows
from store.faults import Fault
from tests.forked import entered_in_a_thread, in_child
from tests.unit.client.conftest import SETTINGS, A, Installation, written_in_bulk
from tests.unit.client.transacting import get, open_with, put

Note = TypeVar("Note")

WAIT_SECONDS_MAX = 20.0
IN_BACKGROUND = dataclasses.replace(SETTINGS, shadow_cells="in_background")
SHADOW = b"f:\x00"


class Gate:
    """In place of ``Resolver.write_shadows``: notes what it is asked for, and does it when it is let through."""

    def __init__(self, write: Callable[[Sequence[Site], int, int], None] = lambda sites, writer, outcome: None) -> None:
        self._write = write
        self._open = threading.Semaphore(0)
        self._changed = threading.Condition()
        self.asked: list[tuple[int, int]] = []
        self.done: list[int] = []
        self.errors: list[Exception] = []
        """To be raised by the next that are let through."""

    def __call__(self, sites: Sequence[Site], writer: int, outcome: int) -> None:
        self._note(self.asked, (writer, outcome))
        assert self._open.acquire(timeout=WAIT_SECONDS_MAX)
        if self.errors:
            raise self.errors.pop(0)
        self._write(sites, writer, outcome)
        self._note(self.done, writer)

    def let_through(self, times: int = 1) -> None:
        self._open.release(times)

    def await_done(self, count: int) -> None:
        with self._changed:
            assert self._changed.wait_for(lambda: len(self.done) >= count, WAIT_SECONDS_MAX)

    def await_asked(self, count: int) -> None:
        with self._changed:
            assert self._changed.wait_for(lambda: len(self.asked) >= count, WAIT_SECONDS_MAX)

    def _note(self, notes: list[Note], note: Note) -> None:
        with self._changed:
            notes.append(note)
            self._changed.notify_all()


def gated(manager: TransactionManager) -> Gate:
    """The background of a manager writes nothing but what is let through."""
    background = manager._background
    assert background is not None
    gate = Gate(background._write)
    background._write = gate
    return gate


@contextmanager
def behind(gate: Gate, threads_max: int = 1) -> Iterator[tuple[BackgroundShadows, set[int]]]:
    being_written: set[int] = set()
    background = BackgroundShadows(gate, being_written, threads_max)
    try:
        yield background, being_written
    finally:
        gate.let_through(1_000)
        background.close(WAIT_SECONDS_MAX)


def shadow_of(manager: TransactionManager, row: bytes) -> bool:
    return bool(manager.store.versions("t", row, SHADOW, limit=1))


def sites(count: int) -> list[Site]:
    return [Site("t", b"%d" % number, b"f") for number in range(count)]


def test_a_commit_returns_before_its_shadow_cells_stand_and_everybody_sees_it(installation: Installation) -> None:
    manager, other = (
        installation.manager(settings=IN_BACKGROUND),
        installation.manager(settings=dataclasses.replace(SETTINGS, heal=False)),
    )
    gate = gated(manager)
    committed = put(manager, b"r", b"1")
    assert not shadow_of(manager, b"r")
    assert (get(manager, b"r"), get(other, b"r")) == (b"1", b"1")
    gate.let_through()
    gate.await_done(1)
    assert shadow_of(manager, b"r")
    assert [outcome for _, outcome in gate.asked] == [committed.commit_timestamp]


def test_it_is_not_so_unless_it_is_asked_for(installation: Installation) -> None:
    manager = installation.manager()
    assert manager._background is None
    put(manager, b"r", b"1")
    assert shadow_of(manager, b"r")


def test_who_reads_in_the_same_process_writes_none_that_are_about_to_be_written(installation: Installation) -> None:
    manager = installation.manager(settings=IN_BACKGROUND)
    gate = gated(manager)
    put(manager, b"r", b"1")
    assert get(manager, b"r") == b"1"
    assert not shadow_of(manager, b"r")
    gate.errors.append(StoreUnavailable("no answer"))
    gate.let_through()
    put(manager, b"s", b"1")
    gate.await_asked(2)  # by the same thread or another: the first is given up by then, or soon
    gate.let_through()
    gate.await_done(1)
    until_healed = threading.Event()
    for _ in range(100):
        assert get(manager, b"r") == b"1"
        if shadow_of(manager, b"r"):
            break
        until_healed.wait(0.05)
    assert shadow_of(manager, b"r"), "what was given up is left to readers, those here too"


def test_a_transaction_that_lost_is_marked_in_the_background_too(installation: Installation) -> None:
    manager = installation.manager(settings=IN_BACKGROUND)
    transaction = open_with(manager, b"r", b"late")
    put(installation.manager(), b"r", b"first")
    gate = gated(manager)
    with pytest.raises(Conflict):
        transaction.commit()
    assert get(manager, b"r") == b"first"
    gate.let_through()
    gate.await_done(1)
    assert gate.asked == [(transaction.start_timestamp, NOT_COMMITTED)]


def test_hooks_and_metrics_learn_when_they_stand(installation: Installation) -> None:
    told: list[tuple[str, str]] = []

    class Notes(TransactionHooks):
        def commit_step(self, step: CommitStep, start_timestamp: int) -> None:
            told.append((step.value, threading.current_thread().name))

    manager = installation.manager(settings=IN_BACKGROUND, hooks=Notes())
    gate = gated(manager)
    put(manager, b"r", b"1")
    here = threading.current_thread().name
    assert told == [("written", here), ("sent", here), ("answered", here)]
    gate.let_through()
    manager.close()
    assert told[3:] == [("shadowed", "pythia-shadow-cells")]
    [steps] = [metric for metric in manager.metrics.collect() if metric.name == "pythia_client_commit_step_seconds"]
    counts = {one.labels["step"]: one.value for one in steps.samples if one.name.endswith("_count")}
    assert counts == {"written": 1, "answered": 1, "shadowed": 1}


def test_of_what_fails_nobody_is_told_that_it_stands(installation: Installation) -> None:
    steps: list[CommitStep] = []

    class Notes(TransactionHooks):
        def commit_step(self, step: CommitStep, start_timestamp: int) -> None:
            steps.append(step)
            if step is CommitStep.ANSWERED:
                installation.store.plan("put", Fault.LOST)

    manager = installation.manager(settings=IN_BACKGROUND, hooks=Notes())
    put(manager, b"r", b"1")
    manager.close()
    assert steps == [CommitStep.WRITTEN, CommitStep.SENT, CommitStep.ANSWERED]
    assert get(installation.manager(), b"r") == b"1"


def test_what_many_processes_wrote_is_waited_for_as_before(installation: Installation) -> None:
    manager = installation.manager(settings=IN_BACKGROUND)
    gated(manager)
    written_in_bulk(manager).commit()
    assert shadow_of(manager, b"r")


def test_what_is_owed_is_bounded_and_who_comes_then_writes_its_own(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(background_shadows, "BYTES_OWED_MAX", 3 * (SITE_BYTES + len(b"0")))
    gate = Gate()
    with behind(gate) as (background, being_written):
        assert background.submit(1, 10, sites(2))
        assert not background.submit(2, 20, sites(2))
        assert background.submit(3, 30, sites(1))
        assert not background.submit(4, 40, sites(1))
        assert being_written == {1, 3}
        gate.let_through(2)
        gate.await_done(2)
        background.close(WAIT_SECONDS_MAX)
        assert being_written == set()
    assert gate.done == [1, 3]


def test_a_commit_beyond_the_bound_returns_with_its_shadow_cells(
    installation: Installation, monkeypatch: pytest.MonkeyPatch
) -> None:
    manager = installation.manager(settings=IN_BACKGROUND)
    gate = gated(manager)
    monkeypatch.setattr(background_shadows, "BYTES_OWED_MAX", SITE_BYTES + len(b"second"))
    put(manager, b"first", b"1")
    put(manager, b"second", b"1")
    assert (shadow_of(manager, b"first"), shadow_of(manager, b"second")) == (False, True)
    gate.let_through()


def test_a_fault_in_writing_ends_nothing(caplog: pytest.LogCaptureFixture) -> None:
    gate = Gate()
    gate.errors.append(ZeroDivisionError("of a kind that nobody expects"))
    gate.let_through(2)
    with behind(gate) as (background, being_written):
        assert background.submit(1, 10, sites(1))
        assert background.submit(2, 20, sites(1))
        gate.await_done(1)
        background.close(WAIT_SECONDS_MAX)
        assert being_written == set()
    assert gate.done == [2]
    assert "shadow cells of transaction 1 are left to readers" in caplog.text


def test_where_no_thread_can_be_had_the_caller_writes(monkeypatch: pytest.MonkeyPatch) -> None:
    def start(thread: threading.Thread) -> None:
        raise RuntimeError("can't start new thread")

    monkeypatch.setattr(threading.Thread, "start", start)
    with behind(Gate()) as (background, being_written):
        assert not background.submit(1, 10, sites(1))
        assert being_written == set()


def test_closing_waits_for_what_is_owed_and_takes_no_more(installation: Installation) -> None:
    manager = installation.manager(settings=IN_BACKGROUND)
    for number in range(50):
        with manager.transaction() as transaction:
            transaction.put("t", b"%d" % number, {A: b"1"})
    manager.close()
    assert all(shadow_of(manager, b"%d" % number) for number in range(50))
    assert manager._background is not None
    assert not manager._background.submit(1, 10, sites(1))


def test_closing_waits_so_long_and_no_longer(caplog: pytest.LogCaptureFixture) -> None:
    gate = Gate()
    with behind(gate) as (background, being_written):
        assert background.submit(1, 10, sites(1))
        assert background.submit(2, 20, sites(1))
        gate.await_asked(1)
        background.close(0.01)
        assert "shadow cells of 2 transactions are left to readers" in caplog.text
        gate.let_through(2)
        background.close(WAIT_SECONDS_MAX)
        assert (gate.done, being_written) == ([1], set()), "what was under way comes to its end"


def test_a_child_owes_nothing_and_writes_its_own(installation: Installation) -> None:
    manager = installation.manager(settings=IN_BACKGROUND)
    gate = gated(manager)
    put(manager, b"r", b"1")
    gate.await_asked(1)
    background = manager._background
    assert background is not None

    def child() -> tuple[bool, bool]:
        healed = get(manager, b"r") == b"1" and shadow_of(manager, b"r")
        gate.let_through()
        with manager.transaction() as transaction:
            transaction.put("t", b"c", {A: b"1"})
        manager.close()
        return healed, shadow_of(manager, b"c")

    with entered_in_a_thread(background._changed), entered_in_a_thread(background._threads._changed):
        assert in_child(child) == (True, True)
    assert not shadow_of(manager, b"r")
    gate.let_through()
    gate.await_done(1)
    assert shadow_of(manager, b"r")
