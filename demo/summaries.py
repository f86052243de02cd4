"""The summaries that the demo keeps, how they follow from flights, and how two of them are compared. Pure.

Every measure is a whole number, so that a comparison is exact. ``summarise`` is the reference: the Spark job and the
late writer reach the same totals by adding, month by month.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, NamedTuple

import pandas as pd

Key = tuple[str | int, ...]


class Measures(NamedTuple):
    """What is counted for a carrier, a route or a day.

    ``cancelled``: flights that never departed. ``delay_minutes``: the sum of the departure delays, where an early
    departure counts as negative. ``distance_miles``: scheduled, cancelled flights included.
    """

    flights: int = 0
    cancelled: int = 0
    delay_minutes: int = 0
    distance_miles: int = 0

    def plus(self, other: Measures) -> Measures:
        """Measure by measure."""
        return Measures(*(mine + theirs for mine, theirs in zip(self, other, strict=True)))


MEASURES: Final = Measures._fields

Totals = dict[Key, Measures]
"""One summary: its rows by key."""


@dataclass(frozen=True, slots=True)
class Summary:
    """A summary table: ``name``, and the columns by which flights are grouped."""

    name: str
    keys: tuple[str, ...]


BY_CARRIER: Final = Summary("by_carrier", ("carrier",))
BY_ROUTE: Final = Summary("by_route", ("origin", "dest"))
BY_DAY: Final = Summary("by_day", ("month", "day"))
SUMMARIES: Final = (BY_CARRIER, BY_ROUTE, BY_DAY)

SUMMARISED_COLUMNS: Final = ("month", "day", "carrier", "origin", "dest", "dep_delay", "distance")
"""The columns of ``flights`` that the summaries follow from."""


def summarise(flights: pd.DataFrame, summary: Summary) -> Totals:
    """The summary of these flights. A flight without a departure delay never departed."""
    measured = pd.DataFrame(
        {
            **{key: flights[key] for key in summary.keys},
            "flights": 1,
            "cancelled": flights["dep_delay"].isna().astype("int64"),
            "delay_minutes": flights["dep_delay"].fillna(0).astype("int64"),
            "distance_miles": flights["distance"].astype("int64"),
        }
    )
    sums = measured.groupby(list(summary.keys))[list(MEASURES)].sum()
    keys = sums.index.tolist()
    rows = sums.to_numpy().tolist()
    return {_key(key): Measures(*row) for key, row in zip(keys, rows, strict=True)}


def _key(value: Any) -> Key:
    return value if isinstance(value, tuple) else (value,)


def added(stored: Totals, new: Totals) -> Totals:
    """The rows of ``new``, each plus what is stored for it."""
    return {key: stored.get(key, Measures()).plus(measures) for key, measures in new.items()}


def total(totals: Totals) -> Measures:
    """The sum of all rows."""
    sums = Measures()
    for measures in totals.values():
        sums = sums.plus(measures)
    return sums


@dataclass(frozen=True, slots=True)
class Difference:
    """A row of a summary that is not what it has to be; ``None`` where there is no row."""

    summary: str
    key: Key
    expected: Measures | None
    found: Measures | None

    def __str__(self) -> str:
        name = f"{self.summary} {'/'.join(map(str, self.key))}"
        if self.expected is None:
            return f"{name}: there is a row ({_spelled(self.found)}), and not one flight of it"
        if self.found is None:
            return f"{name}: the row is missing, with {_spelled(self.expected)}"
        unequal = [
            f"{found:,} {_worded(measure)} instead of {expected:,}"
            for measure, expected, found in zip(MEASURES, self.expected, self.found, strict=True)
            if expected != found
        ]
        return f"{name}: {', '.join(unequal)}"


def differences(summary: Summary, expected: Totals, found: Totals) -> list[Difference]:
    """Every row that differs, in the order of the keys."""
    return [
        Difference(summary.name, key, expected.get(key), found.get(key))
        for key in sorted(expected.keys() | found.keys())
        if expected.get(key) != found.get(key)
    ]


def disagreements(summaries: Mapping[str, Totals]) -> list[str]:
    """Where the summaries disagree on the sum of all flights: they summarise the same ones in different ways."""
    sums = {name: total(totals) for name, totals in summaries.items()}
    first, expected = next(iter(sums.items()))
    return [
        f"{name} sums up to {_spelled(found)}, {first} to {_spelled(expected)}"
        for name, found in sums.items()
        if found != expected
    ]


def shown(lines: Sequence[object], lines_max: int = 3) -> str:
    """The first lines, and how many more there are."""
    more = [f"and {len(lines) - lines_max:,} more"] if len(lines) > lines_max else []
    return "\n".join(f"  {line}" for line in [*lines[:lines_max], *more])


def counted(count: int, thing: str) -> str:
    """Such as ``1 conflict`` or ``2,000 rows``."""
    return f"{count:,} {thing}{'' if count == 1 else 's'}"


def _spelled(measures: Measures | None) -> str:
    counted = zip(MEASURES, measures or Measures(), strict=True)
    return ", ".join(f"{count:,} {_worded(measure)}" for measure, count in counted)


def _worded(measure: str) -> str:
    return {"delay_minutes": "minutes of delay", "distance_miles": "miles"}.get(measure, measure)
