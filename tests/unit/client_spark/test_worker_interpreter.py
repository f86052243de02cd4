"""Spark's workers run the Python that it is told, or one from the path: a user is told where that one lacks Pythia."""

from __future__ import annotations

import sys
import venv
import warnings
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from pyspark.errors import AnalysisException

from client.spark import WorkersLackPythia, worker_interpreter
from client.spark.worker_interpreter import (
    is_of_the_same_environment,
    warn_of_a_server_without_us,
    warn_of_workers_without_us,
)
from tests.imports import ROOT


def session_with(interpreter: str | Path) -> Any:
    return SimpleNamespace(sparkContext=SimpleNamespace(pythonExec=str(interpreter)))


def script(path: Path, does: str) -> Path:
    path.write_text(f"#!/bin/sh\n{does}\n")
    path.chmod(0o755)
    return path


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty one, from which nothing of this project can be imported."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("PYTHONPATH", raising=False)
    return tmp_path


def test_an_interpreter_without_this_library_is_named_with_what_to_set(folder: Path) -> None:
    venv.create(folder / "bare", with_pip=False, symlinks=True)
    bare = folder / "bare" / "bin" / "python"
    with pytest.warns(WorkersLackPythia) as told:
        warn_of_workers_without_us(session_with(bare))
    assert f"workers run {bare}" in str(told[0].message)
    assert f"set PYSPARK_PYTHON={sys.executable} before the session is made" in str(told[0].message)


def test_a_name_is_looked_for_on_the_path_as_by_spark(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    found = script(folder / "python9", "exit 1")
    monkeypatch.setenv("PATH", str(folder))
    with pytest.warns(WorkersLackPythia, match=str(found)):
        warn_of_workers_without_us(session_with("python9"))


def test_an_interpreter_that_can_import_this_library_is_not_spoken_of(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    other = script(folder / "python9", f'exec "{sys.executable}" "$@"')
    monkeypatch.setenv("PYTHONPATH", str(ROOT))
    assert not is_of_the_same_environment(str(other), sys.executable)
    silently(session_with(other))


def test_an_interpreter_is_run_once_however_many_threads_register(folder: Path) -> None:
    session = session_with(script(folder / "python9", f"echo >> {folder}/runs; exit 1"))
    for _ in range(3):
        with pytest.warns(WorkersLackPythia):
            warn_of_workers_without_us(session)
    assert (folder / "runs").read_text() == "\n"


def test_what_is_not_known_is_not_spoken_of(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(worker_interpreter, "_IMPORT_SECONDS_MAX", 0.05)
    silently(session_with("no-such-python"))
    silently(session_with(script(folder / "slow", "exec sleep 30")))
    silently(SimpleNamespace())  # a session of Spark Connect has no such attribute


def session_of_a_server_that_says(text: str) -> Any:
    """By Spark Connect, and registered."""

    def collect() -> None:
        raise AnalysisException(message=text)

    loaded = SimpleNamespace(load=lambda: SimpleNamespace(collect=collect))
    return SimpleNamespace(read=SimpleNamespace(format={"pythia": loaded}.__getitem__))


@pytest.mark.parametrize("module", ["client", "pyarrow", "client.spark"])
def test_a_server_of_spark_connect_without_this_library_is_spoken_of(module: str) -> None:
    session = session_of_a_server_that_says(
        f"[PYTHON_DATA_SOURCE_ERROR] …\nModuleNotFoundError: No module named '{module}'"
    )
    with pytest.warns(WorkersLackPythia, match=rf"cannot import {module}: install pythia-tso\[spark\] there"):
        warn_of_a_server_without_us(session, "pythia")


def test_a_server_that_misses_only_the_table_has_this_library() -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        warn_of_a_server_without_us(session_of_a_server_that_says("the option 'table' is missing"), "pythia")
        warn_of_a_server_without_us(session_with(sys.executable), "pythia")  # Spark's own process: there is no server


def test_the_driver_s_own_environment_is_believed() -> None:
    silently(session_with(sys.executable))


def test_two_environments_of_one_interpreter_are_two(folder: Path) -> None:
    for name in ("one", "other"):
        (folder / name).mkdir()
        (folder / name / "python").symlink_to(sys.executable)
    (folder / "one" / "python3").symlink_to("python")
    assert is_of_the_same_environment(str(folder / "one" / "python"), str(folder / "one" / "python3"))
    assert not is_of_the_same_environment(str(folder / "one" / "python"), str(folder / "other" / "python"))


def silently(session: Any) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        warn_of_workers_without_us(session)
