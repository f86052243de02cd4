"""What a backup is, as values and as the text of ``backup.json``. Pure.

A backup is a directory: ``backup.json``, which is written last, and for each table a Parquet file of its cells, a line
each, in the order of the row keys: ``row``, ``column`` (``family:qualifier``) and ``value``, all bytes. A row that
exists without any cell is a line with nulls.

Invariant: ``Backup.parse`` gives only what ``restore`` may act on. Names of tables, families and files are checked here
once, since whoever restores a backup need not be who wrote it: a file lies in the directory, and under no other name.
"""

from __future__ import annotations

import base64
import json
import re
from collections import Counter
from dataclasses import asdict, dataclass
from typing import Any, Final

from client.backups.errors import DamagedBackup
from client.catalog.entry import CatalogEntry, family_names, validate_table
from client.errors import InvalidRequest
from versions import FormatNotSpoken
from versions.formats import BACKUPS

CONTENTS: Final = "backup.json"
CONTENTS_BYTES_MAX: Final = 256 * 2**20

_SHA256: Final = re.compile(r"[0-9a-f]{64}")
_COUNT_MAX: Final = 2**63 - 1


@dataclass(frozen=True, slots=True)
class TableFile:
    """The file of one table: its name in the directory, its size, and what it holds."""

    name: str
    bytes: int
    sha256: str
    rows: int
    cells: int


@dataclass(frozen=True, slots=True)
class TableBackup:
    """One table: its name, what is agreed on about it, and its cells."""

    table: str
    entry: CatalogEntry
    file: TableFile

    def to_fields(self) -> dict[str, Any]:
        """For JSON."""
        return {
            "table": self.table,
            "conflict_level": self.entry.conflict_level,
            "families": list(self.entry.families),
            "description": base64.b64encode(self.entry.description).decode(),
            "file": asdict(self.file),
        }


@dataclass(frozen=True, slots=True)
class Backup:
    """All of a backup but the cells. ``backup_id`` tells it from every other; ``root``: of the installation.

    ``snapshot``: the timestamp at which all of its tables were read.
    """

    backup_id: str
    root: str
    snapshot: int
    tables: tuple[TableBackup, ...]

    @property
    def rows(self) -> int:
        """Of all tables."""
        return sum(one.file.rows for one in self.tables)

    @property
    def bytes(self) -> int:
        """Of all files of tables."""
        return sum(one.file.bytes for one in self.tables)

    def encode(self) -> str:
        """The text of ``backup.json``."""
        fields = {
            "format": BACKUPS.newest,
            "backup_id": self.backup_id,
            "root": self.root,
            "snapshot": self.snapshot,
            "tables": [one.to_fields() for one in self.tables],
        }
        return json.dumps(fields, indent=2) + "\n"

    @classmethod
    def parse(cls, text: str, where: str) -> Backup:
        """Read ``encode``'s text; ``where`` it lies, for errors. Raises ``DamagedBackup``."""
        try:
            fields = json.loads(text)
            BACKUPS.require_known(fields["format"])
            backup = cls(
                _text(fields["backup_id"]),
                _text(fields["root"]),
                _count(fields["snapshot"]),
                tuple(_table_backup(one) for one in fields["tables"]),
            )
            twice = [table for table, times in Counter(one.table for one in backup.tables).items() if times > 1]
            if twice:
                raise ValueError(f"table {twice[0]!r} is there twice")
        except FormatNotSpoken as error:
            raise DamagedBackup(f"{where}: {error}") from None
        except (ValueError, TypeError, KeyError, AttributeError, RecursionError, InvalidRequest) as error:
            raise DamagedBackup(f"{where} is no description of a backup: {error!r}") from None
        return backup


def file_name(table: str) -> str:
    """Of a table's file. A name in a namespace has a colon, which not every file system takes, and no equals sign."""
    return f"{table.replace(':', '=')}.parquet"


def _table_backup(fields: dict[str, Any]) -> TableBackup:
    table = _text(fields["table"])
    validate_table(table)
    entry = CatalogEntry(
        fields["conflict_level"],
        family_names(fields["families"]),
        base64.b64decode(_text(fields["description"]), validate=True),
    )
    file = TableFile(**fields["file"])
    if file.name != file_name(table):
        raise ValueError(f"the file of table {table!r} is {file_name(table)!r}, not {file.name!r}")
    if not _SHA256.fullmatch(_text(file.sha256)):
        raise ValueError(f"sha256 {file.sha256!r}")
    for count in (file.bytes, file.rows, file.cells):
        _count(count)
    return TableBackup(table, entry, file)


def _text(value: Any) -> str:
    if not isinstance(value, str):
        raise ValueError(f"{value!r} is no text")
    return value


def _count(value: Any) -> int:
    if type(value) is not int or not 0 <= value <= _COUNT_MAX:
        raise ValueError(f"{value!r} is no count")
    return value
