"""Fake programs on a PATH of their own, so that no test of this folder runs the real Java or Maven."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path

import pytest

Program = Callable[[str, str], Path]


@pytest.fixture
def programs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Program:
    """Makes the named executable, with the given Python text, the only one of its name on PATH."""
    folder = tmp_path / "bin"
    folder.mkdir()
    monkeypatch.setenv("PATH", str(folder))
    monkeypatch.delenv("JAVA_HOME", raising=False)
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.delenv("XDG_DATA_HOME", raising=False)

    def make(name: str, text: str) -> Path:
        path = folder / name
        path.write_text(f"#!{sys.executable}\nimport sys, pathlib\n{text}\n", encoding="utf-8")
        path.chmod(0o755)
        return path

    return make


JAVA_17 = """print('openjdk version "17.0.9" 2023-10-17', file=sys.stderr)"""


@pytest.fixture
def java(programs: Program) -> Path:
    return programs("java", JAVA_17)
