"""What a backup is, as values and as the text of ``backup.json``. Pure.

A backup is a directory: ``backup.json``, which is written last, and for each table a Parquet file of its cells, a line
each, in the order of the row keys: ``row``, ``column`` (``family:qualifier``) and ``value``, all bytes. A row that
exists without any cell is a line with nulls.

A backup of what changed since another one, its base, which lies beside it, has of each table that the base has the rows
that are different, as they are now; in a further column ``deleted`` it says of a row, a line with nulls, that it is
gone. Tables that are new since have all rows, as in a backup that is whole.

Invariant: ``Backup.parse`` gives only what ``restore`` may act on. Names of tables, families and files are checked here
once, since whoever restores a backup need not be who wrote it: a file lies in the directory, and under no other name,
and a base lies beside it.
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
from store.validation import check_split_keys
from versions import FormatNotSpoken
from versions.formats import BACKUPS

CONTENTS: Final = "backup.json"
CONTENTS_BYTES_MAX: Final = 256 * 2**20

_SHA256: Final = re.compile(r"[0-9a-f]{64}")
_COUNT_MAX: Final = 2**63 - 1
_WHOLE_ONLY: Final = 1
"""The format of releases that had no other backups."""


@dataclass(frozen=True, slots=True)
class TableFile:
    """The file of one table: its name in the directory, its size, and what it holds; ``rows``: deleted ones, too."""

    name: str
    bytes: int
    sha256: str
    rows: int
    cells: int
    deleted: int = 0


@dataclass(frozen=True, slots=True)
class TableBackup:
    """One table: its name, what is agreed on about it, and its cells.

    ``since``: the timestamp of the snapshot since which the file has what changed, which is the base's; 0: it has all.
    ``split_keys``: where its regions began, all but the first one; none where an earlier release wrote the backup.
    """

    table: str
    entry: CatalogEntry
    file: TableFile
    since: int = 0
    split_keys: tuple[bytes, ...] = ()

    def to_fields(self) -> dict[str, Any]:
        """For JSON."""
        return {
            "table": self.table,
            "conflict_level": self.entry.conflict_level,
            "families": list(self.entry.families),
            "description": base64.b64encode(self.entry.description).decode(),
            "since": self.since,
            "split_keys": [base64.b64encode(key).decode() for key in self.split_keys],
            "file": asdict(self.file),
        }


@dataclass(frozen=True, slots=True)
class Base:
    """The backup since which another one has what changed: its directory's name, and its ``backup_id``."""

    name: str
    backup_id: str


@dataclass(frozen=True, slots=True)
class Backup:
    """All of a backup but the cells. ``backup_id`` tells it from every other; ``root``: of the installation.

    ``snapshot``: the timestamp at which all of its tables were read. ``data``: the name of the installation's data
    (``commit_table.identity``), where it was known. ``base``: ``None`` for a whole backup.
    """

    backup_id: str
    root: str
    snapshot: int
    tables: tuple[TableBackup, ...]
    data: str | None = None
    base: Base | None = None

    @property
    def rows(self) -> int:
        """Of all tables."""
        return sum(one.file.rows for one in self.tables)

    @property
    def bytes(self) -> int:
        """Of all files of tables."""
        return sum(one.file.bytes for one in self.tables)

    def find(self, table: str) -> TableBackup | None:
        """The table of this name, where it has one."""
        return next((one for one in self.tables if one.table == table), None)

    def encode(self) -> str:
        """The text of ``backup.json``."""
        fields = {
            "format": BACKUPS.newest,
            "backup_id": self.backup_id,
            "root": self.root,
            "data": self.data,
            "snapshot": self.snapshot,
            "base": None if self.base is None else asdict(self.base),
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
                *((None, None) if fields["format"] == _WHOLE_ONLY else _data_and_base(fields)),
            )
            twice = [table for table, times in Counter(one.table for one in backup.tables).items() if times > 1]
            if twice:
                raise ValueError(f"table {twice[0]!r} is there twice")
            if any(one.since >= backup.snapshot or (one.since and backup.base is None) for one in backup.tables):
                raise ValueError("a table has what changed since a moment that no base is of")
        except FormatNotSpoken as error:
            raise DamagedBackup(f"{where}: {error}") from None
        except (ValueError, TypeError, KeyError, AttributeError, RecursionError, InvalidRequest) as error:
            raise DamagedBackup(f"{where} is no description of a backup: {error!r}") from None
        return backup


def file_name(table: str) -> str:
    """Of a table's file. A name in a namespace has a colon, which not every file system takes, and no equals sign."""
    return f"{table.replace(':', '=')}.parquet"


def _data_and_base(fields: dict[str, Any]) -> tuple[str | None, Base | None]:
    data, base = fields["data"], fields["base"]
    if base is not None:
        base = Base(**base)
        _text(base.backup_id)
        if _text(base.name) in ("", ".", "..") or "/" in base.name or "\0" in base.name:
            raise ValueError(f"{base.name!r} is no name of a directory beside this one")
    return None if data is None else _text(data), base


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
    since = fields.get("since", 0)
    for count in (file.bytes, file.rows, file.cells, file.deleted, since):
        _count(count)
    split_keys = tuple(base64.b64decode(_text(key), validate=True) for key in fields.get("split_keys", ()))
    check_split_keys(split_keys)
    return TableBackup(table, entry, file, since, split_keys)


def _text(value: Any) -> str:
    if not isinstance(value, str):
        raise ValueError(f"{value!r} is no text")
    return value


def _count(value: Any) -> int:
    if type(value) is not int or not 0 <= value <= _COUNT_MAX:
        raise ValueError(f"{value!r} is no count")
    return value
