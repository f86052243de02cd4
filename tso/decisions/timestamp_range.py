"""The timestamps that are this epoch's to hand out, and how fast they may go.

Invariant: `TimestampRange` gives every timestamp once, in growing order, above the epoch's first timestamp (which is
the epoch's first snapshot and never handed out) and below the ceiling that the coordinator has recorded. The wall
clock pushes timestamps up, and does nothing else: stepped back or far ahead it costs range, never order.
"""

from __future__ import annotations

from dataclasses import dataclass

from commit_table.timestamps import COUNTER_BITS, TIMESTAMPS_PER_MILLISECOND


@dataclass(frozen=True, slots=True)
class Exhausted:
    """Fewer timestamps are left below the ceiling than were asked for."""

    left: int


class TimestampRange:
    """Hands out timestamps between an epoch's first one and its ceiling, both exclusive."""

    def __init__(self, epoch: int, ceiling: int) -> None:
        self._last = epoch
        self._ceiling = ceiling

    @property
    def last(self) -> int:
        """The largest timestamp handed out so far; the epoch itself when there is none."""
        return self._last

    @property
    def ceiling(self) -> int:
        """The first timestamp that may not be handed out."""
        return self._ceiling

    def raise_ceiling(self, ceiling: int) -> None:
        """Learn of a higher ceiling; a lower one is stale news."""
        self._ceiling = max(self._ceiling, ceiling)

    def next(self, count: int, now_ms: int) -> int | Exhausted:
        """The first of ``count`` timestamps in a row, at the wall clock's ``now_ms`` (since 1970) or above.

        A clock beyond the ceiling is not followed: the counter runs on, so a step of the clock cannot use up the range.
        """
        first = max(self._last + 1, now_ms << COUNTER_BITS)
        if first + count > self._ceiling:
            first = self._last + 1
        if first + count > self._ceiling:
            return Exhausted(left=self._ceiling - first)
        self._last = first + count - 1
        return first


class TimestampRate:
    """A bucket of timestamps that fills with time: batch begins may not make timestamps run far ahead of the clock.

    At ``per_ms_max`` well below the 2**18 that one millisecond holds, handing out never outruns the clock by more than
    the bucket's size. The bucket counts *monotonic* time, so a wall clock that is stepped back does not shut it.
    """

    def __init__(self, per_ms_max: int, burst_ms: int) -> None:
        if not 1 <= per_ms_max <= TIMESTAMPS_PER_MILLISECOND:
            raise ValueError(f"a millisecond holds 1…{TIMESTAMPS_PER_MILLISECOND} timestamps, not {per_ms_max}")
        self._per_ms = per_ms_max
        self._size = float(per_ms_max * burst_ms)
        self._level = self._size
        self._filled_at_ms: float | None = None

    def take(self, count: int, monotonic_ms: float) -> float:
        """Take ``count`` timestamps' worth: 0, or the milliseconds to wait before asking again (nothing taken)."""
        if self._filled_at_ms is not None:
            self._level = min(self._size, self._level + (monotonic_ms - self._filled_at_ms) * self._per_ms)
        self._filled_at_ms = monotonic_ms
        if count > self._level:
            return (count - self._level) / self._per_ms
        self._level -= count
        return 0.0
