"""Transactions that are held open here between requests.

The invariants: one request at a time uses a transaction, others are told so; only the caller who began it uses it, and
to others it is not there; what is held is bounded in number, bytes and age; a commit is answered committed or aborted,
truly, however often it is asked for. Writes stay in this process until the commit, so a transaction that is lost with
the process was never visible.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections import Counter, OrderedDict
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field, replace
from typing import Final, TypeVar

from client import (
    InvalidRequest,
    OutcomeUnknown,
    PythiaError,
    Savepoint,
    Transaction,
    TransactionAborted,
    TransactionManager,
    TransactionStatus,
)
from client.asyncio_front.blocking_calls import BlockingCalls
from commit_table import Committed
from configuration.rest_limits import RestLimits
from rest.owners import CALLER
from rest.problems import Problem, problem_of
from rest.writes import CLAIM_BYTES_MAX, Write, write_all
from store import StoreError

Result = TypeVar("Result")

_log = logging.getLogger(__name__)

SETTLED_AT_ONCE_MAX: Final = 4
"""Expired transactions of unknown outcome that are settled together; each has a thread for as long as it waits."""


_ANOTHER_REQUEST: Final = "serves another request"
_ITS_END: Final = "was not used for too long, or was open for too long; it is being rolled back"


@dataclass(eq=False, slots=True)
class Held:
    """One open transaction. ``settling``: its commit ended without an answer."""

    transaction: Transaction
    began_s: float
    used_s: float
    read_only: bool
    owner: str = ""
    """The name of the token that began it."""
    booked_bytes: int = 0
    """What it counts for in what all of them hold: what it has written, and while a request writes what that brings."""
    busy_with: str = ""
    """What uses it now, as whoever else asks for it is told; empty: nothing does."""
    settling: bool = False
    savepoints: dict[str, Savepoint] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Ended:
    """How a transaction ended: ``committed`` with a timestamp, or the problem that a repeated commit is told, which is
    never raised itself.
    """

    word: str
    commit_timestamp: int = 0
    problem: Problem | None = None
    owner: str | None = None
    """Whose it was; ``None``: it was not held here, and its outcome is anybody's to ask for."""


class HeldTransactions:
    """Belongs to the event loop; the blocking library is called in threads of its own.

    ``expired`` is called for each transaction that was rolled back since its caller left it.
    """

    def __init__(
        self,
        manager: TransactionManager,
        limits: RestLimits,
        *,
        expired: Callable[[], None] = lambda: None,
        now_s: Callable[[], float] = time.monotonic,
    ) -> None:
        self._manager = manager
        self._limits = limits
        self._expired = expired
        self._now_s = now_s
        self._calls = BlockingCalls(limits.threads_max, limits.deadline_ms)
        self._held: dict[int, Held] = {}
        self._beginning = 0
        self._open: Counter[str] = Counter()
        """Transactions by owner."""
        self._bytes = 0
        self._ended: OrderedDict[int, Ended] = OrderedDict()

    @property
    def transactions(self) -> int:
        """Open now."""
        return len(self._held)

    @property
    def unfinished(self) -> int:
        """Open now, or about to be. From any thread."""
        return len(self._held) + self._beginning

    @property
    def written_bytes(self) -> int:
        """Held for all of them."""
        return self._bytes

    def holds(self, start_timestamp: int) -> bool:
        """Whether the transaction is open here, or its end is remembered."""
        known = self._held.get(start_timestamp) or self._ended.get(start_timestamp)
        return known is not None and known.owner in (None, CALLER.get())

    def require_not_others(self, start_timestamp: int) -> None:
        """Raise ``Problem`` for a transaction that another caller began here, as if there were none."""
        known = self._held.get(start_timestamp) or self._ended.get(start_timestamp)
        if known is not None and known.owner not in (None, CALLER.get()):
            raise _unknown(start_timestamp)

    async def in_thread(self, call: Callable[[], Result]) -> Result:
        """What blocks, in a thread; errors of the library, and that no thread came free, come as ``Problem``."""
        try:
            return await self._run(call)
        except (PythiaError, StoreError) as error:
            raise problem_of(error, self._limits.retry_after_ms) from error

    async def begin(self, *, read_only: bool) -> Held:
        """Open a transaction. Raises ``Problem``."""
        if self.unfinished >= self._limits.transactions_max:
            raise Problem(
                "too-many-transactions",
                f"{self._limits.transactions_max} transactions are open (transactions_max)",
                retry_after_ms=self._limits.retry_after_ms,
            )
        owner = CALLER.get()
        if self._open[owner] >= self._limits.transactions_per_token_max:
            raise Problem(
                "too-many-transactions",
                f"{self._open[owner]} transactions of this token are open (transactions_per_token_max)",
                retry_after_ms=self._limits.retry_after_ms,
            )
        self._beginning += 1
        self._open[owner] += 1
        try:
            transaction = await self.in_thread(lambda: self._manager.transaction(read_only=read_only))
        except BaseException:
            self._count_out(owner)
            raise
        finally:
            self._beginning -= 1
        now_s = self._now_s()
        held = Held(transaction, now_s, now_s, read_only, owner)
        self._held[transaction.start_timestamp] = held
        return held

    @asynccontextmanager
    async def using(self, start_timestamp: int) -> AsyncIterator[Held]:
        """The transaction for one request, and for no other meanwhile. Raises ``Problem``."""
        held = self._found(start_timestamp)
        if held.settling:
            raise Problem("outcome-unknown", "its commit is not answered yet", start_timestamp=str(start_timestamp))
        with_it = self._taken(held)
        try:
            yield with_it
        finally:
            self._give_back(held)

    async def write(self, held: Held, writes: Sequence[Write]) -> None:
        """All of the writes, or none. Raises ``Problem``.

        What a delete of a whole row takes is known only once it was done, so that it may lead beyond the bound. What
        comes after it is refused then, even if it had room when it began to wait for a thread.
        """
        size = sum(write.size_bytes for write in writes)
        await self._in_room(held, size, lambda: write_all(held.transaction, writes))

    async def claim(self, held: Held, key: str, table: str | None) -> bool:
        """Whether this transaction is the one that lands the key. Raises ``Problem``."""
        return await self._in_room(held, CLAIM_BYTES_MAX, lambda: held.transaction.claim(key, table=table))

    async def _in_room(self, held: Held, size_bytes: int, call: Callable[[], Result]) -> Result:
        """What writes about so much into a transaction, in a thread."""
        self._require_room(size_bytes)
        self._book(held, held.booked_bytes + size_bytes)

        def called() -> Result:
            self._require_room(0)
            return call()

        return await self.in_thread(called)

    async def commit(self, start_timestamp: int) -> int:
        """The commit timestamp, also of what was committed before, wherever. Raises ``Problem``."""
        self.require_not_others(start_timestamp)
        if start_timestamp in self._ended:
            return self._answer_again(start_timestamp)
        if start_timestamp not in self._held:
            return await self._settle_lost(start_timestamp)
        held = self._taken(self._held[start_timestamp])
        try:
            ended = await self._in_one_answer(held)
        finally:
            self._give_back(held)
        self._end(start_timestamp, ended)
        return self._answer_again(start_timestamp)

    async def roll_back(self, start_timestamp: int) -> None:
        """Give a transaction up. Raises ``Problem`` where it has committed, or nobody knows it."""
        self.require_not_others(start_timestamp)
        if start_timestamp in self._ended:
            if self._ended[start_timestamp].word == "committed":
                raise _committed(start_timestamp, self._ended[start_timestamp].commit_timestamp)
            return
        held = self._taken(self._found(start_timestamp))
        try:
            outcome = await self.in_thread(held.transaction.rollback)
        finally:
            self._give_back(held)
        if isinstance(outcome, Committed):
            self._end(start_timestamp, Ended("committed", outcome.commit_timestamp))
            raise _committed(start_timestamp, outcome.commit_timestamp)
        self._end(start_timestamp, Ended("rolled back", problem=_ended(start_timestamp, "rolled back")))

    async def expire(self) -> int:
        """Roll back what is not used any more, or is too old; how many.

        What is settling may wait out its deadline, so that it comes last, and of it only as much as is done at once:
        the rest is due the next time, after those that have ended by then.
        """
        due = self._due()
        settling = [start for start in due if self._held[start].settling]
        plain = [start for start in due if not self._held[start].settling]
        for start in plain:
            await self._give_up(start)
        together = settling[:SETTLED_AT_ONCE_MAX]
        await asyncio.gather(*(self._give_up(start) for start in together))
        return len(plain) + len(together)

    async def close(self) -> None:
        """Begin nothing more; what runs in threads is waited for."""
        await self._calls.close()

    async def _run(self, call: Callable[[], Result]) -> Result:
        """In a thread; those of one token wait for one behind each other."""
        return await self._calls.run(call, party=CALLER.get())

    def _require_room(self, size: int) -> None:
        """Raise ``Problem`` where so many bytes more would be too many. From any thread."""
        if self._bytes + size > self._limits.transactions_bytes_max:
            raise Problem(
                "too-many-bytes",
                f"open transactions hold {self._bytes:,} bytes of {self._limits.transactions_bytes_max:,} "
                "(transactions_bytes_max)",
                retry_after_ms=self._limits.retry_after_ms,
            )

    def _due(self) -> list[int]:
        """What nobody uses now, and has not for too long, or is too old."""
        now_s, limits = self._now_s(), self._limits
        return [
            start
            for start, held in self._held.items()
            if not held.busy_with
            and (
                (now_s - held.used_s) * 1000 > limits.transaction_idle_ms_max
                or (now_s - held.began_s) * 1000 > limits.transaction_age_ms_max
            )
        ]

    async def _give_up(self, start_timestamp: int) -> None:
        held = self._held.get(start_timestamp)
        if held is None or held.busy_with:
            return
        problem = Problem(
            "transaction-expired", f"transaction {start_timestamp} was not used for too long, or was open for too long"
        )
        ended = Ended("expired", problem=problem)
        self._taken(held, _ITS_END)
        try:
            outcome = await self.in_thread(held.transaction.rollback)
            if isinstance(outcome, Committed):
                ended = Ended("committed", outcome.commit_timestamp)
        except Problem as failure:
            if failure.code == "overloaded":  # there was no thread to ask in: it is due again
                return
            _log.info("transaction %d is dropped: %s", start_timestamp, str(failure))
            if held.settling:  # whoever asks again has it settled
                self._forget(start_timestamp)
                return
        finally:
            held.busy_with = ""  # and not used
        if ended.word == "expired":
            self._expired()
        self._end(start_timestamp, ended)

    def _found(self, start_timestamp: int) -> Held:
        self.require_not_others(start_timestamp)
        held = self._held.get(start_timestamp)
        if held is not None:
            return held
        ended = self._ended.get(start_timestamp)
        if ended is None:
            raise _unknown(start_timestamp)
        if ended.word == "expired" and ended.problem is not None:
            raise ended.problem.anew()
        raise _ended(start_timestamp, ended.word)

    def _taken(self, held: Held, busy_with: str = _ANOTHER_REQUEST) -> Held:
        if held.busy_with:
            raise Problem(
                "transaction-busy",
                f"transaction {held.transaction.start_timestamp} {held.busy_with}",
                retry_after_ms=self._limits.retry_after_ms,
            )
        held.busy_with = busy_with
        return held

    def _give_back(self, held: Held) -> None:
        held.busy_with = ""
        held.used_s = self._now_s()
        self._book(held, held.transaction.written_bytes)

    async def _in_one_answer(self, held: Held) -> Ended:
        """Commit, or find out what became of a commit that had no answer."""
        start_timestamp = held.transaction.start_timestamp
        try:
            if held.settling:
                outcome = await self._run(held.transaction.rollback)
                if not isinstance(outcome, Committed):
                    return Ended("aborted", problem=_settled_as_aborted(start_timestamp))
                return Ended("committed", outcome.commit_timestamp)
            return Ended("committed", (await self._run(held.transaction.commit)).commit_timestamp)
        except OutcomeUnknown as error:
            held.settling = True
            raise problem_of(error, self._limits.retry_after_ms) from error
        except TransactionAborted as error:
            return Ended("aborted", problem=problem_of(error, self._limits.retry_after_ms))
        except (PythiaError, StoreError) as error:
            held.settling = held.transaction.status is TransactionStatus.UNKNOWN
            raise problem_of(error, self._limits.retry_after_ms) from error

    async def _settle_lost(self, start_timestamp: int) -> int:
        """A commit of what nobody holds here: it has committed, or now it never will."""
        try:
            outcome = await self._run(lambda: self._manager.abort(start_timestamp))
        except InvalidRequest as error:
            raise Problem("transaction-unknown", str(error)) from error
        except (PythiaError, StoreError) as error:
            raise problem_of(error, self._limits.retry_after_ms) from error
        if isinstance(outcome, Committed):
            self._end(start_timestamp, Ended("committed", outcome.commit_timestamp))
        else:
            problem = Problem(
                "transaction-lost",
                f"transaction {start_timestamp} had not committed, and is not open in this process",
                start_timestamp=str(start_timestamp),
            )
            self._end(start_timestamp, Ended("aborted", problem=problem))
        return self._answer_again(start_timestamp)

    def _answer_again(self, start_timestamp: int) -> int:
        ended = self._ended[start_timestamp]
        if ended.problem is not None:
            raise ended.problem.anew()
        return ended.commit_timestamp

    def _end(self, start_timestamp: int, ended: Ended) -> None:
        held = self._held.get(start_timestamp)
        self._forget(start_timestamp)
        self._ended[start_timestamp] = ended if held is None else replace(ended, owner=held.owner)
        while len(self._ended) > self._limits.ended_max:
            self._ended.popitem(last=False)

    def _book(self, held: Held, size_bytes: int) -> None:
        self._bytes += size_bytes - held.booked_bytes
        held.booked_bytes = size_bytes

    def _forget(self, start_timestamp: int) -> None:
        held = self._held.pop(start_timestamp, None)
        if held is not None:
            self._book(held, 0)
            self._count_out(held.owner)

    def _count_out(self, owner: str) -> None:
        self._open[owner] -= 1
        if not self._open[owner]:
            del self._open[owner]


def _unknown(start_timestamp: int) -> Problem:
    return Problem("transaction-unknown", f"transaction {start_timestamp} is not open in this process")


def _committed(start_timestamp: int, commit_timestamp: int) -> Problem:
    return Problem(
        "already-committed",
        f"transaction {start_timestamp} committed at {commit_timestamp}",
        start_timestamp=str(start_timestamp),
        commit_timestamp=str(commit_timestamp),
    )


def _ended(start_timestamp: int, word: str) -> Problem:
    return Problem(
        "transaction-ended", f"transaction {start_timestamp} is {word}", start_timestamp=str(start_timestamp)
    )


def _settled_as_aborted(start_timestamp: int) -> Problem:
    return Problem(
        "aborted",
        f"transaction {start_timestamp} was aborted: its commit got no answer",
        start_timestamp=str(start_timestamp),
    )
