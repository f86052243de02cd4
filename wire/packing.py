"""What single callers send and get, from and to plain numbers: for a few of them at a tenth of the cost of a message.

The same bytes as those of the messages, and the same checks.
"""

from __future__ import annotations

import itertools
import struct
from array import array
from collections.abc import Sequence
from typing import SupportsIndex, TypeAlias

from wire.errors import ProtocolError

CommitArguments: TypeAlias = tuple[SupportsIndex, SupportsIndex, SupportsIndex, Sequence[SupportsIndex], SupportsIndex]
"""Start timestamp, snapshot, validated up to (0: not), write set, and how many of its last cells are guards."""

COUNT_MAX = 2**32 - 1
SINGLE_CELLS_MAX = 32
"""Of a commit that is packed as one record."""
BEGIN_REPLY = struct.Struct("<qqqI")
_COUNT = struct.Struct("<I")
_COUNTS = struct.Struct("<II")
_ANSWER_BYTES = 9
_SINGLE_COMMIT = tuple(struct.Struct(f"<IIqqq{cells}QIIII") for cells in range(SINGLE_CELLS_MAX + 1))
_SINGLE_ANSWER = struct.Struct("<IIqB")


def pack_begin(count: int) -> bytes:
    """The payload of a ``BeginRequest``. Raises ``ProtocolError``."""
    check_count(count)
    return _COUNT.pack(count)


def pack_commits(commits: Sequence[CommitArguments]) -> bytes:
    """The payload of a ``CommitRequest``. Raises ``ProtocolError`` where a number does not fit its column."""
    try:
        if len(commits) == 1 and len(commits[0][3]) <= SINGLE_CELLS_MAX:
            return _pack_single(commits[0])
        return _pack_columns(commits)
    except (OverflowError, TypeError, struct.error) as error:
        allowed = "timestamps and cell ids are whole numbers of 64 bits, cell ids from 0 to 2**64 - 1"
        raise ProtocolError(f"{allowed}: {error}") from error


def _pack_single(commit: CommitArguments) -> bytes:
    """As many are who have one connection each: their columns are a record."""
    start_timestamp, snapshot, validated, write_set, guards = commit
    cells = len(write_set)
    head = (1, cells, start_timestamp, snapshot, validated)
    return _SINGLE_COMMIT[cells].pack(*head, *write_set, 0, cells, guards, 0)


def _pack_columns(commits: Sequence[CommitArguments]) -> bytes:
    start_timestamps, snapshots, validated, write_sets, guards = zip(*commits, strict=True)
    cells = array("Q", itertools.chain.from_iterable(write_sets))
    columns = (
        _COUNTS.pack(len(start_timestamps), len(cells)),
        array("q", start_timestamps),
        array("q", snapshots),
        array("q", validated),
        cells,
        array("I", itertools.accumulate(map(len, write_sets), initial=0)),
        array("I", [*guards, 0]),
    )
    return b"".join(columns)


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
