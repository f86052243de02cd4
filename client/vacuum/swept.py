"""What a vacuum left of a table, for the next one: which of its rows there is nothing to do in. Pure.

A vacuum that has been over a whole table says on record up to which timestamp it is done, ``through``: the newest cell
of a column at or below it stays, with its shadow cell beside it, nothing below is to be removed, and no later horizon
changes that. So the next vacuum passes over each row whose newest cells all lie there: nobody has written it since. Of
those it knows no more than their newest cells; a table that hardly changes costs one scan by columns.

Where it is not done by its horizon it says less. A transaction may have begun below a horizon and committed above it:
what it wrote over is read until then. So ``through`` ends below the newest version of each column in which anything
but the one that all read was kept.

``unshadowed`` are the transactions that are left without shadow cells, since their records last: who passes over cells
of theirs needs these records, too. All others that committed have theirs.

Invariant: it is true of a table for ever, whatever other vacuums do. What comes in at or below ``through`` afterwards
is of transactions that the oracle had given up: a process that slept writes on. Nobody sees it, and where it is the
newest cell of its row and family the row is looked at, for want of its shadow cell; else it stays until the row is
written again, or a vacuum goes over everything. It may lie over a version that has no shadow cell, whose record is
needed all the same. So where there are any such records a row is passed over only if each of its cells is of one of
these transactions, or of the newest in its family, which committed: below that nobody reads.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Final

import numpy as np

from client.cells import family_of, is_shadow, shadow_column
from client.vacuum.clean_rows import NOBODY, Flags, committed
from store.columns import ABSENT, Places, ScannedColumns
from versions import FormatNotSpoken
from versions.formats import SWEPT_RECORDS

UNSHADOWED_MAX: Final = 10_000
"""So many are put on record, 20 bytes each; beyond that a table is gone over as a whole each time."""


@dataclass(frozen=True, slots=True)
class Swept:
    """How far a table was vacuumed, by a vacuum that ended; see above."""

    through: int = 0
    unshadowed: frozenset[int] = frozenset()

    def and_of(self, other: Swept) -> Swept:
        """What is true of two parts of a table together."""
        return Swept(min(self.through, other.through), self.unshadowed | other.unshadowed)

    def to_json(self) -> bytes | None:
        """As it is put on record; ``None`` where there is nothing to say, or too much."""
        if not self.through or len(self.unshadowed) > UNSHADOWED_MAX:
            return None
        fields = {"format": SWEPT_RECORDS.newest, "through": self.through, "unshadowed": sorted(self.unshadowed)}
        return json.dumps(fields).encode()

    @classmethod
    def from_json(cls, stored: bytes | None) -> Swept:
        """What is on record. Nothing where another release wrote it: then there is only more to do.

        Version 1 said too much where a version without shadow cells lay below several that aborted.
        """
        fields = json.loads(stored) if stored is not None else {}
        try:
            SWEPT_RECORDS.require_known(fields.get("format"))
        except FormatNotSpoken:
            return NOT_SWEPT
        return cls(fields["through"], frozenset(fields["unshadowed"]))


NOT_SWEPT: Final = Swept()


@dataclass(slots=True)
class Sweeping:
    """What can be said of a table while it is swept: ``through``, at first the horizon, and ``unshadowed``, of whom
    cells stay that have no shadow cell. ``before``: what an earlier vacuum said of it. ``plain_through``: of a table
    that was adopted, at which timestamp its plain cells are seen (``client.snapshots.plain_cells``), else 0. They need
    neither shadow cells nor a record; a sweep that knows nothing of them would take them for what aborted.
    """

    through: int
    plain_through: int
    before: Swept = NOT_SWEPT
    unshadowed: set[int] = field(default_factory=set)

    def is_not_done_above(self, newest: int) -> None:
        """In the column of a row with this newest version a later vacuum may have something to do."""
        self.through = min(self.through, newest - 1)

    def swept(self) -> Swept:
        """What is true once the whole table was swept."""
        return Swept(self.through, frozenset(self.unshadowed))


@dataclass(frozen=True, slots=True)
class PassedOver:
    """By row of a batch: whether it is passed over, its number of ``cells`` of value, and in how many families the
    shadow cell of its newest one is ``lacking``; and whose records are ``needed`` for that.
    """

    rows: Flags
    cells: Places
    lacking: Places
    needed: Sequence[int]


def passed_over(
    batch: ScannedColumns,
    families: Sequence[bytes],
    before: Swept,
    may_last: Callable[[int], bool],
    plain_through: int,
) -> PassedOver:
    """The rows of a batch that nobody has written since an earlier vacuum.

    ``batch``: as ``clean_rows.looked_for`` has it. ``may_last``: whether a transaction goes on without shadow cells; of
    one that does not the rows are not passed over. ``plain_through``: see ``Sweeping``.
    """
    rows_count = batch.cells.rows
    rows, places, writers = _cells_of_value(batch, families)
    sites = places * rows_count + rows
    newest = np.full(len(families) * rows_count, NOBODY, np.int64)
    np.maximum.at(newest, sites, writers)
    shown = _newest_shadows(batch, families)
    is_lacking = (newest > shown) & (newest != plain_through)
    unshadowed = np.array(sorted(before.unshadowed), np.int64)
    passed = (~is_lacking | np.isin(newest, unshadowed)).reshape(-1, rows_count).all(axis=0)
    of_row = newest.reshape(-1, rows_count).max(axis=0, initial=NOBODY)
    passed &= (of_row > NOBODY) & (of_row <= before.through)
    # A shadow cell that is not the newest may lie below that, or be missing.
    lasts, is_shown = np.isin(writers, unshadowed), writers == shown[sites]
    may_lack = passed[rows] & lasts & ~is_shown
    needed = [writer for writer in np.unique(writers[may_lack]).tolist() if may_last(writer)]
    passed[rows[may_lack & ~np.isin(writers, needed)]] = False
    if before.unshadowed:
        hides = ~is_shown | ~_commits_shown(batch, families)[sites]
        passed[rows[hides & ~lasts & (writers != plain_through)]] = False
    lacking = is_lacking.reshape(-1, rows_count).sum(axis=0)
    return PassedOver(passed, np.bincount(rows, minlength=rows_count), lacking, needed)


def _cells_of_value(batch: ScannedColumns, families: Sequence[bytes]) -> tuple[Places, Places, Places]:
    """Of each cell of value its row, the place of its family among ``families``, and its writer."""
    place_of = {family: place for place, family in enumerate(families)}
    of_value = [index for index, column in enumerate(batch.cells.columns) if not is_shadow(column)]
    is_there = batch.cells.value_lengths[of_value] != ABSENT
    columns, rows = np.nonzero(is_there)
    places = np.array([place_of[family_of(batch.cells.columns[index])] for index in of_value], np.int64)
    others = [
        (row, place_of[family_of(column)], cell.timestamp)
        for row, cells in batch.others.items()
        for column, cell in cells.items()
    ]
    other_rows, other_places, other_writers = np.array(others, np.int64).reshape(-1, 3).T
    return (
        np.concatenate([rows, other_rows]),
        np.concatenate([places[columns], other_places]),
        np.concatenate([batch.timestamps[of_value][is_there], other_writers]),
    )


def _shadow_columns(batch: ScannedColumns, families: Sequence[bytes]) -> list[int]:
    """Which of the batch's columns has the shadow cells of each family."""
    return [batch.cells.columns.index(shadow_column(family)) for family in families]


def _commits_shown(batch: ScannedColumns, families: Sequence[bytes]) -> Flags:
    """By family, and by row in each, whether the newest shadow cell says "committed"."""
    return np.concatenate([committed(batch, shadow) for shadow in _shadow_columns(batch, families)])


def _newest_shadows(batch: ScannedColumns, families: Sequence[bytes]) -> Places:
    """By family, and by row in each, whose shadow cell is the newest."""
    shadows = _shadow_columns(batch, families)
    return np.where(batch.cells.value_lengths[shadows] != ABSENT, batch.timestamps[shadows], NOBODY).ravel()
