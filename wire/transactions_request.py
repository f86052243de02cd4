"""What requests about transactions that began before have in common."""

from __future__ import annotations

from dataclasses import dataclass

from wire.columns import (
    TIMESTAMP,
    PayloadReader,
    Timestamps,
    check_not_empty,
    check_timestamps,
    count_bytes,
    read_count,
)
from wire.message import Message


@dataclass(frozen=True, slots=True, eq=False)
class TransactionsRequest(Message):
    """Start timestamps to ask about. Layout: n u32, zero u32, start timestamps i64[n]."""

    start_timestamps: Timestamps

    def __post_init__(self) -> None:
        self._set_column("start_timestamps", TIMESTAMP)
        check_not_empty("start_timestamps", self.start_timestamps)
        check_timestamps("start_timestamps", self.start_timestamps)

    def payload(self) -> bytes:
        """The bytes after the header."""
        return count_bytes(self.start_timestamps.size) + self.start_timestamps.tobytes()

    @classmethod
    def read(cls, reader: PayloadReader) -> TransactionsRequest:
        """The message in ``reader``. Raises ``ProtocolError``."""
        return cls(reader.take("start_timestamps", TIMESTAMP, read_count(reader)))
