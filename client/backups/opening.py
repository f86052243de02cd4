"""A backup opened, with those that it is based on: what is in it, and whether its files are what was written.

Needs no service.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from client.backups.cell_files import read_lines, require_whole, to_columns
from client.backups.errors import DamagedBackup
from client.backups.layers import merged
from client.backups.layout import CONTENTS, CONTENTS_BYTES_MAX, Backup, TableBackup
from client.errors import InvalidRequest
from client.tables.errors import UnreadableFile
from store.columns import CellColumns

CHAIN_BACKUPS_MAX: Final = 100
"""A backup, and all that it is based on: of each a part of a table's file is in memory as they are read together."""


@dataclass(frozen=True, slots=True)
class Opened:
    """A backup and its directory."""

    directory: Path
    backup: Backup


@dataclass(frozen=True, slots=True)
class SavedTable:
    """A table of a backup, and the files that it is in, the newest first: the last one has all rows."""

    table: TableBackup
    files: tuple[tuple[Path, TableBackup], ...]

    def require_whole(self) -> None:
        """Raise ``DamagedBackup`` unless every file is, byte by byte, what was written."""
        for path, one in self.files:
            require_whole(path, one.file)

    def rows(self) -> Iterator[CellColumns]:
        """The rows as they were, in the order of their keys; one without cells is empty. Raises ``DamagedBackup``."""
        for lines in merged([read_lines(path, one) for path, one in self.files]):
            yield from to_columns(lines, self.files[0][0])


@dataclass(frozen=True, slots=True)
class Chain:
    """A backup and those that it is based on, the newest first: the last one is whole."""

    opened: tuple[Opened, ...]

    @property
    def newest(self) -> Backup:
        """The backup that was asked for."""
        return self.opened[0].backup

    @property
    def bases(self) -> tuple[Backup, ...]:
        """Those that it is based on."""
        return tuple(each.backup for each in self.opened[1:])

    def tables(self, names: Sequence[str] = ()) -> list[SavedTable]:
        """Those of these names, all where none is named. Raises ``InvalidRequest`` for one that is not there."""
        there = [one.table for one in self.newest.tables]
        missing = [name for name in names if name not in there]
        if missing:
            raise InvalidRequest(f"the backup has no table {missing[0]!r}; it has {', '.join(there) or 'none'}")
        return [self._table(name) for name in dict.fromkeys(names or there)]

    def _table(self, name: str) -> SavedTable:
        files: list[tuple[Path, TableBackup]] = []
        for each in self.opened:
            found = each.backup.find(name)
            if found is None or (files and _unlike(files[-1][1], found, each.backup)):
                raise DamagedBackup(f"{each.directory} has no table {name!r} that {files[-1][0]} could be based on")
            files.append((each.directory / found.file.name, found))
            if not found.since:
                break
        return SavedTable(files[0][1], tuple(files))


def _unlike(later: TableBackup, earlier: TableBackup, of: Backup) -> bool:
    return later.since != of.snapshot or later.entry.families != earlier.entry.families


def open_backup(directory: Path) -> Chain:
    """Raises ``UnreadableFile`` where there is none that can be read, ``DamagedBackup`` where it is no backup.

    Both, too, for those that it is based on.
    """
    opened = [Opened(directory, _contents(directory))]
    while (base := opened[-1].backup.base) is not None:
        if len(opened) == CHAIN_BACKUPS_MAX:
            raise InvalidRequest(
                f"{directory} is based on {CHAIN_BACKUPS_MAX} backups and more, one on the other: make whole ones of "
                f"some of them, the oldest first (pythia backup merge)"
            )
        beside = real_path(opened[-1].directory).parent / base.name
        try:
            found = _contents(beside)
        except UnreadableFile as error:
            raise UnreadableFile(f"{opened[-1].directory} is based on a backup that is not there: {error}") from error
        if found.backup_id != base.backup_id:
            raise DamagedBackup(
                f"{beside} is another backup ({found.backup_id}) than {opened[-1].directory} is based on "
                f"({base.backup_id})"
            )
        opened.append(Opened(beside, found))
    chain = Chain(tuple(opened))
    chain.tables()
    return chain


def check(directory: Path, tell: Callable[[str], None]) -> Chain:
    """Read all of a backup; ``tell`` is told of each table that is whole. Raises as ``open_backup``."""
    chain = open_backup(directory)
    for saved in chain.tables():
        saved.require_whole()
        for _ in saved.rows():
            pass
        tell(saved.table.table)
    return chain


def real_path(directory: Path) -> Path:
    """The directory by no link; of links that go in a circle one that cannot be read."""
    return Path(os.path.realpath(directory))  # Path.resolve raises RuntimeError for such links


def _contents(directory: Path) -> Backup:
    contents = directory / CONTENTS
    try:
        with contents.open("rb") as opened:
            text = opened.read(CONTENTS_BYTES_MAX + 1)
    except OSError as error:
        raise UnreadableFile(f"{contents} cannot be read, which every backup has: {error.strerror}") from error
    if len(text) > CONTENTS_BYTES_MAX:
        raise DamagedBackup(f"{contents} has more than {CONTENTS_BYTES_MAX:,} bytes")
    return Backup.parse(text.decode(errors="replace"), str(contents))
