"""Rows in the order of their keys: all of them, each with its own cells, and those of one key as they came."""

from __future__ import annotations

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from store import RowPut
from store.columns import CellColumns
from store.key_order import WORDS, in_key_order, key_order

TOLD_APART_BYTES = 8 * WORDS


def order_of(keys: list[bytes]) -> list[int]:
    cells = CellColumns.of_values((b"f:a",), keys, [{b"f:a": b""}] * len(keys))
    order: list[int] = key_order(cells.data, cells.key_starts, cells.key_lengths).tolist()
    return order


def shared_bytes(keys: list[bytes]) -> int:
    first, last = min(keys), max(keys)
    return next((at for at, byte in enumerate(first) if last[at] != byte), len(first))


def told(put: RowPut) -> tuple[bytes, list[tuple[bytes, bytes]]]:
    return put.row, sorted(put.columns.items())


keys_of_any_kind = st.lists(
    st.one_of(
        st.binary(min_size=1, max_size=12),
        st.sampled_from([b"a", b"b", b"ab", b"a\x00", b"a\xff"]),
        st.binary(min_size=1, max_size=TOLD_APART_BYTES).map(lambda key: b"tenant/0000000001/" + key),
    ),
    max_size=40,
)


@given(keys_of_any_kind.map(lambda keys: [key.rstrip(b"\x00") or b"z" for key in keys]))
def test_the_order_is_that_of_the_keys_and_equal_ones_stay_as_they_came(keys: list[bytes]) -> None:
    assume(all(len(key) - shared_bytes(keys) <= TOLD_APART_BYTES for key in keys))
    assert order_of(keys) == sorted(range(len(keys)), key=lambda index: keys[index])


@given(keys_of_any_kind, st.binary(max_size=80))
def test_every_row_keeps_its_cells(keys: list[bytes], prefix: bytes) -> None:
    """Also where keys are longer than what tells them apart."""
    puts = [RowPut(prefix + key, {b"f:%d" % (at % 3): b"%d" % at, b"f:b": b""}) for at, key in enumerate(keys)]
    ordered = in_key_order(CellColumns.of_puts(puts)).puts()
    assert sorted(map(told, ordered)) == sorted(map(told, puts))


def test_what_is_in_order_is_not_copied() -> None:
    cells = CellColumns.of_puts([RowPut(b"%04d" % number, {b"f:a": b"1"}) for number in range(100)])
    assert in_key_order(cells) is cells
    part = CellColumns.of_puts([RowPut(b"%04d" % number, {b"f:a": b"1"}) for number in (2, 1)])
    assert in_key_order(part).data is part.data


@pytest.mark.parametrize("rows", [0, 1])
def test_of_less_than_two_rows_the_order_is_what_it_is(rows: int) -> None:
    cells = CellColumns.of_puts([RowPut(b"a", {b"f:a": b"1"})] * rows)
    assert in_key_order(cells) is cells


def test_only_what_the_keys_do_not_share_is_compared() -> None:
    shared = b"s" * 300
    assert order_of([shared + b"c", shared + b"a", shared, shared + b"b"]) == [2, 1, 3, 0]
    assert order_of([shared] * 5) == [0, 1, 2, 3, 4]
