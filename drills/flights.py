"""Transactions that are in flight when a fault strikes: begun before it, with some writes done, ended later.

Each has a key of its own, which nobody else writes, so that there is nothing in the world to make it abort but the
failover. Two *rivals* write one key: one of them has to commit, the other to meet its conflict. All are recorded, and
judged from the record like every other transaction.
"""

from __future__ import annotations

import threading
from collections.abc import Sequence
from dataclasses import dataclass
from enum import Enum
from typing import Final

from drills.errors import DrillStalled
from histories import CellMapping, Outcome, RecordedTransaction, Recorder, RecordingTransaction

FLIGHT_SECONDS_MAX: Final = 600.0
"""How long a flight waits to be told to land."""
OPEN_SECONDS_MAX: Final = 60.0
LANDING_SECONDS_MAX: Final = 180.0
"""How long its commit may take."""


class Stage(Enum):
    """When a flight is told to end."""

    STRUCK = "struck"
    """The fault has just been inflicted."""
    SERVED = "served"
    """Clients are served again, and what was cut off or stopped still is."""
    HEALED = "healed"
    """All is well again."""


RIVAL_STAGES: Final = (Stage.SERVED, Stage.HEALED)


@dataclass(frozen=True, slots=True)
class Flight:
    """What one transaction in flight does: ``key`` now, ``later_key`` once ``stage`` is reached."""

    key: str
    later_key: str
    stage: Stage


def flights_at(fault: int, process: str) -> list[Flight]:
    """The flights that one process opens for a fault."""
    prefix = f"flight/{fault:05d}/{process}"
    alone = [Flight(f"{prefix}/{stage.value}", f"{prefix}/{stage.value}/later", stage) for stage in Stage]
    rivals = [Flight(f"{prefix}/rival", f"{prefix}/rival/{stage.value}", stage) for stage in RIVAL_STAGES]
    return alone + rivals


def flight_cells(table: str) -> CellMapping:
    """Where the keys of flights lie."""
    return CellMapping(table)


class Flights:
    """The flights of one process and one fault, each in a thread of its own."""

    def __init__(self, recorder: Recorder, flights: Sequence[Flight]) -> None:
        self._recorder = recorder
        self._stages = {stage: threading.Event() for stage in Stage}
        self._opened = threading.Semaphore(0)
        self._landed: list[RecordedTransaction] = []
        self._errors: list[BaseException] = []
        self._threads = [threading.Thread(target=self._fly, args=(flight,), daemon=True) for flight in flights]

    def open(self) -> None:
        """Begin them all. Raises ``DrillStalled`` where one does not get off the ground."""
        for thread in self._threads:
            thread.start()
        for _ in self._threads:
            if not self._opened.acquire(timeout=OPEN_SECONDS_MAX) or self._errors:
                raise DrillStalled(
                    f"waited {OPEN_SECONDS_MAX:.0f} s for transactions to begin and write, in vain: {self._errors}"
                )

    def reach(self, stage: Stage) -> None:
        """Tell those that wait for it to end."""
        self._stages[stage].set()

    def land(self) -> list[RecordedTransaction]:
        """Wait until all have ended. Raises ``DrillStalled``, and whatever else one of them ended with."""
        for thread in self._threads:
            thread.join(LANDING_SECONDS_MAX)
            if thread.is_alive():
                raise DrillStalled(f"waited {LANDING_SECONDS_MAX:.0f} s for a transaction in flight to end, in vain")
        if self._errors:
            raise self._errors[0]
        return self._landed

    def _fly(self, flight: Flight) -> None:
        def work(transaction: RecordingTransaction) -> None:
            transaction.read(flight.key)
            transaction.write(flight.key)
            self._opened.release()
            if not self._stages[flight.stage].wait(FLIGHT_SECONDS_MAX):
                raise DrillStalled(f"waited {FLIGHT_SECONDS_MAX:.0f} s to be told to end, in vain")
            transaction.read(flight.later_key)
            transaction.write(flight.later_key)

        try:
            self._landed.append(self._recorder.run(work))
        except BaseException as error:
            self._errors.append(error)
            self._opened.release()


def in_words(landed: Sequence[RecordedTransaction]) -> dict[str, int]:
    """How many ended how: by outcome, aborted ones by their reason."""
    counted: dict[str, int] = {}
    for each in landed:
        how = each.reason if each.outcome is Outcome.ABORTED else each.outcome.value
        counted[how] = counted.get(how, 0) + 1
    return counted
