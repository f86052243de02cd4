"""One axis of growth for a moment: a real oracle is loaded by a real load process, and nothing stays."""

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

RUN_SECONDS_MAX = 200.0


def test_an_axis_is_measured_and_nothing_stays(tmp_path: Path) -> None:
    program = [sys.executable, "-m", "benchmarks", "growth", "in-flight", "--step", "1", "--step", "16"]
    run = subprocess.run(
        [*program, "--rounds", "1", "--seconds", "1", "--warm-up-seconds", "0.5", "--json"],
        cwd=ROOT,
        env=os.environ | {"TMPDIR": str(tmp_path)},
        capture_output=True,
        text=True,
        timeout=RUN_SECONDS_MAX,
        check=False,
    )
    assert run.returncode == 0, run.stderr
    (case,) = json.loads(run.stdout.splitlines()[-1])["cases"]
    assert (case["name"], case["in_flight"]) == ("16", 16)
    for side in case["sides"]:
        window = side["rounds"][0]
        assert window["transactions"] > 0
        # Two random cells out of 2^40 do not meet again in a second.
        assert window["aborted"] == 0
        assert side["begin"]["p50_us"] < side["whole"]["p50_us"]
        assert side["client_cpu_share"] > 0
        assert side["oracle_cpu_share"] > 0
    assert list(tmp_path.iterdir()) == []
