"""Fault after fault on one installation under load, with transactions in flight at each.

Invariant: the next fault strikes only when the last one is healed, every process is there again, and every process of
the load has had a commit acknowledged since.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from random import Random
from typing import Any, Final, Generic, TypeVar

from drills.errors import DrillStalled
from drills.fault import FAILOVER_SECONDS_MAX, AnyFault, Recovery, SiteT
from drills.flights import Stage
from drills.loads import Loads
from drills.outages import Struck, Window

SERVED_SECONDS_MAX: Final = 120.0
"""How long it may take until clients are served again."""
EXPENSIVE: Final = ("kill-hbase", "ten-failovers", "cut-hbase", "hole-hbase")
"""Faults that take many times as long as the others; a mixed campaign has no more of them than it must."""
MIXED_TIMES_MIN: Final = 2
"""How often each fault comes in a mixed campaign that is long enough."""

KindT = TypeVar("KindT", bound=type[AnyFault[Any]])


class Campaign(Generic[SiteT]):
    """``random`` decides what faults leave open; ``tell`` is called with each fault that is over."""

    def __init__(self, installation: SiteT, loads: Loads, random: Random) -> None:
        self._installation = installation
        self._loads = loads
        self._random = random

    def run(self, faults: Sequence[type[AnyFault[SiteT]]], tell: Callable[[str, int], None]) -> Iterator[Struck]:
        """Inflict them one after the other. Raises ``DrillStalled`` where it does not go on."""
        for number, fault in enumerate(faults, 1):
            tell(fault.name, number - 1)
            try:
                yield self._strike(number, fault)
            except DrillStalled as error:
                raise DrillStalled(f"fault {number}, {fault.name}: {error}") from error

    def _strike(self, number: int, kind: type[AnyFault[SiteT]]) -> Struck:
        installation = self._installation
        newest = max(tenure.epoch for tenure in installation.tenures())
        installation.await_primary(newest - 1, FAILOVER_SECONDS_MAX)
        before = len(installation.tenures())
        fault = kind(installation, self._random)
        epoch = fault.victim.epoch or newest
        self._loads.open(number)
        inflicted_ns = time.monotonic_ns()
        fault.inflict()
        self._loads.reach(number, Stage.STRUCK)
        self._recover(fault, number, epoch)
        self._settle(number)
        window = Window(inflicted_ns, time.monotonic_ns())
        self._loads.land(number)
        successors = tuple(tenure.seat for tenure in installation.tenures()[before:])
        return Struck(number, kind.name, fault.victim.name, window, len(successors), successors)

    def _recover(self, fault: AnyFault[SiteT], number: int, epoch: int) -> None:
        """From the fault to its end, with clients served before it or after it, as it promises."""
        if fault.recovery in (Recovery.BY_FAILOVER, Recovery.FOR_SOME):
            self._installation.await_primary(epoch, FAILOVER_SECONDS_MAX)
        if fault.recovery in (Recovery.BY_FAILOVER, Recovery.AT_ONCE):
            self._await_commits(f"while '{fault.name}' lasts")
            self._loads.reach(number, Stage.SERVED)
        time.sleep(self._random.uniform(*fault.hold_ms) / 1_000)
        fault.heal()

    def _settle(self, number: int) -> None:
        for seat in self._installation.seats:
            seat.await_ready()
        self._await_commits("after the fault was healed")
        self._loads.reach(number, Stage.SERVED)
        self._loads.reach(number, Stage.HEALED)

    def _await_commits(self, when: str) -> None:
        try:
            self._loads.await_commits(time.monotonic_ns(), SERVED_SECONDS_MAX, when)
        except DrillStalled as error:
            raise DrillStalled(f"{error}\n{self._installation.describe()}") from error


def mixed(kinds: Sequence[KindT], faults: int, random: Random) -> list[KindT]:
    """A plan of that many faults in random order: each of ``kinds`` twice if there is room, then cheap ones at random.

    Where there is no room for all, those that come first in ``kinds`` are in.
    """
    planned = (list(kinds) * MIXED_TIMES_MIN)[:faults]
    cheap = [kind for kind in kinds if kind.name not in EXPENSIVE] or list(kinds)
    planned += random.choices(cheap, k=faults - len(planned))
    random.shuffle(planned)
    return planned
