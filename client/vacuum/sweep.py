"""Vacuuming one table: batch after batch is read down to what every reader sees, settled, healed, and trimmed.

The order within a batch makes it safe to be killed anywhere and to run twice at once: outcomes are final before
anything follows from them; shadow cells are written before a version could lose another proof of its outcome; versions
go before the shadow cells below them. All of it is idempotent.

An outcome is looked for where readers look (``client.snapshots.resolver``), with the shadow cell *first*, since the
commit table may have been vacuumed; and where it is open the oracle aborts the transaction. At or below the horizon
nobody lives.

A transaction whose record lasts gets no shadow cells: the sweep tells whose records are needed so, and what is dropped
afterwards are the others. This is decided by one vacuum for itself: another one that runs at the same time, and writes
those cells, may drop such a record.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from itertools import chain
from typing import TypeVar

import numpy as np

from client.bulk_writes.batching import BATCH_BYTES_MAX, stored_batches
from client.cells import TOMBSTONE, decode_shadow, encode_shadow, family_of, is_shadow, shadow_column
from client.snapshots.all_columns import ExpectedColumns
from client.snapshots.plain_cells import Cells, cells_of, outcome_of_plain
from client.snapshots.resolver import OutcomeCache
from client.snapshots.visibility import NOT_COMMITTED, OPEN, with_bookkeeping
from client.vacuum.clean_rows import NOBODY, Flags, clean_rows, looked_for
from client.vacuum.plan import ColumnPast, Removal, Version, gathered, shadow_removal
from client.vacuum.report import TableReport
from client.vacuum.swept import Sweeping, passed_over
from commit_table import Aborted, CommitTable, Committed
from store import ALL_ROWS, CellStore, KeyRange, Row, RowPut
from store.columns import ScannedColumns

SWEEP_BATCH_ROWS = 500
COLUMN_BATCH_ROWS = 10_000
"""Of rows that are read by columns, fewer of large ones."""
OUTCOMES_REMEMBERED_MAX = 100_000


Abort = Callable[[int], Committed | Aborted]
"""Have a transaction aborted for good through the oracle, or learn that it committed."""
Removable = Callable[[bytes, bytes], bool]
"""(row, stored value) → whether it shows the same to readers as no value at all."""
Level = list[tuple[bytes, Row]]
Answer = TypeVar("Answer")
Site = tuple[bytes, bytes]
"""Row and family: where a writer has one shadow cell."""


class Sweep:
    """Vacuums tables at one horizon. Not thread-safe; several may be at work on one table."""

    def __init__(
        self,
        store: CellStore,
        commit_table: CommitTable,
        abort: Abort,
        horizon: int,
        *,
        lasting_records_max: int = 0,
        dry_run: bool = False,
        reads_at_once: int = 1,
    ) -> None:
        self._store = store
        self._commit_table = commit_table
        self._abort = abort
        self._horizon = horizon
        self._dry_run = dry_run
        self._reads_at_once = reads_at_once
        self._cache = OutcomeCache(OUTCOMES_REMEMBERED_MAX)
        self._undecided: set[int] = set()
        self._lasting_records_max = lasting_records_max
        self._lasting: set[int] = set()

    def does_without_shadows(self, writer: int) -> bool:
        """Whether a writer's missing shadow cells are not to be written: its record lasts. Once so, it stays so."""
        return writer in self._lasting

    def table(
        self, table: str, families: Sequence[bytes], sweeping: Sweeping, key_range: KeyRange = ALL_ROWS
    ) -> Iterator[TableReport]:
        """Vacuum a table, or the rows of a range; gives a report after each batch. Raises the store's errors, and
        ``NoPrimary``.

        Rows that nobody wrote since an earlier vacuum are passed over, those that all were written by one writer are
        told by columns to be clean, and the others are looked at one by one. At the end ``sweeping`` says what is left.
        """
        expected = ExpectedColumns(key_range)
        for rest in expected.ranges():
            batches = self.cells(sweeping).scan_columns(
                table,
                rest,
                families,
                looked_for(expected.columns, families),
                before=self._horizon + 1,
                batch_rows=expected.batch_rows(COLUMN_BATCH_ROWS),
            )
            for batch in batches:
                passed, passed_report = self._passed_over(families, batch, sweeping)
                clean, report = self._clean(table, families, batch, passed, sweeping)
                report.add(passed_report)
                if report.rows:
                    yield report
                unclean = np.flatnonzero(~passed & ~clean).tolist()
                some = (unclean[at : at + SWEEP_BATCH_ROWS] for at in range(0, len(unclean), SWEEP_BATCH_ROWS))
                rows = chain.from_iterable(map(batch.rows_at, some))
                yield from self._swept(table, rows, lambda row, value: value == TOMBSTONE, sweeping)
                if expected.learn(batch):
                    break

    def own_table(
        self, table: str, families: Sequence[bytes], removable: Removable, sweeping: Sweeping
    ) -> Iterator[TableReport]:
        """The same of a table of few rows, in which something else than tombstones is ``removable``."""
        rows = self._store.scan(table, ALL_ROWS, families, before=self._horizon + 1, batch_rows=SWEEP_BATCH_ROWS)
        yield from self._swept(table, rows, removable, sweeping)

    def _swept(
        self, table: str, rows: Iterable[tuple[bytes, Row]], removable: Removable, sweeping: Sweeping
    ) -> Iterator[TableReport]:
        for batch in stored_batches(rows, SWEEP_BATCH_ROWS, BATCH_BYTES_MAX):
            yield _Batch(self, table, removable, sweeping).sweep(batch)

    def _passed_over(
        self, families: Sequence[bytes], batch: ScannedColumns, sweeping: Sweeping
    ) -> tuple[Flags, TableReport]:
        """In which rows there is nothing to do since nobody wrote them, and what they count for."""
        found = passed_over(batch, families, sweeping.before, self._may_last, sweeping.plain_through)
        sweeping.unshadowed.update(found.needed)
        rows = int(found.rows.sum())
        return found.rows, TableReport(
            rows=rows,
            rows_passed_over=rows,
            versions_kept=int(found.cells[found.rows].sum()),
            shadow_cells_left_out=int(found.lacking[found.rows].sum()),
        )

    def _may_last(self, writer: int) -> bool:
        """Whether a writer whose record says that it lasts goes on without shadow cells: the first that are met do."""
        if len(self._lasting) < self._lasting_records_max:
            self._lasting.add(writer)
        return writer in self._lasting

    def _clean(
        self, table: str, families: Sequence[bytes], batch: ScannedColumns, passed: Flags, sweeping: Sweeping
    ) -> tuple[Flags, TableReport]:
        """In which of the rows that are not passed over there is nothing to do, and what they count for."""
        clean = np.zeros(batch.cells.rows, np.bool_)
        if passed.all():
            return clean, TableReport()
        found = clean_rows(batch, self._lasting, sweeping.plain_through)
        found.writers[passed] = NOBODY
        for writer, rows in found.asked_about():
            clean |= rows & ~self._over_something(table, families, batch, rows, writer, sweeping)
            if (clean & rows & (found.lacking > 0)).any():
                sweeping.unshadowed.add(writer)
        return clean, TableReport(
            rows=int(clean.sum()),
            versions_kept=int(found.cells[clean].sum()),
            shadow_cells_left_out=int(found.lacking[clean].sum()),
        )

    def _over_something(
        self,
        table: str,
        families: Sequence[bytes],
        batch: ScannedColumns,
        rows: Flags,
        writer: int,
        sweeping: Sweeping,
    ) -> Flags:
        """Below which of a writer's rows there is anything at all."""
        places = np.flatnonzero(rows)
        keys = {batch.cells.row_key(index): index for index in places.tolist()}
        first, last = batch.cells.row_key(int(places[0])), batch.cells.row_key(int(places[-1]))
        below = self.cells(sweeping).scan_columns(
            table,
            KeyRange(first, last + b"\x00"),
            families,
            batch.cells.columns,
            before=writer,
            batch_rows=COLUMN_BATCH_ROWS,
        )
        found = np.zeros(batch.cells.rows, np.bool_)
        for older in below:
            found[[keys[key] for key in older.cells.row_keys() if key in keys]] = True
        return found

    def cells(self, sweeping: Sweeping) -> Cells:
        """What is read, as readers look at it. Written and deleted is what is there in truth: a delete that reaches the
        newest plain cell reaches all that lie below it, too.
        """
        return cells_of(self._store, sweeping.plain_through)

    def outcomes(
        self, table: str, sites: Mapping[int, Iterable[Site]], sweeping: Sweeping, report: TableReport
    ) -> dict[int, int]:
        """Writer → final outcome, of writers without a shadow cell at any of these sites."""
        known = {writer: outcome_of_plain(writer, sweeping.plain_through) for writer in sites}
        known |= {writer: self._cache.get(writer) for writer, outcome in known.items() if outcome == OPEN}
        asked = [writer for writer, outcome in known.items() if outcome == OPEN and writer > 0]
        for writer, recorded in self._commit_table.outcomes(asked).items():
            if isinstance(recorded, Committed):
                known[writer] = recorded.commit_timestamp
                if recorded.is_lasting:
                    self._may_last(writer)
            elif isinstance(recorded, Aborted):
                known[writer] = NOT_COMMITTED
            else:
                known[writer] = self._decide(table, writer, sites[writer], report)
        for writer, outcome in known.items():
            if outcome != OPEN:
                self._cache.remember(writer, outcome)
        return known

    def look_who_lasts(self, known: Mapping[int, int]) -> None:
        """Of writers whose outcomes are ``known`` by shadow cells, and that lack some: whether their records last."""
        asked = [writer for writer in known if self._cache.get(writer) == OPEN]
        for writer, recorded in self._commit_table.outcomes(asked).items() if asked else ():
            if isinstance(recorded, Committed) and recorded.is_lasting:
                self._may_last(writer)
            self._cache.remember(writer, known[writer])

    def _decide(self, table: str, writer: int, sites: Iterable[Site], report: TableReport) -> int:
        """A shadow cell may have been written, and the record dropped, between the looks at both."""
        shadow = self._shadow(table, writer, sites)
        if shadow != OPEN:
            return shadow
        if self._dry_run:
            report.transactions_undecided += writer not in self._undecided
            self._undecided.add(writer)
            return OPEN
        if writer >= self._commit_table.forgotten_below():  # else another vacuum was faster, or it wrote after its end
            ended = self._abort(writer)
            if isinstance(ended, Committed):
                return ended.commit_timestamp
            report.transactions_aborted += 1
        shadow = self._shadow(table, writer, sites)
        return NOT_COMMITTED if shadow == OPEN else shadow

    def _shadow(self, table: str, writer: int, sites: Iterable[Site]) -> int:
        return next(iter(self.shadows(table, writer, sites).values()), OPEN)

    def shadows(self, table: str, writer: int, sites: Iterable[Site]) -> dict[Site, int]:
        """The outcomes in the writer's own shadow cells at these sites; without those that have none."""
        columns: defaultdict[bytes, list[bytes]] = defaultdict(list)
        for row, family in sites:
            columns[family].append(row)
        found: dict[Site, int] = {}
        for family, rows in columns.items():
            column = shadow_column(family)
            for row, cells in self._store.get_many(table, rows, [column], before=writer + 1).items():
                if cells[column].timestamp == writer:
                    found[row, family] = decode_shadow(cells[column].value)
        return found

    @property
    def horizon(self) -> int:
        """Versions above it are left alone."""
        return self._horizon

    def below(
        self, table: str, rows: Sequence[bytes], columns: Sequence[bytes], writer: int, sweeping: Sweeping
    ) -> dict[bytes, Row]:
        """The newest cells below a writer's."""
        return self.cells(sweeping).get_many(table, rows, with_bookkeeping(columns), before=writer)

    def answers(self, requests: Sequence[Callable[[], Answer]]) -> list[Answer]:
        """What the requests return, which do nothing but read, in their order; several wait for the store at a time."""
        at_once = min(self._reads_at_once, len(requests))
        if at_once < 2:
            return [request() for request in requests]
        with ThreadPoolExecutor(at_once, thread_name_prefix="pythia-vacuum") as readers:
            return list(readers.map(lambda request: request(), requests))

    def put(self, table: str, puts: Sequence[RowPut], writer: int) -> None:
        """Write shadow cells, unless this is a dry run."""
        if not self._dry_run:
            self._store.put(table, puts, writer)

    def delete(self, table: str, removals: Iterable[Removal[tuple[bytes, bytes]]]) -> None:
        """Delete columns of rows, unless this is a dry run."""
        if self._dry_run:
            return
        for timestamp, places in gathered(removals):
            columns: defaultdict[bytes, list[bytes]] = defaultdict(list)
            for row, column in places:
                columns[row].append(column)
            self._store.delete_columns(table, columns, timestamp)


class _Batch:
    """Some rows of a table, on their way from what was read to what is left."""

    def __init__(self, sweep: Sweep, table: str, removable: Removable, sweeping: Sweeping) -> None:
        self._sweep = sweep
        self._table = table
        self._removable = removable
        self._sweeping = sweeping
        self._pasts: dict[tuple[bytes, bytes], ColumnPast] = {}
        self._shadows: defaultdict[Site, set[int]] = defaultdict(set)
        """The timestamps of the shadow cells that were met."""
        self._unshadowed: defaultdict[int, dict[Site, None]] = defaultdict(dict)
        """Writer → sites where its shadow cell is missing."""
        plain = sweeping.plain_through
        self._outcomes: dict[int, int] = {plain: plain} if plain else {}
        self._report = TableReport()

    def sweep(self, rows: Level) -> TableReport:
        """Take the rows, with their newest cells at or below the horizon, to their end."""
        self._report.rows = len(rows)
        level = rows
        while level:
            self._settle(level)
            level = self._next_level(self._take_in(level))
        self._heal()
        self._need_records()
        self._trim()
        return self._report

    def _settle(self, level: Level) -> None:
        """Find out the outcomes of those whose versions count in this level; note which lack their shadow cell."""
        for row, cells in level:
            for column, cell in cells.items():
                if is_shadow(column):
                    self._outcomes[cell.timestamp] = decode_shadow(cell.value)
                    self._shadows[row, family_of(column)].add(cell.timestamp)
        unsure = self._unsure(level)
        asked = [writer for writer in unsure if not self._sweep.does_without_shadows(writer)]
        shadows = self._sweep.answers([partial(self._sweep.shadows, self._table, each, unsure[each]) for each in asked])
        for writer, found in zip(asked, shadows, strict=True):
            for site, outcome in found.items():
                self._outcomes[writer] = outcome
                self._shadows[site].add(writer)
                del unsure[writer][site]
        lacking = {writer: missing for writer, missing in unsure.items() if missing}
        self._sweep.look_who_lasts({each: self._outcomes[each] for each in lacking if each in self._outcomes})
        unknown = {writer: sites for writer, sites in lacking.items() if writer not in self._outcomes}
        self._outcomes.update(self._sweep.outcomes(self._table, unknown, self._sweeping, self._report))
        for writer, missing in lacking.items():
            self._unshadowed[writer].update(missing)

    def _unsure(self, level: Level) -> dict[int, dict[Site, None]]:
        """Where the shadow cell of a version did not come along: there may be a newer one above it."""
        unsure: defaultdict[int, dict[Site, None]] = defaultdict(dict)
        for row, column, writer in self._counting(level):
            site = row, family_of(column)
            if writer not in self._shadows[site] and writer != self._sweeping.plain_through:
                unsure[writer][site] = None
        return unsure

    def _counting(self, level: Level) -> Iterator[tuple[bytes, bytes, int]]:
        """Row, column and writer of the versions that do not lie below a pivot."""
        for row, cells in level:
            for column, cell in cells.items():
                if not is_shadow(column) and not self._past(row, column).has_pivot:
                    yield row, column, cell.timestamp

    def _past(self, row: bytes, column: bytes) -> ColumnPast:
        past = self._pasts.get((row, column))
        if past is None:
            past = self._pasts[row, column] = ColumnPast(self._sweep.horizon)
        return past

    def _take_in(self, level: Level) -> list[tuple[bytes, bytes, int]]:
        """Add the versions to what is known of their columns; returns below which one more has to be looked for."""
        unfinished = []
        for row, cells in level:
            for column, (value, writer) in cells.items():
                if is_shadow(column):
                    continue
                past = self._past(row, column)
                if past.has_pivot:
                    past.older = writer
                else:
                    past.versions.append(Version(writer, self._outcomes[writer], self._removable(row, value)))
                if not past.is_complete:
                    unfinished.append((row, column, writer))
        return unfinished

    def _next_level(self, unfinished: Sequence[tuple[bytes, bytes, int]]) -> Level:
        """The versions right below these: one request for each writer above them."""
        wanted: defaultdict[int, defaultdict[bytes, set[bytes]]] = defaultdict(lambda: defaultdict(set))
        for row, column, writer in unfinished:
            wanted[writer][row].add(column)
        answers = self._sweep.answers(
            [
                partial(
                    self._sweep.below,
                    self._table,
                    list(rows),
                    sorted(set().union(*rows.values())),
                    writer,
                    self._sweeping,
                )
                for writer, rows in wanted.items()
            ]
        )
        return [
            (row, {c: cell for c, cell in cells.items() if c in rows[row] or is_shadow(c)})
            for rows, answer in zip(wanted.values(), answers, strict=True)
            for row, cells in answer.items()
        ]

    def _lowest_kept(self) -> dict[Site, int]:
        lowest: dict[Site, int] = {}
        for (row, column), past in self._pasts.items():
            for version in past.kept()[-1:]:
                site = row, family_of(column)
                lowest[site] = min(version.writer, lowest.get(site, version.writer))
        return lowest

    def _heal(self) -> None:
        """Write the shadow cells that are missing of versions that stay, but where the writer can do without."""
        lowest = self._lowest_kept()
        for writer, sites in self._unshadowed.items():
            if self._sweep.does_without_shadows(writer):
                continue
            rows: defaultdict[bytes, dict[bytes, bytes]] = defaultdict(dict)
            outcome = self._outcomes[writer]
            for row, family in sites:
                if outcome != OPEN and writer >= lowest.get((row, family), writer + 1):
                    rows[row][shadow_column(family)] = encode_shadow(outcome)
                    self._report.shadow_cells_written += 1
            if rows:
                self._sweep.put(self._table, [RowPut(row, columns) for row, columns in rows.items()], writer)

    def _need_records(self) -> None:
        """Have the records stay of those that can do without shadow cells, for want of one of a version that stays."""
        unshadowed = {
            writer: sites for writer, sites in self._unshadowed.items() if self._sweep.does_without_shadows(writer)
        }
        wanting: set[tuple[int, Site]] = set()
        for (row, column), past in self._pasts.items() if unshadowed else ():
            site, kept = (row, family_of(column)), set(past.kept())
            for version, above in zip(past.versions, [None, *past.versions], strict=False):
                if version in kept and site in unshadowed.get(version.writer, ()):
                    wanting.add((version.writer, site))
                    if above is not None:  # another vacuum would see that, or one above, and not ask what lies below
                        self._sweeping.is_not_done_above(above.writer)
        self._sweeping.unshadowed.update(writer for writer, _ in wanting)
        self._report.shadow_cells_left_out += len(wanting)

    def _trim(self) -> None:
        versions: list[Removal[tuple[bytes, bytes]]] = []
        for place, past in self._pasts.items():
            removal, kept, aborted = past.removal(place), len(past.kept()), past.aborted_kept()
            self._report.versions_kept += kept
            self._report.aborted_cells_kept += aborted
            if not past.is_done:
                self._sweeping.is_not_done_above(past.versions[0].writer)
            if removal is not None:
                versions.append(removal)
                self._report.columns_trimmed += kept > 0
                self._report.columns_removed += kept == 0
        lowest = self._lowest_kept()
        shadows = [
            shadow_removal((row, shadow_column(family)), met, lowest.get((row, family)), self._sweep.horizon)
            for (row, family), met in self._shadows.items()
        ]
        useless = [removal for removal in shadows if removal is not None]
        self._report.shadow_columns_trimmed += len(useless)
        self._sweep.delete(self._table, versions)
        self._sweep.delete(self._table, useless)
