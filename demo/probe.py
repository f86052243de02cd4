"""The probe: a thread that begins and commits one tiny transaction after the other, to see when nobody is served.

Its row is its own, so that none of its transactions can end in a conflict: whatever fails is the oracle's doing.
"""

from __future__ import annotations

import threading
import time
from collections import deque
from typing import Final

from client import PythiaError, TransactionManager
from demo.errors import ComparisonFailed, Overdue
from store import StoreError

PAUSE_SECONDS: Final = 0.01
ACKNOWLEDGED_KEPT_MAX: Final = 100_000
"""Moments: those of a quarter of an hour and more."""
STOP_SECONDS_MAX: Final = 60.0
"""More than a commit may take by the client's deadline, a revalidation included."""

_ROW: Final = b"probe"
_COLUMN: Final = b"f:number"


class Probe:
    """Runs until it is stopped, or until something fails. A context manager."""

    def __init__(self, manager: TransactionManager, table: str) -> None:
        self._manager = manager
        self._table = table
        self._changed = threading.Condition()
        self._acknowledged: deque[float] = deque(maxlen=ACKNOWLEDGED_KEPT_MAX)
        self._count = 0
        self._failure: Exception | None = None
        self._stopping = threading.Event()
        self._thread = threading.Thread(target=self._run, name="probe", daemon=True)

    def __enter__(self) -> Probe:
        self._manager.create_table(self._table, ["f"])
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()

    @property
    def count(self) -> int:
        """How many transactions it has committed."""
        return self._count

    def acknowledged(self) -> list[float]:
        """The moments at which a commit was acknowledged, in seconds of the monotonic clock."""
        with self._changed:
            return list(self._acknowledged)

    def wait_for_commit(self, after: float, seconds_max: float) -> None:
        """Wait for a commit acknowledged after a moment. Raises ``Overdue``, and ``ComparisonFailed`` if one failed."""
        with self._changed:
            self._changed.wait_for(lambda: self._has_ended() or self._is_acknowledged(after), seconds_max)
            self._refuse_failure()
            if not self._is_acknowledged(after):
                raise Overdue(f"no next commit of the probe within {seconds_max:.0f} s, or until its end")

    def stop(self) -> None:
        """Let the transaction under way end, and no other begin."""
        with self._changed:
            self._stopping.set()
            self._changed.notify_all()
        self._thread.join(STOP_SECONDS_MAX)

    def refuse_failure(self) -> None:
        """Raise ``ComparisonFailed`` where a transaction of the probe has failed."""
        with self._changed:
            self._refuse_failure()

    def _refuse_failure(self) -> None:
        if self._failure is not None:
            raise ComparisonFailed(
                f"transaction {self._count + 1:,} of the probe failed, which nobody got into the way of: "
                f"{type(self._failure).__name__}: {self._failure}"
            ) from self._failure

    def _has_ended(self) -> bool:
        return self._failure is not None or self._stopping.is_set()

    def _is_acknowledged(self, after: float) -> bool:
        return bool(self._acknowledged) and self._acknowledged[-1] > after

    def _run(self) -> None:
        while not self._stopping.wait(PAUSE_SECONDS):
            try:
                with self._manager.transaction() as transaction:
                    transaction.put(self._table, _ROW, {_COLUMN: b"%d" % self._count})
            except (PythiaError, StoreError) as error:
                with self._changed:
                    self._failure = error
                    self._changed.notify_all()
                return
            with self._changed:
                self._acknowledged.append(time.monotonic())
                self._count += 1
                self._changed.notify_all()
