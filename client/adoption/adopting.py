"""Adopting a plain HBase table: from now on it is written in transactions, and what lies in it is where they began.

Nothing is copied and no cell is touched. Every cell is looked at once, whether a transaction could take it for one of
its own; then the table is agreed on, with the timestamp up to which its cells are plain
(``client.snapshots.plain_cells``). Whoever is killed before that has done nothing, and nobody knows the table; and who
repeats it afterwards finds it done.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Final

from client.adoption.plain_tables import newest_cells
from client.catalog.catalog import Catalog
from client.catalog.entry import CatalogEntry, ConflictLevel
from client.errors import InvalidRequest
from client.snapshots.plain_cells import TRANSACTIONS_FROM
from commit_table.timestamps import wall_time_of
from lease.clocks import wall_ms
from store import ALL_ROWS, FOR_EVER_SECONDS, CellStore
from store.columns import ABSENT, ScannedColumns

BATCH_ROWS_MAX: Final = 10_000
"""Fewer of large ones."""


@dataclass(frozen=True, slots=True)
class Adopted:
    """``rows``: how many the table has, 0 where it had been adopted before; ``plain_through``: the largest timestamp
    of a cell that counts as having been there.
    """

    rows: int
    plain_through: int


def adopt(
    store: CellStore,
    catalog: Catalog,
    table: str,
    conflict_level: ConflictLevel,
    description: bytes,
    progress: Callable[[int], None],
    *,
    now: int,
) -> Adopted:
    """Adopt a table. ``progress`` is told how many rows have been looked at; ``now``: a start timestamp that was handed
    out just now.

    Raises ``InvalidRequest`` where it cannot be adopted, and ``StoreUnavailable``: then nothing is changed.
    """
    if now < TRANSACTIONS_FROM:
        raise InvalidRequest(
            f"the oracle hands out timestamps of {wall_time_of(now):%Y-%m-%d}, as cells of plain puts have them: "
            "set the clock of its machine, and end it and start it anew"
        )
    families = catalog.plain_families(table)
    wanted = CatalogEntry(conflict_level, families, description)
    if catalog.has_entry(table):
        return Adopted(0, catalog.adopt_table(table, wanted).plain_through)
    _require_lasting(store, table)
    rows = newest = 0
    for batch in newest_cells(store, table, ALL_ROWS, wanted.family_columns, BATCH_ROWS_MAX):
        newest = max(newest, _newest_of(table, batch))
        rows += batch.cells.rows
        progress(rows)
    adopted = replace(wanted, plain_through=max(newest, wall_ms()))
    return Adopted(rows, catalog.adopt_table(table, adopted).plain_through)


def _require_lasting(store: CellStore, table: str) -> None:
    for name, family in store.families(table).items():
        if family.lives_seconds_max < FOR_EVER_SECONDS:
            raise InvalidRequest(
                f"family {name!r} of table {table!r} drops cells after {family.lives_seconds_max:,} seconds, while "
                "snapshots may still show them: alter the family to TTL => 'FOREVER'"
            )


def _newest_of(table: str, batch: ScannedColumns) -> int:
    """The largest timestamp of a batch. Raises ``InvalidRequest`` for one that a transaction could have."""
    there = batch.cells.value_lengths != ABSENT
    others = (cell.timestamp for cells in batch.others.values() for cell in cells.values())
    newest = max(int(batch.timestamps[there].max(initial=0)), max(others, default=0))
    if newest >= TRANSACTIONS_FROM:
        raise InvalidRequest(
            f"table {table!r} has a cell with the timestamp {newest}, between the rows {batch.cells.row_key(0)!r} and "
            f"{batch.cells.row_key(-1)!r}: HBase's own are milliseconds, and below {TRANSACTIONS_FROM}. It is of "
            "transactions, those of another installation or another program, or a program chose it: then the table can "
            "be copied (pythia table copy), if its newest cells are those that count"
        )
    return newest
