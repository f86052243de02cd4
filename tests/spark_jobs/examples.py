"""The examples as processes of their own, as their first lines say."""

from __future__ import annotations

import subprocess
import sys

from client import ClientSettings
from tests.imports import ROOT
from tests.integration.command_processes import environment_of
from tests.spark_jobs.session import environment

EXAMPLE_SECONDS_MAX = 300


def run_example(name: str, settings: ClientSettings) -> str:
    """What it said on standard output."""
    ran = subprocess.run(
        [sys.executable, f"examples/{name}.py"],
        cwd=ROOT,
        env=environment_of(settings) | environment(),
        capture_output=True,
        text=True,
        timeout=EXAMPLE_SECONDS_MAX,
        check=False,
    )
    assert ran.returncode == 0, ran.stderr
    return ran.stdout
