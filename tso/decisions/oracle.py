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
from dataclasses import dataclass, replace
from typing import NamedTuple, TypeAlias

import numpy as np
import numpy.typing as npt

from tso.decisions.conflict_map import ConflictMap
from tso.decisions.deciding import Codes, Numbers, are_all_possible, look_over
from tso.decisions.large_write_sets import LargeWriteSets
from tso.decisions.lives import Lives
from tso.decisions.timestamp_range import Exhausted, TimestampRange, TimestampRate
from tso.decisions.watermark import DurableWatermark
from tso.settings import Limits
from wire import HeartbeatReply, HeartbeatRequest, Reason
from wire.gathering import GatheredCommits, one_commit
from wire.large_commits import LargeCommitRequest, WriteSetPart, WriteSetTaken


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


Void: TypeAlias = Mapping[int, Reason]
"""Transactions that had been decided to commit, and do not by that; and what they are told: ``ABORTED`` where a fence
at infinity stands, ``TOO_OLD`` where they had committed before, as the commit table says to who asks.
"""


@dataclass(frozen=True, slots=True)
class Decided:
    """Commits were decided. What is in ``start_timestamps`` has to be persisted before decision ``number`` is told.

    ``asked``: the transactions that were decided over, ``times`` and ``reasons``: how.
    """

    number: int
    start_timestamps: Numbers
    commit_timestamps: Numbers
    asked: Numbers
    times: Numbers
    reasons: Codes
    relying: Numbers
    """Those of ``start_timestamps`` that the oracle does not remember back to the snapshot of, and which rely on what
    their clients looked at: of these it does not know whether they were decided before, here or in an older epoch.
    """

    def but_for(self, void: Void) -> Decided:
        """The same, where these did not commit after all."""
        if void.keys().isdisjoint(self.asked.tolist()):
            return self
        found = list(void)
        is_void = np.isin(self.asked, found) & (self.reasons == Reason.COMMITTED)
        counts = np.isin(self.start_timestamps, found, invert=True)
        reasons = self.reasons.copy()
        reasons[is_void] = [void[start] for start in self.asked[is_void].tolist()]
        return replace(
            self,
            start_timestamps=self.start_timestamps[counts],
            commit_timestamps=self.commit_timestamps[counts],
            times=np.where(is_void, 0, self.times),
            reasons=reasons,
        )


@dataclass(frozen=True, slots=True)
class Recalled:
    """Of the transactions asked for, those known to have committed, and those to be looked up in the commit table.

    May be told once decision ``number`` is released: only then are the commits durable. ``None``: at once.
    ``voided``: those that had been decided to commit, and were aborted.
    """

    number: int | None
    committed: dict[int, int]
    unknown: tuple[int, ...]
    voided: frozenset[int] = frozenset()

    def but_for(self, void: Void) -> Recalled:
        """The same, where these did not commit after all: what became of those not aborted has to be looked up."""
        committed = {start: time for start, time in self.committed.items() if start not in void}
        lost = self.committed.keys() & void.keys()
        aborted = {start for start in lost if void[start] is Reason.ABORTED}
        unknown = (*self.unknown, *sorted(lost - aborted))
        return replace(self, committed=committed, unknown=unknown, voided=self.voided | aborted)


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
    """All state of one epoch. Not thread-safe: one caller at a time. ``seed``: of the conflict map, a secret."""

    def __init__(self, epoch: int, ceiling: int, limits: Limits, seed: int = 0) -> None:
        self.epoch = epoch
        self.counts = Counts()
        self.range = TimestampRange(epoch, ceiling)
        self.large = LargeWriteSets(limits.large_commit_cells_max, limits.large_commit_idle_ms_max, seed)
        self.conflicts = ConflictMap(
            limits.conflict_map_entries_max, limits.remembered_decisions_max, epoch, self.large, seed
        )
        self._limits = limits
        self._rate = TimestampRate(limits.begins_per_ms_max, limits.begin_burst_ms)
        self._watermark = DurableWatermark()
        self.lives = Lives(limits.transaction_life_ms, limits.heartbeat_transactions_max)
        self._aborts: set[int] = set()
        self._voided: dict[int, Reason] = {}
        self._fenced_aborts: deque[tuple[int, int]] = deque()

    @property
    def snapshot(self) -> int:
        """The durable watermark: what a begin gets to read at."""
        return self._watermark.snapshot(self.range.last)

    def observe(self, now: Moment) -> None:
        """Take note of the time; to be called before requests are served, and now and then without any."""
        self.lives.sample(self.range.last, self.snapshot, now.monotonic_ms)
        if self.large:  # as a rule there are none, and it is asked at every pass
            self.large.drop_idle(now.monotonic_ms)
            self.large.forget(self.conflicts.low_watermark)

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

    def impossible(self, commits: GatheredCommits) -> dict[int, Impossible]:
        """The requests that can never be granted, by their place among those that were gathered."""
        starts, last = commits.start_timestamps, self.range.last
        if are_all_possible(starts, commits.snapshots, commits.validated, last):
            return {}
        wrong = (starts > last) | (commits.snapshots >= starts) | (commits.validated > last)
        found: dict[int, Impossible] = {}
        for transaction in np.flatnonzero(wrong).tolist():
            place = int(np.searchsorted(commits.first, transaction, side="right")) - 1
            found.setdefault(place, self._why_impossible(commits, transaction))
        return found

    def commit(self, commits: GatheredCommits, now: Moment, *, against: Reason | None = None) -> Decided | Later:
        """Decide over transactions, in their order; none may be impossible. The answer is for when decision ``number``
        is released.

        A timestamp is set aside for each transaction, so that all or nothing is decided. ``against``: a reason to
        refuse all of them for, if no other stands.
        """
        first = self.range.next(commits.start_timestamps.size, now.wall_ms)
        if isinstance(first, Exhausted):
            return Later(self._limits.retry_after_ms)
        aborted = self._are_aborted(commits)
        free_up_to, standing = self._standing(commits, now)
        if against is not None:
            standing[standing == 0] = against
        if aborted is not None:
            standing[aborted] = Reason.ABORTED
        times, reasons, new = self.conflicts.decide(commits, free_up_to, standing, first)
        self.large.drop_all(commits.start_timestamps)
        if self._voided:  # remembered as refused, which for all others means a conflict
            void = np.isin(commits.start_timestamps, list(self._voided)) & (reasons == Reason.CONFLICT)
            reasons[void] = [self._voided[start] for start in commits.start_timestamps[void].tolist()]
        return self._decided(commits, first, times, reasons, new)

    def take_part(self, part: WriteSetPart, now: Moment) -> WriteSetTaken | Decided | Impossible | Later:
        """Look at a part of a large write set, and hold it for its transaction; or decide against the transaction."""
        snapshot, entered = max(part.snapshot, part.validated), part.total - part.guards
        commits = one_commit(part.start_timestamp, part.snapshot, part.validated)
        impossible = self.impossible(commits)
        if impossible:
            return impossible[0]
        # Guards are looked at once more in the end, all in one go, and of a small commit the cells are as well.
        too_large = entered > self._limits.large_commit_cells_max or part.guards > self._limits.commit_cells_max
        against = Reason.TOO_LARGE if too_large else None
        if against or self._stands_against(commits, now):
            return self._decide_against(commits, now, against)
        coming = self.large.of(part.start_timestamp)
        if coming is None or (coming.total, coming.guards, coming.snapshot) != (part.total, part.guards, snapshot):
            if part.position != 0:
                return WriteSetTaken(0)
            opened = self.large.open(part.start_timestamp, part.total, part.guards, snapshot, now.monotonic_ms)
            if opened is None:
                return Later(self._limits.retry_after_ms)
            if snapshot < self.conflicts.low_watermark:  # what was forgotten to make room may have its cells
                return self._decide_against(commits, now, None)
            coming = opened
        fresh = part.cells[coming.taken - part.position :] if part.position <= coming.taken else part.cells[:0]
        if fresh.size and not self.conflicts.take(coming, fresh, now.monotonic_ms):
            self.conflicts.enter_refusal(part.start_timestamp, self.range.last)
            return self._decide_against(commits, now, None)
        if coming.guards_taken and not coming.looked_at:  # never later: it holds for the first ones, too
            coming.looked_at = self.range.last
        return WriteSetTaken(coming.taken)

    def commit_large(self, request: LargeCommitRequest, now: Moment) -> WriteSetTaken | Decided | Impossible | Later:
        """Commit a transaction whose write set has been taken whole; what was taken is free of conflicts."""
        start, snapshot = request.start_timestamp, max(request.snapshot, request.validated)
        commits = one_commit(start, request.snapshot, request.validated)
        impossible = self.impossible(commits)
        if impossible:
            return impossible[0]
        coming = self.large.of(start)
        if self._stands_against(commits, now, remembered_from=0 if coming else None):
            return self._decide_against(commits, now, None)
        if coming is None or (coming.total, coming.snapshot) != (request.total, snapshot):
            return WriteSetTaken(0)
        if coming.taken < coming.total:
            return WriteSetTaken(coming.taken)
        if self.conflicts.low_watermark > coming.looked_at and coming.guards:
            return self._decide_against(commits, now, None)  # what was written to its guards since may be forgotten
        if not self.conflicts.guards_hold(coming):
            self.conflicts.enter_refusal(start, self.range.last)
            return self._decide_against(commits, now, None)
        timestamp = self.range.next(1, now.wall_ms)
        if isinstance(timestamp, Exhausted):
            return Later(self._limits.retry_after_ms)
        self.conflicts.enter_large(start, timestamp)
        times, reasons = np.array([timestamp]), np.array([Reason.COMMITTED], np.uint8)
        return self._decided(commits, timestamp, times, reasons, 1)

    def _stands_against(self, commits: GatheredCommits, now: Moment, *, remembered_from: int | None = None) -> bool:
        """Whether one transaction is decided, or refused whatever it wrote."""
        start, low = int(commits.start_timestamps[0]), self.conflicts.low_watermark
        snapshot = max(int(commits.snapshots[0]), int(commits.validated[0]))
        return (
            self.conflicts.decision_of(start) is not None
            or snapshot < (low if remembered_from is None else remembered_from)
            or start in self._aborts
            or bool(self._standing(commits, now)[1][0])
        )

    def _decide_against(self, commits: GatheredCommits, now: Moment, reason: Reason | None) -> Decided | Later:
        """Decide over one transaction which something stands against; what was taken of it is let go."""
        self.large.drop(int(commits.start_timestamps[0]))
        return self.commit(commits, now, against=reason)

    def heartbeat(self, request: HeartbeatRequest, now: Moment) -> HeartbeatReply | Impossible | Later:
        """Let transactions live on; the answer says which of them had been given up."""
        starts, snapshots = request.start_timestamps.tolist(), request.snapshots.tolist()
        if max(starts) > self.range.last:
            return self._not_issued("start timestamp", max(starts))
        for start, snapshot in zip(starts, snapshots, strict=True):
            if snapshot >= start:
                return self._above_its_start(start, snapshot)
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
            for start_timestamp in recalled.unknown:
                self.large.drop(start_timestamp)
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
            self._voided.pop(start_timestamp, None)
            self.conflicts.raise_low_watermark(fenced_at)

    def recall(self, start_timestamps: Sequence[int]) -> Recalled | Impossible:
        """Which of these transactions this oracle knows to have committed."""
        if max(start_timestamps) > self.range.last:
            return self._not_issued("start timestamp", max(start_timestamps))
        if min(start_timestamps) <= 0:
            return Impossible(f"{min(start_timestamps)} is no start timestamp: one is larger than 0")
        committed, unknown = {}, []
        for start_timestamp in dict.fromkeys(start_timestamps):
            commit_timestamp = self.conflicts.decision_of(start_timestamp)
            if commit_timestamp is not None and commit_timestamp > 0:
                committed[start_timestamp] = commit_timestamp
            else:
                unknown.append(start_timestamp)
        number = self._watermark.decided(None) if committed else None
        return Recalled(number, committed, tuple(unknown))

    def persisted(self, number: int) -> None:
        """Learn that the commits of decision ``number`` are in the commit table."""
        self._watermark.persisted(number)

    def void(self, void: Void) -> None:
        """Learn that commits decided here do not count. It is remembered as long as an abort is.

        Holds for what is decided from now on; to what was decided and is not told yet the caller applies ``but_for``.
        """
        for start_timestamp, reason in void.items():
            self.conflicts.enter_refusal(start_timestamp, self.range.last)
            self._voided[start_timestamp] = reason
            if reason is Reason.ABORTED:
                self._aborts.add(start_timestamp)
        self.fenced(void)

    def release(self) -> list[int]:
        """The decisions that may be told now, in the order in which they were made; each is given once."""
        return self._watermark.release()

    def _why_impossible(self, commits: GatheredCommits, transaction: int) -> Impossible:
        start, snapshot = int(commits.start_timestamps[transaction]), int(commits.snapshots[transaction])
        if start > self.range.last:
            return self._not_issued("start timestamp", start)
        if snapshot >= start:
            return self._above_its_start(start, snapshot)
        return self._not_issued("validated snapshot", int(commits.validated[transaction]))

    def _above_its_start(self, start: int, snapshot: int) -> Impossible:
        return Impossible(f"transaction {start} claims snapshot {snapshot}: a snapshot lies below the start timestamp")

    def _not_issued(self, what: str, timestamp: int) -> Impossible:
        return Impossible(f"{what} {timestamp} has never been handed out: the last one was {self.range.last}")

    def _standing(self, commits: GatheredCommits, now: Moment) -> tuple[Numbers, Codes]:
        """Up to where each is free of conflicts by what its client says, and why transactions are refused whatever they
        wrote, but for aborts; 0 where nothing stands against them.
        """
        starts, outlived = commits.start_timestamps, self.lives.outlived(now.monotonic_ms)
        free_up_to, standing = np.empty(starts.size, np.int64), np.empty(starts.size, np.uint8)
        columns = (starts, commits.snapshots, commits.validated, commits.offsets, commits.guards)
        if look_over(*columns, self._limits.commit_cells_max, outlived, free_up_to, standing):
            for place in np.flatnonzero(starts <= outlived).tolist():
                if not self.lives.is_alive(int(starts[place]), now.monotonic_ms):
                    standing[place] = Reason.EXPIRED
        return free_up_to, standing

    def _are_aborted(self, commits: GatheredCommits) -> npt.NDArray[np.bool_] | None:
        """Which of them were aborted; ``None``: none."""
        if not self._aborts:
            return None
        asked = commits.start_timestamps.tolist()
        if self._aborts.isdisjoint(asked):  # cheap, where looking at each is not
            return None
        return np.array([start in self._aborts for start in asked], np.bool_)

    def _decided(self, commits: GatheredCommits, first: int, times: Numbers, reasons: Codes, new: int) -> Decided:
        """Take the decisions into the books. A commit is new if it got the timestamp that was set aside for it."""
        starts = commits.start_timestamps
        committed, commit_timestamps, snapshots = starts, times, commits.snapshots
        if new < starts.size:
            is_new = times == np.arange(first, first + times.size)
            committed, commit_timestamps, snapshots = starts[is_new], times[is_new], snapshots[is_new]
            self.counts.refused_commits += int(np.count_nonzero(reasons))
        self.lives.end_all(committed)
        self.counts.commits += new
        number = self._watermark.decided(int(commit_timestamps[0]) if new else None)
        relying = committed[snapshots < self.conflicts.low_watermark]
        return Decided(number, committed, commit_timestamps, starts, times, reasons, relying)
