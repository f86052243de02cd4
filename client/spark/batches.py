"""A table with a mapping as batches of Arrow, for programs that run no Spark: pandas, a service, a file's writer."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import pyarrow as pa

from client.snapshots.snapshot import Snapshot
from client.spark.codecs import RowDecoder
from client.spark.mapping import TableMapping
from client.spark.options import READ_BATCH_ROWS
from client.spark.reader import arrow_schema, families_of
from client.transactions.transaction import Transaction


def record_batches(
    view: Snapshot | Transaction,
    mapping: TableMapping,
    columns: Sequence[str] | None = None,
    *,
    prefix: bytes = b"",
    batch_rows: int = READ_BATCH_ROWS,
) -> Iterator[pa.RecordBatch]:
    """The rows that a snapshot or a transaction shows, in the order of their keys, up to ``batch_rows`` in a batch.

    ``columns``: some of the table's, in its order; all by default. ``prefix``: of the row keys, as ``row_key`` makes it
    of the leading columns. Raises ``InvalidMapping`` for a column that the table lacks and, as the
    batches are taken, ``InvalidData`` for bytes that the mapping cannot mean, and every error of ``scan_columns``.
    """
    decoder = RowDecoder(mapping, arrow_schema(mapping.to_struct(columns)))
    found = view.scan_columns(
        mapping.table, mapping.cells, prefix=prefix, columns=families_of(mapping), batch_rows=batch_rows
    )
    return (decoder.decode(cells) for cells in found)
