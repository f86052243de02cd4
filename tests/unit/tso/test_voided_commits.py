"""Commits of older epochs' transactions that were written, and do not count: a fence at infinity was there before."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pytest

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
