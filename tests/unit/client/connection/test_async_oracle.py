"""The asynchronous front, against oracles by script on real sockets: what goes out together, what is asked again."""

from __future__ import annotations

import asyncio
import concurrent.futures.thread
import math
import threading
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import pytest
from prometheus_client import generate_latest

from client import ClientMetrics, ClientSettings
from client.connection.async_oracle import AsyncOracleClient
from client.connection.dispatch import COMMIT_CELLS_MAX
from client.connection.primary import Settled
from client.connection.tickets import CommitTicket, Decision
from client.errors import AccessDenied, InvalidRequest, NoPrimary, ReplyLost
from wire import (
    PART_CELLS_MAX,
    BeginReply,
    BeginRequest,
    CommitReply,
    CommitRequest,
    FrameDecoder,
    HelloReply,
    HelloRequest,
    LargeCommitRequest,
    Message,
    NotPrimary,
    OutcomeReply,
    OutcomeRequest,
    Overloaded,
    Reason,
    WriteSetPart,
    WriteSetTaken,
    decode,
    encode,
)
from wire.packing import CommitArguments

SETTINGS = ClientSettings("", "unused:1", oracle="unused:1")
EPOCH = 50
USE_SECONDS_MAX = 20
"""So that a caller who is never told fails its test, and does not hold it up."""
FAR_MS = 200
"""To ZooKeeper and back, from another continent."""
TRIES_MAX = 16
"""Within a second and with growing pauses; without any it would be thousands."""

SILENCE = Overloaded(1)
"""Stands for no answer at all."""

Answer = Callable[[Message], Message | None]


@dataclass
class Primary:
    """Answers as ``answer`` says, or hangs up where that is None, or is silent; counts timestamps."""

    answer: Answer
    address: str = ""
    connections: int = 0
    requests: list[Message] = field(default_factory=list)
    open: dict[asyncio.StreamWriter, asyncio.Task[None] | None] = field(default_factory=dict)

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.connections += 1
        self.open[writer] = asyncio.current_task()
        try:
            await self._answer(reader, writer)
        finally:
            writer.close()
            del self.open[writer]

    async def _answer(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        decoder = FrameDecoder()
        while data := await reader.read(2**16):
            for frame in decoder.feed(data):
                message = decode(frame)
                if isinstance(message, HelloRequest):
                    writer.write(encode(HelloReply(1, ("read", "transact")), frame.request_id))
                    continue
                self.requests.append(message)
                reply = self.answer(message)
                if reply is None:
                    return
                if reply is SILENCE:
                    continue
                writer.write(encode(reply, frame.request_id))


@dataclass
class Directory:
    """Knows one address, which may change."""

    address: str
    data: str | None = None

    def primary(self, timeout_ms: int) -> str | None:
        return self.address

    def settled(self, timeout_ms: int) -> Settled | None:
        raise AssertionError("nobody asks for that here")

    def has_moved(self, address: str, timeout_ms: int) -> bool:
        return address != self.address


class Granting:
    """Begins and commits whatever is asked for."""

    def __init__(self) -> None:
        self._last = 100

    def __call__(self, message: Message) -> Message | None:
        if isinstance(message, BeginRequest):
            first, self._last = self._last + 1, self._last + message.count
            return BeginReply(first, message.count, first - 1, EPOCH)
        assert isinstance(message, CommitRequest)
        count = message.start_timestamps.size
        first, self._last = self._last + 1, self._last + count
        return CommitReply(np.arange(first, first + count), np.zeros(count, np.uint8))


@asynccontextmanager
async def serving(answer: Answer) -> AsyncIterator[Primary]:
    primary = Primary(answer)
    server = await asyncio.start_server(primary.serve, "127.0.0.1", 0)
    primary.address = f"127.0.0.1:{server.sockets[0].getsockname()[1]}"
    try:
        yield primary
    finally:
        server.close()
        handlers = [handler for handler in primary.open.values() if handler is not None]
        for writer in primary.open:
            writer.close()
        await asyncio.gather(*handlers)
        await asyncio.sleep(0)


def with_client(
    answer: Answer,
    use: Callable[[AsyncOracleClient, Primary, Directory], Awaitable[None]],
    settings: ClientSettings = SETTINGS,
    metrics: ClientMetrics | None = None,
) -> None:
    async def main() -> None:
        async with serving(answer) as primary:
            directory = Directory(primary.address)
            client = AsyncOracleClient(directory, settings, metrics=metrics)
            try:
                async with asyncio.timeout(USE_SECONDS_MAX):
                    await use(client, primary, directory)
            finally:
                client.close()

    asyncio.run(main())


def test_what_the_tasks_of_a_loop_ask_for_goes_out_together_and_each_gets_its_own() -> None:
    async def use(client: AsyncOracleClient, primary: Primary, directory: Directory) -> None:
        begun = await asyncio.gather(*(client.begin() for _ in range(100)))
        assert len({each.first_start_timestamp for each in begun}) == 100
        decisions = await asyncio.gather(
            *(client.commit(each.first_start_timestamp, each.snapshot, [1, 2]) for each in begun)
        )
        assert len({each.commit_timestamp for each in decisions}) == 100
        assert {each.reason for each in decisions} == {Reason.COMMITTED}
        in_halves = [BeginRequest, BeginRequest, CommitRequest, CommitRequest]
        assert [type(request) for request in primary.requests] == in_halves
        assert primary.connections == 1

    with_client(Granting(), use)


def test_who_comes_while_a_frame_is_under_way_gets_one_of_its_own() -> None:
    async def use(client: AsyncOracleClient, primary: Primary, directory: Directory) -> None:
        first = client.begin()
        while not primary.requests:
            await asyncio.sleep(0)
        second = client.begin()
        begun = await asyncio.gather(first, second)
        assert len({each.first_start_timestamp for each in begun}) == 2
        decisions = [client.commit(begun[0].first_start_timestamp, begun[0].snapshot, [1])]
        while len(primary.requests) < 3:
            await asyncio.sleep(0)
        decisions.append(client.commit(begun[1].first_start_timestamp, begun[1].snapshot, [2]))
        assert len({each.commit_timestamp for each in await asyncio.gather(*decisions)}) == 2
        assert primary.requests[:2] == [BeginRequest(1), BeginRequest(1)]

    with_client(Granting(), use)


def test_batches_go_as_columns() -> None:
    async def use(client: AsyncOracleClient, primary: Primary, directory: Directory) -> None:
        begun = await client.begin_many(3)
        starts = np.arange(begun.first_start_timestamp, begun.first_start_timestamp + 3)
        request = CommitRequest(
            starts, starts * 0 + begun.snapshot, starts * 0, np.arange(4, dtype=np.uint32), starts.astype(np.uint64)
        )
        decisions = await client.commit_many(request)
        assert decisions.reply.commit_timestamps.size == 3
        assert primary.requests == [BeginRequest(3), request]

    with_client(Granting(), use)


def test_one_that_does_not_wait_any_more_disturbs_nobody() -> None:
    async def use(client: AsyncOracleClient, primary: Primary, directory: Directory) -> None:
        gone, staying = client.begin(), client.begin()
        gone.cancel()
        assert (await staying).transactions == 1
        assert primary.requests == [BeginRequest(2)]

    with_client(Granting(), use)


def test_one_whose_on_sent_raises_keeps_no_other_from_being_told() -> None:
    told: list[str] = []
    reported: list[BaseException] = []
    error = RuntimeError("the test says so")

    def raising() -> None:
        raise error

    async def use(client: AsyncOracleClient, primary: Primary, directory: Directory) -> None:
        loop = asyncio.get_running_loop()
        loop.set_exception_handler(lambda _, context: reported.append(context["exception"]))
        now_s = time.monotonic()
        callers: list[asyncio.Future[Decision]] = []
        for on_sent in (raising, lambda: told.append("sent")):
            callers.append(loop.create_future())
            ticket = CommitTicket(
                [callers[-1]], now_s, now_s + USE_SECONDS_MAX, CommitArguments.of_one(101, 100, 0, [7], 0), 1
            )
            ticket.on_sent = on_sent
            client._dispatcher.submit(ticket)
        assert all(decision.commit_timestamp for decision in await asyncio.gather(*callers))

    with_client(Granting(), use)
    assert (told, reported) == (["sent"], [error])


def test_who_takes_connections_and_hangs_up_is_not_asked_in_a_whirl() -> None:
    async def use(client: AsyncOracleClient, primary: Primary, directory: Directory) -> None:
        with pytest.raises(NoPrimary):
            await client.begin(deadline_ms=1_000)
        assert 2 <= primary.connections <= TRIES_MAX

    with_client(lambda message: None, use)


def test_what_nobody_expected_while_a_primary_is_looked_for_makes_no_whirl(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    async def use(client: AsyncOracleClient, primary: Primary, directory: Directory) -> None:
        tries: list[int] = []

        def fail(timeout_ms: int) -> str:
            tries.append(timeout_ms)
            raise RuntimeError("can't start new thread")

        with monkeypatch.context() as failing:
            failing.setattr(directory, "primary", fail)
            with pytest.raises(NoPrimary, match="can't start new thread"):
                await client.begin(deadline_ms=1_000)
        assert 2 <= len(tries) <= TRIES_MAX
        assert [record.exc_info is not None for record in caplog.records] == [True], "once is enough"
        assert (await client.begin()).transactions == 1

    with_client(Granting(), use)


def test_an_address_that_takes_connections_and_says_nothing_is_told_so() -> None:
    listening: set[asyncio.StreamWriter] = set()

    async def hear(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        listening.add(writer)
        await reader.read()
        writer.close()
        await writer.wait_closed()
        listening.remove(writer)

    async def main() -> None:
        async with await asyncio.start_server(hear, "127.0.0.1", 0) as server:
            host, port = server.sockets[0].getsockname()[:2]
            client = AsyncOracleClient(Directory(f"{host}:{port}"), replace(SETTINGS, request_timeout_ms=100))
            try:
                with pytest.raises(NoPrimary, match=f"to the primary at {host}:{port}: it does not answer"):
                    await client.begin(deadline_ms=500)
            finally:
                client.close()
            async with asyncio.timeout(USE_SECONDS_MAX):
                while listening:
                    await asyncio.sleep(0.01)

    asyncio.run(main())


def test_another_primary_is_noticed_however_far_away_is_who_knows_of_it() -> None:
    """The one who was asked is paused, say, and hangs up on nobody."""

    class FarDirectory(Directory):
        def has_moved(self, address: str, timeout_ms: int) -> bool:
            if timeout_ms < FAR_MS:
                return False  # nothing was found out in time
            time.sleep(FAR_MS / 1000)
            return address != self.address

    async def main() -> None:
        async with serving(lambda message: SILENCE) as paused, serving(Granting()) as other:
            directory = FarDirectory(paused.address)
            client = AsyncOracleClient(directory, replace(SETTINGS, request_timeout_ms=60_000))
            try:
                asked = client.begin()
                while not paused.requests:
                    await asyncio.sleep(0)
                directory.address = other.address
                async with asyncio.timeout(USE_SECONDS_MAX):
                    assert (await asked).transactions == 1
            finally:
                client.close()

    asyncio.run(main())


def test_the_watch_goes_on_where_nobody_can_be_asked_who_is_primary(monkeypatch: pytest.MonkeyPatch) -> None:
    async def use(client: AsyncOracleClient, primary: Primary, directory: Directory) -> None:
        asked: list[object] = []

        def fail(*call: object) -> None:
            asked.append(call)
            raise RuntimeError("can't start new thread")

        lost = client.begin(deadline_ms=300)
        while not primary.requests:
            await asyncio.sleep(0)
        monkeypatch.setattr(threading.Thread, "start", fail)
        with pytest.raises(NoPrimary):
            await lost
        assert asked

    with_client(lambda message: SILENCE, use)


def test_a_primary_is_found_for_threads_that_outlive_the_main_one(monkeypatch: pytest.MonkeyPatch) -> None:
    async def use(client: AsyncOracleClient, primary: Primary, directory: Directory) -> None:
        assert (await client.begin()).transactions == 1

    monkeypatch.setattr(concurrent.futures.thread, "_shutdown", True)  # as from the main thread's end on
    with_client(Granting(), use)


def test_an_overloaded_oracle_is_asked_again_after_the_time_that_it_names() -> None:
    granting, refused, metrics = Granting(), [Overloaded(30), Overloaded(1)], ClientMetrics()

    async def use(client: AsyncOracleClient, primary: Primary, directory: Directory) -> None:
        loop = asyncio.get_running_loop()
        began = loop.time()
        assert (await client.begin()).transactions == 1
        assert loop.time() - began >= 0.03
        assert primary.requests == [BeginRequest(1)] * 3
        assert primary.connections == 1

    with_client(lambda message: refused.pop(0) if refused else granting(message), use, metrics=metrics)
    counted = generate_latest(metrics).decode()
    assert 'pythia_client_oracle_overloads_total{root="/pythia"} 2.0' in counted
    assert 'pythia_client_oracle_connections_total{root="/pythia"} 1.0' in counted


def test_a_refused_question_holds_up_no_begin_and_no_commit() -> None:
    granting = Granting()

    async def use(client: AsyncOracleClient, primary: Primary, directory: Directory) -> None:
        question = client.outcomes([7])
        while not primary.requests:
            await asyncio.sleep(0)
        for _ in range(20):
            assert (await client.begin()).transactions == 1
            assert (await client.commit(101, 100, [7])).commit_timestamp
        assert [message for message in primary.requests if isinstance(message, OutcomeRequest)] == primary.requests[:1]
        assert not question.done()

    def answer(message: Message) -> Message | None:
        return Overloaded(2_000 * USE_SECONDS_MAX) if isinstance(message, OutcomeRequest) else granting(message)

    with_client(answer, use)


def test_a_standby_names_the_primary_and_that_is_asked() -> None:
    async def use(client: AsyncOracleClient, standby: Primary, directory: Directory) -> None:
        async with serving(Granting()) as primary:
            named[0] = primary.address
            begun = await asyncio.gather(client.begin(), client.begin())
            assert [each.epoch for each in begun] == [EPOCH, EPOCH]
            assert standby.requests == [BeginRequest(2)]
            assert primary.requests == [BeginRequest(2)]

    named = [""]
    with_client(lambda message: NotPrimary(named[0]), use)


def test_more_than_may_wait_is_refused_at_once_and_the_others_are_served() -> None:
    async def use(client: AsyncOracleClient, primary: Primary, directory: Directory) -> None:
        for _ in range(3):  # nor more, or fewer, once some were sent
            answers = await asyncio.gather(*(client.begin() for _ in range(6)), return_exceptions=True)
            refused = [each for each in answers if isinstance(each, InvalidRequest)]
            assert len(refused) == 2
            assert "oracle_requests_max" in str(refused[0])
        assert primary.requests == [BeginRequest(4)] * 3
        for _ in range(3):
            told = await asyncio.gather(*(client.commit(101, 100, [7]) for _ in range(6)), return_exceptions=True)
            assert sum(isinstance(each, InvalidRequest) for each in told) == 2

    with_client(Granting(), use, replace(SETTINGS, oracle_requests_max=4))


@pytest.mark.parametrize("before", ["expired", "refused", "lost"])
def test_as_many_may_wait_after_others_have_waited_in_vain(before: str) -> None:
    troubles: dict[str, Message | None] = {"expired": SILENCE, "refused": Overloaded(1), "lost": None}
    granting, trouble = Granting(), [troubles[before]]

    def answer(message: Message) -> Message | None:
        return trouble.pop() if trouble else granting(message)

    async def use(client: AsyncOracleClient, primary: Primary, directory: Directory) -> None:
        if before == "expired":
            nobody = Directory("127.0.0.1:1")
            other = AsyncOracleClient(nobody, replace(SETTINGS, oracle_requests_max=4))
            expired = await asyncio.gather(*(other.begin(deadline_ms=20) for _ in range(4)), return_exceptions=True)
            assert all(isinstance(each, NoPrimary) for each in expired)
            nobody.address = primary.address
            trouble.clear()
            client.close()
            client = other
        for _ in range(2):
            answers = await asyncio.gather(*(client.begin() for _ in range(6)), return_exceptions=True)
            assert sum(isinstance(each, InvalidRequest) for each in answers) == 2
        client.close()

    with_client(answer, use, replace(SETTINGS, oracle_requests_max=4))


def test_nobody_joins_those_who_were_told_that_they_are_not_let_in() -> None:
    async def use(client: AsyncOracleClient, primary: Primary, directory: Directory) -> None:
        denied = client.begin()
        client._dispatcher._deny(AccessDenied("not you"))
        later = client.begin()
        with pytest.raises(AccessDenied):
            await denied
        assert (await later).transactions == 1

    with_client(Granting(), use)


@pytest.mark.parametrize("count", [0, -1, 2**32, 1.5], ids=["none", "negative", "too many", "a part"])
def test_what_cannot_be_begun_is_refused(count: int) -> None:
    async def use(client: AsyncOracleClient, primary: Primary, directory: Directory) -> None:
        with pytest.raises(InvalidRequest, match="at least one"):
            client.begin_many(count)
        assert primary.requests == []

    with_client(Granting(), use)


def test_more_keys_than_a_frame_takes_are_refused_with_the_way_out() -> None:
    async def use(client: AsyncOracleClient, primary: Primary, directory: Directory) -> None:
        with pytest.raises(InvalidRequest, match="commit_large"):
            client.commit(101, 100, range(COMMIT_CELLS_MAX + 1))
        with pytest.raises(InvalidRequest, match="large write set"):
            await client.commit_large(101, 100, np.zeros(0, np.uint64))
        assert primary.requests == []

    with_client(Granting(), use)


@pytest.mark.parametrize("ask", [AsyncOracleClient.abort, AsyncOracleClient.outcomes])
@pytest.mark.parametrize(
    "starts",
    [range(1, 2**17 + 1), [2**63], [-1], [1.5], []],
    ids=["too many", "too large", "negative", "a part", "none"],
)
def test_transactions_that_no_frame_can_name_are_refused_at_once(
    ask: Callable[..., asyncio.Future[OutcomeReply]], starts: Sequence[int]
) -> None:
    async def use(client: AsyncOracleClient, primary: Primary, directory: Directory) -> None:
        with pytest.raises(InvalidRequest):
            ask(client, starts)
        assert primary.connections == 0

    with_client(Granting(), use)


@pytest.mark.parametrize("start", [2**63, -1], ids=["too large", "negative"])
def test_a_timestamp_that_is_none_is_refused_at_once(start: int) -> None:
    async def use(client: AsyncOracleClient, primary: Primary, directory: Directory) -> None:
        with pytest.raises(InvalidRequest):
            client.heartbeat({start: 100})
        with pytest.raises(InvalidRequest):
            await client.commit_large(start, 100, np.zeros(1, np.uint64))
        with pytest.raises(InvalidRequest):
            await client.commit_large(101, 100, np.zeros(1, np.uint64), guards=2)
        assert primary.connections == 0

    with_client(Granting(), use)


@pytest.mark.parametrize("deadline_ms", [math.nan, math.inf, -1, 86_400_001, "5"])
def test_a_deadline_that_is_none_is_refused_at_once(deadline_ms: int) -> None:
    async def use(client: AsyncOracleClient, primary: Primary, directory: Directory) -> None:
        calls: list[Callable[[], Awaitable[object]]] = [
            lambda: client.begin(deadline_ms),
            lambda: client.begin_many(2, deadline_ms),
            lambda: client.commit(101, 100, [1], deadline_ms=deadline_ms),
            lambda: client.commit_large(101, 100, np.zeros(1, np.uint64), deadline_ms=deadline_ms),
            lambda: client.outcomes([101], deadline_ms),
        ]
        for call in calls:
            with pytest.raises(InvalidRequest, match="deadline_ms is a number from 0 to 86,400,000, not"):
                await call()
        assert primary.connections == 0

    with_client(Granting(), use)


class Taking:
    """Takes the parts of a large write set; forgets them all once, after ``forgets_after`` parts."""

    def __init__(self, forgets_after: int | None = None, conflict_after: int | None = None) -> None:
        self.cells: list[int] = []
        self._parts = 0
        self._forgets_after = forgets_after
        self._conflict_after = conflict_after

    def __call__(self, message: Message) -> Message | None:
        if isinstance(message, LargeCommitRequest):
            if len(self.cells) < message.total:
                return WriteSetTaken(len(self.cells))
            return CommitReply(np.array([999]), np.zeros(1, np.uint8))
        assert isinstance(message, WriteSetPart)
        self._parts += 1
        if self._parts == self._conflict_after:
            return CommitReply(np.zeros(1, np.int64), np.array([Reason.CONFLICT], np.uint8))
        if self._parts == self._forgets_after:
            self.cells.clear()
        if message.position == len(self.cells):
            self.cells += message.cells.tolist()
        return WriteSetTaken(len(self.cells))


@pytest.mark.parametrize("forgets_after", [None, 1, 3, 6], ids=str)
def test_a_large_write_set_goes_ahead_in_parts_and_again_where_the_oracle_is_another(
    forgets_after: int | None,
) -> None:
    cells, oracle = np.arange(5 * PART_CELLS_MAX + 7, dtype=np.uint64), Taking(forgets_after)

    async def use(client: AsyncOracleClient, primary: Primary, directory: Directory) -> None:
        decision = await client.commit_large(101, 100, cells, guards=2)
        assert decision.commit_timestamp == 999
        assert oracle.cells == cells.tolist()
        parts = [request for request in primary.requests if isinstance(request, WriteSetPart)]
        assert max(part.cells.size for part in parts) == PART_CELLS_MAX
        assert {(part.total, part.guards) for part in parts} == {(cells.size, 2)}

    with_client(oracle, use)


def test_a_large_commit_ends_with_the_first_part_that_conflicts() -> None:
    oracle = Taking(conflict_after=2)

    async def use(client: AsyncOracleClient, primary: Primary, directory: Directory) -> None:
        decision = await client.commit_large(101, 100, np.arange(20 * PART_CELLS_MAX, dtype=np.uint64))
        assert decision.reason is Reason.CONFLICT
        assert len(primary.requests) < 20
        assert not any(isinstance(request, LargeCommitRequest) for request in primary.requests)

    with_client(oracle, use)


class Forgetting(Taking):
    """Hangs up on the first request to commit, and says to the next that nothing was taken; then it is ``afterwards``
    that answers."""

    def __init__(self, afterwards: Message) -> None:
        super().__init__()
        self._afterwards = afterwards
        self._commits = 0

    def __call__(self, message: Message) -> Message | None:
        if isinstance(message, LargeCommitRequest):
            self._commits += 1
            return None if self._commits == 1 else WriteSetTaken(0)
        return super().__call__(message) if self._commits == 0 else self._afterwards


def test_a_large_commit_that_may_have_been_heard_is_in_doubt_while_its_parts_go_out_again() -> None:
    async def use(client: AsyncOracleClient, primary: Primary, directory: Directory) -> None:
        with pytest.raises(ReplyLost):
            await client.commit_large(101, 100, np.arange(3, dtype=np.uint64), deadline_ms=500)
        assert isinstance(primary.requests[-1], WriteSetPart)

    with_client(Forgetting(SILENCE), use)


def test_a_large_commit_that_a_part_decides_after_a_loss_says_so() -> None:
    too_old = CommitReply(np.zeros(1, np.int64), np.array([Reason.TOO_OLD], np.uint8))

    async def use(client: AsyncOracleClient, primary: Primary, directory: Directory) -> None:
        decision = await client.commit_large(101, 100, np.arange(3, dtype=np.uint64))
        assert (decision.reason, decision.after_loss) == (Reason.TOO_OLD, True)

    with_client(Forgetting(too_old), use)


class Released(Sequence[int]):
    """A write set that cannot be read any more when it is to go out, such as one in memory that was given back."""

    def __len__(self) -> int:
        return 1

    def __getitem__(self, place: Any) -> Any:
        raise ValueError("operation forbidden on released memoryview object")


@pytest.mark.parametrize("others", [0, 2])
def test_a_write_set_that_cannot_be_read_is_refused_and_nobody_else_suffers(others: int) -> None:
    async def use(client: AsyncOracleClient, primary: Primary, directory: Directory) -> None:
        begun = await client.begin_many(1 + others)
        starts = range(begun.first_start_timestamp, begun.first_start_timestamp + 1 + others)
        asked = [client.commit(start, begun.snapshot, [7]) for start in starts[1:]]
        bad = client.commit(starts[0], begun.snapshot, Released())
        with pytest.raises(InvalidRequest, match="released memoryview"):
            await bad
        assert {decision.reason for decision in await asyncio.gather(*asked)} <= {Reason.COMMITTED}

    with_client(Granting(), use)
