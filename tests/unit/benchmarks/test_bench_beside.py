"""Sides that are measured while something else goes on, or after something was done to them."""

from __future__ import annotations

from pathlib import Path

import pytest

from benchmarks import filled_side
from benchmarks.busy_side import BusySide
from benchmarks.cpu_time import peak_bytes_in
from benchmarks.filled_side import FilledSide
from benchmarks.large_side import LargeCommit, commit_of, seconds_within
from benchmarks.load_process import Answer, LoadProcess
from benchmarks.our_oracle import OurOracle
from tests.unit.benchmarks.scripted import Call, Scripted


class Other(LoadProcess):
    def __init__(self, calls: list[Call]) -> None:
        self._calls = calls

    def ask(self, line: str) -> None:
        self._calls.append(("other", line, 0.0))

    def answer(self, seconds_max: float) -> Answer:
        self._calls.append(("other", "answer", 0.0))
        return {"seconds": 3.0}

    def end(self) -> None:
        self._calls.append(("other", "end", 0.0))


def test_what_is_beside_a_window_begins_before_it_and_is_waited_for() -> None:
    calls: list[Call] = []
    side = BusySide(Scripted("small", calls, 5), "much", lambda: Other(calls), lambda seconds: f"go {seconds:g}")
    side.start()
    assert side.window(1, 2, 4.0, 1).transactions == 5
    side.stop()
    assert [(name, what) for name, what, _ in calls] == [
        ("small", "start"),
        ("other", "go 4"),
        ("small", "window 1 2 1"),
        ("other", "answer"),
        ("other", "end"),
        ("small", "stop"),
    ]
    assert side.answers == [{"seconds": 3.0}]


@pytest.mark.parametrize(("entries", "restarts"), [(540, 0), (560, 1)])
def test_a_map_that_has_become_too_full_is_emptied_by_a_new_oracle(
    monkeypatch: pytest.MonkeyPatch, entries: int, restarts: int
) -> None:
    calls: list[Call] = []
    filled: list[int] = []
    monkeypatch.setattr(filled_side, "entries_of", lambda address: entries)
    monkeypatch.setattr(filled_side, "fill", lambda address, wanted: filled.append(wanted))
    monkeypatch.setattr(OurOracle, "address", "host:1")
    oracle = OurOracle.__new__(OurOracle)
    side = FilledSide(Scripted("ours", calls, 5), oracle, 50, 1_000)
    side.window(1, 2, 4.0, 1)
    assert sum(what == "start" for _, what, _ in calls) == restarts
    assert filled == [500]
    assert side.configuration["map_percent_after_max"] == round(entries / 10)


def test_windows_lie_within_the_shortest_large_commit() -> None:
    def commit(seconds: float) -> LargeCommit:
        return LargeCommit(seconds, 0.0, 1.0, "COMMITTED", "COMMITTED")

    assert seconds_within(5.0, []) == 5.0
    assert seconds_within(5.0, [commit(10.0), commit(3.0)]) == pytest.approx(2.4)
    assert seconds_within(1.0, [commit(10.0)]) == 1.0


def test_a_large_commit_that_ended_early_tells_how_much_of_the_window_it_covered() -> None:
    answer = {"seconds": 1.0, "cpu_seconds": 0.5, "reason": "COMMITTED", "reason_of_older": "TOO_OLD"}
    assert commit_of(answer, 4.0) == LargeCommit(1.0, 0.5, 0.25, "COMMITTED", "TOO_OLD")
    assert commit_of(answer, 0.5).overlap == 1.0


def test_peak_memory_is_read_in_bytes() -> None:
    assert peak_bytes_in("Name:\ttso\nVmHWM:\t  1024 kB\nVmRSS:\t 512 kB\n") == 1_048_576
    with pytest.raises(ValueError, match="VmHWM"):
        peak_bytes_in("Name:\ttso\n")
    assert peak_bytes_in(Path("/proc/self/status").read_text(encoding="utf-8")) > 0
