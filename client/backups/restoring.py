"""Tables made anew from a backup, in this installation or in another.

Each table is made as it was, and its rows land in the order of their keys, so many in a transaction; how far that has
come is on record in the very transactions that land them (``client.tables.steps``). Hence a restore that was killed is
run again and goes on, and nothing lands twice, or over what somebody has written since. A table that has rows already
is refused: what would be left of both is neither the one nor the other.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Final

import numpy as np

from client.backups.layout import Backup, TableBackup
from client.backups.opening import SavedTable, open_backup
from client.cells import ROW_MARKER_VALUE, row_marker_column
from client.errors import InvalidRequest
from client.manager import TransactionManager
from client.spark.errors import InvalidMapping
from client.spark.mapping import TableMapping
from client.tables.batches import stored
from client.tables.record import ImportRecord, Progress
from client.tables.steps import Landed, Steps
from store.columns import ABSENT, CellColumns

_ANOTHER_NAME: Final = "restore with --prefix under another name"

Tell = Callable[[str, int, bool], None]
"""Told of a table, how many of its rows are written, and whether all of these have landed."""


def restore(
    manager: TransactionManager,
    directory: Path,
    names: Sequence[str],
    rows_per_transaction: int,
    tell: Tell,
    *,
    prefix: str = "",
) -> dict[str, Landed]:
    """Make tables of a backup anew, all of them where none is named, and land their rows; what was done, by table.

    Where the settings say ``thrift2``, they have the regions that they had. Of one that has what changed since another
    one, the rows are what both have together. ``prefix``: what the names of the tables get before them. Every file is
    looked at before anything is made. Raises ``UnreadableFile``, ``DamagedBackup``, ``InvalidRequest`` for a table that
    is in the way, and every error of a transaction; nothing of the transaction that it met has landed then.
    """
    chain = open_backup(directory)
    chosen = chain.tables(names)
    for saved in chosen:
        saved.require_whole()
    restores = [_TableRestore(manager, chain.newest, saved, _renamed(saved.table, prefix)) for saved in chosen]
    for each in restores:
        each.require_room()
    return {each.table: each.land(rows_per_transaction, tell) for each in restores}


def _renamed(backup: TableBackup, prefix: str) -> TableBackup:
    """The table under its new name, which its mapping has, too, where it has one."""
    if not prefix:
        return backup
    namespace, colon, name = backup.table.rpartition(":")
    table = f"{namespace}{colon}{prefix}{name}"
    try:
        mapping = replace(TableMapping.from_json(backup.entry.description.decode()), table=table)
    except (InvalidMapping, UnicodeDecodeError):  # what a program of somebody's own keeps there
        return replace(backup, table=table)
    return replace(backup, table=table, entry=replace(backup.entry, description=mapping.to_json().encode()))


class _TableRestore:
    """One table: ``source`` as the backup has it, ``target`` as it is to be made."""

    def __init__(self, manager: TransactionManager, backup: Backup, source: SavedTable, target: TableBackup) -> None:
        self.table = target.table
        self._manager = manager
        self._what = f"backup {backup.backup_id} of {source.table.table}"
        self._source = source
        self._entry = target.entry
        self._split_keys = target.split_keys if manager.settings.thrift2 else ()

    def require_room(self) -> None:
        """Raise ``InvalidRequest`` where there is such a table, unless it is empty, or partly restored from this."""
        catalog, entry = self._manager.catalog, self._entry
        if self.table in catalog.record_tables:
            raise InvalidRequest(f"table {self.table!r} is Pythia's own here: {_ANOTHER_NAME}")
        if not catalog.has_entry(self.table):
            return
        if catalog.fresh_entry(self.table).unlike(entry):
            raise InvalidRequest(
                f"there is a table {self.table!r} already, with other families, another mapping or conflicts by "
                f"another level: drop it, or {_ANOTHER_NAME}"
            )
        if self._record().read() == Progress() and self._has_rows():
            raise InvalidRequest(
                f"table {self.table!r} has rows already, which are not of this backup: drop it, or {_ANOTHER_NAME}; to "
                "put it back to what a snapshot shows, use pythia table restore"
            )

    def land(self, rows_per_transaction: int, tell: Tell) -> Landed:
        """Make the table, and land the rows that have not landed yet."""
        entry = self._entry
        self._manager.create_table(
            self.table,
            entry.families,
            conflict_level=entry.conflict_level,
            description=entry.description,
            if_missing=True,
            split_keys=self._split_keys,
        )
        record = self._record()
        recorded = record.read()
        steps = Steps(self._manager, self.table, record, recorded, partial(tell, self.table))
        marker = row_marker_column(entry.family_columns[0])
        return steps.land_all(
            _to_be_stored(self._source.rows(), recorded.last_key, marker), rows_per_transaction, recorded
        )

    def _record(self) -> ImportRecord:
        return ImportRecord(self._manager, self.table, self._what)

    def _has_rows(self) -> bool:
        return next(self._manager.snapshot().scan(self.table), None) is not None


def _to_be_stored(batches: Iterable[CellColumns], after: bytes, marker: bytes) -> Iterator[CellColumns]:
    """Rows beyond one, as they are to be stored."""
    for batch in batches:
        _, beyond = batch.cut(bisect_right(range(batch.rows), after, key=batch.row_key))
        is_empty = (beyond.value_lengths == ABSENT).all(axis=0)
        cells = stored(beyond)
        if is_empty.any():
            rows = np.flatnonzero(is_empty).tolist()
            cells = cells.with_columns([marker]).with_rows(rows, [{marker: ROW_MARKER_VALUE}] * len(rows))
        yield cells
