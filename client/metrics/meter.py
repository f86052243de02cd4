"""What the transactions of a program did, as a collector for Prometheus.

The oracle counts all programs together, and sees of a transaction its begin and its commit. Here one program is counted
by itself, with what only it sees: how long HBase took for the tentative versions and for the shadow cells, what each
call of commit came to, how often work was done again, and whether snapshots are held that nobody uses. (Omid's client
counts committed, rolled back, erroneous and invalidated transactions, and times begin, commit, and the writes of the
commit table and of the shadow cells; those by result alone do not tell a conflict from a store that is down.)

Counting takes locks of its own that are held for a moment, a microsecond for each number, so that it is never off.
"""

from __future__ import annotations

import threading
import time
import weakref
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Final, Protocol

from prometheus_client.core import GaugeMetricFamily, Metric
from prometheus_client.registry import Collector

from client.errors import (
    Conflict,
    InvalidSettings,
    NoPrimary,
    OutcomeUnknown,
    SnapshotTooOld,
    TableFenced,
    TransactionAborted,
    TransactionExpired,
    TransactionTooLarge,
)
from client.metrics.families import FAMILIES, ROOT
from client.metrics.instruments import Instruments
from store import StoreError
from store.forking import leave_at_fork

COMMITTED: Final = "committed"
NOTHING_WRITTEN: Final = "nothing_written"
UNAVAILABLE: Final = "unavailable"
FAILED: Final = "failed"

_RESULTS: Final[Mapping[type[BaseException], str]] = {
    Conflict: "conflict",
    TableFenced: "fenced",
    SnapshotTooOld: "too_old",
    TransactionExpired: "expired",
    TransactionTooLarge: "too_large",
    TransactionAborted: "aborted",
    OutcomeUnknown: "unknown",
}
RESULTS: Final = (COMMITTED, NOTHING_WRITTEN, *_RESULTS.values(), UNAVAILABLE, FAILED)
"""What a call of commit may come to."""
STEPS: Final = ("written", "answered", "shadowed")
"""What of a commit is timed, by the values of ``CommitStep``."""


class InUse(Protocol):
    """Who knows what a manager has open."""

    def in_use(self) -> tuple[int, float]:
        """How many transactions and snapshots are open, and the oldest for how many seconds. From any thread."""
        ...


class ClientMetrics(Collector):
    """What the managers that it is given to count, for Prometheus. Thread-safe; one serves a whole program::

        metrics = ClientMetrics()
        prometheus_client.REGISTRY.register(metrics)
        manager = TransactionManager.connect(settings, metrics=metrics)

    Each sample has the label ``root``, the installation's. ``prometheus_client.generate_latest(metrics)`` gives them as
    text without a registry. A forked child counts from zero.
    """

    def __init__(self) -> None:
        self._start({})
        leave_at_fork(self)

    @classmethod
    def of(cls, given: ClientMetrics | None) -> ClientMetrics:
        """What was given, or one that is nobody else's. Raises ``InvalidSettings`` for something else."""
        if given is not None and not isinstance(given, ClientMetrics):
            raise InvalidSettings(
                f"metrics is a ClientMetrics(), which registry.register(…) takes where there is one, not {given!r}"
            )
        return cls() if given is None else given

    def _start(self, meters: dict[str, Meter]) -> None:
        self._lock = threading.Lock()
        self._instruments = Instruments(FAMILIES, (ROOT,))
        self._meters = meters

    def meter(self, root: str) -> Meter:
        """Where the managers of one installation count; the same for all of them."""
        with self._lock:
            if root not in self._meters:
                self._meters[root] = Meter(self, root)
            return self._meters[root]

    def collect(self) -> Iterator[Metric]:
        """All that was counted, and what is in use now."""
        yield from self._instruments.collect()
        with self._lock:
            found = {root: meter.in_use() for root, meter in self._meters.items()}
        for place, family in enumerate(family for family in FAMILIES if family.kind == "gauge"):
            gauge = GaugeMetricFamily(family.name, family.text, labels=[ROOT])
            for root, numbers in found.items():
                gauge.add_metric([root], numbers[place])
            yield gauge

    def leave_to_parent(self) -> None:
        """See ``Leaving``. What is counted there was done there; and a lock may have been held at the fork."""
        self._start(self._meters)
        for meter in self._meters.values():
            meter.count_by(self._instruments)

    @property
    def instruments(self) -> Instruments:
        """What it counts by."""
        return self._instruments


class Meter:
    """Where what belongs to one installation is counted. Thread-safe; what a caller sees of it changes nothing."""

    def __init__(self, metrics: ClientMetrics, root: str) -> None:
        self._metrics = metrics  # so that it is there at a fork for as long as somebody counts
        self._labels = {ROOT: root}
        self._watched: tuple[weakref.ref[InUse], ...] = ()
        self.count_by(metrics.instruments)

    def count_by(self, instruments: Instruments) -> None:
        """Count by these from now on. All are made at once, so that what has not happened yet is 0, and not missing."""
        labels = self._labels
        self._lock = threading.Lock()
        self._begin_seconds = instruments.histogram("pythia_client_begin_seconds", **labels)
        self._begin_failures = instruments.counter("pythia_client_begin_failures_total", **labels)
        self._commits = {
            result: instruments.counter("pythia_client_commits_total", **labels, result=result) for result in RESULTS
        }
        self._commit_seconds = instruments.histogram("pythia_client_commit_seconds", **labels)
        self._step_seconds = {
            step: instruments.histogram("pythia_client_commit_step_seconds", **labels, step=step) for step in STEPS
        }
        self._rollbacks = instruments.counter("pythia_client_rollbacks_total", **labels)
        self._reruns = instruments.counter("pythia_client_reruns_total", **labels)
        self._revalidations = instruments.counter("pythia_client_revalidations_total", **labels)
        self._outcome_lookups = instruments.counter("pythia_client_outcome_lookups_total", **labels)
        self._oracle_connections = instruments.counter("pythia_client_oracle_connections_total", **labels)
        self._oracle_overloads = instruments.counter("pythia_client_oracle_overloads_total", **labels)

    @contextmanager
    def beginning(self) -> Iterator[None]:
        """Around the question to the oracle."""
        began_s = time.monotonic()
        try:
            yield
        except BaseException:
            self._begin_failures.inc()
            raise
        self._begin_seconds.observe(time.monotonic() - began_s)

    @contextmanager
    def committing(self, *, writes: bool) -> Iterator[None]:
        """Around a call of commit. ``writes``: whether there is anything to be decided over."""
        began_s = time.monotonic()
        result = COMMITTED if writes else NOTHING_WRITTEN
        try:
            yield
        except BaseException as error:
            result = _result_of(error)
            raise
        finally:
            self._commits[result].inc()
            if writes:
                self._commit_seconds.observe(time.monotonic() - began_s)

    def came_to(self, step: str, seconds: float) -> None:
        """A commit has come to one of ``STEPS``, so long after it came to the one before."""
        self._step_seconds[step].observe(seconds)

    def rolled_back(self) -> None:
        """A transaction was rolled back."""
        self._rollbacks.inc()

    def runs_again(self) -> None:
        """A function is about to be called in another transaction, as the one before aborted."""
        self._reruns.inc()

    def revalidates(self) -> None:
        """A client looks for conflicts itself."""
        self._revalidations.inc()

    def looked_up(self, writers: int) -> None:
        """The commit table was asked about so many transactions."""
        self._outcome_lookups.inc(writers)

    def connected(self) -> None:
        """There is a connection to a primary oracle."""
        self._oracle_connections.inc()

    def overloaded(self) -> None:
        """The oracle has said that it is."""
        self._oracle_overloads.inc()

    def watch(self, holder: InUse) -> None:
        """Count what it has open, for as long as it lives."""
        with self._lock:
            self._watched = (*(known for known in self._watched if known() is not None), weakref.ref(holder))

    def in_use(self) -> tuple[int, float]:
        """See ``InUse``: of all that are watched."""
        found = [holder.in_use() for holder in (known() for known in self._watched) if holder is not None]
        return sum(count for count, _ in found), max((oldest_seconds for _, oldest_seconds in found), default=0.0)


def _result_of(error: BaseException) -> str:
    """What a call of commit came to that raised."""
    # Where it was never taken up, what was missing is the cause: neither its own doing nor another transaction's.
    reason = error.__cause__ if type(error) is TransactionAborted else error
    if isinstance(reason, NoPrimary | StoreError):
        return UNAVAILABLE
    return _RESULTS.get(type(error), FAILED)
