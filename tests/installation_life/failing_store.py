"""A store of which one call fails: it never arrives, or it takes place and nobody is told, at once or much later."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Mapping, Sequence

from client.manager import HELPER_THREAD
from store import Cell, CompareAndSet, KeyRange, Row, RowPut, StoreUnavailable, Unknown
from store.faults import Fault
from tests.unit.client_vacuum.watching import WatchedStore


class FailingStore(WatchedStore):
    """Fails for whoever plans it, and the threads that help him; for nobody else."""

    def __init__(self) -> None:
        super().__init__()
        self._calls_left = 0
        self._fault = Fault.LOST
        self._caller = threading.current_thread()
        self._late: list[tuple[str, Callable[[], object]]] = []
        self.has_failed = False

    def plan(self, calls: int, fault: Fault) -> None:
        """Of the calls of this thread from now on, the last of so many fails; 0: none does."""
        self._calls_left, self._fault, self._caller = calls, fault, threading.current_thread()
        self.has_failed = False

    def deliver_late(self) -> None:
        """Have all take place that did not when it should."""
        late, self._late = self._late, []
        for _, write in late:
            write()

    def drop_table(self, table: str) -> None:
        """See ``CellStore``. What was to come late to a table that is gone never comes."""
        self._late = [(each, write) for each, write in self._late if each != table]
        super().drop_table(table)

    def get_many(
        self, table: str, rows: Sequence[bytes], columns: Sequence[bytes], *, before: int | None = None
    ) -> dict[bytes, Row]:
        """See ``CellStore``."""
        self._look()
        return super().get_many(table, rows, columns, before=before)

    def versions(self, table: str, row: bytes, column: bytes, *, before: int | None = None, limit: int) -> list[Cell]:
        """See ``CellStore``."""
        self._look()
        return super().versions(table, row, column, before=before, limit=limit)

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
        self._look()
        return super().scan(table, key_range, columns, before=before, batch_rows=batch_rows, reverse=reverse)

    def put(self, table: str, puts: Sequence[RowPut], timestamp: int) -> None:
        """See ``CellStore``."""
        self._do(table, lambda: WatchedStore.put(self, table, puts, timestamp))

    def delete(self, table: str, rows: Sequence[bytes], timestamp: int) -> None:
        """See ``CellStore``."""
        self._do(table, lambda: WatchedStore.delete(self, table, rows, timestamp))

    def delete_columns(self, table: str, columns: Mapping[bytes, Sequence[bytes]], timestamp: int) -> None:
        """See ``CellStore``."""
        self._do(table, lambda: WatchedStore.delete_columns(self, table, columns, timestamp))

    def compare_and_set(
        self, table: str, row: bytes, *, check: bytes, expected: bytes | None, put: bytes, value: bytes
    ) -> CompareAndSet:
        """See ``CellStore``."""
        inner = super().compare_and_set
        answers: list[CompareAndSet] = []

        def ask() -> None:
            answers.append(inner(table, row, check=check, expected=expected, put=put, value=value))

        try:
            self._do(table, ask)
        except StoreUnavailable as error:
            return Unknown(str(error))
        return answers[0]

    def _look(self) -> None:
        if self._fails():
            raise StoreUnavailable("planned: no answer")

    def _do(self, table: str, write: Callable[[], None]) -> None:
        if not self._fails():
            write()
            return
        if self._fault is Fault.DONE:
            write()
        elif self._fault is Fault.LATE:
            self._late.append((table, write))
        raise StoreUnavailable(f"planned: {self._fault.value}")

    def _fails(self) -> bool:
        current = threading.current_thread()
        if self._calls_left and (current is self._caller or current.name.startswith(HELPER_THREAD)):
            self._calls_left -= 1
            self.has_failed = not self._calls_left
            return self.has_failed
        return False
