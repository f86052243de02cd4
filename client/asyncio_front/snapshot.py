"""A snapshot, for the tasks of an event loop."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Collection, Sequence
from functools import partial

from client.asyncio_front.blocking_calls import BlockingCalls
from client.asyncio_front.streaming import streamed
from client.handles import SnapshotHandle
from client.snapshots.changed_rows import ChangedColumns, ChangedRow
from client.snapshots.pages import BYTES_MAX, LOOKED_AT_MAX, ROWS_MAX, ChangesPage, RowsPage
from client.snapshots.snapshot import Snapshot
from client.snapshots.stored_cells import SCAN_BATCH_ROWS
from store.columns import CellColumns


class AsyncSnapshot:
    """``client.Snapshot``, to be waited for; any number of tasks may share it."""

    def __init__(self, snapshot: Snapshot, calls: BlockingCalls) -> None:
        self._snapshot = snapshot
        self._calls = calls

    def __repr__(self) -> str:
        return f"<{type(self).__name__} at {self.timestamp}>"

    @property
    def timestamp(self) -> int:
        """What is seen: every commit at or below it."""
        return self._snapshot.timestamp

    @property
    def epoch(self) -> int:
        """The first timestamp of the epoch in which the snapshot was taken."""
        return self._snapshot.epoch

    def handle(self) -> SnapshotHandle:
        """The snapshot as a value, for ``manager.resume_snapshot`` in another process."""
        return self._snapshot.handle()

    async def get(self, table: str, row: bytes, columns: Sequence[bytes] | None = None) -> dict[bytes, bytes]:
        """One row: column → value; empty where the snapshot sees none. See ``Snapshot.get``."""
        return await self._calls.run(partial(self._snapshot.get, table, row, columns))

    async def get_many(
        self, table: str, rows: Collection[bytes], columns: Sequence[bytes] | None = None
    ) -> dict[bytes, dict[bytes, bytes]]:
        """Rows by their keys: key → what ``get`` gives, of those that there are. See ``Snapshot.get_many``."""
        return await self._calls.run(partial(self._snapshot.get_many, table, rows, columns))

    def scan(
        self,
        table: str,
        *,
        start: bytes = b"",
        stop: bytes = b"",
        prefix: bytes = b"",
        columns: Sequence[bytes] | None = None,
        reverse: bool = False,
    ) -> AsyncGenerator[tuple[bytes, dict[bytes, bytes]], None]:
        """Rows in key order, for ``async for``. See ``Snapshot.scan``; what it raises comes with the first row."""
        begin = partial(self._snapshot.scan, table, start=start, stop=stop, prefix=prefix)
        return streamed(self._calls, partial(begin, columns=columns, reverse=reverse), SCAN_BATCH_ROWS)

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
    ) -> RowsPage:
        """The first rows of ``scan``, for as much work as is asked for. See ``Snapshot.scan_page``."""
        page = partial(self._snapshot.scan_page, table, start=start, stop=stop, columns=columns, reverse=reverse)
        return await self._calls.run(partial(page, rows_max=rows_max, bytes_max=bytes_max, looked_at_max=looked_at_max))

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
    ) -> AsyncGenerator[CellColumns, None]:
        """Batches of many rows, for ``async for``. See ``Snapshot.scan_columns``."""
        begin = partial(self._snapshot.scan_columns, table, known, start=start, stop=stop, prefix=prefix)
        return streamed(self._calls, partial(begin, columns=columns, batch_rows=batch_rows), 1)

    def changes(
        self,
        table: str,
        since: int,
        *,
        start: bytes = b"",
        stop: bytes = b"",
        prefix: bytes = b"",
        columns: Sequence[bytes] | None = None,
    ) -> AsyncGenerator[ChangedRow, None]:
        """The rows that are different since an earlier snapshot, for ``async for``. See ``Snapshot.changes``."""
        begin = partial(self._snapshot.changes, table, since, start=start, stop=stop, prefix=prefix, columns=columns)
        return streamed(self._calls, begin, SCAN_BATCH_ROWS)

    def changes_columns(
        self,
        table: str,
        since: int,
        known: Sequence[bytes] | None = None,
        *,
        start: bytes = b"",
        stop: bytes = b"",
        prefix: bytes = b"",
        columns: Sequence[bytes] | None = None,
        batch_rows: int = SCAN_BATCH_ROWS,
    ) -> AsyncGenerator[ChangedColumns, None]:
        """Batches of many such rows, for ``async for``. See ``Snapshot.changes_columns``."""
        begin = partial(self._snapshot.changes_columns, table, since, known, start=start, stop=stop, prefix=prefix)
        return streamed(self._calls, partial(begin, columns=columns, batch_rows=batch_rows), 1)

    async def changes_page(
        self,
        table: str,
        since: int,
        *,
        start: bytes = b"",
        stop: bytes = b"",
        columns: Sequence[bytes] | None = None,
        rows_max: int = ROWS_MAX,
        bytes_max: int = BYTES_MAX,
        looked_at_max: int = LOOKED_AT_MAX,
    ) -> ChangesPage:
        """The first of such rows, for as much work as is asked for. See ``Snapshot.changes_page``."""
        page = partial(self._snapshot.changes_page, table, since, start=start, stop=stop, columns=columns)
        return await self._calls.run(partial(page, rows_max=rows_max, bytes_max=bytes_max, looked_at_max=looked_at_max))
