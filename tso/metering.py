"""What one oracle process counts of itself, over all its epochs, for whoever watches it.

Pure but for the clock it is given. Nothing is counted a transaction at a time: a pass of the event loop adds its begins
at once, a batch of commits its decision, its write and its answer, each in a handful of additions to Python integers.
What the oracle counts anyway (begins, commits, cells) is read when somebody asks.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Iterator

import numpy as np

from tso.decisions.deciding import Codes
from wire import Reason

Sample = tuple[str, float]

SECONDS = (0.0001, 0.00025, 0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0)
TRANSACTIONS = (1.0, 2.0, 4.0, 8.0, 16.0, 32.0, 64.0, 128.0, 256.0, 512.0, 1024.0, 2048.0, 4096.0, 8192.0, 16384.0)
_COMMITTED = int(Reason.COMMITTED)


class Histogram:
    """Observations in bins; each may stand for many that were alike."""

    def __init__(self, name: str, bounds: tuple[float, ...]) -> None:
        self._name = name
        self._bounds = bounds
        self._bins = [0] * (len(bounds) + 1)
        self._sum = 0.0

    def add(self, value: float, times: int = 1) -> None:
        """Take in one value, as if it had been observed that many times."""
        self._bins[bisect_left(self._bounds, value)] += times
        self._sum += value * times

    def samples(self) -> Iterator[Sample]:
        """As Prometheus has them: each bin counts what is up to its bound."""
        up_to = 0
        for bound, count in zip((*self._bounds, float("inf")), self._bins, strict=True):
            up_to += count
            yield f'{self._name}_bucket{{le="{_bound_text(bound)}"}}', up_to
        yield f"{self._name}_sum", self._sum
        yield f"{self._name}_count", up_to


class Metering:
    """The counts of one process. For the event loop's thread. ``clock_s`` gives monotonic seconds."""

    def __init__(self, clock_s: Callable[[], float]) -> None:
        self.clock_s = clock_s
        self.begins = 0
        """Of epochs that have ended; so are ``commits``."""
        self.commits = 0
        self.connections = 0
        """Accepted so far."""
        self.takeovers = 0
        self.last_outage_s: float | None = None
        self.depositions = 0
        self.handovers = 0
        self.writes = 0
        self.write_failures = 0
        self.lookups = 0
        self.lookup_failures = 0
        self._answers = [0] * len(Reason)
        self._refusals = {"not_primary": 0, "overloaded": 0, "bad_request": 0, "not_allowed": 0}
        self._begin = Histogram("pythia_begin_seconds", SECONDS)
        self._decide = Histogram("pythia_commit_decide_seconds", SECONDS)
        self._persist = Histogram("pythia_commit_persist_seconds", SECONDS)
        self._commit = Histogram("pythia_commit_seconds", SECONDS)
        self._decision = Histogram("pythia_decision_transactions", TRANSACTIONS)
        self._write = Histogram("pythia_write_transactions", TRANSACTIONS)

    def began(self, transactions: int, since_s: float) -> None:
        """Transactions were begun by requests of which the first had come at ``since_s``."""
        self._begin.add(self.clock_s() - since_s, transactions)

    def decided(self, transactions: int, since_s: float) -> None:
        """A batch was decided over; that began at ``since_s``."""
        self._decide.add(self.clock_s() - since_s, transactions)
        self._decision.add(transactions)

    def written(self, commits: int, since_s: float) -> None:
        """Commits are in the commit table; their write began at ``since_s``."""
        self._persist.add(self.clock_s() - since_s, commits)
        self._write.add(commits)

    def told(self, transactions: int, since_s: float) -> None:
        """A batch was answered whose first request had come at ``since_s``."""
        self._commit.add(self.clock_s() - since_s, transactions)

    def all_committed(self, transactions: int) -> None:
        """A batch in which each transaction was told that it committed."""
        self._answers[_COMMITTED] += transactions

    def reasons(self, reasons: Codes) -> None:
        """A batch in which some were told otherwise."""
        for reason, count in enumerate(np.bincount(reasons, minlength=len(Reason)).tolist()):
            self._answers[reason] += count

    def refused(self, answer: str, requests: int = 1) -> None:
        """Nothing was done of requests, which were told one of ``_refusals``."""
        self._refusals[answer] += requests

    def took_over(self, outage_s: float | None) -> None:
        """This process became primary; ``None``: nobody had served before, or that is not known."""
        self.takeovers += 1
        if outage_s is not None:
            self.last_outage_s = outage_s

    def samples(self) -> Iterator[Sample]:
        """All of it but begins and commits, to which those of the epoch under way have to be added."""
        yield "pythia_connections_accepted_total", self.connections
        yield "pythia_takeovers_total", self.takeovers
        if self.last_outage_s is not None:
            yield "pythia_last_takeover_outage_seconds", self.last_outage_s
        yield "pythia_depositions_total", self.depositions
        yield "pythia_handovers_total", self.handovers
        for reason in Reason:
            yield f'pythia_commit_answers_total{{reason="{reason.name.lower()}"}}', self._answers[reason]
        for answer, count in self._refusals.items():
            yield f'pythia_refusals_total{{answer="{answer}"}}', count
        for histogram in (self._begin, self._decide, self._persist, self._commit, self._decision, self._write):
            yield from histogram.samples()
        yield "pythia_commit_table_writes_total", self.writes
        yield "pythia_commit_table_write_failures_total", self.write_failures
        yield "pythia_commit_table_lookups_total", self.lookups
        yield "pythia_commit_table_lookup_failures_total", self.lookup_failures


def _bound_text(bound: float) -> str:
    return "+Inf" if bound == float("inf") else f"{bound:g}" if bound < 10_000 else f"{bound:.0f}"
