"""Machines of Spark's that know nothing of this project: an address, a Python, an archive, and how processes end."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sysconfig
import tarfile
import venv
from pathlib import Path
from typing import Final

from tests.imports import ROOT
from tests.spark_jobs.processes import descendants
from tests.spark_jobs.session import INTERPRETER

HOSTS: Final = ("127.0.0.2", "127.0.0.3")
"""A machine each. Spark begins no task a second time on the host where it runs already."""
ARCHIVED_AS: Final = "pythia"
PYTHON_PATH: Final = os.pathsep.join([ARCHIVED_AS, str(INTERPRETER)])
"""For ``PYTHONPATH``: the archive, and what has Python's processes be soon there."""
JAVA_OPTIONS: Final = "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC"
END_SECONDS_MAX: Final = 60.0


def python_without_us(folder: Path) -> Path:
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


def archive_us(file: Path) -> None:
    """The packages, with the kernels that are compiled, as docs/operations/spark-clusters.md says."""
    rooms = {door.parent for door in ROOT.glob("*/__init__.py") if door.parent.name != "tests"}
    with tarfile.open(file, "w:gz", compresslevel=1) as archive:
        for room in sorted(rooms):
            archive.add(room, room.name, filter=lambda entry: None if entry.name.endswith(".pyc") else entry)


def strike(machine: int, number: signal.Signals) -> None:
    """A signal to a process and all that it started: as where a machine is lost, or stands still, or goes on."""
    for pid in [machine, *descendants(machine)]:
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, number)


def start(folder: Path, command: list[str], environment: dict[str, str]) -> subprocess.Popen[bytes]:
    """``folder``, which is made: where it works, and logs. It has nothing of this process's environment but where
    programs are, and above all no path to us.
    """
    kept = {name: os.environ[name] for name in ("PATH", "JAVA_HOME", "LANG") if name in os.environ}
    folder.mkdir()
    with (folder / "log").open("wb") as log:
        return subprocess.Popen(
            command,
            env={"HOME": "/nonexistent"} | kept | environment,
            cwd=folder,
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=subprocess.STDOUT,
        )


def end(process: subprocess.Popen[bytes]) -> None:
    """With what it started: executors, and those that stand still."""
    left = descendants(process.pid)
    process.terminate()
    process.wait(END_SECONDS_MAX)
    for pid in left:
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)


def said(folder: Path) -> str:
    """What the process that works there has logged."""
    return (folder / "log").read_text(encoding="utf-8", errors="replace")
