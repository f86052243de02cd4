"""Commits that rely on what their clients looked at, and do not count: the transactions had come to an end before."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pytest

from tests.unit.tso.calling import ids
from wire import (
    AbortRequest,
    BeginRequest,
    CommitReply,
    CommitRequest,
    Message,
    OutcomeReply,
    OutcomeRequest,
    OutcomeStatus,
    Reason,
)

if TYPE_CHECKING:
    from tests.unit.tso.conftest import Rig, RunPipeline

EPOCH = 1000
FENCED = np.array([EPOCH - 6, EPOCH - 5, EPOCH - 4], "<i8")
COUNTS = EPOCH - 3
"""A transaction of the same epoch that nobody had aborted."""


def commit(*start_timestamps: int) -> CommitRequest:
    """Of older transactions whose clients have looked for conflicts up to this epoch."""
    starts, count = np.array(start_timestamps, "<i8"), len(start_timestamps)
    return CommitRequest(starts, starts - 10, np.full(count, EPOCH), np.zeros(count + 1, "<u4"), np.array([], "<u8"))


def fence_before_the_write(rig: Rig) -> None:
    """What a deposed oracle had under way lands before the commits do."""
    for start in FENCED.tolist():
        del rig.table.commits[start]
        rig.table.aborted.append(start)


def test_each_of_many_is_told_that_it_was_aborted_however_few_aborts_are_remembered(run: RunPipeline) -> None:
    async def scenario(rig: Rig) -> None:
        rig.table.after_write = lambda: fence_before_the_write(rig)
        reply = await rig.ask(commit(*FENCED, COUNTS))
        assert isinstance(reply, CommitReply)
        assert reply.reasons.tolist() == [Reason.ABORTED] * 3 + [Reason.COMMITTED]
        assert reply.commit_timestamps.tolist() == [0, 0, 0, rig.table.commits[COUNTS]]
        counted = dict(rig.metering.samples())
        assert counted['pythia_commit_answers_total{reason="aborted"}'] == 3
        assert counted['pythia_commit_answers_total{reason="committed"}'] == 1

    run(scenario, remembered_aborts_max=1)


@pytest.mark.parametrize("question", [OutcomeRequest(FENCED), AbortRequest(FENCED)], ids=["asked", "aborted"])
def test_whoever_asks_while_they_are_written_is_told_so_as_well(run: RunPipeline, question: Message) -> None:
    async def scenario(rig: Rig) -> None:
        rig.table.after_write = lambda: fence_before_the_write(rig)
        gate = rig.table.hold(int(FENCED[0]))
        rig.submit(commit(*FENCED, COUNTS))
        await rig.until(lambda: len(rig.table.writes) == 1)
        repeated, asked = rig.submit(commit(int(FENCED[0]))), rig.submit(question)
        begun = rig.submit(BeginRequest(1))
        await rig.answer(begun)
        assert not {repeated, asked} & set(rig.requester.answers)
        gate.set()
        assert rig.reason_of(await rig.answer(repeated)) is Reason.ABORTED
        reply = await rig.answer(asked)
        assert reply == OutcomeReply(np.array([OutcomeStatus.ABORTED] * 3), np.zeros(3, "<i8"))

    run(scenario, remembered_aborts_max=1)


COMMITTED_BEFORE = EPOCH - 7


def test_who_committed_in_an_older_epoch_is_sent_to_its_commit_and_nothing_is_written_over_it(run: RunPipeline) -> None:
    async def scenario(rig: Rig) -> None:
        rig.table.commits[COMMITTED_BEFORE] = EPOCH - 1
        for _ in range(2):
            reply = await rig.ask(commit(COMMITTED_BEFORE, COUNTS))
            assert isinstance(reply, CommitReply)
            assert reply.reasons.tolist() == [Reason.TOO_OLD, Reason.COMMITTED]
            assert reply.commit_timestamps.tolist() == [0, rig.table.commits[COUNTS]]
        assert rig.table.writes == [[COUNTS]]
        assert rig.table.fenced == [COMMITTED_BEFORE, COUNTS]
        assert rig.table.commits[COMMITTED_BEFORE] == EPOCH - 1
        told = await rig.ask(OutcomeRequest(ids(COMMITTED_BEFORE)))
        assert told == OutcomeReply(np.array([OutcomeStatus.COMMITTED]), ids(EPOCH - 1))

    run(scenario)


def test_who_asks_meanwhile_gets_the_commit_of_the_older_epoch(run: RunPipeline) -> None:
    async def scenario(rig: Rig) -> None:
        rig.table.commits[COMMITTED_BEFORE] = EPOCH - 1
        gate = rig.table.hold(COUNTS)
        asked = rig.submit(commit(COMMITTED_BEFORE, COUNTS))
        await rig.until(lambda: len(rig.table.writes) == 1)
        question = rig.submit(OutcomeRequest(ids(COMMITTED_BEFORE)))
        gate.set()
        assert rig.reason_of(await rig.answer(asked)) is Reason.TOO_OLD
        reply = await rig.answer(question)
        assert reply == OutcomeReply(np.array([OutcomeStatus.COMMITTED]), ids(EPOCH - 1))

    run(scenario)


def test_who_committed_here_and_was_forgotten_does_not_commit_again(run: RunPipeline) -> None:
    """By an oracle that remembers two decisions."""

    async def scenario(rig: Rig) -> None:
        first = await rig.begin()
        start = first.first_start_timestamp
        assert rig.reason_of(await rig.ask(at_snapshot(start, first.snapshot, 0))) is Reason.COMMITTED
        committed_at = rig.table.commits[start]
        for _ in range(100):
            begun = await rig.begin()
            await rig.ask(at_snapshot(begun.first_start_timestamp, begun.snapshot, 0))
        later = await rig.begin()
        assert rig.reason_of(await rig.ask(at_snapshot(start, first.snapshot, later.snapshot))) is Reason.TOO_OLD
        assert rig.table.commits[start] == committed_at

    run(scenario, remembered_decisions_max=2, transactions_in_flight_max=2)


def at_snapshot(start: int, snapshot: int, validated: int) -> CommitRequest:
    """A commit of nothing."""
    return CommitRequest(ids(start), ids(snapshot), ids(validated), np.zeros(2, "<u4"), np.array([], "<u8"))
