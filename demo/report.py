"""What the demo shows at its end: which rows, and how they are set out. Pure."""

from __future__ import annotations

import calendar
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from rich.columns import Columns
from rich.console import RenderableType
from rich.table import Table

from demo.flights import YEAR
from demo.summaries import BY_CARRIER, BY_DAY, BY_ROUTE, Key, Measures, Totals

CARRIERS_SHOWN: Final = 10
ROUTES_SHOWN: Final = 5
DAYS_SHOWN: Final = 5

Line = tuple[str, ...]


@dataclass(slots=True)
class Phase:
    """A part of the demo and how long it took; ``rows`` that it wrote or compared, where it did."""

    title: str
    seconds: float = 0.0
    rows: int = 0


def share_cancelled(measures: Measures) -> str:
    """Cancelled flights in percent of all."""
    return f"{100 * measures.cancelled / measures.flights:.1f} %"


def mean_delay(measures: Measures) -> str:
    """Minutes of departure delay for each flight that departed."""
    departed = measures.flights - measures.cancelled
    return f"{measures.delay_minutes / departed:.1f} min" if departed else "-"


def carrier_lines(totals: Totals, names: Mapping[str, str]) -> list[Line]:
    """The carriers with the most flights."""
    return [
        (
            names.get(str(key[0]), str(key[0])),
            f"{measures.flights:,}",
            share_cancelled(measures),
            mean_delay(measures),
            f"{measures.distance_miles / 1e6:,.1f} M",
        )
        for key, measures in _most(totals, "flights", CARRIERS_SHOWN)
    ]


def route_lines(totals: Totals, names: Mapping[str, str]) -> list[Line]:
    """The routes with the most flights."""
    return [
        (f"{key[0]} – {names.get(str(key[1]), str(key[1]))}", f"{measures.flights:,}", mean_delay(measures))
        for key, measures in _most(totals, "flights", ROUTES_SHOWN)
    ]


def day_lines(totals: Totals) -> list[Line]:
    """The days with the most cancelled flights."""
    return [
        (day_name(int(key[0]), int(key[1])), f"{measures.flights:,}", f"{measures.cancelled:,}")
        for key, measures in _most(totals, "cancelled", DAYS_SHOWN)
    ]


def day_name(month: int, day: int) -> str:
    """Such as ``Sat 9 Feb``."""
    weekday = calendar.day_abbr[calendar.weekday(YEAR, month, day)]
    return f"{weekday} {day} {calendar.month_abbr[month]}"


def phase_lines(phases: Sequence[Phase]) -> list[Line]:
    """The phases with their times and rates, and the sum."""
    lines = [
        (
            phase.title,
            f"{phase.seconds:.1f} s",
            f"{phase.rows:,}" if phase.rows else "",
            f"{phase.rows / phase.seconds:,.0f}" if phase.rows and phase.seconds else "",
        )
        for phase in phases
    ]
    return [*lines, ("all", f"{sum(phase.seconds for phase in phases):.1f} s", "", "")]


def _most(totals: Totals, measure: str, count: int) -> list[tuple[Key, Measures]]:
    return sorted(totals.items(), key=lambda row: (-getattr(row[1], measure), row[0]))[:count]


def flights_tables(
    summaries: Mapping[str, Totals], carriers: Mapping[str, str], airports: Mapping[str, str]
) -> list[RenderableType]:
    """What was loaded, for a person to look at."""
    by_carrier = _table(
        "Largest carriers",
        ("carrier", "flights", "cancelled", "mean delay", "miles"),
        carrier_lines(summaries[BY_CARRIER.name], carriers),
    )
    by_route = _table(
        "Busiest routes", ("route", "flights", "mean delay"), route_lines(summaries[BY_ROUTE.name], airports)
    )
    by_day = _table("Days with most cancellations", ("day", "flights", "cancelled"), day_lines(summaries[BY_DAY.name]))
    return [by_carrier, Columns([by_route, by_day])]


def phases_table(phases: Sequence[Phase]) -> RenderableType:
    """Where the time went."""
    return _table("Time", ("phase", "time", "rows", "rows/s"), phase_lines(phases))


def _table(title: str, headings: Sequence[str], lines: Sequence[Line]) -> Table:
    table = Table(title=title, title_justify="left")
    for number, heading in enumerate(headings):
        table.add_column(heading, justify="right" if number else "left")
    for line in lines:
        table.add_row(*line)
    return table
