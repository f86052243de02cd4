"""Taking a process out: never with work under way, and never the last one unasked."""

from __future__ import annotations

import asyncio
import json
import threading
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from click.testing import CliRunner

from commit_table import CommitTable, Committed, table_name
from fleet import CannotHandOver, Seen
from lease import Member
from lease.memory import MemoryCoordinator
from tests.tokens import one_of_each
from tests.unit.tso.calling import begin, commit_request
from tso.commands import drain as drain_command
from tso.commands.endings import Ending
from tso.commands.serve import tso
from tso.draining import chosen
from tso.warmth import warm_kernels
from wire import (
    BadRequest,
    BeginRequest,
    CommitReply,
    DrainReply,
    DrainRequest,
    HandoverReply,
    HandoverRequest,
    NotPrimary,
    Reason,
    Role,
    StatusReply,
    encode,
)

if TYPE_CHECKING:
    from click.testing import Result

    from tests.unit.tso.calling import Caller
    from tests.unit.tso.conftest import House, RunHouse
    from wire import BeginReply

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

    async def commit(self, house: House, caller: Caller) -> BeginReply:
        """A transaction whose commit is being written, and does not end before the test lets it."""
        put = house.store.put

        def slow_put(*arguments: Any) -> None:
            self.writing.set()
            assert self.go_on.wait(WAIT_S)
            put(*arguments)

        begun = await begin(caller)
        self._monkeypatch.setattr(house.store, "put", slow_put)
        caller.send(commit_request(begun, [1]))
        await house.until(self.writing.is_set)
        return begun


def test_a_primary_ends_when_all_is_answered_and_the_standby_takes_over(run_house: RunHouse, slow: SlowWrites) -> None:
    async def scenario(house: House) -> None:
        await house.start_primary("a")
        await house.start("b")
        caller, operator = await house.call("a"), await house.call("a")
        begun = await slow.commit(house, caller)
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
        begun = await slow.commit(house, caller)
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


def test_a_primary_that_loses_its_lease_while_it_is_drained_ends(run_house: RunHouse, slow: SlowWrites) -> None:
    """Nothing is owed any more then, and whoever asked was not to be told that it serves on."""

    async def scenario(house: House) -> None:
        await house.start_primary("a", lease_ms=1_000)
        caller, operator = await house.call("a"), await house.call("a")
        begun = await slow.commit(house, caller)
        operator.send(DrainRequest(20_000))
        await house.until(lambda: house.processes["a"].server.status().role.name == "DRAINING")
        house.coordinators["a"].unreachable = True
        answer = await operator.receive()
        assert answer is not None
        assert answer[1] == DrainReply(begun.epoch)
        slow.go_on.set()
        assert await house.running["a"] == 0

    run_house(scenario)


class HeldBeside:
    """REST, as far as a drain sees it."""

    def __init__(self, held: int) -> None:
        self.held = held
        self.asked = 0
        self.ended = False

    async def run(self, oracle: str) -> None:
        try:
            await asyncio.Event().wait()
        finally:
            self.ended = True

    async def transactions_held(self) -> int:
        self.asked += 1
        return self.held


def test_what_rest_holds_is_waited_for_after_the_hand_over(run_house: RunHouse) -> None:
    async def scenario(house: House) -> None:
        rest = HeldBeside(2)
        process = await house.start_primary("a", beside=rest)
        await house.start("b")
        operator = await house.call("a")
        epoch = (await begin(operator)).epoch
        operator.send(DrainRequest(60_000))
        assert await house.until_primary("b") > epoch
        await house.until(lambda: rest.asked > 1)
        assert process.server.pipeline is None
        assert not rest.ended
        rest.held = 0
        answer = await operator.receive()
        assert answer is not None
        assert answer[1] == DrainReply(epoch)
        assert await house.running["a"] == 0
        assert rest.ended

    run_house(scenario)


def test_a_process_whose_rest_still_holds_something_does_not_end(run_house: RunHouse) -> None:
    async def scenario(house: House) -> None:
        rest = HeldBeside(2)
        await house.start_primary("a")
        await house.start("b", beside=rest)
        operator = await house.call("b")
        for _ in range(2):
            assert await operator.ask(DrainRequest(1)) == DrainReply(0, 2)
        assert not house.running["b"].done()
        rest.held = 0
        assert await operator.ask(DrainRequest(1)) == DrainReply(0)
        assert await house.running["b"] == 0

    run_house(scenario)


@pytest.mark.parametrize("first", [DrainRequest(20_000), HandoverRequest()], ids=["drain", "hand-over"])
@pytest.mark.parametrize("second", [DrainRequest(20_000), HandoverRequest()], ids=["drain", "hand-over"])
def test_of_two_who_ask_in_one_turn_the_second_is_told_so(
    run_house: RunHouse, first: DrainRequest | HandoverRequest, second: DrainRequest | HandoverRequest
) -> None:
    async def scenario(house: House) -> None:
        process = await house.start_primary("a", lease_ms=60_000)
        epoch = await house.until_primary("a")
        operator = await house.call("a")
        operator.writer.write(encode(first, 1) + encode(second, 2))
        received = [await operator.receive(), await operator.receive()]
        answers = dict(answer for answer in received if answer is not None)
        assert isinstance(answers[2], BadRequest), answers
        assert answers[1] == (DrainReply(epoch) if isinstance(first, DrainRequest) else HandoverReply(epoch))
        assert (process.metering.handovers, process.metering.depositions) == (1, 0)

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


async def start_warm(house: House, name: str) -> None:
    """A standby that could take over, and knows who is primary."""
    server = (await house.start(name)).server
    await house.until(lambda: server.own.warm and server.not_primary.primary_address != "")


def test_a_process_says_that_it_warms_up_and_when_it_is_warm(
    run_house: RunHouse, caplog: pytest.LogCaptureFixture
) -> None:
    async def scenario(house: House) -> None:
        await house.start_primary("a")

    with caplog.at_level("INFO", "tso.process"):
        run_house(scenario)
    warming, warm = (line for line in caplog.messages if "warm" in line)
    assert warming.startswith("warms up, ")
    assert warm.startswith("is warm: ")


def test_the_command_drains_the_primary_and_says_who_took_over(
    run_house: RunHouse, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def scenario(house: House) -> None:
        await house.start_primary("a")
        await start_warm(house, "b")
        leave_when_ended(house, "a")
        done = await invoke(house, monkeypatch, "--json")
        assert done.exit_code == 0, done.output
        told = json.loads(done.stdout)
        assert (told["holder"], told["role"], told["primary"]) == ("a", "primary", "b")
        assert "is asked to take no new work" in done.stderr
        assert await house.running["a"] == 0

    run_house(scenario)


def test_a_primary_stays_until_its_standby_is_warm(run_house: RunHouse, monkeypatch: pytest.MonkeyPatch) -> None:
    async def scenario(house: House) -> None:
        await house.start_primary("a")
        await start_warm(house, "b")
        house.processes["b"].server.own.warm = False
        refused = await invoke(house, monkeypatch)
        assert refused.exit_code == 1
        assert "no standby is ready to take over from a yet (b): wait until pythia tso status" in refused.stderr
        assert not house.running["a"].done()
        await begin(await house.call("a"))
        leave_when_ended(house, "b")
        assert (await invoke(house, monkeypatch, "b")).exit_code == 0, "a standby may leave that nobody waits for"

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
        await slow.commit(house, caller)
        refused = await invoke(house, monkeypatch, "--even-if-last", "--timeout-ms", "1")
        assert refused.exit_code == 1
        assert "a serves on: 1 transactions were still under way after 1 ms" in refused.stderr
        slow.go_on.set()

    run_house(scenario)


@pytest.mark.parametrize("newer", [Role.PRIMARY, Role.DRAINING])
def test_of_two_who_say_that_they_serve_the_newer_epoch_is_drained(newer: Role) -> None:
    deposed, primary, standby = (
        Seen(Member(holder, "standby", f"{holder}:1"), StatusReply(role, holder, f"{holder}:1", "", epoch))
        for holder, role, epoch in (("a", Role.PRIMARY, 5), ("b", newer, 6), ("c", Role.STANDBY, 0))
    )
    assert chosen([deposed, primary, standby], "") is primary
    assert chosen([standby, primary, deposed], "") is primary
    assert chosen([deposed, primary, standby], "a") is deposed


def test_of_several_of_one_name_none_is_drained_by_it() -> None:
    one, other, again = (
        Seen(Member("a", "standby", address), StatusReply(Role.STANDBY, "a", address, ""))
        for address in ("h:1", "h:2", "h:1")
    )
    with pytest.raises(CannotHandOver, match="h:1 or h:2"):
        chosen([one, other], "a")
    assert chosen([one, other], "h:2") is other
    assert chosen([one, again], "a") is one, "it was started anew, and its last session has not ended yet"


def test_a_process_that_is_not_there_is_told(run_house: RunHouse, monkeypatch: pytest.MonkeyPatch) -> None:
    async def scenario(house: House) -> None:
        nobody = await invoke(house, monkeypatch)
        assert (nobody.exit_code, "no process is primary" in nobody.stderr) == (Ending.UNREACHABLE, True)
        await house.start_primary("a")
        unknown = await invoke(house, monkeypatch, "elsewhere:1")
        assert (unknown.exit_code, "no process here is at elsewhere:1" in unknown.stderr) == (1, True)

    run_house(scenario)


def test_who_is_not_let_in_is_told_so_and_not_to_end_the_process(
    run_house: RunHouse, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    keyring = one_of_each(tmp_path)

    async def scenario(house: House) -> None:
        process = await house.start_primary("a", tokens_file=str(keyring.path))
        for arguments in ((), ("a",)):
            done = await invoke(house, monkeypatch, *arguments)
            assert done.exit_code == 1
            assert "a token is asked for" in done.stderr
            assert "no process is primary" not in done.stderr
            assert "SIGTERM" not in done.stderr
        monkeypatch.setenv("PYTHIA_TOKEN_FILE", str(tmp_path / "none"))
        assert "No such file" in (await invoke(house, monkeypatch)).stderr
        monkeypatch.setenv("PYTHIA_TOKEN_FILE", keyring.file_of("transact"))
        done = await invoke(house, monkeypatch, "--even-if-last")
        assert "asks for the role operate" in done.stderr
        assert "before asking again" not in done.stderr
        assert process.server.pipeline is not None

    run_house(scenario)
