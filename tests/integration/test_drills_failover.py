"""Failover drills, small: a few faults on real processes, nobody harmed; harm that is really done is found."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from random import Random
from typing import Protocol

import pytest

from drills.failover import Drill, run
from drills.fault import Fault
from drills.installation import Plan
from drills.network_faults import SplitBrain
from drills.process_faults import HandOver, Kill, StopInFlush
from drills.report import Report
from drills.service_faults import KillHBase
from drills.waiting import wait_until
from tests.imports import ROOT

pytestmark = [pytest.mark.integration, pytest.mark.takes_minutes]

LIMIT_SECONDS = 240.0
PROGRAM = [sys.executable, "-c", "from drills.commands import drill; drill()"]
# Its range of timestamps outlasts the fault: one that ran out of them would stop for that reason, and harm nobody.
NEVER_STEPS_DOWN = """
import sys

if "tso" in sys.orig_argv and "serve" in sys.orig_argv:
    from lease import LeaseSettings, Tenure

    renew = Tenure.renew
    derive = LeaseSettings.__post_init__

    def pretend(self, **progress):
        renew(self, **progress)
        return True

    def far_ahead(self):
        derive(self)
        object.__setattr__(self, "ceiling_ahead_ms", 30_000)

    LeaseSettings.__post_init__ = far_ahead
    Tenure.is_held = lambda self: True
    Tenure.renew = pretend
"""


class Services(Protocol):
    @property
    def zookeeper(self) -> str: ...

    @property
    def thrift(self) -> str: ...


def drilled(directory: Path, kinds: list[type[Fault]], services: Services) -> Report:
    plan = Plan(directory, zookeeper=services.zookeeper, thrift=services.thrift)

    def in_order(possible: Sequence[type[Fault]], random: Random) -> list[type[Fault]]:
        del random
        return [kind for kind in kinds if kind in possible]

    return run(Drill(plan, kinds, in_order, seed=3), lambda step: None)


def processes_with(text: str) -> list[int]:
    """Living processes with that in their command line."""
    found = []
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit() and int(entry.name) != os.getpid():
            try:
                command = (entry / "cmdline").read_bytes()
            except OSError:
                continue
            if text.encode() in command:
                found.append(int(entry.name))
    return found


def test_transactions_in_flight_survive_failovers(services: Services, tmp_path: Path) -> None:
    report = drilled(tmp_path, [StopInFlush, Kill, HandOver, KillHBase], services)
    assert report.verdict.is_clean, report.verdict.harms
    assert [each.name for each in report.struck] == ["stop-in-flush", "kill", "handover"]
    assert all(each.failovers >= 1 for each in report.struck)
    assert all(in_flight >= 10 for in_flight in report.verdict.in_flight)
    assert report.flights == {"committed": 24, "Conflict": 6}
    assert list(report.left_out) == ["kill-hbase"]
    assert processes_with(str(tmp_path)) == []


def test_services_that_are_killed_come_back_and_nobody_is_harmed(tmp_path: Path) -> None:
    kinds = ["--faults", "2", "--fault", "kill-zookeeper", "--fault", "kill-gateway"]
    command = [*PROGRAM, "mixed", *kinds, "--directory", str(tmp_path), "--json"]
    unset = {"PYTHIA_ZOOKEEPER": "", "PYTHIA_THRIFT": ""}
    ended = subprocess.run(
        command, cwd=ROOT, env=os.environ | unset, capture_output=True, text=True, timeout=LIMIT_SECONDS, check=False
    )
    assert ended.returncode == 0, ended.stdout + ended.stderr
    fields = json.loads(ended.stdout.splitlines()[-1])
    harms = ("anomalies", "lost_commits", "duplicate_timestamps", "deposed_answers", "aborted_by_failover")
    assert [fields[name] for name in harms] == [0] * 5
    assert {each["fault"] for each in fields["each"]} == {"kill-zookeeper", "kill-gateway"}
    assert fields["in_flight_at_failover"] >= 20
    assert fields["flights"] == {"committed": 16, "Conflict": 4}
    assert processes_with(str(tmp_path)) == []


def test_a_primary_that_does_not_step_down_is_caught(
    services: Services, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "sitecustomize.py").write_text(NEVER_STEPS_DOWN)
    monkeypatch.setenv("PYTHONPATH", f"{tmp_path}:{ROOT}")
    report = drilled(tmp_path / "drill", [SplitBrain], services)
    assert report.verdict.deposed_answers
    assert report.verdict.anomalies
    assert not report.verdict.is_clean


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGKILL])
def test_an_interrupted_drill_leaves_nothing_behind(services: Services, tmp_path: Path, number: signal.Signals) -> None:
    where = ["--zookeeper", services.zookeeper, "--thrift", services.thrift, "--directory", str(tmp_path / "drill")]
    command = [*PROGRAM, "failover", "--fault", "stop", "--rounds", "100", *where]
    output = tmp_path / "output"
    with output.open("wb") as file:
        drill = subprocess.Popen(command, cwd=ROOT, stdout=file, stderr=file)
    try:
        wait_until(lambda: "stop (1 of 100)" in output.read_text(), "the first fault", LIMIT_SECONDS, output.read_text)
        assert len(processes_with(str(tmp_path))) > 3
        drill.send_signal(number)
        drill.wait(LIMIT_SECONDS)
    finally:
        drill.kill()
        drill.wait()
    wait_until(lambda: processes_with(str(tmp_path)) == [], "all processes to end", LIMIT_SECONDS)
