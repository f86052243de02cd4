"""Tables in which Pythia keeps what it knows, and nobody's data."""

from __future__ import annotations

import threading

from store import CellStore, Family, TableExists
from store.forking import leave_at_fork


class OwnTable:
    """One of Pythia's own tables, made when it is first needed."""

    def __init__(self, store: CellStore, name: str, *families: Family) -> None:
        self._store = store
        self._name = name
        self._families = families
        self._lock = threading.Lock()
        self._made = False
        leave_at_fork(self)

    def leave_to_parent(self) -> None:
        """See ``Leaving``. The lock is held while the table is made."""
        self._lock = threading.Lock()

    def name(self) -> str:
        """The table's name, once it stands."""
        with self._lock:
            if not self._made:
                self._make()
                self._made = True
        return self._name

    def _make(self) -> None:
        if self._name in self._store.table_names():
            return
        try:
            self._store.create_table(self._name, self._families)
        except TableExists:
            return  # another client was faster
