"""What the status of a cluster tells of a server that ended without being told to."""

from __future__ import annotations

import json
import os
import signal
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

import devcluster
from devcluster import configuration, processes
from devcluster.commands import dev
from devcluster.processes import ProcessRecord
from devcluster.state import write_state
from tests.unit.devcluster.conftest import STATE


@pytest.fixture
def directory(tmp_path: Path) -> Iterator[Path]:
    (tmp_path / "cluster.lock").touch()
    (tmp_path / "logs").mkdir()
    yield tmp_path
    devcluster.down(tmp_path, wipe=True)


def started(directory: Path, program: str) -> ProcessRecord:
    """A server of that cluster, by a program in Python."""
    command = [sys.executable, "-c", f"import os, sys, time\n{program}", configuration.mark(directory)]
    return processes.spawn(command, os.environ, directory / "logs" / "hbase.out")


def status(directory: Path, *options: str) -> Result:
    return CliRunner().invoke(dev, ["status", "--directory", str(directory), *options])


@pytest.mark.parametrize(
    ("program", "told"),
    [
        ("sys.exit('no memory')", "ended with exit code 1"),
        ("print('no memory', flush=True); os.kill(os.getpid(), 9)", "was ended by signal 9"),
    ],
)
def test_how_a_server_ended_is_told_with_the_end_of_its_log(directory: Path, program: str, told: str) -> None:
    record = started(directory, program)
    write_state(directory, STATE.with_process("hbase", record))
    os.waitid(os.P_PID, record.pid, os.WEXITED | os.WNOWAIT)
    (why,) = devcluster.status(directory).gone
    assert why == f"HBase (with ZooKeeper inside) {told}. From its log:\n  no memory"
    shown = status(directory)
    again = "pythia dev up brings it up again, on the same data"
    assert (shown.exit_code, shown.stdout) == (3, f"stopped: {directory}\n{why}\n{again}\n")
    assert json.loads(status(directory, "--json").stdout)["gone"] == [why]


def test_of_one_whose_end_its_parent_has_asked_for_only_the_log_is_left(directory: Path) -> None:
    record = started(directory, "sys.exit(3)")
    write_state(directory, STATE.with_process("hbase", record))
    os.waitid(os.P_PID, record.pid, os.WEXITED)
    assert devcluster.status(directory).gone == ("HBase (with ZooKeeper inside) is gone. From its log:\n  (empty)",)


def test_nothing_is_told_of_who_has_its_pid_now(directory: Path) -> None:
    record = started(directory, "sys.exit(3)")
    other = ProcessRecord(record.pid, record.start_ticks - 1)
    os.waitid(os.P_PID, record.pid, os.WEXITED | os.WNOWAIT)
    assert processes.how_it_ended(record) == "ended with exit code 3"
    assert processes.how_it_ended(other) == "is gone"
    os.waitid(os.P_PID, record.pid, os.WEXITED)


@pytest.mark.parametrize("what", ["master", "region server"])
def test_one_that_gave_up_and_stays_is_told_of_too(directory: Path, what: str) -> None:
    record = started(directory, "time.sleep(600)")
    write_state(directory, STATE.with_process("hbase", record))
    assert devcluster.status(directory).gone == ()
    log = f"all is well\n***** ABORTING {what} m: its session expired *****\n"
    (directory / "logs" / "hbase.log").write_text(log, encoding="utf-8")
    found = devcluster.status(directory)
    assert (found.condition, found.hbase_pid) == ("partial", record.pid)
    (why,) = found.gone
    assert why.startswith(f"HBase (with ZooKeeper inside) has given up. From its log:\n  ***** ABORTING {what} m: its")


def test_of_a_cluster_that_was_taken_down_nothing_is_gone(directory: Path) -> None:
    record = started(directory, "time.sleep(600)")
    write_state(directory, STATE.with_process("hbase", record))
    processes.send(record, configuration.mark(directory), signal.SIGKILL)
    os.waitid(os.P_PID, record.pid, os.WEXITED)
    assert devcluster.down(directory, wipe=False).wiped is False
    assert devcluster.status(directory).gone == ()
