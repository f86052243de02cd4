"""What of a vacuum may be done in any process: sweeping a part of a table, and what is to be told of it afterwards.

A vacuum divides its tables into parts, and whoever it is given (``SweepParts``) has each swept to its end, in whatever
order, in whichever processes, and as often as it likes: a part that is swept twice is as if two vacuums ran at once.
Only what was told of it last counts, and that must be of one whole sweep. ``here`` is the ordinary way: one part after
the other, in this process. ``client.spark.sweeping`` is another.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Final, NamedTuple, TypeAlias

from client.errors import PythiaError
from client.manager import TransactionManager
from client.vacuum.report import TableReport
from client.vacuum.sweep import Sweep
from client.vacuum.swept import NOT_SWEPT, Sweeping, Swept
from store import ALL_ROWS, KeyRange, StoreError, TableMissing

READS_AT_ONCE: Final = 4
"""Requests of one process that wait for the store; each is for what lies below the rows of one transaction."""

Progress = Callable[[str, TableReport], None]
"""Told of a table and what was done in it so far, now and then."""


@dataclass(frozen=True, slots=True)
class Part:
    """Some rows of a table. ``before``: what an earlier vacuum left of it; ``plain_through``: see ``Sweeping``."""

    table: str
    families: tuple[bytes, ...]
    plain_through: int
    before: Swept = NOT_SWEPT
    key_range: KeyRange = ALL_ROWS


@dataclass(frozen=True, slots=True)
class Orders:
    """How all parts are swept; as in ``run_vacuum``, and ``horizon`` is that of the data."""

    horizon: int
    lasting_records_max: int
    dry_run: bool


class SweptPart(NamedTuple):
    """What was done, what is left, and what went wrong: then nothing is known of what is left."""

    report: TableReport
    left: Swept
    problem: str | None


SweepParts: TypeAlias = Callable[
    [TransactionManager, Orders, Sequence[Part], Progress], Iterable[tuple[Part, SweptPart]]
]
"""Sweeps parts of tables, and gives what each part of a table came to; it may have cut them into smaller ones."""


def here(
    manager: TransactionManager, orders: Orders, parts: Sequence[Part], progress: Progress
) -> Iterator[tuple[Part, SweptPart]]:
    """Sweep one part after the other, in this process."""
    sweep = sweep_of(manager, orders)
    for part in parts:
        sweeping = Sweeping(orders.horizon, part.plain_through, part.before)
        reports = sweep.table(part.table, part.families, sweeping, part.key_range)
        report, problem = to_its_end(manager, part.table, reports, progress)
        yield part, SweptPart(report, sweeping.swept(), problem)


def sweep_of(manager: TransactionManager, orders: Orders) -> Sweep:
    """What sweeps in this process."""
    return Sweep(
        manager.store,
        manager.commit_table,
        manager.oracle.abort,
        orders.horizon,
        lasting_records_max=orders.lasting_records_max,
        dry_run=orders.dry_run,
        reads_at_once=READS_AT_ONCE,
    )


def to_its_end(
    manager: TransactionManager, table: str, swept: Iterable[TableReport], progress: Progress
) -> tuple[TableReport, str | None]:
    """What was done in all, and the problem, if there was one: that a table was dropped meanwhile, with all its cells,
    is none.
    """
    done = TableReport()
    try:
        manager.catalog.require_level()
        for report in swept:
            done.add(report)
            progress(table, done)
            manager.catalog.require_level()  # before the next batch
    except TableMissing as error:
        try:
            return done, str(error) if table in manager.store.table_names() else None
        except StoreError as unavailable:
            return done, str(unavailable)
    except (PythiaError, StoreError) as error:
        return done, str(error)
    return done, None
