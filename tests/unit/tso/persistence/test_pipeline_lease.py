"""The pipeline without its lease or its commit table: above all, what is *not* answered."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pytest

from store import StoreUnavailable, TableMissing
from wire import (
    AbortRequest,
    BeginRequest,
    CommitRequest,
    Message,
    NotPrimary,
    OutcomeRequest,
    Reason,
)

if TYPE_CHECKING:
    from tests.unit.tso.conftest import Rig, RunPipeline

EPOCH = 1000
DRAIN_MS = 20_000


def ids(*start_timestamps: int) -> np.ndarray[tuple[int], np.dtype[np.int64]]:
    return np.array(start_timestamps, "<i8")


def test_a_failed_write_is_repeated_and_never_answered_before_it_succeeds(run: RunPipeline) -> None:
    async def scenario(rig: Rig) -> None:
        rig.table.errors = [StoreUnavailable("gateway gone"), StoreUnavailable("still gone")]
        begun = await rig.begin()
        assert rig.reason_of(await rig.answer(rig.commit(begun, 7))) is Reason.COMMITTED
        assert len(rig.table.writes) == 3
        assert begun.first_start_timestamp in rig.table.commits

    run(scenario)


@pytest.mark.parametrize("error", [StoreUnavailable("gone"), TableMissing("dropped"), RuntimeError("a defect")])
def test_a_write_that_stays_failed_deposes_and_is_never_called_committed(run: RunPipeline, error: Exception) -> None:
    async def scenario(rig: Rig) -> None:
        rig.table.errors = [error] * 1000

        def time_passes() -> None:
            rig.now_ms += 60

        rig.table.before_write = time_passes
        begun = await rig.begin()
        commit = rig.commit(begun, 7)
        await rig.until_deposed(commit)
        assert commit not in rig.requester.answers
        assert rig.requester.dropped
        assert not rig.pipeline.serving

    run(scenario, persist_retry_ms_max=100)


def test_where_one_gateway_was_silent_for_all_of_the_time_the_others_are_tried(run: RunPipeline) -> None:
    async def scenario(rig: Rig) -> None:
        def time_passes() -> None:
            rig.now_ms += 3_000

        rig.table.before_write = time_passes
        rig.table.errors = [StoreUnavailable("silent"), StoreUnavailable("silent, too")]
        begun = await rig.begin()
        assert rig.reason_of(await rig.answer(rig.commit(begun, 7))) is Reason.COMMITTED
        rig.table.errors = [StoreUnavailable("silent")] * 1000
        begun = await rig.begin()
        await rig.until_deposed(rig.commit(begun, 8))
        assert len(rig.table.writes) == 3 + 3, "once for each gateway, and no more"

    run(scenario, persist_retry_ms_max=3_000, tries_min=3)


def test_a_lease_lost_before_the_write_stops_the_write(run: RunPipeline) -> None:
    async def scenario(rig: Rig) -> None:
        first, second = await rig.begin(), await rig.begin()
        gate = rig.table.hold(first.first_start_timestamp)
        rig.commit(first, 1)
        await rig.until(lambda: len(rig.table.writes) == 1)
        later = rig.commit(second, 2)
        rig.submit(OutcomeRequest(ids(second.first_start_timestamp)))  # so that it is decided at once
        await rig.settle()
        rig.tenure.held = False
        gate.set()
        await rig.until(lambda: bool(rig.deposed))
        assert rig.table.writes == [[first.first_start_timestamp]]
        assert later not in rig.requester.answers
        assert rig.requester.dropped

    run(scenario, commit_writers=1)


def test_the_writer_itself_checks_the_lease_right_before_it_writes(run: RunPipeline) -> None:
    async def scenario(rig: Rig) -> None:
        begun = await rig.begin()
        rig.tenure.checks_left = 1  # the pass may still decide; the writer's own check fails
        commit = rig.commit(begun, 7)
        await rig.until(lambda: bool(rig.deposed))
        assert rig.table.writes == []
        assert commit not in rig.requester.answers

    run(scenario)


def test_a_lease_lost_during_the_write_stops_the_answer(run: RunPipeline) -> None:
    async def scenario(rig: Rig) -> None:
        begun = await rig.begin()

        def lose() -> None:
            rig.tenure.held = False

        rig.table.after_write = lose
        commit = rig.commit(begun, 7)
        await rig.until_deposed(commit)
        await rig.settle()
        assert begun.first_start_timestamp in rig.table.commits, "it was written, and yet must not be answered"
        assert commit not in rig.requester.answers
        assert rig.requester.dropped

    run(scenario)


def test_a_write_is_not_repeated_beyond_the_lease(run: RunPipeline) -> None:
    async def scenario(rig: Rig) -> None:
        rig.table.errors = [StoreUnavailable("gone")]

        def lose() -> None:
            rig.tenure.held = False

        rig.table.before_write = lose
        rig.commit(await rig.begin(), 7)
        await rig.until(lambda: bool(rig.deposed))
        assert len(rig.table.writes) == 1
        assert rig.table.commits == {}

    run(scenario)


NEVER_DECIDED = [
    BeginRequest(1),
    CommitRequest(ids(EPOCH + 1), ids(EPOCH), ids(0), np.array([0, 0], "<u4"), np.array([], "<u8")),
    AbortRequest(ids(EPOCH)),
]


@pytest.mark.parametrize("message", NEVER_DECIDED, ids=lambda message: type(message).__name__)
def test_without_the_lease_nothing_is_handed_out_and_what_is_not_decided_is_told(
    run: RunPipeline, message: Message
) -> None:
    async def scenario(rig: Rig) -> None:
        await rig.begin()
        rig.tenure.held = False
        assert await rig.ask(message) == NotPrimary()
        assert rig.deposed == ["the lease is lost"]
        assert not rig.requester.dropped
        assert await rig.ask(message) == NotPrimary()
        assert rig.table.writes == []
        assert rig.table.aborted == []

    run(scenario)


def test_only_connections_that_are_owed_a_decision_are_dropped(run: RunPipeline) -> None:
    async def scenario(rig: Rig) -> None:
        other = rig.new_requester()
        begun = await rig.begin()
        gate = rig.table.hold(begun.first_start_timestamp)
        rig.commit(begun, 7)
        await rig.until(lambda: len(rig.table.writes) == 1)
        rig.tenure.held = False
        refused = rig.submit(BeginRequest(1), other)
        assert await rig.answer(refused, other) == NotPrimary()
        assert rig.requester.dropped
        assert not other.dropped
        gate.set()
        await rig.settle()

    run(scenario)


def test_a_lease_lost_during_a_look_up_stops_the_answer(run: RunPipeline) -> None:
    async def scenario(rig: Rig) -> None:
        begun = await rig.begin()
        rig.table.lookups_open.clear()
        abort = rig.submit(AbortRequest(ids(begun.first_start_timestamp)))
        await rig.settle()
        rig.tenure.held = False
        rig.table.lookups_open.set()
        await rig.until_deposed(abort)
        assert abort not in rig.requester.answers
        assert rig.requester.dropped

    run(scenario)


@pytest.mark.interpreted
def test_a_defect_in_the_oracle_stops_it_instead_of_leaving_it_half_decided(
    run: RunPipeline, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def scenario(rig: Rig) -> None:
        begun = await rig.begin()

        def defect(*_: object) -> None:
            raise ZeroDivisionError

        monkeypatch.setattr(rig.pipeline.oracle.conflicts, "decide", defect)
        commit = rig.commit(begun, 7)
        await rig.until(lambda: bool(rig.deposed))
        assert commit not in rig.requester.answers
        assert rig.requester.dropped

    run(scenario)


class Defect:
    """A function that breaks when it is called, and lets a test wait until it was."""

    def __init__(self) -> None:
        self.met = False

    def __call__(self, *_: object) -> None:
        self.met = True
        raise ZeroDivisionError


@pytest.mark.interpreted
@pytest.mark.parametrize(("part", "place"), [("oracle", "persisted"), ("oracle", "release"), ("_metering", "told")])
def test_a_defect_after_a_write_deposes_and_leaves_nobody_waiting(
    run: RunPipeline, monkeypatch: pytest.MonkeyPatch, part: str, place: str
) -> None:
    async def scenario(rig: Rig) -> None:
        other, defect = rig.new_requester(), Defect()
        begun = await rig.begin(2)
        gate = rig.table.hold(begun.first_start_timestamp)
        first = rig.commit(begun, 7)
        await rig.until(lambda: len(rig.table.writes) == 1)
        second = rig.submit(rig.commit_request([begun.first_start_timestamp + 1], begun.snapshot, [8]), other)
        await rig.until(lambda: begun.first_start_timestamp + 1 in rig.table.commits)
        await rig.settle()
        monkeypatch.setattr(getattr(rig.pipeline, part), place, defect)
        gate.set()
        await rig.until(lambda: defect.met)
        await rig.settle()
        assert rig.deposed == ["a defect in the oracle"]
        assert (rig.requester.dropped, other.dropped) == (True, True), "somebody waits for what nobody will tell"
        assert not {first, second} & {*rig.requester.answers, *other.answers}

    run(scenario)


@pytest.mark.interpreted
@pytest.mark.parametrize("place", ["tso.decisions.oracle.Oracle.fenced", "tso.persistence.pipeline.outcomes_of"])
def test_a_defect_after_a_look_up_deposes_and_leaves_nobody_waiting(
    run: RunPipeline, monkeypatch: pytest.MonkeyPatch, place: str
) -> None:
    async def scenario(rig: Rig) -> None:
        defect = Defect()
        begun = await rig.begin()
        monkeypatch.setattr(place, defect)
        abort = rig.submit(AbortRequest(ids(begun.first_start_timestamp)))
        await rig.until(lambda: defect.met)
        await rig.settle()
        assert rig.deposed == ["a defect in the oracle"]
        assert rig.requester.dropped
        assert abort not in rig.requester.answers

    run(scenario)
