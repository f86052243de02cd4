"""Rows that changed as record batches: a table's columns, and two more that say what is to be done with them. Pure."""

from __future__ import annotations

from typing import Final

import numpy as np
import pyarrow as pa
from pyspark.sql.types import LongType, StringType, StructField, StructType

from client.snapshots.changed_rows import ChangedColumns
from client.spark.codecs import RowDecoder
from client.spark.errors import InvalidOption
from client.spark.mapping import TableMapping

CHANGE_TYPE: Final = "_change_type"
UPSERT, DELETE = "upsert", "delete"
"""What is to be done with a row, by the names of the write's option ``operation``."""
COMMIT_TIMESTAMP: Final = "_commit_timestamp"
"""Of the last commit that changed the row."""
_OF_CHANGES: Final = (StructField(CHANGE_TYPE, StringType(), False), StructField(COMMIT_TIMESTAMP, LongType(), False))


class ChangeDecoder:
    """Rows that changed to record batches of ``schema``: some of the mapping's columns and of those that say what."""

    def __init__(self, mapping: TableMapping, schema: pa.Schema) -> None:
        self._schema = schema
        self._rows = RowDecoder(mapping, pa.schema([field for field in schema if not says_what(field.name)]))

    def decode(self, changed: ChangedColumns) -> pa.RecordBatch:
        """A batch with one row for each of these; of one that is gone the row key alone. Raises ``InvalidData``."""
        rows = self._rows.decode(changed.cells)
        types = pa.array([UPSERT, DELETE])  # not when this is imported: Arrow imports pandas for it
        of_changes = {
            CHANGE_TYPE: types.take(pa.array(changed.deleted.astype(np.int8))),
            COMMIT_TIMESTAMP: pa.array(changed.commit_timestamps),
        }
        arrays = [of_changes[name.lower()] if says_what(name) else rows.column(name) for name in self._schema.names]
        return pa.RecordBatch.from_arrays(arrays, schema=self._schema)


def says_what(name: str) -> bool:
    """Whether a column of this name is none of the table's."""
    return name.lower() in (CHANGE_TYPE, COMMIT_TIMESTAMP)


def without_change_columns(schema: StructType) -> StructType:
    """The columns of a schema that are the table's."""
    return StructType([field for field in schema.fields if not says_what(field.name)])


def with_change_columns(schema: StructType, table: str) -> StructType:
    """The schema of a table's changes. Raises ``InvalidOption`` where the table has columns of these names itself."""
    taken = [field.name for field in schema.fields if says_what(field.name)]
    if taken:
        raise InvalidOption(
            f"what changed has a column {taken[0]!r} that says what, and table {table!r} has one of that name: choose "
            "others with 'columns'"
        )
    return StructType([*schema.fields, *_OF_CHANGES])
