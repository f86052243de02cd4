"""How a table is cut into partitions to read. Pure.

A partition never crosses a region, and together the partitions are what is wanted of the table, without gap or overlap,
whatever the keys that guided the cuts. Within a region the keys between its first and its last are taken to lie evenly.
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from typing import Final

from store import KeyRange

_INTERPOLATED_BYTES: Final = 8


def pieces_for_each_region(regions: int, min_partitions: int) -> int:
    """Into how many pieces each region is cut so that there are at least ``min_partitions``."""
    return max(1, -(-min_partitions // regions))


def overlaps(region: KeyRange, wanted: Sequence[KeyRange]) -> list[KeyRange]:
    """What lies in a region of each range; those of which nothing does are left out."""
    return [
        KeyRange(start, stop)
        for key_range in wanted
        for start, stop in [(max(region.start, key_range.start), _earlier(region.stop, key_range.stop))]
        if not stop or start < stop
    ]


def dealt(ranges: Sequence[KeyRange], tasks: int) -> list[tuple[KeyRange, ...]]:
    """Ranges shared out among ``tasks``, at most one for each range: neighbours together, numbers alike."""
    tasks = min(tasks, len(ranges))
    bounds = [len(ranges) * task // tasks for task in range(tasks + 1)]
    return [tuple(ranges[low:high]) for low, high in itertools.pairwise(bounds)]


def split(key_range: KeyRange, first: bytes, last: bytes, pieces: int) -> list[KeyRange]:
    """``key_range`` in up to ``pieces`` parts, cut between ``first`` and ``last``, the range's first and last keys."""
    start, stop = key_range
    cuts = [cut for cut in _between(first, last, pieces) if cut > start and (not stop or cut < stop)]
    bounds = [start, *cuts, stop]
    return [KeyRange(low, high) for low, high in itertools.pairwise(bounds)]


def _earlier(left: bytes, right: bytes) -> bytes:
    """The earlier of two ends; an empty one is that of the table."""
    return min(left, right) if left and right else left or right


def _between(first: bytes, last: bytes, pieces: int) -> Sequence[bytes]:
    """``pieces - 1`` keys at even distances between two keys, fewer where they are too close; sorted, each once."""
    prefix = first[: _common_length(first, last)]
    low, high = _number(first[len(prefix) :]), _number(last[len(prefix) :])
    numbers = sorted({low + (high - low) * piece // pieces for piece in range(1, pieces)} - {low})
    return [prefix + number.to_bytes(_INTERPOLATED_BYTES, "big") for number in numbers]


def _common_length(first: bytes, second: bytes) -> int:
    pairs = enumerate(zip(first, second, strict=False))
    return next((index for index, (left, right) in pairs if left != right), min(len(first), len(second)))


def _number(key: bytes) -> int:
    return int.from_bytes(key[:_INTERPOLATED_BYTES].ljust(_INTERPOLATED_BYTES, b"\x00"), "big")
