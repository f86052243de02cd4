"""The floor of an installation's timestamps, in its commit table: `lease.Floor` over a store of cells."""

from __future__ import annotations

from collections.abc import Callable

from commit_table import table_name
from commit_table.floor import StoredFloor, has_transactions, put_floor, read_floor
from lease import CoordinatorUnavailable, FloorRecord
from store import CellStore, StoreError


class FloorOfData:
    """What cannot be read or written in the store is a ``CoordinatorUnavailable``: the same try may go better later.

    It is read right before each takeover, and means nothing in other data than the installation's: ``look`` is called
    first, and raises ``DataRefused`` there. A standby has looked when it began, and its data may have been lost since.
    """

    def __init__(self, store: CellStore, root: str, look: Callable[[], None]) -> None:
        self._store = store
        self._look = look
        self._table = table_name(root)

    def read(self) -> FloorRecord | None:
        """See ``Floor``. Raises ``DataRefused``, too."""
        try:
            self._look()
            stored = read_floor(self._store, self._table)
        except StoreError as error:
            raise CoordinatorUnavailable(f"the floor of timestamps is not known: {error}") from error
        return None if stored is None else FloorRecord(*stored)

    def put(self, record: FloorRecord) -> None:
        """See ``Floor``."""
        try:
            put_floor(self._store, self._table, StoredFloor(*record))
        except StoreError as error:
            raise CoordinatorUnavailable(f"a floor of timestamps could not be put on record: {error}") from error

    def has_data(self) -> bool:
        """See ``Floor``."""
        try:
            return has_transactions(self._store, self._table)
        except StoreError as error:
            raise CoordinatorUnavailable(f"whether there are data is not known: {error}") from error
