"""Which data these are: a name that no other installation's data have, drawn once and kept with them.

Gateways of two HBase clusters look alike, and two installations of one root name their tables alike. An oracle at the
wrong gateway would go on where the right one left off, without any commit that it acknowledged. So the data have a
name, ZooKeeper has it on record, and whoever finds another one goes no further (``tso.persistence.identity``,
``client.catalog.data_checks``).

It lies beside the installation's level, in a row that no transaction's can be. Invariant: once there, it never changes.
"""

from __future__ import annotations

import re

from commit_table.layout import OWN_ROW
from commit_table.table import table_name
from store import CellStore, StoreUnavailable, TableMissing

COLUMN = b"c:identity"
ATTEMPTS_MAX = 10

_IDENTITY = re.compile(r"[0-9a-f]{32}")


class IdentityOfData:
    """Access to the name of one installation's data. Every call may raise ``StoreError``."""

    def __init__(self, store: CellStore, root: str) -> None:
        self._store = store
        self._root = root
        self._table = table_name(root)

    def read(self) -> str | None:
        """The name, 32 hexadecimal digits; ``None`` where the data have none yet, or there are none."""
        try:
            cell = self._store.get(self._table, OWN_ROW, [COLUMN]).get(COLUMN)
        except TableMissing:
            return None
        return None if cell is None else cell.value.decode("ascii", "replace")

    def otherwise(self, named: str) -> str:
        """What a gateway does that does not lead to the data of this name, in words; empty: it leads to them."""
        found = self.read()
        if found == named:
            return ""
        what = "no data of it" if found is None else f"data of another installation ({found})"
        return f"leads to an HBase that has {what}, and the oracles of {self._root} write to {named}"

    def give(self, identity: str) -> str:
        """Give the data this name unless they have one; the name that they have then.

        Raises ``StoreUnavailable`` where that stays unknown, ``ValueError`` for what is no such name.
        """
        if _IDENTITY.fullmatch(identity) is None:
            raise ValueError(f"data are named by 32 hexadecimal digits, not {identity!r}")
        for _ in range(ATTEMPTS_MAX):
            stands = self.read()
            if stands is not None:
                return stands
            self._store.compare_and_set(
                self._table, OWN_ROW, check=COLUMN, expected=None, put=COLUMN, value=identity.encode()
            )
        raise StoreUnavailable(f"{self._table} could not be given a name in {ATTEMPTS_MAX} attempts")
