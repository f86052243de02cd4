"""Many frames at once: the requests of a whole wake-up as one set of columns, and the answers to them.

What a frame costs in Python does not depend on how much is in it; so the frames of a wake-up are checked, taken apart
and answered together. Invariant: a payload is taken exactly where ``CommitRequest.read`` or ``BeginRequest.read`` would
accept it, and says the same; for one that is refused, that method knows the reason.
"""

from __future__ import annotations

import itertools
import struct
from collections.abc import Sequence
from typing import Final, NamedTuple

import numpy as np

from wire.columns import OFFSET, Cells, Codes, Timestamps
from wire.frames import HEADER_BYTES, Kind, encode_frame
from wire.gathering_kernels import ANSWER_BYTES, COUNT_BYTES, WORD_BYTES, Counts, gather, measure, scatter
from wire.messages import BeginReply
from wire.packing import BEGIN_REPLY

_ASKED_BYTES: Final = OFFSET.itemsize
"""Of the number at the begin of a request: how many transactions it asks for."""
_ONE: Final = (1).to_bytes(_ASKED_BYTES, "little")
"""How a request for one transaction begins, which most are."""


class GatheredCommits(NamedTuple):
    """The transactions of every well-formed payload, in order.

    ``well_formed`` u8[payloads], of which ``malformed`` are 0; ``first`` i64[payloads + 1]: where each payload's
    transactions begin. ``offsets`` i64[n + 1] go over all ``cells``; the last ``guards[i]`` cells of write set i are
    only checked.
    """

    malformed: int
    well_formed: Codes
    first: Counts
    start_timestamps: Timestamps
    snapshots: Timestamps
    validated: Timestamps
    offsets: Counts
    guards: Counts
    cells: Cells


def gather_commits(payloads: Sequence[bytes]) -> GatheredCommits:
    """The columns of commit requests' payloads. Those that are not well-formed are left out, and marked."""
    sizes = [len(payload) for payload in payloads]
    lengths, words = np.array(sizes, np.int64), np.frombuffer(_joined(payloads, sizes), np.uint64)
    well_formed = np.empty(lengths.size, np.uint8)
    bounds, first, first_cell = np.empty((3, lengths.size + 1), np.int64)
    transactions, cells, malformed = measure(words, lengths, bounds, well_formed, first, first_cell)
    gathered = GatheredCommits(
        malformed,
        well_formed,
        first,
        np.empty(transactions, np.int64),
        np.empty(transactions, np.int64),
        np.empty(transactions, np.int64),
        np.empty(transactions + 1, np.int64),
        np.empty(transactions, np.int64),
        np.empty(cells, np.uint64),
    )
    gather(words, bounds, first_cell, *gathered[1:])
    return gathered


def commits_in(payload: bytes) -> int:
    """How many transactions a commit request says it has, which is true where it is well-formed."""
    return 1 if payload.startswith(_ONE) else int.from_bytes(payload[:_ASKED_BYTES], "little")


def gather_begins(payloads: Sequence[bytes]) -> list[int]:
    """How many transactions each of some begin requests asks for; 0 where a payload is not well-formed."""
    return [1 if payload == _ONE else _count_of(payload) for payload in payloads]


def _count_of(payload: bytes) -> int:
    return int.from_bytes(payload, "little") if len(payload) == _ASKED_BYTES else 0


_BEGIN_REPLY_HEAD: Final = encode_frame(Kind.BEGIN_REPLY, 0, bytes(BEGIN_REPLY.size))[: -BEGIN_REPLY.size - WORD_BYTES]
"""What all of them begin with, up to the request."""
_BEGIN_REPLY_REST: Final = struct.Struct("<Q" + BEGIN_REPLY.format.removeprefix("<"))


def scatter_begins(request_ids: Sequence[int], counts: Sequence[int], reply: BeginReply) -> list[bytes]:
    """The frames of a ``BeginReply`` to each request; ``counts[i]`` of the reply's transactions belong to each."""
    first, snapshot, epoch, frames = reply.first_start_timestamp, reply.snapshot, reply.epoch, list[bytes]()
    for request_id, count in zip(request_ids, counts, strict=True):
        frames.append(_BEGIN_REPLY_HEAD + _BEGIN_REPLY_REST.pack(request_id, first, snapshot, epoch, count))
        first += count
    return frames


def one_commit(start_timestamp: int, snapshot: int, validated: int) -> GatheredCommits:
    """A single transaction with nothing in its write set, as if it had been gathered."""
    return GatheredCommits(
        malformed=0,
        well_formed=np.ones(1, np.uint8),
        first=np.array([0, 1], np.int64),
        start_timestamps=np.array([start_timestamp], np.int64),
        snapshots=np.array([snapshot], np.int64),
        validated=np.array([validated], np.int64),
        offsets=np.zeros(2, np.int64),
        guards=np.zeros(1, np.int64),
        cells=np.empty(0, np.uint64),
    )


def _joined(payloads: Sequence[bytes], sizes: Sequence[int]) -> bytes:
    """Each payload begins at a whole word; what is no whole number of words is padded, and refused for its length."""
    if not any(size % WORD_BYTES for size in sizes):
        return b"".join(payloads)
    return b"".join([payload + bytes(-len(payload) % WORD_BYTES) for payload in payloads])


def scatter_answers(
    request_ids: Sequence[int], counts: Sequence[int], commit_timestamps: Timestamps, reasons: Codes
) -> list[bytes]:
    """The frames of the ``CommitReply`` to each request; ``counts[i]`` transactions belong to ``request_ids[i]``."""
    ids, sizes = np.array(request_ids, np.uint64), np.array(counts, np.int64)
    cuts = [0, *itertools.accumulate([HEADER_BYTES + COUNT_BYTES + ANSWER_BYTES * count for count in counts])]
    frames = np.zeros(cuts[-1], np.uint8)
    scatter(ids, sizes, commit_timestamps, reasons, frames)
    whole = frames.tobytes()
    return [whole[begin:end] for begin, end in itertools.pairwise(cuts)]
