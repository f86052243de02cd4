"""How commands end: one table of exit codes, one form of errors, and no traceback for what can be foreseen."""

from __future__ import annotations

import builtins
import importlib
import json
import os
import re
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import click
import pytest
from click.testing import CliRunner, Result

from client import AccessDenied, InvalidRequest, NoPrimary, OutcomeUnknown, UpgradeNeeded
from client.errors import InvalidSettings
from fleet import CannotHandOver, NobodyServes
from lease.errors import CoordinatorUnavailable
from store import StoreUnavailable
from tests.imports import ROOT
from tests.unit.documentation.pythia import leaves
from tso.commands import main as command_line
from tso.commands.endings import BY_ERROR, Ending, ending_of
from tso.commands.main import SECTIONS, RoomCommands, main

WAIT_S = 60.0
DOCUMENTED = (ROOT / "docs" / "command-line.md").read_text()
NO_SUCH_OPTION = ("No such option '--no-such-option'", "No such option: --no-such-option")
"""As click puts it, and as it did before 8.4."""


def invoke(*arguments: str) -> Result:
    return CliRunner().invoke(main, arguments, prog_name="pythia")


@pytest.mark.parametrize("name", BY_ERROR)
def test_each_error_in_the_table_is_one(name: str) -> None:
    module, _, kind = name.rpartition(".")
    found = getattr(builtins if module == "builtins" else importlib.import_module(module), kind)
    assert issubclass(found, BaseException)
    assert f"{found.__module__}.{found.__qualname__}" == name


def raised(error: BaseException, cause: BaseException | None = None) -> BaseException:
    error.__cause__ = cause
    return error


ENDINGS: list[tuple[BaseException, Ending]] = [
    (NoPrimary(1, "x"), Ending.UNREACHABLE),
    (AccessDenied("x"), Ending.REFUSED),
    (UpgradeNeeded("x"), Ending.REFUSED),
    (CoordinatorUnavailable("x"), Ending.UNREACHABLE),
    (StoreUnavailable("x"), Ending.UNREACHABLE),
    (NobodyServes("x"), Ending.UNREACHABLE),
    (ConnectionRefusedError(), Ending.UNREACHABLE),
    (OutcomeUnknown(1, 1), Ending.UNKNOWN),
    (InvalidRequest("x"), Ending.REFUSED),
    (CannotHandOver("x"), Ending.REFUSED),
    (InvalidSettings("x"), Ending.WRONG_USE),
    (FileNotFoundError("x"), Ending.WRONG_USE),
    (click.UsageError("x"), Ending.WRONG_USE),
    (click.ClickException("x"), Ending.REFUSED),
    (raised(click.ClickException("x"), NoPrimary(1, "x")), Ending.UNREACHABLE),
    (raised(click.ClickException("x"), raised(CannotHandOver("x"), NobodyServes("x"))), Ending.REFUSED),
    (click.Abort(), Ending.INTERRUPTED),
    (KeyboardInterrupt(), Ending.INTERRUPTED),
    (BrokenPipeError(), Ending.PIPE_CLOSED),
    (ZeroDivisionError("x"), Ending.DEFECT),
]


@pytest.mark.parametrize(("error", "ending"), ENDINGS, ids=lambda value: str(value) or type(value).__name__)
def test_an_error_ends_a_command_with_its_code(error: BaseException, ending: Ending) -> None:
    assert ending_of(error) is ending


@pytest.mark.parametrize(("error", "ending"), ENDINGS, ids=lambda value: str(value) or type(value).__name__)
@pytest.mark.parametrize("as_json", [False, True])
def test_what_went_wrong_is_told_in_one_form(error: BaseException, ending: Ending, as_json: bool) -> None:
    @click.group(cls=RoomCommands)
    def group() -> None:
        """Of one command."""

    @group.command()
    @click.option("--json", "as_json", is_flag=True)
    def fail(as_json: bool) -> None:
        raise error

    ended = CliRunner().invoke(group, ["fail", *["--json"] * as_json])
    assert ended.exit_code == ending
    if ending is Ending.PIPE_CLOSED:
        assert ended.output == ""
        return
    assert ended.stdout == ""
    last = ended.stderr.splitlines()[-1]
    if as_json:
        assert json.loads(last)["exit_code"] == ending
    else:
        assert last.startswith("error: ")
    assert ("Traceback" in ended.stderr) == (ending is Ending.DEFECT)


def test_the_documentation_has_every_exit_code() -> None:
    documented = set(map(int, re.findall(r"^\| (\d+) \|", DOCUMENTED, re.MULTILINE)))
    assert documented == {int(ending) for ending in Ending}


def test_every_command_is_in_one_section_of_the_map() -> None:
    listed = [name for _, names in SECTIONS for name in names]
    assert len(set(listed)) == len(listed)
    there = set(main.list_commands(click.Context(main)))
    assert there <= set(listed), "say in tso.commands.main.SECTIONS what people do with it"
    told = invoke("--help").stdout
    assert "More:" not in told
    for name in there:
        assert re.search(rf"^  {name}  ", told, re.MULTILINE), name


@pytest.mark.parametrize("path", leaves())
def test_every_command_refuses_what_it_does_not_know_and_explains_itself(path: str) -> None:
    arguments = path.split()[1:]
    refused = invoke(*arguments, "--no-such-option")
    assert (refused.exit_code, refused.stdout) == (Ending.WRONG_USE, "")
    possible = [f"error: {what}; {path} --help says what can be given\n" for what in NO_SUCH_OPTION]
    assert refused.stderr in possible, refused.stderr
    told = invoke(*arguments, "--help")
    assert told.exit_code == Ending.DONE
    assert told.stdout.startswith(f"Usage: {path} ")


@pytest.mark.parametrize("path", leaves())
def test_every_option_says_what_it_is_for_with_default_and_unit(path: str) -> None:
    for option in leaves()[path][1].params:
        if not isinstance(option, click.Option) or option.is_flag:
            continue
        assert option.help, f"{path} {option.opts[0]} has no help"
        if isinstance(option.type, (click.types.IntParamType, click.types.FloatParamType)):
            words = f"{option.opts[0]} {option.metavar or ''} {option.help}".lower()
            assert any(unit in words for unit in UNITS), f"{path} {option.opts[0]}: in which unit? {option.help}"


UNITS = (
    "-ms", "millisecond", "second", "minute", "byte", "rows", "transactions", "port", "how often", "how many", "cells",
    "regions", "processes", "connections", "seed", "chance", "clients", "threads", "months", "commits", "faults",
    "depth", "rate", "keys", "rounds", "begins", "tables", "requests", "repeats", "times", "flights", "in flight",
    "unit", "mebibytes", "operations", "findings", "anomalies", "steps", "cores", "runs", "samples", "map,",
)  # fmt: skip
"""What a number counts."""


def test_interrupted_ends_with_130(tmp_path: Path) -> None:
    code = (
        "import signal, time, click\n"
        "from tso.commands.main import main\n"
        "@main.command()\n"
        "def wait():\n"
        "    signal.signal(signal.SIGINT, signal.default_int_handler)\n"  # what runs in the background ignores it
        "    signal.raise_signal(signal.SIGINT)\n"  # to this thread: another might take it while this one waits
        f"    time.sleep({WAIT_S})\n"
        "main(['wait'])\n"
    )
    ended = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, timeout=WAIT_S, check=False, cwd=ROOT
    )
    assert (ended.returncode, ended.stdout) == (Ending.INTERRUPTED, "")
    assert ended.stderr.strip() == "error: interrupted; what had been done by then is done"


def test_a_reader_that_has_gone_is_no_matter() -> None:
    lines = "import click\nfrom tso.commands.main import main\n@main.command()\ndef talk():\n"
    talk = "    for number in range(100_000): click.echo(number)\n"
    with subprocess.Popen(
        [sys.executable, "-c", f"{lines}{talk}main(['talk'])\n"],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        cwd=ROOT,
    ) as process:
        assert process.stdout is not None
        assert process.stderr is not None
        assert process.stdout.readline() == "0\n"
        process.stdout.close()
        assert process.wait(WAIT_S) == Ending.PIPE_CLOSED
        assert process.stderr.read() == ""


def test_where_standard_error_takes_nothing_the_code_is_the_same() -> None:
    with open("/dev/full", "w") as full:  # as on a disk that is full
        for code in ("main(['ts', 'decode', 'x'])", "main(['tso', 'drain', '--zookeeper', 'nowhere', '--json'])"):
            program = [sys.executable, "-c", f"from tso.commands.main import main; {code}"]
            buffered = {**os.environ, "PYTHONUNBUFFERED": ""}
            ended = subprocess.run(program, env=buffered, stderr=full, timeout=WAIT_S, check=False, cwd=ROOT)
            assert ended.returncode == Ending.WRONG_USE


@pytest.mark.parametrize("say", ["print", "click.echo"])
def test_where_standard_output_takes_nothing_it_is_told_once(say: str) -> None:
    """Python would try once more as it ends, and exit with a code of its own."""
    lines = f"import click\nfrom tso.commands.main import main\n@main.command()\ndef talk(): {say}('something')\n"
    with open("/dev/full", "w") as full:
        ended = subprocess.run(
            [sys.executable, "-c", f"{lines}main(['talk'])"],
            env={**os.environ, "PYTHONUNBUFFERED": ""},
            stdout=full,
            stderr=subprocess.PIPE,
            text=True,
            timeout=WAIT_S,
            check=False,
            cwd=ROOT,
        )
    assert (ended.returncode, ended.stderr) == (Ending.REFUSED, "error: [Errno 28] No space left on device\n")


def test_the_module_ends_as_the_command_does() -> None:
    command = [sys.executable, "-m", "tso", "drain", "--zookeeper", "nowhere", "--json"]
    ended = subprocess.run(command, capture_output=True, text=True, timeout=WAIT_S, check=False, cwd=ROOT)
    assert (ended.returncode, ended.stdout) == (Ending.WRONG_USE, "")
    assert json.loads(ended.stderr)["exit_code"] == Ending.WRONG_USE


def test_a_signal_has_its_number() -> None:
    assert Ending.INTERRUPTED - 128 == signal.SIGINT
    assert Ending.PIPE_CLOSED - 128 == signal.SIGPIPE


@pytest.fixture
def pythia_on_the_path(tmp_path: Path) -> Path:
    """A directory with `pythia` in it."""
    script = tmp_path / "pythia"
    script.write_text(
        f"#!{sys.executable}\nimport sys\nsys.path.insert(0, {str(ROOT)!r})\nsys.argv[0] = 'pythia'\n"
        "from tso.commands.main import main\nmain()\n"
    )
    script.chmod(0o755)
    return tmp_path


COMPLETED = {
    "pythia tx": ["txn"],
    "pythia ts enc": ["encode"],
    "pythia completion z": ["zsh"],
}


def test_bash_completes_with_the_script_that_is_printed(pythia_on_the_path: Path) -> None:
    asked = "\n".join(
        f"COMP_WORDS=({line}); COMP_CWORD={len(line.split()) - 1}; COMPREPLY=(); _pythia_completion pythia; "
        'echo "${COMPREPLY[@]}"'
        for line in COMPLETED
    )
    script = f'eval "$(pythia completion bash)"\ncomplete -p pythia >/dev/null || exit 9\n{asked}\n'
    ended = subprocess.run(
        ["bash", "--norc", "-c", script],
        capture_output=True,
        text=True,
        timeout=WAIT_S,
        check=False,
        env={"PATH": f"{pythia_on_the_path}:/usr/bin:/bin", "HOME": str(pythia_on_the_path)},
    )
    assert (ended.returncode, ended.stderr) == (0, "")
    answers = [sorted(line.split()) for line in ended.stdout.splitlines()]
    assert answers == [sorted(words) for words in COMPLETED.values()]


@pytest.mark.parametrize("shell", ["zsh", "fish"])
def test_other_shells_get_their_script(shell: str) -> None:
    told = invoke("completion", shell)
    assert told.exit_code == 0
    assert f"{command_line.COMPLETION_VARIABLE}={shell}_complete" in told.stdout


_NOBODY_THERE = ["--zookeeper", "127.0.0.1:1", "--thrift", "127.0.0.1:1"]

FORESEEABLE: list[tuple[Callable[[Path], list[str]], Ending]] = [
    (lambda here: ["config", "check", str(here)], Ending.REFUSED),
    (lambda here: ["config", "show", "--config", str(here / "none")], Ending.REFUSED),
    (lambda here: ["history", "check", str(here / "none")], Ending.WRONG_USE),
    (lambda here: ["history", "check", sys.executable], Ending.WRONG_USE),
    (lambda here: ["dev", "status", "--directory", str(here / "none")], Ending.UNREACHABLE),
    (lambda here: ["tso", "metrics", "--oracle", "127.0.0.1:1"], Ending.UNREACHABLE),
    (lambda here: ["tso", "metrics", "--oracle", "nowhere"], Ending.WRONG_USE),
    (lambda here: ["check", "--config", str(here / "none")], Ending.WRONG_USE),
    (lambda here: ["check", *_NOBODY_THERE, "--timeout-ms", "50"], Ending.REFUSED),
    (lambda here: ["check", "--thrift", "nowhere", "--oracle", "x:1"], Ending.WRONG_USE),
    (lambda here: ["check", "--timeout-ms", "0"], Ending.WRONG_USE),
    (lambda here: ["tso", "metrics"], Ending.WRONG_USE),
    (lambda here: ["tso", "status", "--zookeeper", "nowhere"], Ending.WRONG_USE),
    (lambda here: ["tso", "drain", "--zookeeper", "nowhere"], Ending.WRONG_USE),
    (lambda here: ["tso", "metrics", "--oracle", "127.0.0.1:1", "--timeout-ms", "9" * 17], Ending.WRONG_USE),
    (lambda here: ["tso", "status", "--zookeeper", "nowhere:1", "--timeout-ms", "9" * 17], Ending.WRONG_USE),
    (lambda here: ["tso", "handover", "--zookeeper", "nowhere:1", "--timeout-ms", "9" * 17], Ending.WRONG_USE),
    (lambda here: ["tso", "serve", "--thrift", "x", "--alone"], Ending.WRONG_USE),
    (lambda here: ["txn", "show", "5", "--thrift", "127.0.0.1:1", "--timeout-ms", "50"], Ending.UNREACHABLE),
    (lambda here: ["txn", "show", "5", "--thrift", "nowhere"], Ending.WRONG_USE),
    (lambda here: ["txn", "show", "five", "--thrift", "x:1"], Ending.WRONG_USE),
    (lambda here: ["snapshot", "list", "--thrift", "nowhere", "--oracle", "x:1"], Ending.WRONG_USE),
    (lambda here: ["vacuum", "--thrift", "x:1", "--oracle", "x:1", "--zookeeper", "x:1"], Ending.WRONG_USE),
    (lambda here: ["table", "list", "--thrift", "nowhere", "--zookeeper", "x:1"], Ending.WRONG_USE),
    (lambda here: ["vacuum", "--thrift", "x:1"], Ending.WRONG_USE),
    (lambda here: ["tso", "status"], Ending.WRONG_USE),
    (lambda here: ["tso", "protect"], Ending.WRONG_USE),
    (lambda here: ["upgrade", "status", "--zookeeper", "127.0.0.1:1"], Ending.WRONG_USE),
]


@pytest.mark.parametrize(("make", "ending"), FORESEEABLE)
def test_what_can_be_foreseen_is_told_without_a_traceback(
    make: Callable[[Path], list[str]], ending: Ending, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for variable in ("PYTHIA_ZOOKEEPER", "PYTHIA_ORACLE", "PYTHIA_THRIFT"):
        monkeypatch.delenv(variable, raising=False)
    ended = invoke(*make(tmp_path))
    assert ended.exit_code == ending, ended.output
    assert "Traceback" not in ended.output
    assert ended.output
