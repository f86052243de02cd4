"""The peer for a moment: Omid's released jars really start, stay on loopback, take load, and leave nothing behind."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.imports import ROOT
from tests.integration.conftest import COMPILING_SECONDS_MAX

pytestmark = [
    pytest.mark.integration,
    pytest.mark.usefixtures("compiled"),
    pytest.mark.timeout(COMPILING_SECONDS_MAX),
]

PROGRAM = [sys.executable, "-m", "benchmarks"]
RUN_SECONDS_MAX = 280.0


def test_the_smallest_case_is_measured_and_nothing_stays(tmp_path: Path) -> None:
    # Beside other tests a whole window of two seconds once went by without a commit.
    short = ["--rounds", "1", "--seconds", "5", "--warm-up-seconds", "2"]
    run = subprocess.run(
        [*PROGRAM, "peer", "--case", "in-memory-1", *short, "--json"],
        cwd=ROOT,
        env=os.environ | {"TMPDIR": str(tmp_path)},
        capture_output=True,
        text=True,
        timeout=RUN_SECONDS_MAX,
        check=False,
    )
    assert run.returncode == 0, run.stderr
    case = json.loads(run.stdout.splitlines()[-1])["cases"][0]
    peers = {side["configuration"]["name"]: side for side in case["sides"] if "version" in side["configuration"]}
    assert sorted(peers) == ["default", "low latency"]
    assert case["peer"] == max(side["per_second"] for side in peers.values())
    assert peers["default"]["explained_by"] == "its 10 ms batch timer"
    for side in peers.values():
        window = side["rounds"][0]
        assert window["transactions"] > 0
        # Two random cells out of 2^40 do not meet again in five seconds.
        assert window["aborted"] == 0
        assert side["begin"]["p50_us"] < side["whole"]["p50_us"]
        assert side["client_cpu_share"] > 0
        assert side["oracle_cpu_share"] > 0
    assert list(tmp_path.iterdir()) == []
    assert not [entry for entry in Path("/proc").glob("[0-9]*/cmdline") if str(tmp_path) in _text(entry)]


def _text(command_line: Path) -> str:
    try:
        return command_line.read_bytes().decode(errors="replace")
    except OSError:  # it has ended meanwhile
        return ""
