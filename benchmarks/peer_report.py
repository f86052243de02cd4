"""What came of a contest with the peer, as one JSON object and as a table.

Invariant: ``ratio`` compares with the better of the peer's configurations; that with each of them stands beside it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from rich.table import Table

from benchmarks.comparison import Fields, median_latency, ratio_fields, series_fields
from benchmarks.contest import Series, better
from benchmarks.peer.configuration import explained_by
from benchmarks.peer_cases import Case


@dataclass(frozen=True, slots=True)
class CaseResult:
    """One case through one of our fronts: ours, and the peer's configurations in the case's order."""

    case: Case
    front: str
    ours: Series
    peers: tuple[Series, ...]

    @property
    def name(self) -> str:
        """Of the case, and of the front where the case has more than one."""
        return self.case.name if len(self.case.fronts) == 1 else f"{self.case.name}-{self.front}"

    @property
    def best(self) -> Series:
        """The peer's better configuration."""
        return self.peers[better(self.peers)]

    def explanation(self, peer: Series) -> str | None:
        """What other than its speed explains the rate of one of the peer's configurations."""
        configuration = self.case.configurations[self.peers.index(peer)]
        begin = median_latency([window.begin for window in peer.windows])
        return explained_by(configuration, self.case.in_flight, begin)

    def beside(self, peer: Series) -> Fields:
        """The ratio to one of the peer's configurations, and what explains it."""
        return {**ratio_fields(self.ours, peer), "explained_by": self.explanation(peer)}

    def to_fields(self) -> Fields:
        """As plain values, for JSON."""
        return {
            "name": self.name,
            "ours": round(self.ours.per_second, 1),
            "peer": round(self.best.per_second, 1),
            **self.beside(self.best),
            "peer_configuration": self.best.side,
            "in_flight": self.case.in_flight,
            "connections": self.case.connections,
            "cells": self.case.cells,
            "commit_table": "HBase" if self.case.with_hbase else "none",
            "our_front": self.front,
            "sides": [
                series_fields(self.ours),
                *(series_fields(peer) | self.beside(peer) for peer in self.peers),
            ],
        }


def table(results: Sequence[CaseResult]) -> Table:
    """For a person: a line for each side of each case, the peer's better configuration marked."""
    shown = Table(title="begin and commit of a transaction, beside Apache Omid in the same run")
    shown.add_column("case", no_wrap=True)
    shown.add_column("side")
    for heading in ("per second", "p50 / p99 ms", "CPU client + oracle", "ratio"):
        shown.add_column(heading, justify="right")
    for result in results:
        name = result.name
        for series in (result.ours, *result.peers):
            shown.add_row(name, *_row(result, series))
            name = ""
        shown.add_section()
    return shown


def _row(result: CaseResult, series: Series) -> tuple[str, ...]:
    fields = series_fields(series)
    side, ratio = series.side, ""
    if series is not result.ours:
        beside = result.beside(series)
        side += " ←" if series is result.best else ""
        side += f"\n(explained by {beside['explained_by']})" if beside["explained_by"] else ""
        ratio = f"{beside['ratio']:.2f} ({beside['ratio_min']:.2f}–{beside['ratio_max']:.2f})"
    whole = fields["whole"]
    return (
        side,
        f"{fields['per_second']:,.0f}",
        f"{whole['p50_us'] / 1_000:.2f} / {whole['p99_us'] / 1_000:.2f}",
        f"{fields['client_cpu_share']:.2f} + {fields['oracle_cpu_share']:.2f}",
        ratio,
    )
