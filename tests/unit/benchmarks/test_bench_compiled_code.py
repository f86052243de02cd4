"""What is compiled, where, and what is said where that cannot be."""

from __future__ import annotations

import os
import shutil
import sysconfig
import time
from pathlib import Path

import pytest

from benchmarks import compiled_code as subject
from benchmarks.compiled_code import (
    AS_INSTALLED,
    KEPT_MAX,
    PROJECT,
    SCRATCH_SECONDS_MAX,
    Code,
    compiled_code,
    what_is_missing,
)
from benchmarks.sides import SideError
from devcluster import Step


class Compiling:
    """A small project, and a compiler that only notes what it was given."""

    def __init__(self, directory: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        self.project = directory / "project"
        (self.project / "room").mkdir(parents=True)
        (self.project / "room" / "module.py").write_text("NUMBER = 1\n")
        (self.project / "pyproject.toml").write_text('[tool.setuptools]\npackages = ["room", "room.inner"]\n')
        for name in ("setup.py", "README.md", "LICENSE"):
            (self.project / name).write_text("")
        self.home = directory / "cache" / "pythia"
        self.compiled: list[Path] = []
        self.said: list[str] = []
        monkeypatch.setenv("XDG_CACHE_HOME", str(directory / "cache"))
        monkeypatch.delenv("PYTHONPATH", raising=False)
        monkeypatch.setattr(subject, "PROJECT", self.project)
        monkeypatch.setattr(subject, "what_is_missing", lambda project: None)

    def setup_py(self, text: str) -> None:
        (self.project / "setup.py").write_text(text)

    def run(self) -> Code:
        def take(step: Step) -> None:
            self.said.append(step.text)

        return compiled_code(take)


@pytest.fixture
def compiling(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Compiling:
    return Compiling(tmp_path, monkeypatch)


NOTES_THAT_IT_RAN = "import os, pathlib; pathlib.Path('ran').write_text(os.environ['PYTHIA_COMPILE'])\n"


def test_it_is_compiled_in_a_place_of_its_own_and_once(compiling: Compiling) -> None:
    compiling.setup_py(NOTES_THAT_IT_RAN)
    code = compiling.run()
    assert code.directory is not None
    assert code.directory.parent == compiling.home
    assert (code.directory / "ran").read_text() == "1"
    assert (code.directory / "room" / "module.py").read_text() == "NUMBER = 1\n"
    assert not (compiling.project / "ran").exists()
    assert len(compiling.said) == 1
    assert compiling.run() == code
    assert len(compiling.said) == 1
    assert code.name == "compiled"
    assert code.environment == {"PYTHONPATH": str(code.directory), "PYTHONSAFEPATH": "1"}


def test_a_change_is_compiled_anew_and_few_of_the_older_ones_are_kept(compiling: Compiling) -> None:
    places = []
    for number in range(KEPT_MAX + 3):
        (compiling.project / "room" / "module.py").write_text(f"NUMBER = {number}\n")
        place = compiling.run().directory
        assert place is not None
        os.utime(place, (number, number))
        places.append(place)
    assert len(set(places)) == len(places)
    assert [place.is_dir() for place in places] == [False, False, *[True] * (KEPT_MAX + 1)]


def test_what_a_killed_process_left_is_dropped_after_a_day(compiling: Compiling) -> None:
    now, left, used = time.time(), compiling.home / "compile-left", compiling.home / "compile-used"
    for scratch, since_seconds in ((left, SCRATCH_SECONDS_MAX + 60), (used, SCRATCH_SECONDS_MAX - 60)):
        (scratch / "project").mkdir(parents=True)
        os.utime(scratch, (now - since_seconds, now - since_seconds))
    compiling.run()
    assert (left.exists(), used.exists()) == (False, True)


def test_what_does_not_compile_is_told_and_leaves_nothing(compiling: Compiling) -> None:
    compiling.setup_py("raise SystemExit('room/module.py:1: error: it is wrong')\n")
    with pytest.raises(SideError, match=r"does not compile:(?s:.*)it is wrong"):
        compiling.run()
    assert [each.name for each in compiling.home.iterdir() if each.is_dir()] == []


def test_what_changes_while_it_is_copied_is_not_kept_as_what_it_was(
    compiling: Compiling, monkeypatch: pytest.MonkeyPatch
) -> None:
    copy = subject._copy

    def change_and_copy(project: Path, place: Path) -> None:
        (project / "room" / "module.py").write_text("NUMBER = 2\n")
        copy(project, place)

    monkeypatch.setattr(subject, "_copy", change_and_copy)
    with pytest.raises(SideError, match="changed while"):
        compiling.run()
    assert [each.name for each in compiling.home.iterdir() if each.is_dir()] == []


def test_what_takes_too_long_is_given_up(compiling: Compiling, monkeypatch: pytest.MonkeyPatch) -> None:
    compiling.setup_py("import time; time.sleep(60)\n")
    monkeypatch.setattr(subject, "COMPILE_SECONDS_MAX", 0.1)
    with pytest.raises(SideError, match="PYTHIA_COMPILE=0"):
        compiling.run()


def test_without_a_place_to_keep_it_nothing_is_compiled(compiling: Compiling, monkeypatch: pytest.MonkeyPatch) -> None:
    (compiling.project / "file").write_text("")
    monkeypatch.setenv("XDG_CACHE_HOME", str(compiling.project / "file"))
    assert compiling.run() is AS_INSTALLED
    assert compiling.said[0].startswith("runs as installed and is not compiled, since there is no place to keep it: ")


def test_what_is_used_counts_as_the_latest(compiling: Compiling) -> None:
    first = compiling.run().directory
    assert first is not None
    os.utime(first, (1, 1))
    compiling.run()
    assert first.stat().st_mtime > 1


def test_what_was_found_by_a_path_of_ones_own_is_found(compiling: Compiling, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PYTHONPATH", "/there")
    code = compiling.run()
    assert code.environment["PYTHONPATH"] == f"{code.directory}{os.pathsep}/there"


def test_without_a_compiler_it_runs_as_it_is_installed_and_says_so(
    compiling: Compiling, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(subject, "what_is_missing", lambda project: "C compiler (cc)")
    assert compiling.run() is AS_INSTALLED
    assert compiling.said == ["runs as installed and is not compiled, since there is no C compiler (cc)"]
    assert AS_INSTALLED.environment == {}
    assert AS_INSTALLED.name == "as installed"


def test_what_is_missing_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("CC", raising=False)
    assert what_is_missing(tmp_path) == "source of the project beside its packages"
    monkeypatch.setenv("PYTHIA_COMPILE", "0")
    assert what_is_missing(tmp_path) == "wish for it (PYTHIA_COMPILE=0)"
    monkeypatch.delenv("PYTHIA_COMPILE")
    monkeypatch.setattr(shutil, "which", lambda name: None)
    assert str(what_is_missing(PROJECT)).startswith("C compiler (")
    monkeypatch.setattr(shutil, "which", lambda name: "/there")
    monkeypatch.setattr(sysconfig, "get_paths", lambda: {"include": str(tmp_path)})
    assert what_is_missing(PROJECT) == "header of Python's (Python.h)"
    monkeypatch.setenv("CC", "ccache my-compiler")
    monkeypatch.setattr(shutil, "which", lambda name: None)
    assert what_is_missing(PROJECT) == "C compiler (ccache)"
