"""Commit requests and the answers to them, as columns over many transactions at once.

A write set is a run of cell ids; its last ones may be *guards*, which are checked for conflicts and not entered: a
transaction conflicts with whoever wrote a guard, and with nobody who only guards it (DESIGN section 7).
"""

from __future__ import annotations

from dataclasses import dataclass, field
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
    answers_payload,
    check_answers,
    check_not_empty,
    check_same_length,
    check_timestamps,
    number_bytes,
    read_answers,
)
from wire.errors import ProtocolError
from wire.frames import Kind
from wire.message import Message


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


@dataclass(frozen=True, slots=True, eq=False)
class CommitRequest(Message):
    """Commit n transactions; the write set of transaction i is ``cells[offsets[i]:offsets[i + 1]]``.

    ``validated`` is 0, or a later snapshot up to which the client itself has looked for conflicts in the data
    (revalidation, DESIGN section 8). The last ``guards[i]`` cells of a write set are only checked. Any 64-bit cell id
    is legal, and so is an empty write set (nothing to conflict with). Layout: n u32, m u32, start timestamps i64[n],
    snapshots i64[n], validated i64[n], cells u64[m], offsets u32[n + 1], guards u32[n], zero u32.
    """

    KIND = Kind.COMMIT_REQUEST
    start_timestamps: Timestamps
    snapshots: Timestamps
    validated: Timestamps
    offsets: Offsets
    cells: Cells
    guards: Offsets = field(default_factory=lambda: np.empty(0, OFFSET))
    """None at all: no write set has any."""

    def __post_init__(self) -> None:
        if not len(self.guards):
            object.__setattr__(self, "guards", np.zeros(len(self.start_timestamps), OFFSET))
        self._set_column("start_timestamps", TIMESTAMP)
        self._set_column("snapshots", TIMESTAMP)
        self._set_column("validated", TIMESTAMP)
        self._set_column("offsets", OFFSET)
        self._set_column("cells", CELL)
        self._set_column("guards", OFFSET)
        check_not_empty("start_timestamps", self.start_timestamps)
        check_same_length(
            start_timestamps=self.start_timestamps,
            snapshots=self.snapshots,
            validated=self.validated,
            guards=self.guards,
        )
        if int((self.start_timestamps | self.snapshots | self.validated).min()) < 0:  # one look in place of three
            check_timestamps("start_timestamps", self.start_timestamps)
            check_timestamps("snapshots", self.snapshots)
            check_timestamps("validated", self.validated)
        _check_offsets(self.offsets, self.start_timestamps.size, self.cells.size)
        if np.count_nonzero(self.guards) and bool((self.guards > np.diff(self.offsets)).any()):
            raise ProtocolError("guards are a part of their write set: there cannot be more of them than it has cells")

    def payload(self) -> bytes:
        """The bytes after the header."""
        counts = number_bytes(self.start_timestamps.size, OFFSET) + number_bytes(self.cells.size, OFFSET)
        columns = (self.start_timestamps, self.snapshots, self.validated, self.cells, self.offsets, self.guards)
        return counts + b"".join(array.tobytes() for array in columns) + number_bytes(0, OFFSET)

    @classmethod
    def read(cls, reader: PayloadReader) -> CommitRequest:
        """The message in ``reader``. Raises ``ProtocolError``."""
        transactions, cells_count = reader.number(OFFSET), reader.number(OFFSET)
        starts = reader.take("start_timestamps", TIMESTAMP, transactions)
        snapshots = reader.take("snapshots", TIMESTAMP, transactions)
        validated = reader.take("validated", TIMESTAMP, transactions)
        cells = reader.take("cells", CELL, cells_count)
        offsets = reader.take("offsets", OFFSET, transactions + 1)
        guards = reader.take("guards", OFFSET, transactions)
        if reader.number(OFFSET) != 0:
            raise ProtocolError("the last four bytes must be 0")
        return cls(starts, snapshots, validated, offsets, cells, guards)


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
        check_answers(self.commit_timestamps, "reasons", self.reasons, Reason, Reason.COMMITTED)

    def payload(self) -> bytes:
        """The bytes after the header."""
        return answers_payload(self.commit_timestamps, self.reasons)

    @classmethod
    def read(cls, reader: PayloadReader) -> CommitReply:
        """The message in ``reader``. Raises ``ProtocolError``."""
        return cls(*read_answers(reader))


def _check_offsets(offsets: Offsets, transactions: int, cells: int) -> None:
    if offsets.size != transactions + 1:
        raise ProtocolError(
            f"offsets must have one more value than the {transactions} transactions, not {offsets.size}"
        )
    if int(offsets[0]) != 0 or int(offsets[-1]) != cells:
        raise ProtocolError(f"offsets must go from 0 to the {cells} cells, not from {offsets[0]} to {offsets[-1]}")
    if bool((offsets[1:] < offsets[:-1]).any()):
        raise ProtocolError("offsets must not decrease")
