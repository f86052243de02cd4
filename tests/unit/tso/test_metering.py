"""What an oracle process counts of itself: by the batch, and over all its epochs."""

from __future__ import annotations

import asyncio
import json
from typing import TYPE_CHECKING

import numpy as np
import pytest
from click.testing import CliRunner

from lease.memory import MemoryCoordinator
from store import StoreUnavailable
from tests.unit.tso.calling import begin, commit_request, transact
from tso.commands import metrics as metrics_command
from tso.commands import serve as commands
from tso.metering import Histogram, Metering
from tso.serving.observing import metrics
from wire import (
    BeginRequest,
    CommitReply,
    HeartbeatRequest,
    MetricsReply,
    MetricsRequest,
    NotPrimary,
    Overloaded,
    Reason,
    Role,
)
from wire.metric_families import FAMILIES, family_of

if TYPE_CHECKING:
    from tests.unit.tso.calling import Caller
    from tests.unit.tso.conftest import House, Rig, RunHouse, RunPipeline


async def seen(caller: Caller) -> dict[str, float]:
    reply = await caller.ask(MetricsRequest())
    assert isinstance(reply, MetricsReply)
    return dict(zip(reply.names, reply.values.tolist(), strict=True))


def counted(rig: Rig) -> dict[str, float]:
    return dict(rig.metering.samples())


def test_a_bin_holds_what_is_up_to_its_bound_and_one_value_may_stand_for_many() -> None:
    histogram = Histogram("h", (1.0, 2.5))
    for value, times in ((0.5, 1), (1.0, 10), (1.1, 100), (7.0, 1000)):
        histogram.add(value, times)
    assert dict(histogram.samples()) == {
        'h_bucket{le="1"}': 11,
        'h_bucket{le="2.5"}': 111,
        'h_bucket{le="+Inf"}': 1111,
        "h_sum": pytest.approx(0.5 + 10 + 110 + 7000),
        "h_count": 1111,
    }


def test_reasons_are_counted_a_batch_at_a_time() -> None:
    metering = Metering(lambda: 0.0)
    metering.all_committed(7)
    metering.reasons(np.array([Reason.CONFLICT, Reason.COMMITTED, Reason.CONFLICT, Reason.EXPIRED], np.uint8))
    answers = {name: value for name, value in metering.samples() if "commit_answers" in name}
    expected = {Reason.COMMITTED: 8, Reason.CONFLICT: 2, Reason.EXPIRED: 1}
    assert answers == {
        f'pythia_commit_answers_total{{reason="{reason.name.lower()}"}}': expected.get(reason, 0) for reason in Reason
    }


def test_a_commit_is_timed_from_its_request_to_its_answer_and_counted_once(run: RunPipeline) -> None:
    async def scenario(rig: Rig) -> None:
        begun = await rig.begin()
        gate = rig.table.hold(begun.first_start_timestamp)
        request = rig.commit(begun, 7)
        await rig.until(lambda: bool(rig.table.writes))
        rig.now_ms += 300
        gate.set()
        await rig.answer(request)
        found = counted(rig)
        for latency in ("pythia_commit_persist_seconds", "pythia_commit_seconds"):
            assert found[f'{latency}_bucket{{le="0.25"}}'] == 0
            assert found[f'{latency}_bucket{{le="0.5"}}'] == 1
            assert found[f"{latency}_sum"] == pytest.approx(0.3)
        assert found["pythia_commit_decide_seconds_count"] == 1
        assert found["pythia_begin_seconds_count"] == 1
        assert found["pythia_commit_table_writes_total"] == 1
        assert found['pythia_commit_answers_total{reason="committed"}'] == 1

    run(scenario)


def test_a_batch_is_one_observation_of_its_size(run: RunPipeline) -> None:
    async def scenario(rig: Rig) -> None:
        begun = await rig.begin(5)
        starts = [begun.first_start_timestamp + place for place in range(5)]
        reply = await rig.ask(rig.commit_request(starts, begun.snapshot, [1]))
        assert isinstance(reply, CommitReply)
        found = counted(rig)
        assert found["pythia_decision_transactions_sum"] == 5
        assert found["pythia_decision_transactions_count"] == 1
        assert found["pythia_write_transactions_sum"] == 1
        assert found["pythia_commit_seconds_count"] == 5
        assert found['pythia_commit_answers_total{reason="conflict"}'] == 4
        assert rig.pipeline.oracle.counts.commits == 1

    run(scenario)


def test_failures_of_the_commit_table_are_counted(run: RunPipeline) -> None:
    async def scenario(rig: Rig) -> None:
        rig.table.errors.append(StoreUnavailable("not now"))
        begun = await rig.begin()
        await rig.answer(rig.commit(begun, 7))
        found = counted(rig)
        assert found["pythia_commit_table_write_failures_total"] == 1
        assert found["pythia_commit_table_writes_total"] == 1

    run(scenario)


def test_refusals_are_counted_by_the_answer(run: RunPipeline) -> None:
    async def scenario(rig: Rig) -> None:
        assert isinstance(await rig.ask(BeginRequest(10)), Overloaded)
        await rig.ask(BeginRequest(10**6))
        await rig.pipeline.drain(10)
        assert await rig.ask(BeginRequest(1)) == NotPrimary()
        found = counted(rig)
        answers = ("overloaded", "bad_request", "not_primary")
        assert [found[f'pythia_refusals_total{{answer="{answer}"}}'] for answer in answers] == [1, 1, 1]

    run(scenario, ceiling=1005)


def test_every_sample_belongs_to_a_family_and_every_family_has_a_sample(run_house: RunHouse) -> None:
    async def scenario(house: House) -> None:
        await house.start_primary("a")
        process = await house.start("b", transaction_life_ms=1)
        await house.until(lambda: process.server.not_primary != NotPrimary())
        await house.stop("a")
        await house.until_primary("b")
        caller = await house.call("b")
        await house.until(lambda: "pythia_horizon_timestamp_seconds" in metrics(process.server).names)
        samples = await seen(caller)
        found = {family_of(sample.partition("{")[0]) for sample in samples}
        assert found == set(FAMILIES)

    run_house(scenario)


def test_counts_go_on_over_the_epochs_of_a_process(run_house: RunHouse) -> None:
    async def scenario(house: House) -> None:
        process = await house.start_primary("a", lease_ms=1_000)
        caller = await house.call("a")
        await transact(caller, [1])
        before = await seen(caller)
        assert (before["pythia_begins_total"], before["pythia_commits_total"]) == (1, 1)
        assert process.server.pipeline is not None
        process.server.pipeline._depose("the test says so")
        during = await seen(caller)
        assert (during["pythia_begins_total"], during["pythia_commits_total"]) == (1, 1)
        await house.until(lambda: process.server.pipeline is not None and process.server.pipeline.serving)
        await transact(caller, [1])
        after = await seen(caller)
        assert (after["pythia_begins_total"], after["pythia_commits_total"]) == (2, 2)
        assert (after["pythia_takeovers_total"], after["pythia_depositions_total"]) == (2, 1)
        assert after['pythia_role{role="primary"}'] == 1

    run_house(scenario)


def test_a_standby_answers_with_what_it_knows(run_house: RunHouse) -> None:
    async def scenario(house: House) -> None:
        await house.start_primary("a")
        process = await house.start("b")
        caller = await house.call("b")
        assert isinstance(await caller.ask(BeginRequest(1)), NotPrimary)
        samples = await seen(caller)
        assert samples['pythia_role{role="standby"}'] == 1
        assert samples['pythia_refusals_total{answer="not_primary"}'] == 1
        assert "pythia_lease_remaining_seconds" not in samples
        assert metrics(process.server).role is Role.STANDBY

    run_house(scenario)


def test_a_takeover_tells_how_long_there_was_no_primary(run_house: RunHouse) -> None:
    async def scenario(house: House) -> None:
        await house.start_primary("a")
        process = await house.start("b")
        assert "pythia_last_takeover_outage_seconds" not in await seen(await house.call("a"))
        await house.until(lambda: process.server.not_primary != NotPrimary())
        await house.stop("a")
        await house.until_primary("b")
        samples = await seen(await house.call("b"))
        assert samples["pythia_last_takeover_outage_seconds"] > 0
        assert samples["pythia_takeovers_total"] == 1

    run_house(scenario)


def test_the_oldest_transaction_is_the_one_that_began_first(run_house: RunHouse) -> None:
    async def scenario(house: House) -> None:
        await house.start_primary("a")
        caller = await house.call("a")
        assert (await seen(caller))["pythia_oldest_transaction_age_seconds"] == 0
        first, second = await begin(caller), await begin(caller)
        for begun in (second, first):
            starts = np.array([begun.first_start_timestamp])
            await caller.ask(HeartbeatRequest(starts, starts - 1))
        samples = await seen(caller)
        assert samples["pythia_heartbeat_transactions"] == 2
        assert samples["pythia_conflict_map_entries"] == 0
        await caller.ask(commit_request(second, [9]))
        samples = await seen(caller)
        assert samples["pythia_heartbeat_transactions"] == 1
        assert samples["pythia_conflict_map_entries"] == 1

    run_house(scenario)


def test_what_is_forgotten_is_counted(run: RunPipeline) -> None:
    async def scenario(rig: Rig) -> None:
        conflicts = rig.pipeline.oracle.conflicts
        for round_ in range(4):
            begun = await rig.begin()
            await rig.answer(rig.commit(begun, *range(50 * round_, 50 * round_ + 50)))
        assert conflicts.evicted >= 200 - 110
        assert conflicts.evicted + len(conflicts) <= 200

    run(scenario, conflict_map_entries_max=100)


def test_metrics_on_the_command_line(run_house: RunHouse, monkeypatch: pytest.MonkeyPatch) -> None:
    async def scenario(house: House) -> None:
        monkeypatch.setattr(metrics_command, "ZooKeeperCoordinator", lambda _: MemoryCoordinator(house.tree))
        process = await house.start_primary("a")
        arguments = ["metrics", "--zookeeper", "unused:1"]
        shown = await asyncio.to_thread(CliRunner().invoke, commands.tso, arguments)
        assert shown.exit_code == 0, shown.output
        assert 'pythia_role{role="primary"}  1' in shown.output
        for where in (arguments, ["metrics", "--oracle", process.server.address]):
            result = await asyncio.to_thread(CliRunner().invoke, commands.tso, [*where, "--json"])
            [found] = json.loads(result.output)["processes"]
            assert (found["holder"], found["role"]) == ("a", "primary")
            assert found["metrics"]["pythia_takeovers_total"] == 1

    run_house(scenario)


def test_metrics_of_a_process_that_is_silent_are_told_to_be_missing(run_house: RunHouse) -> None:
    result = CliRunner().invoke(commands.tso, ["metrics", "--oracle", "127.0.0.1:1"])
    assert result.exit_code == 3
    assert "127.0.0.1:1" in result.output
    both = CliRunner().invoke(commands.tso, ["metrics", "--oracle", "127.0.0.1:1", "--zookeeper", "z:1"])
    assert "either" in both.output
