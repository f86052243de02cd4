"""Rows in which a vacuum has nothing to do, told by columns. Pure.

Of nearly every row of a table that jobs fill all cells are of one writer, who committed, and whose shadow cells lie
beside them: they stay. Whether anything lies below is one more question for all such rows of a writer. So
they cost no object each, and the others are looked at one by one (``client.vacuum.sweep``).

Invariant: what is told of a row holds by its cells as they were read together, whatever other vacuums do meanwhile.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np
import numpy.typing as npt

from client.cells import ABORTED_SHADOW, TOMBSTONE, family_of, is_shadow, row_marker_column, shadow_column
from store.columns import ABSENT, Places, ScannedColumns

WRITERS_ASKED_ABOUT_MAX: Final = 8
"""Of a batch: what lies below each is a scan over its rows."""
ROWS_WORTH_A_SCAN: Final = 64
NOBODY: Final = 0
"""No transaction has this start timestamp."""
_SHADOW_BYTES: Final = 8

Flags = npt.NDArray[np.bool_]


@dataclass(frozen=True, slots=True)
class CleanRows:
    """By row of a batch: ``writers``, who wrote all of it, ``NOBODY`` where it has to be looked at; the number of its
    ``cells`` of value; and in how many families its shadow cell is ``lacking``, and the record lasts instead.
    """

    writers: Places
    cells: Places
    lacking: Places

    def asked_about(self) -> list[tuple[int, Flags]]:
        """The writers of whom it is worth asking what lies below them, and which rows are theirs."""
        writers, counts = np.unique(self.writers, return_counts=True)
        found = sorted(zip(counts.tolist(), writers.tolist(), strict=True), reverse=True)
        worth = [writer for count, writer in found if writer != NOBODY and count >= ROWS_WORTH_A_SCAN]
        return [(writer, self.writers == writer) for writer in worth[:WRITERS_ASKED_ABOUT_MAX]]


def looked_for(named: Sequence[bytes], families: Sequence[bytes]) -> tuple[bytes, ...]:
    """The columns as which ``clean_rows`` takes a batch: ``named`` ones, and those that Pythia keeps in each family."""
    return (*named, *map(row_marker_column, families), *map(shadow_column, families))


def clean_rows(batch: ScannedColumns, lasting: Collection[int], plain_through: int) -> CleanRows:
    """Which rows have nothing to be removed or written, but for what may lie below their cells.

    ``lasting``: transactions that committed, and need no shadow cells. ``plain_through``: where plain cells are seen,
    of which none is lacking (``client.snapshots.plain_cells``).
    """
    columns, lengths, timestamps = batch.cells.columns, batch.cells.value_lengths, batch.timestamps
    is_there = lengths != ABSENT
    of_value = np.array([not is_shadow(column) for column in columns], np.bool_)
    cells = is_there[of_value].sum(axis=0)
    writers = np.where(is_there[of_value], timestamps[of_value], NOBODY).max(axis=0, initial=NOBODY)
    clean = (cells > 0) & (~is_there | (timestamps == writers)).all(axis=0)
    clean &= ~_may_be_tombstones(batch, of_value).any(axis=0)
    clean[list(batch.others)] = False
    lacking = np.zeros(batch.cells.rows, np.int64)
    plain = writers == plain_through
    without = np.isin(writers, list(lasting)) | plain
    for shadow in np.flatnonzero(~of_value):
        family = family_of(columns[shadow])
        in_family = np.array([family_of(column) == family for column in columns], np.bool_) & of_value
        has_cells = is_there[in_family].any(axis=0)
        clean &= np.where(has_cells, committed(batch, int(shadow)) | (without & ~is_there[shadow]), ~is_there[shadow])
        lacking += has_cells & ~is_there[shadow] & ~plain
    return CleanRows(np.where(clean, writers, NOBODY), cells, lacking)


def _may_be_tombstones(batch: ScannedColumns, of_value: Flags) -> Flags:
    """Whether values begin like tombstones."""
    starts, lengths = batch.cells.value_starts[of_value], batch.cells.value_lengths[of_value]
    may_be: Flags = lengths > 0
    may_be[may_be] = batch.cells.data[starts[may_be]] == TOMBSTONE[0]
    return may_be


def committed(batch: ScannedColumns, shadow: int) -> Flags:
    """Whether a shadow cell is there that says "committed"."""
    starts, lengths = batch.cells.value_starts[shadow], batch.cells.value_lengths[shadow]
    says_so: Flags = lengths == _SHADOW_BYTES
    places = starts[says_so][:, None] + np.arange(_SHADOW_BYTES)
    commits = batch.cells.data[places].reshape(-1, _SHADOW_BYTES).copy().view(">i8").ravel()
    says_so[says_so] = commits > ABORTED_SHADOW
    return says_so
