"""What may go, and up to which timestamp. Pure: versions and outcomes come in, deletes come out.

Nobody reads below the *horizon* H, and nobody who can still commit began at or below it. Of a column, every reader at
or above H sees the newest version that committed at or below H, the *pivot*, or something above it. So what lies below
the pivot can go, and the pivot itself where it says "deleted": then there is nothing to be seen either way.

Thrift 1 deletes a version only together with all older ones, and hides later puts at or below it. Hence the invariants:
a delete never reaches a kept version, and never above H, where all live transactions write. What aborted above a kept
version has to stay, under a shadow cell of 0.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Iterator
from dataclasses import dataclass, field
from typing import Generic, NamedTuple, TypeVar

from client.snapshots.visibility import NOT_COMMITTED, OPEN
from commit_table.timestamps import COUNTER_BITS, compose, milliseconds_of

Place = TypeVar("Place", bound=Hashable)


class Horizons(NamedTuple):
    """How far a vacuum goes. ``data``: nobody reads below it. ``outcomes``: nobody asks for an outcome below it."""

    data: int
    outcomes: int

    @property
    def first_block_kept(self) -> int:
        """The first row of the commit table, as a millisecond, that may hold a start timestamp above ``outcomes``."""
        return (self.outcomes + 1) >> COUNTER_BITS


def horizons(oracle_horizon: int, now: int, retain_ms: int, outcomes_retain_ms: int) -> Horizons:
    """How far a vacuum may go: no further than the oracle's horizon, nor into the time that is retained.

    ``now``: a timestamp that was handed out just now. Outcomes are retained for at least as long as data.
    """
    data = min(oracle_horizon, _before(now, retain_ms))
    return Horizons(data, min(data, _before(now, outcomes_retain_ms)))


def held_back(limits: Horizons, named: Iterable[int]) -> Horizons:
    """The horizons, no further than the oldest of the timestamps ``named``, at which there is still to be read."""
    data = min([limits.data, *named])
    return Horizons(data, min(limits.outcomes, data))


def _before(now: int, milliseconds: int) -> int:
    return compose(max(0, milliseconds_of(now) - milliseconds))


class Version(NamedTuple):
    """One version of a column. ``is_removable``: its value shows the same to a reader as no value at all."""

    writer: int
    outcome: int
    is_removable: bool


class Removal(NamedTuple, Generic[Place]):
    """A delete at any timestamp from ``least`` to ``most`` removes of ``place`` what should go, and nothing else."""

    place: Place
    least: int
    most: int


@dataclass(slots=True)
class ColumnPast:
    """The versions of one column at or below ``horizon``, newest first, down to the pivot; and what is known to lie
    below that.
    """

    horizon: int
    versions: list[Version] = field(default_factory=list)
    older: int | None = None
    """The newest version below the pivot, whatever became of it."""

    @property
    def has_pivot(self) -> bool:
        """Whether the versions end with the one that every reader sees, or something newer."""
        return bool(self.versions) and NOT_COMMITTED < self.versions[-1].outcome <= self.horizon

    @property
    def is_complete(self) -> bool:
        """Whether nothing has to be known of what lies below."""
        return self.older is not None or (self.has_pivot and self.versions[-1].is_removable)

    @property
    def is_done(self) -> bool:
        """Whether a vacuum with a later horizon has nothing to do either, until the column is written again."""
        return all(version.outcome <= self.horizon and version.outcome != OPEN for version in self.kept())

    def kept(self) -> list[Version]:
        """What has to stay for its own sake."""
        return [version for version in self.versions if self._is_kept(version)]

    def removal(self, place: Place) -> Removal[Place] | None:
        """What to delete of the column."""
        kept = self.kept()
        if not kept:
            return Removal(place, self.versions[0].writer, self.horizon)
        lowest = kept[-1].writer
        below = [version.writer for version in self.versions if version.writer < lowest]
        newest = below[0] if below else self.older
        return None if newest is None else Removal(place, newest, lowest - 1)

    def aborted_kept(self) -> int:
        """How many versions stay although nobody will ever see them."""
        kept = self.kept()
        lowest = kept[-1].writer if kept else self.horizon + 1
        return sum(version.outcome == NOT_COMMITTED and version.writer > lowest for version in self.versions)

    def _is_kept(self, version: Version) -> bool:
        if NOT_COMMITTED < version.outcome <= self.horizon:
            return not version.is_removable
        return version.outcome == OPEN or version.outcome > self.horizon


def shadow_removal(
    place: Place, shadows: Iterable[int], lowest_kept: int | None, horizon: int
) -> Removal[Place] | None:
    """What to delete of the shadow cells of a row and family: those below the lowest version that is kept in it."""
    bound = horizon + 1 if lowest_kept is None else lowest_kept
    useless = [shadow for shadow in shadows if shadow < bound]
    return Removal(place, max(useless), bound - 1) if useless else None


def gathered(removals: Iterable[Removal[Place]]) -> Iterator[tuple[int, list[Place]]]:
    """The removals as few deletes, each at one timestamp: the fewest points that meet every interval."""
    point, places = -1, list[Place]()
    for removal in sorted(removals, key=lambda removal: removal.most):
        if removal.least > point:
            if places:
                yield point, places
            point, places = removal.most, []
        places.append(removal.place)
    if places:
        yield point, places
