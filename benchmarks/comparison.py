"""Two series of one run beside each other, as one JSON object. Pure.

Invariant: a ratio is formed within each round, and what is quoted is its median, with the smallest and the largest.
"""

from __future__ import annotations

import statistics
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

from benchmarks.contest import Measure, Series, per_second, ratios
from benchmarks.sides import Latency, Window

Fields = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Quantity:
    """What is compared: its name with its unit, and where it is in a window."""

    name: str
    of: Measure


def _begin(window: Window) -> Latency:
    return window.begin or window.whole


RATE = Quantity("a second", per_second)
BEGIN_P50 = Quantity("begin p50 µs", lambda window: _begin(window).p50_us)
BEGIN_P99 = Quantity("begin p99 µs", lambda window: _begin(window).p99_us)
WHOLE_P50 = Quantity("whole p50 µs", lambda window: window.whole.p50_us)
WHOLE_P99 = Quantity("whole p99 µs", lambda window: window.whole.p99_us)


@dataclass(frozen=True, slots=True)
class Comparison:
    """``extra``: what else there is to say of this case."""

    name: str
    ours: Series
    beside: Series
    quantity: Quantity = RATE
    extra: Fields = field(default_factory=dict)

    def to_fields(self) -> Fields:
        """As plain values, for JSON."""
        return {
            "name": self.name,
            "quantity": self.quantity.name,
            "ours": round(self.ours.median(self.quantity.of), 1),
            "beside": round(self.beside.median(self.quantity.of), 1),
            **ratio_fields(self.ours, self.beside, self.quantity.of),
            **self.extra,
            "sides": [series_fields(self.ours), series_fields(self.beside)],
        }


def ratio_fields(ours: Series, beside: Series, measure: Measure = per_second) -> Fields:
    """Of ours / beside: the median over the rounds, the smallest and the largest."""
    found = ratios(ours, beside, measure)
    return {
        "ratio": round(statistics.median(found), 3),
        "ratio_min": round(min(found), 3),
        "ratio_max": round(max(found), 3),
    }


def series_fields(series: Series) -> Fields:
    """Medians over the rounds, and each round."""
    windows = series.windows
    return {
        "name": series.side,
        "per_second": round(series.per_second, 1),
        "whole": _latency_fields(median_latency([window.whole for window in windows])),
        "begin": _latency_fields(median_latency([window.begin for window in windows])),
        "commit": _latency_fields(median_latency([window.commit for window in windows])),
        "client_cpu_share": _median_share(windows, lambda window: window.client_cpu_seconds),
        "oracle_cpu_share": _median_share(windows, lambda window: window.oracle_cpu_seconds),
        "configuration": series.configuration,
        "rounds": [_window_fields(window) for window in windows],
    }


def _window_fields(window: Window) -> Fields:
    return {
        "per_second": round(window.per_second, 1),
        "transactions": window.transactions,
        "aborted": window.aborted,
        "seconds": round(window.seconds, 3),
        "whole": _latency_fields(window.whole),
        **({} if window.ahead_ms is None else {"ahead_ms": round(window.ahead_ms, 3)}),
    }


def _latency_fields(latency: Latency | None) -> Fields | None:
    if latency is None:
        return None
    return {"p50_us": round(latency.p50_us, 1), "p99_us": round(latency.p99_us, 1)}


def median_latency(latencies: Sequence[Latency | None]) -> Latency | None:
    """Of each percentile by itself, over those that are known."""
    known = [latency for latency in latencies if latency is not None]
    if not known:
        return None
    return Latency(
        statistics.median(latency.p50_us for latency in known), statistics.median(latency.p99_us for latency in known)
    )


def _median_share(windows: Sequence[Window], of: Callable[[Window], float]) -> float:
    """Of one core."""
    return round(statistics.median(of(window) / window.seconds for window in windows), 3)
