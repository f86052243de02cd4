"""Saving a transaction whose snapshot the oracle cannot judge any more: after a failover, or by mere eviction.

The new primary remembers nothing of its predecessor. What it would have had to remember lies in the tables, so the
client looks there itself (DESIGN section 8; Omid aborts instead):

1. a fresh snapshot V, of the primary's epoch F;
2. the transaction's own id is fenced at F: either it did commit, or no commit of it below F will ever count;
3. in every cell of the write set and every cell guarded, and in the fences of their tables, the newest commit at V is
   looked for, others being fenced as by any reader at F; one above the transaction's snapshot is a conflict;
4. then the commit is asked for once more, validated up to V; later commits the oracle knows.

The order matters. The own record is read after V was handed out: an abort that the oracle has forgotten by the time of
step 4 had its fence before V, so it is found in step 2. The data is read after it, too: what committed at or below V
was recorded before V was handed out.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from itertools import islice

from client.cells import cell_id
from client.connection.deadline import Deadline
from client.connection.oracle import OracleClient
from client.connection.tickets import Begun
from client.errors import ABORTED_BY_ANOTHER, Conflict, TableFenced, TransactionAborted
from client.handles import TransactionHandle
from client.snapshots.reading import SnapshotReader
from client.snapshots.resolver import OutcomeCache, Resolver
from client.snapshots.visibility import NOT_COMMITTED, View
from client.transactions.guards import Guards
from commit_table import Aborted, CommitTable, Committed, Forgotten
from store import CellStore

BATCH_ROWS = 500

ComparedRows = Mapping[str, Mapping[bytes, Iterable[bytes]]]
"""Table → row → columns that may have been written in it, or are guarded."""


class Revalidator:
    """Looks for conflicts in the data, on behalf of transactions of one manager. Thread-safe."""

    def __init__(
        self,
        store: CellStore,
        commit_table: CommitTable,
        guards: Guards,
        oracle: OracleClient,
    ) -> None:
        self._store = store
        self._commit_table = commit_table
        self._guards = guards
        self._oracle = oracle

    def settle(self, handle: TransactionHandle, deadline: Deadline) -> Committed | Begun:
        """The commit, where the transaction turns out to have committed, or a snapshot up to which conflicts have to be
        looked for: at the epoch of that the transaction is fenced, so that whatever was lost did not commit it.

        Steps 1 and 2. Raises ``TransactionAborted`` (somebody aborted it); every other error leaves it open whether it
        committed: ``Forgotten`` (a vacuum has dropped what was on record), ``NoPrimary``, ``InvalidRequest`` (the
        oracle's client is closed, or full), ``StoreUnavailable``.
        """
        begun = self._oracle.begin(deadline)
        with deadline.paused():
            outcome = self._commit_table.resolve(handle.start_timestamp, begun.epoch)
            below = self._commit_table.forgotten_below()  # not before: it may be dropped between the two looks
        if isinstance(outcome, Committed):
            return outcome
        if isinstance(outcome, Aborted):
            raise TransactionAborted(handle.start_timestamp, ABORTED_BY_ANOTHER)
        if handle.start_timestamp < below:
            raise Forgotten(handle.start_timestamp, below)
        return begun

    def look_for_conflicts(
        self,
        handle: TransactionHandle,
        compared: Iterable[ComparedRows],
        is_compared: Callable[[int], bool],
        tables: Collection[str],
        begun: Begun,
        deadline: Deadline,
    ) -> int:
        """The snapshot of ``begun``, up to which nothing conflicts. Step 3.

        ``compared``: the rows and columns in which it may conflict with others, part by part; ``is_compared``: whether
        a conflict key is one that the oracle would compare; ``tables``: all that it wrote or guards. Reading the data
        does not count against ``deadline``. Raises ``TableFenced``, ``Conflict``, ``StoreUnavailable``.
        """
        with deadline.paused():
            reader = self._reader(View(begun.snapshot, begun.epoch), handle.start_timestamp)
            self._require_no_fence(handle, tables, reader)
            for rows_by_table in compared:
                for table, rows in rows_by_table.items():
                    self._check(reader, handle, table, rows, is_compared)
            # Once more, and by now: a vacuum that set its mark meanwhile may have deleted what was looked for.
            self._require_no_fence(handle, tables, None)
        return begun.snapshot

    def _require_no_fence(
        self, handle: TransactionHandle, tables: Collection[str], reader: SnapshotReader | None
    ) -> None:
        fence = self._guards.fence_since(handle.snapshot_timestamp, tables, reader)
        if fence is not None:
            raise TableFenced(handle.start_timestamp, *fence)

    def _reader(self, view: View, own: int) -> SnapshotReader:
        """Heals nothing and remembers nothing: that the transaction's own versions do not count holds here only."""
        resolver = Resolver(self._store, self._commit_table, OutcomeCache(BATCH_ROWS), heal=False)
        return SnapshotReader(self._store, resolver, view, self._guards, assumed={own: NOT_COMMITTED})

    def _check(
        self,
        reader: SnapshotReader,
        handle: TransactionHandle,
        table: str,
        rows: Mapping[bytes, Iterable[bytes]],
        is_compared: Callable[[int], bool],
    ) -> None:
        """Look by the table's conflict level: at what the write set would be compared by.

        A bulk write has on record which rows it wrote, and which columns in any of them: of a cell that another one
        committed the key says whether this one wrote it, too.
        """
        by_row = self._guards.entry(table).conflict_level == "row"
        alike: defaultdict[tuple[bytes, ...], list[bytes]] = defaultdict(list)
        for row, columns in rows.items():
            alike[() if by_row else tuple(sorted(columns))].append(row)
        for columns_alike, rows_alike in alike.items():
            for batch in _batches(rows_alike):
                for row, column, commit in reader.commits(table, batch, columns_alike or None):
                    if commit <= handle.snapshot_timestamp:
                        continue
                    if by_row or is_compared(cell_id(table, row, column)):
                        raise Conflict(
                            handle.start_timestamp,
                            f"after its snapshot another transaction committed, at {commit}, to what it wrote or "
                            f"guards in {table}",
                        )


def _batches(rows: Sequence[bytes]) -> Iterator[list[bytes]]:
    remaining = iter(rows)
    while batch := list(islice(remaining, BATCH_ROWS)):
        yield batch
