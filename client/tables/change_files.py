"""Files that say what changed (``pythia table export --changed-since``): rows to put, and rows to delete."""

from __future__ import annotations

from collections.abc import Iterator

import pyarrow as pa
import pyarrow.compute as pc

from client.spark.change_columns import CHANGE_TYPE, DELETE, UPSERT
from client.spark.codecs import RowEncoder
from client.spark.errors import InvalidData
from client.spark.mapping import TableMapping
from client.spark.removal import RowRemover
from client.spark.value_codec import shown
from client.tables.supply import Piece
from store import CellStore
from store.columns import CellColumns


class ChangeEncoder:
    """Rows of such a file to what is written, in the transaction of ``start_timestamp``."""

    def __init__(self, store: CellStore, mapping: TableMapping, start_timestamp: int) -> None:
        self._puts = RowEncoder(mapping)
        self._deletes = RowRemover(store, mapping, start_timestamp)

    def pieces(self, rows: pa.RecordBatch, is_gone: pa.Array) -> Iterator[CellColumns]:
        """Each row once. Raises ``InvalidData`` as ``RowEncoder`` does, ``StoreUnavailable``."""
        put, gone = rows.filter(pc.invert(is_gone)), rows.filter(is_gone)
        if put.num_rows:
            yield self._puts.encode(put)
        if gone.num_rows:
            yield from self._deletes.pieces(gone)


def is_gone(piece: Piece) -> pa.Array:
    """Of each row of such a file whether it is to be deleted. Raises ``InvalidData`` for one that does not say."""
    (column,) = (index for index, name in enumerate(piece.batch.schema.names) if name.lower() == CHANGE_TYPE)
    said = piece.batch.column(column).cast(pa.string())
    known = pc.is_in(said, pa.array([UPSERT, DELETE]))
    if not pc.all(known, min_count=0).as_py():
        row = known.index(False).as_py()
        raise InvalidData(
            f"{piece.file}, row {piece.first_row + row:,}, column {CHANGE_TYPE!r}: it says {UPSERT!r} or {DELETE!r}, "
            f"not {shown(said[row])}; nothing of its transaction has landed"
        )
    return pc.equal(said, DELETE)
