"""What ``pythia bench spark`` makes of the seconds that it took, and the tables that its sides write to."""

from __future__ import annotations

import pytest

from benchmarks.spark_command import DEFERRED, PLAIN, ROW_BY_ROW, WITHOUT, WRITTEN, Measured
from benchmarks.spark_jobs import Taken, renamed
from client.spark import KeyColumn, TableMapping, ValueColumn

TAKEN = {
    DEFERRED: [Taken(2, 1, 1), Taken(3, 1, 1), Taken(2, 1, 1)],
    WRITTEN: [Taken(4, 1, 3), Taken(4, 2, 3), Taken(4, 3, 6)],
    WITHOUT: [Taken(1, 1, 4), Taken(1, 1, 4), Taken(4, 1, 8)],
    PLAIN: [Taken(2, 2, 1), Taken(2, 2, 1), Taken(4, 2, 2)],
}


def test_costs_are_ratios_of_seconds_and_speeds_are_their_inverse() -> None:
    row_by_row = [Taken(8, 4, 6), Taken(12, 4, 6), Taken(8, 4, 12)]
    cases = list(Measured("flights", "columns", 1_000, {**TAKEN, ROW_BY_ROW: row_by_row}).cases())
    deferred, written, without = cases[:3]
    assert deferred["name"] == "flights, columns: write, shadow cells deferred, beside plain"
    assert (deferred["ratio"], deferred["ratio_min"], deferred["ratio_max"]) == (1.0, 0.5, 1.5)
    assert (written["ratio"], without["ratio"]) == (2.0, 0.5)
    assert (written["ours"], written["peer"], written["rounds"]) == (250.0, 500.0, 3)
    reads = {case["name"]: case["ratio"] for case in cases[3:7]}
    assert reads == {
        "flights, columns: read, shadow cells written, beside plain": 1.0,
        "flights, columns: read, no shadow cells, beside plain": 0.5,
        "flights, columns: read again, shadow cells written, beside plain": 3.0,
        "flights, columns: read again, no shadow cells, beside plain": 4.0,
    }
    assert [(case["ratio"], case["ratio_is"]) for case in cases[7:]] == [(2.0, "times as fast")] * 3


def test_a_layout_without_the_job_row_by_row_has_no_such_case() -> None:
    assert [case["ratio_is"] for case in Measured("narrow", "packed", 10, TAKEN).cases()] == [
        "seconds of ours / seconds beside"
    ] * 7


@pytest.mark.parametrize("packed", [False, True])
def test_each_side_writes_to_a_table_of_its_own_with_the_same_layout(packed: bool) -> None:
    mapping = TableMapping("t", ("k",), (KeyColumn("k", "int"), ValueColumn("v", "int")), packed=packed)
    first, second = renamed(mapping), renamed(mapping)
    assert first.table != second.table
    assert (first.columns, first.packed) == (mapping.columns, packed)
