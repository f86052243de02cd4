"""Which rows of a table each task of a job takes: along the regions, and within them evenly between the keys."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from client.spark.splitting import dealt, overlaps, pieces_for_each_region, split
from store import ALL_ROWS, CellStore, KeyRange

WHOLE_TABLE: Final = (ALL_ROWS,)


def task_ranges(
    store: CellStore, table: str, families: Sequence[bytes], wanted: Sequence[KeyRange], *, min_partitions: int
) -> list[tuple[KeyRange, ...]]:
    """What each task takes of the ranges that are wanted: as many tasks as ``min_partitions`` asks for, or regions.

    Raises ``StoreError``.
    """
    touched = [found for region in store.regions(table) if (found := overlaps(region, wanted))]
    if not touched:
        return [()]
    tasks = pieces_for_each_region(len(touched), min_partitions)
    return [task for ranges in touched for task in _of_region(store, table, families, ranges, tasks)]


def _of_region(
    store: CellStore, table: str, families: Sequence[bytes], ranges: Sequence[KeyRange], tasks: int
) -> list[tuple[KeyRange, ...]]:
    if len(ranges) >= tasks:
        return dealt(ranges, tasks)
    pieces = -(-tasks // len(ranges))
    return [(piece,) for key_range in ranges for piece in _pieces(store, table, families, key_range, pieces)]


def _pieces(
    store: CellStore, table: str, families: Sequence[bytes], key_range: KeyRange, pieces: int
) -> list[KeyRange]:
    first, last = (
        next(store.scan(table, key_range, families, batch_rows=1, reverse=reverse), None) for reverse in (False, True)
    )
    if first is None or last is None:
        return [key_range]
    return split(key_range, first[0], last[0], pieces)
