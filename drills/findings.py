"""What clients saw of a drill, in figures: outages, verdict, counts. Pure, and fit to be sent through a pipe."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, fields
from typing import Any, Self

from drills.outages import Outage, Timeline, Window
from drills.verdict import Record, Verdict, judge


@dataclass(frozen=True, slots=True)
class Findings:
    """``outages``: one for each fault. ``commits``: acknowledged ones of transactions that wrote something."""

    outages: Sequence[Outage]
    verdict: Verdict
    transactions: int
    commits: int
    commits_per_second: float
    quiet_gap_ms: float
    """The longest time without an acknowledged commit before the first fault: what is no outage at all."""

    @classmethod
    def of(cls, found: Findings, **others: Any) -> Self:
        """What was found, and what the drill itself knows: all the fields of its own."""
        return cls(**{each.name: getattr(found, each.name) for each in fields(found)}, **others)

    def to_pipe(self) -> dict[str, Any]:
        """Plain values."""
        return asdict(self)

    @classmethod
    def from_pipe(cls, found: Mapping[str, Any]) -> Self:
        """Read what ``to_pipe`` made, after JSON has had it: there the keys of a mapping are texts."""
        aborted_at = {int(place): count for place, count in found["verdict"]["aborted_at"].items()}
        others = {
            "outages": [Outage(**each) for each in found["outages"]],
            "verdict": Verdict(**{**found["verdict"], "aborted_at": aborted_at}),
        }
        return cls(**{**found, **others})


def findings(record: Record, quiet: Window) -> Findings:
    """``quiet``: the time before the first fault."""
    timeline = Timeline(record.transactions)
    return Findings(
        outages=[timeline.outage(window) for window in record.faults],
        verdict=judge(record),
        transactions=len(record.transactions),
        commits=len(record.outcomes),
        commits_per_second=timeline.commits_per_second(quiet),
        quiet_gap_ms=timeline.outage(quiet).gap_ms,
    )
