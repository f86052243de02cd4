"""A side whose processes are stopped whenever it is not their turn: timers of an idle one would take the others' time.

Invariant: its processes run within a window, while they start and while they end, and at no other time.
"""

from __future__ import annotations

import signal
from collections.abc import Sequence
from typing import Protocol

from benchmarks.sides import Side, Window
from benchmarks.wrapped_side import WrappedSide
from drills.children import Child


class OfProcesses(Side, Protocol):
    """A side that can tell its processes."""

    @property
    def children(self) -> Sequence[Child]:
        """Those that run."""


class RestingSide(WrappedSide[OfProcesses]):
    """``side``, at rest between its windows: SIGSTOP and SIGCONT, for less than anything of it would time out."""

    def start(self) -> None:
        """See ``Side``."""
        super().start()
        self._signal(signal.SIGSTOP)

    def window(self, in_flight: int, cells: int, seconds: float, connections: int) -> Window:
        """See ``Side``."""
        self._signal(signal.SIGCONT)
        try:
            return super().window(in_flight, cells, seconds, connections)
        finally:
            self._signal(signal.SIGSTOP)

    def stop(self) -> None:
        """See ``Side``."""
        self._signal(signal.SIGCONT)
        super().stop()

    def _signal(self, number: signal.Signals) -> None:
        for child in self._side.children:
            child.send_signal(number)
