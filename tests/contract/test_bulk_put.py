"""Cells written as columns of bytes, by the twin and by the raw connection: what is put is what the store reads."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

import numpy as np
import pytest

from store import Cell, CellStore, InvalidCell, KeyRange, StoreUnavailable, TableMissing
from store.bulk import BlockingPutter, BulkPutter
from store.hbase import HBaseCellStore, PoolSettings
from store.hbase.putter import GatewayPutter
from store.lines import ByteLines
from tests.conftest import Services

Put = Callable[[str, ByteLines, ByteLines, ByteLines, int], None]


@pytest.fixture(scope="module")
def new_putter(reached: Services | None, store: CellStore) -> Callable[[], BulkPutter]:
    """Puts into what ``store`` reads."""
    if reached is None or not isinstance(store, HBaseCellStore):
        return lambda: BlockingPutter(store)
    return lambda: GatewayPutter(reached.thrift, PoolSettings(tls=reached.tls))


@pytest.fixture
def put(new_putter: Callable[[], BulkPutter]) -> Put:
    def put_once(table: str, rows: ByteLines, columns: ByteLines, values: ByteLines, timestamp: int) -> None:
        async def main() -> None:
            putter = new_putter()
            try:
                await putter.put(table, rows, columns, values, timestamp)
            finally:
                await putter.close()

        asyncio.run(main())

    return put_once


def lines(*texts: bytes) -> ByteLines:
    return np.array([list(text) for text in texts], np.uint8)


def numbered(start: bytes, count: int) -> ByteLines:
    return lines(*(start + b"%06d" % number for number in range(count)))


def test_what_is_put_is_what_is_read(put: Put, store: CellStore, table: str, row: bytes) -> None:
    rows = lines(row + b"/1", row + b"/1", row + b"/2")
    put(table, rows, lines(b"f:a", b"g:b", b"f:a"), lines(b"\x00\xff", b":\n", b"zz"), 5)
    assert store.get(table, row + b"/1", [b"f", b"g"]) == {b"f:a": Cell(b"\x00\xff", 5), b"g:b": Cell(b":\n", 5)}
    assert list(store.scan(table, KeyRange(row + b"/", row + b"0"), [b"f"])) == [
        (row + b"/1", {b"f:a": Cell(b"\x00\xff", 5)}),
        (row + b"/2", {b"f:a": Cell(b"zz", 5)}),
    ]


def test_every_byte_in_rows_columns_and_values(put: Put, store: CellStore, table: str, row: bytes) -> None:
    each = [bytes([number]) for number in range(256)]
    rows = lines(*(row + b"/" + byte for byte in each))
    put(table, rows, lines(*(b"f:" + byte for byte in each)), lines(*each), 5)
    found = dict(store.scan(table, KeyRange(row + b"/", row + b"0"), [b"f"]))
    assert found == {row + b"/" + byte: {b"f:" + byte: Cell(byte, 5)} for byte in each}


def test_many_columns_of_one_row(put: Put, store: CellStore, table: str, row: bytes) -> None:
    count = 3_000
    columns, values = numbered(b"f:", count), numbered(b"", count)
    put(table, np.repeat(lines(row), count, axis=0), columns, values, 5)
    assert store.get(table, row, [b"f"]) == {
        column.tobytes(): Cell(value.tobytes(), 5) for column, value in zip(columns, values, strict=True)
    }


def test_a_large_batch(put: Put, store: CellStore, table: str, row: bytes) -> None:
    count = 20_000
    rows = np.repeat(numbered(row + b"/", count // 100), 100, axis=0)
    put(table, rows, numbered(b"f:", count), numbered(b"", count), 5)
    found = list(store.scan(table, KeyRange(row + b"/", row + b"0"), [b"f"]))
    assert [len(columns) for _, columns in found] == [100] * (count // 100)
    values = [cell.value for _, columns in found for cell in columns.values()]
    assert sorted(values) == [value.tobytes() for value in numbered(b"", count)]


def test_puts_at_once(new_putter: Callable[[], BulkPutter], store: CellStore, table: str, row: bytes) -> None:
    async def main() -> None:
        putter = new_putter()
        try:
            await asyncio.gather(
                *(
                    putter.put(table, lines(row + b"/%d" % number), lines(b"f:a"), lines(b"%d" % number), 5)
                    for number in range(10)
                )
            )
        finally:
            await putter.close()

    asyncio.run(main())
    found = [columns[b"f:a"].value for _, columns in store.scan(table, KeyRange(row + b"/", row + b"0"), [b"f"])]
    assert found == [b"%d" % number for number in range(10)]


def test_an_older_put_is_accepted_and_not_seen(put: Put, store: CellStore, table: str, row: bytes) -> None:
    """That is what fences an oracle of an older epoch."""
    for value, timestamp in ((b"new", 9), (b"old", 8)):
        put(table, lines(row), lines(b"latest:a"), lines(value), timestamp)
    assert store.get(table, row, [b"latest"]) == {b"latest:a": Cell(b"new", 9)}
    assert store.versions(table, row, b"latest:a", limit=5) == [Cell(b"new", 9)]


def test_the_same_again_changes_nothing(put: Put, store: CellStore, table: str, row: bytes) -> None:
    for _ in range(2):
        put(table, lines(row), lines(b"f:a"), lines(b"1"), 5)
    assert store.versions(table, row, b"f:a", limit=5) == [Cell(b"1", 5)]


def test_a_missing_table_or_family_is_named_as_such(put: Put, table: str, row: bytes) -> None:
    with pytest.raises(TableMissing):
        put("nowhere", lines(row), lines(b"f:a"), lines(b"1"), 5)
    with pytest.raises(TableMissing):
        put(table, lines(row), lines(b"x:a"), lines(b"1"), 5)


def test_what_no_store_can_hold_is_refused(put: Put, table: str, row: bytes) -> None:
    for bad_table, bad_rows, bad_columns in (
        ("no name", lines(row), lines(b"f:a")),
        (table, np.empty((1, 0), np.uint8), lines(b"f:a")),
        (table, lines(row), lines(b"f")),
    ):
        with pytest.raises(InvalidCell):
            put(bad_table, bad_rows, bad_columns, lines(b"1"), 5)


def test_a_closed_putter_is_unavailable(new_putter: Callable[[], BulkPutter], table: str, row: bytes) -> None:
    async def main() -> None:
        putter = new_putter()
        await putter.close()
        with pytest.raises(StoreUnavailable, match="closed"):
            await putter.put(table, lines(row), lines(b"f:a"), lines(b"1"), 5)

    asyncio.run(main())
