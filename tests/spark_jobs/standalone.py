"""Spark's own cluster manager on loopback: a master, and workers that Spark takes for machines of their own.

In local mode all is one process. Here an executor is lost, with what it shuffled; a stage runs again; a slow task is
begun a second time elsewhere while the first one goes on; and a machine has only what Spark brings to it: its Python
has the packages that this project needs, and not the project, which comes as an archive.
"""

from __future__ import annotations

import contextlib
import os
import re
import signal
import subprocess
import sysconfig
import tarfile
import venv
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import pyspark

from drills.guard import Guard
from drills.waiting import wait_until
from tests.imports import ROOT
from tests.spark_jobs.processes import command_of, descendants

HOSTS: Final = ("127.0.0.2", "127.0.0.3")
"""A worker each. Spark begins no task a second time on the host where it runs already."""
START_SECONDS_MAX: Final = 120.0
END_SECONDS_MAX: Final = 60.0
ARCHIVED_AS: Final = "pythia"
_EXECUTOR: Final = "CoarseGrainedExecutorBackend"
_A_MACHINE: Final = ("--cores", "2", "--memory", "2g")
JAVA_OPTIONS: Final = "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC"


@dataclass(frozen=True)
class Cluster:
    """``python``: of each machine. ``archive``: the project, for them. ``logs``: what master and workers say."""

    url: str
    python: Path
    archive: Path
    workers: Sequence[int]
    logs: Path

    def executors(self) -> list[int]:
        """The processes of all executors."""
        return [pid for worker in self.workers for pid in descendants(worker) if _EXECUTOR in command_of(pid)]

    def executor_of(self, task: int) -> int:
        """The executor that a task's Python process belongs to."""
        return next(pid for pid in self.executors() if task in descendants(pid))


def strike(executor: int, number: signal.Signals) -> None:
    """A signal to all processes of an executor: as where a machine is lost, or stands still, or goes on."""
    for pid in [executor, *descendants(executor)]:
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, number)


@contextmanager
def running(folder: Path) -> Iterator[Cluster]:
    """A cluster that ends even where this process is killed. What it writes goes into ``folder``."""
    python, archive = _python_without_us(folder / "python"), folder / f"{ARCHIVED_AS}.tar.gz"
    _archive(archive)
    with Guard() as guard, ExitStack() as ending:

        def start(name: str, *arguments: str) -> int:
            process = _start(folder / name, arguments)
            ending.callback(_end, process)
            guard.watch_process(process.pid)
            return process.pid

        start("master", "master.Master", "--host", "127.0.0.1", "--port", "0", "--webui-port", "0")
        url = _url(folder)
        workers = [
            start(
                host, "worker.Worker", "--host", host, "--webui-port", "0", *_A_MACHINE, *_work_in(folder / host), url
            )
            for host in HOSTS
        ]
        registered = re.compile("Registering worker")
        wait_until(
            lambda: len(registered.findall(_said(folder / "master"))) >= len(HOSTS),
            "the workers of Spark's cluster",
            START_SECONDS_MAX,
            lambda: "\n".join(_said(folder / name) for name in ("master", *HOSTS)),
        )
        yield Cluster(url, python, archive, workers, folder)


def _start(folder: Path, arguments: Sequence[str]) -> subprocess.Popen[bytes]:
    """``folder``: where it works, and logs. It has nothing of this process's environment, above all no path to us."""
    spark = Path(pyspark.__file__).parent
    environment = {
        "PATH": os.environ["PATH"],
        "SPARK_HOME": str(spark),
        "SPARK_DAEMON_JAVA_OPTS": JAVA_OPTIONS,
        "SPARK_DAEMON_MEMORY": "256m",
        "HOME": "/nonexistent",
    } | {name: os.environ[name] for name in ("JAVA_HOME", "LANG") if name in os.environ}
    folder.mkdir()
    with (folder / "log").open("wb") as log:
        return subprocess.Popen(
            [str(spark / "bin" / "spark-class"), f"org.apache.spark.deploy.{arguments[0]}", *arguments[1:]],
            env=environment,
            cwd=folder,
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=subprocess.STDOUT,
        )


def _work_in(folder: Path) -> tuple[str, str]:
    """Where a worker has its executors work, which otherwise is a folder of Spark's own."""
    return "--work-dir", str(folder / "work")


def _end(process: subprocess.Popen[bytes]) -> None:
    left = descendants(process.pid)
    process.terminate()
    process.wait(END_SECONDS_MAX)
    for pid in left:  # executors, and those that stand still
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)


def _url(folder: Path) -> str:
    starting = re.compile(r"Starting Spark master at (spark://127\.0\.0\.1:\d+)")
    wait_until(
        lambda: starting.search(_said(folder / "master")) is not None,
        "the master of Spark's cluster",
        START_SECONDS_MAX,
        lambda: _said(folder / "master"),
    )
    found = starting.search(_said(folder / "master"))
    assert found is not None
    return found[1]


def _said(folder: Path) -> str:
    return (folder / "log").read_text(encoding="utf-8", errors="replace")


def _python_without_us(folder: Path) -> Path:
    """A Python with the packages that are installed here, but for the project, which is found by a hook of pip's."""
    venv.create(folder, symlinks=True)
    installed = sysconfig.get_paths()["purelib"]
    here = sysconfig.get_path("purelib", vars={"base": str(folder), "platbase": str(folder)})
    (Path(here) / "packages.pth").write_text(f"{installed}\n")
    python = folder / "bin" / "python"
    ended = subprocess.run(
        [python, "-c", "import pyarrow, client"], env={}, capture_output=True, text=True, cwd=folder, check=False
    )  # without what another session of this process has set
    assert "No module named 'client'" in ended.stderr, ended.stderr
    return python


def _archive(file: Path) -> None:
    """The packages, with the kernels that are compiled, as docs/operations/spark-clusters.md says."""
    rooms = {door.parent for door in ROOT.glob("*/__init__.py") if door.parent.name != "tests"}
    with tarfile.open(file, "w:gz", compresslevel=1) as archive:
        for room in sorted(rooms):
            archive.add(room, room.name, filter=lambda entry: None if entry.name.endswith(".pyc") else entry)
