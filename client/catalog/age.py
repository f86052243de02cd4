"""For how long what was read of the catalog is believed: others may drop a table and make it anew, or raise the level.

By a clock that goes on while the machine sleeps.
"""

from __future__ import annotations

from lease.clocks import monotonic_ms

ENTRY_AGE_SECONDS_MAX = 10.0
"""How long an entry is believed before it is read again, and that this library may work on these data."""


def now_seconds() -> float:
    """The time to be told beside what is read: from before it is asked for."""
    return monotonic_ms() / 1000


def is_believed(read_seconds: float) -> bool:
    """Whether what was asked for then need not be asked for again."""
    return now_seconds() < read_seconds + ENTRY_AGE_SECONDS_MAX
