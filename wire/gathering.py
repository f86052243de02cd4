"""Many frames at once: the requests of a whole wake-up as one set of columns, and the answers to them.

What a frame costs in Python does not depend on how much is in it; so the frames of a wake-up are checked, taken apart
and answered together. Invariant: a payload is taken exactly where ``CommitRequest.read`` or ``BeginRequest.read`` would
accept it, and says the same; for one that is refused, that method knows the reason.
"""

from __future__ import annotations

import itertools
import struct
import sys
from collections.abc import Sequence
from typing import NamedTuple, TypeAlias

import numba
import numpy as np
import numpy.typing as npt

from wire.columns import OFFSET, Cells, Codes, Timestamps
from wire.frames import HEADER_BYTES, VERSION, Kind
from wire.messages import BeginReply

assert sys.byteorder == "little", "frames are little-endian, and columns are taken from them as they are"

Words: TypeAlias = npt.NDArray[np.uint64]
Counts: TypeAlias = npt.NDArray[np.int64]
Number: TypeAlias = int | np.int64

_WORD_BYTES = 8
_FEWEST_WORDS = 6
"""Of a request for one transaction with an empty write set."""


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
    transactions, cells, malformed = _measure(words, lengths, bounds, well_formed, first, first_cell)
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
    _gather(words, bounds, first_cell, *gathered[1:])
    return gathered


def commits_in(payload: bytes) -> int:
    """How many transactions a commit request says it has, which is true where it is well-formed."""
    return int.from_bytes(payload[: OFFSET.itemsize], "little")


def gather_begins(payloads: Sequence[bytes]) -> list[int]:
    """How many transactions each of some begin requests asks for; 0 where a payload is not well-formed."""
    return [int.from_bytes(payload, "little") if len(payload) == OFFSET.itemsize else 0 for payload in payloads]


_BEGIN_REPLY_FRAME = struct.Struct("<IBBHQqqqI")
_BEGIN_REPLY_BYTES = _BEGIN_REPLY_FRAME.size - HEADER_BYTES
_BEGIN_REPLY = int(Kind.BEGIN_REPLY)


def scatter_begins(request_ids: Sequence[int], counts: Sequence[int], reply: BeginReply) -> list[bytes]:
    """The frames of a ``BeginReply`` to each request; ``counts[i]`` of the reply's transactions belong to each."""
    first, snapshot, epoch, frames = reply.first_start_timestamp, reply.snapshot, reply.epoch, []
    pack = _BEGIN_REPLY_FRAME.pack
    for request_id, count in zip(request_ids, counts, strict=True):
        header = (_BEGIN_REPLY_BYTES, VERSION, _BEGIN_REPLY, 0, request_id)
        frames.append(pack(*header, first, snapshot, epoch, count))
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
    if not any(size % _WORD_BYTES for size in sizes):
        return b"".join(payloads)
    return b"".join([payload + bytes(-len(payload) % _WORD_BYTES) for payload in payloads])


@numba.njit(cache=True)
def _half(words: Words, base: Number, place: Number) -> np.int64:
    """The ``place``-th 32-bit number after word ``base``."""
    return np.int64((words[base + (place >> 1)] >> np.uint64(32 * (place & 1))) & np.uint64(0xFFFFFFFF))


@numba.njit(cache=True)
def _is_well_formed(words: Words, base: Number, transactions: Number, cells: Number) -> bool:
    for place in range(base + 1, base + 1 + 3 * transactions):
        if words[place] >> np.uint64(63):
            return False  # a negative timestamp
    offsets = base + 1 + 3 * transactions + cells
    previous = _half(words, offsets, 0)
    if previous != 0:
        return False
    for transaction in range(transactions):
        following = _half(words, offsets, transaction + 1)
        guards = _half(words, offsets, transactions + 1 + transaction)
        if following < previous or guards > following - previous:
            return False
        previous = following
    return bool(previous == cells and _half(words, offsets, 2 * transactions + 1) == 0)


@numba.njit(cache=True)
def _measure(
    words: Words, lengths: Counts, bounds: Counts, well_formed: Codes, first: Counts, first_cell: Counts
) -> tuple[int, int, int]:
    """Fill all but the first two; returns how many transactions and cells there are, and malformed payloads."""
    bounds[0] = first[0] = first_cell[0] = 0
    malformed = lengths.size
    for payload in range(lengths.size):
        first[payload + 1], first_cell[payload + 1] = first[payload], first_cell[payload]
        base, size = bounds[payload], -(-lengths[payload] // _WORD_BYTES)
        bounds[payload + 1] = base + size
        well_formed[payload] = 0
        if size < _FEWEST_WORDS or lengths[payload] != size * _WORD_BYTES:
            continue
        transactions, cells = _half(words, base, 0), _half(words, base, 1)
        if transactions < 1 or 4 * transactions + cells + 2 != size:
            continue
        if _is_well_formed(words, base, transactions, cells):
            well_formed[payload] = 1
            malformed -= 1
            first[payload + 1] += transactions
            first_cell[payload + 1] += cells
    return first[lengths.size], first_cell[lengths.size], malformed


@numba.njit(cache=True)
def _gather(
    words: Words,
    bounds: Counts,
    first_cell: Counts,
    well_formed: Codes,
    first: Counts,
    starts: Timestamps,
    snapshots: Timestamps,
    validated: Timestamps,
    offsets: Counts,
    guards: Counts,
    cells: Cells,
) -> None:
    offsets[0] = 0
    for payload in range(well_formed.size):
        if not well_formed[payload]:
            continue
        begin, count = first[payload], first[payload + 1] - first[payload]
        begin_cells, cells_count = first_cell[payload], first_cell[payload + 1] - first_cell[payload]
        base = bounds[payload] + 1
        for place in range(count):
            starts[begin + place] = np.int64(words[base + place])
            snapshots[begin + place] = np.int64(words[base + count + place])
            validated[begin + place] = np.int64(words[base + 2 * count + place])
        base += 3 * count
        for place in range(cells_count):
            cells[begin_cells + place] = words[base + place]
        base += cells_count
        for place in range(count):
            offsets[begin + place + 1] = begin_cells + _half(words, base, place + 1)
            guards[begin + place] = _half(words, base, count + 1 + place)


_ANSWER_BYTES = 9
_COUNT_BYTES = 8


def scatter_answers(
    request_ids: Sequence[int], counts: Sequence[int], commit_timestamps: Timestamps, reasons: Codes
) -> list[bytes]:
    """The frames of the ``CommitReply`` to each request; ``counts[i]`` transactions belong to ``request_ids[i]``."""
    ids, sizes = np.array(request_ids, np.uint64), np.array(counts, np.int64)
    cuts = [0, *itertools.accumulate([HEADER_BYTES + _COUNT_BYTES + _ANSWER_BYTES * count for count in counts])]
    frames = np.zeros(cuts[-1], np.uint8)
    _scatter(ids, sizes, commit_timestamps, reasons, frames)
    whole = frames.tobytes()
    return [whole[begin:end] for begin, end in itertools.pairwise(cuts)]


@numba.njit(cache=True)
def _store(frames: Codes, position: int, value: np.uint64, size: int) -> int:
    """Write the low ``size`` bytes of a number; returns where it ends."""
    for place in range(size):
        frames[position + place] = np.uint8((value >> np.uint64(8 * place)) & np.uint64(0xFF))
    return position + size


_KIND = int(Kind.COMMIT_REPLY)


@numba.njit(cache=True)
def _scatter(ids: Words, counts: Counts, timestamps: Timestamps, reasons: Codes, frames: Codes) -> None:
    position, transaction = 0, 0
    for request in range(ids.size):
        count = counts[request]
        payload_bytes = _COUNT_BYTES + _ANSWER_BYTES * count
        position = _store(frames, position, np.uint64(payload_bytes), 4)
        frames[position], frames[position + 1] = VERSION, _KIND
        position = _store(frames, position + 4, ids[request], 8)
        position = _store(frames, position, np.uint64(count), _COUNT_BYTES)
        for place in range(transaction, transaction + count):
            position = _store(frames, position, np.uint64(timestamps[place]), 8)
        for place in range(transaction, transaction + count):
            frames[position] = reasons[place]
            position += 1
        transaction += count
