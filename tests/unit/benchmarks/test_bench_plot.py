from __future__ import annotations

from pathlib import Path

import pytest

from benchmarks import plot
from benchmarks.sides import SideError
from tests.unit.benchmarks.scripted import series


def test_a_missing_library_is_told_before_anything_is_measured(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(plot, "find_spec", lambda name: None)
    with pytest.raises(SideError, match=r"pip install 'pythia-tso\[bench\]'"):
        plot.require_plotting(tmp_path / "growth.svg")


def test_a_picture_that_could_not_be_written_is_refused_before_anything_is_measured(tmp_path: Path) -> None:
    plot.require_plotting(tmp_path / "growth.svg")
    with pytest.raises(SideError, match=r"growth\.unknown has to end in a format for pictures: .*svg"):
        plot.require_plotting(tmp_path / "growth.unknown")
    with pytest.raises(SideError, match="make it first"):
        plot.require_plotting(tmp_path / "missing" / "growth.svg")


def test_the_bars_reach_from_the_slowest_round_to_the_fastest() -> None:
    assert plot.spread([series("one", 10, 40, 20)]) == ([10.0], [20.0])


def test_the_picture_is_drawn(tmp_path: Path) -> None:
    path = tmp_path / "growth.svg"
    plot.draw(path, "growth", [series("1", 10), series("2", 20)], axis="steps")
    assert "<svg" in path.read_text(encoding="utf-8")
    with pytest.raises(SideError, match="missing"):
        plot.draw(tmp_path / "missing" / "growth.svg", "growth", [series("1", 10)])
