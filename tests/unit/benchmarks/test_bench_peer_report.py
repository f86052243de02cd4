from __future__ import annotations

import io
import json
from dataclasses import replace

from rich.console import Console

from benchmarks.peer.configuration import DEFAULT, LARGE_BATCHES, LOW_LATENCY, TIMER_1_MS
from benchmarks.peer_cases import CASES, Case
from benchmarks.peer_report import CaseResult, table
from tests.unit.benchmarks.scripted import series

CASE = Case("one", in_flight=1, configurations=(DEFAULT, TIMER_1_MS), with_hbase=True)
OURS = series("ours", 100, 200, 300, begin_us=None)
SLOW = series("default", 10, 10, 10, begin_us=10_800.0)
FAST = series("timer", 20, 50, 25, begin_us=1_400.0)


def test_the_ratio_is_the_median_over_the_rounds_beside_the_better_configuration() -> None:
    fields = CaseResult(CASE, "asyncio", OURS, (SLOW, FAST)).to_fields()
    assert (fields["name"], fields["ours"], fields["peer"]) == ("one", 200.0, 25.0)
    assert (fields["ratio"], fields["ratio_min"], fields["ratio_max"]) == (5.0, 4.0, 12.0)
    assert fields["peer_configuration"] == "timer"
    assert fields["commit_table"] == "HBase"
    ours, slow, fast = fields["sides"]
    assert "ratio" not in ours
    assert (slow["per_second"], slow["ratio"], fast["ratio"]) == (10.0, 20.0, 5.0)


def test_each_side_tells_its_rounds_latencies_and_share_of_a_core() -> None:
    ours = CaseResult(CASE, "asyncio", OURS, (SLOW, FAST)).to_fields()["sides"][0]
    assert [window["per_second"] for window in ours["rounds"]] == [100.0, 200.0, 300.0]
    assert ours["rounds"][0]["aborted"] == 1
    assert ours["whole"] == {"p50_us": 200.0, "p99_us": 400.0}
    assert ours["begin"] is None
    assert (ours["client_cpu_share"], ours["oracle_cpu_share"]) == (0.5, 0.25)
    assert ours["configuration"] == {"name": "ours"}


def test_a_ratio_that_only_the_timer_explains_is_flagged() -> None:
    result = CaseResult(CASE, "asyncio", OURS, (SLOW, FAST))
    fields = result.to_fields()
    assert fields["explained_by"] == "its 1 ms batch timer"
    assert fields["sides"][1]["explained_by"] == "its 10 ms batch timer"
    case = replace(CASE, configurations=(DEFAULT, LOW_LATENCY))
    assert CaseResult(case, "asyncio", OURS, (SLOW, FAST)).to_fields()["explained_by"] is None


def test_the_name_tells_the_front_where_a_case_has_more_than_one() -> None:
    case = replace(CASE, fronts=("columns", "asyncio"))
    fields = [CaseResult(case, front, OURS, (SLOW, FAST)).to_fields() for front in case.fronts]
    assert [(each["name"], each["our_front"]) for each in fields] == [
        ("one-columns", "columns"),
        ("one-asyncio", "asyncio"),
    ]
    assert CaseResult(CASE, "asyncio", OURS, (SLOW, FAST)).name == "one"


def test_the_object_is_json() -> None:
    fields = CaseResult(CASE, "asyncio", OURS, (SLOW, FAST)).to_fields()
    assert json.loads(json.dumps(fields, allow_nan=False)) == fields


def test_the_table_marks_the_better_configuration_and_shows_each_ratio() -> None:
    console = Console(width=130, record=True, file=io.StringIO())
    console.print(table([CaseResult(CASE, "asyncio", OURS, (SLOW, FAST))]))
    text = console.export_text()
    assert "timer ←" in text
    assert "default ←" not in text
    assert "20.00 (10.00–30.00)" in text
    assert "5.00 (4.00–12.00)" in text
    assert "explained by its 1 ms batch timer" in text


def test_every_case_has_a_name_of_its_own_and_begins_with_the_default() -> None:
    assert len({case.name for case in CASES}) == len(CASES)
    for case in CASES:
        assert case.configurations[0] == DEFAULT
        assert len(set(case.configurations)) == len(case.configurations)
        assert case.in_flight >= case.connections
    assert LARGE_BATCHES in next(case for case in CASES if case.name == "hbase-1024").configurations
