"""A store that goes on over another one, and in which something happens at a call that is chosen.

Another process does its work amid that call, of which half has taken place by then; or the call fails: it never
arrives, or it takes place and nobody is told, at once or much later.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Mapping, Sequence

from client.asyncio_front.blocking_calls import THREAD_NAME
from client.manager import HELPER_THREAD
from store import Cell, CellStore, CompareAndSet, Family, KeyRange, Row, RowPut, StoreUnavailable, Unknown
from store.columns import CellColumns, ScannedColumns
from store.faults import Fault


def _nothing() -> None:
    """Happens when nothing does."""


class DisturbedStore:
    """A ``CellStore``. What is planned happens to who plans it, a failure to the threads that help him, too."""

    def __init__(self, inner: CellStore) -> None:
        self._inner = inner
        self._caller = threading.current_thread()
        self._calls_left = self._calls_left_to_fail = 0
        self._then: Callable[[], None] = _nothing
        self._fault = Fault.LOST
        self._late: list[tuple[str, Callable[[], object]]] = []
        self.has_failed = False

    def happens_at(self, calls: int, then: Callable[[], None]) -> None:
        """``then`` is called amid the last of so many calls; 0: never."""
        self._calls_left, self._then, self._caller = calls, then, threading.current_thread()

    def fails_at(self, calls: int, fault: Fault) -> None:
        """The last of so many calls fails; 0: none does."""
        self._calls_left_to_fail, self._fault, self._caller = calls, fault, threading.current_thread()
        self.has_failed = False

    def deliver_late(self) -> None:
        """Have all take place that did not when it should."""
        late, self._late = self._late, []
        for _, write in late:
            write()

    def create_table(self, table: str, families: Sequence[Family], split_keys: Sequence[bytes] = ()) -> None:
        """See ``CellStore``."""
        self._inner.create_table(table, families, split_keys)

    def drop_table(self, table: str) -> None:
        """See ``CellStore``. What was to come late to a table that is gone never comes."""
        self._late = [(each, write) for each, write in self._late if each != table]
        self._inner.drop_table(table)

    def table_names(self) -> list[str]:
        """See ``CellStore``."""
        return self._inner.table_names()

    def families(self, table: str) -> dict[str, Family]:
        """See ``CellStore``."""
        return self._inner.families(table)

    def regions(self, table: str) -> list[KeyRange]:
        """See ``CellStore``."""
        return self._inner.regions(table)

    def get(self, table: str, row: bytes, columns: Sequence[bytes], *, before: int | None = None) -> Row:
        """See ``CellStore``."""
        self._reads()
        return self._inner.get(table, row, columns, before=before)

    def get_many(
        self, table: str, rows: Sequence[bytes], columns: Sequence[bytes], *, before: int | None = None
    ) -> dict[bytes, Row]:
        """See ``CellStore``."""
        self._reads()
        return self._inner.get_many(table, rows, columns, before=before)

    def get_columns(
        self,
        table: str,
        rows: Sequence[bytes],
        columns: Sequence[bytes],
        known: Sequence[bytes],
        *,
        before: int | None = None,
    ) -> Iterator[ScannedColumns]:
        """See ``CellStore``."""
        self._reads()
        return self._inner.get_columns(table, rows, columns, known, before=before)

    def versions(self, table: str, row: bytes, column: bytes, *, before: int | None = None, limit: int) -> list[Cell]:
        """See ``CellStore``."""
        self._reads()
        return self._inner.versions(table, row, column, before=before, limit=limit)

    def scan(
        self,
        table: str,
        key_range: KeyRange,
        columns: Sequence[bytes],
        *,
        before: int | None = None,
        batch_rows: int = 500,
        reverse: bool = False,
    ) -> Iterator[tuple[bytes, Row]]:
        """See ``CellStore``."""
        self._reads()
        return self._inner.scan(table, key_range, columns, before=before, batch_rows=batch_rows, reverse=reverse)

    def scan_columns(
        self,
        table: str,
        key_range: KeyRange,
        columns: Sequence[bytes],
        known: Sequence[bytes],
        *,
        before: int | None = None,
        batch_rows: int = 500,
        without_qualifier: bytes | None = None,
    ) -> Iterator[ScannedColumns]:
        """See ``CellStore``."""
        self._reads()
        return self._inner.scan_columns(
            table, key_range, columns, known, before=before, batch_rows=batch_rows, without_qualifier=without_qualifier
        )

    def put_columns(
        self, table: str, cells: CellColumns, timestamp: int, *, before_each: Callable[[], None] = _nothing
    ) -> None:
        """See ``CellStore``."""
        self._writes(
            table,
            _nothing,
            lambda: self._inner.put_columns(table, cells, timestamp, before_each=before_each),
            late=lambda: self._inner.put_columns(table, cells, timestamp),
        )

    def put(self, table: str, puts: Sequence[RowPut], timestamp: int) -> None:
        """See ``CellStore``."""
        half = puts[: len(puts) // 2]
        self._writes(
            table,
            lambda: self._inner.put(table, half, timestamp),
            lambda: self._inner.put(table, puts, timestamp),
        )

    def delete(self, table: str, rows: Sequence[bytes], timestamp: int) -> None:
        """See ``CellStore``."""
        half = rows[: len(rows) // 2]
        self._writes(
            table,
            lambda: self._inner.delete(table, half, timestamp),
            lambda: self._inner.delete(table, rows, timestamp),
        )

    def delete_columns(self, table: str, columns: Mapping[bytes, Sequence[bytes]], timestamp: int) -> None:
        """See ``CellStore``."""
        half = dict(list(columns.items())[: len(columns) // 2])
        self._writes(
            table,
            lambda: self._inner.delete_columns(table, half, timestamp),
            lambda: self._inner.delete_columns(table, columns, timestamp),
        )

    def compare_and_set(
        self, table: str, row: bytes, *, check: bytes, expected: bytes | None, put: bytes, value: bytes
    ) -> CompareAndSet:
        """See ``CellStore``."""
        answers: list[CompareAndSet] = []

        def ask() -> None:
            answers.append(
                self._inner.compare_and_set(table, row, check=check, expected=expected, put=put, value=value)
            )

        try:
            self._writes(table, _nothing, ask)
        except StoreUnavailable as error:
            return Unknown(str(error))
        return answers[0]

    def close(self) -> None:
        """See ``CellStore``."""
        self._inner.close()

    def _reads(self) -> None:
        if self._fails():
            raise StoreUnavailable("planned: no answer")
        if self._happens():
            self._then()

    def _writes(
        self,
        table: str,
        half: Callable[[], None],
        whole: Callable[[], None],
        *,
        late: Callable[[], None] | None = None,
    ) -> None:
        if self._fails():
            if self._fault is Fault.DONE:
                whole()
            elif self._fault is Fault.LATE:
                self._late.append((table, late or whole))
            raise StoreUnavailable(f"planned: {self._fault.value}")
        if self._happens():
            half()
            self._then()
        whole()

    def _happens(self) -> bool:
        if not self._calls_left or not self._is_callers(threading.current_thread()):
            return False
        self._calls_left -= 1
        return not self._calls_left

    def _is_callers(self, thread: threading.Thread) -> bool:
        """Whether it does what he does: by himself, or for a request of his."""
        return thread is self._caller or thread.name.startswith(THREAD_NAME)

    def _fails(self) -> bool:
        current = threading.current_thread()
        if not self._calls_left_to_fail or not (self._is_callers(current) or current.name.startswith(HELPER_THREAD)):
            return False
        self._calls_left_to_fail -= 1
        self.has_failed = not self._calls_left_to_fail
        return self.has_failed
