"""What a drill says at its end: a table for people, one JSON object for programs. Pure."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from rich.table import Table

from drills.findings import Findings
from drills.outages import Spread, Struck, spread

HARMS_SHOWN_MAX: Final = 5


@dataclass(frozen=True, slots=True, kw_only=True)
class Report(Findings):
    """Everything that one drill found out. ``left_out``: faults that could not be had, and why."""

    struck: Sequence[Struck]
    flights: Mapping[str, int]
    left_out: Mapping[str, str]
    processes: int
    lease_ms: int
    seed: int
    seconds: float

    def to_fields(self) -> dict[str, Any]:
        """Plain values for JSON; times are milliseconds unless their name says otherwise."""
        verdict = self.verdict
        return {
            "faults": len(self.struck),
            **{name: len(harms) for name, harms in verdict.harms.items()},
            "in_flight_at_failover": sum(verdict.in_flight),
            "outage_ms": _rounded(spread(outage.gap_ms for outage in self.outages)),
            "lease_ms": self.lease_ms,
            "by_fault": self._by_fault(),
            "each": [self._each(place) for place in range(len(self.struck))],
            "left_out": dict(self.left_out),
            "flights": dict(self.flights),
            "processes": self.processes,
            "failovers": sum(each.failovers for each in self.struck),
            "transactions": self.transactions,
            "commits": self.commits,
            "commits_per_second": round(self.commits_per_second, 1),
            "quiet_gap_ms": round(self.quiet_gap_ms, 1),
            "seconds": round(self.seconds, 1),
            "seed": self.seed,
            "harms": {name: list(harms[:HARMS_SHOWN_MAX]) for name, harms in verdict.harms.items() if harms},
        }

    def table(self) -> Table:
        """A row for each kind of fault, and one for all. First begin and commit: medians of ms since the fault."""
        table = Table(title=f"{len(self.struck)} faults, {self.processes} oracle processes, lease {self.lease_ms} ms")
        table.add_column("fault", no_wrap=True)
        for heading in ("times", "fail-\novers", "in\nflight", "aborted\nby it"):
            table.add_column(heading, justify="right")
        for heading in ("outage,\np50", "ms\np99", "\nmax", "first\nbegin", "first\ncommit"):
            table.add_column(heading, justify="right", no_wrap=True)
        for name, places in self._places().items():
            table.add_row(name, *self._row(places))
        table.add_section()
        table.add_row("all", *self._row(range(len(self.struck))))
        return table

    def each_table(self) -> Table:
        """A row for each fault, in their order; milliseconds."""
        table = Table(title="one after the other")
        for heading in ("", "fault", "of", "took over"):
            table.add_column(heading, no_wrap=True)
        for heading in ("outage, ms", "first begin", "first commit", "aborted by it"):
            table.add_column(heading, justify="right")
        for place, struck in enumerate(self.struck):
            outage = self.outages[place]
            times = (outage.gap_ms, outage.begin_ms, outage.commit_ms)
            shown = ["" if each is None else f"{each:,.0f}" for each in times]
            aborted = str(self.verdict.aborted_at.get(place, 0))
            who = ", ".join(struck.successors) or "nobody"
            table.add_row(str(struck.number), struck.name, struck.victim, who, *shown, aborted)
        return table

    def harms_table(self) -> Table:
        """The five kinds of harm, counted, with the first sentences of each."""
        table = Table(title="harm done")
        table.add_column("kind")
        table.add_column("count", justify="right")
        table.add_column("such as")
        for name, harms in self.verdict.harms.items():
            table.add_row(name.replace("_", " "), str(len(harms)), "\n".join(harms[:HARMS_SHOWN_MAX]))
        return table

    def lines(self) -> list[str]:
        """What the tables do not say."""
        flights = ", ".join(f"{count} {how}" for how, count in sorted(self.flights.items()))
        return [
            f"{self.transactions:,} transactions, {self.commits:,} commits acknowledged in {self.seconds:.0f} s; "
            f"before the first fault {self.commits_per_second:.0f} a second, no gap over {self.quiet_gap_ms:.0f} ms",
            f"opened for the faults, and how they ended: {flights}",
            *(f"LEFT OUT: {name}: {reason}" for name, reason in self.left_out.items()),
        ]

    def _places(self) -> dict[str, list[int]]:
        places: dict[str, list[int]] = defaultdict(list)
        for place, each in enumerate(self.struck):
            places[each.name].append(place)
        return places

    def _row(self, places: Sequence[int]) -> list[str]:
        verdict = self.verdict
        gaps = spread(self.outages[place].gap_ms for place in places)
        begins = spread(ms for place in places if (ms := self.outages[place].begin_ms) is not None)
        commits = spread(ms for place in places if (ms := self.outages[place].commit_ms) is not None)
        return [
            str(len(places)),
            str(sum(self.struck[place].failovers for place in places)),
            str(sum(verdict.in_flight[place] for place in places)),
            str(sum(verdict.aborted_at.get(place, 0) for place in places)),
            *([f"{gaps.p50:,.0f}", f"{gaps.p99:,.0f}", f"{gaps.max:,.0f}"] if gaps else [""] * 3),
            *(f"{each.p50:,.0f}" if each else "" for each in (begins, commits)),
        ]

    def _by_fault(self) -> dict[str, Any]:
        return {
            name: {
                "times": len(places),
                "failovers": sum(self.struck[place].failovers for place in places),
                "outage_ms": _rounded(spread(self.outages[place].gap_ms for place in places)),
            }
            for name, places in self._places().items()
        }

    def _each(self, place: int) -> dict[str, Any]:
        struck, outage = self.struck[place], self.outages[place]
        return {
            "fault": struck.name,
            "victim": struck.victim,
            "failovers": struck.failovers,
            "took_over": list(struck.successors),
            "in_flight": self.verdict.in_flight[place],
            "aborted_by_failover": self.verdict.aborted_at.get(place, 0),
            "outage_ms": round(outage.gap_ms, 1),
            "first_begin_ms": None if outage.begin_ms is None else round(outage.begin_ms, 1),
            "first_commit_ms": None if outage.commit_ms is None else round(outage.commit_ms, 1),
        }


def _rounded(values: Spread | None) -> dict[str, float | None]:
    if values is None:
        return dict.fromkeys(("p50", "p99", "max"))
    return {"p50": round(values.p50, 1), "p99": round(values.p99, 1), "max": round(values.max, 1)}
