"""A pipeline with everything around it fake: a lease and a commit table that do as the test says."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Awaitable, Callable, Sequence
from typing import Protocol

import pytest

from commit_table import Aborted, Committed, Outcome, Undecided
from tso.oracle import Moment
from tso.pipeline import Arrival, Pipeline
from tso.settings import Limits
from wire import BeginReply, BeginRequest, CommitReply, CommitRequest, Message, Reason

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


class FakeTable:
    """A commit table whose writes and look-ups wait for the test, and fail when it says so."""

    def __init__(self) -> None:
        self.commits: dict[int, int] = {}
        self.aborted: list[int] = []
        self.writes: list[list[int]] = []
        self.errors: list[Exception] = []
        self.gates: dict[int, threading.Event] = {}
        self.lookups_open = threading.Event()
        self.lookups_open.set()
        self.before_write: Callable[[], None] = lambda: None
        self.after_write: Callable[[], None] = lambda: None

    def hold(self, start_timestamp: int) -> threading.Event:
        """The write that has this transaction waits until the event is set."""
        return self.gates.setdefault(start_timestamp, threading.Event())

    def record(self, start_timestamps: Sequence[int], commit_timestamps: Sequence[int], epoch: int) -> None:
        assert epoch == EPOCH
        self.writes.append(list(start_timestamps))
        self.before_write()
        for start_timestamp in start_timestamps:
            if start_timestamp in self.gates:
                assert self.gates[start_timestamp].wait(WAIT_S)
        if self.errors:
            raise self.errors.pop(0)
        self.commits |= dict(zip(start_timestamps, commit_timestamps, strict=True))
        self.after_write()

    def outcomes(self, start_timestamps: Sequence[int]) -> dict[int, Outcome]:
        assert self.lookups_open.wait(WAIT_S)
        if self.errors:
            raise self.errors.pop(0)
        return {start: self._outcome(start) for start in start_timestamps}

    def abort(self, start_timestamp: int) -> Committed | Aborted:
        assert self.lookups_open.wait(WAIT_S)
        if self.errors:
            raise self.errors.pop(0)
        if start_timestamp in self.commits:
            return Committed(self.commits[start_timestamp])
        self.aborted.append(start_timestamp)
        return Aborted()

    def _outcome(self, start: int) -> Outcome:
        if start in self.commits:
            return Committed(self.commits[start])
        return Aborted() if start in self.aborted else Undecided()


class FakeRequester:
    """A connection that keeps what it is sent."""

    def __init__(self) -> None:
        self.answers: dict[int, Message] = {}
        self.order: list[int] = []
        self.dropped = False

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

    def __init__(self, ceiling: int, limits: dict[str, float]) -> None:
        self.tenure = FakeTenure(ceiling)
        self.table = FakeTable()
        self.requester = FakeRequester()
        self.deposed: list[str] = []
        self.now_ms = 0.0
        self.requests = 0
        self.pipeline = Pipeline(
            self.tenure,
            self.table,
            Limits(**{"commit_writers": 2, **limits}),  # type: ignore[arg-type]
            moment=lambda: Moment(0, self.now_ms),
            on_deposed=self.deposed.append,
        )

    def submit(self, message: Message, requester: FakeRequester | None = None) -> int:
        self.requests += 1
        self.pipeline.submit(Arrival(requester or self.requester, self.requests, message))
        return self.requests

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
        return CommitRequest(starts, [snapshot] * len(starts), offsets, cells * len(starts))  # type: ignore[arg-type]

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

    async def settle(self) -> None:
        """Let the loop do all that it can do by itself."""
        for _ in range(20):
            await asyncio.sleep(0)


class RunPipeline(Protocol):
    """Runs a scenario on a pipeline of its own, with these limits."""

    def __call__(
        self, scenario: Callable[[Rig], Awaitable[None]], *, ceiling: int = 10**9, **limits: float
    ) -> None: ...


@pytest.fixture
def run() -> RunPipeline:
    def run_scenario(scenario: Callable[[Rig], Awaitable[None]], *, ceiling: int = 10**9, **limits: float) -> None:
        async def limited() -> None:
            rig = Rig(ceiling, limits)
            try:
                async with asyncio.timeout(2 * WAIT_S):
                    await scenario(rig)
            finally:
                rig.pipeline.end()

        asyncio.run(limited())

    return run_scenario
