from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest

from benchmarks.resting_side import RestingSide
from benchmarks.sides import Window
from devcluster.guard import Guard
from drills.children import Child
from drills.waiting import wait_until
from tests.unit.benchmarks.scripted import Scripted

STOPPED_SECONDS_MAX = 20.0


class OfOneProcess(Scripted):
    """Runs a program that waits, and notes in which state each window finds it."""

    def __init__(self, place: Path, guard: Guard) -> None:
        super().__init__("one", [], *[10] * 9)
        self.states: list[str] = []
        self._place = place
        self._guard = guard
        self._child: Child | None = None

    @property
    def children(self) -> Sequence[Child]:
        return [] if self._child is None else [self._child]

    def start(self) -> None:
        self._child = Child("one", [sys.executable, "-c", "input()"], self._place / "log", self._guard)

    def window(self, in_flight: int, cells: int, seconds: float, connections: int) -> Window:
        self.states.append(state_of(self.children[0]))
        if in_flight == 0:
            raise RuntimeError("told to")
        return super().window(in_flight, cells, seconds, connections)

    def stop(self) -> None:
        if self._child is not None:
            self._child.end()
            self._child = None


def state_of(child: Child) -> str:
    return Path(f"/proc/{child.pid}/stat").read_text().rpartition(")")[2].split()[0]


def until_stopped(child: Child) -> None:
    """A signal takes a moment to be noticed."""
    wait_until(lambda: state_of(child) == "T", "the process to rest", STOPPED_SECONDS_MAX, child.tail)


@pytest.fixture
def side(tmp_path: Path) -> Iterator[OfOneProcess]:
    with Guard() as guard:
        one = OfOneProcess(tmp_path, guard)
        yield one
        one.stop()


def test_it_runs_within_its_windows_and_at_no_other_time(side: OfOneProcess) -> None:
    resting = RestingSide(side)
    resting.start()
    until_stopped(side.children[0])
    resting.window(1, 2, 0.1, 1)
    until_stopped(side.children[0])
    with pytest.raises(RuntimeError):
        resting.window(0, 2, 0.1, 1)
    until_stopped(side.children[0])
    assert "T" not in side.states
    resting.stop()
    assert side.children == []
