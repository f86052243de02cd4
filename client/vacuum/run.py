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
   later one began above the horizon. Of each that was, what is left in it is put on record for the next vacuum
   (``client.vacuum.swept``).
6. Only when every table was swept does any cell have its shadow cell, or is it known whose record has to stay for want
   of it; then the manifest's records go, and then the commit table's other rows. Both stay where a single table could
   not be read.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Collection, Iterable
from typing import Final

from client.catalog.age import ENTRY_AGE_SECONDS_MAX
from client.catalog.catalog import FENCE_FAMILY
from client.cells import encode_shadow, shadow_column
from client.connection.oracle import OracleClient
from client.errors import InvalidRequest, PythiaError
from client.manager import TransactionManager
from client.snapshots.record import NamedSnapshot
from client.vacuum.finished import drop_commit_rows, forget_bulk_writes
from client.vacuum.parts import Orders, Part, Progress, SweepParts, SweptPart, here, sweep_of, to_its_end
from client.vacuum.plan import Horizons, held_back, horizons
from client.vacuum.report import TableReport, VacuumReport
from client.vacuum.swept import Sweeping, Swept
from commit_table import table_name
from commit_table.timestamps import compose, milliseconds_of, wall_time_of
from store import RowPut, StoreError
from wire import StatusReply

RETAIN_MS_DEFAULT: Final = 3_600_000
LASTING_RECORDS_DEFAULT: Final = 1_000
OUTCOMES_RETAIN_MS_DEFAULT: Final = 86_400_000
"""The largest deadline that a client's commit can have: no call outlives the record of its outcome."""
MARK_AGE_SECONDS: Final = ENTRY_AGE_SECONDS_MAX + 1.0
"""From the last mark to the first delete."""

_MARK_COLUMN = FENCE_FAMILY.encode() + b":vacuumed-"


class HorizonUnknown(PythiaError):
    """It is not known what may be dropped; the text says when it will be. Nothing was done."""

    retriable = True


def run_vacuum(
    manager: TransactionManager,
    *,
    retain_ms: int = RETAIN_MS_DEFAULT,
    outcomes_retain_ms: int = OUTCOMES_RETAIN_MS_DEFAULT,
    lasting_records_max: int = LASTING_RECORDS_DEFAULT,
    everything: bool = False,
    dry_run: bool = False,
    progress: Progress = lambda table, report: None,
    sweep: SweepParts = here,
    wait: Callable[[float], None] = time.sleep,
) -> VacuumReport:
    """Drop what no reader needs any more; it may be killed at any time, repeated, and run several times at once.

    ``retain_ms``: snapshots of as long ago stay readable, and those with a name in any case. ``outcomes_retain_ms``:
    for as long after its begin at least the outcome of a transaction can be asked for, and whoever holds the
    transaction can end it. ``lasting_records_max``: of so many transactions that do without shadow cells the records
    stay, for as long as any of their cells does; those beyond that get their shadow cells. ``everything``: look at
    rows, too, that nobody has written since an earlier vacuum. ``dry_run``: count, and change nothing. ``sweep``: who
    goes over the tables, by default this process; ``client.spark.SparkSweep`` has a Spark job do it. ``wait`` is called
    with the seconds from the marks to the first delete.

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
    tables = manager.catalog.tables()
    before = {} if everything else manager.catalog.vacuums.swept()
    if not dry_run:
        for table in tables:
            _mark(manager, table, limits.data, now)
        if manager.oracle.status().epoch != status.epoch:
            raise HorizonUnknown("another oracle became primary meanwhile, and nothing was dropped: vacuum again later")
        wait(MARK_AGE_SECONDS)
    orders = Orders(limits.data, lasting_records_max, dry_run)
    parts = [
        Part(table, entry.family_columns, entry.plain_through, Swept.from_json(before.get(table)))
        for table, entry in tables.items()
    ]
    lasting = _sweep_tables(manager, report, orders, sweep(manager, orders, parts, progress))
    lasting |= _sweep_fences(manager, report, orders, {table.encode() for table in tables}, progress)
    report.commit_table_rows_left_max = milliseconds_of(now) + 1 - limits.first_block_kept
    if not report.problems:
        _drop_finished(manager, report, limits, status.epoch, lasting)
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
        manager.catalog.vacuums.announce(limits.data)
        named = _named(manager)
        limits = held_back(limits, (snapshot.timestamp for snapshot in named))
    return limits, named


def _named(manager: TransactionManager) -> list[NamedSnapshot]:
    return sorted(manager.snapshots(), key=lambda snapshot: snapshot.timestamp)


def _mark(manager: TransactionManager, table: str, horizon: int, unique: int) -> None:
    """Refuse readers below the horizon, and writers whose snapshot lies below it: a fence that is in the past of all
    who live. ``unique``: a start timestamp of the vacuum's own, at which the fence's cells lie.
    """
    manager.catalog.vacuums.mark(table, horizon)
    fence = {_MARK_COLUMN + b"%d" % horizon: b"1", shadow_column(FENCE_FAMILY.encode()): encode_shadow(horizon)}
    manager.store.put(manager.catalog.own_table, [RowPut(table.encode(), fence)], unique)


def _sweep_tables(
    manager: TransactionManager, report: VacuumReport, orders: Orders, swept: Iterable[tuple[Part, SweptPart]]
) -> set[int]:
    """Take in what every part came to; returns whose records have to stay."""
    left: dict[str, Swept] = {}
    for part, (done, left_of_part, problem) in swept:
        report.tables.setdefault(part.table, TableReport()).add(done)
        left[part.table] = left.get(part.table, left_of_part).and_of(left_of_part)
        _note(report, part.table, problem)
    for table, left_of_table in left.items():
        if table not in report.problems and not orders.dry_run:
            _note(report, table, _put_on_record(manager, table, left_of_table))
    return {writer for left_of_table in left.values() for writer in left_of_table.unshadowed}


def _sweep_fences(
    manager: TransactionManager, report: VacuumReport, orders: Orders, marked: Collection[bytes], progress: Progress
) -> set[int]:
    """Drop the fences of tables that have a mark: it stands for all below it. Returns whose records have to stay."""
    own, sweeping = manager.catalog.own_table, Sweeping(orders.horizon, plain_through=0)
    fences = sweep_of(manager, orders).own_table(
        own, [FENCE_FAMILY.encode()], lambda row, value: row in marked, sweeping
    )
    report.tables[own], problem = to_its_end(manager, own, fences, progress)
    _note(report, own, problem)
    return sweeping.unshadowed


def _note(report: VacuumReport, table: str, problem: str | None) -> None:
    if problem is not None:
        report.problems[table] = problem


def _put_on_record(manager: TransactionManager, table: str, left: Swept) -> str | None:
    """The problem, if there was one."""
    record = left.to_json()
    try:
        if record is not None:
            manager.catalog.vacuums.put_swept(table, left.through, record)
    except StoreError as error:
        return str(error)
    return None


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
