"""Spark's own cluster manager on loopback: a master, and workers that Spark takes for machines of their own.

In local mode all is one process. Here an executor is lost, with what it shuffled; a stage runs again; a slow task is
begun a second time elsewhere while the first one goes on; and a machine has only what Spark brings to it: its Python
has the packages that this project needs, and not the project, which comes as an archive.
"""

from __future__ import annotations

import re
import subprocess
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import pyspark

from devcluster.guard import Guard
from drills.waiting import wait_until
from tests.spark_jobs.machines import (
    ARCHIVED_AS,
    HOSTS,
    JAVA_OPTIONS,
    archive_us,
    end,
    python_without_us,
    said,
    start,
)
from tests.spark_jobs.processes import command_of, descendants

START_SECONDS_MAX: Final = 120.0
_EXECUTOR: Final = "CoarseGrainedExecutorBackend"
_A_MACHINE: Final = ("--cores", "3", "--memory", "2g")
"""An executor of one core for each session of a test file."""


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


@contextmanager
def running(folder: Path) -> Iterator[Cluster]:
    """A cluster that ends even where this process is killed. What it writes goes into ``folder``."""
    python, archive = python_without_us(folder / "python"), folder / f"{ARCHIVED_AS}.tar.gz"
    archive_us(archive)
    with Guard() as guard, ExitStack() as ending:

        def started(name: str, *arguments: str) -> int:
            process = _start(folder / name, arguments)
            ending.callback(end, process)
            guard.watch_process(process.pid)
            return process.pid

        started("master", "master.Master", "--host", "127.0.0.1", "--port", "0", "--webui-port", "0")
        url = _url(folder)
        workers = [
            started(
                host, "worker.Worker", "--host", host, "--webui-port", "0", *_A_MACHINE, *_work_in(folder / host), url
            )
            for host in HOSTS
        ]
        registered = re.compile("Registering worker")
        wait_until(
            lambda: len(registered.findall(said(folder / "master"))) >= len(HOSTS),
            "the workers of Spark's cluster",
            START_SECONDS_MAX,
            lambda: "\n".join(said(folder / name) for name in ("master", *HOSTS)),
        )
        yield Cluster(url, python, archive, workers, folder)


def _start(folder: Path, arguments: Sequence[str]) -> subprocess.Popen[bytes]:
    spark = Path(pyspark.__file__).parent
    return start(
        folder,
        [str(spark / "bin" / "spark-class"), f"org.apache.spark.deploy.{arguments[0]}", *arguments[1:]],
        {"SPARK_HOME": str(spark), "SPARK_DAEMON_JAVA_OPTS": JAVA_OPTIONS, "SPARK_DAEMON_MEMORY": "256m"},
    )


def _work_in(folder: Path) -> tuple[str, str]:
    """Where a worker has its executors work, which otherwise is a folder of Spark's own."""
    return "--work-dir", str(folder / "work")


def _url(folder: Path) -> str:
    starting = re.compile(r"Starting Spark master at (spark://127\.0\.0\.1:\d+)")
    wait_until(
        lambda: starting.search(said(folder / "master")) is not None,
        "the master of Spark's cluster",
        START_SECONDS_MAX,
        lambda: said(folder / "master"),
    )
    found = starting.search(said(folder / "master"))
    assert found is not None
    return found[1]
