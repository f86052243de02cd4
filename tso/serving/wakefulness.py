"""An event loop that does not sleep at once: for a moment after work it looks again and again whether there is more.

A core that has nothing to do is halted, and to wake one that is virtual takes as long as a whole round trip otherwise
does. Whoever has one transaction under way at a time waits for several such awakenings in a row; looking again for as
long as a write to HBase usually takes leaves out those of the oracle. The idea is that of ScyllaDB's Seastar, which
polls for a while before it sleeps.

Invariants: without work it sleeps after the given time, and each look gives way: where somebody else takes the core, it
sleeps at once. A quota of CPU time is used up by it; the setting says so.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from typing import Final, Protocol

OWED_MAX: Final = 8
"""Beyond so many transactions under way the loop is woken soon anyway, and those who serve them need the cores."""

GAVE_WAY_US_MIN: Final = 15.0
"""Giving way takes less than 1 µs where nobody else wants the core."""


class Scheduling(Protocol):
    """What of an event loop is needed."""

    def call_soon(self, callback: Callable[[], None]) -> object:
        """Call it in the next turn, before which the loop looks for work and does not sleep."""
        ...


class Wakefulness:
    """Of one event loop, for up to ``awake_us_max`` after each work; 0: it sleeps at once."""

    def __init__(
        self,
        loop: Scheduling,
        awake_us_max: int,
        *,
        clock_s: Callable[[], float] = time.perf_counter,
        give_way: Callable[[], None] = os.sched_yield,
    ) -> None:
        self._loop = loop
        self._awake_s_max = awake_us_max / 1e6
        self._clock_s = clock_s
        self._give_way = give_way
        self._until_s = 0.0
        self._looking = False

    def stay(self, owed: int) -> None:
        """There was work, and for ``owed`` transactions there is more to come."""
        self._until_s = 0.0 if owed > OWED_MAX else self._clock_s() + self._awake_s_max
        if not self._looking and owed <= OWED_MAX and self._awake_s_max:
            self._looking = True
            self._loop.call_soon(self._look_again)

    def _look_again(self) -> None:
        before_s = self._clock_s()
        self._looking = before_s < self._until_s
        if not self._looking:
            return
        self._give_way()
        if (self._clock_s() - before_s) * 1e6 > GAVE_WAY_US_MIN:
            self._looking = False
        else:
            self._loop.call_soon(self._look_again)
