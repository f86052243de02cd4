"""Messages about the service itself: its state, and the three refusals.

A refusal (``NotPrimary``, ``Overloaded``, ``BadRequest``) means that *nothing was done* of what was asked.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import IntEnum
from typing import ClassVar

import numpy as np

from wire.columns import CODE, OFFSET, TIMESTAMP, PayloadReader, number_bytes, text_bytes
from wire.errors import ProtocolError
from wire.frames import Kind
from wire.message import Message

TEXT_BYTES_MAX = 4096
"""Longer reasons are cut: they are for people to read."""


class Role(IntEnum):
    """What an oracle process is at the moment."""

    STANDBY = 0
    PRIMARY = 1
    DRAINING = 2
    """Still primary, takes no new work, finishes what is under way, then releases the lease."""


@dataclass(frozen=True, slots=True, eq=False)
class StatusRequest(Message):
    """How are you? Answered by every process, standby or primary. Layout: nothing."""

    KIND = Kind.STATUS_REQUEST

    def payload(self) -> bytes:
        """The bytes after the header."""
        return b""

    @classmethod
    def read(cls, reader: PayloadReader) -> StatusRequest:
        """The message in ``reader``. Raises ``ProtocolError``."""
        return cls()


@dataclass(frozen=True, slots=True, eq=False)
class StatusReply(Message):
    """The state of one oracle process. On a standby the timestamps and the counts of its oracle are 0.

    Layout: i64 for each number in the order below, role u8, then holder, address and primary address as texts
    (length in bytes u32, UTF-8).
    """

    KIND = Kind.STATUS_REPLY
    NUMBERS: ClassVar[tuple[str, ...]] = (
        "epoch",
        "ceiling",
        "last_timestamp",
        "durable_watermark",
        "low_watermark",
        "conflict_map_entries",
        "begins",
        "commits",
        "refused_commits",
        "transactions_in_flight",
        "connections",
        "horizon",
    )
    role: Role
    holder: str
    address: str
    primary_address: str
    """Of the primary as far as this process knows; empty: not known."""
    epoch: int = 0
    ceiling: int = 0
    """The first timestamp that is not this oracle's to hand out yet."""
    last_timestamp: int = 0
    durable_watermark: int = 0
    """The snapshot that a begin would get now."""
    low_watermark: int = 0
    """Commits of older snapshots are refused as TOO_OLD."""
    conflict_map_entries: int = 0
    begins: int = 0
    """Transactions begun in this epoch by this process."""
    commits: int = 0
    refused_commits: int = 0
    transactions_in_flight: int = 0
    """Decided, not yet answered."""
    connections: int = 0
    horizon: int = 0
    """No living transaction or snapshot reads below it; 0: not known yet in this epoch."""

    def __post_init__(self) -> None:
        for name in self.NUMBERS:
            if not 0 <= getattr(self, name) <= np.iinfo(TIMESTAMP).max:
                raise ProtocolError(f"{name} must be a number from 0 to 2**63 - 1, not {getattr(self, name)}")

    def payload(self) -> bytes:
        """The bytes after the header."""
        numbers = b"".join(number_bytes(getattr(self, name), TIMESTAMP) for name in self.NUMBERS)
        texts = b"".join(text_bytes(text) for text in (self.holder, self.address, self.primary_address))
        return numbers + number_bytes(self.role, CODE) + texts

    @classmethod
    def read(cls, reader: PayloadReader) -> StatusReply:
        """The message in ``reader``. Raises ``ProtocolError``."""
        numbers = {name: reader.number(TIMESTAMP) for name in cls.NUMBERS}
        role = reader.number(CODE)
        if role > max(Role):
            raise ProtocolError(f"there is no role {role}")
        return cls(Role(role), reader.text(), reader.text(), reader.text(), **numbers)


@dataclass(frozen=True, slots=True, eq=False)
class HandoverRequest(Message):
    """To the primary: finish what is under way, and release the lease to a standby. Layout: nothing."""

    KIND = Kind.HANDOVER_REQUEST

    def payload(self) -> bytes:
        """The bytes after the header."""
        return b""

    @classmethod
    def read(cls, reader: PayloadReader) -> HandoverRequest:
        """The message in ``reader``. Raises ``ProtocolError``."""
        return cls()


@dataclass(frozen=True, slots=True, eq=False)
class HandoverReply(Message):
    """The lease of ``epoch`` was released; a standby takes over by its watch. Layout: epoch i64."""

    KIND = Kind.HANDOVER_REPLY
    epoch: int

    def __post_init__(self) -> None:
        if self.epoch < 1:
            raise ProtocolError(f"an epoch is a timestamp, not {self.epoch}")

    def payload(self) -> bytes:
        """The bytes after the header."""
        return number_bytes(self.epoch, TIMESTAMP)

    @classmethod
    def read(cls, reader: PayloadReader) -> HandoverReply:
        """The message in ``reader``. Raises ``ProtocolError``."""
        return cls(reader.number(TIMESTAMP))


@dataclass(frozen=True, slots=True, eq=False)
class NotPrimary(Message):
    """Nothing was done: ask the primary, at ``primary_address`` (``host:port``; empty: this process knows of none).

    Layout: epoch i64 (of that primary; 0 with no address), address as text.
    """

    KIND = Kind.NOT_PRIMARY
    primary_address: str = ""
    epoch: int = 0

    def __post_init__(self) -> None:
        if self.epoch < 0:
            raise ProtocolError(f"an epoch is a timestamp, not {self.epoch}")

    def payload(self) -> bytes:
        """The bytes after the header."""
        return number_bytes(self.epoch, TIMESTAMP) + text_bytes(self.primary_address)

    @classmethod
    def read(cls, reader: PayloadReader) -> NotPrimary:
        """The message in ``reader``. Raises ``ProtocolError``."""
        epoch = reader.number(TIMESTAMP)
        return cls(reader.text(), epoch)


@dataclass(frozen=True, slots=True, eq=False)
class Overloaded(Message):
    """Nothing was done: a queue is full or the clock has to catch up. Ask again after that many milliseconds.

    Layout: milliseconds u32.
    """

    KIND = Kind.OVERLOADED
    retry_after_ms: int

    def payload(self) -> bytes:
        """The bytes after the header."""
        return number_bytes(self.retry_after_ms, OFFSET)

    @classmethod
    def read(cls, reader: PayloadReader) -> Overloaded:
        """The message in ``reader``. Raises ``ProtocolError``."""
        return cls(reader.number(OFFSET))


@dataclass(frozen=True, slots=True, eq=False)
class BadRequest(Message):
    """Nothing was done: the request can never be granted as it is. Layout: the reason as text."""

    KIND = Kind.BAD_REQUEST
    text: str

    def payload(self) -> bytes:
        """The bytes after the header; a long text is cut."""
        whole = self.text.encode("utf-8", "replace")[:TEXT_BYTES_MAX]
        return text_bytes(whole.decode("utf-8", "ignore"))

    @classmethod
    def read(cls, reader: PayloadReader) -> BadRequest:
        """The message in ``reader``. Raises ``ProtocolError``."""
        return cls(reader.text())
