"""The two clocks of a process that holds, or waits for, a lease."""

from __future__ import annotations

import time

# Linux's monotonic clock stands still while the machine sleeps; a lease does not, so take the one that counts on.
_CLOCK = getattr(time, "CLOCK_BOOTTIME", time.CLOCK_MONOTONIC)


def monotonic_ms() -> float:
    """Milliseconds since some moment in the past, never stepped, the machine's sleep included where the system can."""
    return time.clock_gettime_ns(_CLOCK) / 1e6


def wall_ms() -> int:
    """Milliseconds since 1970 as the system believes; may step in both directions."""
    return time.time_ns() // 1_000_000
