"""A caller's thread that is interrupted, as by Ctrl-C in a notebook, or a process that is paused: the manager serves
on, and says what is so.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable
from dataclasses import replace

import pytest

from client import (
    InvalidRequest,
    NoPrimary,
    OutcomeUnknown,
    Transaction,
    TransactionAborted,
    TransactionManager,
    TransactionStatus,
)
from client.connection.deadline import Deadline
from tests.interrupts import interrupted_at
from tests.unit.client.conftest import A
from tests.unit.client.transacting import get, open_with, put


def test_whoever_is_interrupted_while_he_asks_the_oracle_keeps_nobody_else_from_it(manager: TransactionManager) -> None:
    manager.oracle.begin()

    def interrupted(moment: int) -> bool:
        came_to_it = interrupted_at(moment, manager.oracle.begin)
        manager.oracle.begin()
        return came_to_it

    assert sum(1 for _ in itertools.takewhile(interrupted, itertools.count(1))) > 10


def test_a_process_that_was_paused_for_long_is_told_what_can_be_repeated(
    manager: TransactionManager, monkeypatch: pytest.MonkeyPatch
) -> None:
    transaction = open_with(manager, b"r", b"1")
    monkeypatch.setattr("client.connection.oracle.GRACE_SECONDS", 0.0)
    monkeypatch.setattr(manager.oracle._running(), "submit", lambda ticket: None)  # its loop has not woken up yet
    for ask in (manager.oracle.begin, lambda deadline: manager.oracle.abort(1, deadline)):
        with pytest.raises(NoPrimary, match="does not answer"):
            ask(Deadline(10))
    monkeypatch.setattr(manager, "_services", replace(manager._services, deadline_ms=10))
    monkeypatch.setattr(transaction, "_services", manager._services)
    with pytest.raises(OutcomeUnknown):
        transaction.commit()


def test_what_became_of_a_commit_that_was_interrupted_is_known_afterwards(manager: TransactionManager) -> None:
    put(manager, b"r", b"before")
    ends = set()

    def interrupted(moment: int) -> bool:
        transaction = manager.transaction()
        transaction.put("t", b"r", {b"f:a": b"%d" % moment})
        came_to_it = interrupted_at(moment, transaction.commit)
        if transaction.is_open():
            transaction.rollback()
        ends.add(transaction.status)
        assert (get(manager, b"r") == b"%d" % moment) is (transaction.status is TransactionStatus.COMMITTED)
        return came_to_it

    assert sum(1 for _ in itertools.takewhile(interrupted, itertools.count(1))) > 100
    assert ends == {TransactionStatus.COMMITTED, TransactionStatus.ABORTED}


def put_two(transaction: Transaction) -> None:
    transaction.put("t", b"new", {A: b"1", b"g:a": b"1"})


def undo_two(transaction: Transaction) -> None:
    savepoint = transaction.savepoint()
    transaction.put("t", b"new", {A: b"undone"})
    transaction.put("t", b"kept", {A: b"undone"})
    transaction.rollback_to(savepoint)


def release_and_undo(transaction: Transaction) -> None:
    earlier = transaction.savepoint()
    transaction.put("t", b"new", {A: b"1"})
    later = transaction.savepoint()
    transaction.put("t", b"new", {A: b"2", b"g:a": b"2"})
    transaction.checkpoint()
    transaction.release(later)
    transaction.rollback_to(earlier)


def guard_some(transaction: Transaction) -> None:
    transaction.guard("t", [b"a", b"b", b"c"], [A, b"g:a"])


@pytest.mark.parametrize("change", [put_two, undo_two, release_and_undo, guard_some])
def test_a_change_that_was_interrupted_was_made_whole_or_is_never_committed(
    manager: TransactionManager, change: Callable[[Transaction], None]
) -> None:
    refused = 0

    def interrupted(moment: int) -> bool:
        nonlocal refused
        transaction = manager.transaction()
        transaction.put("t", b"kept", {A: b"1"})
        before = transaction.savepoint()
        came_to_it = interrupted_at(moment, lambda: change(transaction))
        if transaction.commit_forbidden is None:
            transaction.rollback_to(before)
            assert dict(transaction.scan("t")) == {b"kept": {A: b"1"}}
            transaction.rollback()
            return came_to_it
        refused += 1
        uses: list[Callable[[], object]] = [
            lambda: transaction.get("t", b"kept"),
            lambda: transaction.put("t", b"kept", {A: b"2"}),
            lambda: transaction.rollback_to(before),
        ]
        for use in uses:
            with pytest.raises(InvalidRequest, match="interrupted"):
                use()
        with pytest.raises(TransactionAborted, match="interrupted"):
            transaction.commit()
        assert get(manager, b"kept") is None
        return came_to_it

    assert sum(1 for _ in itertools.takewhile(interrupted, itertools.count(1))) > 50
    assert refused > 10


def test_a_failed_block_whose_undoing_was_interrupted_never_commits(
    manager: TransactionManager, monkeypatch: pytest.MonkeyPatch
) -> None:
    def interrupt(*_: object) -> None:
        raise KeyboardInterrupt

    transaction = manager.transaction()
    transaction.handle()  # shared: the undoing looks for bulk writes first
    monkeypatch.setattr("client.transactions.transaction.require_undoable", interrupt)

    def fail() -> None:
        with transaction.savepoint():
            transaction.put("t", b"r", {A: b"half"})
            raise ZeroDivisionError

    with pytest.raises(KeyboardInterrupt):
        fail()
    with pytest.raises(TransactionAborted, match=r"a block failed.*KeyboardInterrupt"):
        transaction.commit()
    assert get(manager, b"r") is None
