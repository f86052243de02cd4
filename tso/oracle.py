"""The decisions of one epoch: what a begin gets, which commits may be, what an abort has to do.

Pure: requests, time and the ceiling come in, decisions come out; no socket, no clock, no store. One instance lives for
one epoch and remembers nothing of another. The rules (after "A Critique of Snapshot Isolation" and Apache Omid):

* a transaction reads at its snapshot and conflicts when a cell of its write set has a commit above that snapshot;
* a client that has itself looked for conflicts in the data up to a later snapshot may name that one (revalidation);
* a decision that could be wrong because something was forgotten is refused as TOO_OLD, never guessed: whoever gets
  TOO_OLD has to ask the commit table, since the transaction may even have committed;
* the same commit asked twice gets the same answer or TOO_OLD, never a conflict with itself, never a second commit;
* an aborted transaction cannot commit any more, however the two requests overtake each other;
* a transaction that nothing was heard of for a life is given up, so that it holds back nothing.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from tso.conflict_map import ConflictMap
from tso.lives import Lives
from tso.settings import Limits
from tso.timestamp_range import Exhausted, TimestampRange, TimestampRate
from tso.watermark import DurableWatermark
from wire import CommitReply, CommitRequest, HeartbeatReply, HeartbeatRequest, Reason


class Moment(NamedTuple):
    """A reading of both clocks: the wall clock since 1970, and a monotonic one."""

    wall_ms: int
    monotonic_ms: float


@dataclass(frozen=True, slots=True)
class Begun:
    """Transactions ``first_start_timestamp`` … ``+ count - 1`` began, all at ``snapshot``."""

    first_start_timestamp: int
    count: int
    snapshot: int


@dataclass(frozen=True, slots=True)
class Decided:
    """Commits were decided. What is in ``start_timestamps`` has to be persisted before decision ``number`` is told."""

    number: int
    start_timestamps: tuple[int, ...]
    commit_timestamps: tuple[int, ...]
    reply: CommitReply


@dataclass(frozen=True, slots=True)
class Recalled:
    """Of the transactions asked for, those known to have committed, and those to be looked up in the commit table.

    May be told once decision ``number`` is released: only then are the commits durable. ``None``: at once.
    """

    number: int | None
    committed: dict[int, int]
    unknown: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Impossible:
    """The request can never be granted as it is."""

    reason: str


@dataclass(frozen=True, slots=True)
class Later:
    """Nothing was done; the same request may be granted after that long."""

    wait_ms: float


@dataclass(slots=True)
class Counts:
    """What this oracle has done so far, in transactions."""

    begins: int = 0
    commits: int = 0
    refused_commits: int = 0


class Oracle:
    """All state of one epoch. Not thread-safe: one caller at a time."""

    def __init__(self, epoch: int, ceiling: int, limits: Limits) -> None:
        self.epoch = epoch
        self.counts = Counts()
        self.range = TimestampRange(epoch, ceiling)
        self.conflicts = ConflictMap(limits.conflict_map_entries_max, low_watermark=epoch)
        self._limits = limits
        self._rate = TimestampRate(limits.begins_per_ms_max, limits.begin_burst_ms)
        self._watermark = DurableWatermark()
        self.lives = Lives(limits.transaction_life_ms, limits.heartbeat_transactions_max)
        self._undurable: dict[int, int] = {}
        self._starts_of: dict[int, tuple[int, ...]] = {}
        self._aborts: set[int] = set()
        self._voided: set[int] = set()
        self._fenced_aborts: deque[tuple[int, int]] = deque()

    @property
    def snapshot(self) -> int:
        """The durable watermark: what a begin gets to read at."""
        return self._watermark.snapshot(self.range.last)

    def observe(self, now: Moment) -> None:
        """Take note of the time; to be called before requests are served, and now and then without any."""
        self.lives.sample(self.range.last, self.snapshot, now.monotonic_ms)

    def reach(self, now: Moment) -> int:
        """Let the durable watermark follow the clock where nothing is begun, and return it: so that a past moment can
        be read at although nothing happened since.
        """
        self.range.next(1, now.wall_ms)
        return self.snapshot

    def begin(self, count: int, now: Moment) -> Begun | Impossible | Later:
        """Start timestamps and a snapshot below them; never waits for anything to be persisted."""
        if count > self._limits.begin_count_max:
            return Impossible(f"one request may begin {self._limits.begin_count_max} transactions, not {count}")
        wait_ms = self._rate.take(count, now.monotonic_ms)
        if wait_ms > 0:
            return Later(wait_ms)
        snapshot = self.snapshot
        first = self.range.next(count, now.wall_ms)
        if isinstance(first, Exhausted):
            return Later(self._limits.retry_after_ms)
        self.counts.begins += count
        return Begun(first, count, snapshot)

    def commit(self, request: CommitRequest, now: Moment) -> Decided | Impossible | Later:
        """Decide over a request's transactions, in its order. The answer is for when decision ``number`` is released.

        A timestamp is set aside for each transaction, so that all or nothing of a request is decided.
        """
        impossible = self._impossible_commit(request)
        if impossible is not None:
            return impossible
        count = request.start_timestamps.size
        first = self.range.next(count, now.wall_ms)
        if isinstance(first, Exhausted):
            return Later(self._limits.retry_after_ms)
        return self._decide_all(request, first, now)

    def heartbeat(self, request: HeartbeatRequest, now: Moment) -> HeartbeatReply | Impossible | Later:
        """Let transactions live on; the answer says which of them had been given up."""
        starts, snapshots = request.start_timestamps.tolist(), request.snapshots.tolist()
        if max(starts) > self.range.last:
            return self._not_issued("start timestamp", max(starts))
        if not self.lives.has_room(starts, now.monotonic_ms):
            return Later(self._limits.retry_after_ms)
        alive = [self.lives.beat(*pair, now.monotonic_ms) for pair in zip(starts, snapshots, strict=True)]
        return HeartbeatReply(np.array(alive, "u1"))

    def abort(self, start_timestamps: Sequence[int]) -> Recalled | Impossible:
        """See to it that transactions never commit *through this oracle*, or recall that they did.

        The caller must fence the ``unknown`` ones at infinity in the commit table before it calls them aborted, and
        say so by ``fenced``: none is forgotten before.
        """
        recalled = self.recall(start_timestamps)
        if isinstance(recalled, Recalled):
            self._aborts.update(recalled.unknown)
        return recalled

    def fenced(self, start_timestamps: Iterable[int]) -> None:
        """Learn that the fences of aborted transactions stand: from now on the commit table says so as well."""
        for start_timestamp in start_timestamps:
            self.lives.end(start_timestamp)
            self._fenced_aborts.append((start_timestamp, self.range.last))
        while len(self._fenced_aborts) > self._limits.remembered_aborts_max:
            # A forgotten abort must not be overtaken by a commit: refuse every snapshot that may be as old as its
            # fence. A client that names a later one has read the commit table after that, and found the fence.
            start_timestamp, fenced_at = self._fenced_aborts.popleft()
            self._aborts.discard(start_timestamp)
            self._voided.discard(start_timestamp)
            self.conflicts.raise_low_watermark(fenced_at)

    def recall(self, start_timestamps: Sequence[int]) -> Recalled | Impossible:
        """Which of these transactions this oracle knows to have committed."""
        if max(start_timestamps) > self.range.last:
            return self._not_issued("start timestamp", max(start_timestamps))
        if min(start_timestamps) <= 0:
            return Impossible(f"{min(start_timestamps)} is no start timestamp: one is larger than 0")
        committed, unknown = {}, []
        for start_timestamp in dict.fromkeys(start_timestamps):
            commit_timestamp = self._decision_of(start_timestamp)
            if commit_timestamp is not None and commit_timestamp > 0:
                committed[start_timestamp] = commit_timestamp
            else:
                unknown.append(start_timestamp)
        number = self._watermark.decided(None) if committed else None
        return Recalled(number, committed, tuple(unknown))

    def persisted(self, number: int) -> None:
        """Learn that the commits of decision ``number`` are in the commit table."""
        self._watermark.persisted(number)

    def void(self, start_timestamps: Iterable[int]) -> None:
        """Learn that commits decided here do not count, since fences at infinity were there before them."""
        for start_timestamp in start_timestamps:
            self.conflicts.enter_refusal(start_timestamp, self.range.last)
            self._aborts.add(start_timestamp)
            self._voided.add(start_timestamp)
        self.fenced(start_timestamps)

    def told(self, request: CommitRequest, reply: CommitReply) -> CommitReply:
        """A reply as it has to be given by now: some of its commits may have turned out not to count."""
        if not self._voided:
            return reply
        void = np.isin(request.start_timestamps, list(self._voided)) & (reply.reasons == Reason.COMMITTED)
        reasons = np.where(void, np.uint8(Reason.ABORTED), reply.reasons)
        return CommitReply(np.where(void, 0, reply.commit_timestamps), reasons)

    def still_committed(self, committed: Mapping[int, int]) -> dict[int, int]:
        """The same for an answer to an abort or a question."""
        return {start: time for start, time in committed.items() if start not in self._voided}

    def release(self) -> list[int]:
        """The decisions that may be told now, in the order in which they were made; each is given once."""
        released = self._watermark.release()
        for number in released:
            for start_timestamp in self._starts_of.pop(number, ()):
                del self._undurable[start_timestamp]
        return released

    def _impossible_commit(self, request: CommitRequest) -> Impossible | None:
        newest = int(request.start_timestamps.max())
        if newest > self.range.last:
            return self._not_issued("start timestamp", newest)
        wrong = request.snapshots >= request.start_timestamps
        if wrong.any():
            which = int(np.argmax(wrong))
            return Impossible(
                f"transaction {request.start_timestamps[which]} claims snapshot {request.snapshots[which]}: "
                "a snapshot lies below the start timestamp"
            )
        if int(request.validated.max()) > self.range.last:
            return self._not_issued("validated snapshot", int(request.validated.max()))
        return None

    def _not_issued(self, what: str, timestamp: int) -> Impossible:
        return Impossible(f"{what} {timestamp} has never been handed out: the last one was {self.range.last}")

    def _decide_all(self, request: CommitRequest, first_timestamp: int, now: Moment) -> Decided:
        """The loop over a request's columns, as plain lists: indexing numpy arrays one by one is slow."""
        starts = request.start_timestamps.tolist()
        snapshots = np.maximum(request.snapshots, request.validated).tolist()
        offsets, cells = request.offsets.tolist(), request.cells.tolist()
        times, reasons, new = [], [], []
        for index, (start, snapshot) in enumerate(zip(starts, snapshots, strict=True)):
            write_set = cells[offsets[index] : offsets[index + 1]]
            decision = self._decision_of(start)
            if decision is None:
                reason = self._judge(start, snapshot, write_set, now)
                decision = self._enter(start, write_set, reason, first_timestamp + index)
                if reason is Reason.COMMITTED:
                    new.append((start, decision))
            else:
                reason = Reason.COMMITTED if decision > 0 else self._refusal_of(start)
            times.append(max(decision, 0))
            reasons.append(reason)
        self.counts.commits += len(new)
        self.counts.refused_commits += sum(reason is not Reason.COMMITTED for reason in reasons)
        return self._decided(new, CommitReply(np.array(times, "<i8"), np.array(reasons, "u1")))

    def _decided(self, new: list[tuple[int, int]], reply: CommitReply) -> Decided:
        number = self._watermark.decided(new[0][1] if new else None)
        starts, times = tuple(start for start, _ in new), tuple(time for _, time in new)
        self._starts_of[number] = starts
        return Decided(number, starts, times, reply)

    def _decision_of(self, start: int) -> int | None:
        """How a transaction was decided, as in the conflict map. What is not durable is never forgotten: an abort
        that took it for undecided would fence it while its commit is being written.
        """
        return self._undurable.get(start) or self.conflicts.decision_of(start)

    def _refusal_of(self, start: int) -> Reason:
        return Reason.ABORTED if start in self._aborts else Reason.CONFLICT

    def _judge(self, start: int, snapshot: int, write_set: list[int], now: Moment) -> Reason:
        if snapshot < self.conflicts.low_watermark:
            return Reason.TOO_OLD  # first, since it may have committed: the others say that it did not
        if start in self._aborts:
            return Reason.ABORTED
        if not self.lives.is_alive(start, now.monotonic_ms):
            return Reason.EXPIRED
        if len(write_set) > self._limits.commit_cells_max:
            return Reason.TOO_LARGE
        return Reason.CONFLICT if self.conflicts.written_after(write_set, snapshot) else Reason.COMMITTED

    def _enter(self, start: int, write_set: list[int], reason: Reason, timestamp: int) -> int:
        """Remember a decision made at ``timestamp``; returns the commit timestamp, or 0."""
        if reason is Reason.COMMITTED:
            self.conflicts.enter(start, write_set, timestamp)
            self.lives.end(start)
            self._undurable[start] = timestamp
            return timestamp
        if reason is Reason.CONFLICT:
            self.conflicts.enter_refusal(start, timestamp)
        return 0
