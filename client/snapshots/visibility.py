"""Which version of a cell a snapshot sees. Pure: versions and outcomes come in, a choice comes out.

A version written by transaction z (its cell timestamp is z's start timestamp) is visible at snapshot S when z committed
at or below S, or when z is the reader itself. Versions are looked at from the newest candidate down; the first visible
one is the value.

In this room's inner loops an outcome is one integer: the commit timestamp, ``NOT_COMMITTED`` or ``OPEN``.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from itertools import islice

from client.cells import decode_shadow, family_of, is_shadow, row_marker_column, shadow_column
from store import Row

NOT_COMMITTED = 0
"""Aborted, or at least not committed at or below the snapshot in question. Also what an aborted shadow cell holds."""

OPEN = -1
"""Not known yet: somebody has to be asked."""


@dataclass(frozen=True, slots=True)
class View:
    """What a reader may see: commits at or below ``snapshot``, and its own versions at ``own``, if it has any.

    ``epoch``: the first timestamp of the epoch in which the snapshot was taken. A transaction from before it whose
    outcome is open must be fenced; one from the epoch or after it, absent from the commit table *after* the snapshot
    was taken, cannot have committed at or below the snapshot.
    """

    snapshot: int
    epoch: int
    own: int | None = None

    @property
    def before(self) -> int:
        """The exclusive bound on the cell timestamps of candidates: who committed by then had started by then."""
        return max(self.snapshot, self.own or 0) + 1

    def must_fence(self, writer: int) -> bool:
        """Whether an undecided writer could still come to have committed at or below the snapshot."""
        return writer < self.epoch


@dataclass(slots=True)
class Settled:
    """One row, as far as the known outcomes settle it. Every data column read is in exactly one of the first three."""

    visible: dict[bytes, bytes] = field(default_factory=dict)
    """Column → stored value, where the newest candidate is visible."""
    hidden: dict[bytes, int] = field(default_factory=dict)
    """Column → cell timestamp of a newest candidate that is not visible: an older version has to be looked for."""
    open: dict[bytes, int] = field(default_factory=dict)
    """Column → the writer whose outcome has to be found out first."""
    outcomes: dict[int, int] = field(default_factory=dict)
    """Writer → outcome, of every writer that the row shows."""
    unshadowed: dict[bytes, tuple[int, int]] = field(default_factory=dict)
    """Family → (writer, commit timestamp) where the writer's shadow cell is missing for certain: to be healed."""


def settle(row: Row, view: View, outcome_of: Callable[[int], int]) -> Settled:
    """Choose among the newest candidates of a row, by its shadow cells and by ``outcome_of`` a writer.

    An outcome is a writer's, not a cell's: it is found once for each writer that the row shows, by whichever shadow
    cell of the row is its own, and the shadow cells of a row are written together.
    """
    outcomes = {cell.timestamp: decode_shadow(cell.value) for column, cell in row.items() if is_shadow(column)}
    settled = Settled(outcomes=outcomes)
    shadowed = len(outcomes)
    for column, (value, writer) in row.items():
        outcome = outcomes.get(writer)
        if outcome is None:
            asked = 0 < writer <= view.snapshot and writer != view.own  # a cell at 0 is no transaction's
            outcome = outcomes[writer] = outcome_of(writer) if asked else NOT_COMMITTED
        if is_shadow(column):
            continue
        if NOT_COMMITTED < outcome <= view.snapshot or writer == view.own:
            settled.visible[column] = value
        elif outcome == OPEN:
            settled.open[column] = writer
        else:
            settled.hidden[column] = writer
    for writer, outcome in islice(outcomes.items(), shadowed, None):
        if outcome > NOT_COMMITTED:
            settled.unshadowed.update(_without_shadow(row, writer, outcome))
    return settled


def commits_seen(row: Row, settled: Settled) -> Iterator[tuple[bytes, int]]:
    """Of each visible version of a row, by column, when its writer committed; 0 for the reader's own."""
    return ((column, settled.outcomes[row[column].timestamp]) for column in settled.visible)


def _without_shadow(row: Row, writer: int, outcome: int) -> Iterator[tuple[bytes, tuple[int, int]]]:
    """The families in which the writer's shadow cell is missing for certain: the newest one there is older."""
    for column, cell in row.items():
        if cell.timestamp == writer:
            newest = row.get(shadow_column(family_of(column)))
            if newest is None or newest.timestamp < writer:
                yield family_of(column), (writer, outcome)


def with_bookkeeping(columns: Iterable[bytes]) -> list[bytes]:
    """A choice of columns and families, with the shadow cell and the row marker of each family that it touches."""
    chosen = dict.fromkeys(columns)
    whole = {column for column in chosen if b":" not in column}
    single = [column for column in chosen if b":" in column and family_of(column) not in whole]
    touched = dict.fromkeys(family_of(column) for column in single)
    extra = [column for family in touched for column in (shadow_column(family), row_marker_column(family))]
    return [*whole, *dict.fromkeys([*single, *extra])]
