from __future__ import annotations

import json

from rich.console import Console

from drills.outages import Outage, Struck
from drills.report import HARMS_SHOWN_MAX, Report
from drills.verdict import Verdict
from tests.unit.drills.recorded import window

WIDTH = 140


def report(verdict: Verdict, gaps_ms: tuple[float, ...] = (1_800.04, 2_100.0, 90.0)) -> Report:
    names = ("kill", "kill", "handover")
    return Report(
        struck=[Struck(number, name, "tso-1", window(0, 1), 1) for number, name in enumerate(names, 1)],
        outages=[Outage(gap_ms, None, gap_ms + 10) for gap_ms in gaps_ms],
        verdict=verdict,
        flights={"committed": 24, "Conflict": 6},
        left_out={"kill-hbase": "the services were given"},
        processes=3,
        lease_ms=2_000,
        seed=5,
        transactions=1_234,
        commits=700,
        commits_per_second=81.26,
        quiet_gap_ms=80.0,
        seconds=33.3,
    )


def shown(what: object) -> str:
    console = Console(width=WIDTH)
    with console.capture() as capture:
        console.print(what)
    return capture.get()


def test_the_json_has_what_is_promised() -> None:
    fields = json.loads(json.dumps(report(Verdict(in_flight=[10, 11, 12])).to_fields()))
    assert {name: fields[name] for name in ("faults", "in_flight_at_failover", "lease_ms", "failovers")} == {
        "faults": 3,
        "in_flight_at_failover": 33,
        "lease_ms": 2_000,
        "failovers": 3,
    }
    harms = ("anomalies", "lost_commits", "duplicate_timestamps", "deposed_answers", "aborted_by_failover")
    assert [fields[name] for name in harms] == [0] * 5
    assert fields["outage_ms"] == {"p50": 1_800.0, "p99": 2_100.0, "max": 2_100.0}
    assert fields["by_fault"]["kill"] == {
        "times": 2,
        "failovers": 2,
        "outage_ms": {"p50": 1_800.0, "p99": 2_100.0, "max": 2_100.0},
    }
    assert fields["each"][2]["outage_ms"] == 90.0
    assert fields["each"][2]["first_begin_ms"] is None
    assert fields["left_out"] == {"kill-hbase": "the services were given"}
    assert fields["harms"] == {}


def test_harm_is_counted_in_full_and_shown_in_part() -> None:
    verdict = Verdict(
        aborted_by_failover=[f"transaction {number} was aborted" for number in range(20)],
        in_flight=[10, 11, 12],
        aborted_at={1: 20},
    )
    fields = report(verdict).to_fields()
    assert fields["aborted_by_failover"] == 20
    assert len(fields["harms"]["aborted_by_failover"]) == HARMS_SHOWN_MAX
    assert [each["aborted_by_failover"] for each in fields["each"]] == [0, 20, 0]
    table = shown(report(verdict).harms_table())
    assert "aborted by failover" in table
    assert "transaction 0 was aborted" in table


def test_the_table_has_a_row_for_each_kind_of_fault_and_one_for_all() -> None:
    table = shown(report(Verdict(in_flight=[10, 11, 12])).table())
    rows = [line.replace("│", " ").split() for line in table.splitlines() if "│" in line]
    assert rows == [
        ["kill", "2", "2", "21", "0", "1,800", "2,100", "2,100", "1,810"],
        ["handover", "1", "1", "12", "0", "90", "90", "90", "100"],
        ["all", "3", "3", "33", "0", "1,800", "2,100", "2,100", "1,810"],
    ]


def test_what_was_left_out_is_said() -> None:
    assert "LEFT OUT: kill-hbase: the services were given" in report(Verdict()).lines()
