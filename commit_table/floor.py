"""A bound above all timestamps that an oracle ever handed out, for when ZooKeeper's record of that is lost.

It lies beside the installation's level, in a row that no transaction's can be. Its cell's timestamp is the bound
itself: of several the largest stands, whoever writes last. Its value says of whoever put it there: the lease in
milliseconds, and how far below the floor what ZooKeeper has on record may lie.
"""

from __future__ import annotations

from typing import NamedTuple

from commit_table import forgetting, layout
from store import CellStore, KeyRange, RowPut, TableMissing

COLUMN = b"c:floor"
_TRANSACTIONS = KeyRange(layout.OWN_ROW + b"\x00", b"")


class StoredFloor(NamedTuple):
    """``timestamp``: none at or above it was handed out. ``lease_ms``: the lease of whoever put it there. ``span``: so
    far below it, in timestamps, lies the end of the range on record in ZooKeeper at most.
    """

    timestamp: int
    lease_ms: int
    span: int


def read_floor(store: CellStore, table: str) -> StoredFloor | None:
    """The floor on record; ``None``: there is none. Raises ``StoreUnavailable``."""
    try:
        cell = store.get(table, layout.OWN_ROW, [COLUMN]).get(COLUMN)
    except TableMissing:
        return None
    if cell is None:
        return None
    lease_ms, span = cell.value.split()[:2]  # a later release may have more to say
    return StoredFloor(cell.timestamp, int(lease_ms), int(span))


def put_floor(store: CellStore, table: str, floor: StoredFloor) -> None:
    """Put a floor on record. Raises ``StoreUnavailable``, and then it may be there."""
    store.put(table, [RowPut(layout.OWN_ROW, {COLUMN: b"%d %d" % (floor.lease_ms, floor.span)})], floor.timestamp)


def has_transactions(store: CellStore, table: str) -> bool:
    """Whether any transaction is on record, or was. Raises ``StoreUnavailable``."""
    families = [family.name.encode() for family in (layout.COMMIT_FAMILY, layout.FENCE_FAMILY)]
    try:
        rows = store.scan(table, _TRANSACTIONS, families, batch_rows=1)
        return next(iter(rows), None) is not None or forgetting.forgotten_below(store, table) > 0
    except TableMissing:
        return False
