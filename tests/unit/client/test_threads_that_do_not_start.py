"""Where the system has no thread, or no file, left: that is told, and once there is one again, all goes on."""

from __future__ import annotations

import errno
import threading

import pytest

from client import TransactionManager
from client import oracle as oracle_module
from client.errors import NoThreadFree
from tests.unit.client.conftest import Installation


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
