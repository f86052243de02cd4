from __future__ import annotations

import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as some

from demo.summaries import (
    BY_CARRIER,
    BY_DAY,
    BY_ROUTE,
    SUMMARIES,
    SUMMARISED_COLUMNS,
    Measures,
    Summary,
    Totals,
    added,
    differences,
    disagreements,
    shown,
    summarise,
    total,
)

FLIGHTS = [
    (1, 1, "AA", "JFK", "LAX", 10, 2475),
    (1, 1, "AA", "JFK", "LAX", None, 2475),
    (1, 2, "UA", "EWR", "IAH", -3, 1400),
]

a_flight = some.tuples(
    some.integers(1, 12),
    some.integers(1, 28),
    some.sampled_from(["AA", "UA", "9E"]),
    some.sampled_from(["JFK", "EWR"]),
    some.sampled_from(["LAX", "IAH"]),
    some.none() | some.integers(-60, 1500),
    some.integers(1, 5000),
)


def frame(flights: list[tuple[int, int, str, str, str, int | None, int]]) -> pd.DataFrame:
    columns = pd.DataFrame(flights, columns=list(SUMMARISED_COLUMNS))
    return columns.astype({"dep_delay": "Int16", "month": "Int8", "day": "Int8"})


def test_a_summary_counts_and_adds_up() -> None:
    flights = frame(FLIGHTS)
    assert summarise(flights, BY_CARRIER) == {("AA",): Measures(2, 1, 10, 4950), ("UA",): Measures(1, 0, -3, 1400)}
    assert summarise(flights, BY_ROUTE)[("JFK", "LAX")] == Measures(2, 1, 10, 4950)
    assert summarise(flights, BY_DAY)[(1, 2)] == Measures(1, 0, -3, 1400)


def test_a_summary_of_no_flights_is_empty() -> None:
    assert summarise(frame([]), BY_ROUTE) == {}


@given(some.lists(a_flight, max_size=20), some.lists(a_flight, max_size=20), some.sampled_from(SUMMARIES))
def test_adding_part_by_part_gives_the_summary_of_all(
    first: list[tuple[int, int, str, str, str, int | None, int]],
    second: list[tuple[int, int, str, str, str, int | None, int]],
    summary: Summary,
) -> None:
    stored = summarise(frame(first), summary)
    stored.update(added(stored, summarise(frame(second), summary)))
    assert stored == summarise(frame(first + second), summary)


@given(some.lists(a_flight, min_size=1, max_size=20))
def test_all_summaries_have_the_same_total(flights: list[tuple[int, int, str, str, str, int | None, int]]) -> None:
    summaries = {summary.name: summarise(frame(flights), summary) for summary in SUMMARIES}
    assert disagreements(summaries) == []
    assert total(summaries["by_day"]).flights == len(flights)


def test_adding_gives_only_the_rows_that_change() -> None:
    stored: Totals = {("AA",): Measures(1, 0, 5, 100), ("UA",): Measures(1, 0, 0, 100)}
    assert added(stored, {("AA",): Measures(1, 1, 0, 50)}) == {("AA",): Measures(2, 1, 5, 150)}


def test_equal_summaries_do_not_differ() -> None:
    flights = frame(FLIGHTS)
    assert differences(BY_DAY, summarise(flights, BY_DAY), summarise(flights, BY_DAY)) == []


@pytest.mark.parametrize(
    ("expected", "found", "text"),
    [
        (
            Measures(2, 0, 5, 1000),
            Measures(1, 0, 7, 1000),
            "by_carrier AA: 1 flights instead of 2, 7 minutes of delay instead of 5",
        ),
        (
            Measures(2, 0, 5, 1000),
            None,
            "by_carrier AA: the row is missing, with 2 flights, 0 cancelled, 5 minutes of delay, 1,000 miles",
        ),
        (
            None,
            Measures(1, 1, 0, 9),
            "by_carrier AA: there is a row (1 flights, 1 cancelled, 0 minutes of delay, 9 miles), and not one flight "
            "of it",
        ),
    ],
)
def test_a_difference_is_told_in_words(expected: Measures | None, found: Measures | None, text: str) -> None:
    found_by_key: Totals = {} if found is None else {("AA",): found}
    expected_by_key: Totals = {} if expected is None else {("AA",): expected}
    (difference,) = differences(BY_CARRIER, expected_by_key, found_by_key)
    assert str(difference) == text


def test_summaries_of_different_flights_disagree() -> None:
    found = disagreements(
        {"by_carrier": {("AA",): Measures(2, 0, 0, 0)}, "by_day": {(1, 1): Measures(1, 0, 0, 0)}, "by_route": {}}
    )
    assert [line.partition(" ")[0] for line in found] == ["by_day", "by_route"]


def test_only_the_first_lines_are_shown() -> None:
    assert shown(["a", "b", "c"], 3) == "  a\n  b\n  c"
    assert shown(["a", "b", "c", "d", "e"], 2) == "  a\n  b\n  and 3 more"
