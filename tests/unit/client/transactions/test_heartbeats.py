"""How long a transaction lives of which the oracle hears nothing, and who speaks for which."""

from __future__ import annotations

import dataclasses
import gc
from collections.abc import Callable
from dataclasses import dataclass

import pytest

from client import Transaction, TransactionExpired, TransactionManager
from testkit import small_limits
from tests.unit.client.conftest import SETTINGS, Installation
from tests.unit.client.transacting import LIFE_MS, get, open_with, outlive
from wire import HEARTBEAT_TRANSACTIONS_MAX, LIVES_TRANSACTIONS_MAX, Life


@pytest.fixture
def short_lived(empty_installation: Installation) -> Installation:
    """An oracle that gives up transactions of which it hears nothing for ``LIFE_MS``."""
    empty_installation.serve(limits=small_limits(transaction_life_ms=LIFE_MS))
    empty_installation.manager().create_table("t", ["f"])
    return empty_installation


def silent(manager: TransactionManager, of: Callable[[], Transaction]) -> Transaction:
    """A transaction that is given up by now, unless a heartbeat has spoken for it."""
    transaction = of()
    outlive(manager, transaction.start_timestamp)
    return transaction


def test_a_transaction_that_nothing_was_heard_of_is_given_up_and_told_so(short_lived: Installation) -> None:
    manager = short_lived.manager()
    transaction = silent(manager, lambda: open_with(manager, b"r", b"1"))
    with pytest.raises(TransactionExpired, match="heard nothing"):
        transaction.commit()
    assert get(manager, b"r") is None
    assert TransactionExpired.retriable


def test_heartbeats_keep_a_transaction_alive_for_as_long_as_it_is_held(short_lived: Installation) -> None:
    manager = short_lived.manager(settings=dataclasses.replace(SETTINGS, heartbeat_interval_ms=20))
    transaction = silent(manager, lambda: open_with(manager, b"r", b"1"))
    transaction.commit()
    assert get(manager, b"r") == b"1"


def test_one_that_learns_of_its_end_by_a_heartbeat_says_so_at_its_next_use(short_lived: Installation) -> None:
    manager = short_lived.manager()
    transaction = silent(manager, lambda: open_with(manager, b"r", b"1"))
    manager.heartbeats.beat()
    manager.heartbeats.beat()
    with pytest.raises(TransactionExpired):
        transaction.get("t", b"r")


def test_somebody_who_worked_for_a_transaction_and_left_does_not_silence_it(installation: Installation) -> None:
    manager = installation.manager()
    asked: list[dict[int, int]] = []
    manager.heartbeats._oracle.heartbeat = lambda snapshots: asked.append(dict(snapshots)) or {}  # type: ignore[method-assign, func-returns-value]
    transaction = manager.transaction()
    manager.resume(transaction.handle()).get("t", b"r")
    gc.collect()
    manager.heartbeats.beat()
    manager.heartbeats.beat()
    assert asked == [{transaction.start_timestamp: transaction.snapshot_timestamp}]


def test_a_task_speaks_for_the_transaction_that_it_writes_into(installation: Installation) -> None:
    manager = installation.manager()
    handle = manager.transaction().handle()
    gc.collect()
    asked: list[dict[int, int]] = []
    manager.heartbeats._oracle.heartbeat = lambda snapshots: asked.append(dict(snapshots)) or {}  # type: ignore[method-assign, func-returns-value]
    writer = manager.attempt_writer(handle, "t", manager.open_job(handle), partition=0, attempt=0)
    manager.heartbeats.beat()
    manager.heartbeats.beat()
    assert asked == [{writer.start_timestamp: writer.snapshot_timestamp}]


@dataclass(eq=False)
class Reader:
    """One of many who read at a snapshot."""

    start_timestamp: int
    snapshot_timestamp: int = 1

    def is_open(self) -> bool:
        return True

    def give_up(self) -> None:
        raise AssertionError


def test_no_request_names_more_transactions_than_an_oracle_takes(installation: Installation) -> None:
    manager = installation.manager()
    asked: list[dict[int, int]] = []
    manager.heartbeats._oracle.heartbeat = lambda snapshots: asked.append(dict(snapshots)) or {}  # type: ignore[method-assign, func-returns-value]
    readers = [Reader(2 + number) for number in range(HEARTBEAT_TRANSACTIONS_MAX + 1)]
    for reader in readers:
        manager.heartbeats.watch(reader)
    manager.heartbeats.beat()
    manager.heartbeats.beat()
    assert [len(one) for one in asked] == [HEARTBEAT_TRANSACTIONS_MAX, 1]


def test_any_number_of_transactions_may_be_asked_about(installation: Installation) -> None:
    oracle = installation.manager().oracle
    starts = [oracle.begin().first_start_timestamp] * (LIVES_TRANSACTIONS_MAX + 1)
    assert oracle.lives(starts) == [Life.YOUNG] * len(starts)


def test_nobody_speaks_for_what_is_no_longer_held_or_has_ended(installation: Installation) -> None:
    manager = installation.manager()
    asked: list[dict[int, int]] = []
    manager.heartbeats._oracle.heartbeat = lambda snapshots: asked.append(dict(snapshots)) or {}  # type: ignore[method-assign, func-returns-value]
    held, ended, snapshot = manager.transaction(), manager.transaction(), manager.snapshot()
    manager.transaction()
    ended.rollback()
    gc.collect()
    manager.heartbeats.beat()
    manager.heartbeats.beat()
    assert len(asked) == 1
    assert sorted(asked[0].values()) == sorted([held.snapshot_timestamp, snapshot.timestamp])
