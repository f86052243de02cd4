"""Which of our code the processes of a benchmark run: compiled (setup.py), or as it is installed.

It is compiled in a place of its own, kept for the next run: beside its source a compiled module would hide what is
changed there. Invariant: what is compiled is what the sources say now.
"""

from __future__ import annotations

import hashlib
import importlib.util
import os
import shutil
import subprocess
import sys
import sysconfig
import tempfile
import time
import tomllib
from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from benchmarks.sides import SideError
from devcluster import Progress, Step
from devcluster.jars import cache_home
from devcluster.locks import file_lock

PROJECT: Final = Path(__file__).parents[1]
COMPILE_SECONDS_MAX: Final = 900.0
SCRATCH_SECONDS_MAX: Final = 86_400.0
"""Where something was compiled by a process that was killed is dropped by a later one, after a day."""
KEPT_MAX: Final = 3
"""Of other states of the sources."""
OUTPUT_LINES_SHOWN: Final = 20
_BESIDE_PACKAGES: Final = ("pyproject.toml", "setup.py", "README.md", "LICENSE")


@dataclass(frozen=True, slots=True)
class Code:
    """``directory``: of the compiled project; ``None``: what is installed runs."""

    directory: Path | None = None

    @property
    def name(self) -> str:
        """What to call it in a report."""
        return "as installed" if self.directory is None else "compiled"

    @property
    def environment(self) -> Mapping[str, str]:
        """What a process needs in its environment to run it, wherever it is started."""
        if self.directory is None:
            return {}
        others = os.environ.get("PYTHONPATH")
        path = os.pathsep.join([str(self.directory), *([others] if others else [])])
        return {"PYTHONPATH": path, "PYTHONSAFEPATH": "1"}


AS_INSTALLED: Final = Code()


def compiled_code(progress: Progress) -> Code:
    """The project compiled, or ``AS_INSTALLED`` where that cannot be here, of which ``progress`` is told.

    Raises ``SideError`` where it should compile and does not, ``Busy`` where another process compiles for too long.
    """
    lacking = what_is_missing(PROJECT)
    if lacking is None:
        try:
            return Code(_place(progress))
        except OSError as error:
            lacking = f"place to keep it: {error}"
    progress(Step(f"runs as installed and is not compiled, since there is no {lacking}"))
    return AS_INSTALLED


def _place(progress: Progress) -> Path:
    """Where the sources lie compiled as they are now. Raises ``SideError``, ``Busy`` and ``OSError``."""
    home, digest = cache_home(), _digest(PROJECT)
    home.mkdir(parents=True, exist_ok=True)
    place = home / f"compiled-{digest}"
    with file_lock(place.with_suffix(".lock"), COMPILE_SECONDS_MAX):
        if not place.is_dir():
            progress(Step("compiling; the next run has it already"))
            with tempfile.TemporaryDirectory(prefix="compile-", dir=home) as scratch:
                building = Path(scratch) / "project"
                _copy(PROJECT, building)
                if _digest(building) != digest:
                    raise SideError("the project changed while it was copied to be compiled: run it again")
                _compile(building)
                building.rename(place)
        os.utime(place)  # the latest to be used
        with suppress(FileNotFoundError):  # another process forgets the same, or has ended with its scratch
            _forget_others(place)
    return place


def what_is_missing(project: Path) -> str | None:
    """What is not here that compiling takes; ``None``: nothing."""
    compiler = (os.environ.get("CC") or sysconfig.get_config_var("CC") or "cc").split()[0]
    needed = {
        "wish for it (PYTHIA_COMPILE=0)": os.environ.get("PYTHIA_COMPILE") != "0",
        "source of the project beside its packages": (project / "setup.py").is_file(),
        "setuptools": importlib.util.find_spec("setuptools") is not None,
        "mypyc (the package mypy)": importlib.util.find_spec("mypyc") is not None,
        f"C compiler ({compiler})": shutil.which(compiler) is not None,
        "header of Python's (Python.h)": (Path(sysconfig.get_paths()["include"]) / "Python.h").is_file(),
    }
    return next((what for what, is_there in needed.items() if not is_there), None)


def _files(project: Path) -> Iterator[Path]:
    """All that is part of the project when it is installed, relative to it."""
    packages = tomllib.loads((project / "pyproject.toml").read_text())["tool"]["setuptools"]["packages"]
    yield from map(Path, _BESIDE_PACKAGES)
    for folder in sorted({package.partition(".")[0] for package in packages}):
        files = (file for file in (project / folder).rglob("*") if file.is_file())
        yield from sorted(file.relative_to(project) for file in files if "__pycache__" not in file.parts)


def _digest(project: Path) -> str:
    """Of all that what is compiled depends on: sources, and who compiles them for what."""
    versions = (
        sys.version,
        sysconfig.get_config_var("EXT_SUFFIX"),
        importlib.import_module("mypy.version").__version__,
    )
    state = hashlib.sha256("\n".join(versions).encode())
    for file in _files(project):
        content = (project / file).read_bytes()
        state.update(f"{file}\n{len(content)}\n".encode() + content)
    return state.hexdigest()[:16]


def _copy(project: Path, copy: Path) -> None:
    for file in _files(project):
        (copy / file).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy2(project / file, copy / file)


def _compile(copy: Path) -> None:
    try:
        built = subprocess.run(
            [sys.executable, "setup.py", "--quiet", "build_ext", "--inplace"],
            cwd=copy,
            env={**os.environ, "PYTHIA_COMPILE": "1"},
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            timeout=COMPILE_SECONDS_MAX,
            check=False,
        )
    except subprocess.TimeoutExpired as error:
        raise SideError(
            f"the project did not compile in {COMPILE_SECONDS_MAX:.0f} s; PYTHIA_COMPILE=0 goes without"
        ) from error
    if built.returncode:
        raise SideError("\n".join(["the project does not compile:", *built.stdout.splitlines()[-OUTPUT_LINES_SHOWN:]]))
    shutil.rmtree(copy / "build", ignore_errors=True)


def _forget_others(place: Path) -> None:
    others = sorted(place.parent.glob("compiled-*/"), key=lambda other: other.stat().st_mtime)
    for other in [each for each in others if each.is_dir() and each != place][:-KEPT_MAX]:
        shutil.rmtree(other, ignore_errors=True)
        other.with_suffix(".lock").unlink(missing_ok=True)
    for scratch in place.parent.glob("compile-*/"):
        if time.time() - scratch.stat().st_mtime > SCRATCH_SECONDS_MAX:
            shutil.rmtree(scratch, ignore_errors=True)
