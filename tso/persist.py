"""Writing commits and aborts to the commit table, stubbornly but not beyond the lease.

A commit of a transaction from an older epoch is read back before it counts. A deposed oracle that had been asked to
abort it may have had its fence at infinity under way, and nothing dates that fence: it may have landed before the
commit did. Once the commit stands it can land no more, since it is set only where none stands.

Runs in writer threads. Invariant: a call returns only when everything handed to it is in the table; every other end is
an exception, so that nothing can be called committed, or aborted, by oversight. The lease is checked before *each* try:
a primary that has lost it must not write any more.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Sequence
from typing import Protocol, TypeVar

from commit_table import Aborted, Committed, Outcome
from store import StoreError, StoreUnavailable
from tso.oracle import Decided

log = logging.getLogger(__name__)

Written = TypeVar("Written")

FIRST_PAUSE_MS = 20.0
PAUSE_MS_MAX = 500.0


class HeldLease(Protocol):
    """What serving needs of a tenure; `lease.Tenure` is one."""

    @property
    def epoch(self) -> int:
        """The epoch's first timestamp."""
        ...

    @property
    def ceiling(self) -> int:
        """Exclusive upper bound of the timestamps."""
        ...

    def is_held(self) -> bool:
        """Whether the lease is still ours, by the local monotonic clock; cheap."""
        ...


class Commits(Protocol):
    """What serving needs of the commit table; `commit_table.CommitTable` is one."""

    def record(self, start_timestamps: Sequence[int], commit_timestamps: Sequence[int], epoch: int) -> None:
        """Write commits; repeating is harmless. Raises ``StoreUnavailable``."""
        ...

    def outcomes(self, start_timestamps: Sequence[int]) -> dict[int, Outcome]:
        """Read what became of transactions. Raises ``StoreUnavailable``."""
        ...

    def abort(self, start_timestamp: int) -> Committed | Aborted:
        """Fence at infinity, or learn of the commit. Raises ``StoreUnavailable``."""
        ...


class NotPersisted(Exception):
    """The commits may be in the table or not, and this oracle will not find out: it has to stop serving."""


class Persister:
    """Writes for one tenure; its threads share it."""

    def __init__(
        self, tenure: HeldLease, table: Commits, *, persist_retry_ms_max: float, monotonic_ms: Callable[[], float]
    ) -> None:
        self._tenure = tenure
        self._table = table
        self._retry_ms_max = persist_retry_ms_max
        self._monotonic_ms = monotonic_ms
        self._stopped = threading.Event()

    def stop(self) -> None:
        """Make every `persist` end soon, one way or the other."""
        self._stopped.set()

    def persist(self, decisions: Sequence[Decided]) -> frozenset[int]:
        """Write the commits of some decisions; returns those which turn out to be aborted. Blocks.

        Raises ``NotPersisted``.
        """
        starts = [start for decided in decisions for start in decided.start_timestamps]
        times = [time for decided in decisions for time in decided.commit_timestamps]
        self._until_done(lambda: self._table.record(starts, times, self._tenure.epoch), f"{len(starts)} commits")
        older = [start for start in starts if start < self._tenure.epoch]
        if not older:
            return frozenset()
        found = self._until_done(lambda: self._table.outcomes(older), f"the question for {len(older)} commits")
        return frozenset(start for start in older if not isinstance(found[start], Committed))

    def abort(self, start_timestamps: Sequence[int]) -> dict[int, Outcome]:
        """Fence transactions at infinity, or learn that they did commit. Blocks; raises ``NotPersisted``."""
        return {start: self._abort_one(start) for start in start_timestamps}

    def _abort_one(self, start_timestamp: int) -> Outcome:
        return self._until_done(lambda: self._table.abort(start_timestamp), f"the abort of {start_timestamp}")

    def _until_done(self, write: Callable[[], Written], what: str) -> Written:
        give_up_at_ms = self._monotonic_ms() + self._retry_ms_max
        pause_ms = FIRST_PAUSE_MS
        while True:
            if self._stopped.is_set() or not self._tenure.is_held():
                raise NotPersisted(f"the lease ended before the commit table took {what}")
            try:
                return write()
            except StoreUnavailable as error:
                log.warning("epoch %d: the commit table has not taken %s yet: %s", self._tenure.epoch, what, error)
            except StoreError as error:
                raise NotPersisted(f"the commit table refuses {what}: {error}") from error
            if self._monotonic_ms() >= give_up_at_ms:
                raise NotPersisted(f"the commit table did not take {what} in {self._retry_ms_max:.0f} ms")
            self._stopped.wait(pause_ms / 1000)
            pause_ms = min(2 * pause_ms, PAUSE_MS_MAX)
