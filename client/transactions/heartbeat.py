"""Letting the oracle know which transactions and snapshots are still in use.

The oracle gives up what it has not heard of for a life, so that a forgotten transaction does not hold back the vacuum.
One thread a manager speaks for all that are older than an interval; short transactions cost nothing. What nobody holds
any more in this process falls silent by itself: the thread keeps weak references only. For what was begun before a
fork the parent speaks on; the child speaks for its own.
"""

from __future__ import annotations

import logging
import threading
import time
import weakref
from collections import defaultdict
from typing import Protocol

from client.connection.oracle import OracleClient
from client.errors import NoThreadFree, PythiaError
from store.forking import leave_at_fork
from wire import HEARTBEAT_TRANSACTIONS_MAX

_log = logging.getLogger(__name__)


class Living(Protocol):
    """A transaction or a snapshot, or somebody who works for one: what the oracle has to know of it."""

    @property
    def start_timestamp(self) -> int:
        """The id by which it lives; a snapshot has that of the begin which gave it."""
        ...

    @property
    def snapshot_timestamp(self) -> int:
        """What it reads."""
        ...

    def is_open(self) -> bool:
        """Whether it is still in use."""
        ...

    def give_up(self) -> None:
        """Learn that the oracle gave it up."""
        ...


class Heartbeats:
    """Speaks for what is watched, every ``interval_ms``. Thread-safe; its thread starts with the first one watched."""

    def __init__(self, oracle: OracleClient, interval_ms: int) -> None:
        self._oracle = oracle
        self._interval_seconds = interval_ms / 1000
        self._start(closed=False)
        leave_at_fork(self)

    def _start(self, *, closed: bool) -> None:
        self._watched: weakref.WeakKeyDictionary[Living, float] = weakref.WeakKeyDictionary()
        """Since when, in seconds of the monotonic clock."""
        self._met: set[int] = set()
        self._lock = threading.Lock()
        self._closed = threading.Event()
        if closed:
            self._closed.set()
        self._thread: threading.Thread | None = None

    def watch(self, living: Living) -> None:
        """Speak for it while it is open, and somebody holds it. Several may speak for one transaction.

        Raises ``NoThreadFree``.
        """
        with self._lock:
            self._watched[living] = time.monotonic()
            if self._thread is None and not self._closed.is_set():
                thread = threading.Thread(target=self._run, name="pythia-heartbeats", daemon=True)
                try:
                    thread.start()
                except RuntimeError as error:  # none is left now; whoever is watched next tries again
                    raise NoThreadFree(f"no thread could be had for heartbeats: {error}") from error
                self._thread = thread

    def close(self) -> None:
        """Fall silent. Waits for a round under way, for an interval at most."""
        self._closed.set()
        with self._lock:
            thread, self._thread = self._thread, None
        if thread is not None:
            thread.join(self._interval_seconds)

    def in_use(self) -> tuple[int, float]:
        """How many transactions and snapshots of which the oracle knows are open, and for how many seconds the oldest
        has been watched; a transaction for which several speak counts once. Of none where it is closed.
        """
        if self._closed.is_set():
            return 0, 0.0
        now_s = time.monotonic()
        with self._lock:
            since_s = {living.start_timestamp: since_s for living, since_s in self._watched.items() if living.is_open()}
        return len(since_s), max((now_s - one_s for one_s in since_s.values()), default=0.0)

    def leave_to_parent(self) -> None:
        """See ``Leaving``. A thread of this process starts with the first that is watched here."""
        self._start(closed=self._closed.is_set())

    def beat(self) -> None:
        """One round, for all that the round before has met; those given up are told.

        Raises ``NoPrimary``, ``InvalidRequest`` where the client is closed, ``NoThreadFree``.
        """
        due = self._due()
        starts = sorted(due)
        for first in range(0, len(starts), HEARTBEAT_TRANSACTIONS_MAX):
            chunk = starts[first : first + HEARTBEAT_TRANSACTIONS_MAX]
            asked = {start: min(living.snapshot_timestamp for living in due[start]) for start in chunk}
            for start_timestamp, alive in self._oracle.heartbeat(asked).items():
                if not alive:
                    for living in due[start_timestamp]:
                        living.give_up()

    def _due(self) -> dict[int, list[Living]]:
        by_start: defaultdict[int, list[Living]] = defaultdict(list)
        with self._lock:
            for living in self._watched:
                if living.is_open():
                    by_start[living.start_timestamp].append(living)
            met, self._met = self._met, set(by_start)
        return {start: by_start[start] for start in by_start.keys() & met}

    def _run(self) -> None:
        while not self._closed.wait(self._interval_seconds):
            try:
                self.beat()
            except (PythiaError, NoThreadFree) as error:
                _log.warning("no heartbeat got through, the next one may: %s", str(error))
