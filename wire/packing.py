"""What single callers send and get, from and to plain numbers: for a few of them at a tenth of the cost of a message.

The same bytes as those of the messages, and the same checks.
"""

from __future__ import annotations

import itertools
import struct
from array import array
from collections.abc import Iterable, Sequence
from typing import SupportsIndex, TypeAlias

from wire.errors import ProtocolError

CommitArguments: TypeAlias = tuple[SupportsIndex, SupportsIndex, SupportsIndex, Sequence[SupportsIndex], SupportsIndex]
"""Start timestamp, snapshot, validated up to (0: not), write set, and how many of its last cells are guards."""

COUNT_MAX = 2**32 - 1
BEGIN_REPLY = struct.Struct("<qqqI")
_COUNTS = struct.Struct("<II")
_ANSWER_BYTES = 9


def pack_commits(commits: Iterable[CommitArguments]) -> bytes:
    """The payload of a ``CommitRequest``. Raises ``ProtocolError`` where a number does not fit its column."""
    start_timestamps, snapshots, validated, write_sets, guards = zip(*commits, strict=True)
    try:
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
    except (OverflowError, TypeError) as error:
        raise ProtocolError(f"timestamps and cell ids are integers of 64 bits: {error}") from error
    return b"".join(columns)


def unpack_answers(payload: bytes) -> tuple[Sequence[int], Sequence[int]]:
    """Commit timestamps and reasons of a ``CommitReply``. Raises ``ProtocolError``."""
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
