"""Aborts and outcomes that the oracle cannot answer from memory: asked of the commit table.

They never hold up a begin or a commit: they wait in line for threads that nothing else needs. Bounded: what is over
`lookups_pending_max` transactions is not taken. An abort is as stubborn as a commit, since it is remembered until its
fence stands; a question may be asked again.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Coroutine, Mapping, Sequence
from functools import partial
from typing import Any

import numpy as np

from commit_table import Aborted, Committed, Outcome, Undecided
from tso.decisions.oracle import Recalled
from tso.metering import Metering
from tso.persistence.persist import Persister
from wire import OutcomeReply, OutcomeStatus

log = logging.getLogger(__name__)

_STATUSES: dict[type[Outcome], OutcomeStatus] = {
    Committed: OutcomeStatus.COMMITTED,
    Aborted: OutcomeStatus.ABORTED,
    Undecided: OutcomeStatus.UNDECIDED,
}

Learn = Callable[[dict[int, Outcome] | Exception], None]
"""Gets the outcomes, on the event loop, or why there are none."""


class Lookups:
    """Asks the commit table, on behalf of one tenure. Belongs to the event loop's thread."""

    def __init__(self, persister: Persister, pending_max: int, metering: Metering) -> None:
        self._persister = persister
        self._metering = metering
        self._pending_max = pending_max
        self._pending = 0
        self._tasks: set[asyncio.Task[dict[int, Outcome]]] = set()

    def __len__(self) -> int:
        """Transactions that are being asked about."""
        return self._pending

    def has_room(self, transactions: int) -> bool:
        """Whether that many more may be taken."""
        return self._pending + transactions <= self._pending_max

    def abort(self, start_timestamps: Sequence[int], learn: Learn) -> None:
        """Fence each at infinity, or learn that it committed. It fails with ``NotPersisted`` or ``Forgotten`` only."""
        self._submit(self._persister.abort(start_timestamps), len(start_timestamps), learn)

    def read(self, start_timestamps: Sequence[int], learn: Learn) -> None:
        """Read each outcome."""
        self._submit(self._persister.outcomes(start_timestamps), len(start_timestamps), learn)

    def close(self) -> None:
        """Forget what is under way; nobody is told any more by the caller of `learn`."""
        for task in self._tasks:
            task.cancel()

    def _submit(self, ask: Coroutine[Any, Any, dict[int, Outcome]], transactions: int, learn: Learn) -> None:
        self._pending += transactions
        self._metering.lookups += 1
        task = asyncio.get_running_loop().create_task(ask)
        self._tasks.add(task)
        task.add_done_callback(partial(self._done, transactions, learn))

    def _done(self, transactions: int, learn: Learn, task: asyncio.Task[dict[int, Outcome]]) -> None:
        self._pending -= transactions
        self._tasks.discard(task)
        if task.cancelled():
            return
        error = task.exception()
        if error is not None:
            self._metering.lookup_failures += 1
            log.warning("the commit table could not be asked about %d transactions: %s", transactions, str(error))
        learn(task.result() if error is None else _as_exception(error))


def _as_exception(error: BaseException) -> Exception:
    return error if isinstance(error, Exception) else RuntimeError(str(error))


def outcomes_of(recalled: Recalled) -> dict[int, Outcome]:
    """Of transactions that had been decided to commit."""
    known: dict[int, Outcome] = dict.fromkeys(recalled.voided, Aborted())
    return known | {start: Committed(time) for start, time in recalled.committed.items()}


def outcome_reply(start_timestamps: Sequence[int], outcomes: Mapping[int, Outcome]) -> OutcomeReply:
    """The answer, in the order in which was asked."""
    answers = [outcomes[start_timestamp] for start_timestamp in start_timestamps]
    statuses = [_STATUSES[type(answer)] for answer in answers]
    times = [answer.commit_timestamp if isinstance(answer, Committed) else 0 for answer in answers]
    return OutcomeReply(np.array(statuses, "u1"), np.array(times, "<i8"))
