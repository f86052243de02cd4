"""The demo as a person runs it, on real services, with a month or two."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path
from typing import Protocol

import pytest

from drills.waiting import wait_until

DEMO_SECONDS_MAX = 600
"""On a machine that gave these tests a quarter of what they have elsewhere, a month took a minute and a half."""
ENDING_SECONDS_MAX = 30
pytestmark = [
    pytest.mark.integration,
    pytest.mark.with_spark,
    pytest.mark.timeout(DEMO_SECONDS_MAX + 2 * ENDING_SECONDS_MAX),
]


class Services(Protocol):
    @property
    def zookeeper(self) -> str: ...

    @property
    def thrift(self) -> str: ...


def run_demo(services: Services, directory: Path, *options: str) -> subprocess.CompletedProcess[str]:
    program = [sys.executable, "-c", "from demo.commands import demo; demo()"]
    place = ["--zookeeper", services.zookeeper, "--thrift", services.thrift, "--directory", str(directory)]
    command = [*program, *place, *options]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as running:
        try:
            output, errors = running.communicate(timeout=DEMO_SECONDS_MAX)
        except subprocess.TimeoutExpired:
            running.terminate()  # upon which it ends its oracles, as it could not if it were killed
            output, errors = running.communicate(timeout=ENDING_SECONDS_MAX)
        finally:
            running.kill()
    return subprocess.CompletedProcess(command, running.returncode, output, errors)


def running_children(pid: int) -> set[int]:
    return {int(child) for child in Path(f"/proc/{pid}/task/{pid}/children").read_text(encoding="ascii").split()}


def serves(log: Path) -> bool:
    return log.exists() and "serving on" in log.read_text()


def runs(pid: int) -> bool:
    """Whether there is such a process, which somebody may have yet to bury."""
    try:
        return Path(f"/proc/{pid}/stat").read_text(encoding="ascii").rpartition(")")[2].split()[0] not in "ZX"
    except OSError:
        return False


def test_what_a_demo_started_ends_with_it_even_where_it_is_killed(tmp_path: Path) -> None:
    """With a ZooKeeper and an HBase of its own, in the moment in which its oracles serve."""
    program = [sys.executable, "-c", "from demo.commands import demo; demo()", "--directory", str(tmp_path)]
    logs = [tmp_path / "logs" / f"oracle-{number}.log" for number in (1, 2)]
    with subprocess.Popen(program, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as demo:
        try:
            wait_until(lambda: all(map(serves, logs)) or demo.poll() is not None, "both oracles", DEMO_SECONDS_MAX)
            started = running_children(demo.pid)
        finally:
            demo.kill()
    assert len(started) >= len(["HBase", "the gateway", "two", "oracles", "who ends them"])
    wait_until(lambda: not any(map(runs, started)), "the end of all that it started", 2 * ENDING_SECONDS_MAX)


def test_the_reader_catches_tables_that_spark_writes_in_two_transactions(services: Services, tmp_path: Path) -> None:
    ended = run_demo(services, tmp_path, "--months", "1", "--split-transactions")
    assert ended.returncode == 0, ended.stdout + ended.stderr
    assert "CAUGHT" in ended.stdout
    assert "the row is missing" in ended.stdout


def test_a_month_whose_primary_is_killed_is_loaded_as_any_other(services: Services, tmp_path: Path) -> None:
    ended = run_demo(services, tmp_path, "--months", "2", "--kill-primary")
    assert ended.returncode == 0, ended.stdout + ended.stderr
    assert "Primary oracle killed 1 time" in ended.stdout
    assert "February: oracle-" in ended.stdout
    assert "no difference" in ended.stdout
    assert re.search(r"\d conflicts?, each run again", ended.stdout)
    assert "and the long transaction. Aborted by a real conflict with a month: 2 attempts" in ended.stdout
    assert "5 transactions committed" in ended.stdout
    assert "Every row of 3 summaries equals" in ended.stdout
