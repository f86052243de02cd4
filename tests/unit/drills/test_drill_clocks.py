from __future__ import annotations

import subprocess
import sys
from pathlib import Path

from drills.clocks import NOTICED_SECONDS, SteppedClock, stepped
from tests.imports import ROOT

NS = 1_000_000_000
PRINTS = "import sys, time; print(sys.argv[1:], time.time(), time.time_ns(), time.monotonic(), sep='|')"


def test_a_stepped_clock_follows_its_file_and_nothing_else(tmp_path: Path) -> None:
    file = tmp_path / "clock"
    clock = SteppedClock(file)
    wall, monotonic = [1_000 * NS], [5.0]
    time_ns = stepped(file, lambda: wall[0], lambda: monotonic[0])
    assert time_ns() == 1_000 * NS
    clock.set(60)
    assert time_ns() == 1_000 * NS  # not read again yet
    monotonic[0] += 2 * NOTICED_SECONDS
    assert time_ns() == 1_060 * NS
    clock.set(-3_600)
    wall[0] += NS
    monotonic[0] += 2 * NOTICED_SECONDS
    assert time_ns() == (1_001 - 3_600) * NS


def test_a_module_runs_by_a_stepped_clock(tmp_path: Path) -> None:
    clock = SteppedClock(tmp_path / "clock")
    (tmp_path / "prints.py").write_text(PRINTS)
    clock.set(-1_000_000)
    command = clock.command("prints", "--name", "it")
    assert command[0] == sys.executable
    shown = subprocess.run(
        command, env={"PYTHONPATH": f"{ROOT}:{tmp_path}"}, capture_output=True, text=True, timeout=60, check=True
    )
    arguments, seconds, nanoseconds, monotonic = shown.stdout.split("|")
    assert arguments == "['--name', 'it']"
    assert abs(float(seconds) - int(nanoseconds) / NS) < 60
    now = subprocess.run(
        [sys.executable, "-c", PRINTS], capture_output=True, text=True, timeout=60, check=True
    ).stdout.split("|")
    assert 999_000 < float(now[1]) - float(seconds) < 1_001_000
    assert 0 < float(now[3]) - float(monotonic) < 1_000
