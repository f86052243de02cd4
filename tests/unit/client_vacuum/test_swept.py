"""Which rows are passed over since nobody has written them; every other one is looked at."""

from __future__ import annotations

from collections.abc import Collection

import pytest

from client.cells import ABORTED_SHADOW, ROW_MARKER_VALUE, encode_shadow, row_marker_column, shadow_column
from client.vacuum.clean_rows import looked_for
from client.vacuum.swept import NOT_SWEPT, UNSHADOWED_MAX, PassedOver, Sweeping, Swept, passed_over
from store import Cell, Row
from store.columns import ScannedColumns

A, B, G = b"f:a", b"f:b", b"g:a"
F_SHADOW, G_SHADOW, MARKER = shadow_column(b"f"), shadow_column(b"g"), row_marker_column(b"f")
FAMILIES = [b"f", b"g"]
THROUGH = 100
LASTING, OTHER_LASTING = 60, 70


def value(writer: int) -> Cell:
    return Cell(b"1", writer)


def shadow(writer: int, outcome: int = THROUGH) -> Cell:
    return Cell(encode_shadow(outcome), writer)


def told(
    rows: list[Row], before: Swept, named: Collection[bytes] = (A, B, G), *, lasting: int = 9, plain_through: int = 0
) -> PassedOver:
    """``named``: the columns that were expected. So many of the transactions may go on without shadow cells."""
    met: list[int] = []

    def may_last(writer: int) -> bool:
        met.append(writer)
        return len(met) <= lasting

    columns = looked_for(tuple(named), FAMILIES)
    batch = ScannedColumns.of_rows(columns, [(b"%d" % number, row) for number, row in enumerate(rows)])
    return passed_over(batch, FAMILIES, before, may_last, plain_through)


@pytest.fixture(params=[(A, B, G), (A,), ()], ids=["all expected", "one expected", "none expected"])
def named(request: pytest.FixtureRequest) -> tuple[bytes, ...]:
    columns: tuple[bytes, ...] = request.param
    return columns


@pytest.mark.parametrize(
    ("row", "cells"),
    [
        ({A: value(90), F_SHADOW: shadow(90)}, 1),
        ({A: value(THROUGH), F_SHADOW: shadow(THROUGH)}, 1),
        ({A: value(80), B: value(90), F_SHADOW: shadow(90)}, 2),
        ({A: value(80), G: value(90), F_SHADOW: shadow(80), G_SHADOW: shadow(90)}, 2),
        ({MARKER: Cell(ROW_MARKER_VALUE, 90), F_SHADOW: shadow(90)}, 1),
        ({A: value(90), F_SHADOW: shadow(90, ABORTED_SHADOW)}, 1),  # it lies above one that is kept
        ({A: value(90), F_SHADOW: shadow(95)}, 1),  # of a column that was deleted
        ({A: value(90), F_SHADOW: shadow(90), G_SHADOW: shadow(95)}, 1),
    ],
)
def test_a_row_that_nobody_wrote_since_is_passed_over(row: Row, cells: int, named: tuple[bytes, ...]) -> None:
    found = told([row], Swept(THROUGH), named)
    assert (found.rows.tolist(), found.cells.tolist(), found.lacking.tolist()) == ([True], [cells], [0])
    assert found.needed == []
    assert told([row], NOT_SWEPT, named).rows.tolist() == [False]


@pytest.mark.parametrize(
    "row",
    [
        {A: value(THROUGH + 1), F_SHADOW: shadow(THROUGH + 1)},
        {A: value(90), B: value(THROUGH + 1), F_SHADOW: shadow(THROUGH + 1)},
        {A: value(90), G: value(THROUGH + 1), F_SHADOW: shadow(90), G_SHADOW: shadow(THROUGH + 1)},
        {F_SHADOW: shadow(90)},
        {},
        {A: value(90)},
        {A: value(90), F_SHADOW: shadow(80)},
        {A: value(80), B: value(90), F_SHADOW: shadow(80)},
        {A: value(90), G: value(90), F_SHADOW: shadow(90)},
    ],
)
def test_every_other_row_is_looked_at(row: Row, named: tuple[bytes, ...]) -> None:
    assert told([row], Swept(THROUGH), named).rows.tolist() == [False]


def test_whoever_passes_over_cells_without_shadow_cells_needs_the_records(named: tuple[bytes, ...]) -> None:
    before = Swept(THROUGH, frozenset({LASTING, OTHER_LASTING}))
    lacking = told([{A: value(LASTING)}], before, named)
    assert (lacking.rows.tolist(), lacking.lacking.tolist(), lacking.needed) == ([True], [1], [LASTING])
    hidden = told([{A: value(LASTING), B: value(90), F_SHADOW: shadow(90)}], before, named)
    assert (hidden.rows.tolist(), hidden.lacking.tolist(), hidden.needed) == ([True], [0], [LASTING])
    shown = told([{A: value(LASTING), F_SHADOW: shadow(LASTING)}], before, named)
    assert (shown.rows.tolist(), shown.needed) == ([True], [])


def test_what_was_there_before_a_table_was_adopted_is_passed_over_without_any_record(named: tuple[bytes, ...]) -> None:
    rows: list[Row] = [
        {A: value(7), G: value(7)},
        {A: value(7), B: value(90), F_SHADOW: shadow(90), G: value(7)},
        {A: value(7), B: value(90)},
        {A: value(6)},
    ]
    found = told(rows, Swept(THROUGH), named, plain_through=7)
    assert (found.rows.tolist(), found.lacking.tolist(), found.needed) == ([True, True, False, False], [0, 0, 1, 1], [])


def test_what_may_hide_a_version_without_its_shadow_cell_is_looked_at(named: tuple[bytes, ...]) -> None:
    """What a process writes late that was given up: of such a row nobody would know that a record is needed."""
    rows: list[Row] = [
        {A: value(80), F_SHADOW: shadow(80, ABORTED_SHADOW)},
        {A: value(80), B: value(90), F_SHADOW: shadow(90)},
        {A: value(LASTING), B: value(90), F_SHADOW: shadow(90)},
        {A: value(90), B: value(90), F_SHADOW: shadow(90)},
        {A: value(90), G: value(80), F_SHADOW: shadow(90), G_SHADOW: shadow(80, ABORTED_SHADOW)},
        {A: value(7), B: value(90), F_SHADOW: shadow(90)},
    ]
    found = told(rows, Swept(THROUGH, frozenset({LASTING})), named, plain_through=7)
    assert found.rows.tolist() == [False, False, True, True, False, True]
    assert told(rows[:2], Swept(THROUGH), named).rows.tolist() == [True, True]


def test_of_a_transaction_that_does_not_go_on_without_shadow_cells_the_rows_are_looked_at(
    named: tuple[bytes, ...],
) -> None:
    rows: list[Row] = [
        {A: value(LASTING)},
        {A: value(OTHER_LASTING)},
        {A: value(LASTING), G: value(OTHER_LASTING)},
        {A: value(90), F_SHADOW: shadow(90)},
    ]
    found = told(rows, Swept(THROUGH, frozenset({LASTING, OTHER_LASTING})), named, lasting=1)
    assert (found.rows.tolist(), found.needed) == ([True, False, False, True], [LASTING])


def test_what_is_left_goes_on_record_and_comes_back() -> None:
    left = Swept(2**61, frozenset({2**60, 2**60 + 1}))
    assert Swept.from_json(left.to_json()) == left
    assert Swept.from_json(None) == NOT_SWEPT
    assert NOT_SWEPT.to_json() is None
    assert Swept(1, frozenset(range(UNSHADOWED_MAX + 1))).to_json() is None


def test_of_parts_the_least_is_true_and_all_records_are_needed() -> None:
    assert Swept(9, frozenset({1})).and_of(Swept(5, frozenset({2}))) == Swept(5, frozenset({1, 2}))


def test_a_sweep_says_no_more_than_that_everything_below_its_oldest_open_column_is_done() -> None:
    sweeping = Sweeping(THROUGH, plain_through=0)
    for newest in (90, 80, 95):
        sweeping.is_not_done_above(newest)
    assert sweeping.swept() == Swept(79)
