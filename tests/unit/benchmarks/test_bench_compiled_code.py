"""What is compiled, where, and what is said where that cannot be."""

from __future__ import annotations

import os
import shutil
import sysconfig
from pathlib import Path

import pytest

from benchmarks import compiled_code as subject
from benchmarks.compiled_code import AS_INSTALLED, KEPT_MAX, PROJECT, Code, compiled_code, what_is_missing
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


def test_what_does_not_compile_is_told_and_leaves_nothing(compiling: Compiling) -> None:
    compiling.setup_py("raise SystemExit('room/module.py:1: error: it is wrong')\n")
    with pytest.raises(SideError, match=r"does not compile:(?s:.*)it is wrong"):
        compiling.run()
    assert [each.name for each in compiling.home.iterdir() if each.is_dir()] == []


def test_without_a_compiler_it_runs_as_it_is_installed_and_says_so(
    compiling: Compiling, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(subject, "what_is_missing", lambda project: "C compiler (cc)")
    assert compiling.run() is AS_INSTALLED
    assert compiling.said == ["runs as installed and is not compiled, since there is no C compiler (cc)"]
    assert AS_INSTALLED.environment == {}
    assert AS_INSTALLED.name == "as installed"


def test_what_is_missing_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert what_is_missing(tmp_path) == "source of the project beside its packages"
    monkeypatch.setattr(shutil, "which", lambda name: None)
    assert str(what_is_missing(PROJECT)).startswith("C compiler (")
    monkeypatch.setattr(shutil, "which", lambda name: "/there")
    monkeypatch.setattr(sysconfig, "get_paths", lambda: {"include": str(tmp_path)})
    assert what_is_missing(PROJECT) == "header of Python's (Python.h)"
