"""Which months lose their primary oracle, how long nobody was served then, and how that is told. Pure."""

from __future__ import annotations

import calendar
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from statistics import median
from typing import Final

from client import Conflict, TransactionAborted
from demo.errors import ComparisonFailed
from demo.summaries import counted

KILLS_WANTED: Final = 3
"""At least, where there are months enough: so many failovers the long transaction is to live through."""
MONTHS_APART_MAX: Final = 3


def kill_months(months: int) -> tuple[int, ...]:
    """In which of the first ``months`` months the primary is killed: from the second on, as far apart as can be."""
    first = min(2, months)
    apart = max(1, min(MONTHS_APART_MAX, (months - first) // (KILLS_WANTED - 1)))
    return tuple(range(first, months + 1, apart))


def longest_silence_ms(acknowledged: Sequence[float], since: float, until: float) -> float | None:
    """The longest time in milliseconds between two of these moments (in seconds, ascending) around a failover.

    It is looked for from the last moment at or before ``since``, where there is one, up to the first one after
    ``until``. ``None`` where there is no such.
    """
    after = next((moment for moment in acknowledged if moment > until), None)
    if after is None:
        return None
    before = max((moment for moment in acknowledged if moment <= since), default=since)
    around = [before, *(moment for moment in acknowledged if before < moment <= after)]
    return max(1000 * (second - first) for first, second in pairwise(around))


def usual_silence_ms(acknowledged: Sequence[float]) -> float:
    """The median time in milliseconds between two of these moments (in seconds); 0 where there are no two."""
    return median([1000 * (second - first) for first, second in pairwise(acknowledged)] or [0.0])


def aborted(what: str, error: TransactionAborted) -> ComparisonFailed:
    """The error for a transaction that had to commit, which tells a conflict of its own from a failover's doing."""
    if isinstance(error, Conflict):
        return ComparisonFailed(f"{what} ended in a conflict with another writer, which no failover excuses: {error}")
    return ComparisonFailed(f"{what} was aborted by a failover, for there was no conflict: {error}")


@dataclass(frozen=True, slots=True)
class Kill:
    """A primary that was killed, and what came of it."""

    month: int
    killed: str
    """The name of the oracle."""
    rows: int
    """How many rows Spark's unfinished jobs had on record by then; 0: none was under way."""
    took_over: str
    silence_ms: float
    """The longest time without an acknowledged commit of the probe."""

    def __str__(self) -> str:
        writing = f"with {self.rows:,} rows of Spark's tasks on their way" if self.rows else "between two jobs of Spark"
        return (
            f"{calendar.month_name[self.month]}: {self.killed} was killed {writing}, {self.took_over} took over; "
            f"no acknowledged commit for {self.silence_ms / 1000:.2f} s"
        )


@dataclass(frozen=True, slots=True)
class LongTransaction:
    """The transaction that was open all the time, and committed."""

    open_seconds: float
    commit_seconds: float
    failovers: int
    """Which happened while it was open."""
    evicted: bool
    """Whether the first primary had forgotten what it would be judged by, already before it was killed."""

    def __str__(self) -> str:
        evicted = (
            " Already before the first its snapshot had been evicted from the conflict map." if self.evicted else ""
        )
        return (
            f"Long transaction: open for {self.open_seconds:.0f} s and {counted(self.failovers, 'failover')}, then "
            f"committed in {self.commit_seconds:.2f} s.{evicted}"
        )


@dataclass(frozen=True, slots=True)
class FailoverReport:
    """All failovers of a run."""

    lease_ms: int
    kills: Sequence[Kill]
    uninvited: int
    """Failovers without a kill."""
    probes: int
    """Transactions that the probe committed."""
    usual_ms: float
    """The probe's median time between two acknowledged commits."""
    long: LongTransaction

    def lines(self, months: int, late_reports: int, conflicts: int) -> list[str]:
        """The report; for the load's ``months``, ``late_reports`` and ``conflicts`` between them."""
        return [
            f"Primary oracle killed {counted(len(self.kills), 'time')} (SIGKILL, lease {self.lease_ms:,} ms), "
            "always in the middle of a month's transaction, which committed:",
            *(f"  {kill}." for kill in self.kills),
            *self._uninvited(),
            f"Probe: {counted(self.probes, 'tiny transaction')}, one after the other, of which none failed; usually "
            f"{self.usual_ms:.0f} ms from one acknowledged commit to the next.",
            str(self.long),
            f"Aborted by a failover: none of {counted(months, 'month')}, {counted(late_reports, 'late report')}, "
            f"{counted(self.probes, 'probe')} and the long transaction. Aborted by a real conflict with a month: "
            f"{counted(conflicts, 'attempt')} of the second writer.",
        ]

    def _uninvited(self) -> list[str]:
        if not self.uninvited:
            return []
        return [f"  Besides, the lease was lost {counted(self.uninvited, 'time')} without a kill: a busy machine."]
