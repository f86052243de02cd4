"""How long clients were not served, from the moments at which their calls were sent and answered. Pure.

Times are nanoseconds of one machine's monotonic clock; results are in milliseconds.
"""

from __future__ import annotations

import math
from bisect import bisect_left, bisect_right
from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import NamedTuple

from histories import RecordedTransaction

NS_PER_MS = 1_000_000


class Call(NamedTuple):
    """A begin or a commit that was answered."""

    sent_ns: int
    answered_ns: int


class Window(NamedTuple):
    """From the moment before a fault was inflicted to the one when all was well again."""

    inflicted_ns: int
    settled_ns: int


@dataclass(frozen=True, slots=True)
class Struck:
    """A fault that was inflicted and healed: the times at which, and how many tenures began meanwhile."""

    number: int
    name: str
    victim: str
    window: Window
    failovers: int
    successors: tuple[str, ...] = ()
    """Who took over, one for each of the failovers."""


@dataclass(frozen=True, slots=True)
class Outage:
    """What clients saw of one fault; ``None``: there was no such call within the window, or after it."""

    gap_ms: float
    """The longest time without an acknowledged commit that the fault's window has a part of, in one process of
    clients: of several processes the one that had to wait longest counts."""
    begin_ms: float | None
    """From the fault to the first answer to a begin that was sent after it."""
    commit_ms: float | None
    """The same for commits."""


class Timeline:
    """All answered begins, and all acknowledged commits of transactions that wrote something.

    A process of clients is what the name of a recorded process begins with, up to a slash.
    """

    def __init__(self, transactions: Iterable[RecordedTransaction]) -> None:
        begins, commits = [], []
        self._acknowledged_ns: dict[str, list[int]] = defaultdict(list)
        for each in transactions:
            time = each.real_time
            if time is None:
                continue
            begins.append(Call(time.begin_sent_ns, time.begin_answered_ns))
            written = each.commit_timestamp is not None and not each.is_read_only
            if written and time.commit_sent_ns is not None and time.commit_answered_ns is not None:
                commits.append(Call(time.commit_sent_ns, time.commit_answered_ns))
                self._acknowledged_ns[each.process.partition("/")[0]].append(time.commit_answered_ns)
        self._begins = sorted(begins)
        self._commits = sorted(commits)
        for moments_ns in self._acknowledged_ns.values():
            moments_ns.sort()

    def outage(self, window: Window) -> Outage:
        """What the fault of that window cost."""
        return Outage(
            gap_ms=max(longest_gap_ms(moments_ns, window) for moments_ns in self._acknowledged_ns.values() or [[]]),
            begin_ms=_first_ms(self._begins, window.inflicted_ns),
            commit_ms=_first_ms(self._commits, window.inflicted_ns),
        )

    def commits_per_second(self, window: Window) -> float:
        """The rate of acknowledged commits within a window."""
        count = sum(
            bisect_right(moments_ns, window.settled_ns) - bisect_left(moments_ns, window.inflicted_ns)
            for moments_ns in self._acknowledged_ns.values()
        )
        return count * 1e9 / max(1, window.settled_ns - window.inflicted_ns)


def longest_gap_ms(moments_ns: Sequence[int], window: Window) -> float:
    """The longest time between two neighbours of the sorted ``moments_ns`` that overlaps the window.

    Where nothing came before the window, or after it, its own end takes the place of the neighbour that is missing.
    """
    first = bisect_right(moments_ns, window.inflicted_ns)
    last = bisect_left(moments_ns, window.settled_ns)
    before = moments_ns[first - 1] if first else window.inflicted_ns
    after = moments_ns[last] if last < len(moments_ns) else window.settled_ns
    bounds = [before, *moments_ns[first:last], after]
    return max(later - earlier for earlier, later in pairwise(bounds)) / NS_PER_MS


def _first_ms(calls: Sequence[Call], since_ns: int) -> float | None:
    """``calls`` are sorted by when they were sent; the first answer need not be that to the first call."""
    later = calls[bisect_left(calls, Call(since_ns, 0)) :]
    if not later:
        return None
    return (min(call.answered_ns for call in later) - since_ns) / NS_PER_MS


@dataclass(frozen=True, slots=True)
class Spread:
    """Percentiles, by nearest rank: each is a value that occurred."""

    p50: float
    p99: float
    max: float


def spread(values: Iterable[float]) -> Spread | None:
    """Median, 99th percentile and maximum; ``None`` of nothing."""
    ordered = sorted(values)
    if not ordered:
        return None
    return Spread(_nearest_rank(ordered, 0.50), _nearest_rank(ordered, 0.99), ordered[-1])


def _nearest_rank(ordered: Sequence[float], share: float) -> float:
    return ordered[max(1, math.ceil(share * len(ordered))) - 1]
