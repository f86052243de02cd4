"""Processes of a drill end with it, whatever becomes of it."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from devcluster.guard import Guard
from drills.children import Child, python
from drills.errors import ChildFailed, DrillStalled
from drills.waiting import wait_until
from tests.imports import ROOT

LIMIT_SECONDS = 60.0
ECHO = [sys.executable, "-c", "import sys\nprint('ready')\nfor line in sys.stdin: print(line.strip() + '!')"]
STUBBORN = [
    sys.executable,
    "-c",
    "import signal, time\nsignal.signal(signal.SIGTERM, lambda *_: exit(7))\nprint('ready')\ntime.sleep(600)",
]


@pytest.fixture
def guard() -> Iterator[Guard]:
    with Guard() as guard:
        yield guard


def started(command: list[str], log: Path, guard: Guard) -> tuple[Child, list[str]]:
    heard: list[str] = []
    child = Child("the child", command, log, guard, take=lambda line, at_ns: heard.append(line))
    wait_until(lambda: "ready" in heard, "the child to start", LIMIT_SECONDS, explain=child.tail)
    return child, heard


def is_alive(pid: int) -> bool:
    try:
        state = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except (FileNotFoundError, ProcessLookupError):
        return False
    return state not in "ZX"


def test_a_child_listens_and_is_heard(tmp_path: Path, guard: Guard) -> None:
    child, heard = started(ECHO, tmp_path / "log", guard)
    child.send("hello")
    wait_until(lambda: "hello!" in heard, "an answer", LIMIT_SECONDS)
    assert child.is_running()
    child.kill()
    assert not child.is_running()
    child.kill()
    with pytest.raises(ChildFailed, match="exit code -9 but does not listen"):
        child.send("hello")


def test_the_last_line_of_a_child_may_come_after_its_end(tmp_path: Path, guard: Guard) -> None:
    heard: list[str] = []
    let_go = threading.Event()

    def take(line: str, at_ns: int) -> None:
        let_go.wait(LIMIT_SECONDS)
        heard.append(line)

    child = Child("the child", [sys.executable, "-c", "print('done')"], tmp_path / "log", guard, take=take)
    wait_until(lambda: not child.is_running(), "it to end", LIMIT_SECONDS)
    assert not child.has_said_all()
    let_go.set()
    wait_until(child.has_said_all, "its last line", LIMIT_SECONDS)
    assert heard == ["done"]
    child.kill()


def test_a_stopped_child_is_asked_to_end(tmp_path: Path, guard: Guard) -> None:
    child, _ = started(STUBBORN, tmp_path / "log", guard)
    child.send_signal(signal.SIGSTOP)
    assert child.is_running()
    assert child.end() == 7


def test_what_a_child_says_on_its_way_out_is_in_the_failure(tmp_path: Path, guard: Guard) -> None:
    child = Child("the child", python("no_such_module"), tmp_path / "log", guard)
    wait_until(lambda: not child.is_running(), "it to end", LIMIT_SECONDS)
    assert "exit code 1 but did nothing" in str(child.failure("did nothing"))
    assert "No module named no_such_module" in child.tail()
    child.kill()


def test_whoever_waits_in_vain_says_what_for() -> None:
    with pytest.raises(DrillStalled, match=r"waited 0 s for better times, in vain\nall is as it was"):
        wait_until(lambda: False, "better times", 0.0, explain=lambda: "all is as it was")


DRILL = """
import os, sys
from pathlib import Path
from drills.children import Child
from devcluster.guard import Guard

guard = Guard()
children = [Child(f"child {number}", sys.argv[2:], Path(sys.argv[1]), guard) for number in range(2)]
children[0].send_signal(19)
print(*(child.pid for child in children), guard._process.pid, flush=True)
sys.stdin.read()
"""


def test_a_drill_that_is_killed_leaves_no_process_behind(tmp_path: Path) -> None:
    command = [sys.executable, "-c", DRILL, str(tmp_path / "log"), *STUBBORN]
    with subprocess.Popen(command, cwd=ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as drill:
        assert drill.stdout is not None
        pids = [int(pid) for pid in drill.stdout.readline().split()]
        assert all(map(is_alive, pids))
        os.kill(drill.pid, signal.SIGKILL)
        drill.wait(LIMIT_SECONDS)
        wait_until(lambda: not any(map(is_alive, pids)), "the guard to end them and itself", LIMIT_SECONDS)


def test_a_command_that_undoes_something_is_run_at_the_end_even_after_one_that_fails(tmp_path: Path) -> None:
    with Guard() as guard:
        guard.watch_command(["false"])
        guard.watch_command(["nowhere-to-be-found"])
        guard.watch_command(["touch", str(tmp_path / "undone")])
        assert not (tmp_path / "undone").exists()
    assert (tmp_path / "undone").exists()
