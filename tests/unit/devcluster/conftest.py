"""Fake programs on a PATH of their own, so that no test of this folder runs the real Java or Maven; and a state."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from devcluster.processes import ProcessRecord
from devcluster.state import ClusterState

Program = Callable[[str, str], Path]

STATE = ClusterState(
    zookeeper_port=2181,
    thrift_port=9090,
    java="/usr/bin/java",
    jars=("/cache/a.jar",),
    heap_mebibytes={"hbase": 1024, "gateway": 512},
    ready_timeout_seconds=120.0,
    stop_timeout_seconds=30.0,
).with_process("hbase", ProcessRecord(17, 4711))
"""Of a cluster that never was."""


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
    monkeypatch.delenv("PYTHIA_HBASE_JARS", raising=False)

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
