"""Our side of a contest: one oracle and the processes that load it through one front, driven window by window.

Invariant: whatever ``start`` began ``stop`` ends.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

from benchmarks.load_process import LoadProcess, shares, window_line, window_of
from benchmarks.our_oracle import OurOracle
from benchmarks.sides import Window
from devcluster.guard import Guard
from drills.children import Child

ANSWER_SECONDS_MAX: Final = 60.0
"""Beyond the length of a window."""
ONE_PROCESS_CONNECTIONS_MAX: Final = 63
"""With more of them one load process is what limits; where there are several all are used then."""


class OurSide:
    """``front``: see ``benchmarks.our_load``. ``processes``: of the load, where there are many connections."""

    def __init__(self, front: str, oracle: OurOracle, guard: Guard, *, processes: int = 1) -> None:
        self.name = f"Pythia, {front}"
        self._front = front
        self._oracle = oracle
        self._guard = guard
        self._count = processes
        self._loads: list[LoadProcess] = []

    @property
    def configuration(self) -> Mapping[str, str | int | bool]:
        """See ``Side``."""
        return {"front": self._front, "load_processes_max": self._count, **self._oracle.configuration}

    @property
    def children(self) -> Sequence[Child]:
        """The processes that run, of the load and of the oracle."""
        return [*(load.child for load in self._loads), *self._oracle.children]

    def start(self) -> None:
        """See ``Side``. Raises ``ChildFailed`` where a process does not start."""
        self._oracle.start()
        over_rest = self._front == "rest"
        address, root = (self._oracle.rest_address, "") if over_rest else self._oracle.load_arguments
        arguments = [address, self._front, root]
        for number in range(self._count):
            log = self._oracle.directory / f"load-{self._front}-{number}.log"
            name = f"load process {number + 1} of {self.name}"
            self._loads.append(LoadProcess(name, "benchmarks.our_load", arguments, log, self._guard, self._oracle.code))

    def window(self, in_flight: int, cells: int, seconds: float, connections: int) -> Window:
        """See ``Side``."""
        loads = self._loads[: processes_for(connections, self._count)]
        assert loads, "start comes first"
        before = self._oracle.cpu_seconds()
        parts = zip(loads, shares(in_flight, len(loads)), shares(connections, len(loads)), strict=True)
        for load, part_in_flight, part_connections in parts:
            load.ask(window_line(part_in_flight, cells, seconds, part_connections))
        answers = [load.answer(seconds + ANSWER_SECONDS_MAX) for load in loads]
        return window_of(answers, self._oracle.cpu_seconds() - before)

    def stop(self) -> None:
        """See ``Side``."""
        while self._loads:
            self._loads.pop().end()
        self._oracle.stop()


def processes_for(connections: int, processes_max: int) -> int:
    """How many processes share so many connections."""
    return processes_max if connections > ONE_PROCESS_CONNECTIONS_MAX else 1
