"""A table with a mapping as batches of Arrow, for programs that run no Spark: pandas, a service, a file's writer."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import pyarrow as pa

from client.snapshots.snapshot import Snapshot
from client.spark.change_columns import ChangeDecoder, with_change_columns
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

    In a salted table that is bucket by bucket. ``columns``: some of the table's, in its order; all by default.
    ``prefix``: of the row keys, as ``row_key``, or ``row_key_prefixes``, makes it of the leading columns. Raises
    ``InvalidMapping`` for a column that the table lacks and, as the batches are taken, ``InvalidData`` for bytes that
    the mapping cannot mean, and every error of ``scan_columns``.
    """
    decoder = RowDecoder(mapping, arrow_schema(mapping.to_struct(columns)))
    found = view.scan_columns(
        mapping.table, mapping.cells, prefix=prefix, columns=families_of(mapping), batch_rows=batch_rows
    )
    return (decoder.decode(cells) for cells in found)


def record_batches_of_changes(
    snapshot: Snapshot,
    mapping: TableMapping,
    since: int,
    columns: Sequence[str] | None = None,
    *,
    prefix: bytes = b"",
    batch_rows: int = READ_BATCH_ROWS,
) -> Iterator[pa.RecordBatch]:
    """The rows that are different from what a snapshot at the timestamp ``since`` shows; 0: all that there are.

    In the order of their keys, with two columns more: ``_change_type`` is ``upsert`` for a row as it is now, and
    ``delete`` for one that is gone, of which the row key alone comes; ``_commit_timestamp`` is that of the last commit
    that changed the row. See ``record_batches``, and ``Snapshot.changes``. Raises ``InvalidOption``, too, for a column
    of the table's that has one of these names.
    """
    schema = with_change_columns(mapping.to_struct(columns), mapping.table)
    decoder = ChangeDecoder(mapping, arrow_schema(schema))
    found = snapshot.changes_columns(
        mapping.table, since, mapping.cells, prefix=prefix, columns=families_of(mapping), batch_rows=batch_rows
    )
    return (decoder.decode(changed) for changed in found)
