"""Savepoints and checkpoints: the moments of a transaction that it goes back to, or looks at its own writes as of.

Savepoints are as in SQL: they nest; going back to one undoes what was written after it, the savepoints made after it
included, and leaves it standing, to be gone back to again. (Omid has no way to undo a write within a transaction: its
checkpoints hide writes, and all of them commit.)

A checkpoint parts the own writes for readers: a statement that reads what it writes reads those before it. There is one
at a time, the last. (Omid numbers the versions of a cell by checkpoint, 49 of them at most; here it is a mark in the
buffer, as a savepoint is, and they cost the same however many there were.)

The invariant: after ``rollback_to`` the transaction's own writes and its last checkpoint are what they were when the
savepoint was made.
"""

from __future__ import annotations

import logging
import weakref
from types import TracebackType
from typing import TYPE_CHECKING, Literal, get_args

from client.errors import InvalidRequest, PythiaError
from client.transactions.status import TransactionStatus
from client.transactions.write_buffer import Mark, WriteBuffer
from store import StoreError

if TYPE_CHECKING:
    from client.transactions.transaction import Transaction

_log = logging.getLogger(__name__)

SAVEPOINTS_OPEN_MAX = 1_000
"""In one transaction at a time."""


OwnWrites = Literal["all", "before_checkpoint", "none"]
"""Which of its own writes a read of a transaction shows, over its snapshot."""


class Savepoint:
    """A moment of a transaction that ``transaction.rollback_to`` goes back to; made by ``transaction.savepoint()``.

    As a context manager it is gone back to when the block raises, and released at the block's end. Where it cannot be
    gone back to then, the transaction's commit is forbidden: half of a failed block never becomes visible.
    """

    def __init__(
        self, transaction: Transaction, mark: Mark, checkpoint: Mark | None, sealed_jobs: frozenset[str]
    ) -> None:
        self._transaction = weakref.ref(transaction)  # one that nobody holds any more falls silent at once
        self._start_timestamp = transaction.start_timestamp
        self._is_open = True
        self.was_undone = False
        """Whether an earlier one was gone back to while it was open."""
        self.mark = mark
        self.checkpoint = checkpoint
        """The transaction's last checkpoint when it was made."""
        self.sealed_jobs = sealed_jobs
        """The transaction's bulk writes that had ended when it was made."""

    @property
    def is_open(self) -> bool:
        """Whether it was neither released nor undone."""
        return self._is_open

    def close(self, *, undone: bool) -> None:
        """Learn that it was released or ``undone``."""
        self._is_open = False
        self.was_undone = undone

    def require_open_in(self, transaction: Transaction) -> None:
        """Raise ``InvalidRequest`` unless it is an open savepoint that this transaction made."""
        if self._transaction() is not transaction:
            raise InvalidRequest(
                f"the savepoint was made by another object, of transaction {self._start_timestamp}: a transaction goes "
                f"back to its own savepoints, through the object that made them"
            )
        if not self._is_open:
            raise InvalidRequest(
                f"the savepoint of transaction {transaction.start_timestamp} is gone: it was released, or undone when "
                f"an earlier one was rolled back to"
            )

    def __enter__(self) -> Savepoint:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        transaction = self._transaction()
        if transaction is None or transaction.status is not TransactionStatus.ACTIVE:
            return
        if kind is None:
            if self._is_open:
                transaction.release(self)
            return
        try:
            transaction.rollback_to(self)
            transaction.release(self)
        except BaseException as failure:
            transaction.forbid_commit(f"a block failed, and its savepoint could not be rolled back to: {failure!r}")
            if not isinstance(failure, PythiaError | StoreError):
                raise
            # the caller's own error is the one to show
            _log.warning("transaction %d cannot commit any more: %s", transaction.start_timestamp, str(failure))


class Savepoints:
    """The open savepoints of one transaction, the oldest first, and its last checkpoint: marks in its write buffer."""

    def __init__(self, buffer: WriteBuffer) -> None:
        self._buffer = buffer
        self._open: list[Savepoint] = []
        self._checkpoint: Mark | None = None

    def open(self, transaction: Transaction, sealed_jobs: frozenset[str]) -> Savepoint:
        """A savepoint of this moment. Raises ``InvalidRequest`` where too many are open."""
        if len(self._open) >= SAVEPOINTS_OPEN_MAX:
            raise InvalidRequest(
                f"transaction {transaction.start_timestamp} has {SAVEPOINTS_OPEN_MAX:,} savepoints open: release those "
                f"that are not needed any more, or use each as a context manager, which does"
            )
        savepoint = Savepoint(transaction, self._buffer.mark(), self._checkpoint, sealed_jobs)
        self._open.append(savepoint)
        return savepoint

    def set_checkpoint(self) -> None:
        """Have the last checkpoint be this moment."""
        self._checkpoint = self._buffer.mark()
        self._keep_needed()

    def shown(self, own_writes: OwnWrites) -> tuple[WriteBuffer, Mark | None]:
        """The writes that a read shows, and the mark up to which they count (``None``: all of them)."""
        if own_writes not in get_args(OwnWrites):
            raise InvalidRequest(f"own_writes is one of {', '.join(get_args(OwnWrites))}, not {own_writes!r}")
        if own_writes == "all":
            return self._buffer, None
        if own_writes == "none" or self._checkpoint is None:
            return WriteBuffer(0), None
        return self._buffer, self._checkpoint

    def roll_back_to(self, savepoint: Savepoint) -> None:
        """Undo what came after an open savepoint, which stays."""
        self._buffer.undo_to(savepoint.mark)
        self._close_from(self._open.index(savepoint) + 1, undone=True)
        self._checkpoint = savepoint.checkpoint

    def release(self, savepoint: Savepoint) -> None:
        """Do away with an open savepoint and those made after it; what was written stays."""
        self._close_from(self._open.index(savepoint), undone=False)
        self._keep_needed()

    def _close_from(self, place: int, *, undone: bool) -> None:
        for savepoint in self._open[place:]:
            savepoint.close(undone=undone)
        del self._open[place:]

    def _keep_needed(self) -> None:
        """The checkpoint that a savepoint goes back to is needed for as long as that is open."""
        earlier = (mark for savepoint in self._open for mark in (savepoint.mark, savepoint.checkpoint))
        self._buffer.keep_only({self._checkpoint, *earlier})
