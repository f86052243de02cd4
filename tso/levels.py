"""The level of an installation as one oracle process meets it: refused at the door, and agreed on with the data.

ZooKeeper and the commit table both have it on record. The first process of an installation puts it there: at the level
of the data where these were there before (ZooKeeper was made anew), else at the highest that it works at. Invariant:
the record with the data is never above ZooKeeper's, except where ZooKeeper was restored, and then nobody serves.
"""

from __future__ import annotations

import contextlib

from commit_table.level_record import LevelOfData
from lease import Coordinator, CoordinatorUnavailable, LevelRefused, ZnodePaths
from lease.gate import Gate, read_level, require
from store import CellStore, StoreError
from versions import FormatNotSpoken, LevelNotSpoken, spoken


class LevelAgreement:
    """``coordinator`` ``None``: the oracle is alone, and the record with the data is the only one."""

    def __init__(self, store: CellStore, coordinator: Coordinator | None, root: str, timeout_ms: float) -> None:
        self._data = LevelOfData(store, root)
        self._coordinator = coordinator
        self._paths = ZnodePaths(root)
        self._timeout_ms = timeout_ms

    def look(self) -> None:
        """Before anything is done: raise ``LevelRefused`` where this program cannot take part.

        Where HBase does not answer it is looked again later. Raises ``CoordinatorUnavailable``.
        """
        if self._coordinator is not None:
            stored = read_level(self._coordinator, self._paths, self._timeout_ms)
            if stored is not None:
                require(spoken(), stored.record, self._paths.root)
        with contextlib.suppress(StoreError):
            self._of_data()

    def first_level(self) -> int:
        """At which level ZooKeeper's record begins. Raises ``LevelRefused``, ``CoordinatorUnavailable``."""
        try:
            return self._of_data() or spoken().highest
        except StoreError as error:
            raise CoordinatorUnavailable(f"at which level the data are is not known: {error}") from error

    def agree(self) -> None:
        """Have both records there, once the commit table is.

        Raises ``LevelRefused``, ``CoordinatorUnavailable``, ``StoreError``.
        """
        of_data = self._of_data()  # before ZooKeeper's: that one is raised first
        required = self._required(of_data)
        if (of_data or 0) > required:
            raise LevelRefused(
                f"the data of {self._paths.root} require level {of_data}, and ZooKeeper says {required}: it was "
                "restored from an older state. `pythia upgrade finish` raises it again"
            )
        self._data.raise_to(required)

    def _required(self, of_data: int | None) -> int:
        if self._coordinator is None:
            return of_data or spoken().highest
        gate = Gate(self._coordinator, self._paths, self._timeout_ms, spoken(), self.first_level)
        return gate.admitted().record.required

    def _of_data(self) -> int | None:
        try:
            level = self._data.read()
            if level is not None:
                spoken().require(level, f"the data of {self._paths.root}")
        except (LevelNotSpoken, FormatNotSpoken) as error:
            raise LevelRefused(str(error)) from None
        return level
