"""Shadow cells that are written after their commit has returned.

From its commit point on a transaction is committed whether its shadow cells stand or not: readers who miss one ask the
commit table. So a caller need not wait for them. The invariants: what is owed is bounded, and who comes when the bound
is reached writes its own; readers in this process write none that is about to be written; what is given up (the store
fails, the manager closes, the process dies) is left to readers and the vacuum, as it would be without this.

(Omid's client can do the same, by one thread with a queue without a bound.)
"""

from __future__ import annotations

import logging
import threading
import time
from collections import deque
from collections.abc import Callable, Sequence
from typing import Final, NamedTuple

from client.errors import UpgradeNeeded
from client.snapshots.resolver import Site
from store import StoreError
from store.forking import leave_at_fork

BYTES_OWED_MAX: Final = 32 * 2**20
"""What the shadow cells of all transactions that wait, or are being written, take in memory, about."""
SITE_BYTES: Final = 200
"""What one takes beside the key of its row."""
CLOSE_SECONDS_MAX: Final = 10.0
"""How long a manager that is closed waits for what is owed, where its deadline is not shorter."""
IDLE_SECONDS_MAX: Final = 5.0
"""A thread that has had nothing to do for so long ends; another one begins when there is something."""

_log = logging.getLogger(__name__)


class _Owed(NamedTuple):
    """What one transaction's shadow cells are, and whom to tell that they stand."""

    writer: int
    outcome: int
    sites: Sequence[Site]
    size_bytes: int
    written: Callable[[], None]


class BackgroundShadows:
    """Writes the shadow cells of one manager's transactions, in threads that it starts as they are needed. Thread-safe.

    ``write`` is ``Resolver.write_shadows``. ``threads_max`` of them: each has one request to the store under way.
    ``being_written`` has the transactions whose shadow cells are owed, for the resolver, which then writes none of
    theirs.
    """

    def __init__(
        self, write: Callable[[Sequence[Site], int, int], None], being_written: set[int], threads_max: int
    ) -> None:
        self._write = write
        self._being_written = being_written
        self._threads_max = threads_max
        self._closed = False
        self._start()
        leave_at_fork(self)

    def _start(self) -> None:
        self._changed = threading.Condition()
        self._waiting: deque[_Owed] = deque()
        self._owed_bytes = 0
        self._under_way = 0
        self._idle = 0
        self._threads = 0

    def submit(
        self, writer: int, outcome: int, sites: Sequence[Site], written: Callable[[], None] = lambda: None
    ) -> bool:
        """Have a writer's shadow cells written: its commit timestamp, or ``NOT_COMMITTED``.

        ``written`` is called in the thread that has written them, and not where that failed. False: nothing is done,
        the caller is to write them itself; too many are owed, no thread can be had, or this is closed.
        """
        size_bytes = sum(SITE_BYTES + len(site.row) for site in sites)
        with self._changed:
            if self._closed or self._owed_bytes + size_bytes > BYTES_OWED_MAX or not self._has_thread():
                return False
            self._being_written.add(writer)
            self._waiting.append(_Owed(writer, outcome, sites, size_bytes, written))
            self._owed_bytes += size_bytes
            self._changed.notify()
        return True

    def close(self, limit_seconds: float) -> None:
        """Take nothing more, and wait until all is written; after so long the rest is left to readers."""
        with self._changed:
            self._closed = True
            self._changed.notify_all()
            self._changed.wait_for(lambda: not self._waiting and not self._under_way, limit_seconds)
            left = len(self._waiting) + self._under_way
            while self._waiting:
                self._settled(self._waiting.popleft())
        if left:
            _log.warning("closed: the shadow cells of %d transactions are left to readers", left)

    def leave_to_parent(self) -> None:
        """See ``Leaving``. What was owed the parent writes."""
        self._start()
        self._being_written.clear()

    def _has_thread(self) -> bool:
        """Whether somebody will take one more; starts a thread where all there are have something to do."""
        if len(self._waiting) < self._idle or self._threads >= self._threads_max:
            return True
        try:
            threading.Thread(target=self._run, name="pythia-shadow-cells", daemon=True).start()
        except RuntimeError:
            return self._threads > 0
        self._threads += 1
        return True

    def _run(self) -> None:
        while (owed := self._take()) is not None:
            try:
                self._write(owed.sites, owed.writer, owed.outcome)
                owed.written()
            except (StoreError, UpgradeNeeded) as error:
                _log.warning("shadow cells of transaction %d are left to readers: %s", owed.writer, error)
            except Exception:
                _log.exception("shadow cells of transaction %d are left to readers", owed.writer)
            with self._changed:
                self._under_way -= 1
                self._settled(owed)
                self._changed.notify_all()

    def _take(self) -> _Owed | None:
        """What to write next; ``None``: this thread ends."""
        with self._changed:
            idle_since_s = time.monotonic()
            while not self._waiting:
                left_seconds = idle_since_s + IDLE_SECONDS_MAX - time.monotonic()
                if self._closed or left_seconds <= 0:
                    self._threads -= 1
                    return None
                self._idle += 1
                self._changed.wait(left_seconds)
                self._idle -= 1
            self._under_way += 1
            return self._waiting.popleft()

    def _settled(self, owed: _Owed) -> None:
        """Nobody here writes it any more."""
        self._owed_bytes -= owed.size_bytes
        self._being_written.discard(owed.writer)
