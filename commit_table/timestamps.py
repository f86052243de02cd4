"""Timestamps that say when they were taken.

A timestamp is a 63-bit integer: milliseconds since 1970 (UTC) in the high bits, an 18-bit counter in the low ones, as
in Placement Driver of TiKV. Order never depends on the clock; the clock only ever pushes timestamps up.
"""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

COUNTER_BITS = 18
TIMESTAMPS_PER_MILLISECOND = 1 << COUNTER_BITS
TIMESTAMP_MAX = 2**63 - 1
"""Larger than any timestamp that is ever handed out: a fence here is an abort."""

_EPOCH_1970 = datetime(1970, 1, 1, tzinfo=UTC)


def compose(milliseconds: int, counter: int = 0) -> int:
    """The timestamp of a moment (milliseconds since 1970) and a counter below 2**18."""
    if not 0 <= counter < TIMESTAMPS_PER_MILLISECOND:
        raise ValueError(f"a timestamp's counter lies in 0…{TIMESTAMPS_PER_MILLISECOND - 1}, not {counter}")
    timestamp = (milliseconds << COUNTER_BITS) | counter
    if not 0 <= timestamp <= TIMESTAMP_MAX:
        raise ValueError(f"{milliseconds} milliseconds since 1970 do not fit a timestamp")
    return timestamp


def milliseconds_of(timestamp: int) -> int:
    """Milliseconds since 1970 at which ``timestamp`` was taken, give or take how far it ran ahead of the clock."""
    return timestamp >> COUNTER_BITS


def counter_of(timestamp: int) -> int:
    """The low 18 bits."""
    return timestamp & (TIMESTAMPS_PER_MILLISECOND - 1)


def wall_time_of(timestamp: int) -> datetime:
    """The moment in UTC. Raises ``ValueError`` for an integer that is no timestamp."""
    if not 0 <= timestamp <= TIMESTAMP_MAX:
        raise ValueError(f"a timestamp lies in 0…{TIMESTAMP_MAX}, not {timestamp}")
    return _EPOCH_1970 + timedelta(milliseconds=milliseconds_of(timestamp))
