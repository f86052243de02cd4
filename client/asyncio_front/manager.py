"""The library's front door for programs on an event loop: one manager an event loop and installation."""

from __future__ import annotations

import asyncio
import inspect
from collections.abc import Awaitable, Callable, Sequence
from functools import partial
from types import TracebackType
from typing import Final, TypeVar

from tenacity import AsyncRetrying

from client.adoption.adopting import Adopted
from client.asyncio_front.blocking_calls import BlockingCalls
from client.asyncio_front.opening import Opening
from client.asyncio_front.snapshot import AsyncSnapshot
from client.asyncio_front.transaction import AsyncTransaction
from client.catalog.entry import ConflictLevel
from client.errors import InvalidRequest
from client.handles import SnapshotHandle, TransactionHandle
from client.manager import TransactionManager
from client.metrics import ClientMetrics
from client.settings import ClientSettings
from client.snapshots.moments import Moment
from client.snapshots.record import NamedSnapshot
from client.snapshots.snapshot import Snapshot
from client.transactions.hooks import TransactionHooks
from client.transactions.reruns import retrying_rules
from client.transactions.transaction import Transaction
from commit_table import Aborted, Committed, Outcome

Result = TypeVar("Result")

THREADS: Final = 32
"""In which a manager makes the calls that block, unless it is told otherwise: twice the connections to the gateway
(``store_connections_max``), since who waits for the oracle needs none."""


class AsyncTransactionManager:
    """``client.TransactionManager``, to be waited for by the tasks of one event loop. Closes itself in ``async with``.

    ``manager`` does all of it, in up to ``threads`` threads at once. Besides what its methods raise, every call of a
    method of its, or of what it gives, may raise ``StoreUnavailable`` where no thread came free within ``deadline_ms``,
    and ``InvalidRequest`` where it is closed, is used from a second event loop, or too many calls wait: that call was
    not made. One that is cancelled ends when what it began has ended.
    """

    def __init__(self, manager: TransactionManager, *, threads: int = THREADS) -> None:
        self._calls = BlockingCalls(threads, manager.settings.deadline_ms)
        self.blocking = manager
        """The same for threads: what it can do beyond this, and code that is not for asyncio."""

    @classmethod
    def connect(
        cls,
        settings: ClientSettings,
        *,
        hooks: TransactionHooks | None = None,
        metrics: ClientMetrics | None = None,
        threads: int = THREADS,
    ) -> AsyncTransactionManager:
        """A manager on the real services. Connections are opened when they are first needed.

        ``hooks`` are called in the threads, with the context variables of the task.
        """
        return cls(TransactionManager.connect(settings, hooks=hooks, metrics=metrics), threads=threads)

    async def close(self) -> None:
        """Give back every connection. What is under way comes to its end, if without an oracle or a store."""
        await self._calls.close(self.blocking.close)

    async def __aenter__(self) -> AsyncTransactionManager:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        await self.close()

    def __repr__(self) -> str:
        return f"<{type(self).__name__} of {self.blocking!r}>"

    async def create_table(
        self,
        table: str,
        families: Sequence[str],
        *,
        conflict_level: ConflictLevel = "cell",
        description: bytes = b"",
        if_missing: bool = False,
        split_keys: Sequence[bytes] = (),
    ) -> None:
        """Make a table. See ``TransactionManager.create_table``."""
        create = partial(self.blocking.create_table, conflict_level=conflict_level, description=description)
        await self._calls.run(partial(create, table, families, if_missing=if_missing, split_keys=split_keys))

    async def adopt_table(
        self,
        table: str,
        *,
        conflict_level: ConflictLevel = "cell",
        description: bytes = b"",
        progress: Callable[[int], None] = lambda rows: None,
    ) -> Adopted:
        """Take over a table that programs without transactions have written; ``progress`` is called in a thread.

        See ``TransactionManager.adopt_table``.
        """
        adopt = partial(self.blocking.adopt_table, conflict_level=conflict_level, description=description)
        return await self._calls.run(partial(adopt, table, progress=progress))

    async def drop_table(self, table: str) -> None:
        """Remove a table with all its data. See ``TransactionManager.drop_table``."""
        await self._calls.run(partial(self.blocking.drop_table, table))

    async def fence(self, table: str) -> AsyncSnapshot:
        """Part the past of a table from its future. See ``TransactionManager.fence``."""
        return self._snapshot(await self._calls.run(partial(self.blocking.fence, table)))

    def transaction(self, *, read_only: bool = False) -> Opening[AsyncTransaction]:
        """Begin a transaction: ``async with manager.transaction() as tx``, or ``tx = await manager.transaction()``.

        See ``TransactionManager.transaction``. Cancelled while it begins it is rolled back.
        """

        async def opened() -> AsyncTransaction:
            begun: list[Transaction] = []
            try:
                await self._calls.run(lambda: begun.append(self.blocking.transaction(read_only=read_only)))
            except asyncio.CancelledError as error:
                for transaction in begun:
                    self._calls.clean_up(partial(transaction.__exit__, type(error), error, None))
                raise
            return AsyncTransaction(begun[0], self._calls)

        return Opening(opened)

    def resume(self, handle: TransactionHandle) -> Opening[AsyncTransaction]:
        """A transaction that another process began, as by ``transaction``. See ``TransactionManager.resume``."""

        async def opened() -> AsyncTransaction:
            return AsyncTransaction(await self._calls.run(partial(self.blocking.resume, handle)), self._calls)

        return Opening(opened)

    async def snapshot(self, at: Moment | None = None) -> AsyncSnapshot:
        """Everything committed by now, or by then. See ``TransactionManager.snapshot``."""
        return self._snapshot(await self._calls.run(partial(self.blocking.snapshot, at)))

    async def resume_snapshot(self, handle: SnapshotHandle) -> AsyncSnapshot:
        """A snapshot that another process took. See ``TransactionManager.resume_snapshot``."""
        return self._snapshot(await self._calls.run(partial(self.blocking.resume_snapshot, handle)))

    async def create_snapshot(self, name: str, at: Moment | None = None) -> NamedSnapshot:
        """Give a moment a name. See ``TransactionManager.create_snapshot``."""
        return await self._calls.run(partial(self.blocking.create_snapshot, name, at))

    async def move_snapshot(self, name: str, at: Moment | None = None) -> NamedSnapshot:
        """Have a name stand for a later moment. See ``TransactionManager.move_snapshot``."""
        return await self._calls.run(partial(self.blocking.move_snapshot, name, at))

    async def snapshots(self) -> list[NamedSnapshot]:
        """The snapshots that have a name. See ``TransactionManager.snapshots``."""
        return await self._calls.run(self.blocking.snapshots)

    async def drop_snapshot(self, name: str) -> None:
        """Give a snapshot's name up. See ``TransactionManager.drop_snapshot``."""
        await self._calls.run(partial(self.blocking.drop_snapshot, name))

    async def run(self, function: Callable[[AsyncTransaction], Awaitable[Result]], *, attempts_max: int = 10) -> Result:
        """Await ``function`` in a transaction and commit; after a conflict, again in a *new* transaction.

        See ``TransactionManager.run``. Where it is cancelled it runs nothing again. Raises ``InvalidRequest`` for a
        function that gives nothing to wait for.
        """
        retrying = AsyncRetrying(**retrying_rules(attempts_max, self.blocking.meter.runs_again))
        result: Result = await retrying(self._run_once, function)
        return result

    async def outcome(self, start_timestamp: int) -> Outcome:
        """What the commit table says of a transaction. See ``TransactionManager.outcome``."""
        return await self._calls.run(partial(self.blocking.outcome, start_timestamp))

    async def abort(self, start_timestamp: int) -> Committed | Aborted:
        """Make sure that a transaction never commits, or learn that it did. See ``TransactionManager.abort``."""
        return await self._calls.run(partial(self.blocking.abort, start_timestamp))

    def _snapshot(self, snapshot: Snapshot) -> AsyncSnapshot:
        return AsyncSnapshot(snapshot, self._calls)

    async def _run_once(self, function: Callable[[AsyncTransaction], Awaitable[Result]]) -> Result:
        async with self.transaction() as transaction:
            doing = function(transaction)
            if not inspect.isawaitable(doing):
                raise InvalidRequest(
                    f"run awaits what the function gives: make it async def, or return an awaitable, not {doing!r}"
                )
            return await doing
