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
from collections.abc import Callable, Sequence
from functools import partial
from typing import Final, NamedTuple

from client.errors import UpgradeNeeded
from client.snapshots.resolver import Site
from client.transactions.helper_threads import HelperThreads
from store import StoreError
from store.forking import leave_at_fork

BYTES_OWED_MAX: Final = 32 * 2**20
"""What the shadow cells of all transactions that wait, or are being written, take in memory, about."""
SITE_BYTES: Final = 200
"""What one takes beside the key of its row."""
CLOSE_SECONDS_MAX: Final = 10.0
"""How long a manager that is closed waits for what is owed, where its deadline is not shorter."""
THREAD: Final = "pythia-shadow-cells"

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
        self._threads = HelperThreads(THREAD, threads_max)
        self._closed = False
        self._given_up = False
        self._start()
        leave_at_fork(self)

    def _start(self) -> None:
        self._changed = threading.Condition()
        self._owed = 0
        self._owed_bytes = 0

    def submit(
        self, writer: int, outcome: int, sites: Sequence[Site], written: Callable[[], None] = lambda: None
    ) -> bool:
        """Have a writer's shadow cells written: its commit timestamp, or ``NOT_COMMITTED``.

        ``written`` is called in the thread that has written them, and not where that failed. False: nothing is done,
        the caller is to write them itself; too many are owed, no thread can be had, or this is closed.
        """
        owed = _Owed(writer, outcome, sites, sum(SITE_BYTES + len(site.row) for site in sites), written)
        with self._changed:
            if self._closed or self._owed_bytes + owed.size_bytes > BYTES_OWED_MAX:
                return False
            self._owed += 1
            self._owed_bytes += owed.size_bytes
            self._being_written.add(writer)
            if not self._threads.submit(partial(self._pay, owed)):
                self._settled(owed)
                return False
        return True

    def close(self, limit_seconds: float) -> None:
        """Take nothing more, and wait until all is written; after so long the rest is left to readers."""
        with self._changed:
            self._closed = True
            self._changed.wait_for(lambda: not self._owed, limit_seconds)
            self._given_up = True
            if self._owed:
                _log.warning("closed: the shadow cells of %d transactions are left to readers", self._owed)

    def leave_to_parent(self) -> None:
        """See ``Leaving``. What was owed the parent writes."""
        self._start()
        self._being_written.clear()

    def _pay(self, owed: _Owed) -> None:
        """In one of the threads."""
        try:
            if not self._given_up:
                self._write(owed.sites, owed.writer, owed.outcome)
                owed.written()
        except (StoreError, UpgradeNeeded) as error:
            _log.warning("shadow cells of transaction %d are left to readers: %s", owed.writer, str(error))
        except Exception:
            _log.exception("shadow cells of transaction %d are left to readers", owed.writer)
        with self._changed:
            self._settled(owed)
            self._changed.notify_all()

    def _settled(self, owed: _Owed) -> None:
        """Nobody here writes it any more."""
        self._owed -= 1
        self._owed_bytes -= owed.size_bytes
        self._being_written.discard(owed.writer)
