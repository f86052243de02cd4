"""What an oracle decided once stays decided, by whatever it is asked again: commits, aborts, and what it forgot."""

from __future__ import annotations

import pytest

from tests.unit.tso.decisions.by_hand import EPOCH, answers, begin, commit_one, decide, make, reasons, transact
from tso.decisions.oracle import Impossible, Recalled
from wire import Reason


class TestRepeatedCommits:
    def test_a_repeated_commit_gets_the_same_answer(self) -> None:
        oracle = make()
        begun = begin(oracle)
        once = decide(oracle, (begun.first_start_timestamp, begun.snapshot, [1]))
        again = decide(oracle, (begun.first_start_timestamp, begun.snapshot, [1]))
        assert answers(again) == answers(once)
        assert again.start_timestamps.size == 0
        assert oracle.release() == [], "the first is not durable: neither may be answered"
        oracle.persisted(once.number)
        assert oracle.release() == [once.number, again.number]

    def test_twice_in_one_request(self) -> None:
        oracle = make()
        start = begin(oracle).first_start_timestamp
        decided = decide(oracle, (start, EPOCH, [1]), (start, EPOCH, [1]))
        assert reasons(decided) == [Reason.COMMITTED, Reason.COMMITTED]
        assert decided.times[0] == decided.times[1]
        assert decided.start_timestamps.tolist() == [start]

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
        oracle = make(remembered_decisions_max=2, transactions_in_flight_max=2)
        begun = begin(oracle)
        commit_one(oracle, begun.first_start_timestamp, begun.snapshot, cells)
        transact(oracle, [2])
        transact(oracle, [3])
        assert commit_one(oracle, begun.first_start_timestamp, begun.snapshot, again) is Reason.TOO_OLD

    def test_a_commit_on_its_way_is_known_though_its_cells_are_forgotten(self) -> None:
        oracle = make(conflict_map_entries_max=4, commit_share_max=1)
        begun = begin(oracle, 3)
        start = begun.first_start_timestamp
        first = decide(oracle, (start, EPOCH, [1]))
        decide(oracle, (start + 1, EPOCH, [2, 3, 4, 5]))
        assert oracle.conflicts.low_watermark >= first.times[0]
        assert answers(decide(oracle, (start, EPOCH, [1]))) == answers(first)
        recalled = oracle.abort([start])
        assert isinstance(recalled, Recalled)
        assert recalled.committed == {start: first.commit_timestamps[0]}


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

    def test_a_refusal_stays_what_it_was_when_an_abort_follows(self) -> None:
        oracle = make()
        one, two = begin(oracle), begin(oracle)
        commit_one(oracle, one.first_start_timestamp, one.snapshot, [1])
        assert commit_one(oracle, two.first_start_timestamp, two.snapshot, [1]) is Reason.CONFLICT
        oracle.abort([two.first_start_timestamp])
        assert commit_one(oracle, two.first_start_timestamp, two.snapshot, [1]) is Reason.CONFLICT

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
        oracle = make(remembered_decisions_max=2, transactions_in_flight_max=2)
        begun = begin(oracle)
        start = begun.first_start_timestamp
        commit_one(oracle, start, begun.snapshot, [1])
        transact(oracle, [2])
        transact(oracle, [3])
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
