"""The pipeline: what is answered when, in what order, and what is refused. A fake commit table ends the writes."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

import numpy as np
import pytest

from store import StoreUnavailable
from tso.persistence.pipeline import ANSWERED_FIRST_COMMITS
from wire import (
    AbortRequest,
    BadRequest,
    BeginReply,
    BeginRequest,
    CommitReply,
    CommitRequest,
    NotPrimary,
    OutcomeReply,
    OutcomeRequest,
    OutcomeStatus,
    Overloaded,
    Reason,
)

if TYPE_CHECKING:
    from tests.unit.tso.conftest import Rig, RunPipeline

EPOCH = 1000
DRAIN_MS = 20_000


def ids(*start_timestamps: int) -> np.ndarray[tuple[int], np.dtype[np.int64]]:
    return np.array(start_timestamps, "<i8")


def test_a_transaction_begins_commits_and_is_in_the_table(run: RunPipeline) -> None:
    async def scenario(rig: Rig) -> None:
        begun = await rig.begin()
        assert begun == BeginReply(EPOCH + 1, 1, EPOCH, EPOCH)
        reply = await rig.answer(rig.commit(begun, 7))
        assert isinstance(reply, CommitReply)
        assert rig.table.commits == {EPOCH + 1: int(reply.commit_timestamps[0])}

    run(scenario)


def test_begins_do_not_wait_for_a_slow_write(run: RunPipeline) -> None:
    async def scenario(rig: Rig) -> None:
        begun = await rig.begin()
        gate = rig.table.hold(begun.first_start_timestamp)
        slow = rig.commit(begun, 7)
        await rig.until(lambda: len(rig.table.writes) == 1)
        meanwhile = await rig.begin()
        assert slow not in rig.requester.answers
        gate.set()
        reply = await rig.answer(slow)
        assert isinstance(reply, CommitReply)
        assert meanwhile.snapshot < reply.commit_timestamps[0] < meanwhile.first_start_timestamp
        assert (await rig.begin()).snapshot >= reply.commit_timestamps[0]

    run(scenario)


@pytest.mark.parametrize(("commits", "early"), [(ANSWERED_FIRST_COMMITS, True), (ANSWERED_FIRST_COMMITS - 1, False)])
def test_who_began_goes_on_while_many_commits_are_decided_over(run: RunPipeline, commits: int, early: bool) -> None:
    async def scenario(rig: Rig) -> None:
        begun = await rig.begin(commits)
        starts = list(range(begun.first_start_timestamp, begun.first_start_timestamp + commits))
        commit = rig.submit(rig.commit_request(starts, begun.snapshot, []))
        begin = rig.submit(BeginRequest(1))
        await rig.answer(commit)
        assert [begin in answered for answered, _ in rig.sent_early] == [True] * early
        assert [decided for _, decided in rig.sent_early] == [0] * early

    run(scenario)


def test_commits_are_acknowledged_in_order_although_a_later_write_ends_first(run: RunPipeline) -> None:
    async def scenario(rig: Rig) -> None:
        first, second = await rig.begin(), await rig.begin()
        gate = rig.table.hold(first.first_start_timestamp)
        one = rig.commit(first, 1)
        await rig.until(lambda: len(rig.table.writes) == 1)
        two = rig.commit(second, 2)
        await rig.until(lambda: second.first_start_timestamp in rig.table.commits)
        await rig.settle()
        assert not {one, two} & set(rig.requester.answers)
        gate.set()
        await rig.answer(two)
        assert rig.requester.order[-2:] == [one, two]

    run(scenario)


def test_what_comes_during_the_writes_goes_with_the_next_one(run: RunPipeline) -> None:
    async def scenario(rig: Rig) -> None:
        begun = await rig.begin(4)
        starts = [begun.first_start_timestamp + index for index in range(4)]
        gate = rig.table.hold(starts[0])
        requests = [rig.submit(rig.commit_request([starts[0]], EPOCH, [0]))]
        await rig.until(lambda: len(rig.table.writes) == 1)
        requests += [rig.submit(rig.commit_request([start], EPOCH, [start])) for start in starts[1:]]
        gate.set()
        await rig.answer(requests[-1])
        assert rig.table.writes == [[starts[0]], starts[1:]]

    run(scenario, commit_writers=1)


def test_a_write_is_bounded(run: RunPipeline) -> None:
    async def scenario(rig: Rig) -> None:
        begun = await rig.begin(4)
        starts = [begun.first_start_timestamp + index for index in range(4)]
        requests = [rig.submit(rig.commit_request([start], EPOCH, [start])) for start in starts]
        await rig.answer(requests[-1])
        assert rig.table.writes == [starts[:2], starts[2:]]

    run(scenario, commit_writers=1, write_batch_commits_max=2)


def test_a_repeated_commit_waits_for_the_first_ones_write(run: RunPipeline) -> None:
    async def scenario(rig: Rig) -> None:
        begun = await rig.begin()
        gate = rig.table.hold(begun.first_start_timestamp)
        once = rig.commit(begun, 7)
        await rig.until(lambda: len(rig.table.writes) == 1)
        again = rig.commit(begun, 7)
        await rig.settle()
        assert again not in rig.requester.answers
        gate.set()
        assert await rig.answer(again) == await rig.answer(once)
        assert len(rig.table.writes) == 1

    run(scenario)


def test_a_conflict_with_a_commit_on_its_way_is_told_after_it(run: RunPipeline) -> None:
    async def scenario(rig: Rig) -> None:
        begun = await rig.begin(2)
        gate = rig.table.hold(begun.first_start_timestamp)
        rig.submit(rig.commit_request([begun.first_start_timestamp], EPOCH, [7]))
        loser = rig.submit(rig.commit_request([begun.first_start_timestamp + 1], EPOCH, [7]))
        await rig.settle()
        assert loser not in rig.requester.answers
        gate.set()
        assert rig.reason_of(await rig.answer(loser)) is Reason.CONFLICT

    run(scenario)


def test_what_is_still_on_its_way_is_not_called_durable(run: RunPipeline) -> None:
    async def scenario(rig: Rig) -> None:
        begun = await rig.begin()
        gate = rig.table.hold(begun.first_start_timestamp)
        commit = rig.commit(begun, 1)
        await rig.until(lambda: len(rig.table.writes) == 1)
        rig.pipeline.observe()
        under_way = rig.pipeline.durable
        gate.set()
        reply = await rig.answer(commit)
        assert isinstance(reply, CommitReply)
        assert under_way < int(reply.commit_timestamps[0])
        rig.pipeline.observe()
        assert rig.pipeline.durable >= int(reply.commit_timestamps[0])

    run(scenario)


def test_an_abort_is_answered_after_its_fence_and_holds(run: RunPipeline) -> None:
    async def scenario(rig: Rig) -> None:
        begun = await rig.begin()
        rig.table.lookups_open.clear()
        abort = rig.submit(AbortRequest(ids(begun.first_start_timestamp)))
        assert rig.reason_of(await rig.answer(rig.commit(begun, 7))) is Reason.ABORTED
        assert abort not in rig.requester.answers
        rig.table.lookups_open.set()
        assert await rig.answer(abort) == OutcomeReply(np.array([OutcomeStatus.ABORTED]), np.array([0]))
        assert rig.table.aborted == [begun.first_start_timestamp]

    run(scenario)


def test_an_abort_that_comes_after_the_commit_waits_for_it_and_touches_nothing(run: RunPipeline) -> None:
    async def scenario(rig: Rig) -> None:
        begun = await rig.begin(2)
        start = begun.first_start_timestamp
        gate = rig.table.hold(start)
        rig.submit(rig.commit_request([start], EPOCH, [7]))
        abort = rig.submit(AbortRequest(ids(start + 1, start, start + 1)))
        await rig.until(lambda: len(rig.table.writes) == 1)
        await rig.settle()
        assert abort not in rig.requester.answers
        assert rig.table.aborted == []
        gate.set()
        reply = await rig.answer(abort)
        assert reply == OutcomeReply(np.array([2, 1, 2], "u1"), np.array([0, rig.table.commits[start], 0]))
        assert rig.table.aborted == [start + 1]

    run(scenario)


def test_outcomes_come_from_memory_and_from_the_table_and_change_nothing(run: RunPipeline) -> None:
    async def scenario(rig: Rig) -> None:
        begun = await rig.begin(2)
        start = begun.first_start_timestamp
        await rig.ask(rig.commit_request([start], EPOCH, [7]))
        rig.table.commits[EPOCH - 5] = EPOCH - 4
        reply = await rig.ask(OutcomeRequest(ids(EPOCH - 5, start + 1, start)))
        assert reply == OutcomeReply(np.array([1, 0, 1], "u1"), np.array([EPOCH - 4, 0, rig.table.commits[start]]))
        assert rig.reason_of(await rig.ask(rig.commit_request([start + 1], EPOCH, [8]))) is Reason.COMMITTED

    run(scenario)


def test_an_abort_that_the_table_cannot_take_yet_is_tried_again_before_it_is_told(run: RunPipeline) -> None:
    async def scenario(rig: Rig) -> None:
        begun = await rig.begin()
        rig.table.errors = [StoreUnavailable("gone")]
        reply = await rig.ask(AbortRequest(ids(begun.first_start_timestamp)))
        assert isinstance(reply, OutcomeReply)
        assert reply.statuses.tolist() == [OutcomeStatus.ABORTED]

    run(scenario)


def test_beyond_its_limits_it_says_overloaded_and_recovers(run: RunPipeline) -> None:
    async def scenario(rig: Rig) -> None:
        begun = await rig.begin(3)
        start = begun.first_start_timestamp
        gate = rig.table.hold(start)
        rig.submit(rig.commit_request([start, start + 1], EPOCH, []))
        assert await rig.ask(rig.commit_request([start + 2], EPOCH, [9])) == Overloaded(20)
        assert isinstance(await rig.ask(rig.commit_request([start, start, start], EPOCH, [9])), BadRequest)
        assert isinstance(await rig.begin(), BeginReply)
        gate.set()
        await rig.until(lambda: rig.pipeline.transactions_in_flight == 0)
        assert rig.reason_of(await rig.ask(rig.commit_request([start + 2], EPOCH, [9]))) is Reason.COMMITTED

    run(scenario, transactions_in_flight_max=2)


def test_look_ups_are_bounded(run: RunPipeline) -> None:
    async def scenario(rig: Rig) -> None:
        rig.table.lookups_open.clear()
        first = rig.submit(OutcomeRequest(ids(1, 2)))
        await rig.settle()
        assert await rig.ask(OutcomeRequest(ids(3))) == Overloaded(20)
        assert isinstance(await rig.ask(OutcomeRequest(ids(1, 2, 3))), BadRequest)
        rig.table.lookups_open.set()
        await rig.answer(first)
        assert isinstance(await rig.ask(OutcomeRequest(ids(3))), OutcomeReply)

    run(scenario, lookup_ids_max=2, lookups_pending_max=2)


def test_a_commit_of_an_older_epochs_transaction_waits_for_no_look_up(run: RunPipeline) -> None:
    async def scenario(rig: Rig) -> None:
        gate = rig.table.hold(EPOCH - 20)
        questions = [rig.submit(OutcomeRequest(ids(EPOCH - 20))) for _ in range(3)]
        await rig.until(lambda: rig.pipeline.waiting()[2] == len(questions))
        older = CommitRequest(ids(EPOCH - 5), ids(EPOCH - 6), ids(EPOCH), np.zeros(2, "<u4"), np.array([], "<u8"))
        commit = rig.submit(older)
        assert rig.reason_of(await rig.answer(commit)) is Reason.COMMITTED
        assert not set(questions) & set(rig.requester.answers)
        gate.set()
        for question in questions:
            await rig.answer(question)

    run(scenario, lookup_threads=2)


def test_begins_over_their_rate_and_beyond_the_ceiling_are_told_when_to_come_again(run: RunPipeline) -> None:
    async def scenario(rig: Rig) -> None:
        await rig.begin(10)
        assert await rig.ask(BeginRequest(10)) == Overloaded(1)
        rig.now_ms += 1
        assert await rig.ask(BeginRequest(1)) == Overloaded(20)
        rig.tenure.ceiling += 100
        assert isinstance(await rig.ask(BeginRequest(1)), BeginReply)

    run(scenario, ceiling=EPOCH + 11, begin_count_max=10, begins_per_ms_max=10, begin_burst_ms=1)


def test_an_impossible_commit_is_refused_and_the_connection_stays(run: RunPipeline) -> None:
    async def scenario(rig: Rig) -> None:
        refused = await rig.ask(rig.commit_request([EPOCH + 50], EPOCH, [1]))
        assert isinstance(refused, BadRequest)
        assert "never been handed out" in refused.text
        assert isinstance(await rig.ask(AbortRequest(ids(EPOCH + 50))), BadRequest)
        assert isinstance(await rig.ask(BeginRequest(10_001)), BadRequest)
        assert not rig.requester.dropped

    run(scenario)


def test_draining_finishes_what_is_under_way_and_takes_nothing_new(run: RunPipeline) -> None:
    async def scenario(rig: Rig) -> None:
        begun = await rig.begin()
        gate = rig.table.hold(begun.first_start_timestamp)
        commit = rig.commit(begun, 7)
        await rig.until(lambda: len(rig.table.writes) == 1)
        drained = asyncio.create_task(rig.pipeline.drain(DRAIN_MS))
        undecided = rig.submit(BeginRequest(1))
        assert await rig.answer(undecided) == NotPrimary()
        assert await rig.ask(BeginRequest(1)) == NotPrimary()
        assert not drained.done()
        gate.set()
        assert rig.reason_of(await rig.answer(commit)) is Reason.COMMITTED
        await drained
        assert rig.pipeline.ended
        assert rig.deposed == []
        assert not rig.requester.dropped

    run(scenario)


def test_a_second_drain_waits_as_the_first_one_does(run: RunPipeline) -> None:
    async def scenario(rig: Rig) -> None:
        begun = await rig.begin()
        gate = rig.table.hold(begun.first_start_timestamp)
        commit = rig.commit(begun, 1)
        await rig.until(lambda: len(rig.table.writes) == 1)
        drains = [asyncio.create_task(rig.pipeline.drain(20_000)) for _ in range(2)]
        await rig.settle()
        gate.set()
        assert rig.reason_of(await rig.answer(commit)) is Reason.COMMITTED
        await asyncio.gather(*drains)
        assert not rig.requester.dropped

    run(scenario)


def test_a_drain_has_a_limit(run: RunPipeline) -> None:
    async def scenario(rig: Rig) -> None:
        begun = await rig.begin()
        gate = rig.table.hold(begun.first_start_timestamp)
        commit = rig.commit(begun, 7)
        await rig.until(lambda: len(rig.table.writes) == 1)
        await rig.pipeline.drain(10)
        assert rig.requester.dropped
        gate.set()
        await rig.until(lambda: begun.first_start_timestamp in rig.table.commits)
        await rig.settle()
        assert commit not in rig.requester.answers

    run(scenario)
