"""Short transactions on an installation, and a failover in between: what the tests of several subjects share."""

from __future__ import annotations

from client import Committed, Transaction, TransactionManager
from commit_table.timestamps import milliseconds_of
from tests.unit.client.conftest import A, Installation
from tso.settings import Limits

LIFE_MS = 1_500
"""Of transactions that heartbeats keep: long enough that a busy machine holds none of these up for it."""


def put(manager: TransactionManager, row: bytes, value: bytes, column: bytes = A, table: str = "t") -> Committed:
    with manager.transaction() as transaction:
        transaction.put(table, row, {column: value})
    outcome = manager.outcome(transaction.start_timestamp)
    assert isinstance(outcome, Committed)
    return outcome


def get(manager: TransactionManager, row: bytes, column: bytes = A, table: str = "t") -> bytes | None:
    return manager.snapshot().get(table, row).get(column)


def open_with(manager: TransactionManager, row: bytes, value: bytes, column: bytes = A) -> Transaction:
    transaction = manager.transaction()
    transaction.put("t", row, {column: value})
    return transaction


def outlive(manager: TransactionManager, begun: int) -> None:
    """Until a transaction that began then is given up by an oracle that does so after ``LIFE_MS`` of silence."""
    while milliseconds_of(manager.oracle.begin().first_start_timestamp) < milliseconds_of(begun) + 2 * LIFE_MS:
        pass


def fail_over(installation: Installation, limits: Limits | None = None) -> None:
    """The primary goes, another of a new epoch takes its place."""
    standby = installation.oracle("standby", limits)
    installation._oracles.pop(0).stop()
    standby.await_primary()
    installation.find_primary = lambda: standby.address
