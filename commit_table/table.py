"""The commit table over any store of cells: read, fence, let a record last.

The oracle records commits blindly, in batches (``commit_table.recorder``). Whoever needs to *know* of a transaction
reads its record and, where the record leaves it open, fences it by a compare-and-set on the commit column: if a commit
slipped in between, the compare fails and the reader looks again. Any number of clients may do so at once; all come to
the same end, because what one of them learnt (committed, or fenced) no later step can undo.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from commit_table import forgetting, layout
from commit_table.forgetting import Forgotten
from commit_table.outcomes import Aborted, Committed, Outcome, Undecided
from commit_table.rule import FENCE_AT_INFINITY, TransactionRecord
from commit_table.timestamps import milliseconds_of
from store import Applied, CellStore, CompareAndSet, RowPut, StoreUnavailable, Unknown
from store.making import create_missing

FENCE_ATTEMPTS_MAX = 100
"""A compare fails only when the record changed, which it does once an epoch: more means that the store is at fault."""

UNKNOWN_ANSWERS_MAX = 3
"""Each may have taken as long as a request may take: HBase may answer every read, and no write."""

READ_TRANSACTIONS_MAX = 256
"""Records asked for in one request: bounds its size, since every row is asked for every column."""


def table_name(root: str) -> str:
    """The commit table of the installation whose znodes lie under ``root`` (``"/pythia"``).

    Two installations on one HBase must not share a commit table: their timestamps are not told apart.
    """
    return system_table(root, "commits")


def system_table(root: str, purpose: str) -> str:
    """The name of one of an installation's own tables. A znode of a root has no dot, so no two roots share a name."""
    return f"{root.strip('/').replace('/', '.')}_{purpose}"


class CommitTable:
    """Which transaction committed, and when."""

    def __init__(self, store: CellStore, table: str) -> None:
        self._store = store
        self._table = table

    def create(self, regions: int = 1) -> None:
        """Make the table unless it is there. Raises ``ValueError`` for regions that ``layout.split_keys`` cannot give,
        ``CannotPreSplit``.
        """
        families = [layout.COMMIT_FAMILY, layout.FENCE_FAMILY]
        create_missing(self._store, self._table, families, layout.split_keys(regions))

    def outcome(self, start_timestamp: int) -> Outcome:
        """What the table says of a transaction now. Changes nothing; ``Undecided`` may change later."""
        return self._read(start_timestamp).outcome()

    def outcomes(self, start_timestamps: Sequence[int]) -> dict[int, Outcome]:
        """``outcome`` of many transactions, in few requests."""
        return {start: record.outcome() for start, record in self._records(start_timestamps)}

    def resolve_all(self, start_timestamps: Sequence[int], fence: int) -> dict[int, Outcome]:
        """``resolve`` of many transactions: those that are fenced already, or have ended, in few requests."""
        return {
            start: self.resolve(start, fence) if record.needs_fence(fence) else record.outcome()
            for start, record in self._records(start_timestamps)
        }

    def record(self, start_timestamp: int) -> TransactionRecord:
        """All that the table holds of a transaction now. Changes nothing."""
        return self._read(start_timestamp)

    def resolve(self, start_timestamp: int, fence: int) -> Outcome:
        """Learn that a transaction committed, or make sure that it never commits below ``fence``.

        Returns ``Committed``, or ``Undecided``/``Aborted`` with a fence at or above ``fence`` in place. Raises
        ``StoreUnavailable``; then nothing is known, and calling again is harmless.
        """
        unknown = 0
        for _ in range(FENCE_ATTEMPTS_MAX):
            record = self._read(start_timestamp)
            if not record.needs_fence(fence):
                return record.outcome()
            answer = self._place_fence(start_timestamp, record, fence)
            if isinstance(answer, Applied):
                return record.outcome()
            if isinstance(answer, Unknown):
                unknown += 1
                if unknown >= UNKNOWN_ANSWERS_MAX:
                    raise StoreUnavailable(
                        f"transaction {start_timestamp} could not be fenced: table {self._table} can be read, and "
                        f"{unknown} times did not take a write: {answer.reason}"
                    )
        raise StoreUnavailable(
            f"transaction {start_timestamp} could not be fenced in {FENCE_ATTEMPTS_MAX} attempts: "
            f"table {self._table} changes without end"
        )

    def abort(self, start_timestamp: int) -> Committed | Aborted:
        """Fence at infinity, or learn that the transaction did commit.

        Only for the oracle that decides over the transaction, or one of a later epoch: an oracle that is not told
        could still answer "committed" for a transaction that somebody else aborted here. Raises ``Forgotten``.
        """
        outcome = self.outcome(start_timestamp)
        if isinstance(outcome, Undecided):
            below = self.forgotten_below()  # not before: what was dropped between the two looks would be fenced
            if start_timestamp < below:
                raise Forgotten(start_timestamp, below)
            outcome = self.resolve(start_timestamp, FENCE_AT_INFINITY)
        return outcome if isinstance(outcome, Committed) else Aborted()

    def let_last(self, start_timestamp: int) -> None:
        """Say of a transaction that committed that its record stays for as long as it has cells without a shadow cell.

        A vacuum that does not know, or may keep no more of them, writes those first: so nothing depends on it but
        what that costs. Its cell lies where fences lie, below every epoch: it goes with its row. Raises
        ``StoreUnavailable``.
        """
        mark = RowPut(layout.row_key(start_timestamp), {layout.lasting_column(start_timestamp): layout.FENCE_VALUE})
        self._store.put(self._table, [mark], milliseconds_of(start_timestamp))

    def forgotten_below(self) -> int:
        """Of transactions that began before this timestamp nothing has to be on record; see ``forgetting``."""
        return forgetting.forgotten_below(self._store, self._table)

    def forget_below(self, below: int) -> None:
        """To be called before the records of transactions that began before ``below`` are dropped."""
        forgetting.forget_below(self._store, self._table, below)

    def _records(self, start_timestamps: Sequence[int]) -> Iterator[tuple[int, TransactionRecord]]:
        for first in range(0, len(start_timestamps), READ_TRANSACTIONS_MAX):
            chunk = start_timestamps[first : first + READ_TRANSACTIONS_MAX]
            keys = {layout.row_key(start_timestamp) for start_timestamp in chunk}
            rows = self._store.get_many(self._table, sorted(keys), layout.record_columns(chunk))
            for start_timestamp in chunk:
                row = rows.get(layout.row_key(start_timestamp), {})
                yield start_timestamp, layout.parse_record(start_timestamp, row)

    def _read(self, start_timestamp: int) -> TransactionRecord:
        columns = layout.record_columns((start_timestamp,))
        row = self._store.get(self._table, layout.row_key(start_timestamp), columns)
        return layout.parse_record(start_timestamp, row)

    def _place_fence(self, start_timestamp: int, record: TransactionRecord, fence: int) -> CompareAndSet:
        """Only ``Applied`` is a fence in place *for certain*; else the record has to be read again."""
        commit = record.commit_timestamp
        return self._store.compare_and_set(
            self._table,
            layout.row_key(start_timestamp),
            check=layout.commit_column(start_timestamp),
            expected=None if commit is None else layout.commit_value(commit),
            put=layout.fence_column(start_timestamp, fence),
            value=layout.FENCE_VALUE,
        )
