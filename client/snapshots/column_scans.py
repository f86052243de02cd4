"""Scans whose rows come as columns, by as few bytes as can say which of them a view sees."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from typing import NamedTuple

import numpy as np

from client.cells import family_of, is_shadow, row_marker_column
from client.snapshots.all_columns import ExpectedColumns
from client.snapshots.column_visibility import SettledColumns, is_visible, settle_columns, shadowed, writers_of
from client.snapshots.resolver import Resolver, Site
from client.snapshots.settler import Settler
from client.snapshots.stored_cells import StoredCells
from client.snapshots.visibility import OPEN, View
from store import KeyRange
from store.columns import ABSENT, ScannedColumns

PROBE_ROWS = 500
"""Looked at before a scan goes on without shadow cells: most scans end before that."""
FEW_WRITERS_MAX = 64
"""In those rows."""
WRITERS_ASKED_FOR_MAX = 64
"""Of one scan: each may cost a request of its own, where vacuum has dropped what the commit table knew of it."""


class Scanned(NamedTuple):
    """A batch as it is stored. It begins with the columns ``looked_at``: those ``named``, whose values are asked for,
    and the markers of rows. ``outcomes``: of all who wrote in these, or of none.
    """

    batch: ScannedColumns
    named: Sequence[bytes]
    looked_at: Sequence[bytes]
    outcomes: Mapping[int, int]


class ColumnScans:
    """Scans at one view."""

    __slots__ = ("_resolver", "_settler", "_stored", "_view")

    def __init__(self, stored: StoredCells, settler: Settler, resolver: Resolver, view: View) -> None:
        self._stored = stored
        self._settler = settler
        self._resolver = resolver
        self._view = view

    def scan(
        self,
        table: str,
        key_range: KeyRange,
        columns: Sequence[bytes] | None,
        known: Sequence[bytes] | None,
        batch_rows: int,
    ) -> Iterator[Scanned]:
        """What is stored in a range, of up to ``batch_rows`` rows at a time.

        ``known`` are named, or those that were met so far (``client.snapshots.all_columns``). Raises as ``StoredCells``
        does.
        """
        if known is not None:
            looked_at = (*known, *map(row_marker_column, dict.fromkeys(map(family_of, known))))
            for batch, outcomes in self._scanned(table, key_range, columns, looked_at, batch_rows):
                yield Scanned(batch, known, looked_at, outcomes)
            return
        chosen = self._stored.families(table) if columns is None else columns
        markers = [row_marker_column(family) for family in dict.fromkeys(map(family_of, chosen))]
        expected = ExpectedColumns(key_range)
        for rest in expected.ranges():
            named = expected.columns
            looked_at = (*named, *markers)
            for batch, outcomes in self._scanned(table, rest, columns, looked_at, expected.batch_rows(batch_rows)):
                yield Scanned(batch, named, looked_at, outcomes)
                if expected.learn(batch):
                    break

    def settled(self, table: str, scanned: Scanned) -> tuple[SettledColumns, Mapping[int, int]]:
        """What the view sees in the newest cells of a batch, and what became of all who wrote in it.

        Raises ``VacuumedMeanwhile``, ``StoreUnavailable``.
        """
        looked_at = len(scanned.looked_at)
        outcomes = scanned.outcomes or self._outcomes_of_writers(table, scanned.batch, looked_at)
        visible = {writer: is_visible(writer, outcome, self._view) for writer, outcome in outcomes.items()}
        return settle_columns(scanned.batch, looked_at, len(scanned.named), visible), outcomes

    def _scanned(
        self,
        table: str,
        key_range: KeyRange,
        columns: Sequence[bytes] | None,
        looked_at: Sequence[bytes],
        batch_rows: int,
    ) -> Iterator[tuple[ScannedColumns, Mapping[int, int]]]:
        """What is stored, ``looked_at`` first, and the outcomes of all writers, or of none.

        With shadow cells at first; without them once the first rows say that few wrote there, as long as that holds.

        What few large transactions wrote is read at half the cost without shadow cells: what became of each is asked
        for once. It has to be on record: that nothing is, says nothing while a vacuum runs, unless a row is read
        together with its shadow cell.
        """
        stored = partial(self._stored.column_batches, table, columns=columns, looked_at=looked_at)
        probed, probe_rows = 0, min(batch_rows, PROBE_ROWS)
        for batch in stored(key_range, batch_rows=probe_rows, lean=False):
            yield batch, {}
            probed += batch.cells.rows
            if probed >= probe_rows:
                break
        else:
            return
        rest = KeyRange(batch.cells.row_key(-1) + b"\x00", key_range.stop)
        if self._wrote_few(table, batch, len(looked_at)):
            asked_for = 0
            for batch in stored(rest, batch_rows=batch_rows, lean=True):
                outcomes = {
                    writer: self._settler.outcome_at_hand(table, writer)
                    for writer in _all_writers(batch, len(looked_at))
                }
                unknown = [writer for writer, outcome in outcomes.items() if outcome == OPEN]
                asked_for += len(unknown)
                if unknown and asked_for <= WRITERS_ASKED_FOR_MAX:
                    sites = {writer: _site(table, batch, len(looked_at), writer) for writer in unknown}
                    outcomes.update(self._resolver.on_record(sites))
                if OPEN in outcomes.values():
                    rest = KeyRange(batch.cells.row_key(0), key_range.stop)
                    break
                yield batch, outcomes
            else:
                return
        for batch in stored(rest, batch_rows=batch_rows, lean=False):
            yield batch, {}

    def _wrote_few(self, table: str, batch: ScannedColumns, looked_at: int) -> bool:
        """Whether what became of everybody who wrote in a batch is known by now, and they are few."""
        writers = _all_writers(batch, looked_at)
        return len(writers) <= FEW_WRITERS_MAX and all(
            self._settler.outcome_at_hand(table, writer) != OPEN for writer in writers
        )

    def _outcomes_of_writers(self, table: str, batch: ScannedColumns, looked_at: int) -> dict[int, int]:
        """What became of each writer in a batch, as far as it matters to the view."""
        writers = writers_of(batch, looked_at)
        outcomes = {writer: self._settler.outcome_at_hand(table, writer) for writer in writers}
        still_open = [writer for writer, outcome in outcomes.items() if outcome == OPEN]
        if still_open:
            for writer, outcome in shadowed(batch, looked_at, still_open).items():
                outcomes[writer] = outcome
                self._resolver.remember(writer, outcome)
            sites = {
                writer: _site(table, batch, looked_at, writer) for writer in still_open if outcomes[writer] == OPEN
            }
            if sites:
                outcomes.update(self._settler.resolved(table, sites))
        return outcomes


def _all_writers(batch: ScannedColumns, looked_at: int) -> set[int]:
    """Who wrote in a batch, be it in columns that nobody asked for."""
    others = {
        cell.timestamp for cells in batch.others.values() for column, cell in cells.items() if not is_shadow(column)
    }
    return {*writers_of(batch, looked_at), *others}


def _site(table: str, batch: ScannedColumns, looked_at: int, writer: int) -> Site:
    """One place that a writer wrote to."""
    cells = batch.cells
    wrote = (batch.timestamps[:looked_at] == writer) & (cells.value_lengths[:looked_at] != ABSENT)
    for column, row in np.argwhere(wrote)[:1].tolist():
        return Site(table, cells.row_key(row), family_of(cells.columns[column]))
    return next(
        Site(table, cells.row_key(row), family_of(column))
        for row, others in batch.others.items()
        for column, cell in others.items()
        if cell.timestamp == writer
    )
