"""The small installation that is explored exhaustively: two epochs, one store, and the project's own rules.

The oracle's core, the writing of commits, the commit table and the whole of the client are the real ones. What stands
in is what carries messages between them: a request becomes a thread of the oracle that takes it up, and an answer that
never comes is one whose oracle was deposed meanwhile.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Coroutine, Sequence
from functools import partial
from typing import Any

import numpy as np

from client import ClientMetrics, ClientSettings, TransactionHooks, TransactionManager
from client.connection.exchange import Exchange, Queue
from client.connection.oracle import OracleClient
from client.connection.primary import Settled
from client.errors import ReplyLost
from commit_table import CommitTable, Outcome, table_name
from commit_table.layout import OWN_ROW
from commit_table.recorder import CommitRecorder
from commit_table.timestamps import compose
from store.bulk import row_puts
from store.lines import ByteLines
from store.memory import MemoryCellStore
from tests.simulation.kernel import WaitQueue
from tests.simulation.processes import WALL_START_US, Clock, Process
from tests.simulation.stepping import SteppedKernel
from tso.decisions.oracle import Begun, Decided, Moment, Oracle, Recalled
from tso.metering import Metering
from tso.persistence.lookups import outcome_reply, outcomes_of
from tso.persistence.persist import NotPersisted, Persister
from tso.settings import Limits
from wire import (
    AbortRequest,
    BeginReply,
    BeginRequest,
    CommitReply,
    CommitRequest,
    FrameDecoder,
    Message,
    NotPrimary,
    decode,
    encode,
)
from wire.gathering import gather_commits

START_MS = WALL_START_US // 1000
EPOCHS = (compose(START_MS), compose(START_MS + 1000))
ROOT = "/pythia"
NOW = Moment(START_MS, 0.0)
SETTINGS = ClientSettings(zookeeper="unused:1", thrift="unused:1", root=ROOT, heal=True)
METRICS = ClientMetrics()
"""For thousands of managers, of which nobody reads what they count: these take longer to make than all else."""
METRICS.meter(ROOT)  # here, where locks are those of threads, and no steps of anybody
STEPPED = ("get", "get_many", "versions", "put", "delete", "compare_and_set")
"""Calls of the store that are one atomic step each. Rows are single here, and nothing is scanned."""


class SteppedStore:
    """The twin in memory, each call of it a step."""

    def __init__(self, kernel: SteppedKernel, cells: MemoryCellStore) -> None:
        for name in STEPPED:
            setattr(self, name, self._stepped(kernel, name, getattr(cells, name)))
        self._cells = cells

    def __getattr__(self, name: str) -> Any:
        return getattr(self._cells, name)

    @staticmethod
    def _stepped(kernel: SteppedKernel, name: str, call: Callable[..., Any]) -> Callable[..., Any]:
        def stepped(*arguments: Any, **named: Any) -> Any:
            if OWN_ROW in arguments:  # nobody raises the level here: not a step worth trying in every order
                return call(*arguments, **named)
            return kernel.step(f"store {name}", lambda: call(*arguments, **named))

        return stepped


class Tenure:
    """The lease of one epoch, as exact as only an omniscient clock could make it."""

    def __init__(self, installation: Installation, epoch: int) -> None:
        self.epoch = epoch
        self.ceiling = epoch + compose(1000)
        self._installation = installation

    def is_held(self) -> bool:
        """A look at the lease is a step: it may be lost right after it."""
        return bool(self._installation.kernel.step("lease", lambda: self._installation.epoch == self.epoch))

    def remaining_ms(self) -> float:
        """No end is in sight: it is lost all of a sudden."""
        return math.inf


class SteppedPutter:
    """Puts without an event loop, in the thread that asks."""

    def __init__(self, store: Any) -> None:
        self._store = store

    async def put(self, table: str, rows: ByteLines, columns: ByteLines, values: ByteLines, timestamp: int) -> None:
        """See ``BulkPutter``."""
        self._store.put(table, row_puts(rows, columns, values), timestamp)

    async def close(self) -> None:
        """See ``BulkPutter``."""


async def at_once(call: Callable[[], Any], /) -> Any:
    """What blocks does so in the thread that asks."""
    return call()


def finished(coroutine: Coroutine[Any, Any, Any]) -> Any:
    """What a coroutine returns that never has to wait for an event loop."""
    try:
        coroutine.send(None)
    except StopIteration as end:
        return end.value
    raise AssertionError("it waits for an event loop")


class Request:
    """A request under way to a primary, and its answer."""

    def __init__(self) -> None:
        self.answer: Message | None = None


class Primary:
    """One oracle of one epoch: its real core, and a thread for each request."""

    def __init__(self, installation: Installation, epoch: int) -> None:
        limits = Limits(conflict_map_entries_max=64, remembered_decisions_max=64, transactions_in_flight_max=64)
        self.oracle = Oracle(epoch, epoch + compose(1000), limits)
        self.tenure = Tenure(installation, epoch)
        self._installation = installation
        self._persister = Persister(
            self.tenure,
            CommitRecorder(SteppedPutter(installation.store_for_oracles), installation.table),
            CommitTable(installation.store_for_oracles, installation.table),
            in_lookup_thread=at_once,
            in_read_back_thread=at_once,
            persist_retry_ms_max=1.0,
            tries_min=1,
            monotonic_ms=lambda: 0.0,
            metering=Metering(lambda: 0.0),
        )
        self._owed: dict[int, tuple[Request, Decided | Recalled]] = {}
        self._deposed = False

    def begin(self) -> BeginReply:
        """Begin a transaction, with the lease held."""
        begun = self.oracle.begin(1, NOW)
        assert isinstance(begun, Begun)
        return BeginReply(begun.first_start_timestamp, 1, begun.snapshot, self.tenure.epoch)

    def serve(self, request: Request, message: CommitRequest | AbortRequest) -> None:
        """The way of a request, as ``tso.persistence.pipeline`` has it."""
        ask = partial(self._commit, message) if isinstance(message, CommitRequest) else partial(self._recall, message)
        answer = self._installation.kernel.step("take up", lambda: ask() if self._serves() else None)
        if answer is None:
            self._answer(request, NotPrimary())
        elif answer.number is None:
            self._abort(request, answer)
        else:
            self._owed[answer.number] = (request, answer)
            if isinstance(answer, Recalled) or self._wrote(answer):
                self._tell_released()

    def _wrote(self, decided: Decided) -> bool:
        """Whether its commits are on record, if it has any, and the lease was held after that."""
        if not decided.start_timestamps.size:
            return True
        try:
            commits = (decided.start_timestamps, decided.commit_timestamps, decided.relying)
            void = finished(self._persister.persist(*commits))
        except NotPersisted:
            self._deposed = True
        if not self._still_held():
            return False
        if void:
            self.oracle.void(void)
            self._owed = {number: (asked, told.but_for(void)) for number, (asked, told) in self._owed.items()}
        self.oracle.persisted(decided.number)
        return True

    def _abort(self, request: Request, recalled: Recalled) -> None:
        try:
            found = finished(self._persister.abort(recalled.unknown))
        except NotPersisted:
            self._deposed = True
        if self._still_held():
            self.oracle.fenced(recalled.unknown)
            self._tell_outcomes(request, recalled, found)

    def _tell_released(self) -> None:
        for number in self.oracle.release():
            request, told = self._owed.pop(number)
            if isinstance(told, Decided):
                self._answer(request, CommitReply(told.times, told.reasons))
            elif told.unknown:  # it turned out that it had not been decided here
                self._abort(request, told)
            else:
                self._tell_outcomes(request, told, {})

    def _tell_outcomes(self, request: Request, recalled: Recalled, found: dict[int, Outcome]) -> None:
        outcomes = {**outcomes_of(recalled), **found}
        self._answer(request, outcome_reply(list(outcomes), outcomes))

    def _still_held(self) -> bool:
        self._deposed = self._deposed or not self.tenure.is_held()
        return not self._deposed

    def _serves(self) -> bool:
        return self._installation.epoch == self.tenure.epoch

    def _commit(self, message: CommitRequest) -> Decided:
        decided = self.oracle.commit(gather_commits([message.payload()]), NOW)
        assert isinstance(decided, Decided)
        return decided

    def _recall(self, message: AbortRequest) -> Recalled:
        recalled = self.oracle.abort(message.start_timestamps.tolist())
        assert isinstance(recalled, Recalled)
        return recalled

    def _answer(self, request: Request, answer: Message) -> None:
        request.answer = answer
        self._installation.waiting.wake_all()


class Installation:
    """One store, the lease, and the primaries of the two epochs; what clients use as their directory."""

    def __init__(self, kernel: SteppedKernel, acknowledged: Callable[[], list[int]]) -> None:
        self.kernel = kernel
        self.acknowledged = acknowledged
        self.cells = MemoryCellStore(wall_ms=lambda: START_MS)
        self.table = table_name(ROOT)
        self.epoch = EPOCHS[0]
        self.begun = 0
        """Transactions that have begun."""
        self.waiting = WaitQueue(kernel)
        self.oracle_process = Process("oracle", 1, Clock(lambda: 0))
        self.store_for_oracles: Any = SteppedStore(kernel, self.cells)
        self.primaries = [Primary(self, epoch) for epoch in EPOCHS]
        CommitTable(self.cells, self.table).create()

    def fail_over(self) -> None:
        """The first primary is deposed, and does not know it yet."""
        self.epoch = EPOCHS[1]
        self.waiting.wake_all()

    def exchange(self, message: Message, on_sent: Callable[[], None]) -> Message:
        """Ask the primary of the moment; raises ``ReplyLost`` where it is deposed before it answers."""
        if isinstance(message, BeginRequest):
            return self._begin()
        assert isinstance(message, CommitRequest | AbortRequest)
        epoch, request = self.epoch, Request()
        primary = self.primaries[EPOCHS.index(epoch)]
        name = f"{self.kernel.running().name}'s request {self._requests_of_caller()}"
        self.kernel.spawn(self.oracle_process, name, lambda: primary.serve(request, message))
        on_sent()
        self.waiting.wait_for(lambda: request.answer is not None or self.epoch != epoch, None)
        if request.answer is None:
            self.kernel.step("give up", lambda: request.answer and request.answer.payload())
        if request.answer is None:
            raise ReplyLost("the oracle was deposed")
        self.kernel.saw(request.answer.payload())
        return request.answer

    def _begin(self) -> BeginReply:
        """One step: which commits were acknowledged by then is part of what is seen, since it must see them."""
        replies: list[BeginReply] = []

        def begin() -> tuple[bytes, list[int]]:
            replies.append(self.primaries[EPOCHS.index(self.epoch)].begin())
            return replies[0].payload(), self.acknowledged()

        self.kernel.step("begin", begin)
        self.begun += 1
        self.waiting.wake_all()
        return replies[0]

    def manager(self, hooks: TransactionHooks | None = None) -> TransactionManager:
        """A client of its own, which knows its tables already."""
        store: Any = SteppedStore(self.kernel, self.cells)
        return TransactionManager(SETTINGS, store, self, hooks=hooks, metrics=METRICS)

    @property
    def data(self) -> None:
        """See ``Directory``."""

    def primary(self, timeout_ms: int) -> str | None:
        """See ``Directory``."""
        return f"oracle:{1 + EPOCHS.index(self.epoch)}"

    def has_moved(self, address: str, timeout_ms: int) -> bool:
        """See ``Directory``."""
        return False

    def settled(self, timeout_ms: int) -> Settled | None:
        """See ``Directory``."""
        return None

    def _requests_of_caller(self) -> int:
        local = self.kernel.running().local.setdefault(0, {"requests": 0})
        local["requests"] += 1
        return int(local["requests"])


class Notes:
    """A ticket's caller that keeps what it is told; in place of a thread that sleeps until then."""

    def __init__(self) -> None:
        self.answers: list[Any] = []

    def done(self) -> bool:
        return bool(self.answers)

    def set_result(self, answer: object, /) -> None:
        self.answers.append(answer)

    set_exception = set_result


class SteppedOracleClient(OracleClient):
    """The real client of the oracle but for its event loop and sockets: frames go to the installation one by one."""

    def _answer(self, make: Callable[..., Any], deadline: Any, on_sent: Callable[[], None] | None = None) -> Any:
        installation: Any = self._directory
        notes, queue = Notes(), Queue()
        exchange = Exchange(queue, lambda tickets, refusal: queue.add_first(tickets))
        queue.add(make(notes, 0.0, float("inf")))
        while not notes.answers:
            (frame,) = FrameDecoder().feed(exchange.to_send(0.0))
            try:
                reply = installation.exchange(decode(frame), on_sent or _nothing)
            except ReplyLost as lost:
                queue.add_first(exchange.lose(str(lost)))
            else:
                exchange.received(encode(reply, frame.request_id))
                exchange.settle()
        if isinstance(notes.answers[0], Exception):
            raise notes.answers[0]
        return notes.answers[0]


def _nothing() -> None:
    return None


def frozen(value: Any) -> Any:
    """A value's contents, to be compared and hashed; what carries no state is left out."""
    if isinstance(value, int | str | bytes | float | None):
        return value
    if isinstance(value, dict):
        return tuple((frozen(key), frozen(content)) for key, content in value.items())
    if isinstance(value, Sequence) or hasattr(value, "popleft"):
        return tuple(frozen(content) for content in value)
    if isinstance(value, np.ndarray):
        return value.tobytes()
    if isinstance(value, set | frozenset):
        return frozenset(frozen(content) for content in value)
    if type(value).__module__.startswith(("tests.", "_thread", "threading")) or callable(value):
        return None
    names = [
        *getattr(value, "__dict__", {}),
        *(name for kind in type(value).__mro__ for name in getattr(kind, "__slots__", ())),
    ]
    return (type(value).__name__, *(frozen(getattr(value, name)) for name in names if hasattr(value, name)))


class NoHeartbeats:
    """In place of ``Heartbeats``: no time passes here, so nobody falls silent."""

    def __init__(self, oracle: OracleClient, interval_ms: int) -> None:
        """See ``Heartbeats``."""

    def watch(self, *watched: object) -> None:
        """See ``Heartbeats``."""

    def close(self) -> None:
        """See ``Heartbeats``."""
