"""The floor of an installation's timestamps, in its commit table: `lease.Floor` over a store of cells."""

from __future__ import annotations

from commit_table import table_name
from commit_table.floor import StoredFloor, has_transactions, put_floor, read_floor
from lease import CoordinatorUnavailable, FloorRecord
from store import CellStore, StoreError


class FloorOfData:
    """What cannot be read or written in the store is a ``CoordinatorUnavailable``: the same try may go better later."""

    def __init__(self, store: CellStore, root: str) -> None:
        self._store = store
        self._table = table_name(root)

    def read(self) -> FloorRecord | None:
        """See ``Floor``."""
        try:
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
