"""A manager that was made before a fork: what it is in the child, and that the parent's is not disturbed."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from typing import Any

import pytest

from client import ClientSettings, InvalidRequest, TransactionManager
from client.connection.primary import ZooKeeperDirectory
from client.snapshots.resolver import OutcomeCache
from client.spark import connections
from commit_table import Committed
from testkit import small_limits
from tests.forked import entered_in_a_thread, forked, in_child
from tests.unit.client.conftest import SETTINGS, Installation
from tests.unit.client.transacting import LIFE_MS, get, open_with, outlive, put

BEATING = dataclasses.replace(SETTINGS, heartbeat_interval_ms=20)


@pytest.fixture
def short_lived(empty_installation: Installation) -> TransactionManager:
    """A manager with heartbeats, whose thread runs, of an oracle that gives up what it does not hear of."""
    empty_installation.serve(limits=small_limits(transaction_life_ms=LIFE_MS))
    manager = empty_installation.manager(settings=BEATING)
    manager.create_table("t", ["f"])
    put(manager, b"before", b"1")
    return manager


def test_a_child_begins_reads_and_commits_and_its_transactions_live(short_lived: TransactionManager) -> None:
    def child() -> tuple[bytes | None, object]:
        transaction = open_with(short_lived, b"r", b"2")
        outlive(short_lived, transaction.start_timestamp)
        return get(short_lived, b"before"), transaction.commit()

    value, outcome = in_child(child)
    assert value == b"1"
    assert isinstance(outcome, Committed)
    assert put(short_lived, b"after", b"3").commit_timestamp > outcome.commit_timestamp


def test_the_parent_speaks_on_for_what_it_began_and_the_child_does_not(short_lived: TransactionManager) -> None:
    transaction = open_with(short_lived, b"r", b"2")

    def child() -> int:
        with short_lived.transaction():
            return len(short_lived.heartbeats._watched)

    with forked(child) as process:
        assert process.result() == 1
        outlive(short_lived, transaction.start_timestamp)
    assert isinstance(transaction.commit(), Committed)


def test_a_manager_that_was_closed_before_the_fork_is_closed_in_the_child(installation: Installation) -> None:
    manager = installation.manager()
    put(manager, b"r", b"1")
    manager.close()

    def child() -> None:
        with pytest.raises(InvalidRequest, match="the client is closed"):
            manager.transaction()
        manager.heartbeats.watch(installation.manager().snapshot())
        assert manager.heartbeats._thread is None

    in_child(child)


def use_cache(cache: OutcomeCache) -> None:
    cache.remember(1, 2)
    assert cache.get(1) == 2


@pytest.mark.parametrize(
    ("holder", "use"),
    [
        (lambda manager: manager._services.cache, lambda manager: use_cache(manager._services.cache)),
        (lambda manager: manager.catalog._own, lambda manager: manager.catalog._own.name()),
        (lambda manager: manager._past, lambda manager: manager.snapshot(at=manager.oracle.begin().snapshot)),
        (lambda manager: manager.heartbeats, lambda manager: manager.transaction()),
        (lambda manager: manager.oracle, lambda manager: manager.oracle.begin()),
        (lambda manager: manager.store._store, lambda manager: get(manager, b"r")),
    ],
)
def test_a_child_waits_for_no_thread_of_its_parent(
    manager: TransactionManager, holder: Callable[[Any], Any], use: Callable[[Any], object]
) -> None:
    put(manager, b"r", b"1")
    with entered_in_a_thread(holder(manager)._lock):
        in_child(lambda: use(manager) and None)


def test_a_child_waits_for_no_thread_that_connects_to_zookeeper() -> None:
    directory = ZooKeeperDirectory(SETTINGS)
    with directory._lock:
        directory._changed.clear()
        assert in_child(lambda: (directory._lock.locked(), directory._changed.is_set())) == (False, True)


def test_a_child_uses_the_managers_that_it_finds_and_closes_them_for_itself(monkeypatch: pytest.MonkeyPatch) -> None:
    class Connected:
        def __init__(self, settings: ClientSettings) -> None:
            self.root = settings.root
            self.closed = False

        def close(self) -> None:
            self.closed = True

    monkeypatch.setattr(TransactionManager, "connect", Connected)
    settings = [ClientSettings("127.0.0.1:1", "127.0.0.1:2", f"/{index}") for index in range(6)]
    made: list[Any] = [connections.manager_for(each) for each in settings[:4]]

    def child() -> list[bool]:
        assert connections.manager_for(settings[3]) is made[3]
        connections.manager_for(settings[4])
        return [each.closed for each in made]

    with connections._lock:
        assert in_child(child) == [True, False, False, False]
    assert not any(each.closed for each in made)
    connections.close_managers()
    assert all(each.closed for each in made)
