"""Which of the versions that were read a view sees, with as few further questions as that takes.

A read asks the store for the newest cells below the view's bound and needs more questions only where one of them is
not settled: its writer's outcome is open, or the newest candidate is not visible and an older one has to be found.
Rows are settled a batch at a time, and both kinds of question are asked once a batch and writer: so a scan over what
one big transaction wrote, or is writing, costs a few requests a batch and not one a cell.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from functools import partial
from types import MappingProxyType

from client.catalog.entry import ShownFrom
from client.cells import family_of, is_shadow, shadow_column
from client.snapshots.plain_cells import outcome_of_plain
from client.snapshots.resolver import Resolver, Site
from client.snapshots.stored_cells import Rows, StoredCells
from client.snapshots.visibility import NOT_COMMITTED, OPEN, Settled, View, settle, with_bookkeeping
from store import Row, StoreUnavailable
from store.answer_size import AnswerSize

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

SettledRow = tuple[bytes, Row, Settled]
"""Its key, the cells that were looked at, and which of them the view sees."""


class VacuumedMeanwhile(Exception):
    """Of ``writers`` below the vacuum's mark nothing is on record any more: what was read of them may be outdated.

    The record goes when all their cells have their shadow cells, or are gone. A cell that is read from now on without
    one is nobody's who committed.
    """

    def __init__(self, writers: Collection[int]) -> None:
        super().__init__()
        self.writers = writers


class Settler:
    """Settles rows at one view.

    ``assumed``: outcomes that hold for this view and need not be asked for, by writer. ``shown_from``: see
    ``SnapshotReader``.
    """

    __slots__ = ("_assumed", "_resolver", "_shown_from", "_stored", "_view")

    def __init__(
        self,
        stored: StoredCells,
        resolver: Resolver,
        view: View,
        assumed: Mapping[int, int],
        shown_from: Callable[[str], ShownFrom],
    ) -> None:
        self._stored = stored
        self._resolver = resolver
        self._view = view
        self._assumed = assumed
        self._shown_from = shown_from

    def settled(
        self,
        table: str,
        rows: Rows,
        known: Mapping[int, int] = MappingProxyType({}),
        *,
        heal: bool = True,
        vacuumed: Collection[int] = (),
    ) -> Iterator[list[SettledRow]]:
        """Look at the newest candidates, then below each that is hidden, until every column is settled: a list a look.

        ``known``: outcomes that hold for this view. ``heal``: write the shadow cells that are missing, where those that
        there are came along. ``vacuumed``: writers of whom nothing was on record before the rows were read. Raises
        ``VacuumedMeanwhile`` for others of that kind, ``StoreUnavailable``.

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

    def outcome_at_hand(self, table: str, writer: int) -> int:
        """The outcome of who wrote a cell of a table, as far as it is known without asking, or needs not be."""
        if not 0 < writer <= self._view.snapshot or writer == self._view.own:
            return NOT_COMMITTED  # a cell at 0 is no transaction's
        if writer in self._assumed:
            return self._assumed[writer]
        plain = outcome_of_plain(writer, self._stored.plain_through(table))
        return self._resolver.remembered(writer) if plain == OPEN else plain

    def resolved(self, table: str, sites: Mapping[int, Site], vacuumed: Collection[int] = ()) -> dict[int, int]:
        """What became of writers, each with one place that it wrote to; ``vacuumed`` and errors as of ``settled``.

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

    def _settled_by_pages(
        self,
        table: str,
        row: bytes,
        column: bytes,
        writer: int,
        known: Mapping[int, int],
        vacuumed: Collection[int],
    ) -> list[SettledRow]:
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
        cells = self._stored.cells(table)
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
            if settle(alone, self._view, partial(self.outcome_at_hand, table)).visible:
                break
        return page

    def _settle(
        self, table: str, rows: Rows, outcomes: Mapping[int, int], vacuumed: Collection[int]
    ) -> list[SettledRow]:
        """Settle rows, asking for the outcomes that are open."""
        known = {**outcomes}  # for this batch: the cache may drop an entry between the two looks

        def outcome_of(writer: int) -> int:
            if writer not in known:
                known[writer] = self.outcome_at_hand(table, writer)
            return known[writer]

        first = [(row, cells, settle(cells, self._view, outcome_of)) for row, cells in rows]
        sites = {
            writer: Site(table, row, family_of(column))
            for row, _, settled in first
            for column, writer in settled.open.items()
        }
        if sites:
            known.update(self.resolved(table, sites, vacuumed))
        return [
            (row, cells, settle(cells, self._view, outcome_of) if settled.open else settled)
            for row, cells, settled in first
        ]

    def _next_candidates(self, table: str, hidden: Mapping[int, Mapping[bytes, set[bytes]]]) -> list[tuple[bytes, Row]]:
        """The versions right below those that turned out hidden: one request for each writer that hides some."""
        following: list[tuple[bytes, Row]] = []
        for writer, wanted in hidden.items():
            columns = with_bookkeeping(sorted(set().union(*wanted.values())))
            found = self._stored.cells(table).get_many(table, list(wanted), columns, before=writer)
            following.extend((row, _only(cells, wanted[row])) for row, cells in found.items())
        return following

    def _heal(self, table: str, rows: Iterable[SettledRow]) -> None:
        missing: defaultdict[tuple[int, int], list[tuple[bytes, bytes]]] = defaultdict(list)
        for row, _, settled in rows:
            if settled.unshadowed:  # of few rows: the look alone is faster
                for family, writer_and_commit in settled.unshadowed.items():
                    missing[writer_and_commit].append((row, family))
        if missing:
            plain = self._stored.plain_through(table)
            missing.pop((plain, plain), None)
            self._resolver.heal(table, missing)


def _hidden(rows: Iterable[SettledRow]) -> dict[int, dict[bytes, set[bytes]]]:
    """Writer → row → the columns below which an older version has to be looked for."""
    hidden: defaultdict[int, defaultdict[bytes, set[bytes]]] = defaultdict(lambda: defaultdict(set))
    for row, _, settled in rows:
        if settled.hidden:  # of few rows: the look alone is faster
            for column, writer in settled.hidden.items():
                hidden[writer][row].add(column)
    return {writer: dict(wanted) for writer, wanted in hidden.items()}


def _only(cells: Row, columns: set[bytes]) -> Row:
    return {column: cell for column, cell in cells.items() if column in columns or is_shadow(column)}
