from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from benchmarks import vacuum_command
from benchmarks.commands import bench
from benchmarks.sides import SideError
from benchmarks.vacuum_command import draw, fields_of
from drills import vacuuming
from drills.installation import Plan
from drills.vacuuming import Vacuumed
from tests.unit.drills.test_vacuuming import found


@pytest.mark.parametrize(
    ("arguments", "reason"),
    [
        (["--minutes", "0"], "0.0 is not in the range"),
        (["--pause-ms", "-1"], "-1 is not in the range"),
        (["--zookeeper", "127.0.0.1:1"], "give both --zookeeper and --thrift"),
        (["--plot", "vacuum.unknown"], "has to end in a format for pictures"),
    ],
)
def test_what_cannot_be_is_refused_before_anything_begins(arguments: list[str], reason: str) -> None:
    ended = CliRunner(env={"PYTHIA_ZOOKEEPER": "", "PYTHIA_THRIFT": ""}).invoke(bench, ["vacuum", *arguments])
    assert ended.exit_code in (1, 2)
    assert reason in ended.output


def test_what_stays_is_told_beside_what_there_would_be_without_vacuums() -> None:
    fields = json.loads(json.dumps(fields_of(found(100, 150, 160))))
    rows, versions = fields["cases"]
    assert rows == {"name": "rows of the commit table", "ours": 160.0, "peer": 5_000.0, "ratio": 0.032}
    assert versions == {"name": "versions of a column", "ours": 3.0, "peer": 51.0, "ratio": 0.0588}
    assert (fields["vacuums"], fields["anomalies"], fields["changed_snapshots"], fields["harms"]) == (3, 0, 0, {})
    assert fields["samples"][-1][fields["samples_are"].index("commit_rows")] == 160
    assert fields_of(found())["cases"] == []


@pytest.mark.parametrize(("made", "exit_code"), [(found(5, 5, 5), 0), (found(5, 5, 5, changed=("t: …",)), 1)])
def test_it_ends_with_one_where_there_was_harm(
    made: Vacuumed, exit_code: int, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    asked: list[tuple[Plan, float]] = []

    def run(plan: Plan, seconds: float, **others: Any) -> Vacuumed:
        asked.append((plan, seconds))
        return made

    monkeypatch.setattr(vacuuming, "run", run)
    monkeypatch.setattr(vacuum_command, "describe_machine", lambda: {"cores": 2})
    services = ["--zookeeper", "127.0.0.1:1", "--thrift", "127.0.0.1:2"]
    picture = tmp_path / "vacuum.svg"
    ended = CliRunner().invoke(bench, ["vacuum", "--minutes", "2", "--json", "--plot", str(picture), *services])
    assert ended.exit_code == exit_code
    assert json.loads(ended.stdout.splitlines()[-1])["vacuums"] == 3
    ((plan, seconds),) = asked
    assert (plan.zookeeper, plan.thrift, seconds) == ("127.0.0.1:1", "127.0.0.1:2", 120.0)
    assert "<svg" in picture.read_text(encoding="utf-8")


def test_a_picture_that_cannot_be_written_is_told(tmp_path: Path) -> None:
    with pytest.raises(SideError, match="missing"):
        draw(tmp_path / "missing" / "vacuum.svg", found(1))
