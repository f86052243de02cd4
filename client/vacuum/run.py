"""A whole vacuum: how far it may go, the marks, every table, and then what only unfinished tables would still need.

The order is what makes it safe:

1. The horizon is asked of the primary. Nobody who lives reads below it, and all who live began above it.
2. The horizon is *announced*, and lowered to the oldest snapshot that has a name. The names are read after the
   announcement, since whoever names a snapshot looks for announcements after he has put the name
   (``client.snapshots.named``): of the two at least one sees the other.
3. Every table gets its *mark*, before anything is deleted. Readers of the past find it and are refused, no later than
   ``ENTRY_AGE_SECONDS_MAX`` after; that long is waited. The mark is a fence, too (``client.transactions.guards``), at
   the horizon: a transaction that the oracle gave up, and that a failover would let live again, can never commit to the
   table.
4. If by then another epoch has begun, somebody may have looked for the mark before it stood: start over.
5. The tables are swept, and those listed *after* the horizon was known are all that matter: whoever could write a
   later one began above the horizon.
6. Only when every table was swept does any cell have its shadow cell, or is it known whose record has to stay for want
   of it; then the manifest's records go, and then the commit table's other rows. Both stay where a single table could
   not be read.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Collection, Iterable
from typing import Final

from client.catalog.catalog import ENTRY_AGE_SECONDS_MAX, FENCE_FAMILY
from client.cells import encode_shadow, shadow_column
from client.connection.oracle import OracleClient
from client.errors import InvalidRequest, PythiaError
from client.manager import TransactionManager
from client.snapshots.record import NamedSnapshot
from client.vacuum.finished import drop_commit_rows, forget_bulk_writes
from client.vacuum.plan import Horizons, held_back, horizons
from client.vacuum.report import TableReport, VacuumReport
from client.vacuum.sweep import Sweep
from commit_table import table_name
from commit_table.timestamps import compose, milliseconds_of, wall_time_of
from store import RowPut, StoreError, TableMissing
from wire import StatusReply

RETAIN_MS_DEFAULT: Final = 3_600_000
LASTING_RECORDS_DEFAULT: Final = 1_000
OUTCOMES_RETAIN_MS_DEFAULT: Final = 86_400_000
"""The largest deadline that a client's commit can have: no call outlives the record of its outcome."""
MARK_AGE_SECONDS: Final = ENTRY_AGE_SECONDS_MAX + 1.0
"""From the last mark to the first delete."""

_MARK_COLUMN = FENCE_FAMILY.encode() + b":vacuumed-"

Progress = Callable[[str, TableReport], None]
"""Told of a table and what was done in it so far, after each batch."""


class HorizonUnknown(PythiaError):
    """It is not known what may be dropped; the text says when it will be. Nothing was done."""

    retriable = True


def run_vacuum(
    manager: TransactionManager,
    *,
    retain_ms: int = RETAIN_MS_DEFAULT,
    outcomes_retain_ms: int = OUTCOMES_RETAIN_MS_DEFAULT,
    lasting_records_max: int = LASTING_RECORDS_DEFAULT,
    dry_run: bool = False,
    progress: Progress = lambda table, report: None,
    wait: Callable[[float], None] = time.sleep,
) -> VacuumReport:
    """Drop what no reader needs any more; it may be killed at any time, repeated, and run several times at once.

    ``retain_ms``: snapshots of as long ago stay readable, and those with a name in any case. ``outcomes_retain_ms``:
    for as long after its begin at least the outcome of a transaction can be asked for, and whoever holds the
    transaction can end it. ``lasting_records_max``: of so many transactions that do without shadow cells the records
    stay, for as long as any of their cells does; those beyond that get their shadow cells. ``wait`` is called with the
    seconds from the marks to the first delete. ``dry_run``: count, and change nothing.

    Raises ``HorizonUnknown``, ``NoPrimary``, ``InvalidRequest``, ``StoreError``. What fails in one table is told in the
    report, and the others are swept.
    """
    for name, given, unit in (
        ("retain_ms", retain_ms, "milliseconds"),
        ("outcomes_retain_ms", outcomes_retain_ms, "milliseconds"),
        ("lasting_records_max", lasting_records_max, "transactions"),
    ):
        if type(given) is not int or given < 0:
            raise InvalidRequest(f"{name} is a number of {unit}, not {given!r}")
    status = _status_with_horizon(manager.oracle)
    now = manager.oracle.begin().first_start_timestamp
    manager.catalog.require_level()  # before anything is written: these may be the data of other oracles
    wanted = horizons(status.horizon, now, retain_ms, outcomes_retain_ms)
    limits, named = _below_all_names(manager, wanted, dry_run=dry_run)
    report = VacuumReport(dry_run, limits.data, limits.outcomes)
    report.held_back_by = {snapshot.name: snapshot.timestamp for snapshot in named if snapshot.timestamp < wanted.data}
    tables = {name: entry.family_columns for name, entry in manager.catalog.tables().items()}
    if not dry_run:
        for table in tables:
            _mark(manager, table, limits.data, now)
        if manager.oracle.status().epoch != status.epoch:
            raise HorizonUnknown("another oracle became primary meanwhile, and nothing was dropped: vacuum again later")
        wait(MARK_AGE_SECONDS)
    sweep = Sweep(
        manager.store,
        manager.commit_table,
        manager.oracle.abort,
        limits.data,
        lasting_records_max=lasting_records_max,
        dry_run=dry_run,
    )
    marked = {table.encode() for table in tables}
    for table, families in tables.items():
        _sweep(manager, report, table, sweep.table(table, families), progress)
    # The mark above stands for every fence below it.
    own = manager.catalog.own_table
    fences = sweep.own_table(own, [FENCE_FAMILY.encode()], lambda row, value: row in marked)
    _sweep(manager, report, own, fences, progress)
    report.commit_table_rows_left_max = milliseconds_of(now) + 1 - limits.first_block_kept
    if not report.problems:
        _drop_finished(manager, report, limits, status.epoch, sweep.records_needed)
        report.commit_table_rows_left_max += report.commit_table_rows_lasting
    return report


def _status_with_horizon(oracle: OracleClient) -> StatusReply:
    status = oracle.status()
    if not status.horizon:
        raise HorizonUnknown(
            f"nothing was done: the oracle does not know yet what is still read. It serves since "
            f"{wall_time_of(status.epoch):%Y-%m-%d %H:%M:%S} UTC, and knows one transaction_life_ms (a limit of the "
            f"oracle's; an hour by default) after that, unless it fails over"
        )
    return status


def _below_all_names(
    manager: TransactionManager, wanted: Horizons, *, dry_run: bool
) -> tuple[Horizons, list[NamedSnapshot]]:
    """How far the named snapshots, which are returned oldest first, let a vacuum go; announces it.

    They are looked at before, too: what is announced keeps others from naming what will not be vacuumed at all.
    """
    named = _named(manager)
    limits = held_back(wanted, (snapshot.timestamp for snapshot in named))
    if not dry_run:
        manager.catalog.announce_vacuum(limits.data)
        named = _named(manager)
        limits = held_back(limits, (snapshot.timestamp for snapshot in named))
    return limits, named


def _named(manager: TransactionManager) -> list[NamedSnapshot]:
    return sorted(manager.snapshots(), key=lambda snapshot: snapshot.timestamp)


def _mark(manager: TransactionManager, table: str, horizon: int, unique: int) -> None:
    """Refuse readers below the horizon, and writers whose snapshot lies below it: a fence that is in the past of all
    who live. ``unique``: a start timestamp of the vacuum's own, at which the fence's cells lie.
    """
    manager.catalog.mark_vacuumed(table, horizon)
    fence = {_MARK_COLUMN + b"%d" % horizon: b"1", shadow_column(FENCE_FAMILY.encode()): encode_shadow(horizon)}
    manager.store.put(manager.catalog.own_table, [RowPut(table.encode(), fence)], unique)


def _sweep(
    manager: TransactionManager,
    report: VacuumReport,
    table: str,
    swept: Iterable[TableReport],
    progress: Progress,
) -> None:
    """Sweep one table; what fails is a problem, but for a table that was dropped meanwhile, with all its cells."""
    done = report.tables[table] = TableReport()
    try:
        manager.catalog.require_level()
        for batch in swept:
            done.add(batch)
            progress(table, done)
            manager.catalog.require_level()  # before the next batch
    except TableMissing as error:
        try:
            if table in manager.store.table_names():
                report.problems[table] = str(error)
        except StoreError as unavailable:
            report.problems[table] = str(unavailable)
    except (PythiaError, StoreError) as error:
        report.problems[table] = str(error)


def _drop_finished(
    manager: TransactionManager, report: VacuumReport, limits: Horizons, epoch: int, lasting: Collection[int]
) -> None:
    root = manager.settings.root
    try:
        forget_bulk_writes(manager, report, limits.outcomes)
    except (PythiaError, StoreError) as error:
        report.problems["manifest"] = str(error)
        return
    try:
        if limits.first_block_kept and not report.dry_run:
            manager.commit_table.forget_below(compose(limits.first_block_kept))
        drop_commit_rows(manager.store, table_name(root), report, limits.first_block_kept, epoch, lasting)
    except StoreError as error:
        report.problems[table_name(root)] = str(error)
