"""What every installation under a drill has, be it processes or containers: places where oracles sit, and who serves.

Invariant: who is primary is known from what the oracles say themselves, each tenure with its epoch; it is not guessed.
"""

from __future__ import annotations

import re
import threading
from collections.abc import Callable
from dataclasses import dataclass
from typing import Generic, Protocol, TypeVar

from drills.children import TakeLine
from drills.waiting import wait_until

_SERVING = re.compile(r"serving on (\S+) as standby")
_PRIMARY = re.compile(r"primary, epoch (\d+)")


@dataclass(frozen=True, slots=True)
class Tenure:
    """An oracle became primary: where, and the epoch's first timestamp."""

    seat: str
    epoch: int


class Announced:
    """What the oracles at one place have said on their standard output. Safe for use from several threads."""

    def __init__(self, seat: str) -> None:
        self.tenures: list[Tenure] = []
        self._seat = seat
        self._lock = threading.Lock()
        self._starts = 0
        self._address: str | None = None
        self._epoch: int | None = None

    @property
    def epoch(self) -> int | None:
        """The epoch in which the oracle last said that it is primary; ``None`` where it has said otherwise since."""
        with self._lock:
            return self._epoch

    @property
    def address(self) -> str | None:
        """Where it listens; ``None`` where it does not yet."""
        with self._lock:
            return self._address

    def begin(self, serving: Callable[[str], None] = lambda address: None) -> TakeLine:
        """Another oracle begins to speak. ``serving`` is told where it listens.

        Lines of an earlier one change nothing from now on but the list of tenures.
        """
        with self._lock:
            self._starts += 1
            self._address = self._epoch = None
            start = self._starts

        def take(line: str, at_ns: int) -> None:
            listening, primary = _SERVING.fullmatch(line), _PRIMARY.fullmatch(line)
            with self._lock:
                if primary:
                    self.tenures.append(Tenure(self._seat, int(primary[1])))
                if start != self._starts:
                    return
                self._epoch = int(primary[1]) if primary else None
                if listening:
                    self._address = listening[1]
                    serving(listening[1])

        return take


class Place(Protocol):
    """Where one oracle sits after the other."""

    @property
    def name(self) -> str:
        """What it is called."""

    @property
    def epoch(self) -> int | None:
        """See ``Announced.epoch``."""

    @property
    def tenures(self) -> list[Tenure]:
        """All that began here."""

    def await_ready(self) -> None:
        """Wait until the oracle listens. Raises ``DrillStalled``."""

    def tail(self) -> str:
        """The end of its log."""


PlaceT = TypeVar("PlaceT", bound=Place, covariant=True)


class Site(Generic[PlaceT]):
    """An installation, as far as a campaign needs to know it."""

    seats: tuple[PlaceT, ...]

    def primary(self, above_epoch: int = 0) -> PlaceT | None:
        """Who said last, in an epoch above that one, that it is primary; ``None`` where nobody has.

        It may have died since, or been deposed without knowing.
        """
        serving = [(seat.epoch, seat) for seat in self.seats if (seat.epoch or 0) > above_epoch]
        return max(serving, key=lambda pair: pair[0] or 0)[1] if serving else None

    def await_primary(self, above_epoch: int, seconds_max: float) -> PlaceT:
        """Wait for a primary of a later epoch. Raises ``DrillStalled``, which shows what each process says."""
        found: list[PlaceT] = []  # at one look: by the next one it may have lost its lease

        def is_there() -> bool:
            primary = self.primary(above_epoch)
            found.extend([] if primary is None else [primary])
            return bool(found)

        wait_until(is_there, f"a primary of an epoch above {above_epoch}", seconds_max, explain=self.describe)
        return found[0]

    def tenures(self) -> list[Tenure]:
        """Every tenure so far, oldest first."""
        return sorted((tenure for seat in self.seats for tenure in seat.tenures), key=lambda tenure: tenure.epoch)

    def describe(self) -> str:
        """What each process says it is, and the ends of their logs."""
        return "\n".join([*map(str, self.seats), *(seat.tail() for seat in self.seats)])
