"""The installation's level, with the data: for those who read cells and ask neither ZooKeeper nor an oracle.

It lies in the commit table, which every installation has before it has any data, in a row that no transaction's can be:
its key is one zero byte, and sorts before them all. Invariant: it never goes down, whoever writes it, and it is what
has to be understood (``LevelRecord.required`` of the lease's room), so it is never below what may be written.
"""

from __future__ import annotations

import json

from commit_table.layout import OWN_ROW
from commit_table.table import table_name
from store import CellStore, StoreUnavailable, TableMissing
from versions import FormatNotSpoken
from versions.formats import LEVEL_RECORDS

COLUMN = b"c:level"
ATTEMPTS_MAX = 10


class LevelOfData:
    """Access to the record of one installation. Every call may raise ``StoreError``."""

    def __init__(self, store: CellStore, root: str) -> None:
        self._store = store
        self._table = table_name(root)

    def read(self) -> int | None:
        """The level; ``None`` where no oracle has ever served. Raises ``FormatNotSpoken``."""
        return _parsed(self._stored())

    def raise_to(self, level: int) -> None:
        """Have at least this level on record. Raises ``StoreUnavailable`` where that stays unknown."""
        value = json.dumps({"format": LEVEL_RECORDS.newest, "level": level}).encode()
        for _ in range(ATTEMPTS_MAX):
            stored = self._stored()
            if (_parsed(stored) or 0) >= level:
                return
            self._store.compare_and_set(self._table, OWN_ROW, check=COLUMN, expected=stored, put=COLUMN, value=value)
        raise StoreUnavailable(f"the level could not be put on record in {self._table} in {ATTEMPTS_MAX} attempts")

    def _stored(self) -> bytes | None:
        try:
            cell = self._store.get(self._table, OWN_ROW, [COLUMN]).get(COLUMN)
        except TableMissing:
            return None
        return None if cell is None else cell.value


def _parsed(stored: bytes | None) -> int | None:
    if stored is None:
        return None
    try:
        fields = json.loads(stored)
        version, level = fields["format"], fields["level"]
    except (ValueError, TypeError, KeyError) as error:
        raise FormatNotSpoken(f"this is no level record: {stored[:80]!r}") from error
    LEVEL_RECORDS.require_known(version)
    if type(level) is not int:
        raise FormatNotSpoken(f"the level on record is a whole number, not {level!r}")
    return level
