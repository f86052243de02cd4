"""Snapshot-isolated transactions on plain HBase: the library in applications and Spark tasks.

::

    settings = ClientSettings(zookeeper="127.0.0.1:2181", thrift="127.0.0.1:9090")
    with TransactionManager.connect(settings) as manager:
        with manager.transaction() as transaction:
            transaction.put("accounts", b"alice", {b"d:balance": b"70"})
            transaction.put("audit", b"2026-11-21/1", {b"d:what": b"alice -30"})

On an event loop: ``AsyncTransactionManager``, of which the same is waited for.
"""

from client.adoption.adopting import Adopted
from client.asyncio_front import AsyncSavepoint, AsyncSnapshot, AsyncTransaction, AsyncTransactionManager
from client.catalog.entry import CatalogEntry, ConflictLevel
from client.cells import cell_id, row_id
from client.connection.async_oracle import AsyncOracleClient
from client.connection.tickets import Begun, Decision, Decisions
from client.errors import (
    AccessDenied,
    Conflict,
    InvalidRequest,
    InvalidSettings,
    NoPrimary,
    OutcomeUnknown,
    PythiaError,
    ReplyLost,
    SnapshotTooOld,
    TableFenced,
    TransactionAborted,
    TransactionExpired,
    TransactionTooLarge,
    UpgradeNeeded,
)
from client.handles import SnapshotHandle, TransactionHandle
from client.manager import TransactionManager
from client.metrics import ClientMetrics
from client.settings import ClientSettings
from client.snapshots.changed_rows import ChangedColumns, ChangedRow
from client.snapshots.pages import ChangesPage, RowsPage
from client.snapshots.record import NamedSnapshot
from client.snapshots.snapshot import Snapshot
from client.transactions.hooks import CommitStep, TransactionHooks
from client.transactions.savepoints import OwnWrites, Savepoint
from client.transactions.status import TransactionStatus
from client.transactions.transaction import Transaction
from commit_table import Aborted, Committed, Outcome, Undecided
from store import StoreError, StoreUnavailable
from wire import CommitRequest, OutcomeStatus, Reason

__all__ = [
    "Aborted",
    "AccessDenied",
    "Adopted",
    "AsyncOracleClient",
    "AsyncSavepoint",
    "AsyncSnapshot",
    "AsyncTransaction",
    "AsyncTransactionManager",
    "Begun",
    "CatalogEntry",
    "ChangedColumns",
    "ChangedRow",
    "ChangesPage",
    "ClientMetrics",
    "ClientSettings",
    "CommitRequest",
    "CommitStep",
    "Committed",
    "Conflict",
    "ConflictLevel",
    "Decision",
    "Decisions",
    "InvalidRequest",
    "InvalidSettings",
    "NamedSnapshot",
    "NoPrimary",
    "Outcome",
    "OutcomeStatus",
    "OutcomeUnknown",
    "OwnWrites",
    "PythiaError",
    "Reason",
    "ReplyLost",
    "RowsPage",
    "Savepoint",
    "Snapshot",
    "SnapshotHandle",
    "SnapshotTooOld",
    "StoreError",
    "StoreUnavailable",
    "TableFenced",
    "Transaction",
    "TransactionAborted",
    "TransactionExpired",
    "TransactionHandle",
    "TransactionHooks",
    "TransactionManager",
    "TransactionStatus",
    "TransactionTooLarge",
    "Undecided",
    "UpgradeNeeded",
    "cell_id",
    "row_id",
]
