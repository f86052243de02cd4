"""What this room's tests run on.

``run``: a pipeline with everything around it fake, a lease and a commit table that do as the test says.
``house``: whole oracle processes in this process, over real loopback sockets, on the twins of ZooKeeper and HBase.
"""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Awaitable, Callable, Sequence
from typing import Any, Protocol

import pytest

from access.server_files import ServerFiles
from commit_table import Aborted, Committed, Outcome, Undecided
from lease import LeaseSettings
from lease.memory import MemoryCoordinator, MemoryTree
from store import CellStore
from store.bulk import BlockingPutter
from store.faults import FaultyCellStore
from testkit import small_limits
from tests.unit.tso.calling import Caller
from tso.decisions.deciding import Numbers
from tso.decisions.oracle import Moment
from tso.metering import Metering
from tso.persistence.arrivals import Arrival
from tso.persistence.pipeline import Pipeline
from tso.process import Beside, OracleProcess
from tso.settings import ServeSettings
from wire import (
    BeginReply,
    BeginRequest,
    CommitReply,
    CommitRequest,
    Frame,
    FrameDecoder,
    HelloReply,
    Message,
    ProtocolError,
    Reason,
    decode,
    encode,
)

EPOCH = 1000
WAIT_S = 20.0


class FakeTenure:
    """A lease that ends when the test says so."""

    epoch = EPOCH

    def __init__(self, ceiling: int) -> None:
        self.held = True
        self.ceiling = ceiling
        self.checks_left: int | None = None
        self._checking = threading.Lock()

    def is_held(self) -> bool:
        with self._checking:
            if self.checks_left is not None:
                self.checks_left -= 1
                self.held = self.held and self.checks_left >= 0
            return self.held

    def remaining_ms(self) -> float:
        return 1000.0 if self.held else 0.0


class FakeTable:
    """A commit table whose writes and look-ups wait for the test, and fail when it says so."""

    def __init__(self) -> None:
        self.commits: dict[int, int] = {}
        self.aborted: list[int] = []
        self.fenced: list[int] = []
        self.writes: list[list[int]] = []
        self.errors: list[Exception] = []
        self.gates: dict[int, threading.Event] = {}
        self.lookups_open = threading.Event()
        self.lookups_open.set()
        self.before_write: Callable[[], None] = lambda: None
        self.after_write: Callable[[], None] = lambda: None

    def hold(self, start_timestamp: int) -> threading.Event:
        """Whatever writes or reads this transaction waits until the event is set."""
        return self.gates.setdefault(start_timestamp, threading.Event())

    def record(self, start_timestamps: Sequence[int], commit_timestamps: Sequence[int], epoch: int) -> None:
        assert epoch == EPOCH
        self.writes.append(list(start_timestamps))
        self.before_write()
        self._wait_for_gates(start_timestamps)
        if self.errors:
            raise self.errors.pop(0)
        self.commits |= dict(zip(start_timestamps, commit_timestamps, strict=True))
        self.after_write()

    def outcomes(self, start_timestamps: Sequence[int]) -> dict[int, Outcome]:
        assert self.lookups_open.wait(WAIT_S)
        self._wait_for_gates(start_timestamps)
        if self.errors:
            raise self.errors.pop(0)
        return {start: self._outcome(start) for start in start_timestamps}

    def resolve_all(self, start_timestamps: Sequence[int], fence: int) -> dict[int, Outcome]:
        assert fence == EPOCH
        self.fenced += start_timestamps
        return {start: self._outcome(start) for start in start_timestamps}

    def abort(self, start_timestamp: int) -> Committed | Aborted:
        assert self.lookups_open.wait(WAIT_S)
        if self.errors:
            raise self.errors.pop(0)
        if start_timestamp in self.commits:
            return Committed(self.commits[start_timestamp])
        self.aborted.append(start_timestamp)
        return Aborted()

    def _wait_for_gates(self, start_timestamps: Sequence[int]) -> None:
        for start_timestamp in start_timestamps:
            if start_timestamp in self.gates:
                assert self.gates[start_timestamp].wait(WAIT_S)

    def _outcome(self, start: int) -> Outcome:
        if start in self.commits:
            return Committed(self.commits[start])
        return Aborted() if start in self.aborted else Undecided()


class FakeRecorder:
    """The same table's other door."""

    def __init__(self, table: FakeTable) -> None:
        self._table = table

    async def record(self, start_timestamps: Numbers, commit_timestamps: Numbers, epoch: int) -> None:
        starts, times = start_timestamps.tolist(), commit_timestamps.tolist()
        await asyncio.get_running_loop().run_in_executor(None, self._table.record, starts, times, epoch)


class FakeRequester:
    """A connection that keeps what it is sent."""

    def __init__(self) -> None:
        self.answers: dict[int, Message] = {}
        self.order: list[int] = []
        self.refused: list[str] = []
        self.dropped = False

    def send_frame(self, frame: bytes) -> None:
        (whole,) = FrameDecoder().feed(frame)
        self.send(decode(whole), whole.request_id)

    def refuse(self, error: ProtocolError) -> None:
        self.refused.append(error.reason)
        self.drop()

    def send(self, message: Message, request_id: int) -> None:
        if self.dropped:
            return
        assert request_id not in self.answers, "a request was answered twice"
        self.answers[request_id] = message
        self.order.append(request_id)

    def drop(self) -> None:
        self.dropped = True


class Rig:
    """A pipeline with everything around it fake."""

    def __init__(self, ceiling: int, limits: dict[str, float], tries_min: int) -> None:
        self.tenure = FakeTenure(ceiling)
        self.table = FakeTable()
        self.requester = FakeRequester()
        self.deposed: list[str] = []
        self.now_ms = 0.0
        self.metering = Metering(lambda: self.now_ms / 1000)
        self.requests = 0
        self.sent_early: list[tuple[list[int], int]] = []
        """Whenever answers went out before the turn's end: to which requests there were some, and commits decided."""
        self.pipeline = Pipeline(
            self.tenure,
            FakeRecorder(self.table),
            self.table,
            small_limits(**limits),
            moment=lambda: Moment(0, self.now_ms),
            metering=self.metering,
            on_deposed=self.deposed.append,
            send_answers=self.note_sent,
            tries_min=tries_min,
        )

    def note_sent(self) -> None:
        self.sent_early.append((list(self.requester.order), self.pipeline.oracle.counts.commits))

    def submit(self, message: Message, requester: FakeRequester | None = None) -> int:
        self.requests += 1
        (frame,) = FrameDecoder().feed(encode(message, self.requests))
        request = frame if isinstance(message, BeginRequest | CommitRequest) else message
        self.pipeline.submit(Arrival(requester or self.requester, self.requests, request))
        return self.requests

    def submit_frame(self, frame: Frame, requester: FakeRequester) -> None:
        self.pipeline.submit(Arrival(requester, frame.request_id, frame))

    async def answer(self, request_id: int, requester: FakeRequester | None = None) -> Message:
        answers = (requester or self.requester).answers
        await self.until(lambda: request_id in answers)
        return answers[request_id]

    async def ask(self, message: Message) -> Message:
        return await self.answer(self.submit(message))

    async def begin(self, count: int = 1) -> BeginReply:
        reply = await self.ask(BeginRequest(count))
        assert isinstance(reply, BeginReply)
        return reply

    def commit(self, begun: BeginReply, *cells: int, requester: FakeRequester | None = None) -> int:
        return self.submit(self.commit_request([begun.first_start_timestamp], begun.snapshot, list(cells)), requester)

    @staticmethod
    def commit_request(starts: list[int], snapshot: int, cells: list[int]) -> CommitRequest:
        """The same write set for each of the transactions."""
        offsets = [len(cells) * index for index in range(len(starts) + 1)]
        count = len(starts)
        return CommitRequest(starts, [snapshot] * count, [0] * count, offsets, cells * count)  # type: ignore[arg-type]

    @staticmethod
    def reason_of(reply: Message) -> Reason:
        assert isinstance(reply, CommitReply)
        return Reason(int(reply.reasons[0]))

    @staticmethod
    def new_requester() -> FakeRequester:
        return FakeRequester()

    @staticmethod
    async def until(condition: Callable[[], bool]) -> None:
        async with asyncio.timeout(WAIT_S):
            while not condition():
                await asyncio.sleep(0.001)

    async def until_deposed(self, owed: int) -> None:
        """Until the pipeline has given up; or has answered ``owed`` instead, so that a test need not wait to fail."""
        await self.until(lambda: bool(self.deposed) or owed in self.requester.answers)

    async def settle(self) -> None:
        """Let the loop do all that it can do by itself."""
        for _ in range(20):
            await asyncio.sleep(0)


class RunPipeline(Protocol):
    """Runs a scenario on a pipeline of its own, with these limits."""

    def __call__(
        self, scenario: Callable[[Rig], Awaitable[None]], *, ceiling: int = 10**9, tries_min: int = 1, **limits: float
    ) -> None: ...


@pytest.fixture
def run() -> RunPipeline:
    def run_scenario(
        scenario: Callable[[Rig], Awaitable[None]], *, ceiling: int = 10**9, tries_min: int = 1, **limits: float
    ) -> None:
        async def limited() -> None:
            rig = Rig(ceiling, limits, tries_min)
            try:
                async with asyncio.timeout(2 * WAIT_S):
                    await scenario(rig)
            finally:
                rig.pipeline.end()

        asyncio.run(limited())

    return run_scenario


LONG_LEASE_MS = 10_000
"""Longer than the pauses of a shared machine: for tests that no lease has to end in."""


class House:
    """One installation in memory: any number of oracle processes over one tree of nodes and one store."""

    def __init__(self) -> None:
        self.tree = MemoryTree()
        self.store = FaultyCellStore()
        self.lines: dict[str, list[str]] = {}
        self.coordinators: dict[str, MemoryCoordinator] = {}
        self.processes: dict[str, OracleProcess] = {}
        self.running: dict[str, asyncio.Task[int]] = {}
        self.callers: list[Caller] = []
        self.until = Rig.until

    async def start(
        self,
        name: str,
        *,
        lease_ms: int = LONG_LEASE_MS,
        advertise: str | None = None,
        tokens_file: str = "",
        tls: ServerFiles | None = None,
        beside: Beside | None = None,
        give_up: Callable[[], None] = lambda: None,
        thrift: str = "unused:1",
        store: CellStore | None = None,
        **limits: Any,
    ) -> OracleProcess:
        """Start a process; it is listening when this returns, and standby or primary. ``store``: not the house's."""
        store = store or self.store
        settings = ServeSettings(
            name,
            "unused:1",
            thrift,
            listen_port=0,
            advertise=advertise,
            tokens_file=tokens_file,
            tls=tls,
            lease=LeaseSettings(lease_ms=lease_ms),
            limits=small_limits(**limits),
        )
        coordinator = self.coordinators[name] = MemoryCoordinator(self.tree)
        lines = self.lines[name] = []
        putter = BlockingPutter(store)
        process = self.processes[name] = OracleProcess(
            settings, coordinator, store, putter, announce=lines.append, beside=beside, give_up=give_up
        )
        self.running[name] = asyncio.create_task(process.run())
        await Rig.until(lambda: bool(lines))
        return process

    async def start_primary(self, name: str, **settings: Any) -> OracleProcess:
        process = await self.start(name, **settings)
        await self.until_primary(name)
        return process

    async def until_primary(self, name: str) -> int:
        """Wait until that process serves; returns its epoch."""
        server = self.processes[name].server
        await Rig.until(lambda: server.pipeline is not None)
        assert server.pipeline is not None
        return server.pipeline.oracle.epoch

    async def call(self, name: str, token: str = "") -> Caller:
        """A caller who was let in."""
        caller = await self.knock(name)
        received = await caller.hello(token)
        assert received is not None, "the connection was closed"
        assert isinstance(received[1], HelloReply), received[1]
        return caller

    async def knock(self, name: str) -> Caller:
        """A caller who has not said hello."""
        caller = await Caller.connect(self.processes[name].server.address)
        self.callers.append(caller)
        return caller

    async def stop(self, name: str) -> int:
        """Ask a process to stop; returns its exit code."""
        self.processes[name].stop()
        return await self.running[name]

    async def stop_all(self) -> None:
        for caller in self.callers:
            await caller.close()
        for name in self.processes:
            await self.stop(name)


RunHouse = Callable[[Callable[[House], Awaitable[None]]], None]


@pytest.fixture
def run_house() -> RunHouse:
    def run_scenario(scenario: Callable[[House], Awaitable[None]]) -> None:
        async def limited() -> None:
            house = House()
            try:
                async with asyncio.timeout(2 * WAIT_S):
                    await scenario(house)
            finally:
                await house.stop_all()

        asyncio.run(limited())

    return run_scenario
