"""A backup opened: what is in it, and whether its files are what was written. Needs no service."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path

from client.backups.cell_files import read_cells, require_whole
from client.backups.errors import DamagedBackup
from client.backups.layout import CONTENTS, CONTENTS_BYTES_MAX, Backup, TableBackup
from client.errors import InvalidRequest
from client.tables.errors import UnreadableFile


def open_backup(directory: Path) -> Backup:
    """Raises ``UnreadableFile`` where there is none that can be read, ``DamagedBackup`` where it is no backup."""
    contents = directory / CONTENTS
    try:
        with contents.open("rb") as opened:
            text = opened.read(CONTENTS_BYTES_MAX + 1)
    except OSError as error:
        raise UnreadableFile(f"{contents} cannot be read, which every backup has: {error.strerror}") from error
    if len(text) > CONTENTS_BYTES_MAX:
        raise DamagedBackup(f"{contents} has more than {CONTENTS_BYTES_MAX:,} bytes")
    return Backup.parse(text.decode(errors="replace"), str(contents))


def chosen_tables(backup: Backup, names: Sequence[str]) -> list[TableBackup]:
    """Those of these names, all where none is named. Raises ``InvalidRequest`` for one that is not there."""
    by_name = {one.table: one for one in backup.tables}
    missing = [name for name in names if name not in by_name]
    if missing:
        raise InvalidRequest(f"the backup has no table {missing[0]!r}; it has {', '.join(by_name) or 'none'}")
    return [by_name[name] for name in dict.fromkeys(names)] if names else list(backup.tables)


def check(directory: Path, tell: Callable[[str], None]) -> Backup:
    """Read all of a backup; ``tell`` is told of each table that is whole. Raises as ``open_backup``."""
    backup = open_backup(directory)
    for one in backup.tables:
        path = directory / one.file.name
        require_whole(path, one.file)
        for _ in read_cells(path, one):
            pass
        tell(one.table)
    return backup
