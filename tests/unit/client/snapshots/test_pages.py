"""Pages of rows: whoever goes on page by page gets what a scan gives, for a bounded amount of work a page."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator
from functools import partial
from itertools import accumulate, pairwise, product
from typing import Any, get_args

import pytest
from hypothesis import given
from hypothesis import strategies as st

from client import InvalidRequest, OwnWrites, RowsPage, Transaction, TransactionManager
from client.snapshots import reading, stored_cells
from client.snapshots.pages import LookedAt, PageLimits, VisibleRow, page_of
from store import KeyRange
from tests.unit.client.snapshots.page_by_page import page_by_page

A = b"f:a"
PATIENT = PageLimits(rows=1_000, bytes=2**20, looked_at=10_000)


def key(number: int) -> bytes:
    return b"%04d" % number


def in_batches(start: bytes, visible: list[bool], sizes: list[int]) -> Iterator[LookedAt[VisibleRow]]:
    """The rows from ``start`` on, in batches of these sizes, the last of them as long as there are rows."""
    there = [number for number in range(len(visible)) if key(number) >= start]
    ends = [*accumulate(sizes), *range(sum(sizes), len(there) + sizes[-1], sizes[-1])]
    for first, last in pairwise([0, *dict.fromkeys(ends)]):
        if batch := there[first:last]:
            found = iter([(key(number), {A: b"%d" % number}) for number in batch if visible[number]])
            yield LookedAt(found, len(batch), key(batch[-1]))


@given(
    st.lists(st.booleans(), max_size=30),
    st.lists(st.integers(1, 7), min_size=1, max_size=4),
    st.integers(1, 8),
    st.integers(1, 60),
    st.integers(1, 12),
)
def test_page_by_page_comes_every_row_once_and_no_page_is_more_than_was_asked_for(
    visible: list[bool], sizes: list[int], rows_max: int, bytes_max: int, looked_at_max: int
) -> None:
    limits = PageLimits(rows_max, bytes_max, looked_at_max)
    found: list[bytes] = []
    start = b""
    for _ in range(len(visible) + 1):
        rows, looked_at_to = page_of(in_batches(start, visible, sizes), limits)
        assert len(rows) <= rows_max
        assert sum(len(row) + len(A) + len(values[A]) for row, values in rows[:-1]) <= bytes_max
        found += [row for row, _ in rows]
        if looked_at_to is None:
            break
        assert looked_at_to >= (rows[-1][0] if rows else start)
        looked_at = sum(start <= key(number) <= looked_at_to for number in range(len(visible)))
        assert 1 <= looked_at < looked_at_max + 2 * max(sizes), "and one batch more, where it was full"
        start = looked_at_to + b"\x00"
    else:
        pytest.fail("it does not end")
    assert found == [key(number) for number, is_there in enumerate(visible) if is_there]


@pytest.mark.parametrize(
    ("rows", "rows_max", "ends_at"),
    [(9, 10, None), (10, 10, None), (11, 10, key(9)), (15, 15, None), (16, 15, key(14))],
)
def test_a_full_page_is_the_last_one_where_there_is_nothing_behind_it(
    rows: int, rows_max: int, ends_at: bytes | None
) -> None:
    limits = PATIENT._replace(rows=rows_max)
    assert page_of(in_batches(b"", [True] * rows, [5]), limits)[1] == ends_at


def test_a_full_page_looks_on_for_one_batch_at_most_and_says_how_far() -> None:
    visible = [number < 10 or number > 90 for number in range(100)]
    limits = PATIENT._replace(rows=10)
    rows, looked_at_to = page_of(in_batches(b"", visible, [5]), limits)
    assert (len(rows), looked_at_to) == (10, key(14))
    rows, looked_at_to = page_of(in_batches(key(88), visible, [5]), limits._replace(rows=2))
    assert ([row for row, _ in rows], looked_at_to) == ([key(91), key(92)], key(92))


def test_a_page_says_what_it_is_all_of() -> None:
    assert RowsPage([], None).looked_at(KeyRange(b"a", b"z")) == KeyRange(b"a", b"z")
    assert RowsPage([], b"k").looked_at(KeyRange(b"a", b"z")) == KeyRange(b"a", b"k\x00")
    assert RowsPage([], b"k").looked_at(KeyRange(b"a", b"z"), reverse=True) == KeyRange(b"k", b"z")


def put(manager: TransactionManager, rows: range, value: bytes = b"1") -> None:
    with manager.transaction() as transaction:
        for number in rows:
            transaction.put("t", key(number), {A: value})


def deleted(manager: TransactionManager, rows: range) -> None:
    with manager.transaction() as transaction:
        for number in rows:
            transaction.delete("t", key(number), [A])


def test_a_page_of_rows_ends_at_its_rows_its_bytes_and_after_so_many_rows_looked_at(
    manager: TransactionManager, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(stored_cells, "SCAN_FIRST_ROWS", 2)
    monkeypatch.setattr(reading, "SCAN_BATCH_ROWS", 4)
    put(manager, range(30), b"1" * 100)
    deleted(manager, range(10, 22))
    snapshot = manager.snapshot()

    def page(**options: Any) -> tuple[list[bytes], bytes | None]:
        found = snapshot.scan_page("t", **options)
        return [row for row, _ in found.rows], found.looked_at_to

    there = [key(number) for number in (*range(10), *range(22, 30))]
    assert page() == (there, None)
    assert page(rows_max=3) == (there[:3], key(2))
    assert page(rows_max=3, start=key(2) + b"\x00", stop=key(6)) == (there[3:6], None)
    assert page(bytes_max=150) == (there[:2], key(1))
    assert page(start=key(10), looked_at_max=6) == ([], key(15)), "where all was deleted a page ends, too"
    assert page(start=key(8), looked_at_max=2) == (there[8:10], key(9))
    assert page(start=key(25), columns=[b"f:b"]) == ([], None)
    assert page(reverse=True, rows_max=2) == (there[:-3:-1], there[-2])
    assert page(reverse=True, stop=key(22), looked_at_max=6) == ([], key(16))
    assert page(reverse=True, start=key(8), stop=key(12)) == ([key(9), key(8)], None)
    assert snapshot.scan_page("t", rows_max=1).rows == [(key(0), {A: b"1" * 100})]


@pytest.mark.parametrize("reverse", [False, True])
@pytest.mark.parametrize("looked_at_max", [9, 40, 999])
def test_a_page_that_goes_on_by_columns_misses_nothing_and_says_nothing_twice(
    manager: TransactionManager, monkeypatch: pytest.MonkeyPatch, looked_at_max: int, reverse: bool
) -> None:
    monkeypatch.setattr(reading, "ROW_BY_ROW_MAX", 20)
    put(manager, range(60))
    deleted(manager, range(3, 45))
    snapshot = manager.snapshot()

    def read(rest: KeyRange) -> RowsPage:
        start, stop = rest
        return snapshot.scan_page("t", start=start, stop=stop, reverse=reverse, looked_at_max=looked_at_max)

    pages = page_by_page(read, KeyRange(b"", b""), reverse=reverse)
    assert [row for page in pages for row in page.rows] == list(snapshot.scan("t", reverse=reverse))


def test_after_the_first_rows_of_a_scan_come_many_together(
    manager: TransactionManager, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(stored_cells, "SCAN_FIRST_ROWS", 3)
    monkeypatch.setattr(reading, "SCAN_BATCH_ROWS", 8)
    put(manager, range(25))
    batches: list[int] = []
    seen = stored_cells.StoredCells.batches

    def noting(*arguments: Any, **further: Any) -> Iterator[stored_cells.Rows]:
        for batch in seen(*arguments, **further):
            batches.append(len(batch))
            yield batch

    monkeypatch.setattr(stored_cells.StoredCells, "batches", noting)
    assert len(list(manager.snapshot().scan("t"))) == 25
    assert batches == [3, 8, 8, 6]
    batches.clear()
    assert len(manager.snapshot().scan_page("t", rows_max=2).rows) == 2
    assert batches == [3]


def page_of_a_transaction(
    transaction: Transaction, limits: tuple[int, int, int], reverse: bool, own_writes: OwnWrites, rest: KeyRange
) -> RowsPage:
    rows_max, bytes_max, looked_at_max = limits
    return transaction.scan_page(
        "t",
        start=rest.start,
        stop=rest.stop,
        reverse=reverse,
        rows_max=rows_max,
        bytes_max=bytes_max,
        looked_at_max=looked_at_max,
        own_writes=own_writes,
    )


@pytest.mark.parametrize("seed", range(20))
def test_the_pages_of_a_transaction_are_its_scan_with_its_own_writes(
    manager: TransactionManager, monkeypatch: pytest.MonkeyPatch, seed: int
) -> None:
    chance = random.Random(seed)
    monkeypatch.setattr(stored_cells, "SCAN_FIRST_ROWS", chance.randint(1, 3))
    monkeypatch.setattr(reading, "SCAN_BATCH_ROWS", chance.randint(1, 5))
    numbers = range(24)
    with manager.transaction() as transaction:
        for number in chance.sample(numbers, 14):
            transaction.put("t", key(number), {A: b"stored", b"g:b": b"stored"})
    with manager.transaction() as transaction:
        for number in chance.sample(numbers, 5):
            transaction.delete("t", key(number))
    with manager.transaction() as transaction:
        for moment in ("before", "after"):
            for number in chance.sample(numbers, 5):
                transaction.put("t", key(number), {A: moment.encode()})
            for number in chance.sample(numbers, 5):
                transaction.delete("t", key(number), chance.choice([None, [A]]))
            if moment == "before":
                transaction.checkpoint()
        for own_writes, reverse in product(get_args(OwnWrites), (False, True)):
            want = list(transaction.scan("t", start=key(2), stop=key(22), own_writes=own_writes, reverse=reverse))
            assert want == sorted(want, reverse=reverse)
            for limits in ((1, 999, 999), (999, 1, 999), (999, 999, 1), (3, 40, 5)):
                read = partial(page_of_a_transaction, transaction, limits, reverse, own_writes)
                pages = list(page_by_page(read, KeyRange(key(2), key(22)), reverse=reverse))
                assert all(len(page.rows) <= limits[0] for page in pages)
                assert [row for page in pages for row in page.rows] == want
        transaction.forbid_commit("it was for reading")
        transaction.rollback()


PAGES: list[Callable[..., object]] = [
    lambda manager, **limits: manager.snapshot().scan_page("t", **limits),
    lambda manager, **limits: manager.snapshot().changes_page("t", 0, **limits),
    lambda manager, **limits: manager.transaction().scan_page("t", **limits),
]


@pytest.mark.parametrize("page", PAGES)
@pytest.mark.parametrize("name", ["rows_max", "bytes_max", "looked_at_max"])
@pytest.mark.parametrize("most", [0, -1, True, 1.5, None, "9"])
def test_a_page_has_limits_that_are_numbers(
    manager: TransactionManager, page: Callable[..., object], name: str, most: Any
) -> None:
    with pytest.raises(InvalidRequest, match=f"{name} is a whole number, at least 1, not"):
        page(manager, **{name: most})


def test_a_page_is_refused_where_a_scan_is(manager: TransactionManager) -> None:
    snapshot, transaction = manager.snapshot(), manager.transaction()
    for read in (snapshot, transaction):
        for table, options, said in (
            ("none", {}, "none"),
            ("t", {"columns": []}, "names nothing"),
            ("t", {"start": b"b", "stop": b"a"}, "stop"),
            ("t", {"start": "text"}, "bytes"),
            ("t", {"reverse": "false"}, "reverse is True or False, not 'false'"),
        ):
            for pages_or_rows in (read.scan_page, read.scan):
                with pytest.raises(InvalidRequest, match=said):
                    list(pages_or_rows(table, **options))
    with pytest.raises(InvalidRequest, match="own_writes"):
        transaction.scan_page("t", own_writes="mine")  # type: ignore[arg-type]
    transaction.rollback()
    with pytest.raises(InvalidRequest, match="aborted"):
        transaction.scan_page("t")
