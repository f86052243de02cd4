from __future__ import annotations

import pytest

from demo.errors import ComparisonFailed
from demo.tally import COMMITTED, CONFLICT, LateTally, ReaderTally


def check(kind: str, snapshot: int, flights: int = 0, *differences: str) -> dict[str, object]:
    return {
        "event": "checked",
        "kind": kind,
        "snapshot": snapshot,
        "flights": flights,
        "differences": list(differences),
    }


def test_full_and_quick_checks_are_counted_apart() -> None:
    tally = ReaderTally()
    for message in (check("full", 1), check("quick", 2, 80), check("quick", 3, 80), check("full", 4, 90)):
        tally.take(message)
    assert (tally.full, tally.quick) == (2, 2)
    assert tally.states == {0, 80, 90}
    assert str(tally) == "2 full and 2 quick checks, each in a new snapshot: no difference"
    tally.refuse_differences()


def test_a_difference_is_refused_with_its_words() -> None:
    tally = ReaderTally()
    tally.take(check("full", 5, 90, "by_day 1/1: the row is missing"))
    with pytest.raises(ComparisonFailed, match=r"full check 1 .*\n  by_day 1/1: the row is missing"):
        tally.refuse_differences()
    assert "1 DIFFERENCES" in str(tally)


def test_only_a_full_check_settles_a_moment() -> None:
    tally = ReaderTally()
    tally.take(check("quick", 20))
    assert not tally.settled_at(10)
    tally.take(check("full", 10))
    assert tally.settled_at(10)
    assert not tally.settled_at(11)


def test_a_difference_settles_every_moment_since_the_reader_ends_there() -> None:
    tally = ReaderTally()
    tally.take(check("full", 1, 9, "by_day 1/1: the row is missing"))
    assert tally.settled_at(10)


def test_the_end_of_the_reader_is_known() -> None:
    tally = ReaderTally()
    assert not tally.finished
    tally.take({"event": "finished"})
    assert tally.finished


def attempt(month: int, transaction: int, flights_before: int) -> dict[str, object]:
    return {"event": "attempt", "month": month, "transaction": transaction, "flights_before": flights_before}


def ended(month: int, end: str) -> dict[str, object]:
    return {"event": "ended", "month": month, "end": end}


def test_a_conflict_and_its_second_attempt_make_the_story() -> None:
    tally = LateTally()
    assert not tally.waits(1)
    tally.take(attempt(1, 10, 0))
    assert tally.waits(1)
    tally.take(ended(1, CONFLICT))
    tally.take(attempt(1, 20, 802))
    tally.take(ended(1, COMMITTED))
    tally.take({"event": "reported", "month": 1, "flights": 92})
    tally.refuse_missing_conflicts(1)
    assert (tally.conflicts(), tally.flights, tally.reported) == (1, 92, {1})
    assert tally.story(1) == (
        "attempt 1 found 0 flights of that day and ended in a conflict with the month; "
        "attempt 2 found 802 flights of that day and committed"
    )


def report_that_ended(ends: list[str]) -> LateTally:
    tally = LateTally()
    for number, end in enumerate(ends):
        tally.take(attempt(3, number, 0))
        tally.take(ended(3, end))
    return tally


@pytest.mark.parametrize("ends", [[COMMITTED], [CONFLICT, CONFLICT, COMMITTED]])
def test_another_number_of_conflicts_is_refused(ends: list[str]) -> None:
    tally = report_that_ended(ends)
    with pytest.raises(ComparisonFailed, match="late report of month 3"):
        tally.refuse_missing_conflicts(3)


def test_an_abort_without_a_conflict_is_no_conflict() -> None:
    tally = report_that_ended(["the oracle had moved on", COMMITTED])
    assert tally.conflicts() == 0
    with pytest.raises(ComparisonFailed, match=r"was aborted without a conflict \(the oracle had moved on\)"):
        tally.refuse_missing_conflicts(3)
