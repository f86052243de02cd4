"""Writing commits and aborts to the commit table, stubbornly but not beyond the lease.

A commit that relies on what its client looked at, since the oracle does not remember so far back, is looked at twice:

* before it is written the transaction is fenced at this epoch. It may have committed before: here, which has been
  forgotten, or in an older epoch, whose oracle may even have the write under way still. What stands is found by that,
  and what lands later does not count. A client should have asked; two commits of one transaction would show a snapshot
  between them a part of it.
* after it was written it is read back before it counts. A deposed oracle that had been asked to abort it may have had
  its fence at infinity under way, and nothing dates that fence: it may have landed before the commit did. Once the
  commit stands it can land no more, since it is set only where none stands.

Runs on the event loop; what blocks goes to threads. Invariant: a call returns only when everything handed to it is in
the table; every other end is an exception, so that nothing can be called committed, or aborted, by oversight. The lease
is checked before *each* try: a primary that has lost it must not write any more.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Sequence
from functools import partial
from typing import Protocol, TypeVar

import numpy as np

from commit_table import Aborted, Committed, Forgotten, Outcome, Undecided
from store import StoreError, StoreUnavailable
from tso.decisions.deciding import Numbers
from tso.metering import Metering
from wire import Reason

log = logging.getLogger(__name__)

Written = TypeVar("Written")

_ENDED: dict[type[Outcome], Reason] = {Committed: Reason.TOO_OLD, Aborted: Reason.ABORTED}
"""What a transaction is told whose end is on record; of a commit, to ask for it."""

FIRST_PAUSE_MS = 20.0
PAUSE_MS_MAX = 500.0


class HeldLease(Protocol):
    """What serving needs of a tenure; `lease.Tenure` is one."""

    @property
    def epoch(self) -> int:
        """The epoch's first timestamp."""
        ...

    @property
    def ceiling(self) -> int:
        """Exclusive upper bound of the timestamps."""
        ...

    def is_held(self) -> bool:
        """Whether the lease is still ours, by the local monotonic clock; cheap."""
        ...

    def remaining_ms(self) -> float:
        """For how long it is ours without another renewal."""
        ...


class Recorder(Protocol):
    """Writes commits; `commit_table.CommitRecorder` is one."""

    async def record(self, start_timestamps: Numbers, commit_timestamps: Numbers, epoch: int) -> None:
        """Write commits; repeating is harmless. Raises ``StoreUnavailable``."""
        ...


class Outcomes(Protocol):
    """What else serving needs of the commit table; `commit_table.CommitTable` is one. Its calls block."""

    def outcomes(self, start_timestamps: Sequence[int]) -> dict[int, Outcome]:
        """Read what became of transactions. Raises ``StoreUnavailable``."""
        ...

    def resolve_all(self, start_timestamps: Sequence[int], fence: int) -> dict[int, Outcome]:
        """See to it that none commits below ``fence``, unless it did. Raises ``StoreUnavailable``."""
        ...

    def abort(self, start_timestamp: int) -> Committed | Aborted:
        """Fence at infinity, or learn of the commit. Raises ``StoreUnavailable``, ``Forgotten``."""
        ...


class InThread(Protocol):
    """Does what blocks, in a thread of its own."""

    def __call__(self, call: Callable[[], Written], /) -> Awaitable[Written]:
        """What the call returns."""
        ...


class NotPersisted(Exception):
    """The commits may be in the table or not, and this oracle will not find out: it has to stop serving."""


class Persister:
    """Writes for one tenure. Commits are read back in threads of their own, since look-ups may take all of theirs.

    What fails is repeated for ``persist_retry_ms_max``, and tried at least ``tries_min`` times, however long a try
    takes: once for each gateway, since one that is silent may use up all of that time, and the next try goes to
    another.
    """

    def __init__(
        self,
        tenure: HeldLease,
        recorder: Recorder,
        table: Outcomes,
        *,
        in_lookup_thread: InThread,
        in_read_back_thread: InThread,
        persist_retry_ms_max: float,
        tries_min: int,
        monotonic_ms: Callable[[], float],
        metering: Metering,
    ) -> None:
        self._tenure = tenure
        self._recorder = recorder
        self._table = table
        self._retry_ms_max = persist_retry_ms_max
        self._tries_min = tries_min
        self._monotonic_ms = monotonic_ms
        self._in_lookup_thread = in_lookup_thread
        self._in_read_back_thread = in_read_back_thread
        self._metering = metering
        self._stopped = asyncio.Event()

    def stop(self) -> None:
        """Make every call end soon, one way or the other."""
        self._stopped.set()

    async def persist(
        self, start_timestamps: Numbers, commit_timestamps: Numbers, relying: Numbers
    ) -> dict[int, Reason]:
        """Write commits, of which ``relying`` are looked at twice; returns those which do not count, and why.

        Raises ``NotPersisted``.
        """
        if not relying.size:
            await self._write(start_timestamps, commit_timestamps)
            return {}
        looked_at = relying.tolist()
        void = await self._ended_before(looked_at)
        counts = np.isin(start_timestamps, list(void), invert=True)
        if counts.any():
            await self._write(start_timestamps[counts], commit_timestamps[counts])
            void |= await self._aborted_meanwhile([start for start in looked_at if start not in void])
        return void

    async def _write(self, start_timestamps: Numbers, commit_timestamps: Numbers) -> None:
        write = partial(self._recorder.record, start_timestamps, commit_timestamps, self._tenure.epoch)
        since_s = self._metering.clock_s()
        await self._until_done(write, f"{start_timestamps.size} commits")
        self._metering.written(start_timestamps.size, since_s)
        self._metering.writes += 1

    async def _ended_before(self, relying: list[int]) -> dict[int, Reason]:
        fence = partial(self._in_read_back_thread, partial(self._table.resolve_all, relying, self._tenure.epoch))
        found = await self._until_done(fence, f"the fences of {len(relying)} transactions")
        return {start: _ENDED[type(end)] for start, end in found.items() if not isinstance(end, Undecided)}

    async def _aborted_meanwhile(self, relying: list[int]) -> dict[int, Reason]:
        read_back = partial(self._in_read_back_thread, partial(self._table.outcomes, relying))
        found = await self._until_done(read_back, f"the question for {len(relying)} commits")
        return {start: Reason.ABORTED for start, end in found.items() if not isinstance(end, Committed)}

    async def abort(self, start_timestamps: Sequence[int]) -> dict[int, Outcome]:
        """Fence transactions at infinity, or learn that they did commit. Raises ``NotPersisted``, and ``Forgotten``
        once all others are fenced.
        """
        outcomes: dict[int, Outcome] = {}
        forgotten: Forgotten | None = None
        for start_timestamp in start_timestamps:
            try:
                outcomes[start_timestamp] = await self._abort_one(start_timestamp)
            except Forgotten as error:
                forgotten = error
        if forgotten is not None:
            raise forgotten
        return outcomes

    async def outcomes(self, start_timestamps: Sequence[int]) -> dict[int, Outcome]:
        """Read what became of transactions: one try. Raises ``StoreError``."""
        return await self._in_lookup_thread(partial(self._table.outcomes, start_timestamps))

    async def _abort_one(self, start_timestamp: int) -> Outcome:
        ask = partial(self._in_lookup_thread, partial(self._table.abort, start_timestamp))
        return await self._until_done(ask, f"the abort of {start_timestamp}")

    async def _until_done(self, write: Callable[[], Awaitable[Written]], what: str) -> Written:
        give_up_at_ms = self._monotonic_ms() + self._retry_ms_max
        pause_ms = FIRST_PAUSE_MS
        tries = 0
        while True:
            if self._stopped.is_set() or not self._tenure.is_held():
                raise NotPersisted(f"the lease ended before the commit table took {what}")
            try:
                return await write()
            except StoreUnavailable as error:
                log.warning("epoch %d: the commit table has not taken %s yet: %s", self._tenure.epoch, what, str(error))
            except StoreError as error:
                raise NotPersisted(f"the commit table refuses {what}: {error}") from error
            self._metering.write_failures += 1
            tries += 1
            if tries >= self._tries_min and self._monotonic_ms() >= give_up_at_ms:
                raise NotPersisted(f"the commit table did not take {what} in {self._retry_ms_max:.0f} ms")
            await self._pause(pause_ms)
            pause_ms = min(2 * pause_ms, PAUSE_MS_MAX)

    async def _pause(self, pause_ms: float) -> None:
        try:
            await asyncio.wait_for(self._stopped.wait(), pause_ms / 1000)
        except TimeoutError:
            return
