"""Rows that changed between two snapshots: what is different in the later one, by who committed in between.

What a snapshot sees of a cell is the version of one writer. Had that writer committed by an earlier snapshot, the
earlier one sees the very same version: each version above it is hidden from the later snapshot, and all the more from
the earlier. So a row is different where, and only where, something of it that the later snapshot sees, tombstones
among it, was committed after the earlier one; and what there was before need not be read.

The earlier snapshot has to be one that can still be read: a vacuum drops the tombstones that all later ones see.
"""

from __future__ import annotations

from collections.abc import Generator, Iterable, Iterator, Sequence
from contextlib import closing
from itertools import chain
from typing import NamedTuple

import numpy as np

from client.cells import is_shadow, without_reserved
from client.snapshots.all_columns import in_all_columns
from client.snapshots.changed_rows import ChangedColumns, ChangedRow
from client.snapshots.column_scans import Scanned
from client.snapshots.column_visibility import EMPTY, HIDDEN, newest_commits
from client.snapshots.moments import SINCE_THE_BEGINNING
from client.snapshots.pages import ChangesPage, LookedAt, PageLimits, page_of
from client.snapshots.reading import SnapshotReader, in_columns, values_of
from client.snapshots.settler import SettledRow, VacuumedMeanwhile
from client.snapshots.stored_cells import SCAN_BATCH_ROWS, Rows
from client.snapshots.visibility import NOT_COMMITTED, commits_seen
from store import KeyRange, Row


class _ColumnsLookedAt(NamedTuple):
    """A batch of a scan for changes: what changed, of how many rows, of which the last is ``last_row``."""

    changed: list[ChangedColumns]
    rows: int
    last_row: bytes


class ChangesReader(SnapshotReader):
    """A snapshot's reader that also tells what is different since an earlier snapshot, or since the beginning."""

    def scan_changes(
        self, table: str, key_range: KeyRange, columns: Sequence[bytes] | None, since: int
    ) -> Iterator[ChangedRow]:
        """The rows of a range that are different since, in key order.

        ``columns``: what counts, families and columns; by default all. Raises ``InvalidRequest`` where some of what the
        earlier snapshot saw may be gone, ``StoreUnavailable``.
        """
        for batch in self._stored.batches(table, key_range, columns, batch_rows=SCAN_BATCH_ROWS):
            yield from self._changed_rows(table, columns, batch, since)
        self._require_both_shown(table, since)

    def scan_changed_columns(
        self,
        table: str,
        key_range: KeyRange,
        columns: Sequence[bytes] | None,
        known: Sequence[bytes] | None,
        since: int,
        batch_rows: int,
    ) -> Iterator[ChangedColumns]:
        """``scan_changes``, with the values of the columns ``known`` as columns, of up to ``batch_rows`` rows scanned.

        ``None`` for whatever columns the rows have, as in ``scan_columns``. Heals nothing, as that.
        """
        for looked_at in self._looked_at_for_changes(table, key_range, columns, known, since, batch_rows):
            yield from (each for each in looked_at.changed if each.cells.rows)

    def changes_page(
        self,
        table: str,
        key_range: KeyRange,
        columns: Sequence[bytes] | None,
        since: int,
        limits: PageLimits,
    ) -> ChangesPage:
        """The first rows of ``scan_changes``: see ``Snapshot.changes_page``. Heals nothing."""
        batch_rows = min(SCAN_BATCH_ROWS, limits.looked_at)
        with closing(self._looked_at_for_changes(table, key_range, columns, None, since, batch_rows)) as batches:
            return ChangesPage(*page_of(map(_row_by_row, batches), limits))

    def _looked_at_for_changes(
        self,
        table: str,
        key_range: KeyRange,
        columns: Sequence[bytes] | None,
        known: Sequence[bytes] | None,
        since: int,
        batch_rows: int,
    ) -> Generator[_ColumnsLookedAt, None, None]:
        """What changed of each batch that was scanned, once it is sure that nothing of it was missing."""
        for scanned in self._columns.scan(table, key_range, columns, known, batch_rows):
            try:
                changed = self._changed_columns(table, scanned, since, all_columns=known is None)
            except VacuumedMeanwhile:
                rows = self._stored.rows(table, scanned.batch.cells.row_keys(), columns)
                changed = _in_columns(list(self._changed_rows(table, columns, rows, since)), known)
            self._require_both_shown(table, since)
            cells = scanned.batch.cells
            yield _ColumnsLookedAt(changed, cells.rows, cells.row_key(-1))
        self._require_both_shown(table, since)

    def _require_both_shown(self, table: str, since: int) -> None:
        self._require_shown(table)
        if since != SINCE_THE_BEGINNING:
            self._require_shown(table, since)

    def _changed_rows(
        self, table: str, columns: Sequence[bytes] | None, rows: Rows, since: int
    ) -> Iterator[ChangedRow]:
        """Of rows that were read those that are different; all of them, once it is sure that nothing was missing."""
        found = self._looked_at(table, columns, rows, _as_committed)
        self._require_both_shown(table, since)
        yield from (each for each in found if _is_change(each, since))

    def _changed_columns(self, table: str, scanned: Scanned, since: int, *, all_columns: bool) -> list[ChangedColumns]:
        """Of a batch the rows that are different. See ``_visible_columns``."""
        batch, (settled, outcomes) = scanned.batch, self._columns.settled(table, scanned)
        # Right where all of a row's newest cells are visible.
        newest = newest_commits(batch, len(scanned.looked_at), outcomes)
        cells, states = settled.values, settled.states
        deleted = states == EMPTY
        unclear = [int(row) for row in np.flatnonzero(states == HIDDEN)]
        unclear += [
            row
            for row, others in batch.others.items()
            if states[row] == EMPTY
            or (
                states[row] != HIDDEN
                and ((all_columns and newest[row] > since) or self._may_have_changed(table, others, since))
            )
        ]
        rows = batch.rows_at(unclear) if unclear else []
        found = list(_as_committed(rows, self._settler.settled(table, rows, outcomes, heal=False)))
        newest[unclear] = [each.commit_timestamp for each in found]
        deleted[unclear] = [each.values is None for each in found]
        keep = newest > since
        if since == SINCE_THE_BEGINNING:
            keep &= ~deleted
        singly = {row: each.values or {} for row, each in zip(unclear, found, strict=True) if keep[row]}
        if all_columns:
            pieces = in_all_columns(cells, singly, keep)
        else:
            pieces = iter([(cells.with_rows(list(singly), list(singly.values())) if singly else cells).only(keep)])
        return list(ChangedColumns.of_pieces(pieces, deleted[keep], newest[keep]))

    def _may_have_changed(self, table: str, others: Row, since: int) -> bool:
        """Whether it cannot be ruled out, of a row's cells in columns that nobody asked for by name."""
        return any(
            not NOT_COMMITTED < self._settler.outcome_at_hand(table, cell.timestamp) <= since
            for column, cell in others.items()
            if not is_shadow(column)
        )


def _as_committed(rows: Rows, settled: Iterable[list[SettledRow]]) -> Iterator[ChangedRow]:
    """Each row with the last commit to what is visible of it, be that nothing but tombstones; see ``_visible``."""
    stored: dict[bytes, dict[bytes, bytes]] = {row: {} for row, _ in rows}
    newest = dict.fromkeys(stored, NOT_COMMITTED)
    for batch in settled:
        for row, cells, seen in batch:
            stored[row].update(seen.visible)
            commits = (commit for _, commit in commits_seen(cells, seen))
            newest[row] = max(newest[row], *commits, NOT_COMMITTED)
    for row, columns in stored.items():
        values = values_of(columns)
        yield ChangedRow(row, without_reserved(values) if values else None, newest[row])


def _in_columns(rows: Sequence[ChangedRow], known: Sequence[bytes] | None) -> list[ChangedColumns]:
    """Rows that came one by one, with the columns ``known``, or all that they have."""
    deleted = np.array([each.values is None for each in rows], np.bool_)
    newest = np.array([each.commit_timestamp for each in rows], np.int64)
    pieces = in_columns(((each.row, each.values or {}) for each in rows), known, max(1, len(rows)))
    return list(ChangedColumns.of_pieces(pieces, deleted, newest))


def _row_by_row(batch: _ColumnsLookedAt) -> LookedAt[ChangedRow]:
    found = chain.from_iterable(changed.by_row() for changed in batch.changed)
    return LookedAt(found, batch.rows, batch.last_row)


def _is_change(each: ChangedRow, since: int) -> bool:
    return each.commit_timestamp > since and (each.values is not None or since != SINCE_THE_BEGINNING)
