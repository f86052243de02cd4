"""The oracle's decisions: rules one by one, then any history against a naive model of snapshot isolation."""

from __future__ import annotations

import numpy as np
import pytest

from tso.oracle import Begun, Decided, Impossible, Later, Moment, Oracle, Recalled
from tso.settings import Limits
from wire import CommitRequest, HeartbeatReply, HeartbeatRequest, Reason

EPOCH = 1000
NOW = Moment(wall_ms=0, monotonic_ms=0.0)


def make(ceiling: int = 10**9, **limits: float) -> Oracle:
    return Oracle(EPOCH, ceiling, Limits(**limits))  # type: ignore[arg-type]


def begin(oracle: Oracle, count: int = 1) -> Begun:
    begun = oracle.begin(count, NOW)
    assert isinstance(begun, Begun)
    return begun


def request(*commits: tuple[int, int, list[int]], validated: list[int] | None = None) -> CommitRequest:
    starts, snapshots, cells = zip(*commits, strict=True)
    offsets = np.cumsum([0, *map(len, cells)])
    flat = [cell for write_set in cells for cell in write_set]
    validated = validated or [0] * len(starts)
    return CommitRequest(starts, snapshots, validated, offsets, flat)  # type: ignore[arg-type]


def decide(
    oracle: Oracle, *commits: tuple[int, int, list[int]], validated: list[int] | None = None, now: Moment = NOW
) -> Decided:
    decided = oracle.commit(request(*commits, validated=validated), now)
    assert isinstance(decided, Decided)
    return decided


def settle(oracle: Oracle, decided: Decided) -> Decided:
    if decided.start_timestamps:
        oracle.persisted(decided.number)
    oracle.release()
    return decided


def reasons(decided: Decided) -> list[Reason]:
    return [Reason(code) for code in decided.reply.reasons]


def commit_one(
    oracle: Oracle, start: int, snapshot: int, cells: list[int], validated: int = 0, now: Moment = NOW
) -> Reason:
    decided = decide(oracle, (start, snapshot, cells), validated=[validated], now=now)
    return reasons(settle(oracle, decided))[0]


def transact(oracle: Oracle, cells: list[int]) -> int:
    begun = begin(oracle)
    decided = settle(oracle, decide(oracle, (begun.first_start_timestamp, begun.snapshot, cells)))
    assert reasons(decided) == [Reason.COMMITTED]
    return int(decided.reply.commit_timestamps[0])


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
        assert decided.start_timestamps == (first,)
        assert decided.reply.commit_timestamps[1] == 0

    def test_those_of_one_request_commit_one_after_another(self) -> None:
        oracle = make()
        first = begin(oracle, 3).first_start_timestamp
        decided = decide(oracle, (first, EPOCH, [1]), (first + 1, EPOCH, [2]), (first + 2, EPOCH, [3]))
        assert reasons(decided) == [Reason.COMMITTED] * 3
        assert list(decided.commit_timestamps) == sorted(set(decided.commit_timestamps))

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
        oracle = make(conflict_map_entries_max=5, commit_share_max=1)
        old = begin(oracle)
        transact(oracle, [1, 2, 3, 4])
        transact(oracle, [5])
        assert oracle.conflicts.low_watermark > old.snapshot
        assert commit_one(oracle, old.first_start_timestamp, old.snapshot, [99]) is Reason.TOO_OLD

    def test_the_snapshot_is_too_old_though_the_start_is_not(self) -> None:
        """What the map has forgotten lies between the two: it was on its way when the transaction began."""
        oracle = make(conflict_map_entries_max=4, commit_share_max=1)
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
        assert commit_one(oracle, begun.first_start_timestamp, begun.snapshot, list(range(6))) is Reason.TOO_LARGE
        assert oracle.conflicts.low_watermark == EPOCH
        assert commit_one(oracle, begun.first_start_timestamp, begun.snapshot, list(range(5))) is Reason.COMMITTED

    @pytest.mark.parametrize(
        ("start", "snapshot"), [(EPOCH + 2, EPOCH), (EPOCH + 1, EPOCH + 1), (EPOCH + 1, EPOCH + 9)]
    )
    def test_a_request_that_cannot_be_is_refused_as_a_whole(self, start: int, snapshot: int) -> None:
        oracle = make()
        begin(oracle)
        refused = oracle.commit(request((EPOCH + 1, EPOCH, [1]), (start, snapshot, [2])), NOW)
        assert isinstance(refused, Impossible)
        assert commit_one(oracle, EPOCH + 1, EPOCH, [1, 2]) is Reason.COMMITTED


class TestRepeatedCommits:
    def test_a_repeated_commit_gets_the_same_answer(self) -> None:
        oracle = make()
        begun = begin(oracle)
        once = decide(oracle, (begun.first_start_timestamp, begun.snapshot, [1]))
        again = decide(oracle, (begun.first_start_timestamp, begun.snapshot, [1]))
        assert again.reply == once.reply
        assert again.start_timestamps == ()
        assert oracle.release() == [], "the first is not durable: neither may be answered"
        oracle.persisted(once.number)
        assert oracle.release() == [once.number, again.number]

    def test_twice_in_one_request(self) -> None:
        oracle = make()
        start = begin(oracle).first_start_timestamp
        decided = decide(oracle, (start, EPOCH, [1]), (start, EPOCH, [1]))
        assert reasons(decided) == [Reason.COMMITTED, Reason.COMMITTED]
        assert decided.reply.commit_timestamps[0] == decided.reply.commit_timestamps[1]
        assert decided.start_timestamps == (start,)

    def test_a_refusal_is_repeated_too(self) -> None:
        oracle = make()
        one, two = begin(oracle), begin(oracle)
        commit_one(oracle, one.first_start_timestamp, one.snapshot, [1])
        assert commit_one(oracle, two.first_start_timestamp, two.snapshot, [1]) is Reason.CONFLICT
        assert commit_one(oracle, two.first_start_timestamp, two.snapshot, [7]) is Reason.CONFLICT

    @pytest.mark.parametrize("cells", [[1], []])
    @pytest.mark.parametrize("again", [[1], [], [77]])
    def test_a_forgotten_commit_is_never_called_a_conflict_nor_committed_again(
        self, cells: list[int], again: list[int]
    ) -> None:
        oracle = make(conflict_map_entries_max=4, commit_share_max=1)
        begun = begin(oracle)
        commit_one(oracle, begun.first_start_timestamp, begun.snapshot, cells)
        transact(oracle, [2])
        transact(oracle, [3])
        assert commit_one(oracle, begun.first_start_timestamp, begun.snapshot, again) is Reason.TOO_OLD

    def test_a_commit_on_its_way_is_known_even_when_the_map_has_forgotten_it(self) -> None:
        oracle = make(conflict_map_entries_max=4, commit_share_max=1)
        begun = begin(oracle, 3)
        start = begun.first_start_timestamp
        first = decide(oracle, (start, EPOCH, [1]))
        decide(oracle, (start + 1, EPOCH, [2, 3, 4]))
        assert oracle.conflicts.decision_of(start) is None
        assert decide(oracle, (start, EPOCH, [1])).reply == first.reply
        recalled = oracle.abort([start])
        assert isinstance(recalled, Recalled)
        assert recalled.committed == {start: first.commit_timestamps[0]}


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
        assert first.reply == again.reply
        assert again.start_timestamps == (), "it is not written a second time"

    def test_a_snapshot_that_was_never_handed_out_is_refused(self) -> None:
        oracle = make()
        begun = begin(oracle)
        wrong = request((begun.first_start_timestamp, begun.snapshot, [1]), validated=[10**8])
        assert isinstance(oracle.commit(wrong, NOW), Impossible)


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

    def test_heartbeats_have_a_limit(self) -> None:
        oracle = make(heartbeat_transactions_max=1)
        first, second = begin(oracle).first_start_timestamp, begin(oracle).first_start_timestamp
        assert isinstance(oracle.heartbeat(HeartbeatRequest([first], [1]), NOW), HeartbeatReply)  # type: ignore[arg-type]
        assert isinstance(oracle.heartbeat(HeartbeatRequest([second], [1]), NOW), Later)  # type: ignore[arg-type]
        assert isinstance(oracle.heartbeat(HeartbeatRequest([first], [1]), NOW), HeartbeatReply), "again"  # type: ignore[arg-type]
        assert isinstance(oracle.heartbeat(HeartbeatRequest([10**8], [1]), NOW), Impossible)  # type: ignore[arg-type]


class TestAborts:
    def test_an_aborted_transaction_cannot_commit(self) -> None:
        oracle = make()
        begun = begin(oracle)
        assert oracle.abort([begun.first_start_timestamp]) == Recalled(None, {}, (begun.first_start_timestamp,))
        assert commit_one(oracle, begun.first_start_timestamp, begun.snapshot, [1]) is Reason.ABORTED

    def test_an_abort_after_the_commit_learns_of_it_once_it_is_durable(self) -> None:
        oracle = make()
        begun = begin(oracle)
        start = begun.first_start_timestamp
        decided = decide(oracle, (start, begun.snapshot, [1]))
        recalled = oracle.abort([start])
        assert isinstance(recalled, Recalled)
        assert recalled.committed == {start: decided.commit_timestamps[0]}
        assert oracle.release() == []
        oracle.persisted(decided.number)
        assert oracle.release() == [decided.number, recalled.number]

    def test_an_abort_of_a_refused_transaction_is_one_for_the_commit_table(self) -> None:
        oracle = make()
        one, two = begin(oracle), begin(oracle)
        commit_one(oracle, one.first_start_timestamp, one.snapshot, [1])
        commit_one(oracle, two.first_start_timestamp, two.snapshot, [1])
        assert oracle.abort([two.first_start_timestamp]) == Recalled(None, {}, (two.first_start_timestamp,))

    def test_a_forgotten_abort_cannot_be_overtaken_by_a_commit(self) -> None:
        oracle = make(remembered_aborts_max=1)
        first, second = begin(oracle), begin(oracle)
        for begun in (first, second):
            oracle.abort([begun.first_start_timestamp])
            oracle.fenced([begun.first_start_timestamp])
        assert commit_one(oracle, first.first_start_timestamp, first.snapshot, [1]) is Reason.TOO_OLD
        assert transact(oracle, [1]) > 0, "new transactions are not touched"

    def test_a_forgotten_abort_cannot_be_overtaken_by_a_commit_that_was_validated_before_its_fence(self) -> None:
        oracle = make(remembered_aborts_max=1)
        first, second = begin(oracle), begin(oracle)
        oracle.abort([first.first_start_timestamp])
        validated = begin(oracle).snapshot
        for begun in (first, second):
            oracle.fenced([begun.first_start_timestamp])
        assert commit_one(oracle, first.first_start_timestamp, first.snapshot, [1], validated) is Reason.TOO_OLD

    def test_an_abort_is_not_forgotten_before_its_fence_stands(self) -> None:
        oracle = make(remembered_aborts_max=1)
        waiting, *others = (begin(oracle).first_start_timestamp for _ in range(4))
        oracle.abort([waiting])
        for start in others:
            oracle.abort([start])
            oracle.fenced([start])
        fresh = begin(oracle).snapshot
        assert commit_one(oracle, waiting, waiting - 1, [1], validated=fresh) is Reason.ABORTED

    def test_an_abort_of_a_forgotten_commit_does_not_make_it_an_aborted_one(self) -> None:
        oracle = make(conflict_map_entries_max=4, commit_share_max=1)
        begun = begin(oracle)
        start = begun.first_start_timestamp
        commit_one(oracle, start, begun.snapshot, [1])
        transact(oracle, [2, 3, 4])
        assert oracle.abort([start]) == Recalled(None, {}, (start,)), "the commit table knows"
        assert commit_one(oracle, start, begun.snapshot, [1]) is Reason.TOO_OLD

    def test_an_abort_of_an_older_epochs_transaction_is_one_for_the_commit_table(self) -> None:
        oracle = make()
        assert oracle.abort([EPOCH - 7]) == Recalled(None, {}, (EPOCH - 7,))
        assert commit_one(oracle, EPOCH - 7, EPOCH - 8, [1]) is Reason.TOO_OLD, "it may have committed before"

    def test_a_transaction_that_never_began_cannot_be_aborted(self) -> None:
        oracle = make()
        assert isinstance(oracle.abort([EPOCH + 1]), Impossible)
        begun = begin(oracle)
        assert commit_one(oracle, begun.first_start_timestamp, begun.snapshot, [1]) is Reason.COMMITTED

    @pytest.mark.parametrize("wrong", [0, -1])
    def test_what_is_no_start_timestamp_is_refused_with_all_that_is_asked_beside_it(self, wrong: int) -> None:
        oracle = make()
        begun = begin(oracle)
        for ask in (oracle.abort, oracle.recall):
            refused = ask([begun.first_start_timestamp, wrong])
            assert isinstance(refused, Impossible)
            assert f"{wrong} is no start timestamp" in refused.reason
        assert commit_one(oracle, begun.first_start_timestamp, begun.snapshot, [1]) is Reason.COMMITTED

    def test_asking_changes_nothing(self) -> None:
        oracle = make()
        begun = begin(oracle)
        assert oracle.recall([begun.first_start_timestamp]) == Recalled(None, {}, (begun.first_start_timestamp,))
        assert commit_one(oracle, begun.first_start_timestamp, begun.snapshot, [1]) is Reason.COMMITTED
