"""The store as each simulated process sees it: the twin in memory, behind a network and a gateway that have bad days.

Rows are the store's atoms: a request for several rows takes place row by row, with other requests in between, and one
that breaks off may have done a part.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any, TypeVar

from store import (
    CompareAndSet,
    Family,
    KeyRange,
    Row,
    RowPut,
    StoreClosed,
    StoreUnavailable,
    Unknown,
)
from store.cells import Cell
from store.columns import ColumnsByRows
from store.memory import MemoryCellStore
from store.validation import check_puts, check_rows
from tests.simulation.kernel import Kernel
from tests.simulation.processes import Process
from tests.simulation.services import Fate, NoAnswer, Service

Answer = TypeVar("Answer")

WRITE_FATES = (Fate.LOST, Fate.ANSWER_LOST, Fate.LATE, Fate.TWICE)
CHANGE_FATES = (Fate.LOST, Fate.ANSWER_LOST, Fate.LATE, Fate.ASKED_TWICE)
SCANNED_ROWS_MAX = 3
"""Rows of a scan that are read in one step."""

Watcher = Callable[[str, RowPut, int], None]
"""Told of each row that is put: table, columns, timestamp."""


@dataclass(slots=True)
class StoreCluster:
    """The one store of the room. ``timeout_us``: after that the adapter gives up."""

    kernel: Kernel
    service: Service
    cells: MemoryCellStore
    timeout_us: int
    watchers: list[Watcher] = field(default_factory=list)

    def put_row(self, table: str, put: RowPut, timestamp: int) -> None:
        """Put one row, and tell who watches."""
        self.cells.put(table, [put], timestamp)
        for watch in self.watchers:
            watch(table, put, timestamp)


class SimulatedCellStore(ColumnsByRows):
    """A ``CellStore`` of one process."""

    def __init__(self, cluster: StoreCluster, process: Process) -> None:
        self._cluster = cluster
        self._cells = cluster.cells
        self._process = process
        self._closed = False

    def create_table(self, table: str, families: Sequence[Family], split_keys: Sequence[bytes] = ()) -> None:
        """See ``CellStore``."""
        self._write("create table", [lambda: self._cells.create_table(table, families, split_keys)])

    def drop_table(self, table: str) -> None:
        """See ``CellStore``."""
        self._write("drop table", [lambda: self._cells.drop_table(table)])

    def table_names(self) -> list[str]:
        """See ``CellStore``."""
        return self._read_one("table names", self._cells.table_names)

    def families(self, table: str) -> dict[str, Family]:
        """See ``CellStore``."""
        return self._read_one("families", lambda: self._cells.families(table))

    def regions(self, table: str) -> list[KeyRange]:
        """See ``CellStore``."""
        return self._read_one("regions", lambda: self._cells.regions(table))

    def get(self, table: str, row: bytes, columns: Sequence[bytes], *, before: int | None = None) -> Row:
        """See ``CellStore``."""
        return self._read_one("get", lambda: self._cells.get(table, row, columns, before=before))

    def get_many(
        self, table: str, rows: Sequence[bytes], columns: Sequence[bytes], *, before: int | None = None
    ) -> dict[bytes, Row]:
        """See ``CellStore``."""
        check_rows(rows)
        steps = [partial(self._cells.get_many, table, [row], columns, before=before) for row in rows]
        found: dict[bytes, Row] = {}
        for answer in self._read("get many", steps):
            found |= answer
        return found

    def versions(self, table: str, row: bytes, column: bytes, *, before: int | None = None, limit: int) -> list[Cell]:
        """See ``CellStore``."""
        return self._read_one("versions", lambda: self._cells.versions(table, row, column, before=before, limit=limit))

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
        """See ``CellStore``. Forwards only: nothing in the room scans backwards."""
        if reverse:
            raise NotImplementedError("the simulated store scans forwards")
        return self._scan(table, key_range, columns, before, min(batch_rows, SCANNED_ROWS_MAX))

    def put(self, table: str, puts: Sequence[RowPut], timestamp: int) -> None:
        """See ``CellStore``."""
        check_puts(puts, timestamp)
        rows = list(puts)
        self._cluster.kernel.random.shuffle(rows)
        self._write(
            f"put {table}",
            [partial(self._cluster.put_row, table, row, timestamp) for row in rows],
        )

    def delete(self, table: str, rows: Sequence[bytes], timestamp: int) -> None:
        """See ``CellStore``."""
        check_rows(rows)
        self._write("delete", [partial(self._cells.delete, table, [row], timestamp) for row in rows])

    def delete_columns(self, table: str, columns: Mapping[bytes, Sequence[bytes]], timestamp: int) -> None:
        """See ``CellStore``."""
        check_rows(columns)
        steps = [
            partial(self._cells.delete_columns, table, {row: chosen}, timestamp) for row, chosen in columns.items()
        ]
        self._write("delete columns", steps)

    def compare_and_set(
        self, table: str, row: bytes, *, check: bytes, expected: bytes | None, put: bytes, value: bytes
    ) -> CompareAndSet:
        """See ``CellStore``."""

        def ask() -> CompareAndSet:
            return self._cells.compare_and_set(table, row, check=check, expected=expected, put=put, value=value)

        self._require_open()
        try:
            answer: CompareAndSet = self._call(f"compare and set {table}", [ask], CHANGE_FATES)[0]
        except NoAnswer as error:
            return Unknown(str(error))
        return answer

    def close(self) -> None:
        """See ``CellStore``."""
        self._closed = True

    def _scan(
        self, table: str, key_range: KeyRange, columns: Sequence[bytes], before: int | None, batch_rows: int
    ) -> Iterator[tuple[bytes, Row]]:
        rest = key_range
        while True:
            batch = self._read_one("scan", partial(self._batch, table, rest, columns, before, batch_rows))
            yield from batch
            if len(batch) < batch_rows:
                return
            rest = KeyRange(batch[-1][0] + b"\x00", key_range.stop)

    def _batch(
        self, table: str, key_range: KeyRange, columns: Sequence[bytes], before: int | None, batch_rows: int
    ) -> list[tuple[bytes, Row]]:
        rows = self._cells.scan(table, key_range, columns, before=before)
        return [row for _, row in zip(range(batch_rows), rows, strict=False)]

    def _read_one(self, label: str, step: Callable[[], Answer]) -> Answer:
        return self._read(label, [step])[0]

    def _read(self, label: str, steps: Sequence[Callable[[], Answer]]) -> list[Answer]:
        self._require_open()
        try:
            return self._call(label, steps, (Fate.LOST,))
        except NoAnswer as error:
            raise StoreUnavailable(str(error)) from error

    def _write(self, label: str, steps: Sequence[Callable[[], Any]]) -> None:
        self._require_open()
        try:
            self._call(label, steps, WRITE_FATES)
        except NoAnswer as error:
            raise StoreUnavailable(str(error)) from error

    def _call(self, label: str, steps: Sequence[Callable[[], Any]], fates: Sequence[Fate]) -> list[Any]:
        timeout_us = self._cluster.timeout_us
        return self._cluster.service.call(self._process, f"store: {label}", steps, timeout_us=timeout_us, fates=fates)

    def _require_open(self) -> None:
        if self._closed:
            raise StoreClosed
