"""What the reader and the late writer told, added up. Pure: messages come in, counts and conclusions come out."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from demo.errors import ComparisonFailed
from demo.summaries import shown

Message = Mapping[str, Any]


@dataclass(slots=True)
class ReaderTally:
    """What the reader has found by now."""

    full: int = 0
    quick: int = 0
    states: set[int] = field(default_factory=set)
    """How many flights there were in the snapshots: each transaction that was met adds one."""
    snapshot: int = 0
    """The newest snapshot of a full check that is done."""
    flights: int = 0
    """How many flights there were in it."""
    kind: str = ""
    differences: list[str] = field(default_factory=list)
    """Those of the first check that found any; the reader ends there."""
    finished: bool = False

    def take(self, message: Message) -> None:
        """Add a message of the reader."""
        if message["event"] == "finished":
            self.finished = True
        elif message["event"] == "checked":
            self._take_check(message)

    def _take_check(self, message: Message) -> None:
        if message["differences"]:
            self.kind, self.differences = message["kind"], list(message["differences"])
        self.states.add(message["flights"])
        if message["kind"] == "quick":
            self.quick += 1
            return
        self.full += 1
        self.flights = message["flights"]
        self.snapshot = message["snapshot"]

    def settled_at(self, timestamp: int) -> bool:
        """Whether a full check was done that saw what committed at ``timestamp``, or any found a difference."""
        return self.snapshot >= timestamp or bool(self.differences)

    def refuse_differences(self) -> None:
        """Raise ``ComparisonFailed`` when the reader has found a difference."""
        if self.differences:
            raise ComparisonFailed(
                f"the reader's {self.kind} check {self.full + self.quick:,} found a snapshot in which the summaries "
                f"are not those of the flights:\n{shown(self.differences)}"
            )

    def __str__(self) -> str:
        found = f"{len(self.differences):,} DIFFERENCES" if self.differences else "no difference"
        return f"{self.full:,} full and {self.quick:,} quick checks, each in a new snapshot: {found}"


COMMITTED: Final = "committed"
CONFLICT: Final = "conflict"


@dataclass(slots=True)
class Attempt:
    """One try of a late report: its transaction, and how many flights of its day it found."""

    transaction: int
    flights_before: int
    end: str = "it has not ended"
    """``COMMITTED``, ``CONFLICT``, or for what other reason it was aborted."""

    def __str__(self) -> str:
        ends = {COMMITTED: "committed", CONFLICT: "ended in a conflict with the month"}
        end = ends.get(self.end, f"was aborted without a conflict ({self.end})")
        return f"found {self.flights_before:,} flights of that day and {end}"


@dataclass(slots=True)
class LateTally:
    """The late reports, by month."""

    reports: dict[int, list[Attempt]] = field(default_factory=dict)
    reported: set[int] = field(default_factory=set)
    flights: int = 0

    def take(self, message: Message) -> None:
        """Add a message of the late writer."""
        month = message["month"]
        attempts = self.reports.setdefault(month, [])
        if message["event"] == "attempt":
            attempts.append(Attempt(message["transaction"], message["flights_before"]))
        elif message["event"] == "ended":
            attempts[-1].end = message["end"]
        elif message["event"] == "reported":
            self.flights += message["flights"]
            self.reported.add(month)

    def waits(self, month: int) -> bool:
        """Whether the first attempt of a month has written everything."""
        return bool(self.reports.get(month))

    def conflicts(self) -> int:
        """Attempts that ended in a conflict."""
        return sum(attempt.end == CONFLICT for attempts in self.reports.values() for attempt in attempts)

    def story(self, month: int) -> str:
        """How the report of a month went."""
        return "; ".join(f"attempt {number} {attempt}" for number, attempt in enumerate(self.reports[month], start=1))

    def refuse_missing_conflicts(self, month: int) -> None:
        """Raise ``ComparisonFailed`` unless exactly the first attempt of a month ended in a conflict."""
        if [attempt.end for attempt in self.reports[month]] != [CONFLICT, COMMITTED]:
            raise ComparisonFailed(
                f"the late report of month {month} overlapped with the month's transaction, so its first attempt had "
                f"to end in a conflict and its second had to commit; but {self.story(month)}"
            )
