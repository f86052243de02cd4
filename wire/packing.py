"""What single callers send and get, from and to plain numbers: for a few of them at a tenth of the cost of a message.

The same bytes as those of the messages, and the same checks; but whoever unpacks answers to commits has to look whether
their codes fit the timestamps.
"""

from __future__ import annotations

import itertools
import struct
from array import array
from collections.abc import Sequence
from typing import Final, SupportsIndex

from wire.errors import ProtocolError

COUNT_MAX: Final = 2**32 - 1
SINGLE_CELLS_MAX: Final = 32
"""Of a commit that is packed as one record."""
BEGIN_REPLY: Final = struct.Struct("<qqqI")
_COUNT: Final = struct.Struct("<I")
_COUNTS: Final = struct.Struct("<II")
_ANSWER_BYTES: Final = 9
_SINGLE_COMMIT: Final = tuple(struct.Struct(f"<IIqqq{cells}QIIII") for cells in range(SINGLE_CELLS_MAX + 1))
_SINGLE_ANSWER: Final = struct.Struct("<IIqB")


def pack_begin(count: int) -> bytes:
    """The payload of a ``BeginRequest``. Raises ``ProtocolError``."""
    check_count(count)
    return _COUNT.pack(count)


class CommitArguments:
    """What callers say of a transaction each, as columns, in the order in which they came.

    ``validated``: up to where the caller has looked for conflicts itself (0: not). ``guards``: how many of the last
    cells of its write set are only checked.
    """

    def __init__(self) -> None:
        self.start_timestamps: list[SupportsIndex] = []
        self.snapshots: list[SupportsIndex] = []
        self.validated: list[SupportsIndex] = []
        self.write_sets: list[Sequence[SupportsIndex]] = []
        self.guards: list[SupportsIndex] = []

    @staticmethod
    def of_one(
        start_timestamp: SupportsIndex,
        snapshot: SupportsIndex,
        validated: SupportsIndex,
        write_set: Sequence[SupportsIndex],
        guards: SupportsIndex,
    ) -> CommitArguments:
        """Of one transaction."""
        arguments = CommitArguments()
        arguments.add(start_timestamp, snapshot, validated, write_set, guards)
        return arguments

    def add(
        self,
        start_timestamp: SupportsIndex,
        snapshot: SupportsIndex,
        validated: SupportsIndex,
        write_set: Sequence[SupportsIndex],
        guards: SupportsIndex,
    ) -> None:
        """One more."""
        self.start_timestamps.append(start_timestamp)
        self.snapshots.append(snapshot)
        self.validated.append(validated)
        self.write_sets.append(write_set)
        self.guards.append(guards)

    def add_all(self, others: CommitArguments) -> None:
        """All of others."""
        self.start_timestamps += others.start_timestamps
        self.snapshots += others.snapshots
        self.validated += others.validated
        self.write_sets += others.write_sets
        self.guards += others.guards

    def split(self) -> list[CommitArguments]:
        """Each by itself."""
        columns = (self.start_timestamps, self.snapshots, self.validated, self.write_sets, self.guards)
        return [CommitArguments.of_one(*one) for one in zip(*columns, strict=True)]


def pack_commits(commits: CommitArguments) -> bytes:
    """The payload of a ``CommitRequest``.

    Raises ``ProtocolError`` where a number does not fit its column, or a write set cannot be read.
    """
    try:
        if len(commits.write_sets) == 1 and len(commits.write_sets[0]) <= SINGLE_CELLS_MAX:
            return _pack_single(commits)
        return _pack_columns(commits)
    except Exception as error:  # a write set is its caller's: whatever reading it raises is about this request alone
        allowed = "timestamps and cell ids are whole numbers of 64 bits, cell ids from 0 to 2**64 - 1"
        raise ProtocolError(f"{allowed}: {error}") from error


def _pack_single(commits: CommitArguments) -> bytes:
    """As many are who have one connection each: their columns are a record."""
    write_set = commits.write_sets[0]
    cells = len(write_set)
    head = (1, cells, commits.start_timestamps[0], commits.snapshots[0], commits.validated[0])
    return _SINGLE_COMMIT[cells].pack(*head, *write_set, 0, cells, commits.guards[0], 0)


def _pack_columns(commits: CommitArguments) -> bytes:
    """By one layout, whose columns are runs: a number of an ``array`` costs twice as much."""
    cells = list(itertools.chain.from_iterable(commits.write_sets))
    count, offsets = len(commits.write_sets), itertools.accumulate(map(len, commits.write_sets), initial=0)
    layout = f"<II{3 * count}q{len(cells)}Q{2 * (count + 1)}I"
    timestamps = (*commits.start_timestamps, *commits.snapshots, *commits.validated)
    return struct.pack(layout, count, len(cells), *timestamps, *cells, *offsets, *commits.guards, 0)


def unpack_answers(payload: bytes) -> tuple[Sequence[int], Sequence[int]]:
    """Commit timestamps and reasons of a ``CommitReply``. Raises ``ProtocolError``."""
    if len(payload) == _SINGLE_ANSWER.size:
        count, zero, time, reason = _SINGLE_ANSWER.unpack(payload)
        if count == 1 and zero == 0:
            return (time,), (reason,)
    count, zero = _COUNTS.unpack_from(payload) if len(payload) >= _COUNTS.size else (0, 0)
    end = _COUNTS.size + 8 * count
    if count == 0 or zero != 0 or len(payload) != _COUNTS.size + _ANSWER_BYTES * count:
        raise ProtocolError(f"an answer of {len(payload)} bytes cannot be one to {count} transactions")
    times = array("q")
    times.frombytes(payload[_COUNTS.size : end])
    return times, payload[end:]


def unpack_begin_reply(payload: bytes) -> tuple[int, int, int, int]:
    """First start timestamp, snapshot, epoch and count of a ``BeginReply``. Raises ``ProtocolError``."""
    if len(payload) != BEGIN_REPLY.size:
        raise ProtocolError(f"an answer of {len(payload)} bytes cannot be one to a begin")
    first, snapshot, epoch, count = BEGIN_REPLY.unpack(payload)
    check_begun(first, count, snapshot, epoch)
    return first, snapshot, epoch, count


def check_begun(first_start_timestamp: int, count: int, snapshot: int, epoch: int) -> None:
    """Raise ``ProtocolError`` unless an oracle can have begun that."""
    check_count(count)
    if not 0 <= epoch <= snapshot < first_start_timestamp:
        raise ProtocolError(
            f"epoch ≤ snapshot < start timestamp must hold, not {epoch} ≤ {snapshot} < {first_start_timestamp}"
        )


def check_count(count: int) -> None:
    """Raise ``ProtocolError`` unless that many transactions can be in one request."""
    if not 1 <= count <= COUNT_MAX:
        raise ProtocolError(f"count must be at least 1 and fit 32 bits, not {count}")
