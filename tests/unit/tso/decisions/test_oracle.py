"""The oracle's decisions, rule by rule: what it hands out, what conflicts, and for how long one may take."""

from __future__ import annotations

import pytest

from tests.unit.tso.decisions.by_hand import (
    EPOCH,
    NOW,
    answers,
    begin,
    commit_one,
    decide,
    make,
    reasons,
    request,
    settle,
    transact,
)
from tso.decisions.oracle import Begun, Impossible, Later, Moment
from wire import HeartbeatReply, HeartbeatRequest, Reason


class TestBegin:
    def test_the_first_snapshot_is_the_epoch_and_the_first_timestamp_the_next(self) -> None:
        assert begin(make()) == Begun(EPOCH + 1, 1, EPOCH)

    def test_a_batch_shares_one_snapshot_below_all_its_timestamps(self) -> None:
        oracle = make()
        assert begin(oracle, 3) == Begun(EPOCH + 1, 3, EPOCH)
        assert begin(oracle, 2) == Begun(EPOCH + 4, 2, EPOCH + 3)

    def test_the_snapshot_stays_below_a_commit_on_its_way_and_reaches_it_when_it_is_durable(self) -> None:
        oracle = make()
        begun = begin(oracle)
        decided = decide(oracle, (begun.first_start_timestamp, begun.snapshot, [1]))
        [commit_timestamp] = decided.commit_timestamps
        assert begin(oracle).snapshot == commit_timestamp - 1
        settle(oracle, decided)
        assert begin(oracle).snapshot >= commit_timestamp

    def test_a_batch_over_the_limit_is_refused(self) -> None:
        assert isinstance(make(begin_count_max=10).begin(11, NOW), Impossible)

    def test_begins_over_their_rate_are_told_to_wait(self) -> None:
        oracle = make(begin_count_max=10, begins_per_ms_max=10, begin_burst_ms=1)
        begin(oracle, 10)
        assert oracle.begin(5, NOW) == Later(0.5)
        assert isinstance(oracle.begin(5, Moment(0, 0.5)), Begun)

    def test_an_exhausted_range_is_told_and_goes_on_with_a_new_ceiling(self) -> None:
        oracle = make(ceiling=EPOCH + 2)
        begin(oracle)
        assert isinstance(oracle.begin(1, NOW), Later)
        assert isinstance(oracle.commit(request((EPOCH + 1, EPOCH, [1])), NOW), Later)
        oracle.range.raise_ceiling(EPOCH + 3)
        assert begin(oracle).first_start_timestamp == EPOCH + 2


class TestConflicts:
    def test_the_second_of_two_concurrent_writers_of_a_cell_is_refused(self) -> None:
        oracle = make()
        one, two = begin(oracle), begin(oracle)
        assert commit_one(oracle, one.first_start_timestamp, one.snapshot, [1, 2]) is Reason.COMMITTED
        assert commit_one(oracle, two.first_start_timestamp, two.snapshot, [2, 3]) is Reason.CONFLICT

    def test_of_two_in_one_request_the_first_wins(self) -> None:
        oracle = make()
        first = begin(oracle, 2).first_start_timestamp
        decided = decide(oracle, (first, EPOCH, [1]), (first + 1, EPOCH, [1]))
        assert reasons(decided) == [Reason.COMMITTED, Reason.CONFLICT]
        assert decided.start_timestamps.tolist() == [first]
        assert decided.times[1] == 0

    def test_those_of_one_request_commit_one_after_another(self) -> None:
        oracle = make()
        first = begin(oracle, 3).first_start_timestamp
        decided = decide(oracle, (first, EPOCH, [1]), (first + 1, EPOCH, [2]), (first + 2, EPOCH, [3]))
        assert reasons(decided) == [Reason.COMMITTED] * 3
        times = decided.times.tolist()
        assert times == sorted(set(times)) == decided.commit_timestamps.tolist()

    def test_a_snapshot_below_an_undurable_commit_conflicts_although_its_start_is_above(self) -> None:
        oracle = make()
        first = begin(oracle)
        decide(oracle, (first.first_start_timestamp, first.snapshot, [1]))
        second = begin(oracle)
        assert second.first_start_timestamp > first.first_start_timestamp
        assert reasons(decide(oracle, (second.first_start_timestamp, second.snapshot, [1]))) == [Reason.CONFLICT]

    def test_later_transactions_write_the_same_cell_one_after_another(self) -> None:
        oracle = make()
        assert transact(oracle, [1]) < transact(oracle, [1]) < transact(oracle, [1])

    def test_a_refused_commit_leaves_no_trace(self) -> None:
        oracle = make()
        one, two, three = (begin(oracle) for _ in range(3))
        commit_one(oracle, one.first_start_timestamp, one.snapshot, [1])
        assert commit_one(oracle, two.first_start_timestamp, two.snapshot, [1, 9]) is Reason.CONFLICT
        assert commit_one(oracle, three.first_start_timestamp, three.snapshot, [9]) is Reason.COMMITTED

    def test_every_64_bit_cell_id_is_legal(self) -> None:
        assert transact(make(), [0, 2**63 - 1, 2**63, 2**64 - 1]) > EPOCH


class TestLimits:
    def test_a_snapshot_below_the_low_watermark_is_too_old(self) -> None:
        oracle = make(conflict_map_entries_max=4, commit_share_max=1)
        old = begin(oracle)
        transact(oracle, [1, 2, 3, 4])
        transact(oracle, [5])
        assert oracle.conflicts.low_watermark > old.snapshot
        assert commit_one(oracle, old.first_start_timestamp, old.snapshot, [99]) is Reason.TOO_OLD

    def test_the_snapshot_is_too_old_though_the_start_is_not(self) -> None:
        """What the map has forgotten lies between the two: it was on its way when the transaction began."""
        oracle = make(conflict_map_entries_max=3, commit_share_max=1)
        first = begin(oracle)
        forgotten = decide(oracle, (first.first_start_timestamp, first.snapshot, [1]))
        begun = begin(oracle)
        settle(oracle, forgotten)
        transact(oracle, [2, 3, 4])
        assert begun.snapshot < oracle.conflicts.low_watermark < begun.first_start_timestamp
        assert commit_one(oracle, begun.first_start_timestamp, begun.snapshot, [1]) is Reason.TOO_OLD

    def test_a_transaction_of_an_older_epoch_is_too_old(self) -> None:
        assert commit_one(make(), EPOCH - 5, EPOCH - 6, [1]) is Reason.TOO_OLD

    def test_a_write_set_over_its_share_of_the_map_is_refused_and_forgets_nothing(self) -> None:
        oracle = make(conflict_map_entries_max=12, commit_share_max=0.5)
        begun = begin(oracle)
        assert commit_one(oracle, begun.first_start_timestamp, begun.snapshot, list(range(7))) is Reason.TOO_LARGE
        assert oracle.conflicts.low_watermark == EPOCH
        assert commit_one(oracle, begun.first_start_timestamp, begun.snapshot, list(range(6))) is Reason.COMMITTED

    @pytest.mark.parametrize(
        ("start", "snapshot"), [(EPOCH + 2, EPOCH), (EPOCH + 1, EPOCH + 1), (EPOCH + 1, EPOCH + 9)]
    )
    def test_a_request_that_cannot_be_is_refused_as_a_whole(self, start: int, snapshot: int) -> None:
        oracle = make()
        begin(oracle)
        refused = oracle.impossible(request((EPOCH + 1, EPOCH, [1]), (start, snapshot, [2])))
        assert list(refused) == [0]
        assert commit_one(oracle, EPOCH + 1, EPOCH, [1, 2]) is Reason.COMMITTED


class TestRevalidated:
    """Commits of transactions whose client has looked for conflicts itself, up to a later snapshot."""

    def test_a_transaction_of_an_older_epoch_commits_once_it_is_validated(self) -> None:
        oracle = make()
        old = EPOCH - 10
        assert commit_one(oracle, old, old - 1, [1]) is Reason.TOO_OLD
        validated = begin(oracle).snapshot
        assert commit_one(oracle, old, old - 1, [1], validated) is Reason.COMMITTED

    def test_a_commit_after_the_validation_conflicts(self) -> None:
        oracle = make()
        old, validated = EPOCH - 10, begin(oracle).snapshot
        transact(oracle, [1])
        assert commit_one(oracle, old, old - 1, [1], validated) is Reason.CONFLICT

    def test_a_validation_of_an_older_epoch_does_not_count(self) -> None:
        oracle = make()
        assert commit_one(oracle, EPOCH - 10, EPOCH - 11, [1], validated=EPOCH - 1) is Reason.TOO_OLD

    def test_one_whose_snapshot_was_evicted_commits_once_it_is_validated(self) -> None:
        oracle = make(conflict_map_entries_max=4, commit_share_max=1)
        slow = begin(oracle)
        for cell in range(4):
            transact(oracle, [cell, 10 + cell])
        start, snapshot = slow.first_start_timestamp, slow.snapshot
        assert commit_one(oracle, start, snapshot, [99]) is Reason.TOO_OLD
        assert commit_one(oracle, start, snapshot, [99], begin(oracle).snapshot) is Reason.COMMITTED

    def test_the_same_validated_commit_asked_twice_gets_the_same_answer(self) -> None:
        oracle = make()
        old, validated = EPOCH - 10, begin(oracle).snapshot
        first = decide(oracle, (old, old - 1, [1]), validated=[validated])
        again = decide(oracle, (old, old - 1, [1]), validated=[validated])
        assert answers(first) == answers(again)
        assert again.start_timestamps.size == 0, "it is not written a second time"

    def test_a_snapshot_that_was_never_handed_out_is_refused(self) -> None:
        oracle = make()
        begun = begin(oracle)
        wrong = request((begun.first_start_timestamp, begun.snapshot, [1]), validated=[10**8])
        assert "validated snapshot" in oracle.impossible(wrong)[0].reason


class TestLives:
    def test_a_transaction_that_nothing_was_heard_of_is_given_up(self) -> None:
        oracle = make(transaction_life_ms=1000)
        oracle.observe(NOW)
        silent, beating = begin(oracle), begin(oracle)
        oracle.observe(Moment(0, 500))
        later, end = Moment(0, 900), Moment(0, 1600)
        request_to_live = HeartbeatRequest([beating.first_start_timestamp], [beating.snapshot])  # type: ignore[arg-type]
        assert oracle.heartbeat(request_to_live, later) == HeartbeatReply([1])  # type: ignore[arg-type]
        oracle.observe(end)
        assert commit_one(oracle, silent.first_start_timestamp, silent.snapshot, [1], now=end) is Reason.EXPIRED
        assert commit_one(oracle, beating.first_start_timestamp, beating.snapshot, [2], now=end) is Reason.COMMITTED

    def test_a_commit_asked_again_after_a_life_still_gets_its_answer(self) -> None:
        oracle = make(transaction_life_ms=1000)
        oracle.observe(NOW)
        begun = begin(oracle)
        oracle.observe(Moment(0, 500))
        assert commit_one(oracle, begun.first_start_timestamp, begun.snapshot, [1]) is Reason.COMMITTED
        end = Moment(0, 5000)
        oracle.observe(end)
        assert commit_one(oracle, begun.first_start_timestamp, begun.snapshot, [1], now=end) is Reason.COMMITTED

    def test_what_may_have_committed_in_an_older_epoch_is_too_old_and_not_given_up(self) -> None:
        oracle = make(transaction_life_ms=1000)
        oracle.observe(NOW)
        end = Moment(0, 5000)
        oracle.observe(end)
        assert commit_one(oracle, EPOCH - 10, EPOCH - 11, [1], now=end) is Reason.TOO_OLD

    def test_a_heartbeat_names_a_snapshot_below_its_start(self) -> None:
        oracle = make()
        start = begin(oracle).first_start_timestamp
        answer = oracle.heartbeat(HeartbeatRequest([start], [start]), NOW)  # type: ignore[arg-type]
        assert isinstance(answer, Impossible)
        assert "a snapshot lies below" in answer.reason
        assert len(oracle.lives) == 0

    def test_heartbeats_have_a_limit(self) -> None:
        oracle = make(heartbeat_transactions_max=1)
        first, second = begin(oracle).first_start_timestamp, begin(oracle).first_start_timestamp
        assert isinstance(oracle.heartbeat(HeartbeatRequest([first], [1]), NOW), HeartbeatReply)  # type: ignore[arg-type]
        assert isinstance(oracle.heartbeat(HeartbeatRequest([second], [1]), NOW), Later)  # type: ignore[arg-type]
        assert isinstance(oracle.heartbeat(HeartbeatRequest([first], [1]), NOW), HeartbeatReply), "again"  # type: ignore[arg-type]
        assert isinstance(oracle.heartbeat(HeartbeatRequest([10**8], [1]), NOW), Impossible)  # type: ignore[arg-type]
