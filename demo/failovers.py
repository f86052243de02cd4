"""Killing the primary oracle while a month is loaded, and a transaction that is open all the while.

What must be true: everything goes on as if nothing had happened. A kill belongs to one month: it comes between the
begin and the commit of its transaction, and before the next month begins a new standby is there.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from typing import Final, TypeVar

from client import TransactionAborted, TransactionManager
from demo.errors import ComparisonFailed, Overdue
from demo.kills import (
    FailoverReport,
    Kill,
    LongTransaction,
    aborted,
    kill_months,
    longest_silence_ms,
    usual_silence_ms,
)
from demo.oracles import START_SECONDS_MAX, Oracles, Tenure
from demo.probe import Probe
from demo.tables import TableNames
from demo.waiting import wait_for

WRITING_SECONDS_MAX: Final = 120.0
TAKEOVER_SECONDS_MAX: Final = 60.0
PROBE_SECONDS_MAX: Final = 60.0
KILL_SECONDS_MAX: Final = WRITING_SECONDS_MAX + TAKEOVER_SECONDS_MAX
RECOVERY_SECONDS_MAX: Final = KILL_SECONDS_MAX + TAKEOVER_SECONDS_MAX + PROBE_SECONDS_MAX + START_SECONDS_MAX

_ROW: Final = b"an hour's work"
_WRITTEN: Final = {b"f:result": b"42"}


Result = TypeVar("Result")


@contextmanager
def failing_over(manager: TransactionManager, oracles: Oracles, names: TableNames, months: int) -> Iterator[Failovers]:
    """Probe and long transaction begin here; the primary is killed in some of the first ``months`` months."""
    with ExitStack() as stack:
        killer = ThreadPoolExecutor(1, thread_name_prefix="killer")
        stack.callback(killer.shutdown, cancel_futures=True)
        probe = stack.enter_context(Probe(manager, names.of("probe")))
        table = names.of("long_transaction")
        failovers = Failovers(manager, oracles, probe, killer, table, kill_months(months))
        stack.callback(failovers.stop)
        yield failovers


@dataclass(frozen=True, slots=True)
class Struck:
    """A primary was killed: who, when (seconds of the monotonic clock), and with how many rows on their way."""

    month: int
    tenure: Tenure
    at: float
    rows: int


class Failovers:
    """Kills the primary in ``months``. Its methods belong to one thread; ``killer`` has another, for the kills.

    The long transaction begins at once, and writes a row of ``table``.
    """

    def __init__(
        self,
        manager: TransactionManager,
        oracles: Oracles,
        probe: Probe,
        killer: ThreadPoolExecutor,
        table: str,
        months: Sequence[int],
    ) -> None:
        self._manager = manager
        self._oracles = oracles
        self._probe = probe
        self._killer = killer
        self._table = table
        self._months = months
        self._kills: list[Kill] = []
        self._killing: Future[Struck] | None = None
        self._recovering: Future[Kill] | None = None
        self._written = threading.Event()
        self._stopping = threading.Event()
        self._evicted = False
        manager.create_table(table, ["f"])
        self._begun = time.monotonic()
        self._long = manager.transaction()
        self._long.put(table, _ROW, _WRITTEN)

    def stop(self) -> None:
        """End the wait of the killer's thread."""
        self._stopping.set()

    def before_month(self, month: int) -> None:
        """Look, before the first kill, whether the long transaction's snapshot was forgotten even without one."""
        if month == self._months[0]:
            memory = self._oracles.memory()
            if memory is not None and memory.epoch == self._long.epoch:
                self._evicted = memory.low_watermark > self._long.snapshot_timestamp

    def month_begun(self, month: int, start_timestamp: int) -> None:
        """The month's transaction has begun: in some months the primary is killed as soon as tasks write into it."""
        if month in self._months:
            self._written.clear()
            self._killing = self._killer.submit(self._kill, month, start_timestamp)
            self._recovering = self._killer.submit(self._recover, self._killing)

    def before_commit(self) -> None:
        """The month's transaction is written, its commit comes next: the kill has to come before it."""
        self._written.set()
        if self._killing is not None:
            _result(self._killing, "the kill of the primary", KILL_SECONDS_MAX)

    def month_loaded(self) -> Kill | None:
        """The month's kill, if there was one, once a standby is there again."""
        recovering, self._killing, self._recovering = self._recovering, None, None
        if recovering is None:
            self._probe.refuse_failure()
            return None
        self._kills.append(_result(recovering, "a standby after the kill of the primary", RECOVERY_SECONDS_MAX))
        return self._kills[-1]

    def finish(self) -> FailoverReport:
        """Commit the long transaction, end the probe, and tell what happened."""
        long = self._end_long_transaction()
        self._probe.stop()
        self._probe.refuse_failure()
        return FailoverReport(
            lease_ms=self._oracles.options.lease_ms,
            kills=self._kills,
            uninvited=len(self._oracles.tenures()) - 1 - len(self._kills),
            probes=self._probe.count,
            usual_ms=usual_silence_ms(self._probe.acknowledged()),
            long=long,
        )

    def _end_long_transaction(self) -> LongTransaction:
        self._refuse_row_unless({}, "was seen before it committed")
        failovers = sum(tenure.epoch > self._long.epoch for tenure in self._oracles.tenures())
        started = time.monotonic()
        try:
            self._long.commit()
        except TransactionAborted as error:
            raise aborted("the long transaction", error) from error
        ended = time.monotonic()
        self._refuse_row_unless(_WRITTEN, "is not there after its commit")
        return LongTransaction(ended - self._begun, ended - started, failovers, self._evicted)

    def _refuse_row_unless(self, expected: dict[bytes, bytes], otherwise: str) -> None:
        found = self._manager.snapshot().get(self._table, _ROW)
        if found != expected:
            raise ComparisonFailed(f"the long transaction's row {otherwise}: {found}")

    def _kill(self, month: int, start_timestamp: int) -> Struck:
        rows = wait_for(
            lambda: self._rows_under_way(start_timestamp),
            f"a task of Spark that writes month {month}",
            WRITING_SECONDS_MAX,
            self._stopping,
        )
        primary = self._oracles.wait_for_primary(0, TAKEOVER_SECONDS_MAX, self._stopping)
        at = time.monotonic()
        self._oracles.kill(primary.name)
        return Struck(month, primary, at, rows)

    def _rows_under_way(self, start_timestamp: int) -> int | None:
        """How many rows the jobs that have not ended have on record; 0 where there is no other job to wait for."""
        written = self._written.is_set()
        jobs = self._manager.manifest.jobs(start_timestamp).values()
        unfinished = [tables for job in jobs if job.winners is None for tables in job.keys.values()]
        rows = sum(len(keys) for tables in unfinished for pieces in tables.values() for keys in pieces)
        return rows if rows or written else None

    def _recover(self, killing: Future[Struck]) -> Kill:
        struck = killing.result()  # its thread has run it before: there is but one
        successor = self._oracles.wait_for_primary(struck.tenure.epoch, TAKEOVER_SECONDS_MAX, self._stopping)
        taken_over = time.monotonic()
        self._probe.wait_for_commit(taken_over, PROBE_SECONDS_MAX)
        self._oracles.start(struck.tenure.name)
        silence_ms = longest_silence_ms(self._probe.acknowledged(), struck.at, taken_over)
        assert silence_ms is not None  # the commit that was waited for
        return Kill(struck.month, struck.tenure.name, struck.rows, successor.name, silence_ms)


def _result(future: Future[Result], what: str, seconds_max: float) -> Result:
    try:
        return future.result(seconds_max)
    except TimeoutError as error:
        raise Overdue(f"{what} was waited for, and did not come within {seconds_max:.0f} s") from error
