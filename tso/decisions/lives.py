"""How long transactions live, and what the oldest of them still reads.

A transaction lives for ``transaction_life_ms`` from its begin, and for as long again after each heartbeat. Only those
with heartbeats are remembered one by one: that a young one lives follows from its start timestamp, since the sampler
remembers which timestamps had been handed out a life ago. So short transactions cost nothing here.

Invariants: a transaction that was given up in an epoch stays so for the rest of it; and no living transaction reads
below the *horizon*, which never goes back. Both count monotonic time only. Nothing crosses an epoch: in its first life
every older transaction may live on and nothing is known of what they read, so there is no horizon yet (0).
"""

from __future__ import annotations

import heapq
from collections import OrderedDict, deque
from collections.abc import Iterable
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from wire import Life

_SAMPLES_PER_LIFE = 8
"""A transaction without heartbeats is given up at the latest an eighth of a life after its life has ended."""


class _Sample(NamedTuple):
    taken_ms: float
    last_timestamp: int
    snapshot: int


class _Beat(NamedTuple):
    snapshot: int
    heard_ms: float


class Lives:
    """The lives of one epoch's transactions. Times are monotonic milliseconds, of one clock."""

    def __init__(self, life_ms: float, beating_max: int) -> None:
        self._life_ms = life_ms
        self._beating_max = beating_max
        self._samples: deque[_Sample] = deque()
        self._beating: OrderedDict[int, _Beat] = OrderedDict()
        self._horizon = 0

    def __len__(self) -> int:
        """Transactions that are remembered one by one."""
        return len(self._beating)

    @property
    def oldest(self) -> int:
        """The smallest start timestamp of those; 0: there is none. Looks at each."""
        return min(self._beating, default=0)

    def oldest_beating(self, count: int, now_ms: float) -> list[tuple[int, int, int]]:
        """Of those the ``count`` that began first: start, snapshot, milliseconds without a heartbeat. Looks at each."""
        oldest = heapq.nsmallest(count, self._beating.items())
        return [(start, beat.snapshot, max(0, int(now_ms - beat.heard_ms))) for start, beat in oldest]

    def sample(self, last_timestamp: int, snapshot: int, now_ms: float) -> None:
        """Take note of the largest timestamp handed out and of the durable watermark; to be called often."""
        if self._samples and now_ms - self._samples[-1].taken_ms < self._life_ms / _SAMPLES_PER_LIFE:
            return
        self._samples.append(_Sample(now_ms, last_timestamp, snapshot))
        while len(self._samples) > 1 and self._samples[1].taken_ms <= now_ms - self._life_ms:
            self._samples.popleft()

    def outlived(self, now_ms: float) -> int:
        """Every transaction above this timestamp is young; one at or below it lives by its heartbeats alone."""
        return self._latest_outlived(now_ms).last_timestamp

    def is_alive(self, start_timestamp: int, now_ms: float) -> bool:
        """Whether a transaction is young, or was heard of within a life."""
        if start_timestamp > self.outlived(now_ms):
            return True
        beat = self._beating.get(start_timestamp)
        return beat is not None and now_ms - beat.heard_ms < self._life_ms

    def life(self, start_timestamp: int, now_ms: float) -> Life:
        """Whether, and by what, a transaction lives; changes nothing."""
        if start_timestamp > self.outlived(now_ms):
            return Life.YOUNG
        return Life.HEARD_OF if self.is_alive(start_timestamp, now_ms) else Life.GIVEN_UP

    def beat(self, start_timestamp: int, snapshot: int, now_ms: float) -> bool:
        """Let a transaction live for another life; false where it was given up before.

        Of several snapshots the oldest counts: whoever names a later one for a transaction of somebody else's must not
        have a vacuum delete what that one reads.
        """
        if not self.is_alive(start_timestamp, now_ms):
            return False
        known = self._beating.get(start_timestamp)
        oldest = snapshot if known is None else min(known.snapshot, snapshot)
        self._beating[start_timestamp] = _Beat(max(oldest, self._horizon), now_ms)
        self._beating.move_to_end(start_timestamp)
        return True

    def has_room(self, start_timestamps: Iterable[int], now_ms: float) -> bool:
        """Whether these may be remembered; those that are count once."""
        self._forget(now_ms)
        return len(self._beating) + len(set(start_timestamps) - self._beating.keys()) <= self._beating_max

    def end(self, start_timestamp: int) -> None:
        """A transaction was decided: it reads no more."""
        self._beating.pop(start_timestamp, None)

    def end_all(self, start_timestamps: npt.NDArray[np.int64]) -> None:
        """``end`` for each. Costs nothing where nobody sends heartbeats."""
        if self._beating:
            for start_timestamp in start_timestamps.tolist():
                self.end(start_timestamp)

    def horizon(self, now_ms: float) -> int:
        """No living transaction reads below it; 0 in the first life of an epoch, when that is not known."""
        self._forget(now_ms)
        young = self._latest_outlived(now_ms).snapshot
        oldest = min(young, min((beat.snapshot for beat in self._beating.values()), default=young))
        self._horizon = max(self._horizon, oldest)
        return self._horizon

    def _latest_outlived(self, now_ms: float) -> _Sample:
        """The latest sample that is a life old: who had begun by then is young no more."""
        if self._samples and now_ms - self._samples[0].taken_ms >= self._life_ms:
            return self._samples[0]
        return _Sample(0, 0, 0)

    def _forget(self, now_ms: float) -> None:
        """Drop those whose life has ended, oldest heartbeat first."""
        while self._beating:
            oldest = next(iter(self._beating.values()))
            if now_ms - oldest.heard_ms < self._life_ms:
                return
            self._beating.popitem(last=False)
