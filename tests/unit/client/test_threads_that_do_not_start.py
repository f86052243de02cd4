"""Where the system has no thread, or no file, left: that is told, and once there is one again, all goes on."""

from __future__ import annotations

import dataclasses
import errno
import threading
import time

import pytest

from client import Aborted, OutcomeUnknown, TransactionManager, TransactionStatus
from client.connection import oracle as oracle_module
from client.errors import NoThreadFree
from tests.unit.client.conftest import SETTINGS, A, Installation
from tests.unit.client.transacting import get


@pytest.fixture
def fresh(installation: Installation) -> TransactionManager:
    """A manager that has asked the oracle nothing yet."""
    return installation.manager()


def without_threads(monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    start = threading.Thread.start

    def refuse(thread: threading.Thread) -> None:
        if thread.name == name:
            raise RuntimeError("can't start new thread")
        start(thread)

    monkeypatch.setattr(threading.Thread, "start", refuse)


@pytest.mark.parametrize("name", ["pythia-oracle", "pythia-heartbeats"])
def test_a_thread_that_cannot_be_started_is_told_and_tried_again(
    fresh: TransactionManager, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    with monkeypatch.context() as meanwhile:
        without_threads(meanwhile, name)
        for _ in range(2):
            with pytest.raises(NoThreadFree, match="can't start new thread"):
                fresh.transaction()
    fresh.transaction().rollback()
    assert name in [thread.name for thread in threading.enumerate()]


def test_no_file_for_an_event_loop_is_told_and_tried_again(
    fresh: TransactionManager, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse() -> None:
        raise OSError(errno.EMFILE, "Too many open files")

    with monkeypatch.context() as meanwhile:
        meanwhile.setattr(oracle_module, "new_event_loop", refuse)
        with pytest.raises(NoThreadFree, match="Too many open files"):
            fresh.transaction()
    fresh.transaction().rollback()


def test_whoever_only_reads_is_spoken_for_once_there_is_a_file_for_an_event_loop(
    installation: Installation, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As a Spark task: its heartbeats are the first that its process asks of the oracle."""
    manager = installation.manager(settings=dataclasses.replace(SETTINGS, heartbeat_interval_ms=10))
    handle = installation.manager().snapshot().handle()
    refused = threading.Semaphore(0)

    def refuse() -> None:
        refused.release()
        raise OSError(errno.EMFILE, "Too many open files")

    with monkeypatch.context() as meanwhile:
        meanwhile.setattr(oracle_module, "new_event_loop", refuse)
        held = manager.resume_snapshot(handle)
        for _ in range(2):
            assert refused.acquire(timeout=10)
    ends_s = time.monotonic() + 10
    while manager.oracle._thread is None and time.monotonic() < ends_s:
        time.sleep(0.01)
    assert manager.oracle._thread is not None
    assert held.is_open()


def test_who_has_no_thread_to_end_a_shared_transaction_with_is_told_that_its_end_is_open(
    installation: Installation, fresh: TransactionManager, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As the driver of a job that another process began: its commit is the first that it asks of the oracle."""
    began = installation.manager().transaction()
    shared = fresh.resume(began.handle())
    shared.put("t", b"r", {A: b"1"})
    with monkeypatch.context() as meanwhile:
        without_threads(meanwhile, "pythia-oracle")
        with pytest.raises(OutcomeUnknown):
            shared.commit()
    assert shared.status is TransactionStatus.UNKNOWN
    assert shared.rollback() == Aborted()
    assert get(fresh, b"r") is None
