from __future__ import annotations

import io
import json

from rich.console import Console

from benchmarks.comparison import BEGIN_P50, RATE, WHOLE_P99, Comparison
from benchmarks.comparison_table import table
from benchmarks.presenting import distinct
from tests.unit.benchmarks.scripted import series

BASE = series("base", 10, 10, 20)
STEP = series("step", 40, 20, 20)


def test_the_ratio_is_of_the_quantity_and_formed_within_rounds() -> None:
    fields = Comparison("case", STEP, BASE, RATE, {"more": 1}).to_fields()
    assert (fields["ours"], fields["beside"], fields["ratio"]) == (20.0, 10.0, 2.0)
    assert (fields["ratio_min"], fields["ratio_max"], fields["more"]) == (1.0, 4.0, 1)
    assert [side["name"] for side in fields["sides"]] == ["step", "base"]
    slow = series("slow", 1, 1, 1, begin_us=300.0)
    fields = Comparison("case", slow, BASE, BEGIN_P50).to_fields()
    assert (fields["quantity"], fields["ours"], fields["beside"], fields["ratio"]) == (
        "begin p50 µs",
        300.0,
        100.0,
        3.0,
    )
    assert json.loads(json.dumps(fields, allow_nan=False)) == fields


def test_who_cannot_tell_a_begin_is_compared_by_the_whole() -> None:
    echo = series("echo", 1, 1, 1, begin_us=None)
    assert Comparison("case", BASE, echo, BEGIN_P50).to_fields()["beside"] == 200.0


def test_the_table_shows_a_series_once_and_every_ratio() -> None:
    console = Console(width=190, record=True, file=io.StringIO())
    comparisons = [Comparison("a", STEP, BASE), Comparison("b", STEP, BASE, WHOLE_P99)]
    console.print(table("title", comparisons))
    lines = console.export_text().splitlines()
    assert sum("0.50 + 0.25" in line for line in lines) == 2
    assert "2.00 (1.00–4.00)" in next(line for line in lines if "step" in line)
    assert any("1.00 (1.00–1.00)" in line and "whole p99 µs" in line and "base" in line for line in lines)


def test_a_picture_has_each_series_once() -> None:
    comparisons = [Comparison("a", STEP, BASE), Comparison("b", STEP, BASE, WHOLE_P99)]
    assert [each.side for each in distinct(comparisons)] == ["base", "step"]
