"""Requests to a service that is not simulated in its parts: the store and the coordinator.

A request travels, takes effect at the service in one or more atomic steps, and its answer travels back; the caller may
be paused, killed or cut off at any moment of it, and the effect takes place all the same. A request may also be lost,
its answer may be lost, or it may take effect long after its caller gave up: those who call have to be right in all
three, and the simulation tries them all.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from enum import Enum, auto
from typing import Any

from tests.simulation.kernel import Kernel
from tests.simulation.links import Links
from tests.simulation.processes import Process

LATE_US_MAX = 6_000_000
"""A request that is on its way for longer than its caller waits arrives within that time."""
SOON_US_MAX = 20_000
"""A connection that breaks is noticed within that time."""


class Fate(Enum):
    """What becomes of a request."""

    ANSWERED = auto()
    LOST = auto()
    ANSWER_LOST = auto()
    LATE = auto()
    TWICE = auto()
    """Answered, and once more taking effect later: the adapter had sent it again after a time-out."""
    ASKED_TWICE = auto()
    """A compare-and-set that its gateway repeated: it took place, and the answer is that of the second try."""


class NoAnswer(Exception):
    """The request was sent, and no answer came."""


@dataclass(slots=True)
class Health:
    """How a service is at the moment."""

    down: bool = False
    """Nobody gets an answer; what is sent is lost."""
    unsure_share: float = 0.0
    """Share of requests whose answer does not come, whatever becomes of the request."""
    repeat_share: float = 0.0
    """Share of writes that take effect a second time, later."""


@dataclass(slots=True)
class Service:
    """One service of the room, and what is under way to it."""

    kernel: Kernel
    links: Links
    name: str
    health: Health = field(default_factory=Health)
    work_us_max: int = 800
    """How long one step takes, at most."""
    under_way: dict[int, Callable[[], None]] = field(default_factory=dict)
    """Effects of requests that nobody waits for any more, by the order of their calls."""
    requests: int = 0

    def call(
        self,
        process: Process,
        label: str,
        steps: Sequence[Callable[[], Any]],
        *,
        timeout_us: int,
        fates: Sequence[Fate] = (Fate.LOST,),
    ) -> list[Any]:
        """Have ``steps`` take place at the service, one after the other, and wait for what they return.

        ``timeout_us`` is by the process's clock. ``fates``: what may become of it where no answer comes. Raises
        ``NoAnswer``, and what a step raises.
        """
        self.kernel.point(label)
        if not steps:
            return []
        request = _Request(self, process, label, steps)
        fate = self._fate(fates)
        request.send(fate)
        outcome = request.wait(process.clock.true_us(timeout_us))
        self.kernel.point(f"{label}: answered")
        return outcome

    def deliver_late(self) -> None:
        """Let every request arrive that is still under way, now."""
        while self.under_way:
            self.under_way.pop(next(iter(self.under_way)))()

    def _fate(self, fates: Sequence[Fate]) -> Fate:
        chance, unsure = self.kernel.random.random(), self.health.unsure_share
        if chance < unsure:
            return self._one_of(fates, _UNANSWERED)
        if chance < unsure + self.health.repeat_share:
            return self._one_of(fates, _REPEATED)
        return Fate.ANSWERED

    def _one_of(self, fates: Sequence[Fate], wanted: Sequence[Fate]) -> Fate:
        possible = [fate for fate in fates if fate in wanted]
        return self.kernel.random.choice(possible) if possible else Fate.ANSWERED


_UNANSWERED = (Fate.LOST, Fate.ANSWER_LOST, Fate.LATE)
_REPEATED = (Fate.TWICE, Fate.ASKED_TWICE)


class _Request:
    """One request on its way."""

    def __init__(self, service: Service, process: Process, label: str, steps: Sequence[Callable[[], Any]]) -> None:
        service.requests += 1
        self._number = service.requests
        self._service = service
        self._kernel = service.kernel
        self._random: random.Random = service.kernel.random
        self._process = process
        self._label = label
        self._steps = list(steps)
        self._asked = len(self._steps)
        self._caller = service.kernel.running()
        self._results: list[Any] = []
        self._error: Exception | None = None
        self._answered = False
        self._failed = False

    def send(self, fate: Fate) -> None:
        """Let it leave, to end as ``fate`` says."""
        links = self._service.links
        if fate is not Fate.ANSWERED:
            self._kernel.tell(f"{self._label}: {fate.name.lower().replace('_', ' ')}")
        is_down = self._service.health.down
        if fate in _UNANSWERED or (is_down and self._random.random() < 0.5):
            self._kernel.after(self._random.randrange(SOON_US_MAX), self._fail)
        if fate is Fate.LOST or (is_down and fate is not Fate.LATE):
            return
        if fate is Fate.ASKED_TWICE:
            self._steps *= 2
        if fate in (Fate.LATE, Fate.TWICE):
            self._leave_under_way(self._random.randrange(LATE_US_MAX))
        if fate is not Fate.LATE:
            answers = fate is not Fate.ANSWER_LOST
            self._kernel.after(links.travel_us(), lambda: self._arrive(answers=answers))

    def wait(self, timeout_us: int) -> list[Any]:
        """What the steps returned."""
        end_us = self._kernel.now_us + timeout_us
        while not self._answered and not self._failed:
            left_us = end_us - self._kernel.now_us
            if left_us <= 0:
                break
            self._kernel.park(left_us)
        if not self._answered:
            raise NoAnswer(f"{self._service.name} did not answer")
        if self._error is not None:
            raise self._error
        return self._results[-self._asked :]

    def _arrive(self, *, answers: bool) -> None:
        """At the service: held by a cut, it may be lost with its connection, or arrive once the cut has healed."""
        links, source, target = self._service.links, self._process.name, self._service.name
        if links.is_open(source, target):
            self._work(0, answers=answers)
        elif self._random.random() < 0.5:
            place = self._keep(self._all_steps)
            links.when_open(source, target, lambda: self._take_up(place))

    def _work(self, step: int, *, answers: bool) -> None:
        """One step, and the next a moment later."""
        try:
            self._results.append(self._steps[step]())
        except Exception as error:
            self._error = error
        if self._error is None and step + 1 < len(self._steps):
            self._kernel.after(self._pause_us(), lambda: self._work(step + 1, answers=answers))
        elif answers:
            self._kernel.after(self._pause_us() + self._service.links.travel_us(), self._answer)

    def _answer(self) -> None:
        if self._service.links.is_open(self._service.name, self._process.name):
            self._answered = True
            self._kernel.wake(self._caller)

    def _fail(self) -> None:
        self._failed = True
        self._kernel.wake(self._caller)

    def _pause_us(self) -> int:
        share = self._random.random()
        return 20 + int(self._service.work_us_max * share * share)

    def _leave_under_way(self, delay_us: int) -> None:
        place = self._keep(self._all_steps)
        self._kernel.after(delay_us, lambda: self._take_up(place))

    def _keep(self, effect: Callable[[], None]) -> int:
        place = self._number
        self._service.under_way[place] = effect
        return place

    def _take_up(self, place: int) -> None:
        effect = self._service.under_way.pop(place, None)
        if effect is not None:
            self._kernel.tell_of(self._service.name, f"{self._label} of {self._process} arrives late")
            effect()

    def _all_steps(self) -> None:
        """Everything at once, for nobody: what goes wrong with it is nobody's concern."""
        for step in self._steps:
            try:
                step()
            except Exception:
                return
