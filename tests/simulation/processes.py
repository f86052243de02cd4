"""Simulated processes and their clocks.

A process is dead for good once it is dead; started again, it is another one under the same name. A paused one (SIGSTOP,
a frozen virtual machine) does nothing while its clocks, its timers and its kernel's sockets go on.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from enum import Enum, auto

WALL_START_US = 1_800_000_000_000_000
"""The wall clock at the start of every run: some day in 2027."""


class State(Enum):
    """Whether a process's threads can run."""

    RUNNING = auto()
    PAUSED = auto()
    DEAD = auto()


@dataclass(slots=True)
class Clock:
    """The clocks of one machine. ``rate``: its microseconds in one of the kernel's; the wall clock may be stepped."""

    now_us: Callable[[], int]
    rate: float = 1.0
    monotonic_start_us: int = 0
    wall_ahead_us: int = 0

    def monotonic_us(self) -> int:
        """Time since some moment in the past; never stepped."""
        return self.monotonic_start_us + int(self.now_us() * self.rate)

    def wall_us(self) -> int:
        """Time since 1970, as this machine believes."""
        return WALL_START_US + int(self.now_us() * self.rate) + self.wall_ahead_us

    def true_us(self, own_us: float) -> int:
        """How long so much of the machine's time takes by the kernel's clock, rounded up."""
        return int(own_us / self.rate) + 1


@dataclass(slots=True, eq=False)
class Process:
    """One simulated process. ``name`` names the machine, ``incarnation`` counts its processes."""

    name: str
    incarnation: int
    clock: Clock
    state: State = State.RUNNING
    at_death: list[Callable[[bool], None]] = field(default_factory=list)
    """Told when it dies, and whether its machine vanished with it: nothing then says goodbye to others."""

    def __str__(self) -> str:
        return self.name if self.incarnation == 1 else f"{self.name}#{self.incarnation}"
