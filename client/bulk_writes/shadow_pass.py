"""The shadow cells of what bulk writers wrote: after the commit, or once a transaction can never commit.

What was written is in the manifest, piece by piece, in the order in which it was. Their shadow cells are written in
the order of row keys, many pieces together: HBase takes them up to half as fast again as in any other
(``store.key_order``). They may be written by any process, by several threads, twice, and in part: every one of them
says the same for good, and readers are right without (``client.snapshots.resolver``). The record goes only when all of
them stand, so a pass that broke off is taken up again by whoever comes by.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import suppress
from functools import partial
from itertools import accumulate
from typing import Final, NamedTuple

import numpy as np

from client.bulk_writes.manifest import Manifest, Piece
from client.catalog.catalog import Catalog
from client.cells import ABORTED_SHADOW, encode_shadow, family_of, shadow_column
from store import CellStore, TableMissing
from store.columns import CellColumns
from store.key_order import in_key_order

TOGETHER_BYTES_MAX: Final = 8 * 2**20
"""Of row keys, and of where keys and values lie, that are put in order at a time."""
UNCUT_BYTES_MAX: Final = 2**20
"""What is larger is cut for all threads: so no more than three of those in order are held, beside what is small."""
WRITE_ROWS_MAX: Final = 10_000
"""Rows that one thread writes at a time."""
_PLACE_BYTES: Final = 16
"""Of where one row key, or one value, lies."""


class Shadows(NamedTuple):
    """Shadow cells of rows that follow each other."""

    table: str
    cells: CellColumns


def write_bulk_shadows(
    store: CellStore, catalog: Catalog, manifest: Manifest, start_timestamp: int, outcome: int, *, writers_max: int
) -> None:
    """Write the shadow cells of all that a transaction's bulk writers recorded, and drop the record.

    ``outcome``: its commit timestamp, or ``ABORTED_SHADOW`` once it never can commit. Nothing is owed to a table
    that is gone. Raises ``StoreError``, ``UpgradeNeeded``.
    """
    write = partial(_write, store, start_timestamp)
    writes = _at_our_level(catalog, _writes(manifest.pieces(start_timestamp), encode_shadow(outcome), 2 * writers_max))
    if writers_max == 1:
        for each in writes:
            write(each)
    else:
        _in_threads(write, writes, writers_max)
    if outcome == ABORTED_SHADOW:
        manifest.forget_aborted(start_timestamp)
    else:
        manifest.forget(start_timestamp)


def _at_our_level(catalog: Catalog, writes: Iterable[Shadows]) -> Iterator[Shadows]:
    """The same writes, for as long as this program works at the installation's level."""
    for write in writes:
        catalog.require_level()
        yield write


def _in_threads(write: Callable[[Shadows], None], writes: Iterable[Shadows], writers_max: int) -> None:
    """At most two writes a thread are in memory."""
    under_way: deque[Future[None]] = deque()
    with ThreadPoolExecutor(writers_max, thread_name_prefix="pythia-shadows") as executor:
        try:
            for each in writes:
                under_way.append(executor.submit(write, each))
                if len(under_way) >= 2 * writers_max:
                    under_way.popleft().result()
            while under_way:
                under_way.popleft().result()
        finally:
            for future in under_way:
                future.cancel()


def _writes(pieces: Iterable[Piece], value: bytes, parts: int) -> Iterator[Shadows]:
    """The shadow cells of all pieces; those of pieces that go together are in the order of their row keys.

    What is not small is cut into so many ``parts`` at least.
    """
    for together in _together(pieces):
        cells = in_key_order(_shadow_cells(together, value))
        rows_max = WRITE_ROWS_MAX
        if sum(map(_bytes_of, together)) > UNCUT_BYTES_MAX:
            rows_max = min(rows_max, -(-cells.rows // parts))
        for first in range(0, cells.rows, rows_max):
            yield Shadows(together[0].table, cells.slice(first, first + rows_max))


def _together(pieces: Iterable[Piece]) -> Iterator[list[Piece]]:
    """Pieces that follow each other, of one table and the same families, up to ``TOGETHER_BYTES_MAX``."""
    held: list[Piece] = []
    held_bytes = 0
    for piece in pieces:
        piece_bytes = _bytes_of(piece)
        if held and (held_bytes + piece_bytes > TOGETHER_BYTES_MAX or _kind(piece) != _kind(held[0])):
            yield held
            held, held_bytes = [], 0
        held.append(piece)
        held_bytes += piece_bytes
    if held:
        yield held


def _bytes_of(piece: Piece) -> int:
    return len(piece.data) + (1 + len(_shadow_columns(piece))) * _PLACE_BYTES * len(piece.starts)


def _kind(piece: Piece) -> tuple[str, tuple[bytes, ...]]:
    return piece.table, _shadow_columns(piece)


def _shadow_columns(piece: Piece) -> tuple[bytes, ...]:
    return tuple(shadow_column(family) for family in sorted({family_of(column) for column in piece.columns}))


def _shadow_cells(pieces: Sequence[Piece], value: bytes) -> CellColumns:
    columns = _shadow_columns(pieces[0])
    before = accumulate((len(piece.data) for piece in pieces), initial=0)
    data = np.concatenate([*(piece.data for piece in pieces), np.frombuffer(value, np.uint8)])
    starts = np.concatenate([piece.starts + offset for piece, offset in zip(pieces, before, strict=False)])
    shape = (len(columns), len(starts))
    return CellColumns(
        columns,
        data,
        starts,
        np.concatenate([piece.lengths for piece in pieces]),
        np.full(shape, len(data) - len(value), np.int64),
        np.full(shape, len(value), np.int64),
    )


def _write(store: CellStore, start_timestamp: int, shadows: Shadows) -> None:
    with suppress(TableMissing):  # it was dropped, and took with it what the shadow cells would tell of
        store.put_columns(shadows.table, shadows.cells, start_timestamp)
