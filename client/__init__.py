"""Snapshot-isolated transactions on plain HBase: the library in applications and Spark tasks.

::

    settings = ClientSettings(zookeeper="127.0.0.1:2181", thrift="127.0.0.1:9090")
    with TransactionManager.connect(settings) as manager:
        with manager.transaction() as transaction:
            transaction.put("accounts", b"alice", {b"d:balance": b"70"})
            transaction.put("audit", b"2026-11-21/1", {b"d:what": b"alice -30"})
"""

from client.catalog_entry import CatalogEntry, ConflictLevel
from client.commit import CommitObserver, CommitStep
from client.errors import (
    Conflict,
    InvalidRequest,
    NoPrimary,
    OutcomeUnknown,
    PythiaError,
    SnapshotTooOld,
    TransactionAborted,
    TransactionExpired,
    TransactionTooLarge,
)
from client.handles import SnapshotHandle, TransactionHandle
from client.manager import TransactionManager
from client.settings import ClientSettings
from client.snapshot import Snapshot
from client.transaction import Transaction, TransactionStatus
from commit_table import Aborted, Committed, Outcome, Undecided

__all__ = [
    "Aborted",
    "CatalogEntry",
    "ClientSettings",
    "CommitObserver",
    "CommitStep",
    "Committed",
    "Conflict",
    "ConflictLevel",
    "InvalidRequest",
    "NoPrimary",
    "Outcome",
    "OutcomeUnknown",
    "PythiaError",
    "Snapshot",
    "SnapshotHandle",
    "SnapshotTooOld",
    "Transaction",
    "TransactionAborted",
    "TransactionExpired",
    "TransactionHandle",
    "TransactionManager",
    "TransactionStatus",
    "TransactionTooLarge",
    "Undecided",
]
