"""Bad records are caught, each for its own reason, and good ones are not accused."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from drills.outages import Window
from drills.verdict import CONFLICT, Record, Verdict, deposed_answers, judge, needless_aborts
from histories import Anomaly, History, Kind, RecordedTransaction, check
from tests.unit.drills.recorded import transaction, window

FIRST, SECOND = 1_000, 2_000
"""First timestamps of two epochs."""


def judged(
    transactions: Sequence[RecordedTransaction],
    *,
    outcomes: Mapping[int, int | None] | None = None,
    anomalies: Sequence[Anomaly] = (),
    faults: Sequence[Window] = (),
) -> Verdict:
    committed = {each.id: each.commit_timestamp for each in transactions if each.commit_timestamp is not None}
    found = [*anomalies, *check(History(tuple(transactions)))]
    stands = committed if outcomes is None else outcomes
    return judge(Record(transactions, {}, [FIRST, SECOND], stands, found, faults))


def test_a_failover_that_harms_nobody_is_clean() -> None:
    verdict = judged(
        [
            transaction(1_001, (0, 1, 2, 3), commit=1_003, writes=["a"]),
            transaction(1_002, (0, 1, 50, 60), commit=2_005, writes=["b"]),  # in flight, and carried over
            transaction(1_005, (4, 5, 6, 60), commit=1_006, writes=["c"]),  # decided before, its answer learned after
            transaction(2_001, (55, 56, 57, 61), commit=2_004, writes=["a"]),
            transaction(2_002, (55, 56, 62, 63), reason=CONFLICT, writes=["a"]),
        ],
        faults=[window(10, 58)],
    )
    assert verdict.is_clean, verdict.harms
    assert verdict.in_flight == [2]


def test_of_what_a_vacuum_has_dropped_the_commit_table_need_not_know() -> None:
    both = [
        transaction(1_001, (0, 1, 2, 3), commit=1_003, writes=["a"]),
        transaction(1_005, (4, 5, 6, 7), commit=1_006, writes=["b"]),
    ]
    lost = judge(Record(both, {}, [FIRST], {}, [], [], outcomes_from=1_005)).lost_commits
    assert [text.split(" was")[0] for text in lost] == ["transaction 1005"]


def test_a_commit_of_a_deposed_primary_is_caught() -> None:
    found = deposed_answers(
        [
            transaction(1_001, (0, 1, 57, 58), commit=1_004),  # sent after somebody had begun in the second epoch
            transaction(2_001, (55, 56)),
        ],
        {},
        [FIRST, SECOND],
    )
    assert list(found) == [
        "the commit of transaction 1001 at 1004 was answered in epoch 1000, though transaction 2001 had begun in "
        "epoch 2000 before it was sent"
    ]


def test_a_begin_of_a_deposed_primary_is_caught() -> None:
    (found,) = deposed_answers([transaction(2_001, (55, 56)), transaction(1_009, (57, 58))], {}, [FIRST, SECOND])
    assert found.startswith("the begin of transaction 1009 was answered in epoch 1000")


def test_what_was_sent_before_the_new_epoch_answered_is_nobodys_fault() -> None:
    assert not list(
        deposed_answers(
            [
                transaction(1_001, (0, 1, 56, 90), commit=1_004),  # sent at the very moment of the answer
                transaction(2_001, (50, 56)),
                transaction(1_009, (54, 58)),
                transaction(2_003, (60, 61, 62, 63), commit=1_009, writes=()),  # wrote nothing: that is its snapshot
            ],
            {},
            [FIRST, SECOND],
        )
    )


def test_a_timestamp_outside_of_its_own_epoch_is_caught() -> None:
    (found,) = deposed_answers([transaction(2_001, (0, 1))], {2_001: FIRST}, [FIRST, SECOND])
    assert found == "transaction 2001 was begun in epoch 1000, and its timestamp belongs to epoch 2000"


def test_epochs_that_only_a_begin_named_count() -> None:
    transactions = [transaction(2_001, (55, 56)), transaction(1_001, (0, 1, 57, 58), commit=1_004)]
    assert list(deposed_answers(transactions, {2_001: SECOND, 1_001: FIRST}, []))


def test_a_commit_that_the_commit_table_does_not_have_is_lost() -> None:
    acknowledged = transaction(1_001, (0, 1, 2, 3), commit=1_003)
    for stands in ({}, {1_001: None}, {1_001: 1_009}):
        verdict = judged([acknowledged], outcomes=stands)
        assert len(verdict.lost_commits) == 1
        assert verdict.lost_commits[0].startswith("transaction 1001 was acknowledged as committed at 1003")
        assert not verdict.is_clean


def test_a_commit_that_readers_do_not_find_is_lost_once() -> None:
    lost = [Anomaly(Kind.MISSING_VERSION, f"reader {reader} misses it", (reader, 7), "key") for reader in (8, 9)]
    verdict = judged([], anomalies=lost)
    assert len(verdict.lost_commits) == 1
    assert len(verdict.anomalies) == 2


def test_a_timestamp_given_twice_is_caught_apart_from_other_anomalies() -> None:
    twice = [
        transaction(1_001, (0, 1, 2, 3), commit=1_005, writes=["a"]),
        transaction(1_002, (0, 1, 2, 3), commit=1_005, writes=["b"]),
    ]
    verdict = judged(twice)
    assert (len(verdict.duplicate_timestamps), len(verdict.anomalies)) == (1, 0)


def test_a_lost_update_is_an_anomaly() -> None:
    both = [
        transaction(1_001, (0, 1, 2, 3), commit=1_005, snapshot=1_000),
        transaction(1_002, (0, 1, 2, 4), commit=1_006, snapshot=1_000),
    ]
    assert "lost update" in judged(both).anomalies[0]


def test_an_abort_without_a_conflict_is_the_failovers() -> None:
    aborted = transaction(1_001, (0, 1, 60, 70), reason="SnapshotTooOld")
    verdict = judged([aborted], faults=[window(90, 95), window(10, 50)])
    assert verdict.aborted_by_failover == ["transaction 1001 was aborted: SnapshotTooOld"]
    assert verdict.aborted_at == {1: 1}
    assert verdict.in_flight == [0, 1]


def test_a_conflict_needs_a_commit_that_accounts_for_it() -> None:
    loser = transaction(1_002, (0, 1, 4, 5), reason=CONFLICT, writes=["a", "b"])
    before = transaction(1_000, (0, 1, 2, 3), commit=1_001, writes=["a"])
    beside = transaction(1_003, (0, 1, 2, 3), commit=1_006, writes=["c"])
    much_later = transaction(1_009, (6, 7, 8, 9), commit=1_010, writes=["a"])
    assert [text for _, text in needless_aborts([loser, before, beside, much_later])] == [
        "transaction 1002 was aborted for a conflict, and nobody had committed to its keys"
    ]
    winner = transaction(1_004, (0, 1, 2, 3), commit=1_007, writes=["b"])
    assert not list(needless_aborts([loser, winner]))


def test_a_conflict_with_who_committed_to_a_guarded_key_is_a_transactions_own() -> None:
    loser = transaction(1_002, (0, 1, 4, 5), reason=CONFLICT, writes=["own"])
    winner = transaction(1_004, (0, 1, 2, 3), commit=1_007, writes=["other"])
    assert len(list(needless_aborts([loser, winner]))) == 1
    assert not list(needless_aborts([replace(loser, guarded=frozenset({"other"})), winner]))


def test_rivals_of_which_none_commits_are_both_aborted_needlessly() -> None:
    rivals = [transaction(start, (0, 1, 4, 5), reason=CONFLICT, writes=["rival"]) for start in (1_001, 1_002)]
    assert len(list(needless_aborts(rivals))) == 2


def test_an_outcome_that_nobody_can_tell_is_no_good_end() -> None:
    unknown = transaction(1_001, (0, 1, 4), unknown=True)
    assert [text for _, text in needless_aborts([unknown])] == ["transaction 1001 ended, and nobody can say how"]


def test_a_conflict_with_a_transaction_of_unknown_outcome_may_be_real() -> None:
    rivals = [
        transaction(1_001, (0, 1, 4), unknown=True, writes=["rival"]),
        transaction(1_002, (0, 1, 4, 5), reason=CONFLICT, writes=["rival"]),
    ]
    assert [each.id for each, _ in needless_aborts(rivals)] == [1_001]
