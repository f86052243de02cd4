"""Serving for one tenure: group commit on the event loop.

One pass a wake-up over everything that arrived, with no timer: begins are answered at once from the durable watermark,
commits are decided, and an idle writer takes all that is decided and not written; what comes meanwhile goes with the
next write. So an idle oracle writes at once and a busy one in batches.

Invariants, each of which has a test that breaks when the rule does:

1. A commit is answered only when it, and every commit decided before it, is in the commit table.
2. The lease is checked before a timestamp is handed out, before each write, and *after* the write before the answer.
3. When the lease is gone, nothing more is answered as primary. What was not decided yet is told `NotPrimary`; who waits
   for something that was decided loses the connection instead: whether it committed, the commit table knows.
"""

from __future__ import annotations

import asyncio
import enum
import logging
import math
from collections import deque
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import NamedTuple, Protocol

from commit_table import Aborted, Committed, Outcome
from tso.lookups import Lookups, outcome_reply
from tso.oracle import Begun, Decided, Impossible, Later, Moment, Oracle, Recalled
from tso.persist import Commits, HeldLease, NotPersisted, Persister
from tso.settings import Limits
from wire import (
    AbortRequest,
    BadRequest,
    BeginReply,
    BeginRequest,
    CommitRequest,
    HeartbeatReply,
    HeartbeatRequest,
    Message,
    NotPrimary,
    OutcomeRequest,
    Overloaded,
)

log = logging.getLogger(__name__)


class Requester(Protocol):
    """Where a request came from; the server's connection is one."""

    def send(self, message: Message, request_id: int) -> None:
        """Answer a request; a requester that has gone is no error."""
        ...

    def drop(self) -> None:
        """Close the connection, so that what was not answered is known to be unknown."""
        ...


class Arrival(NamedTuple):
    """A request and who waits for the answer."""

    requester: Requester
    request_id: int
    message: Message

    def answer(self, message: Message) -> None:
        """Answer it."""
        self.requester.send(message, self.request_id)


class _Owed(NamedTuple):
    """A decision that somebody waits for."""

    arrival: Arrival
    decision: Decided | Recalled


class _State(enum.Enum):
    SERVING = enum.auto()
    DRAINING = enum.auto()
    ENDED = enum.auto()


class Pipeline:
    """Belongs to one tenure and to the event loop's thread. ``on_deposed`` is told once if it ends by itself."""

    def __init__(
        self,
        tenure: HeldLease,
        table: Commits,
        limits: Limits,
        *,
        moment: Callable[[], Moment],
        on_deposed: Callable[[str], None],
    ) -> None:
        self.oracle = Oracle(tenure.epoch, tenure.ceiling, limits)
        self._tenure = tenure
        self._limits = limits
        self._moment = moment
        self._on_deposed = on_deposed
        self._loop = asyncio.get_running_loop()
        self._state = _State.SERVING
        self._arrived: list[Arrival] = []
        self._owed: dict[int, _Owed] = {}
        self._unwritten: deque[Decided] = deque()
        self._writing = 0
        self._in_flight = 0
        self._looking_up: dict[int, Arrival] = {}
        self._idle = asyncio.Event()
        self._writers = ThreadPoolExecutor(limits.commit_writers, thread_name_prefix="commit-writer")
        self._persister = Persister(
            tenure,
            table,
            persist_retry_ms_max=limits.persist_retry_ms_max,
            monotonic_ms=lambda: moment().monotonic_ms,
        )
        self._lookups = Lookups(table, self._persister, limits, self._loop)
        self.durable = tenure.epoch
        """Everything up to here is durable for certain, as of the last `observe`."""

    @property
    def serving(self) -> bool:
        """Whether new requests are taken."""
        return self._state is _State.SERVING

    @property
    def ended(self) -> bool:
        """Whether nothing is answered any more."""
        return self._state is _State.ENDED

    @property
    def transactions_in_flight(self) -> int:
        """Decided, not yet answered."""
        return self._in_flight

    @property
    def horizon(self) -> int:
        """No living transaction reads below it; 0: not known yet."""
        return self.oracle.lives.horizon(self._moment().monotonic_ms)

    def submit(self, arrival: Arrival) -> None:
        """Take a request; the answer comes through its requester, or the requester is dropped."""
        if not self.serving:
            arrival.answer(NotPrimary())
            return
        if not self._arrived:
            self._loop.call_soon(self._pass)
        self._arrived.append(arrival)

    def observe(self) -> None:
        """Let time pass for the oracle though nothing was asked: called at each renewal of the lease."""
        if not self.ended and self._tenure.is_held():
            now = self._moment()
            self.oracle.range.raise_ceiling(self._tenure.ceiling)
            self.durable = self.oracle.reach(now)
            self.oracle.observe(now)

    async def drain(self, limit_ms: float) -> None:
        """Take nothing new, wait until everything owed is answered or for ``limit_ms``, then `end`."""
        if self._state is _State.SERVING:
            self._state = _State.DRAINING
            self._refuse_arrived()
            self._note_idle()
        if self._state is _State.DRAINING:
            try:
                await asyncio.wait_for(self._idle.wait(), limit_ms / 1000)
            except TimeoutError:
                log.warning("epoch %d: %d transactions are still under way", self._tenure.epoch, self._in_flight)
        self.end()

    def end(self) -> None:
        """Answer nothing more as primary; harmless when it has ended."""
        if self.ended:
            return
        self._state = _State.ENDED
        self._refuse_arrived()
        for arrival in [*(owed.arrival for owed in self._owed.values()), *self._looking_up.values()]:
            arrival.requester.drop()
        self._persister.stop()
        self._lookups.close()
        self._writers.shutdown(wait=False, cancel_futures=True)
        self._idle.set()

    def _depose(self, reason: str) -> None:
        if not self.ended:
            log.error("epoch %d: stops serving: %s", self._tenure.epoch, reason)
            self.end()
            self._on_deposed(reason)

    def _still_held(self) -> bool:
        if not self.ended and not self._tenure.is_held():
            self._depose("the lease is lost")
        return not self.ended

    def _refuse_arrived(self) -> None:
        arrived, self._arrived = self._arrived, []
        for arrival in arrived:
            arrival.answer(NotPrimary())

    def _pass(self) -> None:
        """Everything that arrived since the last one. The lease is checked before any of it takes effect."""
        if not self._arrived or not self._still_held():
            return
        arrived, self._arrived = self._arrived, []
        try:
            self._serve(arrived)
        except Exception:
            # What was decided may not be recorded as decided: only a fresh oracle is sure to be whole.
            log.exception("epoch %d: a defect in the oracle", self._tenure.epoch)
            for arrival in arrived:
                arrival.requester.drop()
            self._depose("a defect in the oracle")

    def _serve(self, arrived: list[Arrival]) -> None:
        self.oracle.range.raise_ceiling(self._tenure.ceiling)
        now = self._moment()
        self.oracle.observe(now)
        for arrival in arrived:
            if isinstance(arrival.message, BeginRequest):
                self._begin(arrival, arrival.message, now)
        for arrival in arrived:
            match arrival.message:
                case CommitRequest() as request:
                    self._commit(arrival, request, now)
                case AbortRequest() | OutcomeRequest() as request:
                    self._recall(arrival, request)
                case HeartbeatRequest() as request:
                    self._heartbeat(arrival, request, now)
        self._tell_released()
        self._start_writers()

    def _begin(self, arrival: Arrival, request: BeginRequest, now: Moment) -> None:
        match self.oracle.begin(request.count, now):
            case Begun() as begun:
                epoch = self._tenure.epoch
                arrival.answer(BeginReply(begun.first_start_timestamp, begun.count, begun.snapshot, epoch))
            case refusal:
                self._refuse(arrival, refusal)

    def _commit(self, arrival: Arrival, request: CommitRequest, now: Moment) -> None:
        count, limit = request.start_timestamps.size, self._limits.transactions_in_flight_max
        if count > limit:
            self._refuse(arrival, Impossible(f"one request may commit {limit} transactions, not {count}"))
            return
        if self._in_flight + count > limit:
            self._refuse(arrival, Later(self._limits.retry_after_ms))
            return
        match self.oracle.commit(request, now):
            case Decided() as decided:
                self._in_flight += count
                self._owed[decided.number] = _Owed(arrival, decided)
                if decided.start_timestamps:
                    self._unwritten.append(decided)
            case refusal:
                self._refuse(arrival, refusal)

    def _heartbeat(self, arrival: Arrival, request: HeartbeatRequest, now: Moment) -> None:
        match self.oracle.heartbeat(request, now):
            case HeartbeatReply() as reply:
                arrival.answer(reply)
            case refusal:
                self._refuse(arrival, refusal)

    def _recall(self, arrival: Arrival, request: AbortRequest | OutcomeRequest) -> None:
        start_timestamps = request.start_timestamps.tolist()
        if len(start_timestamps) > self._limits.lookup_ids_max:
            reason = f"one request may name {self._limits.lookup_ids_max} transactions, not {len(start_timestamps)}"
            self._refuse(arrival, Impossible(reason))
            return
        if not self._lookups.has_room(len(start_timestamps)):
            self._refuse(arrival, Later(self._limits.retry_after_ms))
            return
        ask = self.oracle.abort if isinstance(request, AbortRequest) else self.oracle.recall
        match ask(start_timestamps):
            case Recalled(number=None) as recalled:
                self._look_up(arrival, recalled)
            case Recalled(number=int() as number) as recalled:
                self._owed[number] = _Owed(arrival, recalled)
            case Impossible() as refusal:
                self._refuse(arrival, refusal)

    def _refuse(self, arrival: Arrival, refusal: Impossible | Later) -> None:
        if isinstance(refusal, Impossible):
            arrival.answer(BadRequest(refusal.reason))
        else:
            arrival.answer(Overloaded(max(1, math.ceil(refusal.wait_ms))))

    def _start_writers(self) -> None:
        while self._unwritten and self._writing < self._limits.commit_writers:
            batch = self._next_batch()
            self._writing += 1
            future = self._loop.run_in_executor(self._writers, self._persister.persist, batch)
            future.add_done_callback(partial(self._written, batch))

    def _next_batch(self) -> list[Decided]:
        batch = [self._unwritten.popleft()]
        commits = len(batch[0].start_timestamps)
        while self._unwritten:
            commits += len(self._unwritten[0].start_timestamps)
            if commits > self._limits.write_batch_commits_max:
                break
            batch.append(self._unwritten.popleft())
        return batch

    def _written(self, batch: list[Decided], future: asyncio.Future[frozenset[int]]) -> None:
        """A write has ended. Only one that succeeded, with the lease still held *now*, makes its commits known."""
        self._writing -= 1
        error = None if future.cancelled() else future.exception()
        if error is not None:
            self._depose(str(error))
        if self.ended or not self._still_held():
            return
        voided = future.result()
        if voided:
            log.warning("epoch %d: %d commits were aborted by an older epoch", self._tenure.epoch, len(voided))
            self.oracle.void(voided)
        for decided in batch:
            self.oracle.persisted(decided.number)
        self._tell_released()
        self._start_writers()

    def _tell_released(self) -> None:
        for number in self.oracle.release():
            if self.ended:
                return
            arrival, decision = self._owed.pop(number)
            if isinstance(decision, Decided):
                self._in_flight -= decision.reply.reasons.size
                assert isinstance(arrival.message, CommitRequest)
                arrival.answer(self.oracle.told(arrival.message, decision.reply))
            else:
                self._look_up(arrival, decision)
        self._note_idle()

    def _look_up(self, arrival: Arrival, recalled: Recalled) -> None:
        """Answer from memory what is known, and ask the commit table for the rest."""
        self._looking_up[id(recalled)] = arrival
        learn = partial(self._looked_up, arrival, recalled)
        if not recalled.unknown:
            learn({})
        elif isinstance(arrival.message, AbortRequest):
            self._lookups.abort(recalled.unknown, learn)
        else:
            self._lookups.read(recalled.unknown, learn)

    def _looked_up(self, arrival: Arrival, recalled: Recalled, found: dict[int, Outcome] | Exception) -> None:
        if isinstance(found, NotPersisted):
            self._depose(str(found))
        if self.ended or not self._still_held():
            return
        del self._looking_up[id(recalled)]
        self._note_idle()
        if isinstance(found, Exception):
            self._refuse(arrival, Later(self._limits.retry_after_ms))
            return
        assert isinstance(arrival.message, AbortRequest | OutcomeRequest)
        if isinstance(arrival.message, AbortRequest):
            self.oracle.fenced(recalled.unknown)
        known: dict[int, Outcome] = dict.fromkeys(recalled.committed, Aborted())
        known |= {start: Committed(time) for start, time in self.oracle.still_committed(recalled.committed).items()}
        arrival.answer(outcome_reply(arrival.message.start_timestamps.tolist(), {**known, **found}))

    def _note_idle(self) -> None:
        if self._state is _State.DRAINING and not self._owed and not self._looking_up:
            self._idle.set()
