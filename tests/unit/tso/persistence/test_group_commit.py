"""When commits are decided and written: at once while a writer would take them, else with what comes meanwhile."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pytest

from tests.unit.tso.conftest import WAIT_S
from tso.persistence import writers
from tso.persistence.pipeline import UNDECIDED_BYTES_MAX
from tso.persistence.writers import GATHER_MS, QUICK_MS_MAX
from wire import (
    HEADER_BYTES,
    BadRequest,
    BeginReply,
    BeginRequest,
    Frame,
    Kind,
    NotPrimary,
    OutcomeReply,
    OutcomeRequest,
    Reason,
)

if TYPE_CHECKING:
    from tests.unit.tso.conftest import FakeRequester, Rig, RunPipeline

EPOCH = 1000
DRAIN_MS = 20_000
KEPT_BUSY = 2
"""Transactions of the write that is under way in these tests."""


class Busy:
    """A pipeline with one write under way until ``gate`` is set, and transactions that have begun and not committed."""

    def __init__(self, rig: Rig, begun: BeginReply, kept_busy: int = KEPT_BUSY) -> None:
        self.rig = rig
        self.starts = [begun.first_start_timestamp + index for index in range(begun.count)]
        self.gate = rig.table.hold(self.starts[0])
        self.written = rig.submit(rig.commit_request(self.starts[:kept_busy], EPOCH, []))
        self.waiting = self.starts[kept_busy:]

    def commit(self, start: int, cells: int = 1, requester: FakeRequester | None = None) -> int:
        return self.rig.submit(self.rig.commit_request([start], EPOCH, list(range(cells))), requester)

    @property
    def decided(self) -> int:
        return self.rig.pipeline.oracle.counts.commits


async def wait_for_others(
    rig: Rig, monkeypatch: pytest.MonkeyPatch, *, waiting: int, took_ms: float, gather_ms: float
) -> Busy:
    """A write of four has ended, after so long, and so many commits wait; others have begun."""
    monkeypatch.setattr(writers, "GATHER_MS", gather_ms)
    busy = Busy(rig, await rig.begin(8), 4)
    await rig.until(lambda: len(rig.table.writes) == 1)
    for start in busy.waiting[:waiting]:
        busy.commit(start, cells=0)
    await rig.settle()
    rig.now_ms += took_ms
    busy.gate.set()
    await rig.answer(busy.written)
    return busy


async def keep_busy(rig: Rig, transactions: int) -> Busy:
    before = len(rig.table.writes)
    busy = Busy(rig, await rig.begin(KEPT_BUSY + transactions))
    await rig.until(lambda: len(rig.table.writes) == before + 1)
    return busy


def test_what_no_writer_would_take_is_decided_together_once_one_is_idle(run: RunPipeline) -> None:
    async def scenario(rig: Rig) -> None:
        busy = await keep_busy(rig, 3)
        requests = []
        for number, start in enumerate(busy.waiting):
            requests.append(rig.submit(rig.commit_request([start], EPOCH, [number])))
            await rig.settle()
        assert busy.decided == KEPT_BUSY
        assert rig.pipeline.waiting()[0] == rig.pipeline.owed - KEPT_BUSY == 3
        busy.gate.set()
        for request in requests:
            assert rig.reason_of(await rig.answer(request)) is Reason.COMMITTED
        assert rig.table.writes == [busy.starts[:KEPT_BUSY], busy.waiting]
        assert rig.pipeline.owed == 0

    run(scenario, commit_writers=1)


def test_who_is_refused_when_a_writer_is_idle_is_told_at_once(run: RunPipeline) -> None:
    async def scenario(rig: Rig) -> None:
        await rig.answer(rig.commit(await rig.begin(), 7))
        busy = await keep_busy(rig, 1)
        loser = rig.submit(rig.commit_request(busy.waiting, EPOCH, [7]))
        await rig.settle()
        assert rig.pipeline.oracle.counts.refused_commits == 0
        busy.gate.set()
        assert rig.reason_of(await rig.answer(loser)) is Reason.CONFLICT

    run(scenario, commit_writers=1)


def test_a_second_writer_begins_when_as_much_waits_as_is_under_way(run: RunPipeline) -> None:
    async def scenario(rig: Rig) -> None:
        busy = await keep_busy(rig, KEPT_BUSY)
        busy.commit(busy.waiting[0], cells=0)
        await rig.settle()
        assert len(rig.table.writes) == 1
        last = busy.commit(busy.waiting[1], cells=0)
        await rig.until(lambda: len(rig.table.writes) == 2)
        assert rig.table.writes[1] == busy.waiting
        busy.gate.set()
        await rig.answer(last)

    run(scenario, commit_writers=2)


@pytest.mark.interpreted
def test_after_a_write_the_next_one_waits_for_half_of_those_who_go_round(
    run: RunPipeline, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def scenario(rig: Rig) -> None:
        busy = await wait_for_others(rig, monkeypatch, waiting=2, took_ms=1, gather_ms=2_000 * WAIT_S)
        await rig.settle()
        assert len(rig.table.writes) == 1
        await rig.answer(busy.commit(busy.waiting[2], cells=0))
        assert rig.table.writes[1:] == [busy.waiting[:3]]
        await rig.answer(busy.commit(busy.waiting[3], cells=0))

    run(scenario, commit_writers=2)


@pytest.mark.parametrize(("took_ms", "gather_ms"), [(QUICK_MS_MAX - 0.1, 2_000 * WAIT_S), (2_000 * WAIT_S, GATHER_MS)])
def test_who_does_not_come_again_is_waited_for_shortly(
    run: RunPipeline, monkeypatch: pytest.MonkeyPatch, took_ms: float, gather_ms: float
) -> None:
    async def scenario(rig: Rig) -> None:
        busy = await wait_for_others(rig, monkeypatch, waiting=1, took_ms=took_ms, gather_ms=gather_ms)
        await rig.until(lambda: len(rig.table.writes) == 2)
        assert rig.table.writes[1] == busy.waiting[:1]

    run(scenario, commit_writers=2)


def test_what_is_decided_while_others_are_waited_for_is_written_before_it_ends(
    run: RunPipeline, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def scenario(rig: Rig) -> None:
        busy = await wait_for_others(rig, monkeypatch, waiting=0, took_ms=1, gather_ms=100)
        last = busy.commit(busy.waiting[0], cells=0)
        rig.submit(OutcomeRequest(np.array(busy.waiting[:1])))
        await rig.settle()
        await rig.pipeline.drain(DRAIN_MS)
        assert rig.reason_of(await rig.answer(last)) is Reason.COMMITTED
        assert rig.table.writes[1:] == [busy.waiting[:1]]

    run(scenario, commit_writers=2)


@pytest.mark.interpreted
def test_a_lease_lost_while_others_are_waited_for(run: RunPipeline, monkeypatch: pytest.MonkeyPatch) -> None:
    async def scenario(rig: Rig) -> None:
        await rig.answer(rig.commit(await rig.begin(), 7))  # compiles what would be compiled while it waits
        rig.table.writes.clear()
        busy, other = (
            await wait_for_others(rig, monkeypatch, waiting=0, took_ms=1, gather_ms=1_500),
            rig.new_requester(),
        )
        await rig.settle()
        undecided = busy.commit(busy.waiting[0], cells=0, requester=other)
        await rig.settle()
        rig.tenure.held = False
        assert await rig.answer(undecided, other) == NotPrimary()
        assert rig.deposed
        assert len(rig.table.writes) == 1

    run(scenario, commit_writers=2)


def test_a_whole_write_waits_for_no_larger_one(run: RunPipeline) -> None:
    async def scenario(rig: Rig) -> None:
        busy = await keep_busy(rig, 1)
        last = busy.commit(busy.waiting[0], cells=0)
        await rig.until(lambda: len(rig.table.writes) == 2)
        busy.gate.set()
        await rig.answer(last)

    run(scenario, commit_writers=2, write_batch_commits_max=1)


def test_what_is_malformed_is_held_back_no_more_than_anything_else(run: RunPipeline) -> None:
    async def scenario(rig: Rig) -> None:
        busy = await keep_busy(rig, 0)
        senders = [rig.new_requester() for _ in range(UNDECIDED_BYTES_MAX // HEADER_BYTES + 1)]
        for sender in senders:
            rig.submit_frame(Frame(Kind.COMMIT_REQUEST, 1, b""), sender)
        await rig.until(lambda: all(sender.refused for sender in senders))
        assert rig.pipeline.waiting()[0] == 0
        busy.gate.set()
        await rig.answer(busy.written)

    run(scenario, commit_writers=1)


def test_a_decision_that_waits_for_a_writer_counts_with_what_comes_later(run: RunPipeline) -> None:
    async def scenario(rig: Rig) -> None:
        busy = await keep_busy(rig, KEPT_BUSY)
        busy.commit(busy.waiting[0], cells=0)
        rig.submit(OutcomeRequest(np.array(busy.waiting[:1])))
        await rig.settle()
        assert busy.decided == KEPT_BUSY + 1
        assert len(rig.table.writes) == 1
        last = busy.commit(busy.waiting[1], cells=0)
        await rig.until(lambda: len(rig.table.writes) == 2)
        busy.gate.set()
        await rig.answer(last)
        assert rig.table.writes[1] == busy.waiting

    run(scenario, commit_writers=2)


def test_much_is_decided_while_the_writers_are_busy(run: RunPipeline) -> None:
    async def scenario(rig: Rig) -> None:
        busy = await keep_busy(rig, 2)
        busy.commit(busy.waiting[0], cells=UNDECIDED_BYTES_MAX // 16)
        await rig.settle()
        assert busy.decided == KEPT_BUSY
        last = busy.commit(busy.waiting[1], cells=UNDECIDED_BYTES_MAX // 16)
        await rig.until(lambda: busy.decided == KEPT_BUSY + 1)
        busy.gate.set()
        assert rig.reason_of(await rig.answer(last)) is Reason.CONFLICT

    run(scenario, commit_writers=1)


def test_a_question_is_answered_by_what_was_asked_before_it(run: RunPipeline) -> None:
    async def scenario(rig: Rig) -> None:
        busy = await keep_busy(rig, 1)
        commit = busy.commit(busy.waiting[0])
        await rig.settle()
        question = rig.submit(OutcomeRequest(np.array(busy.waiting)))
        busy.gate.set()
        told, answered = await rig.answer(commit), await rig.answer(question)
        assert isinstance(answered, OutcomeReply)
        assert answered.commit_timestamps.tolist() == told.commit_timestamps.tolist()  # type: ignore[attr-defined]

    run(scenario, commit_writers=1)


@pytest.mark.parametrize("ends", ["drained", "deposed"])
def test_what_is_not_decided_when_it_ends_is_told_so(run: RunPipeline, ends: str) -> None:
    async def scenario(rig: Rig) -> None:
        busy, other = await keep_busy(rig, 1), rig.new_requester()
        undecided = busy.commit(busy.waiting[0], requester=other)
        await rig.settle()
        if ends == "drained":
            assert not await rig.pipeline.finish(1)
        else:
            rig.tenure.held = False
            rig.submit(BeginRequest(1))
        assert await rig.answer(undecided, other) == NotPrimary()
        busy.gate.set()
        await rig.until(lambda: rig.requester.dropped if ends == "deposed" else busy.written in rig.requester.answers)
        assert not other.dropped
        assert rig.table.writes == [busy.starts[:KEPT_BUSY]]

    run(scenario, commit_writers=1)


@pytest.mark.interpreted
@pytest.mark.parametrize("again", ["a writer is idle", "too much waits", "a question comes"])
def test_whoever_a_defect_left_half_decided_is_dropped(
    run: RunPipeline, monkeypatch: pytest.MonkeyPatch, again: str
) -> None:
    async def scenario(rig: Rig) -> None:
        busy, other = await keep_busy(rig, 2), rig.new_requester()
        commit = busy.commit(busy.waiting[0], requester=other)
        await rig.settle()
        decide = rig.pipeline.oracle.commit

        def defect(*arguments: object) -> None:
            decide(*arguments)  # type: ignore[arg-type]
            raise ZeroDivisionError

        monkeypatch.setattr(rig.pipeline.oracle, "commit", defect)
        match again:
            case "a writer is idle":
                busy.gate.set()
            case "too much waits":
                busy.commit(busy.waiting[1], cells=UNDECIDED_BYTES_MAX)
            case _:
                rig.submit(OutcomeRequest(np.array(busy.waiting[:1])))
        await rig.until(lambda: bool(rig.deposed))
        busy.gate.set()
        await rig.settle()
        assert other.dropped
        assert commit not in other.answers, "it may have been decided"

    run(scenario, commit_writers=1)


def test_begins_of_a_wake_up_are_one_row_of_timestamps_at_one_snapshot(run: RunPipeline) -> None:
    async def scenario(rig: Rig) -> None:
        requests = [rig.submit(BeginRequest(count)) for count in (1, 3, 2)]
        replies = [await rig.answer(request) for request in requests]
        firsts = (EPOCH + 1, EPOCH + 2, EPOCH + 5)
        assert replies == [BeginReply(first, n, EPOCH, EPOCH) for first, n in zip(firsts, (1, 3, 2), strict=True)]
        assert rig.pipeline.oracle.counts.begins == 6

    run(scenario)


def test_a_begin_that_cannot_be_spoils_no_other_of_the_same_wake_up(run: RunPipeline) -> None:
    async def scenario(rig: Rig) -> None:
        broken, other = rig.new_requester(), rig.new_requester()
        first = rig.submit(BeginRequest(1))
        for payload in (b"", b"\1\0\0", b"\0\0\0\0", b"\1\0\0\0\0"):
            rig.submit_frame(Frame(Kind.BEGIN_REQUEST, 1, payload), broken)
        refused = rig.submit(BeginRequest(10**6), other)
        second = rig.submit(BeginRequest(2))
        assert await rig.answer(first) == BeginReply(EPOCH + 1, 1, EPOCH, EPOCH)
        assert isinstance(await rig.answer(refused, other), BadRequest)
        second_reply = await rig.answer(second)
        assert isinstance(second_reply, BeginReply)
        assert second_reply.first_start_timestamp == EPOCH + 2
        assert len(broken.refused) == 4
        assert not broken.answers

    run(scenario)
