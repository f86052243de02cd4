"""The way of a transaction from its last write to its outcome.

1. the buffered writes go to the store as tentative versions, to all tables at once;
2. the oracle decides over the write set, and is asked until it answers; where it remembers too little to decide, as
   after a failover, the client looks for conflicts itself and asks again (``client.transactions.revalidation``);
3. the shadow cells are written: from here on readers could do that as well. A bulk write may do without, and a caller
   need not wait for them (``client.transactions.background_shadows``).

The commit point lies in step 2, when the commit table holds the commit; nothing that fails later may undo it, and
nothing that fails earlier may leave it open. The call ends in committed or aborted whatever failed on the way, and only
where its deadline comes first in ``OutcomeUnknown``.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import chain, islice

import numpy as np

from client.bulk_writes.manifest import Job, Manifest, Piece, joined
from client.bulk_writes.shadow_pass import write_bulk_shadows
from client.catalog.catalog import Catalog
from client.cells import ABORTED_SHADOW, ConflictKeys, cell_id, family_of, row_id, write_set
from client.connection.deadline import Deadline
from client.connection.oracle import OracleClient
from client.connection.tickets import Begun, Decision
from client.errors import (
    ABORTED_BY_ANOTHER,
    NOT_HEARD_OF,
    Conflict,
    InvalidRequest,
    NoPrimary,
    OutcomeUnknown,
    PythiaError,
    ReplyLost,
    SnapshotTooOld,
    TableFenced,
    TransactionAborted,
    TransactionExpired,
    TransactionTooLarge,
    UpgradeNeeded,
)
from client.handles import TransactionHandle
from client.metrics import Meter
from client.snapshots.resolver import OutcomeCache, Resolver, Site
from client.snapshots.visibility import NOT_COMMITTED
from client.transactions.background_shadows import BackgroundShadows
from client.transactions.guarded_cells import GuardedCells
from client.transactions.guards import Fence, Guards
from client.transactions.helper_threads import HelperThreads, call_at_once
from client.transactions.hooks import CommitStep, TransactionHooks, notify
from client.transactions.revalidation import ComparedRows, Revalidator
from client.transactions.write_buffer import WriteBuffer
from commit_table import CommitTable, Committed, Forgotten
from store import CellStore, StoreError, TableMissing
from wire import Reason

_log = logging.getLogger(__name__)

UNREPEATED_SHOWN_MAX = 3
UNREPEATED_SOUGHT_MAX = 10_000
"""Of each table: so many that those to show are met soon, so few that a set of them is small."""
REVALIDATIONS_MAX = 20
"""In one commit. Each outlives one failover, or one turnover of the oracle's conflict map."""


_REFUSALS: dict[Reason, tuple[type[TransactionAborted], str]] = {
    Reason.CONFLICT: (
        Conflict,
        "another transaction committed to its write set, or to what it guards, after its snapshot",
    ),
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
    guards: Guards
    resolver: Resolver
    revalidator: Revalidator
    cache: OutcomeCache
    helpers: HelperThreads
    """For requests of one transaction that are made at once."""
    background: BackgroundShadows | None
    """Who writes shadow cells after a commit has returned; ``None``: it waits for them."""
    hooks: TransactionHooks
    meter: Meter
    deadline_ms: int
    shadow_writers_max: int
    bulk_shadow_cells: str


class _Course:
    """How far one commit has come: told to the hooks, whose own time does not count, and timed."""

    def __init__(self, services: Services, start_timestamp: int) -> None:
        self._services = services
        self._start_timestamp = start_timestamp
        self._since_s = time.monotonic()

    def came_to(self, step: CommitStep) -> None:
        self._services.meter.came_to(step.value, time.monotonic() - self._since_s)
        notify(self._services.hooks.commit_step, step, self._start_timestamp)
        self._since_s = time.monotonic()

    def shadowed(self) -> None:
        """In whichever thread wrote the shadow cells."""
        self.came_to(CommitStep.SHADOWED)


class _Judged:
    """What a commit is judged by: what of it is compared with the writes of others, and all ``tables`` of that."""

    def __init__(
        self,
        services: Services,
        start_timestamp: int,
        buffer: WriteBuffer,
        guarded: GuardedCells,
        jobs: Mapping[str, Job],
    ) -> None:
        self._services = services
        self._start_timestamp = start_timestamp
        self._buffer = buffer
        self._guarded = guarded
        self._jobs = jobs
        written = {table for job in jobs.values() for tables in job.keys.values() for table in tables}
        self.tables = frozenset([*dict(buffer.rows()), *guarded.tables, *written])

    def __iter__(self) -> Iterator[ComparedRows]:
        """What is compared, part by part: of the buffer what was not written conflict-free, what is guarded, and of
        bulk writes all.
        """
        yield self._buffer.compared_rows()
        yield self._guarded.by_table()
        if self._jobs:
            for piece in self._services.manifest.pieces(self._start_timestamp):
                yield {piece.table: dict.fromkeys(piece.rows(), piece.columns)}

    def keys(self) -> ConflictKeys:
        """The conflict keys of what was written and is compared, by each table's conflict level, each once.

        Raises ``TransactionAborted`` where a table got another conflict level since it was written.
        """
        guards = self._services.guards
        attempts = [tables for job in self._jobs.values() for tables in job.keys.values()]
        pieces = [keys for tables in attempts for keys in chain.from_iterable(tables.values())]
        for table, rows in self._buffer.compared_rows().items():
            ids = write_set(table, rows, by_row=guards.entry(table).conflict_level == "row")
            pieces.append(np.fromiter(ids, np.uint64, len(ids)))
        for job in self._jobs.values():
            for table, levels in job.levels.items():
                if levels != {guards.entry(table).conflict_level}:
                    reason = f"table {table!r} was made anew while it was written"
                    raise TransactionAborted(self._start_timestamp, reason)
        return joined(pieces)

    def guards(self) -> list[int]:
        """The conflict keys that are only compared: those of fences, and of guarded cells."""
        return [*self._services.guards.keys(self.tables), *self._guarded.keys()]


def commit(
    services: Services,
    handle: TransactionHandle,
    buffer: WriteBuffer,
    guarded: GuardedCells,
    jobs: Mapping[str, Job],
    *,
    shared: bool,
) -> Committed:
    """Take a transaction to its end; ``jobs`` are its bulk writes, ``shared`` whether others may have ended it.

    Raises ``TransactionAborted`` (its cells have been marked), ``OutcomeUnknown`` at the deadline.
    """
    start_timestamp = handle.start_timestamp
    judged = _Judged(services, start_timestamp, buffer, guarded, jobs)
    deadline = Deadline(services.deadline_ms)
    course = _Course(services, start_timestamp)
    try:
        _check_jobs(services.manifest, start_timestamp, jobs)
        keys = judged.keys()
        _write(services, buffer, start_timestamp)
        deadline = Deadline(services.deadline_ms)  # the store has limits of its own, and a large write takes its time
        course.came_to(CommitStep.WRITTEN)
        commit_timestamp = _decide(services, handle, keys, judged, deadline)
    except (TransactionAborted, StoreError, NoPrimary, InvalidRequest) as error:
        # Fenced for good *before* the record of its bulk writes goes: a process that starts over must not find nothing.
        commit_timestamp = _finish_through_oracle(services, start_timestamp, deadline) if shared else 0
        if not commit_timestamp:
            mark_aborted(services, start_timestamp, buffer, shared=shared)
            fence = _fence_behind(services, handle, judged, error)
            if fence is not None:
                raise TableFenced(start_timestamp, *fence) from error
            if isinstance(error, TransactionAborted):
                raise  # not from itself: it would hold itself, and with it all that was written
            raise _never_taken_up(start_timestamp, error) from error
    services.cache.remember(start_timestamp, commit_timestamp)
    course.came_to(CommitStep.ANSWERED)
    if not shared and _left_to_background(services, start_timestamp, commit_timestamp, buffer, course.shadowed):
        return Committed(commit_timestamp)
    finish(services, start_timestamp, commit_timestamp, buffer, shared=shared)
    course.shadowed()
    return Committed(commit_timestamp)


def finish(
    services: Services, start_timestamp: int, commit_timestamp: int, buffer: WriteBuffer, *, shared: bool
) -> None:
    """Write the shadow cells of a committed transaction. What fails here is left to readers, who heal it."""
    try:
        _write_shadows(services, buffer, start_timestamp, commit_timestamp)
        if shared and services.bulk_shadow_cells == "written":
            finish_bulk_write(services, start_timestamp, commit_timestamp)
        elif shared and services.bulk_shadow_cells == "none":
            _do_without_shadows(services, start_timestamp, commit_timestamp)
    except (StoreError, UpgradeNeeded) as error:
        _log.warning("shadow cells of transaction %d are left to readers: %s", start_timestamp, str(error))


def _left_to_background(
    services: Services,
    start_timestamp: int,
    outcome: int,
    buffer: WriteBuffer,
    written: Callable[[], None] = lambda: None,
) -> bool:
    """Whether somebody else writes the shadow cells of what was put, while the caller goes on."""
    if services.background is None:
        return False
    sites = list(chain.from_iterable(_sites_by_table(buffer)))
    return services.background.submit(start_timestamp, outcome, sites, written)


def finish_bulk_write(services: Services, start_timestamp: int, outcome: int) -> None:
    """Write the shadow cells of a transaction's bulk writes, and drop their record.

    Raises ``StoreError``, ``UpgradeNeeded``.
    """
    store, catalog, manifest = services.store, services.catalog, services.manifest
    writers_max = services.shadow_writers_max
    write_bulk_shadows(store, catalog, manifest, start_timestamp, outcome, writers_max=writers_max)


def _do_without_shadows(services: Services, start_timestamp: int, commit_timestamp: int) -> None:
    """Let the record of a committed transaction last in place of the shadow cells of its bulk writes.

    Who dies between the two steps leaves the record of the bulk writes to ``finish_bulk_writes`` or a vacuum, and who
    dies before the first their shadow cells, too. Raises ``StoreError``, ``UpgradeNeeded``.
    """
    services.catalog.require_level()
    if services.manifest.job_ends(start_timestamp):
        services.commit_table.let_last(start_timestamp)
        services.cache.remember(start_timestamp, commit_timestamp, is_lasting=True)
        services.manifest.forget(start_timestamp)


def mark_aborted(services: Services, start_timestamp: int, buffer: WriteBuffer, *, shared: bool) -> None:
    """Mark the cells of a transaction that can never commit. What fails here costs readers a look-up, no more."""
    services.cache.remember(start_timestamp, NOT_COMMITTED)
    if not shared and _left_to_background(services, start_timestamp, NOT_COMMITTED, buffer):
        return
    try:
        _write_shadows(services, buffer, start_timestamp, NOT_COMMITTED)
        if shared:
            finish_bulk_write(services, start_timestamp, ABORTED_SHADOW)
    except (StoreError, UpgradeNeeded) as error:
        _log.info("cells of the aborted transaction %d are left unmarked: %s", start_timestamp, str(error))


def _check_jobs(manifest: Manifest, start_timestamp: int, jobs: Mapping[str, Job]) -> None:
    for name, job in jobs.items():
        if job.winners is None:
            raise TransactionAborted(start_timestamp, f"its bulk write {name} failed or has not ended")
        unrepeated = job.unrepeated()
        if unrepeated:
            count = sum(map(len, unrepeated.values()))
            sought = {table: keys[:UNREPEATED_SOUGHT_MAX] for table, keys in unrepeated.items()}
            found = islice(_rows_of(manifest.pieces(start_timestamp), name, sought), UNREPEATED_SHOWN_MAX)
            shown = ", ".join(f"{table} {row!r}" for table, row in found)
            raise TransactionAborted(
                start_timestamp,
                f"in its bulk write {name} a task was repeated with other rows than before ({count:,} rows or cells, "
                f"such as {shown}): its input is not deterministic; persist or checkpoint it before writing",
            )


def _rows_of(pieces: Iterable[Piece], job: str, wanted: Mapping[str, ConflictKeys]) -> Iterator[tuple[str, bytes]]:
    """The table and key of each row of a job that has one of these conflict keys."""
    sought = {table: set(keys.tolist()) for table, keys in wanted.items()}
    for piece in pieces:
        if piece.job == job and piece.table in sought:
            for row in piece.rows():
                keys = {row_id(piece.table, row), *(cell_id(piece.table, row, column) for column in piece.columns)}
                if keys & sought[piece.table]:
                    yield piece.table, row


def _write(services: Services, buffer: WriteBuffer, start_timestamp: int) -> None:
    puts = [partial(services.store.put, table, rows, start_timestamp) for table, rows in buffer.puts()]
    call_at_once(services.helpers, puts)


def _write_shadows(services: Services, buffer: WriteBuffer, start_timestamp: int, outcome: int) -> None:
    write = services.resolver.write_shadows
    writes = [partial(write, list(sites), start_timestamp, outcome) for sites in _sites_by_table(buffer)]
    call_at_once(services.helpers, writes)


def _decide(
    services: Services, handle: TransactionHandle, keys: ConflictKeys, judged: _Judged, deadline: Deadline
) -> int:
    """The commit timestamp; raises ``TransactionAborted`` or ``OutcomeUnknown``, and ``NoPrimary`` or ``StoreError``
    where it surely did not commit.
    """
    start_timestamp, validated = handle.start_timestamp, 0
    guards = judged.guards()
    try:
        for _ in range(1 + REVALIDATIONS_MAX):
            decision = _ask(services, handle, keys, guards, validated, deadline)
            if decision.commit_timestamp:
                return decision.commit_timestamp
            if decision.reason is not Reason.TOO_OLD:
                error, reason = _REFUSALS[decision.reason]
                raise error(start_timestamp, reason)
            _log.info("transaction %d: the oracle does not remember its snapshot; revalidating it", start_timestamp)
            services.meter.revalidates()
            own = _settled(services, handle, deadline, uncertain=decision.after_loss)
            if isinstance(own, Committed):
                return own.commit_timestamp
            is_compared = partial(_is_among, keys, frozenset(guards))
            validated = services.revalidator.look_for_conflicts(
                handle, judged, is_compared, judged.tables, own, deadline
            )
    except ReplyLost as error:
        raise OutcomeUnknown(start_timestamp, deadline.waited_ms) from error
    raise SnapshotTooOld(
        start_timestamp, f"it was revalidated {REVALIDATIONS_MAX} times, and each time the oracle had moved on"
    )


def _is_among(keys: ConflictKeys, guards: Collection[int], key: int) -> bool:
    """Whether a key is one of ``keys``, which are in their order, or of ``guards``."""
    place = int(np.searchsorted(keys, np.uint64(key)))
    return key in guards or (place < len(keys) and int(keys[place]) == key)


def _settled(
    services: Services, handle: TransactionHandle, deadline: Deadline, *, uncertain: bool
) -> Committed | Begun:
    """The transaction's own commit, or what it is fenced by. ``uncertain``: an answer was lost, which may have been
    that it committed; until it is known, no error says that it did not.
    """
    try:
        return services.revalidator.settle(handle, deadline)
    except TransactionAborted:
        raise
    except (PythiaError, StoreError, Forgotten) as error:
        if uncertain:
            raise OutcomeUnknown(handle.start_timestamp, deadline.waited_ms) from error
        if isinstance(error, Forgotten):
            raise TransactionExpired(handle.start_timestamp, NOT_HEARD_OF) from error
        raise


def _ask(
    services: Services,
    handle: TransactionHandle,
    keys: ConflictKeys,
    guards: Sequence[int],
    validated: int,
    deadline: Deadline,
) -> Decision:
    return services.oracle.commit(
        handle.start_timestamp,
        handle.snapshot_timestamp,
        keys,
        lambda: notify(services.hooks.commit_step, CommitStep.SENT, handle.start_timestamp),
        deadline,
        guards=guards,
        validated=validated,
    )


def _finish_through_oracle(services: Services, start_timestamp: int, deadline: Deadline) -> int:
    """Have the transaction aborted for good: its commit timestamp if it did commit, else 0. Raises ``OutcomeUnknown``
    where the oracle cannot be asked.
    """
    try:
        outcome = services.oracle.abort(start_timestamp, deadline)
    except (PythiaError, StoreError) as error:  # the latter where there is no thread to ask it with
        raise OutcomeUnknown(start_timestamp, deadline.waited_ms) from error
    return outcome.commit_timestamp if isinstance(outcome, Committed) else 0


def _fence_behind(
    services: Services, handle: TransactionHandle, judged: _Judged, error: PythiaError | StoreError
) -> Fence | None:
    """The fence behind a commit that failed. Looked for where there may be one: after a conflict that the oracle found,
    and where a table is gone.
    """
    if not isinstance(error, (Conflict, TableMissing, InvalidRequest)):
        return None
    try:
        return services.guards.fence_since(handle.snapshot_timestamp, judged.tables)
    except (PythiaError, StoreError):
        return None  # then it is told without


def _never_taken_up(start_timestamp: int, error: PythiaError | StoreError) -> TransactionAborted:
    aborted = TransactionAborted(start_timestamp, f"its commit was never taken up: {error}")
    aborted.retriable = error.retriable
    return aborted


def _sites_by_table(buffer: WriteBuffer) -> Iterator[Iterator[Site]]:
    for table, rows in buffer.rows():
        yield (
            Site(table, row, family)
            for row, columns in rows.items()
            for family in {family_of(column) for column in columns}
        )
