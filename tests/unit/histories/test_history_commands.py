"""``pythia history``: exit codes, and what a person or a script gets to read."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from client import ClientSettings, TransactionManager
from histories import History, Recorder
from histories.commands import history as history_command
from histories.files import load, load_key_value, save, save_key_value
from histories.workloads import WORKLOADS, Workload
from tests.unit.histories.made_up import committed, history, reader

FIRST = committed(2, 1, 3, "w x 2")
GOOD = history(FIRST, reader(9, 8, "r x 2"))
BAD = history(FIRST, reader(9, 8, "r x -"), reader(10, 8, "r x 7"))
SERVICES = ["--zookeeper", "127.0.0.1:1", "--thrift", "127.0.0.1:1"]


def invoke(*arguments: object) -> Result:
    return CliRunner().invoke(history_command, [str(argument) for argument in arguments])


def kept(path: Path, recorded: History) -> Path:
    save(recorded, path)
    return path


def test_a_good_history_exits_with_0(tmp_path: Path) -> None:
    ended = invoke("check", kept(tmp_path / "good", GOOD))
    assert ended.exit_code == 0
    assert ended.output == "2 transactions: 2 committed\nsnapshot isolated\n"


def test_a_bad_history_exits_with_1_and_says_why(tmp_path: Path) -> None:
    ended = invoke("check", kept(tmp_path / "bad", BAD), "--show", 1)
    assert ended.exit_code == 1
    lines = ended.output.splitlines()
    assert lines[1].strip().startswith("missing version: transaction 9 with snapshot 8 read nothing from key 'x'")
    assert lines[2].strip() == (
        "… 2 in all: 1 × a committed version was not found; 1 × a value that nobody wrote was read"
    )
    assert lines[3] == "NOT snapshot isolated"


def test_findings_as_json(tmp_path: Path) -> None:
    ended = invoke("check", kept(tmp_path / "bad", BAD), "--json")
    assert ended.exit_code == 1
    told = json.loads(ended.output)
    assert told["transactions"] == 3
    assert [(each["kind"], each["transactions"], each["key"]) for each in told["anomalies"]] == [
        ("missing_version", [9, 2], "x"),
        ("unwritten_read", [10], "x"),
    ]


def test_several_files_are_parts_of_one_history(tmp_path: Path) -> None:
    parts = [kept(tmp_path / f"{number}", history(each)) for number, each in enumerate(GOOD.transactions)]
    assert invoke("check", parts[1]).exit_code == 1
    assert invoke("check", *parts).exit_code == 0


def test_the_promise_of_the_workload_is_checked_as_well(tmp_path: Path) -> None:
    accounts = ", ".join(f"r account/{number:03d} -" for number in range(7))
    writer = committed(2, 1, 3, "w account/007 2 170")
    bank = History((writer, reader(9, 8, f"{accounts}, r account/007 2 170")), workload="bank")
    ended = invoke("check", kept(tmp_path / "bank", bank))
    assert ended.exit_code == 1
    assert "invariant: transaction 9 saw 870 in all, not 800" in ended.output


@pytest.mark.parametrize(
    ("content", "options", "says"),
    [
        ("", [], "no line with"),
        ('{"format": "pythia history"', [], "line 1: not JSON"),
        ("{}", ["--kv"], "a JSON array is needed"),
        ('{"format": "pythia history", "version": 1, "workload": "other", "ids_are_timestamps": true}', [], "'other'"),
    ],
)
def test_a_file_without_a_history_exits_with_2(tmp_path: Path, content: str, options: list[str], says: str) -> None:
    (tmp_path / "file").write_text(content)
    ended = invoke("check", tmp_path / "file", *options)
    assert ended.exit_code == 2
    assert says in ended.output


def test_a_missing_file_exits_with_2(tmp_path: Path) -> None:
    assert invoke("check", tmp_path / "none").exit_code == 2
    assert invoke("export", tmp_path / "none", "--out", tmp_path / "out").exit_code == 2


def test_a_history_is_exported_and_checked_in_the_public_form(tmp_path: Path) -> None:
    for name, recorded, expected in (("good", GOOD, 0), ("bad", BAD, 1)):
        exported = tmp_path / f"{name}.json"
        ended = invoke("export", kept(tmp_path / name, recorded), "--out", exported)
        assert (ended.exit_code, ended.output) == (0, f"{len(recorded.transactions)} transactions: "
                                                      f"{len(recorded.transactions)} committed\n")  # fmt: skip
        assert invoke("check", "--kv", exported).exit_code == expected
    save_key_value(GOOD, tmp_path / "again.json")
    assert load_key_value(tmp_path / "again.json") == load_key_value(tmp_path / "good.json")
    assert invoke("export", tmp_path / "good", "--out", tmp_path / "no" / "such").exit_code == 1


@pytest.fixture
def connected(manager: TransactionManager, monkeypatch: pytest.MonkeyPatch) -> TransactionManager:
    """Whoever connects gets the manager of the test."""

    def connect(settings: ClientSettings) -> TransactionManager:
        return manager

    monkeypatch.setattr(TransactionManager, "connect", connect)
    return manager


def test_a_workload_is_recorded_and_its_table_is_dropped(connected: TransactionManager, tmp_path: Path) -> None:
    before = set(connected.store.table_names())
    out = tmp_path / "history"
    ended = invoke("record", *SERVICES, "--workload", "write-skew", "--seconds", 0.5, "--threads", 2, "--out", out)
    assert ended.exit_code == 0, ended.output
    recorded = load(out)
    assert recorded.workload == "write-skew"
    assert f"{len(recorded.transactions):,} transactions: " in ended.output
    assert "0 outcomes unknown; services failed 0 steps" in ended.output
    assert set(connected.store.table_names()) == before
    checked = invoke("check", out)
    assert checked.exit_code == 0
    assert "write skew, which snapshot isolation allows, was seen" in checked.output


def test_a_full_recorder_ends_the_run_and_the_table_can_be_kept(connected: TransactionManager, tmp_path: Path) -> None:
    out = tmp_path / "history"
    ended = invoke(
        "record", *SERVICES, "--workload", "bank", "--seconds", 600, "--transactions-max", 20, "--keep-table",
        "--out", out,
    )  # fmt: skip
    assert ended.exit_code == 0, ended.output
    assert "ended early, 20 transactions were recorded; table history_bank_" in ended.output
    table = ended.output.rsplit("table ", 1)[1].strip()
    assert table in connected.store.table_names()
    assert len(load(out).transactions) == 20


def test_what_was_recorded_before_an_error_is_saved(
    connected: TransactionManager, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(workload: Workload, recorder: Recorder) -> None:
        connected.catalog.entry("no such table")

    monkeypatch.setattr(WORKLOADS["register"], "final_state", fail)
    out = tmp_path / "history"
    ended = invoke("record", *SERVICES, "--workload", "register", "--seconds", 0.3, "--out", out)
    assert ended.exit_code == 1
    assert "no such table" in ended.output
    assert load(out).transactions


def test_a_file_that_cannot_be_written_is_known_before_anything_runs(
    connected: TransactionManager, tmp_path: Path
) -> None:
    out = tmp_path / "no" / "such"
    ended = invoke("record", *SERVICES, "--workload", "bank", "--seconds", 600, "--out", out)
    assert ended.exit_code == 1
    assert str(out) in ended.output
