"""Serving for one tenure: group commit on the event loop.

One pass a wake-up over everything that arrived: begins are answered at once from the durable watermark, all commits are
decided together, and a writer takes all that is decided and not written; what comes meanwhile goes with the next write,
and while it is little it is not even decided before. So an idle oracle writes at once and a busy one in batches, whose
size `tso.persistence.writers` looks after.

Invariants, each of which has a test that breaks when the rule does:

1. A commit is answered only when it, and every commit decided before it, is in the commit table.
2. The lease is checked before a timestamp is handed out, before each write, and *after* the write before the answer.
3. When the lease is gone, nothing more is answered as primary. What was not decided yet is told `NotPrimary`; who waits
   for something that was decided loses the connection instead: whether it committed, the commit table knows.
"""

from __future__ import annotations

import asyncio
import itertools
import logging
import secrets
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import Final, TypeAlias

import numpy as np

from commit_table import Forgotten, Outcome
from tso.decisions.admission import refusals, too_many, what_is_wrong
from tso.decisions.oracle import Begun, Decided, Impossible, Later, Moment, Oracle, Recalled, Void
from tso.metering import Metering
from tso.persistence.arrivals import Arrival
from tso.persistence.door import Door
from tso.persistence.lookups import Lookups, outcome_reply, outcomes_of
from tso.persistence.owed import OwedDecision, OwedRecollection
from tso.persistence.persist import HeldLease, NotPersisted, Outcomes, Persister, Recorder
from tso.persistence.refusing import refuse, refuse_as_standby
from tso.persistence.writers import Writers
from tso.settings import Limits
from wire import (
    HEADER_BYTES,
    HEARTBEAT_TRANSACTIONS_MAX,
    AbortRequest,
    BeginReply,
    Frame,
    HeartbeatReply,
    HeartbeatRequest,
    Kind,
    OutcomeRequest,
)
from wire.gathering import (
    GatheredCommits,
    commits_in,
    gather_begins,
    gather_commits,
    scatter_answers,
    scatter_begins,
)
from wire.large_commits import LargeCommitRequest, WriteSetPart, WriteSetTaken

log: Final = logging.getLogger(__name__)

UNDECIDED_BYTES_MAX: Final = 4_096
"""Of commit requests that wait for a writer before they are decided over: some fifty small transactions. To decide
over a few costs as much as over one; over more, it is better done while the writers are busy."""

ANSWERED_FIRST_COMMITS: Final = 64
"""Before a decision over so many commits the answers that were given go out: who gets them works meanwhile."""

_BEGIN: Final = Kind.BEGIN_REQUEST
_Asked: TypeAlias = Sequence[tuple[Arrival, Frame]]


class Pipeline:
    """Belongs to one tenure and to the event loop's thread. ``on_deposed`` is told once if it ends by itself.

    ``send_answers``: lets what requesters were answered go out at once, and not at the end of the event loop's turn.
    ``tries_min``: how often a write that fails is tried at least (``tso.persistence.persist``).
    """

    def __init__(
        self,
        tenure: HeldLease,
        recorder: Recorder,
        table: Outcomes,
        limits: Limits,
        *,
        moment: Callable[[], Moment],
        metering: Metering,
        on_deposed: Callable[[str], None],
        send_answers: Callable[[], None],
        tries_min: int,
    ) -> None:
        self.oracle = Oracle(tenure.epoch, tenure.ceiling, limits, secrets.randbits(64))
        self._tenure = tenure
        self.lease_remaining_ms = tenure.remaining_ms
        self._limits = limits
        self._moment = moment
        self._metering = metering
        self._refuse = partial(refuse, metering=metering)
        self._on_deposed = on_deposed
        self._send_answers = send_answers
        self._loop = asyncio.get_running_loop()
        self._door = Door()
        self._arrived: list[Arrival] = []
        self._arrived_s = 0.0
        self._undecided: list[tuple[Arrival, Frame]] = []
        self._undecided_bytes = self._undecided_commits = 0
        self._undecided_s = 0.0
        self._owed: dict[int, OwedDecision | OwedRecollection] = {}
        self._in_flight = 0
        self._looking_up: dict[int, Arrival] = {}
        self._lookup_threads = ThreadPoolExecutor(limits.lookup_threads, thread_name_prefix="commit-table")
        # After a failover thousands of look-ups come at once, and nearly every commit is read back: had they these
        # threads in common, all commits would wait behind the look-ups. A writer reads back one write at a time.
        self._read_back_threads = ThreadPoolExecutor(limits.commit_writers, thread_name_prefix="commit-read-back")
        self._persister = Persister(
            tenure,
            recorder,
            table,
            in_lookup_thread=lambda call: self._loop.run_in_executor(self._lookup_threads, call),
            in_read_back_thread=lambda call: self._loop.run_in_executor(self._read_back_threads, call),
            persist_retry_ms_max=limits.persist_retry_ms_max,
            tries_min=tries_min,
            monotonic_ms=lambda: moment().monotonic_ms,
            metering=metering,
        )
        self._writers = Writers(
            self._persister,
            limits.commit_writers,
            limits.write_batch_commits_max,
            written=self._written,
            undecided=lambda: self._undecided_commits,
            gathered=self._gathered,
            clock_s=metering.clock_s,
        )
        self._lookups = Lookups(self._persister, limits.lookups_pending_max, metering)
        self.durable = tenure.epoch
        """Everything up to here is durable for certain, as of the last `observe`."""

    @property
    def serving(self) -> bool:
        """Whether new requests are taken."""
        return self._door.is_open

    @property
    def ended(self) -> bool:
        """Whether nothing is answered any more."""
        return self._door.has_ended

    @property
    def transactions_in_flight(self) -> int:
        """Decided, not yet answered."""
        return self._in_flight

    @property
    def owed(self) -> int:
        """Transactions whose commits are to be answered; those of a request that is not decided yet count for one."""
        return self._in_flight + len(self._undecided)

    @property
    def horizon(self) -> int:
        """No living transaction reads below it; 0: not known yet."""
        return self.oracle.lives.horizon(self._moment().monotonic_ms)

    def waiting(self) -> tuple[int, int, int]:
        """Requests for the event loop or a decision, decisions for a writer, transactions for a look-up."""
        return len(self._arrived) + len(self._undecided), len(self._writers), len(self._lookups)

    def submit(self, arrival: Arrival) -> None:
        """Take a request; the answer comes through its requester, or the requester is dropped."""
        if not self.serving:
            refuse_as_standby(arrival, self._metering)
            return
        if not self._arrived:
            self._arrived_s = self._metering.clock_s()
            self._loop.call_soon(self._pass)
        self._arrived.append(arrival)

    def observe(self) -> None:
        """Let time pass for the oracle though nothing was asked: called at each renewal of the lease."""
        if not self.ended and self._tenure.is_held():
            now = self._moment()
            self.oracle.range.raise_ceiling(self._tenure.ceiling)
            self.durable = self.oracle.reach(now)
            self.oracle.observe(now)

    @property
    def under_way(self) -> int:
        """Transactions decided and not yet answered, and questions that the commit table is being asked."""
        return self._in_flight + len(self._looking_up)

    async def finish(self, limit_ms: float) -> bool:
        """Take nothing new, and wait; whether everything owed was answered within ``limit_ms``. See ``resume``."""
        if self._door.shut():
            self._refuse_arrived()
            self._note_idle()
        return await self._door.nothing_owed(limit_ms)

    def resume(self) -> None:
        """Take requests again, after a ``finish`` in vain."""
        self._door.open_again()

    async def drain(self, limit_ms: float) -> None:
        """`finish`, and `end` in any case."""
        if not await self.finish(limit_ms):
            log.warning("epoch %d: %d transactions are still under way", self._tenure.epoch, self._in_flight)
        self.end()

    def end(self) -> None:
        """Answer nothing more as primary; harmless when it has ended."""
        if self.ended:
            return
        self._door.end()
        self._metering.begins += self.oracle.counts.begins
        self._metering.commits += self.oracle.counts.commits
        self._refuse_arrived()
        waiting = [arrival for owed in self._owed.values() for arrival in owed.arrivals]
        for arrival in [*waiting, *self._looking_up.values()]:
            arrival.requester.drop()
        self._persister.stop()
        self._lookups.close()
        for threads in (self._lookup_threads, self._read_back_threads):
            threads.shutdown(wait=False, cancel_futures=True)
        self._writers.stop()

    def _depose(self, reason: str) -> None:
        if not self.ended:
            log.error("epoch %d: stops serving: %s", self._tenure.epoch, reason)
            self._metering.depositions += 1
            self.end()
            self._on_deposed(reason)

    def _still_held(self) -> bool:
        if not self.ended and not self._tenure.is_held():
            self._depose("the lease is lost")
        return not self.ended

    def _refuse_arrived(self) -> None:
        arrived = [*(arrival for arrival, _ in self._take_undecided()), *self._arrived]
        self._arrived = []
        for arrival in arrived:
            refuse_as_standby(arrival, self._metering)

    def _take_undecided(self) -> list[tuple[Arrival, Frame]]:
        undecided, self._undecided = self._undecided, []
        self._undecided_bytes = self._undecided_commits = 0
        return undecided

    def _pass(self) -> None:
        """Everything that arrived since the last one. The lease is checked before any of it takes effect."""
        if not self._arrived or not self._still_held():
            return
        arrived, self._arrived = self._arrived, []
        if not self._is_whole_after(partial(self._serve, arrived)):
            for arrival in arrived:
                arrival.requester.drop()

    def _is_whole_after(self, step: Callable[[], None]) -> bool:
        """Whether a step came to its end; else it is given up."""
        try:
            step()
        except Exception:
            # What was decided may not be recorded as decided, or not be told: only a fresh oracle is sure to be whole.
            log.exception("epoch %d: a defect in the oracle", self._tenure.epoch)
            for arrival, _ in self._take_undecided():
                arrival.requester.drop()
            self._depose("a defect in the oracle")
            return False
        return True

    def _serve(self, arrived: list[Arrival]) -> None:
        now = self._now()
        begins: list[tuple[Arrival, Frame]] = []
        parts: list[Arrival] = []
        for arrival in arrived:
            match arrival.message:
                case Frame() as frame if frame.kind is _BEGIN:
                    begins.append((arrival, frame))
                case Frame() as frame:
                    self._hold_back(arrival, frame)
                case AbortRequest() | OutcomeRequest() as question:
                    self._decide_all(now)  # what came before it counts for it, and nothing that came after
                    self._recall(arrival, question)
                case WriteSetPart():
                    parts.append(arrival)
                case LargeCommitRequest() as large:
                    self._large(arrival, partial(self.oracle.commit_large, large, now))
                case HeartbeatRequest() as heartbeat:
                    self._heartbeat(arrival, heartbeat, now)
        if begins:
            begins_before = self.oracle.counts.begins
            self._begin_all(begins, now)
            self._metering.began(self.oracle.counts.begins - begins_before, self._arrived_s)
        self._decide_what_can_be_written(now)
        self._take_parts(parts, now)
        self._tell_released()
        self._writers.start()

    def _now(self) -> Moment:
        """The time, of which the oracle has taken note."""
        self.oracle.range.raise_ceiling(self._tenure.ceiling)
        now = self._moment()
        self.oracle.observe(now)
        return now

    def _take_parts(self, parts: list[Arrival], now: Moment) -> None:
        """One of a large write set's parts in a pass, which takes as long as hundreds of small commits: all others are
        served between two of them.
        """
        if parts:
            part = parts[0].message
            assert isinstance(part, WriteSetPart)
            self._large(parts[0], partial(self.oracle.take_part, part, now))
        if len(parts) > 1 and not self.ended:
            self._arrived[:0] = parts[1:]
            self._arrived_s = self._metering.clock_s()
            self._loop.call_soon(self._pass)

    def _begin_all(self, begins: _Asked, now: Moment) -> None:
        """All at one snapshot, and their timestamps in a row; where that cannot be, each for itself."""
        counts = gather_begins([frame.payload for _, frame in begins])
        if not all(counts):
            for (arrival, frame), count in zip(begins, counts, strict=True):
                if not count:
                    self._refuse(arrival, what_is_wrong(frame))
            begins = [begin for begin, count in zip(begins, counts, strict=True) if count]
            counts = [count for count in counts if count]
        if not begins:
            return
        match self.oracle.begin(sum(counts), now):
            case Begun(first, count, snapshot):
                ids = [arrival.request_id for arrival, _ in begins]
                frames = scatter_begins(ids, counts, BeginReply(first, count, snapshot, self._tenure.epoch))
                for (arrival, _), answer in zip(begins, frames, strict=True):
                    arrival.requester.send_frame(answer)
            case refusal if len(begins) == 1:
                self._refuse(begins[0][0], refusal)
            case _:
                for begin in begins:
                    self._begin_all([begin], now)

    def _hold_back(self, arrival: Arrival, frame: Frame) -> None:
        """A commit request, until its decision is due."""
        if not self._undecided:
            self._undecided_s = self._arrived_s
        self._undecided.append((arrival, frame))
        self._undecided_commits += commits_in(frame.payload)
        self._undecided_bytes += HEADER_BYTES + len(frame.payload)  # an empty payload is held, too

    def _decide_what_can_be_written(self, now: Moment) -> None:
        """Where no writer would take it, a little is decided later: together with what comes meanwhile."""
        if self._undecided_bytes > UNDECIDED_BYTES_MAX or self._writers.would_take_all():
            self._decide_all(now)

    def _decide_all(self, now: Moment) -> None:
        if self._undecided:
            if self._undecided_commits >= ANSWERED_FIRST_COMMITS:
                self._send_answers()
            self._commit_all(self._undecided, now)
            self._take_undecided()  # not before: whoever may be decided and was not told must be known

    def _commit_all(self, commits: _Asked, now: Moment) -> None:
        while commits:
            gathered = gather_commits([frame.payload for _, frame in commits])
            refused = refusals(self.oracle, self._limits, self._in_flight, [frame for _, frame in commits], gathered)
            fitting = self._fitting(gathered)
            if refused:
                for place, refusal in refused.items():
                    self._refuse(commits[place][0], refusal)
                commits = [commit for place, commit in enumerate(commits) if place not in refused]
            elif 0 < fitting < len(commits):
                self._commit_all(commits[:fitting], now)
                commits = commits[fitting:]
            else:
                self._decide([arrival for arrival, _ in commits], gathered, now)
                return

    def _fitting(self, gathered: GatheredCommits) -> int:
        """How many of the requests fit one write."""
        commits_max = self._limits.write_batch_commits_max
        if gathered.start_timestamps.size <= commits_max:
            return len(gathered.well_formed)
        return int(np.searchsorted(gathered.first, commits_max, side="right")) - 1

    def _decide(self, arrivals: list[Arrival], gathered: GatheredCommits, now: Moment) -> None:
        since_s = self._metering.clock_s()
        match self.oracle.commit(gathered, now):
            case Decided() as decided:
                self._metering.decided(decided.asked.size, since_s)
                counts = [end - begin for begin, end in itertools.pairwise(gathered.first.tolist())]
                self._owe(arrivals, counts, decided, self._undecided_s)
            case refusal:
                for arrival in arrivals:
                    self._refuse(arrival, refusal)

    def _owe(self, arrivals: Sequence[Arrival], counts: Sequence[int], decided: Decided, since_s: float) -> None:
        self._in_flight += decided.asked.size
        self._owed[decided.number] = OwedDecision(arrivals, counts, decided, since_s)
        self._writers.add(decided)

    def _large(self, arrival: Arrival, ask: Callable[[], WriteSetTaken | Decided | Impossible | Later]) -> None:
        """A part of a large write set, or its commit."""
        if self._in_flight >= self._limits.transactions_in_flight_max:
            self._refuse(arrival, Later(self._limits.retry_after_ms))
            return
        match ask():
            case WriteSetTaken() as taken:
                arrival.answer(taken)
            case Decided() as decided:
                self._owe((arrival,), (1,), decided, self._arrived_s)
            case refusal:
                self._refuse(arrival, refusal)

    def _heartbeat(self, arrival: Arrival, request: HeartbeatRequest, now: Moment) -> None:
        beyond = too_many(request.start_timestamps.size, HEARTBEAT_TRANSACTIONS_MAX)
        match beyond or self.oracle.heartbeat(request, now):
            case HeartbeatReply() as reply:
                arrival.answer(reply)
            case refusal:
                self._refuse(arrival, refusal)

    def _recall(self, arrival: Arrival, request: AbortRequest | OutcomeRequest) -> None:
        start_timestamps = request.start_timestamps.tolist()
        beyond = too_many(len(start_timestamps), self._limits.lookup_ids_max)
        if beyond is not None:
            self._refuse(arrival, beyond)
            return
        if not self._lookups.has_room(len(start_timestamps)):
            self._refuse(arrival, Later(self._limits.retry_after_ms))
            return
        ask = self.oracle.abort if isinstance(request, AbortRequest) else self.oracle.recall
        match ask(start_timestamps):
            case Recalled(number=None) as recalled:
                self._look_up(arrival, recalled)
            case Recalled(number=int() as number) as recalled:
                self._owed[number] = OwedRecollection((arrival,), recalled)
            case Impossible() as refusal:
                self._refuse(arrival, refusal)

    def _written(self, batch: Sequence[Decided], void: Void | Exception) -> None:
        """A write has ended. Only one that succeeded, with the lease still held *now*, makes its commits known."""
        if isinstance(void, Exception):
            self._depose(str(void))
        elif self._still_held():
            self._is_whole_after(partial(self._make_known, batch, void))

    def _make_known(self, batch: Sequence[Decided], void: Void) -> None:
        if void:
            log.warning("epoch %d: %d transactions had come to an end before", self._tenure.epoch, len(void))
            self.oracle.void(void)
            self._owed = {number: owed.but_for(void) for number, owed in self._owed.items()}
        for decided in batch:
            self.oracle.persisted(decided.number)
        self._tell_released()
        self._write_on()

    def _gathered(self) -> None:
        """No more commits are waited for."""
        if self._still_held():
            self._is_whole_after(self._write_on)

    def _write_on(self) -> None:
        if self._undecided and not self.ended:
            self._decide_what_can_be_written(self._now())
            self._tell_released()  # who is refused waits for no write
        self._writers.start()

    def _tell_released(self) -> None:
        for number in self.oracle.release():
            if self.ended:
                return
            match self._owed[number]:
                case OwedDecision() as decision:
                    self._tell(decision)
                case OwedRecollection((arrival,), recalled):
                    self._look_up(arrival, recalled)
            del self._owed[number]  # not before: whoever was not told after all must be known
        self._note_idle()

    def _tell(self, decision: OwedDecision) -> None:
        self._in_flight -= decision.decided.asked.size
        ids = [arrival.request_id for arrival in decision.arrivals]
        frames = scatter_answers(ids, decision.counts, decision.decided.times, decision.decided.reasons)
        decision.book(self._metering)
        for arrival, frame in zip(decision.arrivals, frames, strict=True):
            arrival.requester.send_frame(frame)

    def _look_up(self, arrival: Arrival, recalled: Recalled) -> None:
        """Answer from memory what is known, and ask the commit table for the rest."""
        self._looking_up[id(recalled)] = arrival
        learn = partial(self._looked_up, arrival, recalled)
        if not recalled.unknown:
            if self._still_held():
                self._tell_outcomes(arrival, recalled, {})
        elif isinstance(arrival.message, AbortRequest):
            self._lookups.abort(recalled.unknown, learn)
        else:
            self._lookups.read(recalled.unknown, learn)

    def _looked_up(self, arrival: Arrival, recalled: Recalled, found: dict[int, Outcome] | Exception) -> None:
        if isinstance(found, NotPersisted):
            self._depose(str(found))
        if self._still_held():
            self._is_whole_after(partial(self._tell_outcomes, arrival, recalled, found))

    def _tell_outcomes(self, arrival: Arrival, recalled: Recalled, found: dict[int, Outcome] | Exception) -> None:
        assert isinstance(arrival.message, AbortRequest | OutcomeRequest)
        if isinstance(arrival.message, AbortRequest) and isinstance(found, dict | Forgotten):
            self.oracle.fenced(recalled.unknown)  # who is forgotten commits no more, either
        if isinstance(found, Forgotten):
            self._refuse(arrival, Impossible(str(found)))
        elif isinstance(found, Exception):
            self._refuse(arrival, Later(self._limits.retry_after_ms))
        else:
            known = outcomes_of(recalled)
            arrival.answer(outcome_reply(arrival.message.start_timestamps.tolist(), {**known, **found}))
        del self._looking_up[id(recalled)]
        self._note_idle()

    def _note_idle(self) -> None:
        self._door.note(len(self._owed) + len(self._looking_up))
