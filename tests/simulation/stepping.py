"""A kernel whose every choice is made from outside, so that all of them can be tried.

There is no time here and no chance: what can be seen from outside of a thread (a call to the store, a question for the
lease, a request to an oracle) is a *step*; before each, whoever explores says which thread takes its step next. All
that lies between two steps of a thread belongs to the former one.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from tests.simulation.kernel import Kernel, Restlessness, VirtualThread
from tests.simulation.story import Story


class Abandoned(Exception):
    """The explorer has been here before: this run need not be finished."""


class SteppedKernel(Kernel):
    """Runs threads step by step; ``choose`` is asked for the place of the next one among those that can go on."""

    def __init__(self, story: Story, choose: Callable[[Sequence[VirtualThread]], int]) -> None:
        super().__init__("stepped", story, Restlessness(0.0, 0.0))
        self._choose = choose
        self.observed: dict[str, int] = {}
        """Thread → digest of all that it has seen so far, in order. It has no other state that is not elsewhere."""
        self._at_step: list[VirtualThread] = []

    def point(self, label: str) -> None:
        """Not a step: nothing outside of the thread is seen or touched here."""
        self.require_going_on()

    def sleep_us(self, own_us: float) -> None:
        """Time does not pass: whoever waits for it to pass can go on at once."""
        self.point("sleep")

    def step(self, label: str, effect: Callable[[], Any]) -> Any:
        """Take a step: when it is chosen ``effect`` takes place at once, and the thread has seen what came of it."""
        thread = self.current
        if thread is None:
            return effect()
        self._at_step.append(thread)
        self._leave()
        try:
            result = effect()
        except Exception as error:
            self._see(thread, label, repr(error))
            raise
        self._see(thread, label, repr(result))
        return result

    def saw(self, what: object) -> None:
        """Note something that the running thread has found out without a step."""
        self._see(self.running(), "saw", repr(what))

    def run_all(self) -> None:
        """Until nobody can go on. Raises what ``choose`` raises."""
        while self._ready or self._at_step:
            while self._ready:
                self._enter(self._ready.pop(0))
            able = sorted(self._at_step, key=lambda thread: thread.name)
            if able:
                thread = able[self._choose(able) if len(able) > 1 else 0]
                self._at_step.remove(thread)
                self._enter(thread)

    def standing(self) -> tuple[tuple[str, int, bool], ...]:
        """Where every thread stands: what it has seen, and whether it can take a step."""
        able = set(map(id, self._at_step))
        return tuple(
            (thread.name, self.observed.get(thread.name, 0), id(thread) in able)
            for thread in sorted(self._threads, key=lambda thread: thread.name)
            if not thread.ended
        )

    def _see(self, thread: VirtualThread, label: str, result: str) -> None:
        self.observed[thread.name] = hash((self.observed.get(thread.name, 0), label, result))
        if self.story.is_told:
            self.story.add(self.steps, thread.name, f"{label}: {result}")
        self.steps += 1
