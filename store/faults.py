"""A twin that fails on demand, so that rules can be tested against every way a call to a real store can end.

A call that times out may not have arrived, may have taken place, or may take place *later*: whoever handles
``StoreUnavailable`` and ``Unknown`` has to be right in all three.
"""

from __future__ import annotations

import enum
from collections import defaultdict, deque
from collections.abc import Callable, Iterator, Sequence

from store.cells import Cell, KeyRange, Row, RowPut
from store.errors import StoreUnavailable
from store.memory import MemoryCellStore
from store.protocol import CompareAndSet, Unknown


class Fault(enum.Enum):
    """What becomes of a call whose answer is lost."""

    LOST = "it never arrives"
    DONE = "it takes place, only the answer is lost"
    LATE = "it takes place when `deliver_late` is called"


class FaultyCellStore(MemoryCellStore):
    """A ``MemoryCellStore`` whose next calls can be made to fail, method by method.

    A failed read or write raises ``StoreUnavailable``, a failed compare-and-set answers ``Unknown``.
    """

    def __init__(self, *, wall_ms: Callable[[], int] | None = None) -> None:
        if wall_ms is None:
            super().__init__()
        else:
            super().__init__(wall_ms=wall_ms)
        self._faults: defaultdict[str, deque[Fault | None]] = defaultdict(deque)
        self._late: list[Callable[[], object]] = []

    def plan(self, method: str, *faults: Fault | None) -> None:
        """The fates of the next calls of ``method`` (``"put"``, ``"get"``…), in order; ``None``: it just works."""
        if method not in _PLANNABLE:
            raise ValueError(f"faults can be planned for {', '.join(sorted(_PLANNABLE))}, not for {method!r}")
        with self._lock:
            self._faults[method].extend(faults)

    def deliver_late(self) -> None:
        """Let the writes that were held back (``Fault.LATE``) take place now, in the order they were sent."""
        with self._lock:
            late, self._late = self._late, []
            for write in late:
                write()

    def get_many(
        self, table: str, rows: Sequence[bytes], columns: Sequence[bytes], *, before: int | None = None
    ) -> dict[bytes, Row]:
        """See ``CellStore``. Its plan holds for ``get`` as well, which is a ``get_many`` of one row."""
        self._fail_read("get_many")
        return super().get_many(table, rows, columns, before=before)

    def versions(self, table: str, row: bytes, column: bytes, *, before: int | None = None, limit: int) -> list[Cell]:
        """See ``CellStore``."""
        self._fail_read("versions")
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
        self._fail_read("scan")
        return super().scan(table, key_range, columns, before=before, batch_rows=batch_rows, reverse=reverse)

    def put(self, table: str, puts: Sequence[RowPut], timestamp: int) -> None:
        """See ``CellStore``."""
        self._write("put", lambda: MemoryCellStore.put(self, table, puts, timestamp))

    def delete(self, table: str, rows: Sequence[bytes], timestamp: int) -> None:
        """See ``CellStore``."""
        self._write("delete", lambda: MemoryCellStore.delete(self, table, rows, timestamp))

    def compare_and_set(
        self, table: str, row: bytes, *, check: bytes, expected: bytes | None, put: bytes, value: bytes
    ) -> CompareAndSet:
        """See ``CellStore``."""
        inner = super().compare_and_set

        def ask() -> CompareAndSet:
            return inner(table, row, check=check, expected=expected, put=put, value=value)

        fault = self._next("compare_and_set")
        if fault is None:
            return ask()
        self._take_effect(fault, ask)
        return Unknown(f"planned: {fault.value}")

    def _write(self, method: str, write: Callable[[], None]) -> None:
        fault = self._next(method)
        if fault is None:
            return write()
        self._take_effect(fault, write)
        raise StoreUnavailable(f"planned: {fault.value}")

    def _take_effect(self, fault: Fault, write: Callable[[], object]) -> None:
        if fault is Fault.DONE:
            write()
        elif fault is Fault.LATE:
            with self._lock:
                self._late.append(write)

    def _fail_read(self, method: str) -> None:
        fault = self._next(method)
        if fault is not None:
            raise StoreUnavailable(f"planned: {fault.value}")

    def _next(self, method: str) -> Fault | None:
        with self._lock:
            planned = self._faults[method]
            return planned.popleft() if planned else None


_PLANNABLE = {"get_many", "versions", "scan", "put", "delete", "compare_and_set"}
