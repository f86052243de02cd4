"""What vacuums leave in the catalog: for readers how far each table was vacuumed, for other vacuums what they left.

Each is written at the timestamp that it tells of: of several the one that reaches furthest stands, whoever writes last.
"""

from __future__ import annotations

from client.catalog.own_table import OwnTable
from store import ALL_ROWS, CellStore, RowPut

VACUUMED_BELOW = b"t:vacuumed_below"
"""The mark of a table: what snapshots below it would have seen may be gone."""
_SWEPT = b"t:swept"
"""What the last vacuum that was over the whole table left (``client.vacuum.swept``)."""


class VacuumRecords:
    """The records of an installation's tables, in the rows of the ``catalog``. All calls raise ``StoreUnavailable``."""

    def __init__(self, store: CellStore, catalog: OwnTable) -> None:
        self._store = store
        self._catalog = catalog

    def mark(self, table: str, below: int) -> None:
        """Have snapshots below this timestamp refused. Everybody knows after ``ENTRY_AGE_SECONDS_MAX``."""
        self._put(table, VACUUMED_BELOW, b"%d" % below, below)

    def announce(self, below: int) -> None:
        """Say that a vacuum goes up to here at most, before it reads which snapshots have a name.

        Readers do not look at this: it is the mark of the catalog's own table. See ``client.snapshots.named``.
        """
        self.mark(self._catalog.name(), below)

    def below_anywhere(self) -> int:
        """The largest mark that there is now, of a table or announced; 0 where nothing was ever vacuumed."""
        return max(map(int, self._all(VACUUMED_BELOW).values()), default=0)

    def put_swept(self, table: str, through: int, record: bytes) -> None:
        """Put on record what a vacuum left of a table, for other vacuums; ``through`` is how far that reaches."""
        self._put(table, _SWEPT, record, through)

    def swept(self) -> dict[str, bytes]:
        """By table what ``put_swept`` put last, of what reaches furthest."""
        return self._all(_SWEPT)

    def _put(self, table: str, column: bytes, value: bytes, timestamp: int) -> None:
        self._store.put(self._catalog.name(), [RowPut(table.encode(), {column: value})], timestamp)

    def _all(self, column: bytes) -> dict[str, bytes]:
        rows = self._store.scan(self._catalog.name(), ALL_ROWS, [column])
        return {row.decode(): cells[column].value for row, cells in rows}
