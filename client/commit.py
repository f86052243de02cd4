"""The way of a transaction from its last write to its outcome.

1. the buffered writes go to the store as tentative versions;
2. the oracle decides over the write set, and is asked until it answers; where it remembers too little to decide, as
   after a failover, the client looks for conflicts itself and asks again (``client.revalidation``);
3. the shadow cells are written: from here on readers could do that as well.

The commit point lies in step 2, when the commit table holds the commit; nothing that fails later may undo it, and
nothing that fails earlier may leave it open. The call ends in committed or aborted whatever failed on the way, and only
where its deadline comes first in ``OutcomeUnknown``.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import Enum

from client.catalog import Catalog
from client.cells import family_of, write_set
from client.deadline import Deadline
from client.errors import (
    ABORTED_BY_ANOTHER,
    NOT_HEARD_OF,
    Conflict,
    InvalidRequest,
    NoPrimary,
    OutcomeUnknown,
    PythiaError,
    SnapshotTooOld,
    TransactionAborted,
    TransactionExpired,
    TransactionTooLarge,
)
from client.handles import TransactionHandle
from client.manifest import Job, Manifest, all_rows
from client.oracle import COMMIT_CELLS_MAX, Decision, OracleClient, ReplyLost
from client.resolver import OutcomeCache, Resolver, Site
from client.revalidation import Revalidator, WrittenRows
from client.visibility import NOT_COMMITTED
from client.write_buffer import WriteBuffer
from commit_table import CommitTable, Committed
from store import CellStore, StoreError
from wire import Reason

_log = logging.getLogger(__name__)

UNREPEATED_SHOWN_MAX = 3
REVALIDATIONS_MAX = 20
"""In one commit. Each outlives one failover, or one turnover of the oracle's conflict map."""


class CommitStep(Enum):
    """How far a commit has come; what an observer is told, and where a drill pulls the plug."""

    WRITTEN = "written"
    """Every tentative version is in the store; the commit has not been sent."""
    SENT = "sent"
    """The commit request is out; its answer has not come."""
    ANSWERED = "answered"
    """The transaction committed; no shadow cell is written yet."""
    SHADOWED = "shadowed"
    """All is done."""


CommitObserver = Callable[[CommitStep, int], None]
"""Called with each step and the start timestamp, in the thread that commits."""

_REFUSALS: dict[Reason, tuple[type[TransactionAborted], str]] = {
    Reason.CONFLICT: (Conflict, "another transaction committed to its write set after its snapshot"),
    Reason.ABORTED: (TransactionAborted, ABORTED_BY_ANOTHER),
    Reason.TOO_LARGE: (TransactionTooLarge, "its write set is larger than the oracle takes; split it"),
    Reason.EXPIRED: (TransactionExpired, NOT_HEARD_OF),
}


@dataclass(frozen=True, slots=True)
class Services:
    """What transactions of one manager share."""

    store: CellStore
    commit_table: CommitTable
    catalog: Catalog
    manifest: Manifest
    oracle: OracleClient
    resolver: Resolver
    revalidator: Revalidator
    cache: OutcomeCache
    observe: CommitObserver
    deadline_ms: int


def commit(
    services: Services, handle: TransactionHandle, buffer: WriteBuffer, jobs: Mapping[str, Job], *, shared: bool
) -> Committed:
    """Take a transaction to its end; ``jobs`` are its bulk writes, ``shared`` whether others may have ended it.

    Raises ``TransactionAborted`` (its cells have been marked), ``OutcomeUnknown`` at the deadline.
    """
    start_timestamp = handle.start_timestamp
    bulk = all_rows(jobs)
    deadline = Deadline(services.deadline_ms)
    try:
        _check_jobs(start_timestamp, jobs)
        keys = _conflict_keys(services.catalog, start_timestamp, buffer, bulk)
        _write(services, buffer, start_timestamp)
        deadline = Deadline(services.deadline_ms)  # the store has limits of its own, and a large write takes its time
        services.observe(CommitStep.WRITTEN, start_timestamp)
        commit_timestamp = _decide(services, handle, keys, (dict(buffer.rows()), bulk), deadline)
    except (TransactionAborted, StoreError, NoPrimary, InvalidRequest) as error:
        # Fenced for good *before* the record of its bulk writes goes: a process that starts over must not find nothing.
        commit_timestamp = _finish_through_oracle(services, start_timestamp, deadline) if shared else 0
        if not commit_timestamp:
            mark_aborted(services, start_timestamp, buffer, bulk, shared=shared)
            raise _as_abort(start_timestamp, error) from error
    services.cache.remember(start_timestamp, commit_timestamp)
    services.observe(CommitStep.ANSWERED, start_timestamp)
    finish(services, start_timestamp, commit_timestamp, buffer, bulk, shared=shared)
    services.observe(CommitStep.SHADOWED, start_timestamp)
    return Committed(commit_timestamp)


def finish(
    services: Services,
    start_timestamp: int,
    commit_timestamp: int,
    buffer: WriteBuffer,
    bulk: WrittenRows,
    *,
    shared: bool,
) -> None:
    """Write the shadow cells of a committed transaction. What fails here is left to readers, who heal it."""
    try:
        services.resolver.write_shadows(_sites(buffer, bulk), start_timestamp, commit_timestamp)
        if shared:
            services.manifest.forget(start_timestamp)
    except StoreError as error:
        _log.warning("shadow cells of transaction %d are left to readers: %s", start_timestamp, error)


def mark_aborted(
    services: Services, start_timestamp: int, buffer: WriteBuffer, bulk: WrittenRows, *, shared: bool
) -> None:
    """Mark the cells of a transaction that can never commit. What fails here costs readers a look-up, no more."""
    services.cache.remember(start_timestamp, NOT_COMMITTED)
    try:
        services.resolver.write_shadows(_sites(buffer, bulk), start_timestamp, NOT_COMMITTED)
        if shared:
            services.manifest.forget(start_timestamp)
    except StoreError as error:
        _log.info("cells of the aborted transaction %d are left unmarked: %s", start_timestamp, error)


def _check_jobs(start_timestamp: int, jobs: Mapping[str, Job]) -> None:
    for name, job in jobs.items():
        if job.winners is None:
            raise TransactionAborted(start_timestamp, f"its bulk write {name} failed or has not ended")
        unrepeated = job.unrepeated()
        if unrepeated:
            shown = ", ".join(f"{table} {row!r}" for table, row in unrepeated[:UNREPEATED_SHOWN_MAX])
            raise TransactionAborted(
                start_timestamp,
                f"in its bulk write {name} a task was repeated with other rows than before ({len(unrepeated):,} rows, "
                f"such as {shown}): its input is not deterministic; persist or checkpoint it before writing",
            )


def _write(services: Services, buffer: WriteBuffer, start_timestamp: int) -> None:
    for table, puts in buffer.puts():
        services.store.put(table, puts, start_timestamp)


def _conflict_keys(catalog: Catalog, start_timestamp: int, buffer: WriteBuffer, bulk: WrittenRows) -> set[int]:
    keys: set[int] = set()
    for rows_by_table in (dict(buffer.rows()), bulk):
        for table, rows in rows_by_table.items():
            keys |= write_set(table, rows, by_row=catalog.entry(table).conflict_level == "row")
    if len(keys) > COMMIT_CELLS_MAX:
        raise TransactionTooLarge(
            start_timestamp,
            f"its write set has {len(keys):,} conflict keys, one commit takes {COMMIT_CELLS_MAX:,}: "
            f"use tables with row-level conflicts, or split the work",
        )
    return keys


def _decide(
    services: Services, handle: TransactionHandle, keys: set[int], written: Sequence[WrittenRows], deadline: Deadline
) -> int:
    """The commit timestamp; raises ``TransactionAborted`` or ``OutcomeUnknown``, and ``NoPrimary`` or ``StoreError``
    where it surely did not commit.
    """
    start_timestamp = handle.start_timestamp
    uncertain, validated = False, 0
    try:
        for _ in range(1 + REVALIDATIONS_MAX):
            decision = _ask(services, handle, keys, validated, deadline)
            if decision.commit_timestamp:
                return decision.commit_timestamp
            if decision.reason is not Reason.TOO_OLD:
                error, reason = _REFUSALS[decision.reason]
                raise error(start_timestamp, reason)
            _log.info("transaction %d: the oracle does not remember its snapshot; revalidating it", start_timestamp)
            uncertain = decision.after_loss
            revalidated = services.revalidator.revalidate(handle, written, deadline)
            if isinstance(revalidated, Committed):
                return revalidated.commit_timestamp
            uncertain, validated = False, revalidated  # it is fenced: whatever was lost did not commit it
    except ReplyLost as error:
        raise OutcomeUnknown(start_timestamp, deadline.waited_ms) from error
    except (NoPrimary, StoreError) as error:
        if uncertain:
            raise OutcomeUnknown(start_timestamp, deadline.waited_ms) from error
        raise
    raise SnapshotTooOld(
        start_timestamp, f"it was revalidated {REVALIDATIONS_MAX} times, and each time the oracle had moved on"
    )


def _ask(services: Services, handle: TransactionHandle, keys: set[int], validated: int, deadline: Deadline) -> Decision:
    return services.oracle.commit(
        handle.start_timestamp,
        handle.snapshot_timestamp,
        keys,
        lambda: services.observe(CommitStep.SENT, handle.start_timestamp),
        deadline,
        validated=validated,
    )


def _finish_through_oracle(services: Services, start_timestamp: int, deadline: Deadline) -> int:
    """Have the transaction aborted for good: its commit timestamp if it did commit, else 0."""
    try:
        outcome = services.oracle.abort(start_timestamp, deadline)
    except NoPrimary as error:
        raise OutcomeUnknown(start_timestamp, deadline.waited_ms) from error
    return outcome.commit_timestamp if isinstance(outcome, Committed) else 0


def _as_abort(start_timestamp: int, error: PythiaError | StoreError) -> TransactionAborted:
    if isinstance(error, TransactionAborted):
        return error
    aborted = TransactionAborted(start_timestamp, f"its commit was never taken up: {error}")
    aborted.retriable = error.retriable
    return aborted


def _sites(buffer: WriteBuffer, bulk: WrittenRows) -> Iterator[Site]:
    for rows_by_table in (dict(buffer.rows()), bulk):
        for table, rows in rows_by_table.items():
            for row, columns in rows.items():
                for family in {family_of(column) for column in columns}:
                    yield Site(table, row, family)
