"""Reading rows as one snapshot sees them.

A read asks the store for the newest cells below the snapshot's bound and needs more questions only where one of them
is not settled: its writer's outcome is open, or the newest candidate is not visible and an older one has to be found.
Rows are settled a batch at a time, and both kinds of question are asked once a batch and writer: so a scan over what
one big transaction wrote, or is writing, costs a few requests a batch and not one a cell.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from functools import partial
from itertools import islice
from types import MappingProxyType
from typing import NamedTuple, Protocol, TypeVar

import numpy as np

from client.bulk_writes.batching import BATCH_BYTES_MAX, stored_batches
from client.catalog.entry import CatalogEntry, ShownFrom
from client.cells import (
    SHADOW_QUALIFIER,
    TOMBSTONE,
    decode_value,
    family_of,
    is_shadow,
    row_marker_column,
    shadow_column,
)
from client.errors import InvalidRequest
from client.snapshots.all_columns import ExpectedColumns, in_all_columns, rows_in_all_columns
from client.snapshots.column_visibility import (
    EMPTY,
    HIDDEN,
    VISIBLE,
    SettledColumns,
    is_visible,
    settle_columns,
    shadowed,
    writers_of,
)
from client.snapshots.plain_cells import Cells, cells_of, outcome_of_plain
from client.snapshots.resolver import Resolver, Site
from client.snapshots.visibility import NOT_COMMITTED, OPEN, Settled, View, commits_seen, settle, with_bookkeeping
from commit_table.timestamps import wall_time_of
from store import CellStore, InvalidCell, KeyRange, Row, StoreUnavailable, TableMissing
from store.answer_size import AnswerSize
from store.columns import ABSENT, CellColumns, ScannedColumns

SCAN_BATCH_ROWS = 500
PROBE_ROWS = 500
"""Looked at before a scan goes on without shadow cells: most scans end before that."""
FEW_WRITERS_MAX = 64
"""In those rows."""
WRITERS_ASKED_FOR_MAX = 64
"""Of one scan: each may cost a request of its own, where vacuum has dropped what the commit table knew of it."""
READS_AGAIN_MAX = 10
"""Of rows in which a vacuum was at work while they were read."""
REQUESTS_BEFORE_PAGES = 8
"""For each column in which a visible version is still looked for. Until then all rows and columns that one writer
wrote are looked at below it by one request; from then on each column by itself, many versions at a time."""
PAGE_VERSIONS_FIRST = 8
"""Of one column, before anything is known of their size."""
PAGE_VERSIONS_MAX = 1_000
PAGE_BYTES_WANTED = 2 * 2**20
"""Of values: the gateway has them several times in its memory."""
INVISIBLE_VERSIONS_MAX = 1_000_000
"""A column with more invisible versions on end than this cannot be read: a read of it would take minutes."""

Rows = Sequence[tuple[bytes, Row]]
Answer = TypeVar("Answer")


class Tables(Protocol):
    """What is agreed on about tables, as ``Catalog`` has it. Both raise ``InvalidRequest`` where there is none."""

    def entry(self, table: str) -> CatalogEntry:
        """As it was a short while ago."""
        ...

    def fresh_entry(self, table: str) -> CatalogEntry:
        """As it is now."""
        ...


class VacuumedMeanwhile(Exception):
    """Of ``writers`` below the vacuum's mark nothing is on record any more: what was read of them may be outdated.

    The record goes when all their cells have their shadow cells, or are gone. A cell that is read from now on without
    one is nobody's who committed.
    """

    def __init__(self, writers: Collection[int]) -> None:
        super().__init__()
        self.writers = writers


class Scanned(NamedTuple):
    """A batch as it is stored. It begins with the columns ``looked_at``: those ``named``, whose values are asked for,
    and the markers of rows. ``outcomes``: of all who wrote in these, or of none.
    """

    batch: ScannedColumns
    named: Sequence[bytes]
    looked_at: Sequence[bytes]
    outcomes: Mapping[int, int]


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
        self._store = store
        self._resolver = resolver
        self._view = view
        self._tables = tables
        self._assumed = assumed
        self._shown_from = shown_from

    def row(self, table: str, row: bytes, columns: Sequence[bytes] | None) -> dict[bytes, bytes] | None:
        """Column → value, reserved columns included; ``None`` where the snapshot sees nothing of the row."""
        found = self._ask(table, columns, lambda cells, chosen: cells.get(table, row, chosen, before=self._view.before))
        return dict(self._seen(table, columns, [(row, found)])).get(row)

    def scan(
        self, table: str, key_range: KeyRange, columns: Sequence[bytes] | None
    ) -> Iterator[tuple[bytes, dict[bytes, bytes]]]:
        """Rows of a range in key order, reserved columns included; rows of which nothing is visible are left out."""

        for batch in self._stored_batches(table, key_range, columns):
            yield from self._seen(table, columns, batch)
        self._require_shown(table)

    def _stored_batches(self, table: str, key_range: KeyRange, columns: Sequence[bytes] | None) -> Iterator[Rows]:
        """What is stored, as rows."""

        def begin(cells: Cells, chosen: list[bytes]) -> tuple[Rows | None, Iterator[Rows]]:
            rows = cells.scan(table, key_range, chosen, before=self._view.before, batch_rows=SCAN_BATCH_ROWS)
            batches = stored_batches(rows, SCAN_BATCH_ROWS, BATCH_BYTES_MAX)
            return next(batches, None), batches

        batch, batches = self._ask(table, columns, begin)
        while batch is not None:
            yield batch
            batch = next(batches, None)

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
        for scanned in self._scanned_columns(table, key_range, columns, known, batch_rows):
            yield from self._shown(table, columns, scanned, all_columns=known is None)
        self._require_shown(table)

    def _scanned_columns(
        self,
        table: str,
        key_range: KeyRange,
        columns: Sequence[bytes] | None,
        known: Sequence[bytes] | None,
        batch_rows: int,
    ) -> Iterator[Scanned]:
        """What is stored. ``known`` are named, or those that were met so far (``client.snapshots.all_columns``)."""
        if known is not None:
            looked_at = (*known, *map(row_marker_column, dict.fromkeys(map(family_of, known))))
            for batch, outcomes in self._scanned(table, key_range, columns, looked_at, batch_rows):
                yield Scanned(batch, known, looked_at, outcomes)
            return
        chosen = self._tables.entry(table).family_columns if columns is None else columns
        markers = [row_marker_column(family) for family in dict.fromkeys(map(family_of, chosen))]
        expected = ExpectedColumns(key_range)
        for rest in expected.ranges():
            named = expected.columns
            looked_at = (*named, *markers)
            for batch, outcomes in self._scanned(table, rest, columns, looked_at, expected.batch_rows(batch_rows)):
                yield Scanned(batch, named, looked_at, outcomes)
                if expected.learn(batch):
                    break

    def _shown(
        self, table: str, columns: Sequence[bytes] | None, scanned: Scanned, *, all_columns: bool
    ) -> Iterator[CellColumns]:
        """What is visible of a batch, read once more where a vacuum changed it meanwhile: ``named`` or all columns."""
        try:
            shown = self._visible_columns(table, scanned, all_columns=all_columns)
        except VacuumedMeanwhile:
            keys = scanned.batch.cells.row_keys()
            again = self._seen(table, columns, self._stored_rows(table, columns, keys))
            shown = list(in_columns(again, None if all_columns else scanned.named, len(keys)))
        self._require_shown(table)
        yield from (each for each in shown if each.rows)

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
        stored = partial(self._stored, table, columns, looked_at)
        probed, probe_rows = 0, min(batch_rows, PROBE_ROWS)
        for batch in stored(key_range, probe_rows, lean=False):
            yield batch, {}
            probed += batch.cells.rows
            if probed >= probe_rows:
                break
        else:
            return
        rest = KeyRange(batch.cells.row_key(-1) + b"\x00", key_range.stop)
        if self._wrote_few(table, batch, len(looked_at)):
            asked_for = 0
            for batch in stored(rest, batch_rows, lean=True):
                outcomes = {
                    writer: self._outcome_at_hand(table, writer) for writer in _all_writers(batch, len(looked_at))
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
        for batch in stored(rest, batch_rows, lean=False):
            yield batch, {}

    def _stored(
        self,
        table: str,
        columns: Sequence[bytes] | None,
        looked_at: Sequence[bytes],
        key_range: KeyRange,
        batch_rows: int,
        *,
        lean: bool,
    ) -> Iterator[ScannedColumns]:
        """The store's batches; ``lean``: without shadow cells."""
        shadows = () if lean else map(shadow_column, dict.fromkeys(map(family_of, looked_at)))
        asked = (*looked_at, *shadows)

        def begin(cells: Cells, chosen: list[bytes]) -> tuple[ScannedColumns | None, Iterator[ScannedColumns]]:
            batches = cells.scan_columns(
                table,
                key_range,
                chosen,
                asked,
                before=self._view.before,
                batch_rows=batch_rows,
                without_qualifier=SHADOW_QUALIFIER if lean else None,
            )
            return next(batches, None), batches

        batch, batches = self._ask(table, columns, begin)
        while batch is not None:
            yield batch
            batch = next(batches, None)

    def _wrote_few(self, table: str, batch: ScannedColumns, looked_at: int) -> bool:
        """Whether what became of everybody who wrote in a batch is known by now, and they are few."""
        writers = _all_writers(batch, looked_at)
        return len(writers) <= FEW_WRITERS_MAX and all(
            self._outcome_at_hand(table, writer) != OPEN for writer in writers
        )

    def newest_commit(self, table: str, rows: Sequence[bytes], columns: Sequence[bytes] | None) -> int:
        """The largest commit timestamp of a version that is visible in these rows; 0 for none.

        ``columns`` b"f:q" to look at; by default the whole rows. The visible version of a cell is the last one that
        committed, too, since of two that committed to one cell the one that started first committed first: but for
        what was written conflict-free, where a later commit may lie below.
        """
        found = self._ask(
            table, columns, lambda cells, chosen: cells.get_many(table, rows, chosen, before=self._view.before)
        )
        return max(
            (
                commit
                for batch in self._settled(table, list(found.items()))
                for _, cells, settled in batch
                for column, commit in commits_seen(cells, settled)
                if columns is None or column in columns
            ),
            default=0,
        )

    def _ask(self, table: str, columns: Sequence[bytes] | None, ask: Callable[[Cells, list[bytes]], Answer]) -> Answer:
        """Ask the store for a choice of columns, every family by default.

        Once more, by what is agreed on now, where the table or a family is missing: the table may have been made anew.
        Raises ``InvalidRequest`` where that does not help, and for what cannot be asked for.
        """
        try:
            try:
                return self._ask_of(table, columns, self._tables.entry(table), ask)
            except TableMissing:
                return self._ask_of(table, columns, self._tables.fresh_entry(table), ask)
        except (TableMissing, InvalidCell) as error:
            raise InvalidRequest(str(error)) from error

    def _ask_of(
        self,
        table: str,
        columns: Sequence[bytes] | None,
        entry: CatalogEntry,
        ask: Callable[[Cells, list[bytes]], Answer],
    ) -> Answer:
        return ask(cells_of(self._store, entry.plain_through), _choice(table, columns, entry))

    def _plain_through(self, table: str) -> int:
        return self._tables.entry(table).plain_through

    def _cells(self, table: str) -> Cells:
        return cells_of(self._store, self._plain_through(table))

    def _seen(self, table: str, columns: Sequence[bytes] | None, rows: Rows) -> list[tuple[bytes, dict[bytes, bytes]]]:
        """What of these rows, as they were read, is visible."""
        return self._looked_at(table, columns, rows, partial(self._visible, table))

    def _looked_at(
        self, table: str, columns: Sequence[bytes] | None, rows: Rows, look: Callable[..., Iterable[Answer]]
    ) -> list[Answer]:
        """``look`` at rows, as they were read, or read once more where a vacuum changed them meanwhile."""
        vacuumed: set[int] = set()
        for _ in range(READS_AGAIN_MAX):
            try:
                return list(look(rows, vacuumed=vacuumed))
            except VacuumedMeanwhile as meanwhile:
                vacuumed.update(meanwhile.writers)
                rows = self._stored_rows(table, columns, [row for row, _ in rows])
        raise StoreUnavailable(
            f"{table}: the rows from {rows[0][0]!r} on were vacuumed again and again while they were read"
        )

    def _stored_rows(
        self, table: str, columns: Sequence[bytes] | None, keys: Sequence[bytes]
    ) -> list[tuple[bytes, Row]]:
        found = self._ask(
            table, columns, lambda cells, chosen: cells.get_many(table, keys, chosen, before=self._view.before)
        )
        return [(key, found[key]) for key in keys if key in found]

    def _visible(
        self,
        table: str,
        rows: Rows,
        known: Mapping[int, int] = MappingProxyType({}),
        *,
        heal: bool = True,
        vacuumed: Collection[int] = (),
    ) -> Iterator[tuple[bytes, dict[bytes, bytes]]]:
        """``known``: outcomes that hold for this view. ``heal``: shadow cells came along, where there are any.

        ``vacuumed``: writers of whom nothing was on record before the rows were read. Raises ``VacuumedMeanwhile`` for
        others of that kind.
        """
        stored: dict[bytes, dict[bytes, bytes]] = {row: {} for row, _ in rows}
        for batch in self._settled(table, rows, known, heal=heal, vacuumed=vacuumed):
            for row, _, columns in batch:
                stored[row].update(columns.visible)
        self._require_shown(table)
        for row, columns_stored in stored.items():
            values = values_of(columns_stored)
            if values:
                yield row, values

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

    def _visible_columns(self, table: str, scanned: Scanned, *, all_columns: bool) -> list[CellColumns]:
        """What the view sees of a batch. ``all_columns``: the values of others than are named are asked for, too."""
        batch, (settled, outcomes) = scanned.batch, self._settled_columns(table, scanned)
        unclear = [int(row) for row in np.flatnonzero(settled.states == HIDDEN)]
        clear = (EMPTY, VISIBLE) if all_columns else (EMPTY,)
        unclear += [row for row in batch.others if settled.states[row] in clear]
        keep = settled.states == VISIBLE
        if not unclear:
            return [settled.values.only(keep)]
        rows = batch.rows_at(unclear)
        found = dict(self._visible(table, rows, outcomes, heal=False))
        keep[unclear] = [key in found for key, _ in rows]
        values = [found.get(key, {}) for key, _ in rows]
        if all_columns:
            return list(in_all_columns(settled.values, dict(zip(unclear, values, strict=True)), keep))
        return [settled.values.with_rows(unclear, values).only(keep)]

    def _settled_columns(self, table: str, scanned: Scanned) -> tuple[SettledColumns, Mapping[int, int]]:
        """What the view sees in the newest cells of a batch, and what became of all who wrote in it."""
        looked_at = len(scanned.looked_at)
        outcomes = scanned.outcomes or self._outcomes_of_writers(table, scanned.batch, looked_at)
        visible = {writer: is_visible(writer, outcome, self._view) for writer, outcome in outcomes.items()}
        return settle_columns(scanned.batch, looked_at, len(scanned.named), visible), outcomes

    def _outcomes_of_writers(self, table: str, batch: ScannedColumns, looked_at: int) -> dict[int, int]:
        """What became of each writer in a batch, as far as it matters to the view."""
        writers = writers_of(batch, looked_at)
        outcomes = {writer: self._outcome_at_hand(table, writer) for writer in writers}
        still_open = [writer for writer, outcome in outcomes.items() if outcome == OPEN]
        if still_open:
            for writer, outcome in shadowed(batch, looked_at, still_open).items():
                outcomes[writer] = outcome
                self._resolver.remember(writer, outcome)
            sites = {
                writer: _site(table, batch, looked_at, writer) for writer in still_open if outcomes[writer] == OPEN
            }
            if sites:
                outcomes.update(self._resolved(table, sites))
        return outcomes

    def _resolved(self, table: str, sites: Mapping[int, Site], vacuumed: Collection[int] = ()) -> dict[int, int]:
        """What became of writers, each with one place that it wrote to. See ``_visible``.

        That there is no shadow cell at *that* place says nothing where a vacuum may have removed it with its version.
        """
        outcomes = self._resolver.on_record(sites)
        still_open = [writer for writer, outcome in outcomes.items() if outcome == OPEN]
        if still_open:
            # After the look at the record: whoever dropped it had set the mark.
            mark = self._shown_from(table).vacuumed_below
            gone = [writer for writer in still_open if writer < mark and writer not in vacuumed]
            if gone:
                raise VacuumedMeanwhile(gone)
            outcomes.update(self._resolver.fence(self._view, {writer: sites[writer] for writer in still_open}))
        return outcomes

    def _outcome_at_hand(self, table: str, writer: int) -> int:
        """The outcome of who wrote a cell of a table, as far as it is known without asking, or needs not be."""
        if not 0 < writer <= self._view.snapshot or writer == self._view.own:
            return NOT_COMMITTED  # a cell at 0 is no transaction's
        if writer in self._assumed:
            return self._assumed[writer]
        plain = outcome_of_plain(writer, self._plain_through(table))
        return self._resolver.remembered(writer) if plain == OPEN else plain

    def _settled(
        self,
        table: str,
        rows: Rows,
        known: Mapping[int, int] = MappingProxyType({}),
        *,
        heal: bool = True,
        vacuumed: Collection[int] = (),
    ) -> Iterator[list[tuple[bytes, Row, Settled]]]:
        """Look at the newest candidates, then below each that is hidden, until every column is settled.

        All columns at once at first, below each writer by one request; by pages of each column once they are few beside
        the requests that this took.
        """
        requests = 0
        while rows:
            settled = self._settle(table, rows, known, vacuumed)
            if heal:
                self._heal(table, settled)
            yield settled
            hidden = _hidden(settled)
            if not hidden:
                return
            requests += len(hidden)
            if requests >= REQUESTS_BEFORE_PAGES * sum(sum(map(len, wanted.values())) for wanted in hidden.values()):
                break
            rows = self._next_candidates(table, hidden)
        else:
            return
        for writer, wanted in hidden.items():
            for row, columns in wanted.items():
                for column in sorted(columns):
                    found = self._settled_by_pages(table, row, column, writer, known, vacuumed)
                    if heal:
                        self._heal(table, found)
                    yield found

    def _settled_by_pages(
        self,
        table: str,
        row: bytes,
        column: bytes,
        writer: int,
        known: Mapping[int, int],
        vacuumed: Collection[int],
    ) -> list[tuple[bytes, Row, Settled]]:
        """The newest visible version of a column below a writer's, if there is one, and no other; it stands alone."""
        size = AnswerSize(PAGE_BYTES_WANTED, PAGE_VERSIONS_FIRST)
        before, looked_at = writer, 0
        while looked_at < INVISIBLE_VERSIONS_MAX:
            page = self._page(table, row, column, before, size)
            if not page:
                return []
            for version in self._settle(table, page, known, vacuumed):
                if version[2].visible:
                    return [version]
            looked_at += len(page)
            before = page[-1][1][column].timestamp
        raise StoreUnavailable(
            f"{table}: column {column!r} of row {row!r} has more than {INVISIBLE_VERSIONS_MAX:,} versions on end that "
            "this snapshot does not see; a later one sees it at once after it is written again, in a transaction that "
            "commits, and a vacuum removes the versions then"
        )

    def _page(self, table: str, row: bytes, column: bytes, before: int, size: AnswerSize) -> list[tuple[bytes, Row]]:
        """The next versions of a column, newest first, each as a row that has its own shadow cell, if there is one.

        They end with the first that is surely visible: nothing has to be asked about what lies below it.
        """
        limit = size.rows(PAGE_VERSIONS_MAX)
        cells = self._cells(table)
        versions = cells.versions(table, row, column, before=before, limit=limit)
        if not versions:
            return []
        size.came(len(versions), sum(len(version.value) for version in versions))
        shadow = shadow_column(family_of(column))
        shadows = cells.versions(table, row, shadow, before=versions[0].timestamp + 1, limit=limit)
        told_from = shadows[-1].timestamp if len(shadows) == limit else 0  # below it more may lie
        by_writer = {cell.timestamp: cell for cell in shadows}
        page: list[tuple[bytes, Row]] = []
        for version in versions:
            if version.timestamp < told_from:
                break
            told = by_writer.get(version.timestamp)
            alone = {column: version} if told is None else {column: version, shadow: told}
            page.append((row, alone))
            if settle(alone, self._view, partial(self._outcome_at_hand, table)).visible:
                break
        return page

    def _settle(
        self, table: str, rows: Rows, outcomes: Mapping[int, int], vacuumed: Collection[int]
    ) -> list[tuple[bytes, Row, Settled]]:
        """Settle rows, asking for the outcomes that are open."""
        known = {**outcomes}  # for this batch: the cache may drop an entry between the two looks

        def outcome_of(writer: int) -> int:
            if writer not in known:
                known[writer] = self._outcome_at_hand(table, writer)
            return known[writer]

        first = [(row, cells, settle(cells, self._view, outcome_of)) for row, cells in rows]
        sites = {
            writer: Site(table, row, family_of(column))
            for row, _, settled in first
            for column, writer in settled.open.items()
        }
        if sites:
            known.update(self._resolved(table, sites, vacuumed))
        return [
            (row, cells, settle(cells, self._view, outcome_of) if settled.open else settled)
            for row, cells, settled in first
        ]

    def _next_candidates(self, table: str, hidden: Mapping[int, Mapping[bytes, set[bytes]]]) -> list[tuple[bytes, Row]]:
        """The versions right below those that turned out hidden: one request for each writer that hides some."""
        following: list[tuple[bytes, Row]] = []
        for writer, wanted in hidden.items():
            columns = with_bookkeeping(sorted(set().union(*wanted.values())))
            found = self._cells(table).get_many(table, list(wanted), columns, before=writer)
            following.extend((row, _only(cells, wanted[row])) for row, cells in found.items())
        return following

    def _heal(self, table: str, rows: Iterable[tuple[bytes, Row, Settled]]) -> None:
        missing: defaultdict[tuple[int, int], list[tuple[bytes, bytes]]] = defaultdict(list)
        for row, _, settled in rows:
            if settled.unshadowed:  # of few rows: the look alone is faster
                for family, writer_and_commit in settled.unshadowed.items():
                    missing[writer_and_commit].append((row, family))
        if missing:
            plain = self._plain_through(table)
            missing.pop((plain, plain), None)
            self._resolver.heal(table, missing)


def _hidden(rows: Iterable[tuple[bytes, Row, Settled]]) -> dict[int, dict[bytes, set[bytes]]]:
    """Writer → row → the columns below which an older version has to be looked for."""
    hidden: defaultdict[int, defaultdict[bytes, set[bytes]]] = defaultdict(lambda: defaultdict(set))
    for row, _, settled in rows:
        if settled.hidden:  # of few rows: the look alone is faster
            for column, writer in settled.hidden.items():
                hidden[writer][row].add(column)
    return {writer: dict(wanted) for writer, wanted in hidden.items()}


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


def _choice(table: str, columns: Sequence[bytes] | None, entry: CatalogEntry) -> list[bytes]:
    """What to read. Raises ``TableMissing`` for a family that the table does not have."""
    if columns is None:
        return with_bookkeeping(entry.family_columns)
    missing = {family_of(column) for column in columns} - set(entry.family_columns)
    if missing:
        named = ", ".join(sorted(family.decode(errors="replace") for family in missing))
        raise TableMissing(f"table {table!r} has no family {named}; it has {', '.join(entry.families)}")
    return with_bookkeeping(columns)


def _only(cells: Row, columns: set[bytes]) -> Row:
    return {column: cell for column, cell in cells.items() if column in columns or is_shadow(column)}


def values_of(stored: Mapping[bytes, bytes]) -> dict[bytes, bytes]:
    """Decoded, without what is deleted. Few values begin like a tombstone, and only those are taken apart."""
    values = {column: value for column, value in stored.items() if not value.startswith(TOMBSTONE)}
    if len(values) < len(stored):
        for column in stored.keys() - values.keys():
            value = decode_value(stored[column])
            if value is not None:
                values[column] = value
    return values
