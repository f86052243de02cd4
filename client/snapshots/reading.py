"""Reading rows as one snapshot sees them."""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterable, Iterator, Mapping, Sequence
from contextlib import closing
from functools import partial
from itertools import islice
from types import MappingProxyType

import numpy as np

from client.catalog.entry import ShownFrom
from client.cells import TOMBSTONE, decode_value, without_reserved
from client.errors import InvalidRequest
from client.snapshots.all_columns import in_all_columns, rows_in_all_columns
from client.snapshots.column_scans import ColumnScans, Scanned
from client.snapshots.column_visibility import EMPTY, HIDDEN, VISIBLE
from client.snapshots.pages import LookedAt, PageLimits, RowsPage, VisibleRow, page_of
from client.snapshots.resolver import Resolver
from client.snapshots.settler import SettledRow, Settler, VacuumedMeanwhile
from client.snapshots.stored_cells import SCAN_BATCH_ROWS, Answer, Rows, StoredCells, Tables
from client.snapshots.visibility import View, commits_seen
from commit_table.timestamps import wall_time_of
from store import CellStore, KeyRange, StoreUnavailable
from store.columns import CellColumns

ROW_BY_ROW_MAX = 2_000
"""Of the rows that are looked at for a page. So few come no later than as columns; what columns save of more
``python -m benchmarks.few_rows`` measures.
"""
READS_AGAIN_MAX = 10
"""Of rows in which a vacuum was at work while they were read."""


class SnapshotReader:
    """Rows at one view, of ``tables`` that transactions write.

    ``assumed``: outcomes that hold for this view and need not be asked for, by writer. ``shown_from`` says which
    snapshots of a table are too old, as of ``ENTRY_AGE_SECONDS_MAX`` ago at most: a vacuum waits for longer between its
    mark and its first delete, and so does who makes a table anew. So a look *after* the cells were read says whether
    any of them may have been missing.
    """

    def __init__(
        self,
        store: CellStore,
        resolver: Resolver,
        view: View,
        tables: Tables,
        assumed: Mapping[int, int] = MappingProxyType({}),
        shown_from: Callable[[str], ShownFrom] = lambda table: ShownFrom(),
    ) -> None:
        self._view = view
        self._shown_from = shown_from
        self._stored = StoredCells(store, view.before, tables)
        self._settler = Settler(self._stored, resolver, view, assumed, shown_from)
        self._columns = ColumnScans(self._stored, self._settler, resolver, view)

    def row(self, table: str, row: bytes, columns: Sequence[bytes] | None) -> dict[bytes, bytes] | None:
        """Column → value, reserved columns included; ``None`` where the snapshot sees nothing of the row."""
        return dict(self._seen(table, columns, [(row, self._stored.row(table, row, columns))])).get(row)

    def rows(
        self, table: str, keys: Iterable[bytes], columns: Sequence[bytes] | None
    ) -> dict[bytes, dict[bytes, bytes]]:
        """Of these rows those of which something is visible, in their order: key → what ``row`` gives."""
        found: dict[bytes, dict[bytes, bytes]] = {}
        remaining = iter(dict.fromkeys(keys))
        while some := list(islice(remaining, SCAN_BATCH_ROWS)):
            found.update(self._seen(table, columns, self._stored.rows(table, some, columns)))
        return found

    def scan(
        self, table: str, key_range: KeyRange, columns: Sequence[bytes] | None, *, reverse: bool = False
    ) -> Iterator[VisibleRow]:
        """Rows of a range in key order, or ``reverse``, reserved columns included.

        Rows of which nothing is visible are left out.
        """
        for batch in self._looked_at_row_by_row(table, key_range, columns, SCAN_BATCH_ROWS, reverse=reverse):
            yield from batch.found

    def scan_page(
        self,
        table: str,
        key_range: KeyRange,
        columns: Sequence[bytes] | None,
        limits: PageLimits,
        *,
        reserved: bool,
        reverse: bool = False,
    ) -> RowsPage:
        """The first rows of ``scan``. See ``Snapshot.scan_page``.

        ``reserved``: with reserved columns. Without them, where many rows are passed over, it goes on by columns, which
        is sooner and holds up the other threads of the process for shorter. Heals nothing then.
        """
        look = self._looked_at_row_by_row if reserved else self._looked_at_without_reserved
        batch_rows = min(SCAN_BATCH_ROWS, limits.looked_at)
        with closing(look(table, key_range, columns, batch_rows, reverse=reverse)) as batches:
            return RowsPage(*page_of(batches, limits))

    def scan_columns(
        self,
        table: str,
        key_range: KeyRange,
        columns: Sequence[bytes] | None,
        known: Sequence[bytes] | None,
        batch_rows: int = SCAN_BATCH_ROWS,
    ) -> Iterator[CellColumns]:
        """``scan``, with the values of the columns ``known`` as columns, of up to ``batch_rows`` rows at a time.

        ``None`` for whatever columns the rows have, but for reserved ones; of each batch its own. Rows of which nothing
        is visible are left out, those of which only other columns are visible are not. Heals nothing: who reads so much
        at once has better to do, and a vacuum does.
        """
        for scanned in self._columns.scan(table, key_range, columns, known, batch_rows):
            yield from self._shown(table, columns, scanned, all_columns=known is None)
        self._require_shown(table)

    def newest_commit(self, table: str, rows: Sequence[bytes], columns: Sequence[bytes] | None) -> int:
        """The largest commit timestamp of a version that is visible in these rows; 0 for none. See ``commits``."""
        return max((commit for _, _, commit in self.commits(table, rows, columns)), default=0)

    def commits(
        self, table: str, rows: Sequence[bytes], columns: Sequence[bytes] | None
    ) -> Iterator[tuple[bytes, bytes, int]]:
        """Row, column and commit timestamp of each version that is visible in these rows.

        ``columns`` b"f:q" to look at; by default the whole rows. The visible version of a cell is the last one that
        committed, too, since of two that committed to one cell the one that started first committed first: but for
        what was written conflict-free, where a later commit may lie below.
        """
        for batch in self._settler.settled(table, self._stored.rows(table, rows, columns)):
            for row, cells, settled in batch:
                for column, commit in commits_seen(cells, settled):
                    if columns is None or column in columns:
                        yield row, column, commit

    def _looked_at_row_by_row(
        self, table: str, key_range: KeyRange, columns: Sequence[bytes] | None, batch_rows: int, *, reverse: bool
    ) -> Generator[LookedAt[VisibleRow], None, None]:
        """What is visible of a range, some rows at a time, once it is sure that nothing of them was missing."""
        for batch in self._stored.batches(table, key_range, columns, batch_rows=batch_rows, reverse=reverse):
            yield LookedAt(self._seen(table, columns, batch), len(batch), batch[-1][0])
        self._require_shown(table)

    def _looked_at_without_reserved(
        self, table: str, key_range: KeyRange, columns: Sequence[bytes] | None, batch_rows: int, *, reverse: bool
    ) -> Generator[LookedAt[VisibleRow], None, None]:
        """The same, from ``ROW_BY_ROW_MAX`` rows on by columns, which come in key order only."""
        passed = 0
        for batch in self._looked_at_row_by_row(table, key_range, columns, batch_rows, reverse=reverse):
            yield batch._replace(found=[(row, without_reserved(values)) for row, values in batch.found])
            passed += batch.rows
            if passed >= ROW_BY_ROW_MAX and not reverse:
                break
        else:
            return
        rest = KeyRange(batch.last_row + b"\x00", key_range.stop)
        for scanned in self._columns.scan(table, rest, columns, None, batch_rows):
            shown = self._shown(table, columns, scanned, all_columns=True)
            found = ((put.row, dict(put.columns)) for each in shown for put in each.puts())
            yield LookedAt(found, scanned.batch.cells.rows, scanned.batch.cells.row_key(-1))
        self._require_shown(table)

    def _seen(self, table: str, columns: Sequence[bytes] | None, rows: Rows) -> list[VisibleRow]:
        """What of these rows, as they were read, is visible."""
        return self._looked_at(table, columns, rows, partial(self._visible, table))

    def _looked_at(
        self,
        table: str,
        columns: Sequence[bytes] | None,
        rows: Rows,
        look: Callable[[Rows, Iterable[list[SettledRow]]], Iterable[Answer]],
    ) -> list[Answer]:
        """``look`` at rows, as they were read, or read once more where a vacuum changed them meanwhile."""
        vacuumed: set[int] = set()
        for _ in range(READS_AGAIN_MAX):
            try:
                return list(look(rows, self._settler.settled(table, rows, vacuumed=vacuumed)))
            except VacuumedMeanwhile as meanwhile:
                vacuumed.update(meanwhile.writers)
                rows = self._stored.rows(table, [row for row, _ in rows], columns)
        raise StoreUnavailable(
            f"{table}: the rows from {rows[0][0]!r} on were vacuumed again and again while they were read"
        )

    def _visible(self, table: str, rows: Rows, settled: Iterable[list[SettledRow]]) -> Iterator[VisibleRow]:
        """What of these rows is visible, once they are ``settled``."""
        stored: dict[bytes, dict[bytes, bytes]] = {row: {} for row, _ in rows}
        for batch in settled:
            for row, _, columns in batch:
                stored[row].update(columns.visible)
        self._require_shown(table)
        for row, columns_stored in stored.items():
            values = values_of(columns_stored)
            if values:
                yield row, values

    def _shown(
        self, table: str, columns: Sequence[bytes] | None, scanned: Scanned, *, all_columns: bool
    ) -> Iterator[CellColumns]:
        """What is visible of a batch, read once more where a vacuum changed it meanwhile: ``named`` or all columns."""
        try:
            shown = self._visible_columns(table, scanned, all_columns=all_columns)
        except VacuumedMeanwhile:
            keys = scanned.batch.cells.row_keys()
            again = self._seen(table, columns, self._stored.rows(table, keys, columns))
            shown = list(in_columns(again, None if all_columns else scanned.named, len(keys)))
        self._require_shown(table)
        yield from (each for each in shown if each.rows)

    def _visible_columns(self, table: str, scanned: Scanned, *, all_columns: bool) -> list[CellColumns]:
        """What the view sees of a batch. ``all_columns``: the values of others than are named are asked for, too."""
        batch, (settled, outcomes) = scanned.batch, self._columns.settled(table, scanned)
        unclear = [int(row) for row in np.flatnonzero(settled.states == HIDDEN)]
        clear = (EMPTY, VISIBLE) if all_columns else (EMPTY,)
        unclear += [row for row in batch.others if settled.states[row] in clear]
        keep = settled.states == VISIBLE
        if not unclear:
            return [settled.values.only(keep)]
        rows = batch.rows_at(unclear)
        found = dict(self._visible(table, rows, self._settler.settled(table, rows, outcomes, heal=False)))
        keep[unclear] = [key in found for key, _ in rows]
        values = [found.get(key, {}) for key, _ in rows]
        if all_columns:
            return list(in_all_columns(settled.values, dict(zip(unclear, values, strict=True)), keep))
        return [settled.values.with_rows(unclear, values).only(keep)]

    def _require_shown(self, table: str, at: int | None = None) -> None:
        """Raise ``InvalidRequest`` where some of what is to be seen ``at`` a moment, the view's, may be gone."""
        moment = self._view.snapshot if at is None else at
        vacuumed, dropped = self._shown_from(table)
        if moment < dropped:
            raise InvalidRequest(
                f"table {table!r} was dropped at {dropped} ({wall_time_of(dropped):%Y-%m-%d %H:%M:%S} UTC) and made "
                f"anew, so it cannot be read as of {moment} any more: take a later snapshot, or begin anew"
            )
        if moment < vacuumed:
            raise InvalidRequest(
                f"table {table!r} was vacuumed below {vacuumed} ({wall_time_of(vacuumed):%Y-%m-%d %H:%M:%S} UTC), so "
                f"it cannot be read as of {moment} any more: take a later one, and vacuum with a longer --retain"
            )


def in_columns(
    rows: Iterable[tuple[bytes, Mapping[bytes, bytes]]], known: Sequence[bytes] | None, batch_rows: int
) -> Iterator[CellColumns]:
    """Visible rows, in blocks of up to ``batch_rows``, with the columns ``known``, or all but reserved ones."""
    remaining = iter(rows)
    while batch := list(islice(remaining, batch_rows)):
        if known is None:
            yield from rows_in_all_columns(batch)
        else:
            yield CellColumns.of_values(tuple(known), [row for row, _ in batch], [values for _, values in batch])


def values_of(stored: Mapping[bytes, bytes]) -> dict[bytes, bytes]:
    """Decoded, without what is deleted. Few values begin like a tombstone, and only those are taken apart."""
    values = {column: value for column, value in stored.items() if not value.startswith(TOMBSTONE)}
    if len(values) < len(stored):
        for column in stored.keys() - values.keys():
            value = decode_value(stored[column])
            if value is not None:
                values[column] = value
    return values
