from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from benchmarks import growth_command
from benchmarks.commands import bench
from benchmarks.our_oracle import OurOracle
from benchmarks.sides import Side
from devcluster.guard import Guard
from tests.unit.benchmarks.scripted import Call, Scripted

SHORT = ["--rounds", "2", "--seconds", "1", "--warm-up-seconds", "1"]


@pytest.fixture
def calls(monkeypatch: pytest.MonkeyPatch) -> list[Call]:
    for name in ("PYTHIA_ZOOKEEPER", "PYTHIA_THRIFT"):
        monkeypatch.delenv(name, raising=False)
    calls: list[Call] = []

    def side(front: str, oracle: OurOracle, guard: Guard, processes: int = 1) -> Side:
        del oracle, guard
        # Two windows of warm-up for each step, then both rounds.
        return Scripted(f"{front} by {processes}", calls, *[100] * 4, 10, 30, 10, 50)

    monkeypatch.setattr(growth_command, "OurSide", side)
    return calls


def invoke(arguments: Sequence[str]) -> Result:
    return CliRunner().invoke(bench, ["growth", *arguments])


def test_steps_are_measured_beside_the_first_in_turn(calls: list[Call]) -> None:
    result = invoke(["in-flight", "--step", "1", "--step", "16", *SHORT, "--json"])
    assert result.exit_code == 0, result.output
    (case,) = json.loads(result.stdout.splitlines()[-1])["cases"]
    assert (case["name"], case["ours"], case["beside"], case["ratio"]) == ("16", 40.0, 10.0, 4.0)
    assert (case["in_flight"], case["cells_per_second"]) == (16, 80)
    rounds = [what for _, what, _ in calls if "window" in what][4:]
    assert rounds == ["window 1 2 1", "window 16 2 1"] * 2
    assert "a second" in result.stdout


def test_load_processes_go_to_the_side(calls: list[Call]) -> None:
    arguments = ["connections", "--step", "1", "--step", "64", "--load-processes", "2", *SHORT]
    assert invoke(arguments).exit_code == 0
    assert {name for name, _, _ in calls} == {"asyncio by 2"}
    assert calls[-2][1] == "window 512 2 64"


@pytest.mark.parametrize(
    ("arguments", "reason"),
    [
        (["connections", "--front", "columns"], "not to be seen through columns: use asyncio or threads"),
        (["in-flight", "--step", "4"], "at least two"),
        (["in-flight", "--thrift", "t:1"], "both --zookeeper and --thrift"),
    ],
)
def test_what_shows_nothing_is_refused_before_anything_starts(
    calls: list[Call], arguments: list[str], reason: str
) -> None:
    result = invoke(arguments)
    assert result.exit_code == 2
    assert reason in " ".join(result.stderr.split())
    assert calls == []


def test_a_plot_is_written(calls: list[Call], tmp_path: Path) -> None:
    path = tmp_path / "growth.svg"
    result = invoke(["in-flight", "--step", "1", "--step", "16", *SHORT, "--plot", str(path)])
    assert result.exit_code == 0, result.output
    assert calls
    assert path.exists()
