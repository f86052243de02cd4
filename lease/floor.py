"""A bound above all timestamps that were ever handed out, kept with the data and not with the coordinator.

The coordinator can lose what it had: come back empty, or from an older copy. Whoever founds an epoch then would begin
at the present time, and timestamps may have run ahead of that: start timestamps would be given twice, and what was
committed above the new epoch's snapshots would be hidden. So the data hold a *floor*. Invariant: no ceiling is asked
for that lies above the floor on record. So whoever cannot trust the coordinator's record begins at the floor.

It is put a good way above the ceiling, ahead of need, about twice a minute, in a thread of its own: renewals never wait
for it. Where it cannot be raised the ceiling stops at it, and timestamps end as they do at any ceiling.
"""

from __future__ import annotations

import logging
import threading
from typing import NamedTuple, Protocol

from lease.errors import CoordinatorUnavailable
from lease.records import LEASE_MS_MIN
from lease.rules import raised_floor

log = logging.getLogger(__name__)


class FloorRecord(NamedTuple):
    """``timestamp``: no ceiling lies above it. Of whoever put it there: ``lease_ms``, and how far below it (a span of
    timestamps) a ceiling on record lies at most.
    """

    timestamp: int
    lease_ms: int
    span: int


UNRECORDED = FloorRecord(1, LEASE_MS_MIN, 0)
"""What is known where there are data and no floor."""


class Floor(Protocol):
    """Where one installation keeps its floor. Every call may raise ``CoordinatorUnavailable``."""

    def read(self) -> FloorRecord | None:
        """The floor; ``None``: none is on record."""
        ...

    def put(self, record: FloorRecord) -> None:
        """Put a floor on record. Of several the highest stands, whoever writes last."""
        ...

    def has_data(self) -> bool:
        """Whether anybody ever served. Asked where neither the coordinator nor a floor says so."""
        ...


class FloorKeeper:
    """What one process knows of the floor, which only ever goes up; its calls belong to the lease's thread."""

    def __init__(self, floor: Floor, lease_ms: int, ahead: int, step: int) -> None:
        """``ahead``: how far above the ceiling that is to come the floor is put; ``step``: how far that lies above the
        one on record at most. Spans of timestamps.
        """
        self._floor = floor
        self._lease_ms = lease_ms
        self._ahead = ahead
        self._span = ahead + step
        self._known = FloorRecord(0, 0, 0)
        self._raising = threading.Lock()

    @property
    def known(self) -> int:
        """A floor that is on record for certain; there may be a higher one. 0: none is known."""
        return self._known.timestamp

    def read(self, *, founding: bool) -> FloorRecord | None:
        """The floor on record; ``None``: nobody ever served, or, unless ``founding``, the first to keep one is yet to.

        Raises ``CoordinatorUnavailable``.
        """
        found = self._floor.read()
        if found is not None:
            self._learn(found)
        elif founding and self._floor.has_data():
            log.warning(
                "there are data, and no record of how far timestamps went: the epoch begins at the present time. If "
                "timestamps had run ahead of the clock, some are given twice"
            )
            return UNRECORDED
        return found

    def require(self, ceiling: int) -> None:
        """Have a floor on record that is no lower. Waits for it where need be. Raises ``CoordinatorUnavailable``."""
        known = self._known
        if known.timestamp < ceiling or known.lease_ms < self._lease_ms:
            own = FloorRecord(ceiling, self._lease_ms, self._span)
            self._put(FloorRecord(*map(max, known, own)))

    def keep_above(self, ceiling: int) -> None:
        """Begin to raise the floor where ``ceiling`` comes near it. Returns at once, and raises nothing."""
        raised = raised_floor(self.known, ceiling, self._ahead)
        if raised is None or not self._raising.acquire(blocking=False):
            return
        try:
            record = FloorRecord(raised, self._lease_ms, self._span)
            threading.Thread(target=self._raise, args=(record,), name="floor", daemon=True).start()
        except RuntimeError as error:  # no more threads are to be had
            self._raising.release()
            log.warning("the floor of timestamps is not raised: %s", str(error))

    def _raise(self, record: FloorRecord) -> None:
        try:
            self._put(record)
        except CoordinatorUnavailable as error:
            log.warning("the floor of timestamps is not raised: %s", str(error))
        finally:
            self._raising.release()

    def _put(self, record: FloorRecord) -> None:
        self._floor.put(record)
        self._learn(record)

    def _learn(self, record: FloorRecord) -> None:
        self._known = max(self._known, record)
