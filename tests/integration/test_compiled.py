"""The compiled modules do what their sources do: they pass the same tests, by themselves and as real processes.

These run in a copy of the compiled project. Tests that replace a part of what is compiled stay out (``interpreted``),
and so does the simulation, which replaces time and threads in every module: what it finds it finds in the sources.
"""

from __future__ import annotations

import contextlib
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import tomllib
from pathlib import Path

import pytest

from benchmarks.compiled_code import PROJECT, Code
from kernels.keeping import SUFFIX
from tests.conftest import Services
from tests.imports import taken_from
from tests.integration.conftest import COMPILING_SECONDS_MAX

pytestmark = [pytest.mark.takes_minutes, pytest.mark.timeout(COMPILING_SECONDS_MAX)]

RUN_SECONDS_MAX = 900
OF_THE_COMPILER = "ignore:the (type, exc, tb) signature of throw:DeprecationWarning"
"""What mypyc makes of a coroutine passes errors on in a way that Python deprecates from 3.12 on, and tells nobody by
default."""
MODULES = tomllib.loads((PROJECT / "pyproject.toml").read_text())["tool"]["pythia"]["compiled"]
ROOMS = ("client", "commit_table", "store", "tso", "wire")
UNIT = PROJECT / "tests" / "unit"
ON_REAL_SERVICES = [
    "tests/contract/test_bulk_put.py",
    "tests/contract/test_coordinator.py",
    *(f"tests/integration/test_{name}.py" for name in ("tso_process", "anomalies", "histories")),
]
"""Failovers of compiled oracles are in the drill on containers, too."""


@pytest.fixture(scope="module")
def copy(compiled: Code, tmp_path_factory: pytest.TempPathFactory) -> Path:
    if compiled.directory is None:
        pytest.skip("nothing can be compiled here: what is missing was said on standard error")
    place = tmp_path_factory.mktemp("compiled") / "project"
    shutil.copytree(compiled.directory, place)
    for folder in ("tests", "docs", "operations"):
        shutil.copytree(PROJECT / folder, place / folder, ignore=shutil.ignore_patterns("__pycache__"))
    for kept in PROJECT.glob(f"[!.]*/**/__pycache__/*{SUFFIX}"):
        beside = place / kept.relative_to(PROJECT).parent
        if beside.parent.is_dir():
            beside.mkdir(exist_ok=True)
            shutil.copy2(kept, beside)
    return place


def files_about_what_is_compiled() -> list[str]:
    """The files of unit tests that import a compiled module, by themselves or through a helper of the tests."""
    compiled = {PROJECT / module for module in MODULES}

    def concerns(file: Path) -> bool:
        helpers = {path for path in taken_from(file) if path.is_relative_to(PROJECT / "tests")}
        helpers |= {folder / "conftest.py" for folder in file.parents if folder.is_relative_to(UNIT)}
        return any(taken_from(each) & compiled for each in [file, *filter(Path.is_file, helpers)])

    files = (file for room in ROOMS for file in sorted((UNIT / room).rglob("test_*.py")))
    return [str(file.relative_to(PROJECT)) for file in files if concerns(file)]


def run(copy: Path, arguments: list[str], **environment: str) -> tuple[int, str]:
    """How it ended, and what it said; ``copy`` is all that it finds. No process of its own outlives it."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith("PYTEST_")}
    with tempfile.TemporaryFile("w+") as said:  # no pipe, which a process that was left behind would keep open
        started = subprocess.Popen(
            [sys.executable, *arguments],
            cwd=copy,
            env={**kept, "PYTHONPATH": str(copy), "PYTHONSAFEPATH": "1", **environment},
            stdout=said,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )
        try:
            code = started.wait(RUN_SECONDS_MAX)
        finally:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(started.pid, signal.SIGKILL)
            started.wait()
        said.seek(0)
        return code, said.read()


def run_tests(copy: Path, tests: list[str], **environment: str) -> str:
    quiet = ["-q", "--tb=short", "-p", "no:cacheprovider", "-W", OF_THE_COMPILER, "-m", "not interpreted"]
    arguments = ["-m", "pytest", *quiet, *tests]
    code, said = run(copy, arguments, **environment)
    assert code == 0, said[-8_000:]
    return said


def test_what_is_named_is_compiled_and_nothing_else_stands_in_for_it(copy: Path) -> None:
    names = [module.removesuffix(".py").replace("/", ".") for module in MODULES]
    look = "import importlib, sys\nfor name in sys.argv[1:]: print(importlib.import_module(name).__file__)"
    code, said = run(copy, ["-c", look, *names])
    assert code == 0, said
    files = [Path(line) for line in said.split()]
    assert [file.suffix for file in files] == [".so"] * len(MODULES)
    assert {file.parent for file in files} == {copy / Path(module).parent for module in MODULES}


def test_the_compiled_modules_pass_the_tests_of_their_sources(copy: Path) -> None:
    assert " passed" in run_tests(copy, files_about_what_is_compiled())


@pytest.mark.integration
def test_compiled_processes_pass_the_tests_on_real_services(copy: Path, services: Services) -> None:
    places = {"PYTHIA_TEST_ZOOKEEPER": services.zookeeper, "PYTHIA_TEST_THRIFT": services.thrift}
    assert re.search(r"integration: [1-9]\d* passed, 0 failed", run_tests(copy, ON_REAL_SERVICES, **places))
