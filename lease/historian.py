"""Keeps the history of tenures where the lease is: reads it, and adds to it in a thread of its own.

Invariant: serving never waits for it and never fails by it. Adding begins a thread and returns; that thread ends after
a bounded number of tries, and what it could not write is a line in the log.
"""

from __future__ import annotations

import logging
import threading

from lease.coordinator import Applied, Coordinator, Create, Operation, SetData
from lease.errors import LeaseError, RecordInvalid
from lease.history import History, PastTenure
from lease.paths import ZnodePaths

log = logging.getLogger(__name__)

READ_TIMEOUT_MS = 5_000
TRIES_MAX = 6
PAUSE_MS_MIN = 250
"""After the first try that failed; each pause is twice the one before."""


def read_history(coordinator: Coordinator, root: str, *, timeout_ms: float = READ_TIMEOUT_MS) -> History:
    """The last tenures; none where nothing was written yet. Raises ``CoordinatorUnavailable``, ``RecordInvalid``."""
    node = coordinator.read(ZnodePaths(root).history, timeout_ms=timeout_ms)
    return History() if node is None else History.parse(node.data)


class Historian:
    """Adds this process's tenures. ``note`` may be called by any thread."""

    def __init__(self, coordinator: Coordinator, root: str, *, timeout_ms: float) -> None:
        self._coordinator = coordinator
        self._path = ZnodePaths(root).history
        self._timeout_ms = timeout_ms
        self._closed = threading.Event()

    def note(self, tenure: PastTenure) -> None:
        """Have a tenure added, some time soon. Returns at once, and raises nothing."""
        try:
            threading.Thread(target=self._add_patiently, args=(tenure,), name="history", daemon=True).start()
        except RuntimeError as error:  # no more threads are to be had
            log.warning("epoch %d is not in the history: %s", tenure.epoch, str(error))

    def close(self) -> None:
        """Try no more."""
        self._closed.set()

    def _add_patiently(self, tenure: PastTenure) -> None:
        why = "others wrote it all the while"
        for tries in range(TRIES_MAX):
            try:
                if self._add(tenure):
                    return
            except RecordInvalid as error:
                why = str(error)
                break
            except LeaseError as error:
                why = str(error)
            except Exception:
                log.exception("epoch %d is not in the history", tenure.epoch)
                return
            if self._closed.wait(PAUSE_MS_MIN * 2**tries / 1000):
                break
        log.warning("epoch %d is not in the history: %s", tenure.epoch, why)

    def _add(self, tenure: PastTenure) -> bool:
        """Whether it is there. What is ambiguous is read in the next try. Raises ``LeaseError``."""
        node = self._coordinator.read(self._path, timeout_ms=self._timeout_ms, synced=True)
        known = History() if node is None else History.parse(node.data)
        wanted = known.with_tenure(tenure)
        if wanted == known:
            return True
        data = wanted.encode()
        put: Operation = Create(self._path, data) if node is None else SetData(self._path, data, node.version)
        return isinstance(self._coordinator.commit([put], timeout_ms=self._timeout_ms), Applied)
