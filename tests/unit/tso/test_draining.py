"""Taking a process out: never with work under way, and never the last one unasked."""

from __future__ import annotations

import asyncio
import json
import threading
from typing import TYPE_CHECKING, Any

import pytest
from click.testing import CliRunner

from commit_table import CommitTable, Committed, table_name
from lease.memory import MemoryCoordinator
from tests.unit.tso.test_process import begin, commit_request
from tso import drain_command
from tso.commands import tso
from tso.warmth import warm_kernels
from wire import BadRequest, BeginRequest, CommitReply, DrainReply, DrainRequest, NotPrimary, Reason

if TYPE_CHECKING:
    from click.testing import Result

    from tests.unit.tso.conftest import House, RunHouse

WAIT_S = 20.0


@pytest.fixture(autouse=True, scope="module")
def _compiled() -> None:
    """The first oracle in a fresh copy of the project compiles its kernels, which no test should wait for."""
    warm_kernels()


@pytest.fixture
def slow(monkeypatch: pytest.MonkeyPatch) -> SlowWrites:
    return SlowWrites(monkeypatch)


class SlowWrites:
    """Writes to the store that wait until the test lets them go."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self._monkeypatch = monkeypatch
        self.writing, self.go_on = threading.Event(), threading.Event()

    def begin(self, house: House) -> None:
        put = house.store.put

        def slow_put(*arguments: Any) -> None:
            self.writing.set()
            assert self.go_on.wait(WAIT_S)
            put(*arguments)

        self._monkeypatch.setattr(house.store, "put", slow_put)


def test_a_primary_ends_when_all_is_answered_and_the_standby_takes_over(run_house: RunHouse, slow: SlowWrites) -> None:
    async def scenario(house: House) -> None:
        await house.start_primary("a")
        await house.start("b")
        caller, operator = await house.call("a"), await house.call("a")
        begun = await begin(caller)
        slow.begin(house)
        caller.send(commit_request(begun, 1))
        await house.until(slow.writing.is_set)
        operator.send(DrainRequest(20_000))
        await house.until(lambda: house.processes["a"].server.status().role.name == "DRAINING")
        late = await house.call("a")
        assert await late.ask(BeginRequest(1)) == NotPrimary()
        assert await late.ask(DrainRequest(1)) == BadRequest("it is being drained already: look at pythia tso status")
        assert not house.running["a"].done()
        slow.go_on.set()
        received = await caller.receive()
        assert received is not None
        assert isinstance(received[1], CommitReply)
        assert received[1].reasons[0] == Reason.COMMITTED
        answer = await operator.receive()
        assert answer is not None
        assert answer[1] == DrainReply(begun.epoch)
        assert house.processes["a"].metering.handovers == 1, "it answered before the lease was given back"
        assert await house.running["a"] == 0
        assert await house.until_primary("b") > begun.epoch

    run_house(scenario)


def test_a_process_with_work_under_way_does_not_end_and_serves_on(run_house: RunHouse, slow: SlowWrites) -> None:
    async def scenario(house: House) -> None:
        await house.start_primary("a", lease_ms=60_000)
        caller, operator = await house.call("a"), await house.call("a")
        begun = await begin(caller)
        slow.begin(house)
        caller.send(commit_request(begun, 1))
        await house.until(slow.writing.is_set)
        assert await operator.ask(DrainRequest(1)) == DrainReply(begun.epoch, 1)
        assert (await begin(operator)).epoch == begun.epoch
        slow.go_on.set()
        received = await caller.receive()
        assert received is not None
        assert isinstance(received[1], CommitReply)
        assert not house.running["a"].done()
        outcome = CommitTable(house.store, table_name("/pythia")).outcome(begun.first_start_timestamp)
        assert isinstance(outcome, Committed)
        assert await operator.ask(DrainRequest(20_000)) == DrainReply(begun.epoch)
        assert await house.running["a"] == 0

    run_house(scenario)


def test_a_standby_leaves_and_the_primary_does_not_notice(run_house: RunHouse) -> None:
    async def scenario(house: House) -> None:
        await house.start_primary("a")
        await house.start("b")
        begun = await begin(await house.call("a"))
        assert await (await house.call("b")).ask(DrainRequest(1)) == DrainReply(0)
        assert await house.running["b"] == 0
        assert (await begin(await house.call("a"))).epoch == begun.epoch

    run_house(scenario)


def invoke(house: House, monkeypatch: pytest.MonkeyPatch, *arguments: str) -> asyncio.Task[Result]:
    monkeypatch.setattr(drain_command, "ZooKeeperCoordinator", lambda _: MemoryCoordinator(house.tree))
    line = ["drain", "--zookeeper", "unused:1", *arguments]
    return asyncio.create_task(asyncio.to_thread(CliRunner().invoke, tso, line))


def leave_when_ended(house: House, name: str) -> None:
    """What closing the coordinator does in a process of its own."""
    house.running[name].add_done_callback(lambda _: house.coordinators[name].close())


def test_the_command_drains_the_primary_and_says_who_took_over(
    run_house: RunHouse, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def scenario(house: House) -> None:
        await house.start_primary("a")
        await house.start("b")
        await house.until(lambda: house.processes["b"].server.not_primary.primary_address != "")
        leave_when_ended(house, "a")
        done = await invoke(house, monkeypatch, "--json")
        assert done.exit_code == 0, done.output
        told = json.loads(done.stdout)
        assert (told["holder"], told["role"], told["primary"]) == ("a", "primary", "b")
        assert "takes no new work" in done.stderr
        assert await house.running["a"] == 0

    run_house(scenario)


def test_the_last_one_is_drained_only_where_that_is_said(run_house: RunHouse, monkeypatch: pytest.MonkeyPatch) -> None:
    async def scenario(house: House) -> None:
        await house.start_primary("a")
        refused = await invoke(house, monkeypatch)
        assert refused.exit_code == 1
        assert "no standby answers that could take over from a" in refused.stderr
        assert not house.running["a"].done()
        await begin(await house.call("a"))
        leave_when_ended(house, "a")
        done = await invoke(house, monkeypatch, "--even-if-last")
        assert done.exit_code == 0, done.output
        assert "nobody serves now" in done.stdout
        assert await house.running["a"] == 0

    run_house(scenario)


def test_the_command_says_what_was_still_under_way(
    run_house: RunHouse, monkeypatch: pytest.MonkeyPatch, slow: SlowWrites
) -> None:
    async def scenario(house: House) -> None:
        await house.start_primary("a", lease_ms=60_000)
        caller = await house.call("a")
        begun = await begin(caller)
        slow.begin(house)
        caller.send(commit_request(begun, 1))
        await house.until(slow.writing.is_set)
        refused = await invoke(house, monkeypatch, "--even-if-last", "--timeout-ms", "1")
        assert refused.exit_code == 1
        assert "a serves on: 1 transactions were still under way after 1 ms" in refused.stderr
        slow.go_on.set()

    run_house(scenario)


def test_a_process_that_is_not_there_is_told(run_house: RunHouse, monkeypatch: pytest.MonkeyPatch) -> None:
    async def scenario(house: House) -> None:
        nobody = await invoke(house, monkeypatch)
        assert (nobody.exit_code, "no process is primary" in nobody.stderr) == (1, True)
        await house.start_primary("a")
        unknown = await invoke(house, monkeypatch, "elsewhere:1")
        assert (unknown.exit_code, "no process here is at elsewhere:1" in unknown.stderr) == (1, True)

    run_house(scenario)
