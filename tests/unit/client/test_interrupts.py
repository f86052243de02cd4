"""A signal's handler that raises in a caller's thread, as Ctrl-C does in a notebook: the manager serves on."""

from __future__ import annotations

import itertools

from client import TransactionManager, TransactionStatus
from tests.interrupts import interrupted_at
from tests.unit.client.transacting import get, put


def test_whoever_is_interrupted_while_he_asks_the_oracle_keeps_nobody_else_from_it(manager: TransactionManager) -> None:
    manager.oracle.begin()

    def interrupted(moment: int) -> bool:
        came_to_it = interrupted_at(moment, manager.oracle.begin)
        manager.oracle.begin()
        return came_to_it

    assert sum(1 for _ in itertools.takewhile(interrupted, itertools.count(1))) > 10


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
