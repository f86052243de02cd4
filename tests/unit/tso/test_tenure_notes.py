"""The history of tenures as whole processes write it, and that serving does not wait for it; and what details say."""

from __future__ import annotations

import asyncio
import json
import threading
from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np
import pytest
from click.testing import CliRunner

from lease import CoordinatorRefused, History, Operation, PastTenure, SetData, ZnodePaths, monotonic_ms, read_history
from lease.coordinator import CompareAndSet
from lease.memory import MemoryCoordinator
from tests.unit.tso.calling import begin
from tso.commands import history as history_command
from tso.commands import serve as commands
from wire import BeginReply, BeginRequest, DetailsReply, DetailsRequest, HeartbeatRequest
from wire.details import OPEN_TRANSACTIONS_MAX, UNKNOWN_MS

if TYPE_CHECKING:
    from tests.unit.tso.calling import Caller
    from tests.unit.tso.conftest import House, RunHouse

PATHS = ZnodePaths("/pythia")
WAIT_S = 20.0


def history(house: House) -> tuple[PastTenure, ...]:
    return read_history(MemoryCoordinator(house.tree), PATHS.root).tenures


def renewals(house: House) -> int:
    node = MemoryCoordinator(house.tree).read(PATHS.lease, timeout_ms=1)
    assert node is not None
    return node.version


async def details(caller: Caller) -> DetailsReply:
    reply = await caller.ask(DetailsRequest())
    assert isinstance(reply, DetailsReply)
    return reply


def test_each_tenure_is_noted_with_its_cause_and_the_outage_before_it(run_house: RunHouse) -> None:
    async def scenario(house: House) -> None:
        await house.start_primary("a", lease_ms=1_000)
        await house.start("b", lease_ms=1_000)
        await house.until(lambda: len(history(house)) == 1)
        await house.stop("a")
        await house.until_primary("b")
        await house.until(lambda: len(history(house)) == 2)
        await house.start("c", lease_ms=1_000)
        await house.until(lambda: house.processes["c"].server.not_primary.primary_address != "")
        house.coordinators["b"].unreachable = True
        await house.until_primary("c")
        house.coordinators["b"].unreachable = False
        await house.until(lambda: len(history(house)) == 3)
        first, second, third = history(house)
        assert (first.holder, first.cause, first.outage_ms, first.at_least) == ("a", "first start", None, False)
        assert (second.holder, second.cause) == ("b", "handed over")
        assert (third.holder, third.cause) == ("c", "lease ran out")
        assert second.outage_ms is not None
        assert third.outage_ms is not None
        assert third.outage_ms >= 1_000
        assert third.address == house.processes["c"].server.address

    run_house(scenario)


def test_the_outage_counts_from_the_last_renewal_however_often_a_standby_looks(run_house: RunHouse) -> None:
    """A watch may fire for no reason, and what is looked at once more is not renewed by that."""

    async def scenario(house: House) -> None:
        await house.start_primary("a", lease_ms=400)
        standby = await house.start("b", lease_ms=400)
        await house.until(lambda: standby.server.own.seen_lease_ms == 400)
        house.coordinators["a"].unreachable = True
        looks = 0

        def serves() -> bool:
            nonlocal looks
            looks += 1
            for watch in list(house.tree._entries[PATHS.lease].watches):
                watch.set()
            return standby.server.pipeline is not None

        await house.until(serves)
        took_over_ms = monotonic_ms()
        house.coordinators["a"].unreachable = False
        assert looks > 10
        assert took_over_ms - standby.server.own.lease_seen_ms >= 400
        await house.until(lambda: standby.metering.takeovers == 1)
        assert standby.metering.last_outage_s is not None
        assert standby.metering.last_outage_s >= 0.4

    run_house(scenario)


def test_serving_does_not_wait_for_the_history(run_house: RunHouse) -> None:
    async def scenario(house: House) -> None:
        house_holds = threading.Event()
        plain = MemoryCoordinator.commit

        def stuck(self: MemoryCoordinator, operations: Sequence[Operation], *, timeout_ms: float) -> CompareAndSet:
            if any(operation.path == PATHS.history for operation in operations):
                assert house_holds.wait(WAIT_S)
            return plain(self, operations, timeout_ms=timeout_ms)

        MemoryCoordinator.commit = stuck  # type: ignore[method-assign]
        try:
            await house.start_primary("a", lease_ms=1_000)
            await house.until(lambda: renewals(house) >= 5)  # more than fit into a lease
            assert (await begin(await house.call("a"))).epoch
            assert history(house) == ()
            house_holds.set()
            await house.until(lambda: len(history(house)) >= 1)
        finally:
            house_holds.set()
            MemoryCoordinator.commit = plain  # type: ignore[method-assign]

    run_house(scenario)


def test_a_history_that_cannot_be_written_hurts_nobody(run_house: RunHouse) -> None:
    async def scenario(house: House) -> None:
        plain = MemoryCoordinator.commit

        def refused(self: MemoryCoordinator, operations: Sequence[Operation], *, timeout_ms: float) -> CompareAndSet:
            if any(operation.path == PATHS.history for operation in operations):
                raise CoordinatorRefused("no permission, the test says")
            return plain(self, operations, timeout_ms=timeout_ms)

        MemoryCoordinator.commit = refused  # type: ignore[method-assign]
        try:
            await house.start_primary("a")
            assert (await begin(await house.call("a"))).epoch
            assert await house.stop("a") == 0
        finally:
            MemoryCoordinator.commit = plain  # type: ignore[method-assign]
        assert history(house) == History().tenures

    run_house(scenario)


def test_details_tell_the_lease_the_warmth_and_the_oldest_transactions(run_house: RunHouse) -> None:
    async def scenario(house: House) -> None:
        await house.start_primary("a", lease_ms=5_000)
        await house.start("b", lease_ms=5_000)
        primary, standby = await house.call("a"), await house.call("b")
        begun = await primary.ask(BeginRequest(OPEN_TRANSACTIONS_MAX + 5))
        assert isinstance(begun, BeginReply)
        starts = np.arange(OPEN_TRANSACTIONS_MAX + 5) + begun.first_start_timestamp
        await primary.ask(HeartbeatRequest(starts[::-1].copy(), np.full(starts.size, begun.snapshot)))
        told = await details(primary)
        assert told.start_timestamps.tolist() == starts[:OPEN_TRANSACTIONS_MAX].tolist()
        assert set(told.snapshots.tolist()) == {begun.snapshot}
        assert (told.silent_ms >= 0).all()
        assert (told.warm, told.lease_ms, told.rest_address) == (True, 5_000, "")
        assert 0 < told.lease_remaining_ms <= 5_000
        await house.until(lambda: house.processes["b"].server.own.warm)
        await house.until(lambda: house.processes["b"].server.own.seen_lease_ms != UNKNOWN_MS)
        told = await details(standby)
        assert (told.warm, told.lease_ms, told.start_timestamps.size) == (True, 5_000, 0)
        assert 0 < told.lease_remaining_ms <= 5_000

    run_house(scenario)


def test_the_command_line_shows_the_history(run_house: RunHouse, monkeypatch: pytest.MonkeyPatch) -> None:
    async def scenario(house: House) -> None:
        for module in (commands, history_command):
            monkeypatch.setattr(module, "ZooKeeperCoordinator", lambda _: MemoryCoordinator(house.tree))

        async def shown(*arguments: str) -> str:
            result = await asyncio.to_thread(CliRunner().invoke, commands.tso, [*arguments, "--zookeeper", "x"])
            assert result.exit_code == 0, result.output
            return result.output

        await house.start("a")
        await house.until(lambda: len(history(house)) == 1)
        await house.until_primary("a")
        await house.start("b")
        await house.stop("a")
        await house.until_primary("b")
        await house.until(lambda: len(history(house)) == 2)
        told = json.loads(await shown("history", "--json"))["tenures"]
        assert [(one["holder"], one["cause"]) for one in told] == [("a", "first start"), ("b", "handed over")]
        lines = (await shown("history")).splitlines()
        assert len(lines) == 3
        assert "handed over" in lines[1]
        assert f"{told[1]['outage_ms']:,} ms" in lines[1]
        assert json.loads(await shown("status", "--json"))["history"] == told
        assert "first start" in await shown("status")
        operator = MemoryCoordinator(house.tree)
        operator.commit([SetData(PATHS.history, b"rubbish", None)], timeout_ms=1)
        assert "primary" in await shown("status")
        failed = await asyncio.to_thread(CliRunner().invoke, commands.tso, ["history", "--zookeeper", "x"])
        assert failed.exit_code == 1
        assert "remove the znode and it begins anew" in failed.output

    run_house(scenario)
