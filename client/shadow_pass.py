"""The shadow cells of what bulk writers wrote: after the commit, or once a transaction can never commit.

What was written is in the manifest, piece by piece; each piece's shadow cells are one write of columns. They may be
written by any process, by several threads, twice, and in part: every one of them says the same for good, and readers
are right without (``client.resolver``). The record goes only when all of them stand, so a pass that broke off is taken
up again by whoever comes by.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import suppress
from functools import partial

import numpy as np

from client.catalog import Catalog
from client.cells import ABORTED_SHADOW, encode_shadow, family_of, shadow_column
from client.manifest import Manifest, Piece
from store import CellStore, TableMissing
from store.columns import CellColumns


def write_bulk_shadows(
    store: CellStore, catalog: Catalog, manifest: Manifest, start_timestamp: int, outcome: int, *, writers_max: int
) -> None:
    """Write the shadow cells of all that a transaction's bulk writers recorded, and drop the record.

    ``outcome``: its commit timestamp, or ``ABORTED_SHADOW`` once it never can commit. Nothing is owed to a table
    that is gone. Raises ``StoreError``, ``UpgradeNeeded``.
    """
    write = partial(_write, store, start_timestamp, encode_shadow(outcome))
    pieces = _at_our_level(catalog, manifest.pieces(start_timestamp))
    if writers_max == 1:
        for piece in pieces:
            write(piece)
    else:
        _in_threads(write, pieces, writers_max)
    if outcome == ABORTED_SHADOW:
        manifest.forget_aborted(start_timestamp)
    else:
        manifest.forget(start_timestamp)


def _at_our_level(catalog: Catalog, pieces: Iterable[Piece]) -> Iterator[Piece]:
    """The same pieces, for as long as this program works at the installation's level."""
    for piece in pieces:
        catalog.require_level()
        yield piece


def _in_threads(write: Callable[[Piece], None], pieces: Iterable[Piece], writers_max: int) -> None:
    """At most two pieces a thread are in memory."""
    under_way: deque[Future[None]] = deque()
    with ThreadPoolExecutor(writers_max, thread_name_prefix="pythia-shadows") as executor:
        try:
            for piece in pieces:
                under_way.append(executor.submit(write, piece))
                if len(under_way) >= 2 * writers_max:
                    under_way.popleft().result()
            while under_way:
                under_way.popleft().result()
        finally:
            for future in under_way:
                future.cancel()


def _write(store: CellStore, start_timestamp: int, value: bytes, piece: Piece) -> None:
    columns = tuple(shadow_column(family) for family in sorted({family_of(column) for column in piece.columns}))
    shape = (len(columns), len(piece.starts))
    data = np.concatenate([piece.data, np.frombuffer(value, np.uint8)])
    cells = CellColumns(
        columns,
        data,
        piece.starts,
        piece.lengths,
        np.full(shape, len(piece.data), np.int64),
        np.full(shape, len(value), np.int64),
    )
    with suppress(TableMissing):  # it was dropped, and took with it what the shadow cells would tell of
        store.put_columns(piece.table, cells, start_timestamp)
