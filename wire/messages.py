"""Messages about transactions, as columns over many of them at once.

Each message is a frozen dataclass that is valid as soon as it exists: built by a program or read from bytes, it passes
the same checks. Payload layouts are in each class; all numbers are little-endian, 8-byte columns come first so that
they stay aligned.
"""

from __future__ import annotations

import struct
from dataclasses import dataclass
from enum import IntEnum
from typing import Final

from wire.columns import (
    CODE,
    OFFSET,
    TIMESTAMP,
    Codes,
    PayloadReader,
    Timestamps,
    answers_payload,
    check_answers,
    check_not_empty,
    check_same_length,
    check_timestamps,
    count_bytes,
    read_answers,
    read_count,
)
from wire.commits import CommitReply, CommitRequest
from wire.details import DetailsReply, DetailsRequest
from wire.errors import ProtocolError
from wire.frames import FRAME_BYTES_MAX, Frame, Kind, encode_frame
from wire.hello import HelloReply, HelloRequest, NotAllowed
from wire.hindrance import HindranceReply, HindranceRequest
from wire.large_commits import LargeCommitRequest, WriteSetPart, WriteSetTaken
from wire.message import Message
from wire.metrics import MetricsReply, MetricsRequest
from wire.operating import DrainReply, DrainRequest, LivesReply, LivesRequest
from wire.packing import BEGIN_REPLY, check_begun, check_count, pack_begin
from wire.service import (
    BadRequest,
    HandoverReply,
    HandoverRequest,
    NotPrimary,
    Overloaded,
    StatusReply,
    StatusRequest,
)
from wire.transactions_request import TransactionsRequest

HEARTBEAT_TRANSACTIONS_MAX: Final = 10_000
"""Transactions in one ``HeartbeatRequest``; an oracle refuses more. No setting: else a program that keeps to the
protocol could not keep its transactions alive."""


class OutcomeStatus(IntEnum):
    """What became of one transaction."""

    UNDECIDED = 0
    COMMITTED = 1
    ABORTED = 2


@dataclass(frozen=True, slots=True, eq=False)
class BeginRequest(Message):
    """Begin ``count`` transactions. Layout: count u32."""

    KIND = Kind.BEGIN_REQUEST
    count: int = 1

    def __post_init__(self) -> None:
        check_count(self.count)

    def payload(self) -> bytes:
        """The bytes after the header."""
        return pack_begin(self.count)

    @classmethod
    def read(cls, reader: PayloadReader) -> BeginRequest:
        """The message in ``reader``. Raises ``ProtocolError``."""
        return cls(reader.number(OFFSET))


@dataclass(frozen=True, slots=True, eq=False)
class BeginReply(Message):
    """Start timestamps ``first_start_timestamp`` and the ``count - 1`` after it, all at one snapshot.

    Layout: first i64, snapshot i64, epoch i64, count u32.
    """

    KIND = Kind.BEGIN_REPLY
    first_start_timestamp: int
    count: int
    snapshot: int
    epoch: int

    def __post_init__(self) -> None:
        check_begun(self.first_start_timestamp, self.count, self.snapshot, self.epoch)

    def payload(self) -> bytes:
        """The bytes after the header."""
        try:
            return BEGIN_REPLY.pack(self.first_start_timestamp, self.snapshot, self.epoch, self.count)
        except struct.error as error:
            raise ProtocolError(f"a timestamp has 64 bits: {error}") from error

    @classmethod
    def read(cls, reader: PayloadReader) -> BeginReply:
        """The message in ``reader``. Raises ``ProtocolError``."""
        first, snapshot, epoch, count = reader.numbers(BEGIN_REPLY)
        return cls(first, count, snapshot, epoch)


class AbortRequest(TransactionsRequest):
    """Make sure that none of these transactions ever commits, or learn that it did. Answer: ``OutcomeReply``."""

    KIND = Kind.ABORT_REQUEST
    __slots__ = ()


class OutcomeRequest(TransactionsRequest):
    """What became of these transactions; changes nothing. Answer: ``OutcomeReply``."""

    KIND = Kind.OUTCOME_REQUEST
    __slots__ = ()


@dataclass(frozen=True, slots=True, eq=False)
class OutcomeReply(Message):
    """Outcomes, in the order asked; a commit timestamp is 0 where the status is not COMMITTED.

    Layout: n u32, zero u32, commit timestamps i64[n], statuses u8[n].
    """

    KIND = Kind.OUTCOME_REPLY
    statuses: Codes
    commit_timestamps: Timestamps

    def __post_init__(self) -> None:
        self._set_column("statuses", CODE)
        self._set_column("commit_timestamps", TIMESTAMP)
        check_answers(self.commit_timestamps, "statuses", self.statuses, OutcomeStatus, OutcomeStatus.COMMITTED)

    def payload(self) -> bytes:
        """The bytes after the header."""
        return answers_payload(self.commit_timestamps, self.statuses)

    @classmethod
    def read(cls, reader: PayloadReader) -> OutcomeReply:
        """The message in ``reader``. Raises ``ProtocolError``."""
        commit_timestamps, statuses = read_answers(reader)
        return cls(statuses, commit_timestamps)


@dataclass(frozen=True, slots=True, eq=False)
class HeartbeatRequest(Message):
    """These transactions are still being worked on, or read at; ``HEARTBEAT_TRANSACTIONS_MAX`` of them at most.

    Layout: n u32, zero u32, start timestamps i64[n], snapshots i64[n].
    """

    KIND = Kind.HEARTBEAT_REQUEST
    start_timestamps: Timestamps
    snapshots: Timestamps

    def __post_init__(self) -> None:
        self._set_column("start_timestamps", TIMESTAMP)
        self._set_column("snapshots", TIMESTAMP)
        check_not_empty("start_timestamps", self.start_timestamps)
        check_same_length(start_timestamps=self.start_timestamps, snapshots=self.snapshots)
        check_timestamps("start_timestamps", self.start_timestamps)
        check_timestamps("snapshots", self.snapshots)

    def payload(self) -> bytes:
        """The bytes after the header."""
        columns = self.start_timestamps.tobytes() + self.snapshots.tobytes()
        return count_bytes(self.start_timestamps.size) + columns

    @classmethod
    def read(cls, reader: PayloadReader) -> HeartbeatRequest:
        """The message in ``reader``. Raises ``ProtocolError``."""
        count = read_count(reader)
        starts = reader.take("start_timestamps", TIMESTAMP, count)
        return cls(starts, reader.take("snapshots", TIMESTAMP, count))


@dataclass(frozen=True, slots=True, eq=False)
class HeartbeatReply(Message):
    """For each transaction of a ``HeartbeatRequest``: 1 where it lives on, 0 where it was given up before.

    Layout: n u32, zero u32, alive u8[n].
    """

    KIND = Kind.HEARTBEAT_REPLY
    alive: Codes

    def __post_init__(self) -> None:
        self._set_column("alive", CODE)
        check_not_empty("alive", self.alive)
        if int(self.alive.max()) > 1:
            raise ProtocolError(f"alive is 0 or 1, not {int(self.alive.max())}")

    def payload(self) -> bytes:
        """The bytes after the header."""
        return count_bytes(self.alive.size) + self.alive.tobytes()

    @classmethod
    def read(cls, reader: PayloadReader) -> HeartbeatReply:
        """The message in ``reader``. Raises ``ProtocolError``."""
        return cls(reader.take("alive", CODE, read_count(reader)))


_MESSAGES: dict[Kind, type[Message]] = {
    message.KIND: message
    for message in (
        BeginRequest,
        BeginReply,
        CommitRequest,
        CommitReply,
        WriteSetPart,
        WriteSetTaken,
        LargeCommitRequest,
        AbortRequest,
        OutcomeRequest,
        OutcomeReply,
        HeartbeatRequest,
        HeartbeatReply,
        HandoverRequest,
        HandoverReply,
        StatusRequest,
        StatusReply,
        MetricsRequest,
        MetricsReply,
        DrainRequest,
        DrainReply,
        LivesRequest,
        LivesReply,
        DetailsRequest,
        DetailsReply,
        HindranceRequest,
        HindranceReply,
        NotPrimary,
        Overloaded,
        BadRequest,
        HelloRequest,
        HelloReply,
        NotAllowed,
    )
}


def encode(message: Message, request_id: int, *, frame_bytes_max: int = FRAME_BYTES_MAX) -> bytes:
    """The frame of a message. Raises ``ProtocolError`` when it is too large or a number does not fit."""
    return encode_frame(message.KIND, request_id, message.payload(), frame_bytes_max=frame_bytes_max)


def decode(frame: Frame) -> Message:
    """The message in a frame. Raises ``ProtocolError`` with the frame's request id."""
    reader = PayloadReader(frame.payload)
    try:
        message = _MESSAGES[frame.kind].read(reader)
        reader.finish()
    except ProtocolError as error:
        raise ProtocolError(f"{frame.kind.name}: {error.reason}", frame.request_id) from error
    return message
