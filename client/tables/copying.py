"""A plain HBase table copied into one of Pythia's, in the order of its row keys: a way in for data that are there.

Of each cell the newest version is taken, its bytes as they are. So many rows are one transaction, and how far the copy
has come is a row key (``client.tables.steps``): it goes on from there, since the plain table may change between two
runs, and a count of its rows would then say nothing.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import chain

import numpy as np

from client.adoption.plain_tables import newest_cells
from client.catalog.entry import ConflictLevel
from client.errors import InvalidRequest
from client.manager import TransactionManager
from client.snapshots.all_columns import in_all_columns
from client.tables.batches import BATCH_ROWS_MAX, stored
from client.tables.record import ImportRecord, Progress
from client.tables.steps import Landed, Steps, Tell
from store import KeyRange, TableMissing
from store.columns import CellColumns, ScannedColumns
from store.making import split_keys_of


def copy(
    manager: TransactionManager,
    source: str,
    target: str,
    rows_per_transaction: int,
    tell: Tell,
    *,
    conflict_level: ConflictLevel | None = None,
    again: bool = False,
) -> Landed:
    """Copy the plain HBase table ``source`` into ``target``, which is made where it is missing, with its families.

    Where the settings say ``thrift2``, it is made with its regions, too.

    ``conflict_level``: of a table that is made; ``None`` for ``"row"``. ``again``: also rows that have been copied
    before. Raises ``InvalidRequest`` where one of the tables, or a column, is not fit for it, and every error of a
    transaction; nothing of the transaction that it met has landed then.
    """
    families = _plain_families(manager, source)
    _require_target(manager, source, target, families, conflict_level)
    record = ImportRecord(manager, target, f"copy of {source}")
    recorded = record.read()
    steps = Steps(manager, target, record, recorded, tell)
    landed = Progress() if again else recorded
    key_range = KeyRange(landed.last_key + b"\x00" if landed.last_key else b"", b"")
    found = newest_cells(manager.store, source, key_range, [family.encode() for family in families], BATCH_ROWS_MAX)
    batches = chain.from_iterable(map(_all_cells, found))
    return steps.land_all(map(stored, batches), rows_per_transaction, landed)


def _all_cells(batch: ScannedColumns) -> Iterator[CellColumns]:
    others = list(batch.others)
    singly = {
        index: {column: cell.value for column, cell in cells.items()}
        for index, (_, cells) in zip(others, batch.rows_at(others), strict=True)
    }
    return in_all_columns(batch.cells, singly, np.ones(batch.cells.rows, np.bool_))


def _plain_families(manager: TransactionManager, source: str) -> list[str]:
    """Of a table that is not Pythia's own to read."""
    if source in manager.catalog.own_tables or manager.catalog.has_entry(source):
        raise InvalidRequest(
            f"table {source!r} is one of Pythia's, and its newest cells need not have committed: export it, and import "
            "what was exported; where it has no mapping, read a snapshot of it in a program"
        )
    try:
        return list(manager.store.families(source))
    except TableMissing:
        raise InvalidRequest(f"HBase has no table {source!r}") from None


def _require_target(
    manager: TransactionManager, source: str, target: str, families: list[str], conflict_level: ConflictLevel | None
) -> None:
    if not manager.catalog.has_entry(target):
        cuts = split_keys_of(manager.store, source) if manager.settings.thrift2 else []
        manager.create_table(target, families, conflict_level=conflict_level or "row", split_keys=cuts)
        return
    entry = manager.catalog.fresh_entry(target)
    missing = sorted(set(families) - {family.decode() for family in entry.family_columns})
    if missing:
        raise InvalidRequest(f"table {target!r} lacks column families of the one to copy: {', '.join(missing)}")
    if conflict_level not in (None, entry.conflict_level):
        raise InvalidRequest(
            f"conflicts of table {target!r} are by {entry.conflict_level}, for good: copy into another, or leave the "
            "level out"
        )
