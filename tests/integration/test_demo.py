"""The demo as a person runs it, on real services, with a month or two."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path
from typing import Protocol

import pytest

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
