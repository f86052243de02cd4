from __future__ import annotations

import tempfile
from pathlib import Path

import pytest
from click.testing import CliRunner

from drills.commands import drill
from drills.faults import FAULTS

SERVICES = ["--zookeeper", "127.0.0.1:1", "--thrift", "127.0.0.1:1"]


def test_list_shows_every_fault() -> None:
    shown = CliRunner().invoke(drill, ["list"])
    assert shown.exit_code == 0
    for name in FAULTS:
        assert name in shown.output


@pytest.mark.parametrize(
    ("arguments", "reason"),
    [
        (["failover", "--fault", "flood"], "'flood' is not one of"),
        (["failover", "--fault", "kill", "--rounds", "0"], "0 is not in the range"),
        (["mixed", "--faults", "0"], "0 is not in the range"),
        (["failover", "--fault", "kill", *SERVICES, "--processes", "1"], "1 is not in the range 2<=x<=9"),
        (["failover", "--fault", "kill", *SERVICES, "--lease-ms", "10"], "10 is not in the range 500<=x<=60000"),
        (["failover", "--fault", "kill", *SERVICES, "--pause-ms", "-1"], "-1 is not in the range 0<=x<=10000"),
        (["writer-kill", *SERVICES, "--rounds", "0"], "0 is not in the range"),
        (["writer-kill", *SERVICES, "--rows", "0"], "0 is not in the range"),
        (["failover", "--fault", "kill", *SERVICES[:2]], "zookeeper and thrift go together"),
        (["failover", "--fault", "kill", *SERVICES, "--thrift", "a:1,b:1"], "one address of thrift, not of several"),
        (["failover", "--fault", "kill", *SERVICES, "--thrift", "kerberos://a:1"], "one that asks for no Kerberos"),
        (["failover", "--fault", "kill", *SERVICES, "--zookeeper", "a:1,b:1"], "one address of zookeeper, not of"),
    ],
)
def test_what_makes_no_drill_is_refused_in_words(
    arguments: list[str], reason: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    ended = CliRunner(env={"PYTHIA_ZOOKEEPER": "", "PYTHIA_THRIFT": ""}).invoke(drill, arguments)
    assert ended.exit_code == (2 if "range" in reason or "not one of" in reason else 1)
    assert reason in ended.output
    assert list(tmp_path.iterdir()) == []


def test_a_directory_with_files_is_not_used(tmp_path: Path) -> None:
    (tmp_path / "precious").touch()
    ended = CliRunner().invoke(drill, ["failover", "--fault", "kill", "--directory", str(tmp_path)])
    assert ended.exit_code == 1
    assert "is not empty: name a new directory" in ended.output
