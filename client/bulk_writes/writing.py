"""Writing into a transaction from many processes at once, past any one process's memory.

Each attempt of each task has one ``AttemptWriter``. It records what it is about to write
(``client.bulk_writes.manifest``) and then writes tentative versions at the transaction's start timestamp. Repeating a
task rewrites the same cells with the same values: harmless, which is what makes task retries and speculation safe.
"""

from __future__ import annotations

import logging
import time
from typing import Final

from client.bulk_writes.manifest import Manifest
from client.catalog.catalog import Catalog
from client.cells import is_shadow
from client.errors import InvalidRequest, TransactionAborted
from client.handles import TransactionHandle
from commit_table import Aborted, CommitTable, Committed
from lease.clocks import monotonic_ms
from store import CellStore, InvalidCell
from store.columns import CellColumns, check_columns

_log = logging.getLogger(__name__)

LOOK_MS_MAX: Final = 250
"""How old a look at what became of the transaction may be when a request goes out: a few requests go out in that time.
Whoever ends a bulk write waits as long where an attempt that does not count may be at it (``await_last_looks``)."""


class AttemptWriter:
    """One attempt of one task of a bulk write into ``table``. Values are stored ones (``client.cells``)."""

    def __init__(
        self,
        store: CellStore,
        commit_table: CommitTable,
        catalog: Catalog,
        manifest: Manifest,
        handle: TransactionHandle,
        table: str,
        job: str,
        *,
        partition: int,
        attempt: int,
    ) -> None:
        self._store = store
        self._commit_table = commit_table
        self._catalog = catalog
        self._manifest = manifest
        self._handle = handle
        self._start_timestamp = handle.start_timestamp
        self._table = table
        self._job = job
        self._attempt = (partition, attempt)
        self._sequence = 0
        self._looked_ms: float | None = None
        """When it was last seen that what is on record is wanted; ``None``: not since it was recorded."""

    @property
    def start_timestamp(self) -> int:
        """Of the transaction that it writes into, and for which it speaks while it is held."""
        return self._start_timestamp

    @property
    def snapshot_timestamp(self) -> int:
        """What the transaction reads."""
        return self._handle.snapshot_timestamp

    def is_open(self) -> bool:
        """A task works until nobody holds its writer any more."""
        return True

    def give_up(self) -> None:
        """Learn that the transaction expired: its commit will say so, or the next write."""
        _log.warning("the oracle gave transaction %d up while it was written into", self._start_timestamp)

    def write(self, cells: CellColumns) -> None:
        """Record and write some rows, each of which has at least one cell.

        Raises ``InvalidRequest`` and ``TransactionAborted`` (nothing written, or a part that nobody needs, since all of
        it ended meanwhile), ``StoreUnavailable``, ``UpgradeNeeded``. A
        transaction that has ended takes nothing more: what came late would show in snapshots that were read before.
        Nor does one that is being ended: its commit may have read already what it judges. Nor a bulk write that has
        ended: what comes late would lie over what later ones wrote.
        """
        if any(is_shadow(column) for column in cells.columns):
            raise InvalidRequest("shadow cells are not a writer's to write")
        try:
            check_columns(self._table, cells, self._start_timestamp)
        except InvalidCell as error:
            raise InvalidRequest(str(error)) from error
        if not cells.rows:
            return
        if self._sequence == 0:  # of what has ended long ago nothing new is recorded
            require_open(self._commit_table, self._start_timestamp)
        level = self._catalog.entry(self._table).conflict_level  # of which the installation's level is a part
        self._sequence = self._manifest.record(
            self._start_timestamp, self._job, self._attempt, self._sequence, self._table, level, cells
        )
        self._looked_ms = None
        self._store.put_columns(self._table, cells, self._start_timestamp, before_each=self._require_wanted)

    def has_written(self, row: bytes) -> bool:
        """Whether a row has a cell of this transaction. Raises ``StoreUnavailable``."""
        families = self._catalog.entry(self._table).family_columns
        newest = self._store.get(self._table, row, families, before=self._start_timestamp + 1)
        return any(cell.timestamp == self._start_timestamp for cell in newest.values())

    def _require_wanted(self) -> None:
        """Raise where what is on record is not to be written any more.

        Asked before each request, and not once for all of them: a process that is stopped in between, or finds no
        gateway for a while, goes on when a vacuum may have dropped already what it wrote. That takes longer than
        ``LOOK_MS_MAX``; what follows a look sooner needs none of its own, which would be four questions.
        """
        now_ms = monotonic_ms()
        if self._looked_ms is not None and now_ms - self._looked_ms < LOOK_MS_MAX:
            return
        require_not_ending(self._commit_table, self._manifest, self._start_timestamp)
        if self._manifest.is_sealed(self._start_timestamp, self._job):
            raise InvalidRequest(
                f"the bulk write {self._job} has ended without this attempt of partition {self._attempt[0]}: it comes "
                "too late, another one has written its rows"
            )
        self._looked_ms = now_ms  # from before the questions: what they found may have changed since


def await_last_looks() -> None:
    """Return once no writer sends anything by a look that was made before the call."""
    time.sleep(LOOK_MS_MAX / 1_000)


def require_open(commit_table: CommitTable, start_timestamp: int) -> None:
    """Raise where a transaction has ended: ``InvalidRequest`` if it committed, ``TransactionAborted`` if not.

    ``InvalidRequest`` also where that is not on record any more: a vacuum went on without it, and may have deleted what
    it wrote. Written again, that would be seen once HBase has forgotten the deletes.
    """
    outcome = commit_table.outcome(start_timestamp)
    if isinstance(outcome, Committed):
        raise InvalidRequest(
            f"transaction {start_timestamp} has committed: nothing more can be written into it, begin another"
        )
    if isinstance(outcome, Aborted):
        raise TransactionAborted(start_timestamp, "it was rolled back before all of it was written")
    below = commit_table.forgotten_below()  # not before: what is on record may be dropped between the two looks
    if start_timestamp < below:
        raise InvalidRequest(
            f"transaction {start_timestamp} began so long ago that a vacuum has dropped what became of it: nothing "
            "more can be written into it, begin another"
        )


def require_not_ending(commit_table: CommitTable, manifest: Manifest, start_timestamp: int) -> None:
    """``require_open`` for what is on record already; raises ``InvalidRequest`` while somebody ends the transaction.

    The claim is looked for first: with the record of a commit that has ended it is gone, and the commit table knows.
    """
    is_claimed = manifest.is_end_claimed(start_timestamp)
    require_open(commit_table, start_timestamp)
    if is_claimed:
        raise InvalidRequest(
            f"transaction {start_timestamp} is being ended by a process that shares it: nothing more can be written "
            "into it, and this was not; wait for all who write before you end it"
        )
