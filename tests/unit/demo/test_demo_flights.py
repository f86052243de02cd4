from __future__ import annotations

import importlib.util
import zipfile
from pathlib import Path

import pytest

from demo import flights
from demo.errors import DataMissing
from demo.summaries import SUMMARIES, Measures, summarise, total


def write(directory: Path, lines: list[str]) -> None:
    columns = (
        "month,day,flight,sched_dep_time,dep_time,dep_delay,sched_arr_time,arr_time,arr_delay,air_time,distance,"
        "carrier,origin"
    )
    with zipfile.ZipFile(directory / "flights.csv.zip", "w") as archive:
        archive.writestr("flights.csv", "\n".join([columns, *lines]))


@pytest.fixture
def package(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr(flights, "data_directory", lambda: tmp_path)
    return tmp_path


def test_the_package_has_the_flights_of_a_year() -> None:
    year = flights.read_flights()
    assert len(year) == 336_776
    assert all(
        total(summarise(year, summary)) == Measures(336_776, 8_255, 4_152_200, 350_217_607) for summary in SUMMARIES
    )


def test_each_month_has_late_flights_and_others() -> None:
    year = flights.read_flights()
    late = year[flights.is_late(year)]
    assert late["month"].nunique() == flights.MONTHS
    assert set(late["carrier"]) == {flights.LATE_CARRIER}
    assert 0 < len(late) < len(year) / 100


def test_only_the_months_asked_for_are_read() -> None:
    assert set(flights.read_flights(2)["month"]) == {1, 2}


@pytest.mark.parametrize(
    ("name", "rows"), [("airlines", 16), ("airports", 1_458), ("planes", 3_322), ("weather", 26_115)]
)
def test_the_package_has_the_small_tables(name: str, rows: int) -> None:
    assert len(flights.read_reference(name)) == rows


def test_flights_that_share_a_key_are_refused(package: Path) -> None:
    line = "1,1,1545,515,517,2,819,830,11,227,1400,UA,EWR"
    write(package, [line, line])
    with pytest.raises(DataMissing, match="2 flights share their month, day, carrier, flight, origin"):
        flights.read_flights()


def test_missing_values_stay_missing(package: Path) -> None:
    write(package, ["1,1,1545,515,NA,NA,819,NA,NA,NA,1400,UA,EWR"])
    read = flights.read_flights()
    assert read["dep_delay"].isna().tolist() == [True]
    assert read["carrier"].tolist() == ["UA"]


def test_a_file_that_is_not_there_is_named(package: Path) -> None:
    with pytest.raises(DataMissing, match=r"airlines\.csv"):
        flights.read_reference("airlines")


def test_the_missing_package_is_named_with_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)
    with pytest.raises(DataMissing, match=r"pythia-tso\[demo\]"):
        flights.data_directory()
