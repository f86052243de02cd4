"""What may go of one column, and in how few deletes."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from client.snapshots.visibility import NOT_COMMITTED, OPEN
from client.vacuum.plan import ColumnPast, Removal, Version, gathered, horizons, shadow_removal
from commit_table.timestamps import compose

HORIZON = 100
LATE = HORIZON + 1


def past(*versions: tuple[int, int], removable: int | None = None, older: int | None = None) -> ColumnPast:
    made = [Version(writer, outcome, writer == removable) for writer, outcome in versions]
    return ColumnPast(HORIZON, made, older)


@pytest.mark.parametrize(
    ("column", "removal"),
    [
        (past((50, 60)), None),
        (past((50, 60), older=40), (40, 49)),
        (past((50, HORIZON), older=40), (40, 49)),
        (past((50, 60), removable=50), (50, HORIZON)),
        (past((70, NOT_COMMITTED), (50, 60), older=40), (40, 49)),
        (past((70, NOT_COMMITTED), (50, 60), removable=50), (70, HORIZON)),
        (past((70, LATE), (50, 60)), None),
        (past((70, LATE), (50, 60), older=40), (40, 49)),
        (past((70, LATE), (50, 60), removable=50), (50, 69)),
        (past((70, LATE), (60, NOT_COMMITTED), (50, 60), removable=50), (60, 69)),
        (past((70, LATE), (60, NOT_COMMITTED)), (60, 69)),
        (past((70, LATE)), None),
        (past((70, OPEN), (60, NOT_COMMITTED)), (60, 69)),
        (past((70, NOT_COMMITTED), (60, NOT_COMMITTED)), (70, HORIZON)),
        (past((70, LATE), removable=70), None),
    ],
)
def test_what_goes_of_a_column(column: ColumnPast, removal: tuple[int, int] | None) -> None:
    assert column.removal("place") == (None if removal is None else Removal("place", *removal))


def test_a_column_is_looked_into_until_what_everybody_sees_and_one_further() -> None:
    assert not past((70, LATE)).is_complete
    assert not past((70, NOT_COMMITTED)).is_complete
    assert not past((70, 80)).is_complete
    assert past((70, 80), older=3).is_complete
    assert past((70, 80), removable=70).is_complete


def test_what_aborted_above_a_kept_version_is_counted_as_kept() -> None:
    column = past((90, NOT_COMMITTED), (80, LATE), (70, NOT_COMMITTED), (60, 65), older=1)
    assert (len(column.kept()), column.aborted_kept()) == (2, 2)
    assert past((90, NOT_COMMITTED), (60, 65), removable=60).aborted_kept() == 0


def test_shadow_cells_go_below_the_lowest_kept_version() -> None:
    assert shadow_removal("p", {70, 50, 40}, 50, HORIZON) == Removal("p", 40, 49)
    assert shadow_removal("p", {70, 50}, 50, HORIZON) is None
    assert shadow_removal("p", {70, 50}, None, HORIZON) == Removal("p", 70, HORIZON)


@given(st.lists(st.tuples(st.integers(0, 50), st.integers(0, 10)), max_size=30))
def test_every_removal_is_met_within_its_bounds_and_by_as_few_deletes_as_can_be(spans: list[tuple[int, int]]) -> None:
    removals = [Removal(number, least, least + length) for number, (least, length) in enumerate(spans)]
    deletes = list(gathered(removals))
    met = {place: timestamp for timestamp, places in deletes for place in places}
    assert all(removal.least <= met[removal.place] <= removal.most for removal in removals)
    assert len({timestamp for timestamp, _ in deletes}) == len(deletes)
    disjoint, end = 0, -1  # as many intervals as are apart need a delete each
    for removal in sorted(removals, key=lambda removal: removal.most):
        if removal.least > end:
            disjoint, end = disjoint + 1, removal.most
    assert len(deletes) == disjoint


def test_the_horizon_is_the_oracles_unless_more_is_retained() -> None:
    now = compose(10_000, 7)
    assert horizons(compose(9_000), now, 2_000, 5_000) == (compose(8_000), compose(5_000))
    assert horizons(compose(7_000), now, 2_000, 0) == (compose(7_000), compose(7_000))
    assert horizons(compose(7_000), now, 20_000, 5_000) == (0, 0)


@pytest.mark.parametrize(
    ("through", "first_kept"), [(compose(5), 5), (compose(5) - 1, 5), (compose(6) - 1, 6), (compose(6) - 2, 5)]
)
def test_a_row_of_the_commit_table_goes_only_when_all_of_its_millisecond_may(through: int, first_kept: int) -> None:
    limits = horizons(through, compose(100), 0, 0)
    assert limits.first_block_kept == first_kept
