"""The demo's tables: how they lie in HBase, and how programs without Spark read and write them.

The mappings are made here once and kept in the catalog; every process afterwards reads them from there.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Final, Protocol

import pandas as pd
import pyarrow as pa

from client.cells import decode_value, is_reserved
from client.spark import KeyColumn, TableMapping, ValueColumn
from client.spark.codecs import RowDecoder, RowEncoder
from client.spark.reader import arrow_schema
from demo.flights import KEY
from demo.summaries import MEASURES, Measures, Summary, Totals
from store.columns import CellColumns

FLIGHTS: Final = "flights"
REFERENCE_KEYS: Final = {
    "airlines": ("carrier",),
    "airports": ("faa",),
    "planes": ("tailnum",),
    "weather": ("origin", "time_hour"),
}
"""The small tables and their row keys. Weather goes by UTC: in autumn the clock shows one hour twice."""

DECODED_ROWS: Final = 5_000

_TYPES: Final = {
    "int8": "tinyint",
    "int16": "smallint",
    "int32": "int",
    "int64": "bigint",
    "float64": "double",
    "str": "string",
    "object": "string",
}


class Readable(Protocol):
    """A snapshot or a transaction."""

    def scan_columns(
        self,
        table: str,
        known: Sequence[bytes],
        *,
        prefix: bytes = b"",
        columns: Sequence[bytes] | None = None,
        batch_rows: int = ...,
    ) -> Iterator[CellColumns]:
        """See ``client.Snapshot``."""
        ...


class Writable(Protocol):
    """A transaction."""

    def put(self, table: str, row: bytes, values: Mapping[bytes, bytes]) -> None:
        """See ``client.Transaction``."""
        ...


@dataclass(frozen=True, slots=True)
class TableNames:
    """Where the tables are: ``prefix`` keeps two demos on one cluster apart."""

    prefix: str = ""

    def of(self, name: str) -> str:
        """The table's name in HBase."""
        return f"{self.prefix}{name}"


def mapping_of_frame(table: str, frame: pd.DataFrame, key: Sequence[str]) -> TableMapping:
    """The mapping of a pandas DataFrame: the columns of ``key``, in their order, make up the row key."""
    columns = [
        KeyColumn(str(name), _spark_type(dtype)) if name in key else ValueColumn(str(name), _spark_type(dtype))
        for name, dtype in frame.dtypes.items()
    ]
    return TableMapping(table, tuple(key), tuple(columns))


def mapping_of_flights(table: str, flights: pd.DataFrame) -> TableMapping:
    """The mapping of the flights; the year is always the same, hour and minute are the scheduled departure's."""
    return mapping_of_frame(table, flights, KEY)


def mapping_of_summary(table: str, flights: pd.DataFrame, summary: Summary) -> TableMapping:
    """The mapping of a summary of flights: its keys, then the measures."""
    keys = [KeyColumn(key, _spark_type(flights.dtypes[key])) for key in summary.keys]
    return TableMapping(table, summary.keys, (*keys, *(ValueColumn(measure, "bigint") for measure in MEASURES)))


def _spark_type(dtype: object) -> str:
    name = str(dtype).lower()
    return "timestamp" if name.startswith("datetime64") else _TYPES[name]


def scan_frame(view: Readable, mapping: TableMapping, names: Sequence[str], *, prefix: bytes = b"") -> pd.DataFrame:
    """These columns of every row that a snapshot or transaction sees, or of those whose row keys have a prefix."""
    schema = arrow_schema(mapping.to_struct(names))
    decoder = RowDecoder(mapping, schema)
    chosen = mapping.cells_of(names) or None
    found = view.scan_columns(mapping.table, mapping.cells, prefix=prefix, columns=chosen, batch_rows=DECODED_ROWS)
    batches = [decoder.decode(batch) for batch in found]
    frame: pd.DataFrame = pa.Table.from_batches(batches, schema).to_pandas()
    return frame


def read_summary(view: Readable, mapping: TableMapping, summary: Summary) -> Totals:
    """A summary as a snapshot or transaction sees it."""
    return totals_of_frame(scan_frame(view, mapping, (*summary.keys, *MEASURES)), summary)


def totals_of_frame(frame: pd.DataFrame, summary: Summary) -> Totals:
    """The rows of a summary table as a DataFrame, by key."""
    keys = frame[list(summary.keys)].to_numpy(object).tolist()
    values = frame[list(MEASURES)].to_numpy("int64").tolist()
    return {tuple(key): Measures(*row) for key, row in zip(keys, values, strict=True)}


def frame_of_totals(totals: Totals, summary: Summary) -> pd.DataFrame:
    """The inverse of ``totals_of_frame``."""
    return pd.DataFrame([(*key, *measures) for key, measures in totals.items()], columns=[*summary.keys, *MEASURES])


def arrow_table(mapping: TableMapping, frame: pd.DataFrame) -> pa.Table:
    """The columns of a table out of a DataFrame, in the table's types."""
    return pa.Table.from_pandas(frame, schema=arrow_schema(mapping.to_struct()), preserve_index=False)


def put_frame(transaction: Writable, mapping: TableMapping, frame: pd.DataFrame) -> None:
    """Write each row of a DataFrame through the client library."""
    for row, columns in _encoded(mapping, frame):
        transaction.put(mapping.table, row, columns)


def _encoded(mapping: TableMapping, frame: pd.DataFrame) -> Iterator[tuple[bytes, dict[bytes, bytes]]]:
    for batch in arrow_table(mapping, frame).to_batches():
        for row, stored in RowEncoder(mapping).encode(batch).puts():
            decoded = {column: decode_value(value) for column, value in stored.items() if not is_reserved(column)}
            yield row, {column: value for column, value in decoded.items() if value is not None}
