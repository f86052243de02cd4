"""Rows that are read together: in few calls, and never many more of them than an answer may hold."""

from __future__ import annotations

from collections.abc import Collection, Sequence

import pytest

from rest.reads import READ_FIRST, READ_TOGETHER_MAX, Read, read_all


class Sized:
    """A table whose rows all have values of one size; notes for how many rows it is asked."""

    def __init__(self, value_bytes: int) -> None:
        self._values = {b"f:a": bytes(value_bytes)}
        self.asked: list[int] = []

    def get_many(
        self, table: str, rows: Collection[bytes], columns: Sequence[bytes] | None = None
    ) -> dict[bytes, dict[bytes, bytes]]:
        self.asked.append(len(rows))
        return dict.fromkeys(rows, self._values)


READS = [Read("t", b"%05d" % number, None) for number in range(1_200)]


def test_small_rows_are_read_by_few_calls() -> None:
    source = Sized(8)
    assert len(read_all(source, READS, 2**20)) == 1_200
    assert source.asked == [
        READ_FIRST,
        READ_TOGETHER_MAX,
        READ_TOGETHER_MAX,
        1_200 - READ_FIRST - 2 * READ_TOGETHER_MAX,
    ]


@pytest.mark.parametrize(("value_bytes", "answered"), [(992, 101), (9_992, 10), (200_000, 1)])
def test_of_large_rows_no_more_are_read_than_fit(value_bytes: int, answered: int) -> None:
    source = Sized(value_bytes)
    assert len(read_all(source, READS, 101_000)) == answered
    assert sum(source.asked) <= answered + READ_FIRST


def test_each_choice_of_columns_of_each_table_is_asked_for_once() -> None:
    source = Sized(8)
    tables = [Read(table, row, columns) for table in "tu" for row in (b"a", b"b") for columns in (None, (b"f",))]
    assert len(read_all(source, tables, 2**20)) == 8
    assert source.asked == [2, 2, 2, 2]
