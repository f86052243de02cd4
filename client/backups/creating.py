"""A backup made: every table as one snapshot shows it, in a directory that has its name only once it is whole.

The invariant: a directory of the name that was asked for is a whole backup of one moment, and it replaced no other.
Everything goes to another directory beside it, which gets the name once the last byte is on the disk; a backup that
fails removes it, and one that is killed leaves it, by a name that nobody takes for a backup.
"""

from __future__ import annotations

import shutil
import uuid
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Final

from client.backups.cell_files import write_cells
from client.backups.layout import CONTENTS, Backup, TableBackup, file_name
from client.errors import InvalidRequest
from client.manager import TransactionManager
from client.snapshots.snapshot import Snapshot
from client.tables.describing import tables as all_tables
from client.tables.errors import UnreadableFile
from client.tables.unfinished import keep, unfinished_beside

BATCH_ROWS: Final = 50_000
"""Rows that are read at a time, fewer of large ones."""

Tell = Callable[[str, int, bool], None]
"""Told of a table, how many of its rows are written, and whether these are all."""


def create(
    manager: TransactionManager, snapshot: Snapshot, names: Sequence[str], directory: Path, tell: Tell
) -> Backup:
    """Write tables as ``snapshot`` shows them to a directory that does not exist yet; all of them where none is named.

    Raises ``InvalidRequest`` for a table that cannot be backed up, ``UnreadableFile`` where the directory is there or
    cannot be written, and every error of a read.
    """
    with _named_at_the_end(directory) as unfinished:
        chosen = list(dict.fromkeys(names)) or all_tables(manager)
        for name in chosen:
            _require_table(manager, name)
        made = tuple(_table(manager, snapshot, name, unfinished, tell) for name in chosen)
        backup = Backup(uuid.uuid4().hex, manager.settings.root, snapshot.timestamp, made)
        (unfinished / CONTENTS).write_text(backup.encode())
    return backup


def _require_table(manager: TransactionManager, name: str) -> None:
    if name in manager.catalog.record_tables:
        raise InvalidRequest(
            f"table {name!r} is Pythia's record of what landed in other tables: it means nothing for the tables that a "
            "backup is put back into, which are others"
        )
    if not manager.catalog.has_entry(name):
        raise InvalidRequest(f"Pythia knows no table {name!r}: see `pythia table list`")


def _table(manager: TransactionManager, snapshot: Snapshot, name: str, directory: Path, tell: Tell) -> TableBackup:
    entry = manager.catalog.fresh_entry(name)
    rows = snapshot.scan_columns(name, batch_rows=BATCH_ROWS)
    file = write_cells(directory / file_name(name), rows, lambda rows: tell(name, rows, False))
    tell(name, file.rows, True)
    return TableBackup(name, entry, file)


@contextmanager
def _named_at_the_end(directory: Path) -> Iterator[Path]:
    unfinished = unfinished_beside(directory)
    try:
        if directory.exists():
            raise UnreadableFile(f"{directory} exists already: a backup is a directory of its own, so name another")
        unfinished.mkdir(parents=True)
        yield unfinished
        for written in unfinished.iterdir():
            keep(written)
        keep(unfinished)
        unfinished.rename(directory)  # fails where something of the name is there by now, unless it is empty
        keep(directory.parent)
    except OSError as error:
        raise UnreadableFile(f"{directory} cannot be written: {error.strerror or error}") from error
    finally:
        with suppress(OSError):
            shutil.rmtree(unfinished)
