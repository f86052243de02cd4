from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

import pandas as pd
import pytest

from client.spark import row_key
from demo.flights import read_reference
from demo.summaries import BY_DAY, BY_ROUTE, Measures, Summary, Totals
from demo.tables import (
    REFERENCE_KEYS,
    TableNames,
    frame_of_totals,
    mapping_of_flights,
    mapping_of_frame,
    mapping_of_summary,
    put_frame,
    read_summary,
    scan_frame,
)
from store.columns import CellColumns


class Rows:
    """A table in memory: what of a transaction and a snapshot the demo's reading and writing use."""

    def __init__(self) -> None:
        self.rows: dict[bytes, dict[bytes, bytes]] = {}

    def put(self, table: str, row: bytes, values: Mapping[bytes, bytes]) -> None:
        self.rows[row] = dict(values)

    def scan_columns(
        self,
        table: str,
        known: Sequence[bytes],
        *,
        prefix: bytes = b"",
        columns: Sequence[bytes] | None = None,
        batch_rows: int = 500,
    ) -> Iterator[CellColumns]:
        rows = [row for row in sorted(self.rows) if row.startswith(prefix)]
        yield CellColumns.of_values(tuple(known), rows, [self.rows[row] for row in rows])


@pytest.fixture
def flights() -> pd.DataFrame:
    return pd.DataFrame(
        {
            "month": [1, 1],
            "day": [2, 1],
            "carrier": ["UA", "AA"],
            "flight": [1545, 1],
            "origin": ["EWR", "JFK"],
            "dest": ["IAH", "LAX"],
            "dep_delay": [None, -3],
            "distance": [1400, 2475],
        }
    ).astype({"month": "Int8", "day": "Int8", "flight": "Int32", "dep_delay": "Int16", "distance": "Int32"})


def test_rows_come_back_in_the_order_of_their_keys_with_their_types(flights: pd.DataFrame) -> None:
    mapping, rows = mapping_of_flights("flights", flights), Rows()
    put_frame(rows, mapping, flights)
    found = scan_frame(rows, mapping, ["day", "carrier", "dep_delay", "distance"])
    assert found["day"].tolist() == [1, 2]
    assert found["carrier"].tolist() == ["AA", "UA"]
    assert found["distance"].tolist() == [2475, 1400]
    assert found["dep_delay"].isna().tolist() == [False, True]


def test_a_scan_can_be_of_the_rows_with_a_prefix(flights: pd.DataFrame) -> None:
    mapping, rows = mapping_of_flights("flights", flights), Rows()
    put_frame(rows, mapping, flights)
    assert scan_frame(rows, mapping, ["day"], prefix=row_key(mapping, 1, 2))["day"].tolist() == [2]


def test_what_is_missing_has_no_cell(flights: pd.DataFrame) -> None:
    rows = Rows()
    put_frame(rows, mapping_of_flights("flights", flights), flights)
    assert sorted(b"f:dep_delay" in values for values in rows.rows.values()) == [False, True]


@pytest.mark.parametrize(
    ("summary", "totals"),
    [
        (BY_DAY, {(1, 31): Measures(1, 0, -7, 500), (2, 1): Measures(2, 1, 2**40, 0)}),
        (BY_ROUTE, {("EWR", "IAH"): Measures(0, 0, 0, 193)}),
        (BY_ROUTE, {}),
    ],
)
def test_a_summary_comes_back_as_it_was_written(flights: pd.DataFrame, summary: Summary, totals: Totals) -> None:
    mapping, rows = mapping_of_summary(summary.name, flights, summary), Rows()
    put_frame(rows, mapping, frame_of_totals(totals, summary))
    assert read_summary(rows, mapping, summary) == totals


@pytest.mark.parametrize("name", list(REFERENCE_KEYS))
def test_the_small_tables_keep_every_row(name: str) -> None:
    frame = read_reference(name).tail(500)
    mapping, rows = mapping_of_frame(name, frame, REFERENCE_KEYS[name]), Rows()
    put_frame(rows, mapping, frame)
    assert len(rows.rows) == len(frame)


def test_two_demos_have_different_tables() -> None:
    assert TableNames("one_").of("flights") != TableNames("two_").of("flights")
    assert TableNames().of("flights") == "flights"
