"""Whether this library may work on the data that its store leads to: they are those of its oracles, and of a level that
it speaks.
"""

from __future__ import annotations

import math
from collections.abc import Callable

from client.catalog.age import is_believed, now_seconds
from client.errors import InvalidRequest, UpgradeNeeded
from commit_table.identity import IdentityOfData
from commit_table.level_record import LevelOfData
from store import CellStore
from versions import FormatNotSpoken, LevelNotSpoken, spoken


class DataChecks:
    """What is looked at before data are read or written; remembers what it found. Thread-safe."""

    def __init__(self, store: CellStore, root: str, of: str, named_by_oracles: Callable[[], str | None]) -> None:
        """``of``: a table of theirs, for what is said. ``named_by_oracles``: the name of the data that the oracles
        write to, where that is known already.
        """
        self._of = of
        self._identity = IdentityOfData(store, root)
        self._named_by_oracles = named_by_oracles
        self._are_same = False
        self._level = LevelOfData(store, root)
        self._level_read_seconds = -math.inf

    def name(self) -> str | None:
        """The name of the data (``commit_table.identity``); ``None`` where no oracle has named them."""
        return self._identity.read()

    def require(self) -> None:
        """Raise ``UpgradeNeeded`` unless this library worked at the level, ``ENTRY_AGE_SECONDS_MAX`` ago at most.

        Raises ``StoreUnavailable``, and ``InvalidRequest`` where these are not the data that the oracles write to.
        """
        self._require_same()
        if is_believed(self._level_read_seconds):
            return
        read_seconds = now_seconds()
        try:
            level = self._level.read()
            if level is not None:
                spoken().require(level, f"the data that {self._of} is of")
        except (LevelNotSpoken, FormatNotSpoken) as error:
            raise UpgradeNeeded(str(error)) from None
        self._level_read_seconds = read_seconds

    def _require_same(self) -> None:
        """Raise ``InvalidRequest`` where the store is known not to be the one that the oracles write to.

        Commits would be recorded there, and their cells be here: nobody would see both.
        """
        named = None if self._are_same else self._named_by_oracles()
        if named is None:
            return
        if otherwise := self._identity.otherwise(named):
            raise InvalidRequest(f"the gateway {otherwise}: look at thrift, zookeeper and root")
        self._are_same = True
