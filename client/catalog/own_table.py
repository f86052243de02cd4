"""Tables in which Pythia keeps what it knows, and nobody's data."""

from __future__ import annotations

import threading

from store import CellStore, Family
from store.forking import leave_at_fork
from store.making import create_missing


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
                create_missing(self._store, self._name, self._families)
                self._made = True
        return self._name
