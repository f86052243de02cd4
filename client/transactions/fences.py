"""Placing a fence: a transaction that writes one cell, decided and found like any other (``guards`` beside this).

Two fences of one table conflict, as two writers of one cell do. That is as it should be: who loses began before the
other one committed, so the other stands against the same writers and more, and serves for both.
"""

from __future__ import annotations

from dataclasses import replace

from client.errors import Conflict
from client.handles import TransactionHandle
from client.transactions.commit import Services, commit
from client.transactions.guarded_cells import GuardedCells
from client.transactions.guards import FENCE_COLUMN, FENCE_VALUE
from client.transactions.hooks import TransactionHooks
from client.transactions.write_buffer import WriteBuffer

FENCE_BYTES_MAX = 10_000


def place_fence(services: Services, handle: TransactionHandle, table: str) -> int:
    """When a table was fenced: above the snapshot of the transaction ``handle``, which has just begun and ends here.

    Raises ``TransactionAborted`` (no fence was placed), ``OutcomeUnknown`` (it may stand).
    """
    buffer = WriteBuffer(FENCE_BYTES_MAX)
    buffer.write(services.guards.table, table.encode(), {FENCE_COLUMN: FENCE_VALUE})
    try:
        quiet = replace(services, hooks=TransactionHooks())  # which are told of the program's own transactions
        return commit(quiet, handle, buffer, GuardedCells(), {}, shared=False).commit_timestamp
    except Conflict:
        others = services.guards.fence_since(handle.snapshot_timestamp, [table])
        if others is None:
            raise
        return others.timestamp
