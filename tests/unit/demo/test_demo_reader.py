from __future__ import annotations

import pytest

from demo.flights import LATE_DAY
from demo.reader import telling_days
from demo.summaries import Key, Measures

SOME = Measures(1, 0, 0, 1)


@pytest.mark.parametrize(
    ("days", "telling"),
    [
        ([], [(1, 1)]),
        ([(1, 1), (1, 31)], [(1, 31), (1, LATE_DAY), (2, 1)]),
        ([(1, 31), (2, 28)], [(2, 28), (2, LATE_DAY), (3, 1)]),
    ],
)
def test_a_torn_commit_shows_at_the_newest_days_and_the_next_one(days: list[Key], telling: list[Key]) -> None:
    assert telling_days(dict.fromkeys(days, SOME)) == telling
