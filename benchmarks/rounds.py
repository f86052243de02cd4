"""Alternating rounds: two things measured in turn, so that a machine that slows down slows both.

A ratio is formed within each round; the median over the rounds is what may be quoted.
"""

from __future__ import annotations

import json
import statistics
import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial

import click


@dataclass(frozen=True, slots=True)
class Case:
    """One thing measured beside another: calls a second of each, by round."""

    name: str
    ours: list[float]
    beside: list[float]

    @property
    def ratio(self) -> float:
        """Median over the rounds of ours / beside."""
        return statistics.median(ours / beside for ours, beside in zip(self.ours, self.beside, strict=True))

    def summary(self) -> dict[str, object]:
        """The case as it is printed: medians, and the spread of the ratio."""
        ratios = [ours / beside for ours, beside in zip(self.ours, self.beside, strict=True)]
        return {
            "name": self.name,
            "ours_per_second": round(statistics.median(self.ours), 1),
            "beside_per_second": round(statistics.median(self.beside), 1),
            "ratio": round(self.ratio, 3),
            "ratio_min": round(min(ratios), 3),
            "ratio_max": round(max(ratios), 3),
            "rounds": len(ratios),
        }

    def line(self, what: str) -> str:
        """The summary for a person; ``what`` is counted."""
        summary = self.summary()
        return (
            f"{self.name}: {summary['ours_per_second']:,} / {summary['beside_per_second']:,} {what} a second, "
            f"ratio {summary['ratio']} ({summary['ratio_min']}–{summary['ratio_max']}, {summary['rounds']} rounds)"
        )


def show(cases: Sequence[Case], what: str, *, as_json: bool) -> None:
    """Print a line for each case, which counts ``what``; or all of them as one JSON object."""
    if as_json:
        click.echo(json.dumps({"cases": [case.summary() for case in cases]}))
    else:
        for case in cases:
            click.echo(case.line(what))


def calls_per_second(call: Callable[[], object], *, threads: int, seconds: float) -> float:
    """How often ``threads`` threads together get ``call`` done in a second, closed loop. An error in one is raised."""
    ends = time.monotonic() + seconds
    counts = [0] * threads
    errors: list[BaseException] = []

    def work(index: int) -> None:
        try:
            while time.monotonic() < ends:
                call()
                counts[index] += 1
        except BaseException as error:
            errors.append(error)

    started = time.monotonic()
    workers = [threading.Thread(target=work, args=(index,)) for index in range(threads)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    if errors:
        raise errors[0]
    return sum(counts) / (time.monotonic() - started)


def alternate_calls(
    name: str,
    ours: Callable[[], object],
    beside: Callable[[], object],
    *,
    threads: int,
    seconds: float,
    rounds: int,
    progress: Callable[[str], None],
) -> Case:
    """How often ``threads`` threads get either call done in a second, measured in turn for ``seconds`` each time."""
    measured = partial(calls_per_second, threads=threads, seconds=seconds)
    return alternate(name, partial(measured, ours), partial(measured, beside), rounds=rounds, progress=progress)


def alternate(
    name: str, ours: Callable[[], float], beside: Callable[[], float], *, rounds: int, progress: Callable[[str], None]
) -> Case:
    """Measure in turn, ``rounds`` times, after one round of each that does not count."""
    ours(), beside()
    case = Case(name, [], [])
    for number in range(rounds):
        case.ours.append(ours())
        case.beside.append(beside())
        progress(f"{name}: round {number + 1} of {rounds}: {case.ours[-1]:,.0f} / {case.beside[-1]:,.0f} a second")
    return case
