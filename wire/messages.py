"""Messages about transactions, as columns over many of them at once.

Each message is a frozen dataclass that is valid as soon as it exists: built by a program or read from bytes, it passes
the same checks. Payload layouts are in each class; all numbers are little-endian, 8-byte columns come first so that
they stay aligned.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import IntEnum

import numpy as np

from wire.columns import (
    CELL,
    CODE,
    OFFSET,
    TIMESTAMP,
    Cells,
    Codes,
    Offsets,
    PayloadReader,
    Timestamps,
    check_not_empty,
    check_same_length,
    check_timestamps,
    number_bytes,
)
from wire.errors import ProtocolError
from wire.frames import FRAME_BYTES_MAX, Frame, Kind, encode_frame
from wire.message import Message
from wire.service import (
    BadRequest,
    HandoverReply,
    HandoverRequest,
    NotPrimary,
    Overloaded,
    StatusReply,
    StatusRequest,
)


class Reason(IntEnum):
    """How the oracle decided over one commit."""

    COMMITTED = 0
    CONFLICT = 1
    """A cell of the write set has a commit above the snapshot."""
    TOO_OLD = 2
    """The oracle no longer remembers enough to decide; *the transaction may even have committed*: ask the table."""
    ABORTED = 3
    """The transaction was aborted through the oracle."""
    TOO_LARGE = 4
    """The write set is larger than one commit's share of the conflict map."""
    EXPIRED = 5
    """Nothing was heard of the transaction for longer than the oracle allows: it was given up."""


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
        _check_count(self.count)

    def payload(self) -> bytes:
        """The bytes after the header."""
        return number_bytes(self.count, OFFSET)

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
        _check_count(self.count)
        if not 0 <= self.epoch <= self.snapshot < self.first_start_timestamp:
            raise ProtocolError(
                "epoch ≤ snapshot < start timestamp must hold, not "
                f"{self.epoch} ≤ {self.snapshot} < {self.first_start_timestamp}"
            )

    def payload(self) -> bytes:
        """The bytes after the header."""
        timestamps = (self.first_start_timestamp, self.snapshot, self.epoch)
        return b"".join(number_bytes(value, TIMESTAMP) for value in timestamps) + number_bytes(self.count, OFFSET)

    @classmethod
    def read(cls, reader: PayloadReader) -> BeginReply:
        """The message in ``reader``. Raises ``ProtocolError``."""
        first, snapshot, epoch = (reader.number(TIMESTAMP) for _ in range(3))
        return cls(first, reader.number(OFFSET), snapshot, epoch)


@dataclass(frozen=True, slots=True, eq=False)
class CommitRequest(Message):
    """Commit n transactions; the write set of transaction i is ``cells[offsets[i]:offsets[i + 1]]``.

    ``validated`` is 0, or a later snapshot up to which the client itself has looked for conflicts in the data
    (revalidation, DESIGN section 8). Any 64-bit cell id is legal, and so is an empty write set (nothing to conflict
    with). Layout: n u32, m u32, start timestamps i64[n], snapshots i64[n], validated i64[n], cells u64[m],
    offsets u32[n + 1].
    """

    KIND = Kind.COMMIT_REQUEST
    start_timestamps: Timestamps
    snapshots: Timestamps
    validated: Timestamps
    offsets: Offsets
    cells: Cells

    def __post_init__(self) -> None:
        self._set_column("start_timestamps", TIMESTAMP)
        self._set_column("snapshots", TIMESTAMP)
        self._set_column("validated", TIMESTAMP)
        self._set_column("offsets", OFFSET)
        self._set_column("cells", CELL)
        check_not_empty("start_timestamps", self.start_timestamps)
        check_same_length(start_timestamps=self.start_timestamps, snapshots=self.snapshots, validated=self.validated)
        check_timestamps("start_timestamps", self.start_timestamps)
        check_timestamps("snapshots", self.snapshots)
        check_timestamps("validated", self.validated)
        _check_offsets(self.offsets, self.start_timestamps.size, self.cells.size)

    def payload(self) -> bytes:
        """The bytes after the header."""
        counts = number_bytes(self.start_timestamps.size, OFFSET) + number_bytes(self.cells.size, OFFSET)
        columns = (self.start_timestamps, self.snapshots, self.validated, self.cells, self.offsets)
        return counts + b"".join(array.tobytes() for array in columns)

    @classmethod
    def read(cls, reader: PayloadReader) -> CommitRequest:
        """The message in ``reader``. Raises ``ProtocolError``."""
        transactions, cells_count = reader.number(OFFSET), reader.number(OFFSET)
        starts = reader.take("start_timestamps", TIMESTAMP, transactions)
        snapshots = reader.take("snapshots", TIMESTAMP, transactions)
        validated = reader.take("validated", TIMESTAMP, transactions)
        cells = reader.take("cells", CELL, cells_count)
        return cls(starts, snapshots, validated, reader.take("offsets", OFFSET, transactions + 1), cells)


@dataclass(frozen=True, slots=True, eq=False)
class CommitReply(Message):
    """The decisions over a ``CommitRequest``, in its order; a commit timestamp is 0 where the reason is not COMMITTED.

    Layout: n u32, zero u32, commit timestamps i64[n], reasons u8[n].
    """

    KIND = Kind.COMMIT_REPLY
    commit_timestamps: Timestamps
    reasons: Codes

    def __post_init__(self) -> None:
        self._set_column("commit_timestamps", TIMESTAMP)
        self._set_column("reasons", CODE)
        _check_answers(self.commit_timestamps, "reasons", self.reasons, max(Reason), Reason.COMMITTED)

    def payload(self) -> bytes:
        """The bytes after the header."""
        return _answers_payload(self.commit_timestamps, self.reasons)

    @classmethod
    def read(cls, reader: PayloadReader) -> CommitReply:
        """The message in ``reader``. Raises ``ProtocolError``."""
        return cls(*_read_answers(reader))


@dataclass(frozen=True, slots=True, eq=False)
class _TransactionsRequest(Message):
    """Start timestamps to ask about. Layout: n u32, zero u32, start timestamps i64[n]."""

    start_timestamps: Timestamps

    def __post_init__(self) -> None:
        self._set_column("start_timestamps", TIMESTAMP)
        check_not_empty("start_timestamps", self.start_timestamps)
        check_timestamps("start_timestamps", self.start_timestamps)

    def payload(self) -> bytes:
        """The bytes after the header."""
        return _count_bytes(self.start_timestamps.size) + self.start_timestamps.tobytes()

    @classmethod
    def read(cls, reader: PayloadReader) -> _TransactionsRequest:
        """The message in ``reader``. Raises ``ProtocolError``."""
        return cls(reader.take("start_timestamps", TIMESTAMP, _read_count(reader)))


class AbortRequest(_TransactionsRequest):
    """Make sure that none of these transactions ever commits, or learn that it did. Answer: ``OutcomeReply``."""

    KIND = Kind.ABORT_REQUEST
    __slots__ = ()


class OutcomeRequest(_TransactionsRequest):
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
        _check_answers(self.commit_timestamps, "statuses", self.statuses, max(OutcomeStatus), OutcomeStatus.COMMITTED)

    def payload(self) -> bytes:
        """The bytes after the header."""
        return _answers_payload(self.commit_timestamps, self.statuses)

    @classmethod
    def read(cls, reader: PayloadReader) -> OutcomeReply:
        """The message in ``reader``. Raises ``ProtocolError``."""
        commit_timestamps, statuses = _read_answers(reader)
        return cls(statuses, commit_timestamps)


@dataclass(frozen=True, slots=True, eq=False)
class HeartbeatRequest(Message):
    """These transactions are still being worked on, or read at. Layout: n u32, zero u32, start timestamps i64[n],
    snapshots i64[n].
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
        return _count_bytes(self.start_timestamps.size) + columns

    @classmethod
    def read(cls, reader: PayloadReader) -> HeartbeatRequest:
        """The message in ``reader``. Raises ``ProtocolError``."""
        count = _read_count(reader)
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
        return _count_bytes(self.alive.size) + self.alive.tobytes()

    @classmethod
    def read(cls, reader: PayloadReader) -> HeartbeatReply:
        """The message in ``reader``. Raises ``ProtocolError``."""
        return cls(reader.take("alive", CODE, _read_count(reader)))


_MESSAGES: dict[Kind, type[Message]] = {
    message.KIND: message
    for message in (
        BeginRequest,
        BeginReply,
        CommitRequest,
        CommitReply,
        AbortRequest,
        OutcomeRequest,
        OutcomeReply,
        HeartbeatRequest,
        HeartbeatReply,
        HandoverRequest,
        HandoverReply,
        StatusRequest,
        StatusReply,
        NotPrimary,
        Overloaded,
        BadRequest,
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


def _check_count(count: int) -> None:
    if not 1 <= count <= np.iinfo(OFFSET).max:
        raise ProtocolError(f"count must be at least 1 and fit 32 bits, not {count}")


def _check_offsets(offsets: Offsets, transactions: int, cells: int) -> None:
    if offsets.size != transactions + 1:
        raise ProtocolError(
            f"offsets must have one more value than the {transactions} transactions, not {offsets.size}"
        )
    if int(offsets[0]) != 0 or int(offsets[-1]) != cells:
        raise ProtocolError(f"offsets must go from 0 to the {cells} cells, not from {offsets[0]} to {offsets[-1]}")
    if bool((offsets[1:] < offsets[:-1]).any()):
        raise ProtocolError("offsets must not decrease")


def _check_answers(timestamps: Timestamps, name: str, codes: Codes, code_max: int, committed: int) -> None:
    check_same_length(commit_timestamps=timestamps, **{name: codes})
    check_not_empty("commit_timestamps", timestamps)
    check_timestamps("commit_timestamps", timestamps)
    if int(codes.max()) > code_max:
        raise ProtocolError(f"{name} holds {int(codes.max())}; the largest that is known is {code_max}")
    if bool(((codes == committed) != (timestamps > 0)).any()):
        raise ProtocolError("a commit timestamp must be there exactly where the transaction committed")


def _count_bytes(count: int) -> bytes:
    return number_bytes(count, OFFSET) + number_bytes(0, OFFSET)


def _read_count(reader: PayloadReader) -> int:
    count = reader.number(OFFSET)
    if reader.number(OFFSET) != 0:
        raise ProtocolError("the four bytes after the count must be 0")
    return count


def _answers_payload(timestamps: Timestamps, codes: Codes) -> bytes:
    return _count_bytes(timestamps.size) + timestamps.tobytes() + codes.tobytes()


def _read_answers(reader: PayloadReader) -> tuple[Timestamps, Codes]:
    count = _read_count(reader)
    timestamps = reader.take("commit_timestamps", TIMESTAMP, count)
    return timestamps, reader.take("codes", CODE, count)
