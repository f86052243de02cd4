"""What an operator looks at beyond the status: the lease's clock, a standby's warmth, the oldest open transactions.

A frame of its own, since a status that grew could not be read by processes of another release: one that does not know
this request refuses it, and its status is still there.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from wire.columns import (
    CODE,
    TIMESTAMP,
    PayloadReader,
    Timestamps,
    check_same_length,
    check_timestamps,
    count_bytes,
    number_bytes,
    read_count,
    text_bytes,
)
from wire.errors import ProtocolError
from wire.frames import Kind
from wire.message import Message

OPEN_TRANSACTIONS_MAX = 20
UNKNOWN_MS = -1
"""A time that is not known, or does not run."""


@dataclass(frozen=True, slots=True, eq=False)
class DetailsRequest(Message):
    """What else is to be seen? Answered by every process, standby or primary. Layout: nothing."""

    KIND = Kind.DETAILS_REQUEST

    def payload(self) -> bytes:
        """The bytes after the header."""
        return b""

    @classmethod
    def read(cls, reader: PayloadReader) -> DetailsRequest:
        """The message in ``reader``. Raises ``ProtocolError``."""
        return cls()


@dataclass(frozen=True, slots=True, eq=False)
class DetailsReply(Message):
    """Of one process. The transactions are those with heartbeats, the oldest first, ``OPEN_TRANSACTIONS_MAX`` at most.

    Layout: n u32, zero u32, start timestamps i64[n], snapshots i64[n], silent milliseconds i64[n], lease i64, lease
    remaining i64, transaction life i64, warm u8, REST address as text (length in bytes u32, UTF-8).
    """

    KIND = Kind.DETAILS_REPLY
    NUMBERS: ClassVar[tuple[str, ...]] = ("lease_ms", "lease_remaining_ms", "transaction_life_ms")
    start_timestamps: Timestamps
    snapshots: Timestamps
    silent_ms: Timestamps
    """Since when nothing was heard of each."""
    rest_address: str
    """``""``: it has no REST."""
    warm: bool
    """Everything is ready for a takeover: the commit table answers, the kernels are compiled."""
    lease_ms: int = UNKNOWN_MS
    lease_remaining_ms: int = UNKNOWN_MS
    """On the primary: how long it may still serve without a renewal. On a standby: how long the lease that it looks at
    still has to be left alone."""
    transaction_life_ms: int = 0

    def __post_init__(self) -> None:
        for name in ("start_timestamps", "snapshots", "silent_ms"):
            self._set_column(name, TIMESTAMP)
            check_timestamps(name, getattr(self, name))
        check_same_length(start_timestamps=self.start_timestamps, snapshots=self.snapshots, silent_ms=self.silent_ms)
        if self.start_timestamps.size > OPEN_TRANSACTIONS_MAX:
            raise ProtocolError(f"{OPEN_TRANSACTIONS_MAX} transactions at most, not {self.start_timestamps.size}")
        for name in self.NUMBERS:
            if not UNKNOWN_MS <= getattr(self, name) <= np.iinfo(TIMESTAMP).max:
                raise ProtocolError(f"{name} must be a number from {UNKNOWN_MS} to 2**63 - 1")

    def payload(self) -> bytes:
        """The bytes after the header."""
        columns = b"".join(each.tobytes() for each in (self.start_timestamps, self.snapshots, self.silent_ms))
        numbers = b"".join(number_bytes(getattr(self, name), TIMESTAMP) for name in self.NUMBERS)
        warm = number_bytes(int(self.warm), CODE)
        return count_bytes(self.start_timestamps.size) + columns + numbers + warm + text_bytes(self.rest_address)

    @classmethod
    def read(cls, reader: PayloadReader) -> DetailsReply:
        """The message in ``reader``. Raises ``ProtocolError``."""
        count = read_count(reader)
        starts, snapshots, silent_ms = (reader.take("a column", TIMESTAMP, count) for _ in range(3))
        numbers = {name: reader.number(TIMESTAMP) for name in cls.NUMBERS}
        warm = reader.number(CODE)
        if warm > 1:
            raise ProtocolError(f"warm is 0 or 1, not {warm}")
        return cls(starts, snapshots, silent_ms, reader.text(), bool(warm), **numbers)
