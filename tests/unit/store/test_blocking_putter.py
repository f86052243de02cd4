"""The twin of the raw way: any store behind a thread, and the checks that both ways make before anything is written."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

from store import Cell, Family, InvalidCell, MemoryCellStore, RowPut, StoreUnavailable, TableMissing
from store.bulk import LINE_OVERHEAD_BYTES, PUT_BYTES_MAX, BlockingPutter, check_lines
from store.cells import CELL_TIMESTAMP_MAX, ROW_KEY_BYTES_MAX
from store.faults import Fault, FaultyCellStore
from store.lines import ByteLines


def lines(*texts: bytes) -> ByteLines:
    return np.array([list(text) for text in texts], np.uint8)


ROWS, COLUMNS, VALUES = lines(b"r1", b"r2", b"r1"), lines(b"f:a", b"f:a", b"f:b"), lines(b"1", b"2", b"3")


def stored(store: MemoryCellStore) -> dict[bytes, dict[bytes, Cell]]:
    return {row: dict(store.get("t", row, [b"f"])) for row in (b"r1", b"r2")}


def made() -> FaultyCellStore:
    store = FaultyCellStore()
    store.create_table("t", [Family("f")])
    return store


def put(putter: BlockingPutter, table: str = "t") -> None:
    asyncio.run(putter.put(table, ROWS, COLUMNS, VALUES, 5))


def test_every_line_is_a_cell_whatever_the_order_of_the_rows() -> None:
    store = made()
    put(BlockingPutter(store))
    assert stored(store) == {b"r1": {b"f:a": Cell(b"1", 5), b"f:b": Cell(b"3", 5)}, b"r2": {b"f:a": Cell(b"2", 5)}}


def test_a_row_is_named_once_in_what_the_store_is_asked() -> None:
    asked: list[bytes] = []

    class Store(MemoryCellStore):
        def put(self, table: str, puts: Sequence[RowPut], timestamp: int) -> None:
            asked.extend(row for row, _ in puts)

    put(BlockingPutter(Store()))
    assert sorted(asked) == [b"r1", b"r2"]


def test_the_stores_errors_come_as_they_are() -> None:
    store = made()
    store.plan("put", Fault.DONE)
    with pytest.raises(StoreUnavailable):
        put(BlockingPutter(store))
    assert stored(store)[b"r2"] == {b"f:a": Cell(b"2", 5)}
    with pytest.raises(TableMissing):
        put(BlockingPutter(store), "nowhere")


def test_the_executor_that_is_given_does_the_work_and_stays_open() -> None:
    workers: list[str] = []

    class Store(MemoryCellStore):
        def put(self, table: str, puts: Sequence[RowPut], timestamp: int) -> None:
            workers.append(threading.current_thread().name)

    with ThreadPoolExecutor(1, thread_name_prefix="given") as executor:
        putter = BlockingPutter(Store(), executor)
        put(putter)
        asyncio.run(putter.close())
        executor.submit(int).result()
    assert workers == ["given_0"]


def test_after_close_nothing_is_put_and_the_store_is_open() -> None:
    store = made()
    putter = BlockingPutter(store)
    asyncio.run(putter.close())
    with pytest.raises(StoreUnavailable, match="closed"):
        put(putter)
    assert store.table_names() == ["t"]


def test_no_lines_are_no_put() -> None:
    nothing = np.empty((0, 3), np.uint8)
    asyncio.run(BlockingPutter(made()).put("nowhere", nothing, nothing, nothing, 5))


EMPTY = np.empty((3, 0), np.uint8)


@pytest.mark.parametrize(
    ("rows", "columns", "values", "match"),
    [
        (ROWS, COLUMNS[:2], VALUES, "columns are one line of bytes for each cell"),
        (ROWS, COLUMNS, VALUES[:2], "values are one line"),
        (ROWS.ravel(), COLUMNS, VALUES, "rows are one line"),
        (ROWS.astype(np.int8), COLUMNS, VALUES, "rows are one line of bytes .* not of int8"),
        (EMPTY, COLUMNS, VALUES, "a row key is 1 to"),
        (np.zeros((3, ROW_KEY_BYTES_MAX + 1), np.uint8), COLUMNS, VALUES, "a row key is 1 to"),
        (ROWS, EMPTY, VALUES, "family:qualifier"),
        (ROWS, lines(b"f:a", b"f:b", b"fab"), VALUES, "family:qualifier, not b'fab'"),
        (ROWS, lines(b"f:a", b":fa", b"f:b"), VALUES, "family:qualifier, not b':fa'"),
        (ROWS, lines(b"f:a", b":f:", b"f:b"), VALUES, "family:qualifier, not b':f:'"),
        (ROWS, np.full((3, 200), ord("f"), np.uint8) + 0, VALUES, "family:qualifier"),
        (ROWS, np.full((3, 32_001), ord(":"), np.uint8), VALUES, "family:qualifier|at most"),
    ],
)
def test_what_no_store_can_hold_is_refused(rows: ByteLines, columns: ByteLines, values: ByteLines, match: str) -> None:
    with pytest.raises(InvalidCell, match=match):
        check_lines("t", rows, columns, values, 5)


def test_a_family_name_that_is_too_long_and_a_column_that_is_too_long() -> None:
    long_family = lines(b"f" * 128 + b":a")
    with pytest.raises(InvalidCell, match="family:qualifier"):
        check_lines("t", ROWS[:1], long_family, VALUES[:1], 5)
    check_lines("t", ROWS[:1], long_family[:, 1:], VALUES[:1], 5)
    long_column = lines(b"f:" + b"a" * 31_999)
    with pytest.raises(InvalidCell, match="at most 32,000 bytes"):
        check_lines("t", ROWS[:1], long_column, VALUES[:1], 5)
    check_lines("t", ROWS[:1], long_column[:, :-1], VALUES[:1], 5)


@pytest.mark.parametrize("timestamp", [-1, CELL_TIMESTAMP_MAX + 1])
def test_a_timestamp_that_no_cell_can_have_is_refused(timestamp: int) -> None:
    with pytest.raises(InvalidCell, match="timestamp"):
        check_lines("t", ROWS, COLUMNS, VALUES, timestamp)


def test_a_table_name_that_hbase_refuses_is_refused() -> None:
    with pytest.raises(InvalidCell, match="table name"):
        check_lines("no name", ROWS, COLUMNS, VALUES, 5)


def test_a_put_has_a_limit() -> None:
    count = PUT_BYTES_MAX // (2 + 3 + 1 + LINE_OVERHEAD_BYTES)
    many = (np.repeat(each[:1], count + 1, axis=0) for each in (ROWS, COLUMNS, VALUES))
    rows, columns, values = many
    check_lines("t", rows[:count], columns[:count], values[:count], 5)
    with pytest.raises(InvalidCell, match="put fewer lines at once"):
        check_lines("t", rows, columns, values, 5)
