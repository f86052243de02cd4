"""Rows in which there is nothing to do, but for what may lie below them; every other row is to be looked at."""

from __future__ import annotations

import pytest

from client.cells import (
    ABORTED_SHADOW,
    ROW_MARKER_VALUE,
    TOMBSTONE,
    encode_shadow,
    encode_value,
    row_marker_column,
    shadow_column,
)
from client.vacuum import clean_rows as rules
from client.vacuum.clean_rows import NOBODY, CleanRows, clean_rows, looked_for
from store import Cell, Row
from store.columns import ScannedColumns

A, B, G = b"f:a", b"f:b", b"g:a"
F_SHADOW, G_SHADOW, MARKER = shadow_column(b"f"), shadow_column(b"g"), row_marker_column(b"f")
WRITER, OTHER, COMMIT = 100, 90, 105
COMMITTED = Cell(encode_shadow(COMMIT), WRITER)


def value(text: bytes, writer: int = WRITER) -> Cell:
    return Cell(text, writer)


def told(
    rows: list[Row], lasting: list[int] | None = None, named: tuple[bytes, ...] = (A, B, G), *, plain_through: int = 0
) -> CleanRows:
    batch = ScannedColumns.of_rows(looked_for(named, [b"f", b"g"]), [(b"%d" % n, row) for n, row in enumerate(rows)])
    return clean_rows(batch, lasting or [], plain_through)


@pytest.mark.parametrize(
    ("row", "cells"),
    [
        ({A: value(b"1"), F_SHADOW: COMMITTED}, 1),
        ({A: value(b"1"), B: value(b""), F_SHADOW: COMMITTED}, 2),
        ({A: value(b"1"), MARKER: value(ROW_MARKER_VALUE), F_SHADOW: COMMITTED}, 2),
        ({A: value(b"1"), G: value(b"1"), F_SHADOW: COMMITTED, G_SHADOW: COMMITTED}, 2),
    ],
)
def test_what_one_writer_wrote_who_committed_is_clean(row: Row, cells: int) -> None:
    found = told([row, {}])
    assert (found.writers.tolist(), found.cells.tolist(), found.lacking.tolist()) == (
        [WRITER, NOBODY],
        [cells, 0],
        [0, 0],
    )


@pytest.mark.parametrize(
    "row",
    [
        {A: value(b"1")},
        {F_SHADOW: COMMITTED},
        {A: value(b"1"), F_SHADOW: Cell(encode_shadow(ABORTED_SHADOW), WRITER)},
        {A: value(b"1"), F_SHADOW: Cell(b"no timestamp", WRITER)},
        {A: value(b"1"), F_SHADOW: Cell(encode_shadow(COMMIT), OTHER)},
        {A: value(b"1"), G: value(b"1"), F_SHADOW: COMMITTED},
        {A: value(b"1"), F_SHADOW: COMMITTED, G_SHADOW: COMMITTED},
        {A: value(b"1"), B: value(b"1", OTHER), F_SHADOW: COMMITTED},
        {A: value(b"1"), G: value(b"1", OTHER), F_SHADOW: COMMITTED, G_SHADOW: Cell(encode_shadow(95), OTHER)},
        {A: value(TOMBSTONE), F_SHADOW: COMMITTED},
        {A: value(b"1"), B: value(TOMBSTONE), F_SHADOW: COMMITTED},
        {A: value(encode_value(TOMBSTONE)), F_SHADOW: COMMITTED},
        {A: value(b"1"), b"f:unexpected": value(b"1"), F_SHADOW: COMMITTED},
    ],
)
def test_every_other_row_is_looked_at(row: Row) -> None:
    assert told([row]).writers.tolist() == [NOBODY]


def test_what_was_there_before_a_table_was_adopted_is_clean_and_lacks_nothing() -> None:
    rows: list[Row] = [{A: value(b"1", 7), G: value(b"1", 7)}, {A: value(b"1", 7), B: value(b"1")}, {A: value(b"1", 6)}]
    found = told(rows, plain_through=7)
    assert (found.writers.tolist(), found.lacking.tolist()) == ([7, NOBODY, NOBODY], [0, 1, 1])


def test_without_its_shadow_cells_a_row_is_clean_where_the_record_lasts() -> None:
    rows: list[Row] = [
        {A: value(b"1"), G: value(b"1")},
        {A: value(b"1"), G: value(b"1"), F_SHADOW: COMMITTED},
        {A: value(b"1", OTHER)},
        {A: value(b"1"), F_SHADOW: Cell(encode_shadow(COMMIT), OTHER)},
    ]
    found = told(rows, [WRITER])
    assert (found.writers.tolist(), found.lacking.tolist()[:2]) == ([WRITER, WRITER, NOBODY, NOBODY], [2, 1])


def test_before_any_column_is_known_every_row_with_values_is_looked_at() -> None:
    rows: list[Row] = [
        {A: value(b"1"), F_SHADOW: COMMITTED},
        {MARKER: value(ROW_MARKER_VALUE), F_SHADOW: COMMITTED},
    ]
    assert told(rows, named=()).writers.tolist() == [NOBODY, WRITER]


def test_few_writers_are_asked_about_and_those_with_most_rows(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(rules, "ROWS_WORTH_A_SCAN", 2)
    monkeypatch.setattr(rules, "WRITERS_ASKED_ABOUT_MAX", 2)
    writers = [1, 2, 2, 3, 3, 3, 4, 4, 4, 4]
    rows: list[Row] = [{A: value(b"1", writer), F_SHADOW: Cell(encode_shadow(9), writer)} for writer in writers]
    asked = told([*rows, {A: value(b"1")}, {A: value(b"1")}]).asked_about()
    assert [(writer, of_writer.tolist().count(True)) for writer, of_writer in asked] == [(4, 4), (3, 3)]
