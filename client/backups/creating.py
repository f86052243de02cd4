"""Backups made: of every table as one snapshot shows it, or of what changed since another backup; the latter merged.

The invariant: a directory of the name that was asked for is a whole backup of one moment, or all that changed between
two moments, and it replaced no other (``client.backups.naming``).
"""

from __future__ import annotations

import uuid
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Final

from client.backups.cell_files import write_cells, write_changes
from client.backups.layout import CONTENTS, Backup, Base, TableBackup, file_name
from client.backups.naming import named_at_the_end
from client.backups.opening import CHAIN_BACKUPS_MAX, Chain, open_backup, real_path
from client.errors import InvalidRequest
from client.manager import TransactionManager
from client.positions import move_position, position
from client.snapshots.moments import SINCE_THE_BEGINNING
from client.snapshots.snapshot import Snapshot
from client.tables.describing import tables as all_tables
from commit_table.timestamps import wall_time_of
from store.making import split_keys_of
from store.validation import REGIONS_MAX

BATCH_ROWS: Final = 50_000
"""Rows that are read at a time, fewer of large ones."""

Tell = Callable[[str, int, bool], None]
"""Told of a table, how many of its rows are written, and whether these are all."""


def create(
    manager: TransactionManager,
    snapshot: Snapshot,
    names: Sequence[str],
    directory: Path,
    tell: Tell,
    *,
    since: Path | None = None,
    position_snapshot: str | None = None,
) -> Backup:
    """Write tables as ``snapshot`` shows them to a directory that does not exist yet; all of them where none is named.

    ``since``: an earlier backup, in a directory beside; of the tables that it has only what has changed is written.
    ``position_snapshot``: the name of a snapshot that is made, or moved to ``snapshot`` once the backup is there, and
    keeps what the next backup needs to tell what has changed.

    Raises ``InvalidRequest`` for a table that cannot be backed up, or of which nobody knows what has changed,
    ``DamagedBackup``, ``UnreadableFile`` where the directory is there or cannot be written, and every error of a read.
    """
    with named_at_the_end(directory) as unfinished:
        data = manager.catalog.data()
        base = None if since is None else _base(since, directory, manager.settings.root, data, snapshot)
        chosen = list(dict.fromkeys(names)) or all_tables(manager)
        for name in chosen:
            _require_table(manager, name)
        changed_since = [SINCE_THE_BEGINNING if base is None else _since(manager, name, base) for name in chosen]
        if position_snapshot is not None:
            _require_position(manager, position_snapshot, snapshot)
        made = tuple(
            _table(manager, snapshot, name, moment, unfinished, tell)
            for name, moment in zip(chosen, changed_since, strict=True)
        )
        based_on = None if base is None else Base(base.opened[0].directory.name, base.newest.backup_id)
        backup = Backup(uuid.uuid4().hex, manager.settings.root, snapshot.timestamp, made, data, based_on)
        (unfinished / CONTENTS).write_text(backup.encode())
    if position_snapshot is not None:
        move_position(manager, position_snapshot, snapshot.timestamp)
    return backup


def merge(directory: Path, whole: Path, tell: Tell) -> Backup:
    """Write what a backup and those that it is based on have together to a directory that does not exist yet.

    That is a whole backup of the same moment, which needs none of them. Needs no service. Raises as ``open_backup``,
    and ``UnreadableFile`` where the directory is there or cannot be written.
    """
    chain = open_backup(directory)
    made = []
    with named_at_the_end(whole) as unfinished:
        for saved in chain.tables():
            saved.require_whole()
            name, entry = saved.table.table, saved.table.entry
            file = write_cells(unfinished / file_name(name), saved.rows(), _of_table(tell, name))
            tell(name, file.rows, True)
            made.append(TableBackup(name, entry, file, split_keys=saved.table.split_keys))
        newest = chain.newest
        backup = Backup(uuid.uuid4().hex, newest.root, newest.snapshot, tuple(made), newest.data)
        (unfinished / CONTENTS).write_text(backup.encode())
    return backup


def _require_position(manager: TransactionManager, name: str, snapshot: Snapshot) -> None:
    """Have something of the name hold back the vacuum from ``snapshot`` on, or from earlier."""
    standing = position(manager, name)
    if standing is None:
        manager.create_snapshot(name, snapshot.timestamp)
    elif standing.timestamp > snapshot.timestamp:
        raise InvalidRequest(
            f"the snapshot {name!r} is of a later moment ({standing.timestamp}) than the backup would be "
            f"({snapshot.timestamp}), of which it keeps nothing: name another one"
        )


def _base(since: Path, directory: Path, root: str, data: str | None, snapshot: Snapshot) -> Chain:
    """The backup since which changes are wanted, with its bases. Raises ``InvalidRequest`` where it cannot be one."""
    chain, place = open_backup(real_path(since)), real_path(directory).parent
    if chain.opened[0].directory.parent != place:
        raise InvalidRequest(
            f"{since} does not lie beside {directory}: a backup of what changed is in the same directory as the one "
            "that it is based on, by whose name it finds it"
        )
    base = chain.newest
    if (base.root, base.data) != (root, data):
        whose = f"root {base.root}, data {base.data or 'that it does not name'}"
        raise InvalidRequest(
            f"{since} is not of this installation ({whose}; here {root}, {data or 'without a name'}), or of an earlier "
            "release: make a whole backup"
        )
    if base.snapshot >= snapshot.timestamp:
        raise InvalidRequest(
            f"{since} is of {_moment(base.snapshot)}, which is not before {_moment(snapshot.timestamp)}"
        )
    if len(chain.opened) == CHAIN_BACKUPS_MAX:
        raise InvalidRequest(
            f"{since} is the last of {CHAIN_BACKUPS_MAX} backups that are based one on the other: make a whole one of "
            "it (pythia backup merge), or a whole backup"
        )
    return chain


def _since(manager: TransactionManager, name: str, base: Chain) -> int:
    """Since when what changed in a table is wanted; the beginning where the base has no such table.

    Raises ``InvalidRequest`` where a vacuum may have dropped what tells of it.
    """
    known = base.newest.find(name)
    manager.catalog.fresh_entry(name)
    vacuumed_below, dropped_below = manager.catalog.shown_from(name)
    if known is None or base.newest.snapshot < dropped_below:
        return SINCE_THE_BEGINNING
    if base.newest.snapshot < vacuumed_below:
        raise InvalidRequest(
            f"table {name!r} was vacuumed below {_moment(vacuumed_below)}, so nobody can tell any more what has "
            f"changed in it since {base.opened[0].directory}, of {_moment(base.newest.snapshot)}: make a whole backup, "
            "and give it and those that follow the name of a snapshot that keeps what the next one needs "
            "(--position-snapshot)"
        )
    return base.newest.snapshot


def _require_table(manager: TransactionManager, name: str) -> None:
    if name in manager.catalog.record_tables:
        raise InvalidRequest(
            f"table {name!r} is Pythia's record of what landed in other tables: it means nothing for the tables that a "
            "backup is put back into, which are others"
        )
    if not manager.catalog.has_entry(name):
        raise InvalidRequest(f"Pythia knows no table {name!r}: see `pythia table list`")


def _table(
    manager: TransactionManager, snapshot: Snapshot, name: str, since: int, directory: Path, tell: Tell
) -> TableBackup:
    entry = manager.catalog.fresh_entry(name).to_make_anew()
    path, told = directory / file_name(name), _of_table(tell, name)
    if since == SINCE_THE_BEGINNING:
        file = write_cells(path, snapshot.scan_columns(name, batch_rows=BATCH_ROWS), told)
    else:
        file = write_changes(path, snapshot.changes_columns(name, since, batch_rows=BATCH_ROWS), told)
    tell(name, file.rows, True)
    return TableBackup(name, entry, file, since, tuple(split_keys_of(manager.store, name)[: REGIONS_MAX - 1]))


def _of_table(tell: Tell, name: str) -> Callable[[int], None]:
    return lambda rows: tell(name, rows, False)


def _moment(timestamp: int) -> str:
    return f"{timestamp} ({wall_time_of(timestamp):%Y-%m-%d %H:%M:%S} UTC)"
