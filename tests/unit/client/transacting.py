"""Short transactions on an installation, and a failover in between: what the tests of several subjects share."""

from __future__ import annotations

from client import Committed, Transaction, TransactionManager
from tests.unit.client.conftest import A, Installation
from tso.settings import Limits


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


def fail_over(installation: Installation, limits: Limits | None = None) -> None:
    """The primary goes, another of a new epoch takes its place."""
    standby = installation.oracle("standby", limits)
    installation._oracles.pop(0).stop()
    standby.await_primary()
    installation.find_primary = lambda: standby.address
