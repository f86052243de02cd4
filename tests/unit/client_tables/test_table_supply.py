"""Rows in pieces: each once, in order, and where they lie."""

from __future__ import annotations

from collections.abc import Iterable

import pyarrow as pa
from hypothesis import given
from hypothesis import strategies as st

from client.tables.supply import Piece, Supply, small_pieces


def pieces(sizes: Iterable[int]) -> list[Piece]:
    found, first = [], 0
    for size in sizes:
        batch = pa.record_batch([pa.array(range(first, first + size), pa.int64())], ["n"])
        found.append(Piece("f", first + 1, batch))
        first += size
    return found


def numbers(taken: Iterable[Piece]) -> list[int]:
    return [number for piece in taken for number in piece.batch.column(0).to_pylist()]


@given(st.lists(st.integers(0, 9), max_size=8), st.integers(1, 5), st.integers(1, 7), st.integers(0, 40))
def test_every_row_comes_once_in_its_order_and_place(sizes: list[int], most: int, each: int, skipped: int) -> None:
    total = sum(sizes)
    supply = Supply(small_pieces(pieces(sizes), most))
    assert supply.skip(skipped) == min(skipped, total)
    seen: list[int] = []
    while not supply.ended():
        taken = list(supply.take(each))
        assert all(piece.batch.num_rows <= most for piece in taken)
        assert all(piece.first_row == piece.batch.column(0)[0].as_py() + 1 for piece in taken)
        assert len(numbers(taken)) == min(each, total - min(skipped, total) - len(seen))
        seen += numbers(taken)
    assert seen == list(range(total))[skipped:]


def test_a_piece_says_where_it_lies() -> None:
    (piece,) = Supply(pieces([3])).take(3)
    assert piece.where == "f, rows 1 to 3"


def test_large_rows_come_in_pieces_of_fewer() -> None:
    batch = pa.record_batch([pa.array(["x" * 2**20] * 20)], ["t"])
    sizes = [piece.batch.num_rows for piece in small_pieces([Piece("f", 1, batch)], 10_000)]
    assert sum(sizes) == 20
    assert max(sizes) <= 8
    (huge,) = small_pieces([Piece("f", 1, pa.record_batch([pa.array(["x" * 9 * 2**20])], ["t"]))], 10)
    assert huge.batch.num_rows == 1
