"""The rows that an overwrite keeps: exactly those that it wrote, whatever their hashes are."""

from __future__ import annotations

import tracemalloc
from collections.abc import Sequence

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from client.key_hashing import Hashes
from client.spark import kept_rows
from client.spark.byte_columns import ByteColumn
from client.spark.kept_rows import KeptRows
from store import ROW_KEY_BYTES_MAX, RowPut
from store.columns import CellColumns

KEYS = st.lists(st.binary(min_size=1, max_size=3), max_size=20)


def keys(rows: Sequence[bytes]) -> ByteColumn:
    """Row keys, of which the bytes do not begin where those of the block do."""
    data = np.frombuffer(bytearray(b"--" + b"".join(rows)), np.uint8)
    lengths = np.array([len(row) for row in rows], np.int64)
    return ByteColumn(data, 2 + np.cumsum(lengths) - lengths, lengths)


def batch(rows: Sequence[bytes]) -> CellColumns:
    return CellColumns.of_puts([RowPut(row, {b"f:v": b"1"}) for row in rows])


@given(st.lists(KEYS, max_size=4), KEYS)
def test_it_has_what_was_put_in_and_nothing_else(pieces: list[list[bytes]], asked: list[bytes]) -> None:
    kept = KeptRows("t", map(keys, pieces))
    rows = {row for each in pieces for row in each}
    assert len(kept) == len(rows)
    assert kept.among(batch(asked)).tolist() == [row in rows for row in asked]
    assert kept.among(batch(sorted(rows))).all()


def test_rows_of_one_hash_are_told_apart(monkeypatch: pytest.MonkeyPatch) -> None:
    def the_same(before: bytes, data: object, starts: np.ndarray, lengths: object) -> Hashes:
        return np.full(len(starts), 7, np.uint64)

    monkeypatch.setattr(kept_rows, "hashes_of_rows", the_same)
    monkeypatch.setattr(
        kept_rows, "write_set_of_columns", lambda table, cells, by_row: np.full(cells.rows, 7, np.uint64)
    )
    kept = KeptRows("t", [keys([b"a", b"b", b"ab"])])
    assert len(kept) == 3
    assert kept.among(batch([b"b", b"c", b"ab", b"abc", b"a"])).tolist() == [True, False, True, False, True]


def test_the_longest_keys() -> None:
    longest = b"x" * ROW_KEY_BYTES_MAX
    kept = KeptRows("t", [keys([longest])])
    assert kept.among(batch([longest[:-1], longest, longest[:-1] + b"y"])).tolist() == [False, True, False]


def test_of_many_rows_it_takes_a_fraction_of_what_a_set_takes() -> None:
    parts = [keys([b"%08d" % (1_000 * part + row) for row in range(1_000)]) for part in range(64)]
    tracemalloc.start()
    try:
        kept = KeptRows("t", parts)
        held_bytes, _ = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert len(kept) == 64_000
    assert held_bytes <= 36 * len(kept)
