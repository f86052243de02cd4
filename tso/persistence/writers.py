"""Writes to the commit table, a few at a time: a writer takes all that is decided and not written.

What comes while the writers are busy goes with the next write. A request for a few commits costs the store nearly what
one for many does, and so it is not made where it would be soon followed by another:

* A writer that is idle while others write takes no less than these have under way, or a whole write: a few commits gain
  nothing by a request of their own, since they are answered after the others anyway.
* When a write ends, those whom it answers are about to come again. If fewer wait than it had, the next one begins when
  half of both are there, or ``GATHER_MS`` later; at once where writes are quick. Whoever commits one transaction at a
  time never waits, alone or beside another.

Invariant: the writes begin in the order of the decisions; they may end in any.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable, Sequence
from typing import Final

import numpy as np

from tso.decisions.deciding import Numbers
from tso.decisions.oracle import Decided, Void
from tso.persistence.persist import Persister

Written = Callable[[Sequence[Decided], Void | Exception], None]
"""Told of each write that has ended: which of its commits are void, or why it did not succeed."""


GATHER_MS: Final = 1
"""How long a writer stays idle, at most, until half of those are there who are about to come. The event loop counts in
whole milliseconds: it may be one more, or hardly any time."""
QUICK_MS_MAX: Final = 0.5
"""After a write that took less nobody is waited for: another costs less than that."""


class Writers:
    """Writes of one tenure; ``writers`` at once, of ``commits_max`` commits each. For the event loop's thread.

    ``undecided``: commits that wait here already, but for a decision. ``gathered`` is called when no more of them are
    waited for, and is to have them decided and to ``start``.
    """

    def __init__(
        self,
        persister: Persister,
        writers: int,
        commits_max: int,
        written: Written,
        *,
        undecided: Callable[[], int],
        gathered: Callable[[], None],
        clock_s: Callable[[], float],
    ) -> None:
        self._undecided = undecided
        self._gathered = gathered
        self._clock_s = clock_s
        self._gathering: asyncio.TimerHandle | None = None
        self._least = 0
        """Commits for which a write is begun."""
        self._persister = persister
        self._idle = writers
        self._under_way = 0
        """Commits that are being written."""
        self._waiting = 0
        """Commits that wait for a writer."""
        self._commits_max = commits_max
        self._written = written
        self._loop = asyncio.get_running_loop()
        self._unwritten: deque[Decided] = deque()
        self._writes: set[asyncio.Task[None]] = set()

    def __len__(self) -> int:
        """Decisions that wait for a writer."""
        return len(self._unwritten)

    def add(self, decided: Decided) -> None:
        """Let a decision's commits be written by the next ``start``."""
        if decided.start_timestamps.size:
            self._unwritten.append(decided)
            self._waiting += decided.start_timestamps.size

    def would_take_all(self) -> bool:
        """Whether ``start`` would begin a write, if all commits that wait were decided."""
        least = min(max(self._under_way, self._least), self._commits_max)
        return self._idle > 0 and self._waiting + self._undecided() >= least

    def start(self) -> None:
        """Give what waits to the writers that are idle."""
        while self._unwritten and self.would_take_all():
            self._gather_no_more()
            self._idle -= 1
            write = self._loop.create_task(self._write(*self._next_batch()))
            self._writes.add(write)
            write.add_done_callback(self._forget)

    def stop(self) -> None:
        """Begin nothing more, and wait for nothing."""
        self._unwritten.clear()
        self._waiting = 0
        self._gather_no_more()
        for write in self._writes:
            write.cancel()

    def _next_batch(self) -> tuple[list[Decided], int]:
        """What goes in one write, and how many commits that are."""
        batch = [self._unwritten.popleft()]
        commits = batch[0].start_timestamps.size
        while self._unwritten and commits + self._unwritten[0].start_timestamps.size <= self._commits_max:
            batch.append(self._unwritten.popleft())
            commits += batch[-1].start_timestamps.size
        self._waiting -= commits
        self._under_way += commits
        return batch, commits

    async def _write(self, batch: Sequence[Decided], commits: int) -> None:
        """Tells at once how it ended, and not a turn of the event loop later."""
        void: Void | Exception
        since_s = self._clock_s()
        try:
            void = await self._persister.persist(*_commits_of(batch))
        except Exception as error:
            void = error
        self._idle += 1
        self._under_way -= commits
        if not self._under_way:
            self._gather(commits, self._clock_s() - since_s)
        self._written(batch, void)

    def _gather(self, commits: int, took_s: float) -> None:
        """Let the next write wait for some of those whose commits have just been written."""
        self._gather_no_more()
        waiting = self._waiting + self._undecided()
        least = (waiting + commits) // 2
        if waiting < least and took_s * 1000 >= QUICK_MS_MAX:
            self._least = least
            self._gathering = self._loop.call_later(GATHER_MS / 1000, self._end_gathering)

    def _gather_no_more(self) -> None:
        self._least = 0
        if self._gathering is not None:
            self._gathering.cancel()
            self._gathering = None

    def _end_gathering(self) -> None:
        self._gather_no_more()
        self._loop.call_soon(self._gathered)  # after the pass of those who have just come

    def _forget(self, write: asyncio.Task[None]) -> None:
        self._writes.discard(write)
        if not write.cancelled():
            write.result()  # whoever was told had a defect: it must not go unheard


def _commits_of(batch: Sequence[Decided]) -> tuple[Numbers, Numbers, Numbers]:
    """Start and commit timestamps of all that is in a batch, and those of the former that rely on their clients."""
    if len(batch) == 1:
        return batch[0].start_timestamps, batch[0].commit_timestamps, batch[0].relying
    return (
        np.concatenate([decided.start_timestamps for decided in batch]),
        np.concatenate([decided.commit_timestamps for decided in batch]),
        np.concatenate([decided.relying for decided in batch]),
    )
