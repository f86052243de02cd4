"""Commits with more cells than a frame should have: the write set goes ahead in parts, the commit follows.

A part names its place in the write set, so that a repeated one is known, and one that follows a lost one as well: the
answer always says how much of the write set is there, and whoever sends it goes on from that place. No part is large:
the oracle looks at one after the other, and at the requests of everybody else between two of them.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from wire.columns import (
    CELL,
    OFFSET,
    TIMESTAMP,
    Cells,
    PayloadReader,
    check_not_empty,
    number_bytes,
)
from wire.errors import ProtocolError
from wire.frames import Kind
from wire.message import Message

PART_CELLS_MAX = 4_096
"""Cells in one part: about a millisecond of the oracle's time."""


@dataclass(frozen=True, slots=True, eq=False)
class WriteSetPart(Message):
    """Cells ``position`` … of a write set of ``total`` cells, the last ``guards`` of which are only checked.

    Answer: ``WriteSetTaken``, or a ``CommitReply`` where the transaction is decided already. Layout: start timestamp
    i64, snapshot i64, validated i64, total u32, guards u32, position u32, n u32, cells u64[n].
    """

    KIND = Kind.WRITE_SET_PART
    start_timestamp: int
    snapshot: int
    validated: int
    total: int
    guards: int
    position: int
    cells: Cells

    def __post_init__(self) -> None:
        self._set_column("cells", CELL)
        check_not_empty("cells", self.cells)
        _check_timestamps(self.start_timestamp, self.snapshot, self.validated)
        if self.cells.size > PART_CELLS_MAX:
            raise ProtocolError(f"a part has {PART_CELLS_MAX} cells at most, not {self.cells.size}")
        if not 0 <= self.position <= self.total - self.cells.size:
            raise ProtocolError(
                f"{self.cells.size} cells at {self.position} are no part of a write set of {self.total} cells"
            )
        if not 0 <= self.guards <= self.total:
            raise ProtocolError(f"of {self.total} cells {self.guards} cannot be guards")

    def payload(self) -> bytes:
        """The bytes after the header."""
        times = (self.start_timestamp, self.snapshot, self.validated)
        counts = (self.total, self.guards, self.position, self.cells.size)
        head = [number_bytes(time, TIMESTAMP) for time in times] + [number_bytes(count, OFFSET) for count in counts]
        return b"".join(head) + self.cells.tobytes()

    @classmethod
    def read(cls, reader: PayloadReader) -> WriteSetPart:
        """The message in ``reader``. Raises ``ProtocolError``."""
        start, snapshot, validated = (reader.number(TIMESTAMP) for _ in range(3))
        total, guards, position, count = (reader.number(OFFSET) for _ in range(4))
        return cls(start, snapshot, validated, total, guards, position, reader.take("cells", CELL, count))


@dataclass(frozen=True, slots=True, eq=False)
class WriteSetTaken(Message):
    """The first ``cells`` cells of the transaction's write set are there, and free of conflicts. Layout: cells u32."""

    KIND = Kind.WRITE_SET_TAKEN
    cells: int

    def __post_init__(self) -> None:
        if not 0 <= self.cells <= np.iinfo(OFFSET).max:
            raise ProtocolError(f"a write set has 0…2**32 - 1 cells, not {self.cells}")

    def payload(self) -> bytes:
        """The bytes after the header."""
        return number_bytes(self.cells, OFFSET)

    @classmethod
    def read(cls, reader: PayloadReader) -> WriteSetTaken:
        """The message in ``reader``. Raises ``ProtocolError``."""
        return cls(reader.number(OFFSET))


@dataclass(frozen=True, slots=True, eq=False)
class LargeCommitRequest(Message):
    """Commit a transaction whose write set of ``total`` cells went ahead.

    Answer: a ``CommitReply``, or ``WriteSetTaken`` where some of it is not there: then nothing was done. Layout: start
    timestamp i64, snapshot i64, validated i64, total u32.
    """

    KIND = Kind.LARGE_COMMIT_REQUEST
    start_timestamp: int
    snapshot: int
    validated: int
    total: int

    def __post_init__(self) -> None:
        _check_timestamps(self.start_timestamp, self.snapshot, self.validated)
        if self.total < 1:
            raise ProtocolError("a write set that went ahead has one cell at least")

    def payload(self) -> bytes:
        """The bytes after the header."""
        times = (self.start_timestamp, self.snapshot, self.validated)
        return b"".join(number_bytes(time, TIMESTAMP) for time in times) + number_bytes(self.total, OFFSET)

    @classmethod
    def read(cls, reader: PayloadReader) -> LargeCommitRequest:
        """The message in ``reader``. Raises ``ProtocolError``."""
        start, snapshot, validated = (reader.number(TIMESTAMP) for _ in range(3))
        return cls(start, snapshot, validated, reader.number(OFFSET))


def _check_timestamps(*timestamps: int) -> None:
    if min(timestamps) < 0:
        raise ProtocolError(f"a timestamp is negative: {min(timestamps)}")
