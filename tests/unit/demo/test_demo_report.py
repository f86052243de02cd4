from __future__ import annotations

import io

from rich.console import Console

from demo.report import (
    Phase,
    carrier_lines,
    day_lines,
    day_name,
    flights_tables,
    mean_delay,
    phase_lines,
    phases_table,
    route_lines,
    share_cancelled,
)
from demo.summaries import Measures, Totals

BY_CARRIER: Totals = {("AA",): Measures(100, 3, 970, 2_000_000), ("UA",): Measures(400, 4, 792, 1_500_000)}
BY_ROUTE: Totals = {("JFK", "LAX"): Measures(10, 0, 30, 1), ("EWR", "IAH"): Measures(20, 0, -10, 1)}
BY_DAY: Totals = {(1, 1): Measures(842, 4, 0, 0), (2, 8): Measures(930, 472, 0, 0)}


def test_carriers_come_by_name_with_the_largest_first() -> None:
    assert carrier_lines(BY_CARRIER, {"UA": "United Air Lines Inc."}) == [
        ("United Air Lines Inc.", "400", "1.0 %", "2.0 min", "1.5 M"),
        ("AA", "100", "3.0 %", "10.0 min", "2.0 M"),
    ]


def test_routes_name_their_destination() -> None:
    assert route_lines(BY_ROUTE, {"IAH": "George Bush Intercontinental"})[0] == (
        "EWR – George Bush Intercontinental",
        "20",
        "-0.5 min",
    )


def test_days_come_with_the_most_cancellations_first() -> None:
    assert day_lines(BY_DAY)[0] == ("Fri 8 Feb", "930", "472")


def test_days_have_their_weekday() -> None:
    assert day_name(12, 31) == "Tue 31 Dec"


def test_a_row_of_cancelled_flights_has_no_delay() -> None:
    assert mean_delay(Measures(2, 2, 0, 0)) == "-"
    assert share_cancelled(Measures(2, 2, 0, 0)) == "100.0 %"


def test_phases_have_rates_where_they_have_rows() -> None:
    assert phase_lines([Phase("Spark", 4.0), Phase("months", 20.0, 50_000)]) == [
        ("Spark", "4.0 s", "", ""),
        ("months", "20.0 s", "50,000", "2,500"),
        ("all", "24.0 s", "", ""),
    ]


def test_the_tables_can_be_printed() -> None:
    console = Console(file=io.StringIO(), width=100)
    summaries = {"by_carrier": BY_CARRIER, "by_route": BY_ROUTE, "by_day": BY_DAY}
    for table in [*flights_tables(summaries, {}, {}), phases_table([Phase("Spark", 4.0)])]:
        console.print(table)
