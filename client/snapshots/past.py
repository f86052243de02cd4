"""Naming a moment of the past, and finding out that it is settled: that nothing will commit at or below it any more.

A moment is settled when an oracle has said so: by a snapshot that it gave, or by the durable watermark that the primary
leaves in the epoch's record with each move of the ceiling. The epoch matters, too: whoever began before it and is still
undecided has to be fenced, and can commit above it only.
"""

from __future__ import annotations

import logging
import threading
import time
from datetime import datetime

from client.connection.deadline import Deadline
from client.connection.oracle import OracleClient
from client.connection.primary import Directory, Settled
from client.errors import InvalidRequest, NoPrimary
from client.snapshots.moments import require_timestamp
from commit_table.timestamps import TIMESTAMPS_PER_MILLISECOND, compose, milliseconds_of
from lease import LeaseError
from store.forking import leave_at_fork

BEGINS_MAX = 300
PAUSE_SECONDS = 0.01
"""A moment that has passed is settled when the writes that were under way then are: a few milliseconds."""
FUTURE_MS_MAX = 1_000
"""A moment may lie so far in the future of the oracle's clock, by which the caller's may be ahead."""
AHEAD_MS_MAX = 300_000
"""Timestamps further ahead of the caller's clock have followed one that is, or was, wrong; or the caller's is slow."""

_log = logging.getLogger(__name__)


def moment_of(at: int | datetime) -> int:
    """The timestamp that ``at`` names; a time means the end of its millisecond. Raises ``InvalidRequest``."""
    if isinstance(at, datetime):
        if at.utcoffset() is None:
            raise InvalidRequest(f"{at.isoformat()} has no time zone: datetime.now(UTC) and astimezone() give one")
        try:
            return compose(int(at.timestamp() * 1000), TIMESTAMPS_PER_MILLISECOND - 1)
        except ValueError as error:
            raise InvalidRequest(f"{at.isoformat()} is no time that can be read at: {error}") from error
    require_timestamp(at)
    return at


def _require_past(moment: int, newest: int) -> None:
    ahead_ms = milliseconds_of(moment) - milliseconds_of(newest)
    if ahead_ms > FUTURE_MS_MAX:
        raise InvalidRequest(f"the moment {moment} lies {ahead_ms / 1000:.1f} s in the future of the oracle's clock")


class Past:
    """What is known to be settled, by this process. Thread-safe."""

    def __init__(self, directory: Directory, oracle: OracleClient, deadline_ms: int) -> None:
        self._directory = directory
        self._oracle = oracle
        self._deadline_ms = deadline_ms
        self._lock = threading.Lock()
        self._known = Settled(0, 0)
        self._is_ahead = False
        leave_at_fork(self)

    def leave_to_parent(self) -> None:
        """See ``Leaving``. What is settled is so in the child."""
        self._lock = threading.Lock()

    def settled(self, moment: int) -> Settled:
        """The epoch to read a moment in, once nothing will commit at or below the moment any more.

        Raises ``NoPrimary`` where only an oracle could tell and there is none, ``InvalidRequest`` for the future.
        """
        if moment > self._known.timestamp:
            deadline = Deadline(self._deadline_ms)
            self._learn(self._recorded(deadline))
            for _ in range(BEGINS_MAX):
                if moment <= self._known.timestamp:
                    break
                begun = self._oracle.begin(deadline)
                self._learn(Settled(begun.snapshot, begun.epoch))
                _require_past(moment, begun.first_start_timestamp)
                time.sleep(PAUSE_SECONDS)
            else:
                raise NoPrimary(deadline.waited_ms, f"what was under way at {moment} does not come to its end")
        return self._known

    def compare_clock(self, now_ms: int) -> None:
        """Tell once of timestamps far ahead of the clock: a time of today then lies before what is committed today."""
        ahead_ms = milliseconds_of(self._known.timestamp) - now_ms
        is_ahead = ahead_ms > AHEAD_MS_MAX
        with self._lock:
            was_ahead, self._is_ahead = self._is_ahead, is_ahead
        if is_ahead and not was_ahead:
            _log.warning(
                "timestamps are %.0f s ahead of this machine's clock: what was committed lately is not seen as of a"
                " time by that clock; read as of timestamps or names, and have the clocks looked at",
                ahead_ms / 1000,
            )

    def _recorded(self, deadline: Deadline) -> Settled:
        """What ZooKeeper has on record; nothing, where it does not answer: an oracle may yet."""
        try:
            recorded = self._directory.settled(int(1000 * deadline.remaining_seconds()) // 2)
        except LeaseError:
            recorded = None
        return recorded or self._known

    def _learn(self, settled: Settled) -> None:
        with self._lock:
            self._known = max(self._known, settled)
