"""Small transactions beside one commit of very many cells, in windows that lie within that commit.

Invariant: once a first large commit has told how long it takes, no window is longer than ``WINDOW_SHARE`` of the
shortest seen, neither beside a large commit nor without one.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from benchmarks.busy_side import BusySide
from benchmarks.load_process import Answer, LoadProcess
from benchmarks.our_oracle import OurOracle
from benchmarks.our_side import OurSide
from benchmarks.sides import SideError, Window
from benchmarks.wrapped_side import WrappedSide
from devcluster.guard import Guard

WINDOW_SHARE: Final = 0.8
SECONDS_MIN: Final = 0.05


@dataclass(frozen=True, slots=True)
class LargeCommit:
    """``overlap``: the share of its window that it was under way. ``older``: what became of one begun before it."""

    seconds: float
    cpu_seconds: float
    overlap: float
    reason: str
    older: str


class SmallSide(WrappedSide[OurSide]):
    """Small transactions without a large commit, for as long as they are measured with one."""

    def __init__(self, side: OurSide, beside: LargeSide) -> None:
        super().__init__(side)
        self._beside = beside

    def window(self, in_flight: int, cells: int, seconds: float, connections: int) -> Window:
        """See ``Side``."""
        return super().window(in_flight, cells, self._beside.shortened(seconds), connections)


class LargeSide:
    """``cells``: of the large commit. ``commits``: one for each window. ``peak_bytes``: the oracle's memory, before the
    first of them and after the last.
    """

    def __init__(self, oracle: OurOracle, guard: Guard, cells: int) -> None:
        self.commits: list[LargeCommit] = []
        self.peak_bytes = (0, 0)
        self._oracle = oracle
        self._guard = guard
        self._cells = cells
        self._busy = BusySide(
            OurSide("asyncio", oracle, guard), f"a commit of {cells:,} cells", self._start, lambda seconds: "commit"
        )

    @property
    def name(self) -> str:
        """See ``Side``."""
        return self._busy.name

    @property
    def configuration(self) -> Mapping[str, str | int | bool]:
        """See ``Side``."""
        return self._busy.configuration

    def start(self) -> None:
        """See ``Side``."""
        self._busy.start()

    def window(self, in_flight: int, cells: int, seconds: float, connections: int) -> Window:
        """See ``Side``. Raises ``SideError`` where the large commit was refused."""
        if not self.commits:
            self.peak_bytes = (self._oracle.peak_memory_bytes(), 0)
        window = self._busy.window(in_flight, cells, self.shortened(seconds), connections)
        self.peak_bytes = (self.peak_bytes[0], self._oracle.peak_memory_bytes())
        commit = commit_of(self._busy.answers[-1], window.seconds)
        if commit.reason != "COMMITTED":
            raise SideError(f"the commit of {self._cells:,} cells was refused: {commit.reason}")
        self.commits.append(commit)
        return window

    def shortened(self, seconds: float) -> float:
        """What a window may last now."""
        return seconds_within(seconds, self.commits)

    def stop(self) -> None:
        """See ``Side``."""
        self._busy.stop()

    def _start(self) -> LoadProcess:
        log, arguments = self._oracle.directory / "large.log", [self._oracle.address, str(self._cells)]
        return LoadProcess("the large commit", "benchmarks.large_load", arguments, log, self._guard, self._oracle.code)


def seconds_within(seconds: float, commits: Sequence[LargeCommit]) -> float:
    """``seconds``, or less where the shortest of the commits would not last for them."""
    return max(SECONDS_MIN, min([seconds, *(WINDOW_SHARE * commit.seconds for commit in commits)]))


def commit_of(answer: Answer, window_seconds: float) -> LargeCommit:
    """What ``benchmarks.large_load`` said of one."""
    return LargeCommit(
        answer["seconds"],
        answer["cpu_seconds"],
        min(1.0, answer["seconds"] / window_seconds),
        answer["reason"],
        answer["reason_of_older"],
    )
