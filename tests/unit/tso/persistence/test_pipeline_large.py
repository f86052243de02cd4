"""Large write sets in the pipeline: they are taken part by part, and nobody else waits for more than one of them."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

import numpy as np

from wire import BeginReply, BeginRequest, LargeCommitRequest, NotPrimary, Reason, WriteSetPart, WriteSetTaken

if TYPE_CHECKING:
    from tests.unit.tso.conftest import Rig, RunPipeline

DRAIN_MS = 20_000


def part(begun: BeginReply, cells: range, total: int) -> WriteSetPart:
    columns = np.arange(cells.start, cells.stop, dtype=np.uint64)
    return WriteSetPart(begun.first_start_timestamp, begun.snapshot, 0, total, 0, cells.start, columns)


def test_the_parts_are_taken_and_the_commit_is_in_the_table(run: RunPipeline) -> None:
    async def scenario(rig: Rig) -> None:
        begun = await rig.begin()
        asked = [rig.submit(part(begun, range(first, first + 2), 6)) for first in (0, 2, 4)]
        assert [await rig.answer(each) for each in asked] == [WriteSetTaken(2), WriteSetTaken(4), WriteSetTaken(6)]
        reply = await rig.ask(LargeCommitRequest(begun.first_start_timestamp, begun.snapshot, 0, 6))
        assert rig.reason_of(reply) is Reason.COMMITTED
        assert list(rig.table.commits) == [begun.first_start_timestamp]

    run(scenario)


def test_all_others_are_served_between_two_parts(run: RunPipeline) -> None:
    async def scenario(rig: Rig) -> None:
        large, small = await rig.begin(), await rig.begin()
        parts = [rig.submit(part(large, range(first, first + 2), 6)) for first in (0, 2, 4)]
        await asyncio.sleep(0)
        begin, commit = rig.submit(BeginRequest(1)), rig.commit(small, 100)
        for each in (*parts, begin, commit):
            await rig.answer(each)
        assert rig.requester.order.index(begin) < rig.requester.order.index(parts[1])
        assert [each for each in rig.requester.order if each in parts] == parts

    run(scenario)


def test_parts_that_wait_their_turn_when_a_drain_begins_are_refused_and_nothing_is_done(run: RunPipeline) -> None:
    async def scenario(rig: Rig) -> None:
        begun = await rig.begin()
        parts = [rig.submit(part(begun, range(first, first + 2), 6)) for first in (0, 2, 4)]
        await asyncio.sleep(0)
        await rig.pipeline.drain(DRAIN_MS)
        assert [await rig.answer(each) for each in parts] == [WriteSetTaken(2), NotPrimary(), NotPrimary()]

    run(scenario)
