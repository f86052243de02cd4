from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as some

from client import Conflict, SnapshotTooOld
from demo.flights import MONTHS
from demo.kills import (
    KILLS_WANTED,
    FailoverReport,
    Kill,
    LongTransaction,
    aborted,
    kill_months,
    longest_silence_ms,
    usual_silence_ms,
)

FEBRUARY = Kill(2, "oracle-1", 4_000, "oracle-2", 2_345.6)
MAY = Kill(5, "oracle-2", 0, "oracle-1", 1_980.0)


@pytest.mark.parametrize(
    ("months", "chosen"),
    [
        (1, (1,)),
        (2, (2,)),
        (3, (2, 3)),
        (4, (2, 3, 4)),
        (6, (2, 4, 6)),
        (8, (2, 5, 8)),
        (12, (2, 5, 8, 11)),
    ],
)
def test_the_primary_is_killed_from_the_second_month_on(months: int, chosen: tuple[int, ...]) -> None:
    assert kill_months(months) == chosen


@pytest.mark.parametrize("months", range(1, MONTHS + 1))
def test_there_are_as_many_kills_as_are_wanted_or_as_the_months_allow(months: int) -> None:
    chosen = kill_months(months)
    assert len(chosen) >= min(KILLS_WANTED, max(1, months - 1))
    assert set(chosen) <= set(range(1, months + 1))


def test_the_silence_around_a_failover_is_the_longest_one() -> None:
    acknowledged = [0.0, 0.5, 1.0, 1.25, 3.75, 4.0, 9.0]
    assert longest_silence_ms(acknowledged, since=1.0, until=3.5) == 2_500


def test_an_answer_that_was_on_its_way_at_the_kill_does_not_hide_what_follows() -> None:
    assert longest_silence_ms([1.0, 1.5, 4.0], since=1.25, until=3.5) == 2_500


def test_the_silence_begins_with_the_last_commit_before_the_kill_or_else_with_the_kill() -> None:
    assert longest_silence_ms([0.5, 3.0], since=1.0, until=2.0) == 2_500
    assert longest_silence_ms([3.0], since=1.0, until=2.0) == 2_000


def test_a_silence_that_lasts_has_no_length() -> None:
    assert longest_silence_ms([0.5, 1.0, 2.0], since=1.0, until=2.0) is None


@given(some.lists(some.integers(0, 1_000), max_size=30), some.integers(0, 1_000), some.integers(0, 1_000))
def test_the_silence_covers_the_time_from_the_kill_to_the_takeover_or_a_part_of_it(
    milliseconds: list[int], first: int, second: int
) -> None:
    since, until = min(first, second), max(first, second)
    acknowledged = [float(each) for each in sorted(milliseconds)]
    silence_ms = longest_silence_ms(acknowledged, since, until)
    if silence_ms is None:
        assert not any(moment > until for moment in acknowledged)
    elif not any(since < moment <= until for moment in acknowledged):
        assert silence_ms >= 1_000 * (until - since)


def test_the_usual_silence_is_the_median() -> None:
    assert usual_silence_ms([1.0, 1.25, 1.5, 9.0]) == 250
    assert usual_silence_ms([1.0]) == 0


def test_a_conflict_is_told_from_what_a_failover_did() -> None:
    by_conflict = aborted("the transaction of May", Conflict(7, "another transaction committed"))
    by_failover = aborted("the transaction of May", SnapshotTooOld(7, "the oracle had moved on"))
    assert "a conflict with another writer" in str(by_conflict)
    assert "by a failover" in str(by_failover)
    assert "the oracle had moved on" in str(by_failover)


def test_a_kill_is_told_with_who_took_over_and_how_long_nobody_was_served() -> None:
    assert str(FEBRUARY) == (
        "February: oracle-1 was killed with 4,000 rows of Spark's tasks on their way, oracle-2 took over; "
        "no acknowledged commit for 2.35 s"
    )
    assert "was killed between two jobs of Spark, oracle-1 took over" in str(MAY)


def report(*, uninvited: int = 0, evicted: bool = True) -> str:
    long = LongTransaction(open_seconds=83.4, commit_seconds=0.05, failovers=2 + uninvited, evicted=evicted)
    made = FailoverReport(2_000, [FEBRUARY, MAY], uninvited, probes=1_234, usual_ms=23.6, long=long)
    return "\n".join(made.lines(months=5, late_reports=5, conflicts=5))


def test_the_report_names_kills_probe_and_long_transaction() -> None:
    assert report() == (
        "Primary oracle killed 2 times (SIGKILL, lease 2,000 ms), always in the middle of a month's transaction, "
        "which committed:\n"
        f"  {FEBRUARY}.\n"
        f"  {MAY}.\n"
        "Probe: 1,234 tiny transactions, one after the other, of which none failed; usually 24 ms from one "
        "acknowledged commit to the next.\n"
        "Long transaction: open for 83 s and 2 failovers, then committed in 0.05 s. Already before the first its "
        "snapshot had been evicted from the conflict map.\n"
        "Aborted by a failover: none of 5 months, 5 late reports, 1,234 probes and the long transaction. Aborted by a "
        "real conflict with a month: 5 attempts of the second writer."
    )


def test_failovers_without_a_kill_are_told_too() -> None:
    assert "the lease was lost 1 time without a kill" in report(uninvited=1)
    assert "without a kill" not in report()


def test_an_eviction_is_told_only_where_it_was_seen() -> None:
    assert "evicted" not in report(evicted=False)
