"""What was found of one service after the other, and how that is told. Pure."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from enum import StrEnum
from typing import Any, Final

_STATE_CHARACTERS: Final = 9
_SUBJECT_CHARACTERS: Final = 24


class State(StrEnum):
    """How it is with one thing."""

    FINE = "fine"
    WARNING = "warning"
    FAILED = "failed"
    NOT_TRIED = "not tried"


@dataclass(frozen=True, slots=True)
class Finding:
    """Of one thing. ``took_ms``: how long it took to find out; ``None``: nobody was asked."""

    subject: str
    state: State
    words: str
    took_ms: float | None = None

    def line(self) -> str:
        """In words, for columns."""
        took = "" if self.took_ms is None else f"  ({self.took_ms:.1f} ms)"
        return f"{self.state:<{_STATE_CHARACTERS}}  {self.subject:<{_SUBJECT_CHARACTERS}}  {self.words}{took}"

    def fields(self) -> dict[str, Any]:
        """For JSON."""
        took = None if self.took_ms is None else round(self.took_ms, 1)
        return {"subject": self.subject, "state": str(self.state), "words": self.words, "took_ms": took}


def is_well(findings: Iterable[Finding]) -> bool:
    """Whether a program could do its work: nothing has failed, and nothing was left out for what failed before."""
    return all(each.state in (State.FINE, State.WARNING) for each in findings)


def of_clock(ahead_ms: float, took_ms: float, warned_ms: float) -> Finding:
    """Of timestamps that are so far ahead of this machine's clock, by an answer that took so long."""
    where = "ahead of" if ahead_ms >= 0 else "behind"
    words = f"timestamps are {abs(ahead_ms):.0f} ms {where} this machine's clock"
    if abs(ahead_ms) - took_ms <= warned_ms:
        return Finding("clock", State.FINE, words)
    return Finding("clock", State.WARNING, f"{words}: moments that are named by wall time are off by that much")
