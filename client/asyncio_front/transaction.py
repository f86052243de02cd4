"""A transaction, for the tasks of an event loop.

What is asked of one transaction is done in the order in which it was asked, one after the other, so that several tasks
may work in it. The invariant under cancellation: a call was made whole or not at all, and none is under way when a
transaction is rolled back or committed.
"""

from __future__ import annotations

import asyncio
import inspect
import logging
from collections.abc import AsyncGenerator, Callable, Collection, Mapping, Sequence
from contextlib import suppress
from functools import partial
from types import TracebackType
from typing import TypeVar

from client.asyncio_front.blocking_calls import BlockingCalls
from client.asyncio_front.opening import Opening
from client.asyncio_front.streaming import streamed
from client.errors import InvalidRequest, PythiaError
from client.handles import TransactionHandle
from client.snapshots.pages import BYTES_MAX, LOOKED_AT_MAX, ROWS_MAX, RowsPage
from client.snapshots.stored_cells import SCAN_BATCH_ROWS
from client.transactions.savepoints import OwnWrites, Savepoint
from client.transactions.status import TransactionStatus
from client.transactions.transaction import Transaction
from commit_table import Aborted, Committed
from store import StoreError
from store.columns import CellColumns

_log = logging.getLogger(__name__)

Result = TypeVar("Result")


class AsyncTransaction:
    """``client.Transaction``, to be waited for; made by ``manager.transaction()``, used once.

    As an asynchronous context manager it commits at the end of the block, and rolls back when the block raises. A call
    that is cancelled ends when what it began has ended, by limits of its own: ``status`` says what a commit came to.
    """

    def __init__(self, transaction: Transaction, calls: BlockingCalls) -> None:
        self._transaction = transaction
        self._calls = calls
        self._turn = asyncio.Lock()

    def __repr__(self) -> str:
        return f"<{type(self).__name__} {self.start_timestamp}, {self.status.value}>"

    @property
    def start_timestamp(self) -> int:
        """The transaction's id, and the HBase timestamp of the cells that it writes."""
        return self._transaction.start_timestamp

    @property
    def snapshot_timestamp(self) -> int:
        """What it reads: every commit at or below this."""
        return self._transaction.snapshot_timestamp

    @property
    def epoch(self) -> int:
        """The first timestamp of the epoch in which it began."""
        return self._transaction.epoch

    @property
    def status(self) -> TransactionStatus:
        """Where the transaction stands."""
        return self._transaction.status

    @property
    def commit_forbidden(self) -> str | None:
        """Why ``commit`` will roll it back; ``None`` where nobody forbade it."""
        return self._transaction.commit_forbidden

    @property
    def written_bytes(self) -> int:
        """What its writes take in memory, about. See ``Transaction.written_bytes``."""
        return self._transaction.written_bytes

    async def handle(self) -> TransactionHandle:
        """The transaction as a value, for other processes. See ``Transaction.handle``."""
        return await self.apply(Transaction.handle)

    async def apply(self, work: Callable[[Transaction], Result]) -> Result:
        """Have ``work`` done on the transaction as it is without asyncio, in one call in a thread, and in its turn.

        For code that is written for threads, and for many reads or writes at once: ``put`` and ``get`` here take a
        change of threads each. ``work`` must not keep the transaction. Raises what ``work`` raises, ``InvalidRequest``
        for a coroutine function, and what ``AsyncTransactionManager`` says of all its calls.
        """
        if inspect.iscoroutinefunction(work):
            raise InvalidRequest(
                "apply takes a function that blocks: call the methods of this transaction from async def"
            )
        return await self._calls.run(partial(work, self._transaction), self._turn)

    async def get(
        self,
        table: str,
        row: bytes,
        columns: Sequence[bytes] | None = None,
        *,
        own_writes: OwnWrites = "all",
        guarded: bool = False,
    ) -> dict[bytes, bytes]:
        """One row: column → value; empty where there is none. See ``Transaction.get``."""
        get = partial(Transaction.get, table=table, row=row, columns=columns)
        return await self.apply(partial(get, own_writes=own_writes, guarded=guarded))

    async def get_many(
        self,
        table: str,
        rows: Collection[bytes],
        columns: Sequence[bytes] | None = None,
        *,
        own_writes: OwnWrites = "all",
        guarded: bool = False,
    ) -> dict[bytes, dict[bytes, bytes]]:
        """Rows by their keys: key → what ``get`` gives, of those that there are. See ``Transaction.get_many``."""
        get_many = partial(Transaction.get_many, table=table, rows=rows, columns=columns)
        return await self.apply(partial(get_many, own_writes=own_writes, guarded=guarded))

    def scan(
        self,
        table: str,
        *,
        start: bytes = b"",
        stop: bytes = b"",
        prefix: bytes = b"",
        columns: Sequence[bytes] | None = None,
        reverse: bool = False,
        own_writes: OwnWrites = "all",
    ) -> AsyncGenerator[tuple[bytes, dict[bytes, bytes]], None]:
        """Rows in key order, for ``async for``. See ``Transaction.scan``; what it raises comes with the first row.

        The own writes that it shows are those of the moment when the first row is asked for.
        """
        scan = partial(self._transaction.scan, table, start=start, stop=stop, prefix=prefix, reverse=reverse)
        return streamed(self._calls, partial(scan, columns=columns, own_writes=own_writes), SCAN_BATCH_ROWS, self._turn)

    async def scan_page(
        self,
        table: str,
        *,
        start: bytes = b"",
        stop: bytes = b"",
        columns: Sequence[bytes] | None = None,
        reverse: bool = False,
        rows_max: int = ROWS_MAX,
        bytes_max: int = BYTES_MAX,
        looked_at_max: int = LOOKED_AT_MAX,
        own_writes: OwnWrites = "all",
    ) -> RowsPage:
        """The first rows of ``scan``, for as much work as is asked for. See ``Transaction.scan_page``."""
        page = partial(Transaction.scan_page, table=table, start=start, stop=stop, columns=columns, reverse=reverse)
        limits = partial(page, rows_max=rows_max, bytes_max=bytes_max, looked_at_max=looked_at_max)
        return await self.apply(partial(limits, own_writes=own_writes))

    def scan_columns(
        self,
        table: str,
        known: Sequence[bytes] | None = None,
        *,
        start: bytes = b"",
        stop: bytes = b"",
        prefix: bytes = b"",
        columns: Sequence[bytes] | None = None,
        batch_rows: int = SCAN_BATCH_ROWS,
        own_writes: OwnWrites = "all",
    ) -> AsyncGenerator[CellColumns, None]:
        """Batches of many rows, for ``async for``. See ``Transaction.scan_columns``."""
        scan = partial(self._transaction.scan_columns, table, known, start=start, stop=stop, prefix=prefix)
        chosen = partial(scan, columns=columns, batch_rows=batch_rows, own_writes=own_writes)
        return streamed(self._calls, chosen, 1, self._turn)

    async def put(self, table: str, row: bytes, values: Mapping[bytes, bytes], *, conflict_free: bool = False) -> None:
        """Write columns of one row. Nothing is visible to others before the commit. See ``Transaction.put``."""
        await self.apply(lambda transaction: transaction.put(table, row, values, conflict_free=conflict_free))

    async def delete(
        self, table: str, row: bytes, columns: Sequence[bytes] | None = None, *, conflict_free: bool = False
    ) -> None:
        """Delete columns of a row; by default every column that the transaction sees in it. See ``put``."""
        await self.apply(lambda transaction: transaction.delete(table, row, columns, conflict_free=conflict_free))

    async def guard(self, table: str, rows: Collection[bytes], columns: Sequence[bytes] | None = None) -> None:
        """Commit only if nobody else commits a write to these cells after the snapshot. See ``Transaction.guard``."""
        await self.apply(lambda transaction: transaction.guard(table, rows, columns))

    async def claim(self, key: str, *, table: str | None = None) -> bool:
        """Have this transaction be the one that lands ``key``; whether none did before. See ``Transaction.claim``."""
        return await self.apply(lambda transaction: transaction.claim(key, table=table))

    def savepoint(self) -> Opening[AsyncSavepoint]:
        """This moment, for ``rollback_to``; in ``async with`` it is gone back to when the block raises.

        See ``Transaction.savepoint``. The moment is that of the waiting: calls made before it count, those after not.
        """

        async def opened() -> AsyncSavepoint:
            return AsyncSavepoint(self, await self.apply(Transaction.savepoint))

        return Opening(opened)

    async def rollback_to(self, savepoint: AsyncSavepoint) -> None:
        """Undo every put and delete after the savepoint, which stays open. See ``Transaction.rollback_to``."""
        await self.apply(lambda transaction: transaction.rollback_to(savepoint.savepoint))

    async def release(self, savepoint: AsyncSavepoint) -> None:
        """Do without a savepoint, and those made after it, from now on; what was written stays."""
        await self.apply(lambda transaction: transaction.release(savepoint.savepoint))

    async def checkpoint(self) -> None:
        """Have reads with ``own_writes="before_checkpoint"`` show what was written up to here."""
        await self.apply(Transaction.checkpoint)

    async def forbid_commit(self, reason: str) -> None:
        """Have ``commit`` roll the transaction back, for good. See ``Transaction.forbid_commit``."""
        await self.apply(lambda transaction: transaction.forbid_commit(reason))

    async def commit(self) -> Committed:
        """Make everything visible at once. See ``Transaction.commit``.

        Where it is cancelled it goes on to its end, and the transaction is committed or not, as ``status`` says.
        """
        return await self.apply(Transaction.commit)

    async def rollback(self) -> Committed | Aborted:
        """Give the transaction up. See ``Transaction.rollback``."""
        return await self.apply(Transaction.rollback)

    async def __aenter__(self) -> AsyncTransaction:
        self._transaction.__enter__()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        has_begun = False

        def end(transaction: Transaction) -> None:
            nonlocal has_begun
            has_begun = True
            transaction.__exit__(kind, error, traceback)

        try:
            await self.end_block(end, failed=kind is not None)
        finally:
            if not has_begun:  # and nobody else will roll it back: see ``end_block``
                give_up = partial(self._transaction.__exit__, asyncio.CancelledError, None, None)
                self._calls.clean_up_in_turn(give_up, self._turn)

    async def end_block(self, end: Callable[[Transaction], None], *, failed: bool) -> None:
        """End a block of this transaction, or of a savepoint of its. Where that cannot be, nothing of it commits.

        Whoever sees a block raise takes it for undone. Where the block ``failed``, its own error is the one to show.
        """
        try:
            await self.apply(end)
        except BaseException as failure:
            with suppress(PythiaError):  # it has ended
                self._transaction.forbid_commit(f"a block in it did not come to its end: {failure!r}")
            if not failed or not isinstance(failure, PythiaError | StoreError):
                raise
            _log.warning("transaction %d: the end of a block that failed: %s", self.start_timestamp, str(failure))


class AsyncSavepoint:
    """``client.Savepoint``, to be waited for; made by ``transaction.savepoint()``."""

    def __init__(self, transaction: AsyncTransaction, savepoint: Savepoint) -> None:
        self._transaction = transaction
        self.savepoint = savepoint
        """The same for threads."""

    @property
    def is_open(self) -> bool:
        """Whether it was neither released nor undone."""
        return self.savepoint.is_open

    async def __aenter__(self) -> AsyncSavepoint:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        def end(_: Transaction) -> None:
            self.savepoint.__exit__(kind, error, traceback)
            if kind is None and self.savepoint.was_undone:
                raise InvalidRequest(
                    "what this block wrote was undone, by going back to a savepoint made before it: one transaction's "
                    "tasks share its savepoints"
                )

        await self._transaction.end_block(end, failed=kind is not None)
