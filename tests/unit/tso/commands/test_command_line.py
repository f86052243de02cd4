"""The command line: what a person sees, also when something is wrong."""

from __future__ import annotations

import errno
import json
import os
import socket
import subprocess
import sys
from collections.abc import Coroutine
from importlib.metadata import EntryPoint

import click
import pytest
from click.testing import CliRunner

from tso.commands import main as command_line
from tso.commands import serve as commands
from tso.commands.endings import Ending


def entry(name: str, value: str) -> EntryPoint:
    return EntryPoint(name, value, command_line.GROUP)


ENTRIES = [
    entry("ts", "tso.commands.timestamps:ts"),
    entry("demo", "no_such_package.commands:demo"),
    entry("tso", "tso.commands.serve:tso"),
    entry("odd", "tso.commands.serve:json"),
]


@pytest.fixture(autouse=True)
def _installed(monkeypatch: pytest.MonkeyPatch) -> None:
    def entries(*, group: str, name: str | None = None) -> list[EntryPoint]:
        assert group == command_line.GROUP
        return [found for found in ENTRIES if name in (None, found.name)]

    monkeypatch.setattr(command_line, "entry_points", entries)


def invoke(*arguments: str) -> tuple[int, str]:
    result = CliRunner().invoke(command_line.main, arguments)
    return result.exit_code, result.output


def test_commands_of_the_rooms_are_found() -> None:
    assert invoke("ts", "decode", str(1000 << 18 | 5)) == (
        0,
        "1970-01-01T00:00:01.000+00:00  milliseconds 1000  counter 5\n",
    )


def test_help_lists_all_commands_and_survives_a_broken_one() -> None:
    code, output = invoke("--help")
    assert code == 0
    assert "decode" in output
    assert "demo" in output
    assert "not available" in output


@pytest.mark.parametrize("arguments", [("demo",), ("demo", "run", "--fast"), ("demo", "--help")])
def test_a_command_whose_packages_are_missing_says_so_when_it_is_used(arguments: tuple[str, ...]) -> None:
    code, output = invoke(*arguments)
    assert code == 1
    assert "no_such_package" in output
    assert "pip install 'pythia-tso[demo]'" in output


def test_only_an_extra_that_there_is_is_suggested(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(globals(), "ENTRIES", [entry("table", "no_such_package.commands:table")])
    code, output = invoke("table", "list")
    assert code == 1
    assert output.endswith("pip install 'pythia-tso[spark]'\n")


def test_an_entry_point_that_is_no_command_is_told() -> None:
    code, output = invoke("odd")
    assert code == 1
    assert "no command" in output


def test_an_unknown_command_is_told() -> None:
    code, output = invoke("nothing")
    assert code == 2
    assert "No such command" in output


@pytest.mark.parametrize("timestamp", [str(2**63), "x", "1.5"])
def test_a_timestamp_that_is_none_is_told(timestamp: str) -> None:
    code, output = invoke("ts", "decode", timestamp)
    assert code == 2
    assert output.startswith("error: ")


def test_a_time_is_encoded_and_decoded_again() -> None:
    code, output = invoke("ts", "encode", "2026-11-22T13:00:00.250+01:00", "--json")
    assert code == 0
    told = json.loads(output)
    assert told["last"] - told["first"] == 2**18 - 1
    for each in ("first", "last"):
        code, output = invoke("ts", "decode", str(told[each]), "--json")
        assert json.loads(output)["time"] == "2026-11-22T12:00:00.250+00:00"


@pytest.mark.parametrize("time", ["2026-11-22T12:00:00", "noon", "1969-12-31T23:59:59Z", "9999-12-31T23:59:59Z", ""])
def test_a_time_that_is_none_is_told(time: str) -> None:
    code, output = invoke("ts", "encode", time)
    assert (code, output.count("\n")) == (2, 1)
    assert "TIME" in output


@pytest.mark.parametrize(
    ("option", "reason"),
    [
        (("--listen", "nowhere"), "host:port"),
        (("--lease-ms", "1"), "lease_ms"),
        (("--limit", "speed=9"), "there is no limit"),
        (("--limit", "\udcff"), "there is no limit '\\udcff'"),
        (("--rest-token-file", "t"), "rest_token_file is for REST, but there is no REST: give rest_listen, too"),
        (("--rest-tls-authority-file", "a"), "rest_tls_authority_file is for REST, but there is no REST"),
        (("--rest-shadow-cells", "in_background"), "rest_shadow_cells is for REST, but there is no REST"),
        (("--rest-shadow-cells", "later"), "written, in_background"),
        (("--listen", "0.0.0.0:1"), "advertise"),
        (("--zookeeper", "z"), "[oracle] zookeeper: ZooKeeper's hosts are"),
        (("--rest-limit", "connections_max=5"), "the flag --rest-limit: connections_max is a limit of REST"),
    ],
)
def test_wrong_options_of_serve_are_told_in_one_line(option: tuple[str, str], reason: str) -> None:
    result = CliRunner().invoke(commands.tso, ["serve", "--zookeeper", "z:1", "--thrift", "t:1", *option])
    assert result.exit_code == Ending.WRONG_USE
    assert result.output.startswith("error: ")
    assert reason in result.output


@pytest.mark.parametrize("command", ["status", "handover", "metrics", "drain"])
def test_what_cannot_be_shown_of_oneself_is_told_before_anybody_is_asked(command: str) -> None:
    result = invoke("tso", command, "--zookeeper", "127.0.0.1:1", "--tls-certificate-file", "c")
    assert result == (
        Ending.WRONG_USE,
        "error: tls_certificate_file is nothing without tls_authority_file: who signs the certificates\n",
    )


def test_a_wrong_limit_of_rest_is_told_before_anything_listens() -> None:
    serve = ["serve", "--alone", "--thrift", "t:1", "--rest-listen", "127.0.0.1:0"]
    result = CliRunner().invoke(commands.tso, [*serve, "--rest-limit", "foo=1"])
    assert result.exit_code == Ending.WRONG_USE
    assert "the flag --rest-limit, [oracle.rest_limits] foo: there is no limit 'foo'" in result.output
    assert "REST on" not in result.output


def test_a_place_that_is_wrong_is_not_said_to_be_missing() -> None:
    result = CliRunner().invoke(commands.tso, ["serve", "--zookeeper", "z", "--thrift", "t:1"])
    assert "neither is there" not in result.output


@pytest.mark.parametrize("trouble", [errno.ENOSPC, errno.EIO, errno.EPIPE], ids=["disk full", "terminal gone", "pipe"])
def test_an_oracle_serves_on_where_nobody_takes_its_lines(monkeypatch: pytest.MonkeyPatch, trouble: int) -> None:
    """They are said by the thread that keeps the lease, as it takes it over."""

    def nowhere(*_: object) -> None:
        raise OSError(trouble, "no")

    monkeypatch.setattr(click, "echo", nowhere)
    commands._say("primary, epoch 5")


def test_what_a_locale_has_no_letter_for_is_shown_all_the_same() -> None:
    shown = subprocess.run(
        [sys.executable, "-c", "from tso.commands.main import main; main()", "tso", "status", "--help"],
        env=os.environ | {"PYTHONIOENCODING": "latin-1"},
        capture_output=True,
        check=True,
        timeout=60,
    )
    assert b"HOST:PORT[,\\u2026]" in shown.stdout


def test_rest_has_the_limits_the_logs_and_the_choice_of_shadow_cells_of_its_oracle(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    given: list[str] = []
    sockets: list[socket.socket] = []

    def rest_process(listening: socket.socket, options: list[str]) -> None:
        sockets.append(listening)
        given.extend(options)

    def not_there(*_: object) -> None:
        raise OSError("HBase is not there")

    monkeypatch.setattr(commands, "RestProcess", rest_process)
    monkeypatch.setattr(commands, "HBaseCellStore", not_there)
    monkeypatch.setattr(commands, "configure_logs", lambda *_: None)
    serve = ["serve", "--alone", "--thrift", "t:1", "--rest-listen", "127.0.0.1:0"]
    environment = {"PYTHIA_REST_LIMITS": "threads_max=3"}
    chosen = ["--log-format", "json", "--log-level", "debug", "--rest-shadow-cells", "in_background"]
    result = CliRunner().invoke(commands.tso, [*serve, *chosen], env=environment)
    sockets.pop().close()
    assert "HBase is not there" in result.output
    log = ["--log-level", "debug", "--log-format", "json"]
    assert given[-8:] == ["--shadow-cells", "in_background", *log, "--limit", "threads_max=3"]


def test_a_defect_while_it_serves_is_no_mistake_of_an_operator(monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(serving: Coroutine[object, object, int]) -> int:
        serving.close()
        raise ValueError("not enough values to unpack")

    monkeypatch.setattr(commands, "_run", broken)
    result = CliRunner().invoke(commands.tso, ["volatile"])
    assert result.exit_code == Ending.DEFECT
    assert "Traceback" in result.stderr
    assert "a defect in Pythia" in result.stderr


def test_a_volatile_oracle_has_the_limits_of_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(commands, "configure_logs", lambda *_: None)
    monkeypatch.setattr(commands, "_run", lambda serving: serving.close())
    result = CliRunner().invoke(commands.tso, ["volatile"], env={"PYTHIA_LIMITS": "speed=9"})
    assert result.exit_code == Ending.WRONG_USE
    assert "there is no limit 'speed'" in result.output


def test_serve_names_its_environment_variables_and_limits() -> None:
    output = CliRunner().invoke(commands.tso, ["serve", "--help"]).output
    for text in ("PYTHIA_ZOOKEEPER", "PYTHIA_THRIFT", "PYTHIA_LEASE_MS", "2000", "conflict_map_entries_max=4000000"):
        assert text in output


def test_options_come_from_the_environment() -> None:
    environment = {"PYTHIA_ZOOKEEPER": "z:1", "PYTHIA_THRIFT": "t:1", "PYTHIA_LIMITS": "speed=9"}
    result = CliRunner().invoke(commands.tso, ["serve"], env=environment)
    assert "there is no limit 'speed'" in result.output


def test_the_groups_are_click_groups() -> None:
    assert isinstance(commands.tso, click.Group)
    assert sorted(commands.tso.commands) == [
        "drain", "handover", "history", "metrics", "protect", "serve", "status", "volatile",
    ]  # fmt: skip
