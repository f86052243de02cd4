"""A store in which something happens at a call that a test chooses: another process's work, or the caller's end."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence

from store import Cell, CompareAndSet, KeyRange, MemoryCellStore, Row, RowPut


class Killed(BaseException):
    """The process is gone; nothing in it notices."""


class WatchedStore(MemoryCellStore):
    """Counts its calls; at one of them something happens, and it may be that only half of that call took place."""

    def __init__(self) -> None:
        super().__init__(wall_ms=lambda: 1)  # far below every timestamp, as the real one is
        self.calls = 0
        self.at: int | None = None
        self.then: Callable[[], object] = lambda: None

    def _tick(self) -> bool:
        self.calls += 1
        return self.calls == self.at

    def get_many(
        self, table: str, rows: Sequence[bytes], columns: Sequence[bytes], *, before: int | None = None
    ) -> dict[bytes, Row]:
        if self._tick():
            self.then()
        return super().get_many(table, rows, columns, before=before)

    def versions(self, table: str, row: bytes, column: bytes, *, before: int | None = None, limit: int) -> list[Cell]:
        if self._tick():
            self.then()
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
        if self._tick():
            self.then()
        return super().scan(table, key_range, columns, before=before, batch_rows=batch_rows, reverse=reverse)

    def put(self, table: str, puts: Sequence[RowPut], timestamp: int) -> None:
        happens = self._tick()
        if happens:
            super().put(table, puts[: len(puts) // 2], timestamp)
            self.then()
        super().put(table, puts, timestamp)

    def delete(self, table: str, rows: Sequence[bytes], timestamp: int) -> None:
        if self._tick():
            super().delete(table, rows[: len(rows) // 2], timestamp)
            self.then()
        super().delete(table, rows, timestamp)

    def delete_columns(self, table: str, columns: Mapping[bytes, Sequence[bytes]], timestamp: int) -> None:
        if self._tick():
            super().delete_columns(table, dict(list(columns.items())[: len(columns) // 2]), timestamp)
            self.then()
        super().delete_columns(table, columns, timestamp)

    def compare_and_set(
        self, table: str, row: bytes, *, check: bytes, expected: bytes | None, put: bytes, value: bytes
    ) -> CompareAndSet:
        if self._tick():
            self.then()
        return super().compare_and_set(table, row, check=check, expected=expected, put=put, value=value)
