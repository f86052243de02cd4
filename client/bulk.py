"""Writing into a transaction from many processes at once, past any one process's memory.

Each attempt of each task has one ``AttemptWriter``. It records what it is about to write (``client.manifest``) and then
writes tentative versions at the transaction's start timestamp. Repeating a task rewrites the same cells with the same
values: harmless, which is what makes task retries and speculation safe.
"""

from __future__ import annotations

from collections.abc import Sequence

from client.cells import is_shadow, validate_row
from client.errors import InvalidRequest
from client.handles import TransactionHandle
from client.manifest import Manifest
from store import CellStore, RowPut


class AttemptWriter:
    """One attempt of one task of a bulk write into ``table``. Values are stored ones (``client.cells``)."""

    def __init__(
        self,
        store: CellStore,
        manifest: Manifest,
        handle: TransactionHandle,
        table: str,
        job: str,
        *,
        partition: int,
        attempt: int,
    ) -> None:
        self._store = store
        self._manifest = manifest
        self._start_timestamp = handle.start_timestamp
        self._table = table
        self._job = job
        self._attempt = (partition, attempt)
        self._sequence = 0

    def write(self, puts: Sequence[RowPut]) -> None:
        """Record and write some rows. Raises ``InvalidRequest`` (nothing written), ``StoreUnavailable``."""
        for row, columns in puts:
            validate_row(row)
            if not columns or any(is_shadow(column) for column in columns):
                raise InvalidRequest(f"row {row!r}: at least one column is needed, and no shadow cell")
        if not puts:
            return
        self._sequence = self._manifest.record(
            self._start_timestamp, self._job, self._attempt, self._sequence, self._table, puts
        )
        self._store.put(self._table, puts, self._start_timestamp)
