"""Who can reach whom: the cuts between machines, and what waits for them to heal.

A cut has a direction; a partition is two of them. What is sent into a cut is not lost: TCP sends it again, and it
arrives some time after the cut has healed, if whoever sent it has not given up by then.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable

from tests.simulation.kernel import Kernel

RESEND_US_MAX = 400_000
"""After a cut has healed, what was held arrives within that time: TCP tries again ever more rarely."""


class Links:
    """Cuts between machines and services, by name."""

    def __init__(self, kernel: Kernel) -> None:
        self._kernel = kernel
        self._random = kernel.stream("links")
        self._cuts: Counter[tuple[str, str]] = Counter()
        self._held: dict[tuple[str, str], list[Callable[[], None]]] = {}
        self.travel_us_max = 1_500

    def travel_us(self) -> int:
        """How long a message takes: mostly short, sometimes long."""
        share = self._random.random()
        return 30 + int(self.travel_us_max * share * share * share)

    def is_open(self, source: str, target: str) -> bool:
        """Whether messages pass in that direction."""
        return not self._cuts[source, target]

    def cut(self, source: str, target: str) -> None:
        """Let nothing pass in that direction; as often as it is cut it has to be healed."""
        self._cuts[source, target] += 1

    def heal(self, source: str, target: str) -> None:
        """Undo one cut."""
        self._cuts[source, target] -= 1
        if self.is_open(source, target):
            for arrive in self._held.pop((source, target), []):
                self._kernel.after(self._random.randrange(RESEND_US_MAX), self._again(source, target, arrive))

    def heal_all(self) -> None:
        """Undo every cut."""
        for source, target in sorted(pair for pair, cuts in self._cuts.items() if cuts > 0):
            self._cuts[source, target] = 1
            self.heal(source, target)

    def when_open(self, source: str, target: str, arrive: Callable[[], None]) -> None:
        """Let something arrive now, or some time after the cut has healed."""
        if self.is_open(source, target):
            arrive()
        else:
            self._held.setdefault((source, target), []).append(arrive)

    def _again(self, source: str, target: str, arrive: Callable[[], None]) -> Callable[[], None]:
        return lambda: self.when_open(source, target, arrive)
