"""A table that was adopted, as its readers look at it: as though one transaction had written what was there."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from client.cells import TOMBSTONE, encode_value
from client.snapshots.plain_cells import TRANSACTIONS_FROM, PlainCells, cells_of, outcome_of_plain
from client.snapshots.visibility import NOT_COMMITTED, OPEN
from commit_table.timestamps import compose, wall_time_of
from store import Cell, Family, KeyRange, MemoryCellStore, RowPut

THROUGH = 50
TABLE = "t"
ROWS = (b"r1", b"r2")
COLUMNS = (b"f:a", b"f:b", b"f:c")
KNOWN = (b"f:b", b"f:a")
WHOLE = KeyRange(b"", b"")
Place = tuple[bytes, bytes]
Pasts = Mapping[Place, Sequence[Cell]]

values = st.sampled_from([b"", b"v", TOMBSTONE, TOMBSTONE + b"x", TOMBSTONE * 2])
pasts = st.dictionaries(
    st.tuples(st.sampled_from(ROWS), st.sampled_from(COLUMNS)),
    st.lists(st.builds(Cell, values, st.integers(1, 100)), min_size=1, max_size=5, unique_by=lambda cell: cell[1]),
)


def store_of(pasts: Pasts) -> MemoryCellStore:
    store = MemoryCellStore()
    store.create_table(TABLE, [Family("f")])
    for (row, column), versions in pasts.items():
        for value, timestamp in versions:
            store.put(TABLE, [RowPut(row, {column: value})], timestamp)
    return store


def as_if_written(pasts: Pasts) -> MemoryCellStore:
    """What readers are to be shown, in a store: one version in place of all plain ones."""
    written = {}
    for place, versions in pasts.items():
        plain = [cell for cell in sorted(versions, key=lambda cell: cell.timestamp) if cell.timestamp <= THROUGH]
        rest = [cell for cell in versions if cell.timestamp > THROUGH]
        written[place] = [*rest, *(Cell(encode_value(cell.value), THROUGH) for cell in plain[-1:])]
    return store_of(written)


@given(pasts, st.integers(1, 102), st.integers(1, 4))
def test_each_call_shows_what_a_transaction_would_have_left(pasts: Pasts, before: int, limit: int) -> None:
    real, seen = as_if_written(pasts), PlainCells(store_of(pasts), THROUGH)
    families = [b"f"]
    for row in ROWS:
        assert seen.get(TABLE, row, families, before=before) == real.get(TABLE, row, families, before=before)
        for column in COLUMNS:
            shown = seen.versions(TABLE, row, column, before=before, limit=limit)
            assert shown == real.versions(TABLE, row, column, before=before, limit=limit)
    assert seen.get_many(TABLE, ROWS, families, before=before) == real.get_many(TABLE, ROWS, families, before=before)
    assert list(seen.scan(TABLE, WHOLE, families, before=before, batch_rows=1)) == list(
        real.scan(TABLE, WHOLE, families, before=before)
    )
    for batch_rows in (1, 2):
        scanned = seen.scan_columns(TABLE, WHOLE, families, KNOWN, before=before, batch_rows=batch_rows)
        rows = [row for batch in scanned for row in batch.rows_at(range(batch.cells.rows))]
        assert rows == list(real.scan(TABLE, WHOLE, families, before=before))


def test_of_what_a_scan_leaves_in_the_store_nothing_comes() -> None:
    seen = PlainCells(store_of({(b"r1", b"f:a"): [Cell(b"1", 7)], (b"r1", b"f:b"): [Cell(b"2", 7)]}), THROUGH)
    (batch,) = seen.scan_columns(TABLE, WHOLE, [b"f"], KNOWN, before=99, batch_rows=9, without_qualifier=b"b")
    assert batch.rows_at([0]) == [(b"r1", {b"f:a": Cell(b"1", THROUGH)})]


def test_a_table_that_was_not_adopted_is_the_store_itself() -> None:
    store = MemoryCellStore()
    assert cells_of(store, 0) is store


@pytest.mark.parametrize(
    ("writer", "outcome"),
    [
        (THROUGH, THROUGH),
        (THROUGH + 1, NOT_COMMITTED),
        (TRANSACTIONS_FROM - 1, NOT_COMMITTED),
        (TRANSACTIONS_FROM, OPEN),
        (compose(1_700_000_000_000), OPEN),
    ],
)
def test_who_went_on_without_transactions_has_committed_nothing(writer: int, outcome: int) -> None:
    assert outcome_of_plain(writer, THROUGH) == outcome
    assert outcome_of_plain(writer, 0) == OPEN


def test_no_oracle_hands_out_what_may_be_plain() -> None:
    assert wall_time_of(TRANSACTIONS_FROM).year == 1970
    milliseconds_of_the_year_3000 = 32_503_680_000_000
    assert milliseconds_of_the_year_3000 < TRANSACTIONS_FROM
