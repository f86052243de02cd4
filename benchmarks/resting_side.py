"""A side whose processes are stopped whenever it is not their turn: timers of an idle one would take the others' time.

Invariant: its processes run within a window, while they start and while they end, and at no other time.
"""

from __future__ import annotations

import signal
from collections.abc import Mapping, Sequence
from typing import Protocol

from benchmarks.sides import Side, Window
from drills.children import Child


class OfProcesses(Side, Protocol):
    """A side that can tell its processes."""

    @property
    def children(self) -> Sequence[Child]:
        """Those that run."""


class RestingSide:
    """``side``, at rest between its windows: SIGSTOP and SIGCONT, for less than anything of it would time out."""

    def __init__(self, side: OfProcesses) -> None:
        self.name = side.name
        self._side = side

    @property
    def configuration(self) -> Mapping[str, str | int | bool]:
        """See ``Side``."""
        return self._side.configuration

    def start(self) -> None:
        """See ``Side``."""
        self._side.start()
        self._signal(signal.SIGSTOP)

    def window(self, in_flight: int, cells: int, seconds: float, connections: int) -> Window:
        """See ``Side``."""
        self._signal(signal.SIGCONT)
        try:
            return self._side.window(in_flight, cells, seconds, connections)
        finally:
            self._signal(signal.SIGSTOP)

    def stop(self) -> None:
        """See ``Side``."""
        self._signal(signal.SIGCONT)
        self._side.stop()

    def _signal(self, number: signal.Signals) -> None:
        for child in self._side.children:
            child.send_signal(number)
