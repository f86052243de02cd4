"""What the commands make of what was measured."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from click.testing import CliRunner

from benchmarks import availability_command, compiled_command, surroundings, two_oracles
from benchmarks.begins_command import ahead_fields
from benchmarks.commands import bench
from benchmarks.compiled_code import Code
from benchmarks.contest import Series
from benchmarks.large_command import large_fields, notes_of
from benchmarks.large_side import LargeCommit
from benchmarks.latency_command import BESIDE_LOAD, ECHO, IDLE, ONE, ONE_HBASE, comparisons, load_fields
from benchmarks.our_oracle import OurOracle
from benchmarks.sides import Services, Side
from devcluster.guard import Guard
from tests.unit.benchmarks.scripted import Call, Scripted, series, window


def test_latencies_are_beside_the_echo_and_hbase_beside_none_too() -> None:
    measured = {name: series(name, 10) for name in (ECHO, IDLE, BESIDE_LOAD, ONE, ONE_HBASE)}
    load = load_fields([{"transactions": 10, "seconds": 2.0, "cpu_seconds": 1.0}])
    found = comparisons(measured, load)
    assert [(each.ours.side, each.beside.side, each.quantity.name) for each in found] == [
        (IDLE, ECHO, "begin p50 µs"),
        (IDLE, ECHO, "begin p99 µs"),
        (BESIDE_LOAD, ECHO, "begin p50 µs"),
        (BESIDE_LOAD, ECHO, "begin p99 µs"),
        (ONE, ECHO, "whole p50 µs"),
        (ONE, ECHO, "whole p99 µs"),
        (ONE_HBASE, ECHO, "whole p50 µs"),
        (ONE_HBASE, ECHO, "whole p99 µs"),
        (ONE_HBASE, ONE, "whole p50 µs"),
    ]
    assert found[2].extra == {"load_beside_per_second": 5.0, "load_beside_cpu_share": 0.5}
    assert found[0].extra == {}


def test_how_far_time_ran_ahead_is_the_worst_of_the_rounds() -> None:
    ours = Series("ours", {}, tuple(replace(window(1), ahead_ms=ahead) for ahead in (-3.0, 2.0, -1.0)))
    other = Series("other", {}, (replace(window(1), ahead_ms=-7.0),))
    assert ahead_fields(ours, other) == {"ahead_ms_max": 2.0, "beside_ahead_ms_max": -7.0}


def test_large_commits_tell_the_worst_overlap_and_every_fate_of_an_older_transaction() -> None:
    commits = [LargeCommit(2.0, 1.0, 1.0, "COMMITTED", "COMMITTED"), LargeCommit(4.0, 1.0, 0.5, "COMMITTED", "TOO_OLD")]
    fields = large_fields(commits, (2**20, 3 * 2**20))
    assert fields == {
        "large_seconds": 3.0,
        "large_client_cpu_share": 0.375,
        "overlap_min": 0.5,
        "older_transactions": ["COMMITTED", "TOO_OLD"],
        "peak_mebibytes_before": 1.0,
        "peak_mebibytes_after": 3.0,
    }
    assert any("COMMITTED, TOO_OLD" in note for note in notes_of(fields))


def test_a_lease_is_beside_none_on_the_same_services(monkeypatch: pytest.MonkeyPatch) -> None:
    calls: list[Call] = []
    asked: list[tuple[Services | None, int | None]] = []

    def oracle(
        directory: Path, guard: Guard, services: Services | None, *, code: Code, lease_ms: int | None = None
    ) -> OurOracle:
        asked.append((services, lease_ms))
        return OurOracle(directory, guard, services, lease_ms=lease_ms, code=code)

    def side(front: str, oracle: OurOracle, guard: Guard) -> Side:
        del guard
        return Scripted(str(oracle.configuration["lease"]), calls, *[10] * 100)

    monkeypatch.setattr(availability_command, "OurOracle", oracle)
    monkeypatch.setattr(availability_command, "OurSide", side)
    short = ["--rounds", "1", "--seconds", "1", "--warm-up-seconds", "1", "--in-flight", "8"]
    result = CliRunner().invoke(bench, ["availability", *short, "--zookeeper", "z:1", "--thrift", "t:2"])
    assert result.exit_code == 0, result.output
    given = Services("z:1", "t:2")
    assert asked == [(given, 10_000), (given, None)]
    assert [name for name, what, _ in calls if what == "window 8 2 1"][-2:] == ["10000 ms, with a standby", "none"]
    assert "1.00 (1.00–1.00)" in result.stdout


def test_compiled_code_is_beside_what_is_installed(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    calls: list[Call] = []

    def side(front: str, oracle: OurOracle, guard: Guard) -> Side:
        del guard
        return Scripted(f"{front}, {oracle.configuration['code']}", calls, *[10] * 100)

    monkeypatch.setattr(two_oracles, "OurSide", side)
    short = ["--rounds", "1", "--seconds", "1", "--warm-up-seconds", "1"]
    refused = CliRunner().invoke(bench, ["compiled", *short])
    assert refused.exit_code != 0
    assert "nothing can be compiled here" in refused.output
    monkeypatch.setattr(surroundings, "compiled_code", lambda progress: Code(tmp_path))
    result = CliRunner().invoke(bench, ["compiled", *short])
    assert result.exit_code == 0, result.output
    assert {name for name, _, _ in calls} == {
        f"{load.front}, {code}" for load in compiled_command.LOADS for code in ("compiled", "as installed")
    }


def test_an_oracle_that_is_awake_is_beside_one_that_sleeps(monkeypatch: pytest.MonkeyPatch) -> None:
    calls: list[Call] = []

    def side(front: str, oracle: OurOracle, guard: Guard) -> Side:
        del guard
        return Scripted(f"{front}, {oracle.configuration['limits']}", calls, *[10] * 100)

    monkeypatch.setattr(two_oracles, "OurSide", side)
    short = ["--rounds", "1", "--seconds", "1", "--warm-up-seconds", "1"]
    result = CliRunner().invoke(bench, ["awake", *short])
    assert result.exit_code == 0, result.output
    windows = {(name, what) for name, what, _ in calls if what.startswith("window")}
    fronts = (("asyncio", "1 2 1"), ("threads", "16 2 1"), ("asyncio", "64 2 1"), ("asyncio", "64 2 64"))
    limits = ("defaults", "awake_us_max=0")
    assert windows == {(f"{front}, {limit}", f"window {what}") for front, what in fronts for limit in limits}
    assert "1.00 (1.00–1.00)" in result.stdout
