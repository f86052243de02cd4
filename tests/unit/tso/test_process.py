"""Whole processes: who is primary, how it changes hands, and that nothing remembered crosses an epoch."""

from __future__ import annotations

import asyncio
import json
import re
import threading
from typing import TYPE_CHECKING, Any

import pytest
from click.testing import CliRunner

from commit_table import CommitTable, Committed, Undecided, table_name
from lease import Create, EpochRecord, LeaseRecord, Node, SetData, ZnodePaths
from lease.coordinator import CompareAndSet, create_root
from lease.memory import MemoryCoordinator, MemoryTree
from store import StoreUnavailable
from store.faults import Fault
from tests.unit.tso.calling import begin, commit_request
from tso import process
from tso.commands import serve as commands
from wire import BeginReply, BeginRequest, CommitReply, NotPrimary, Reason, StatusReply, StatusRequest

if TYPE_CHECKING:
    from tests.unit.tso.calling import Caller
    from tests.unit.tso.conftest import House, RunHouse


WAIT_S = 20.0
LOOKS_MAX = 50


async def commit(caller: Caller, begun: BeginReply, cell: int) -> Reason:
    reply = await caller.ask(commit_request(begun, [cell]))
    assert isinstance(reply, CommitReply)
    return Reason(int(reply.reasons[0]))


def test_a_process_that_is_stopped_hands_over_to_the_standby(run_house: RunHouse) -> None:
    async def scenario(house: House) -> None:
        await house.start_primary("a")
        epoch = await house.until_primary("a")
        await house.start("b")
        caller = await house.call("a")
        begun = await begin(caller)
        assert await commit(caller, begun, 1) is Reason.COMMITTED
        assert await house.stop("a") == 0
        assert house.processes["a"].metering.depositions == 0, "it was asked to end"
        assert await caller.receive() is None
        later = await house.until_primary("b")
        assert later > begun.first_start_timestamp > epoch
        after = await begin(await house.call("b"))
        assert after.snapshot >= later
        assert house.lines["a"][1:] == [f"primary, epoch {epoch}", "standby"]
        await house.until(lambda: house.lines["b"][1:] == [f"primary, epoch {later}"])

    run_house(scenario)


def test_nothing_remembered_crosses_an_epoch(run_house: RunHouse) -> None:
    async def scenario(house: House) -> None:
        first = await house.start_primary("a", lease_ms=200)
        caller = await house.call("a")
        old = await begin(caller)
        first_pipeline = first.server.pipeline
        assert first_pipeline is not None
        await asyncio.to_thread(first_pipeline._on_deposed, "the test says so")
        await house.until(lambda: first.server.pipeline not in (first_pipeline, None))
        assert await house.until_primary("a") > old.epoch
        assert await commit(caller, old, 1) is Reason.TOO_OLD
        assert await commit(caller, await begin(caller), 1) is Reason.COMMITTED

    run_house(scenario)


def test_a_primary_cut_off_from_the_coordinator_stops_and_the_standby_takes_over(run_house: RunHouse) -> None:
    async def scenario(house: House) -> None:
        await house.start_primary("a", lease_ms=200)
        await house.start("b", lease_ms=200)
        caller = await house.call("a")
        begun = await begin(caller)
        house.coordinators["a"].unreachable = True
        assert await house.until_primary("b") > begun.epoch
        await house.until(lambda: house.processes["a"].server.pipeline is None)
        assert house.processes["a"].metering.depositions == 1, "nobody asked anything, and the lease was lost"
        assert await caller.ask(commit_request(begun, [1])) == NotPrimary()
        house.coordinators["a"].unreachable = False
        server = house.processes["a"].server
        await house.until(lambda: server.not_primary.primary_address == house.processes["b"].server.address)

    run_house(scenario)


def test_a_commit_under_way_when_the_lease_ends_is_never_answered(
    run_house: RunHouse, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def scenario(house: House) -> None:
        await house.start_primary("a", lease_ms=200)
        caller = await house.call("a")
        begun = await begin(caller)
        writing, go_on, put = threading.Event(), threading.Event(), house.store.put

        def slow_put(*arguments: Any) -> None:
            writing.set()
            assert go_on.wait(WAIT_S)
            put(*arguments)

        monkeypatch.setattr(house.store, "put", slow_put)
        caller.send(commit_request(begun, [1]))
        await house.until(writing.is_set)
        house.coordinators["a"].unreachable = True
        assert await caller.receive() is None, "the lease ended without the connection being closed"
        go_on.set()
        table = CommitTable(house.store, table_name("/pythia"))
        await house.until(lambda: isinstance(table.outcome(begun.first_start_timestamp), Committed))
        house.coordinators["a"].unreachable = False

    run_house(scenario)


@pytest.mark.parametrize(("address", "named"), [("elsewhere:5480", "elsewhere:5480"), ("oracle:5480", "")])
def test_a_record_with_our_own_address_is_not_passed_on(run_house: RunHouse, address: str, named: str) -> None:
    """A process that was killed and started again finds its own address in the lease."""

    async def scenario(house: House) -> None:
        operator, paths = MemoryCoordinator(house.tree), ZnodePaths("/pythia")
        create_root(operator, paths, 1)
        record = LeaseRecord("other", "nonce", (address,), 5, False, 600_000)
        nodes = [Create(paths.lease, record.encode()), Create(paths.epoch, EpochRecord(5, 6, 5).encode())]
        operator.commit(nodes, timeout_ms=1)
        standby = await house.start("a", advertise="oracle:5480")
        waits = house.coordinators["a"]
        reads = 0

        def counted(path: str, **options: Any) -> Node | None:
            nonlocal reads
            reads += path == paths.epoch
            return operator.read(path, **options)

        waits.read = counted  # type: ignore[method-assign]

        def looked_twice() -> bool:
            operator.commit([SetData(paths.lease, record.encode(), None)], timeout_ms=1)  # makes it look again
            return reads >= 2

        await house.until(looked_twice)
        await house.until(lambda: standby.server.not_primary.primary_address == named)
        assert await (await house.call("a")).ask(BeginRequest(1)) == NotPrimary(named, 5 if named else 0)

    run_house(scenario)


def test_a_primary_that_cannot_write_gives_the_lease_up_unanswered(run_house: RunHouse) -> None:
    async def scenario(house: House) -> None:
        await house.start_primary("a", lease_ms=200, persist_retry_ms_max=1)
        caller = await house.call("a")
        begun = await begin(caller)
        house.store.plan("put", *[Fault.LOST] * 50)
        caller.send(commit_request(begun, [1]))
        assert await caller.receive() is None, "an answer was given for a commit that is not in the table"
        assert CommitTable(house.store, table_name("/pythia")).outcome(begun.first_start_timestamp) == Undecided()
        await house.until(lambda: house.lines["a"].count("standby") == 1)
        assert await house.until_primary("a") > begun.epoch, "the store works again, so may it serve again"
        outage_s = house.processes["a"].metering.last_outage_s
        assert outage_s is not None
        assert outage_s > 0.1, "the pause between its two tenures is not counted"

    run_house(scenario)


def test_a_primary_tries_each_of_its_gateways_before_it_gives_the_lease_up(run_house: RunHouse) -> None:
    async def scenario(house: House) -> None:
        await house.start_primary("a", persist_retry_ms_max=1, thrift="one:1,two:1,three:1,four:1,five:1")
        caller = await house.call("a")
        house.store.plan("put", *[Fault.LOST] * 4)
        assert await commit(caller, await begin(caller), 1) is Reason.COMMITTED
        assert house.lines["a"].count("standby") == 0

    run_house(scenario)


def test_a_process_without_its_store_stays_standby_and_names_the_primary(
    run_house: RunHouse, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def scenario(house: House) -> None:
        await house.start_primary("a")
        tries = 0

        def unavailable() -> list[str]:
            nonlocal tries
            tries += 1
            raise StoreUnavailable("the gateway is gone")

        monkeypatch.setattr(house.store, "table_names", unavailable)
        standby = await house.start("b", lease_ms=100)
        expected = house.processes["a"].server.address
        await house.until(lambda: standby.server.not_primary.primary_address == expected)
        await house.stop("a")
        seen = tries
        await house.until(lambda: tries > seen + 1)
        assert standby.server.pipeline is None, "it took the lease although it could not serve"
        monkeypatch.undo()
        await house.until_primary("b")

    run_house(scenario)


def test_stopping_finishes_what_is_under_way(run_house: RunHouse) -> None:
    async def scenario(house: House) -> None:
        await house.start_primary("a")
        caller = await house.call("a")
        begun = await begin(caller)
        caller.send(commit_request(begun, [1]))
        await caller.writer.drain()
        await house.until(lambda: house.processes["a"].server.status().commits == 1)
        assert await house.stop("a") == 0
        received = await caller.receive()
        assert received is not None
        assert isinstance(received[1], CommitReply)
        assert await caller.receive() is None

    run_house(scenario)


def test_a_lease_record_that_cannot_be_read_is_never_taken_over(run_house: RunHouse) -> None:
    async def scenario(house: House) -> None:
        await house.start_primary("a")
        await house.stop("a")
        operator = MemoryCoordinator(house.tree)
        operator.commit([SetData(ZnodePaths("/pythia").lease, b"rubbish", None)], timeout_ms=1)
        await house.start("b", lease_ms=100)
        caller = await house.call("b")
        for _ in range(3):
            assert await caller.ask(BeginRequest(1)) == NotPrimary()
        assert house.lines["b"] == [f"serving on {house.processes['b'].server.address} as standby"]

    run_house(scenario)


def test_an_unexpected_failure_of_the_lease_thread_ends_the_process(
    run_house: RunHouse, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def scenario(house: House) -> None:
        await house.start("a")

        def defect(*_: object, **__: object) -> None:
            raise ZeroDivisionError

        monkeypatch.setattr(house.coordinators["a"], "read", defect)
        monkeypatch.setattr(house.coordinators["a"], "commit", defect)
        assert await house.running["a"] == 1

    run_house(scenario)


def test_a_process_whose_lease_thread_hangs_does_not_pass_for_a_standby(
    run_house: RunHouse, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As where no memory is left, and Python waits for good for a thread that died as it began."""

    async def scenario(house: House) -> None:
        goes_on, given_up = threading.Event(), asyncio.Event()
        await house.start_primary("a", lease_ms=200, give_up=given_up.set)
        caller = await house.call("a")
        commit_there = house.coordinators["a"].commit

        def hang(*arguments: Any, **named: Any) -> CompareAndSet:
            goes_on.wait()
            return commit_there(*arguments, **named)

        monkeypatch.setattr(house.coordinators["a"], "commit", hang)
        try:
            pipeline = house.processes["a"].server.pipeline
            assert pipeline is not None
            while pipeline.serving:
                await caller.ask(BeginRequest(1))
            await given_up.wait()
        finally:
            goes_on.set()

    monkeypatch.setattr(process, "LEASES_TO_STOP_MAX", 2)
    monkeypatch.setattr(process, "STOP_LOOK_MS_MIN", 0)
    run_house(scenario)


def test_a_process_that_stops_serving_in_time_is_not_given_up(
    run_house: RunHouse, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def scenario(house: House) -> None:
        given_up = asyncio.Event()
        first = await house.start_primary("a", lease_ms=200, give_up=given_up.set)
        pipeline = first.server.pipeline
        assert pipeline is not None
        await asyncio.to_thread(pipeline._on_deposed, "the test says so")
        await house.until(lambda: first.server.pipeline not in (pipeline, None))
        await asyncio.sleep(0.6)
        assert not given_up.is_set()

    monkeypatch.setattr(process, "LEASES_TO_STOP_MAX", 1)
    monkeypatch.setattr(process, "STOP_LOOK_MS_MIN", 0)
    run_house(scenario)


async def shown_of_one_kept_from_serving(house: House, arguments: list[str], hindrance: str) -> str:
    """What ``pythia tso …`` shows while standby ``b`` says so, which takes it back at its next look at the lease."""
    for _ in range(LOOKS_MAX):
        house.processes["b"].server.own.hindrance = hindrance
        result = await asyncio.to_thread(CliRunner().invoke, commands.tso, arguments)
        if hindrance in result.output:
            return result.output
    raise AssertionError(f"it was not shown in {LOOKS_MAX} looks: {result.output}")


def test_status_shows_every_member_and_fails_without_a_primary(
    run_house: RunHouse, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def scenario(house: House) -> None:
        monkeypatch.setattr(commands, "ZooKeeperCoordinator", lambda _: MemoryCoordinator(house.tree))
        arguments = ["status", "--zookeeper", "unused:1"]
        empty = await asyncio.to_thread(CliRunner().invoke, commands.tso, arguments)
        assert empty.exit_code == 3
        assert "No oracle process" in empty.output
        await house.start_primary("a")
        await house.start("b")
        await house.until(lambda: house.processes["b"].server.not_primary != NotPrimary())
        table = await asyncio.to_thread(CliRunner().invoke, commands.tso, arguments)
        assert table.exit_code == 0, table.output
        assert "primary" in table.output
        result = await asyncio.to_thread(CliRunner().invoke, commands.tso, [*arguments, "--json"])
        members = json.loads(result.output)["members"]
        assert [(member["holder"], member["role"]) for member in members] == [("a", "primary"), ("b", "standby")]
        assert members[0]["epoch"] == await house.until_primary("a")
        for ready, word in ((False, "no"), (True, "yes")):
            house.processes["b"].server.own.warm = ready
            result = await asyncio.to_thread(CliRunner().invoke, commands.tso, [*arguments, "--json"])
            assert [member["warm"] for member in json.loads(result.output)["members"]] == [True, ready]
            table = await asyncio.to_thread(CliRunner().invoke, commands.tso, arguments)
            assert re.search(rf"standby\W+{word}\W", table.output), table.output
        shown = await shown_of_one_kept_from_serving(house, [*arguments, "--json"], "the gateway is gone")
        assert [member["hindrance"] for member in json.loads(shown)["members"]] == ["", "the gateway is gone"]
        shown = await shown_of_one_kept_from_serving(house, arguments, "the gateway is gone")
        assert "b cannot become primary now: the gateway is gone\n" in shown

    run_house(scenario)


def a_lease_without_members(address: str) -> MemoryTree:
    tree, paths = MemoryTree(), ZnodePaths("/pythia")
    coordinator = MemoryCoordinator(tree)
    create_root(coordinator, paths, 1000)
    lease = LeaseRecord("a", "nonce", (address,), 1, released=False, lease_ms=2000)
    coordinator.commit([Create(paths.lease, lease.encode())], timeout_ms=1000)
    return tree


def test_status_does_not_have_one_started_where_one_serves_that_may_not_show_itself(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    tree = a_lease_without_members("127.0.0.1:1")
    monkeypatch.setattr(commands, "ZooKeeperCoordinator", lambda _: MemoryCoordinator(tree))
    shown = CliRunner().invoke(commands.tso, ["status", "--zookeeper", "unused:1"])
    assert shown.exit_code == 3
    assert "though a at 127.0.0.1:1 has the lease: its log says why" in shown.output
    assert "error: 127.0.0.1:1: nothing listens there: its process may have just ended\n" in shown.output


def test_status_asks_whoever_has_the_lease_where_nobody_is_a_member(
    run_house: RunHouse, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As where ZooKeeper answers operators, and not the oracles."""

    async def scenario(house: House) -> None:
        await house.start_primary("a")
        await house.start("b")
        address = house.processes["b"].server.address
        tree = a_lease_without_members(address)
        monkeypatch.setattr(commands, "ZooKeeperCoordinator", lambda _: MemoryCoordinator(tree))
        arguments = ["status", "--zookeeper", "unused:1"]
        shown = await shown_of_one_kept_from_serving(house, arguments, "not connected to ZooKeeper")
        assert f"though a at {address} has the lease" in shown
        assert "It says that it is standby: not connected to ZooKeeper\n" in shown

        await house.stop("b")
        result = await asyncio.to_thread(CliRunner().invoke, commands.tso, arguments)
        assert result.exit_code == 3
        assert "nothing listens there" in result.output

    run_house(scenario)


def test_status_names_a_member_that_does_not_answer(run_house: RunHouse, monkeypatch: pytest.MonkeyPatch) -> None:
    async def scenario(house: House) -> None:
        await house.start_primary("a")
        await house.processes["a"].server.close()
        monkeypatch.setattr(commands, "ZooKeeperCoordinator", lambda _: MemoryCoordinator(house.tree))
        result = await asyncio.to_thread(CliRunner().invoke, commands.tso, ["status", "--zookeeper", "unused:1"])
        assert result.exit_code == 3
        assert "silent" in result.output

    run_house(scenario)


def test_status_is_answered_while_the_process_is_standby(run_house: RunHouse) -> None:
    async def scenario(house: House) -> None:
        await house.start_primary("a")
        await house.start("b")
        status = await (await house.call("b")).ask(StatusRequest())
        assert isinstance(status, StatusReply)
        assert status.epoch == 0

    run_house(scenario)
