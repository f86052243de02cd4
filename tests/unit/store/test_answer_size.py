"""For how many rows a read asks: few at first, then by their size, and fewer after an answer was lost."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pytest

from store import KeyRange
from store.answer_size import AnswerSize
from store.hbase import HBaseCellStore, PoolSettings, RequestLimits
from tests.unit.store.fake_gateway import HANG_UP, FakeGateway

ROWS = [b"%04d" % number for number in range(2_000)]
LARGE = 100_000
BYTES_WANTED = 2**18

Read = Callable[[HBaseCellStore, list[bytes]], list[bytes]]


def by_rows(store: HBaseCellStore, rows: list[bytes]) -> list[bytes]:
    return [row for row, _ in store.scan("t", KeyRange(rows[0], b""), [b"f"])]


def by_columns(store: HBaseCellStore, rows: list[bytes]) -> list[bytes]:
    batches = store.scan_columns("t", KeyRange(rows[0], b""), [b"f"], [b"f:a"], batch_rows=5_000)
    return [row for batch in batches for row in batch.cells.row_keys()]


def by_keys(store: HBaseCellStore, rows: list[bytes]) -> list[bytes]:
    return list(store.get_many("t", rows, [b"f"]))


def by_keys_as_columns(store: HBaseCellStore, rows: list[bytes]) -> list[bytes]:
    batches = store.get_columns("t", rows, [b"f"], [b"f:a"])
    return [row for batch in batches for row in batch.cells.row_keys()]


READS = [by_rows, by_columns, by_keys, by_keys_as_columns]


@pytest.fixture
def gateway() -> Iterator[FakeGateway]:
    fake = FakeGateway()
    fake.methods.tables = {b"t": ROWS}
    yield fake
    fake.stop()


@pytest.fixture
def store(gateway: FakeGateway) -> Iterator[HBaseCellStore]:
    opened = HBaseCellStore(gateway.address, PoolSettings(), RequestLimits(answer_bytes_wanted=BYTES_WANTED))
    yield opened
    opened.close()


@pytest.mark.parametrize("read", READS)
def test_no_answer_of_large_rows_is_much_larger_than_wanted(
    gateway: FakeGateway, store: HBaseCellStore, read: Read
) -> None:
    gateway.methods.value_of = lambda row: bytes(LARGE)
    rows = ROWS[-200:]
    assert read(store, rows) == rows
    first, *later = gateway.methods.rows_asked
    assert first <= 64
    assert set(later) == {BYTES_WANTED // LARGE}


@pytest.mark.parametrize("read", READS)
def test_rows_that_become_large_are_met_in_small_numbers(
    gateway: FakeGateway, store: HBaseCellStore, read: Read
) -> None:
    gateway.methods.value_of = lambda row: bytes(LARGE if row >= ROWS[-64] else 1)
    rows = ROWS[-80:]
    assert read(store, rows) == rows
    assert max(gateway.methods.rows_asked) <= 8 * 16


@pytest.mark.parametrize(
    ("read", "asked"),
    [
        (by_rows, [16, 128, 500, 500, 500, 500]),
        (by_columns, [16, 128, 1_024, 5_000]),
        (by_keys, [64, 512, 1000, 424]),
        (by_keys_as_columns, [64, 512, 1000, 424]),
    ],
)
def test_small_rows_come_in_few_answers(
    gateway: FakeGateway, store: HBaseCellStore, read: Read, asked: list[int]
) -> None:
    assert read(store, ROWS) == ROWS
    assert gateway.methods.rows_asked == asked


@pytest.mark.parametrize(
    ("read", "opening"), [(by_rows, [None]), (by_columns, [None]), (by_keys, []), (by_keys_as_columns, [])]
)
def test_after_a_lost_answer_half_as_many_rows_are_asked_for(
    gateway: FakeGateway, store: HBaseCellStore, read: Read, opening: list[None]
) -> None:
    """It may have been too large for the gateway, and asking for the same again would end the gateway again."""
    gateway.fates.extend([*opening, HANG_UP, *opening, HANG_UP])
    assert read(store, ROWS) == ROWS
    assert gateway.methods.rows_asked[0] == (16 if opening else 64) // 4


def test_at_least_one_row_is_asked_for() -> None:
    size = AnswerSize(1_000, rows_first=16)
    size.came(16, 16_000_000)
    assert size.rows(500) == 1
    size.was_lost(1)
    assert size.rows(500) == 1


def test_after_a_slow_answer_a_single_row_is_asked_for() -> None:
    size = AnswerSize(1_000_000, rows_first=16)
    size.came(16, 160)
    size.was_slow()
    assert size.rows(500) == 1
    size.came(1, 10)
    assert size.rows(500) == 8


def test_rows_that_are_not_there_say_nothing_against_many() -> None:
    size = AnswerSize(1_000, rows_first=16)
    size.came(16, 0)
    assert size.rows(500) == 128
    size.came(0, 0)
    assert size.rows(500) == 128
