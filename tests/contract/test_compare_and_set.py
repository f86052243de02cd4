"""Compare-and-set, on the twin and on real HBase: fences and records of the rooms above rest on it."""

from __future__ import annotations

import threading
from concurrent.futures import ThreadPoolExecutor

from store import Applied, Cell, CellStore, Rejected, RowPut


def test_absent_is_none(store: CellStore, table: str, row: bytes) -> None:
    def first_wins(value: bytes) -> object:
        return store.compare_and_set(table, row, check=b"f:a", expected=None, put=b"f:a", value=value)

    assert (first_wins(b"one"), first_wins(b"two")) == (Applied(), Rejected())
    assert store.get(table, row, [b"f:a"])[b"f:a"].value == b"one"


def test_expected_value(store: CellStore, table: str, row: bytes) -> None:
    store.put(table, [RowPut(row, {b"f:a": b"stored"})], 5)
    for expected, end in ((b"other", Rejected()), (b"stored", Applied())):
        assert store.compare_and_set(table, row, check=b"f:a", expected=expected, put=b"f:a", value=b"new") == end
    assert store.get(table, row, [b"f:a"])[b"f:a"].value == b"new"


def test_expected_value_of_an_absent_cell(store: CellStore, table: str, row: bytes) -> None:
    assert store.compare_and_set(table, row, check=b"f:a", expected=b"x", put=b"f:a", value=b"y") == Rejected()
    assert store.get(table, row, [b"f"]) == {}


def test_one_column_checked_another_put(store: CellStore, table: str, row: bytes) -> None:
    store.put(table, [RowPut(row, {b"f:a": b"stored"})], 5)
    end = store.compare_and_set(table, row, check=b"f:a", expected=b"stored", put=b"g:b", value=b"new")
    assert end == Applied()
    assert store.get(table, row, [b"g:b"])[b"g:b"].value == b"new"
    assert store.versions(table, row, b"f:a", limit=9) == [Cell(b"stored", 5)]


def test_newest_by_timestamp_is_what_counts(store: CellStore, table: str, row: bytes) -> None:
    store.put(table, [RowPut(row, {b"f:a": b"newest"})], 20)
    store.put(table, [RowPut(row, {b"f:a": b"written last"})], 10)
    assert store.compare_and_set(table, row, check=b"f:a", expected=b"newest", put=b"f:b", value=b"1") == Applied()


def test_timestamp_is_the_stores_or_the_checked_cells(store: CellStore, table: str, row: bytes) -> None:
    far_ahead = 4 * 10**17
    store.put(table, [RowPut(row, {b"f:a": b"1"})], far_ahead)
    store.compare_and_set(table, row, check=b"f:a", expected=b"1", put=b"f:a", value=b"2")
    store.compare_and_set(table, row, check=b"f:b", expected=None, put=b"f:b", value=b"3")
    assert store.versions(table, row, b"f:a", limit=9) == [Cell(b"2", far_ahead)]
    assert 10**12 < store.get(table, row, [b"f:b"])[b"f:b"].timestamp < 10**14


def test_a_newer_cell_of_the_column_put_hides_it(store: CellStore, table: str, row: bytes) -> None:
    store.put(table, [RowPut(row, {b"f:put": b"newer"})], 4 * 10**17)
    end = store.compare_and_set(table, row, check=b"f:check", expected=None, put=b"f:put", value=b"hidden")
    assert end == Applied()
    assert store.get(table, row, [b"f:put"])[b"f:put"].value == b"newer"


def test_empty_cell_reads_as_absent(store: CellStore, table: str, row: bytes) -> None:
    store.put(table, [RowPut(row, {b"f:a": b""})], 5)
    assert store.compare_and_set(table, row, check=b"f:a", expected=None, put=b"f:b", value=b"1") == Applied()


def test_deleted_cell_is_absent(store: CellStore, table: str, row: bytes) -> None:
    store.put(table, [RowPut(row, {b"f:a": b"1"})], 5)
    store.delete(table, [row], 5)
    assert store.compare_and_set(table, row, check=b"f:a", expected=None, put=b"f:a", value=b"2") == Applied()


def test_of_many_at_once_one_wins(store: CellStore, table: str, row: bytes) -> None:
    together = threading.Barrier(6)

    def compete(name: bytes) -> bool:
        together.wait(timeout=30)
        end = store.compare_and_set(table, row, check=b"f:a", expected=None, put=b"f:a", value=name)
        return end == Applied()

    names = [b"writer %d" % number for number in range(6)]
    with ThreadPoolExecutor(6) as pool:
        won = dict(zip(names, pool.map(compete, names), strict=True))
    winner = store.get(table, row, [b"f:a"])[b"f:a"].value
    assert [name for name, applied in won.items() if applied] == [winner]
