"""The job that people write today: HappyBase in the tasks of a Spark job, row by row, values as text."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Final

import happybase
from pyspark.sql import Row

BATCH_ROWS: Final = 1_000
_DIGITS: Final = 8


def write_rows(thrift: str, table: str, key: Sequence[str], rows: Iterable[Row]) -> None:
    """What a task does: a connection, a batch, a put for each row. Keys are text that sorts as the numbers do."""
    host, _, port = thrift.rpartition(":")
    connection = happybase.Connection(host, int(port))
    with connection.table(table).batch(batch_size=BATCH_ROWS) as batch:
        for row in rows:
            values = row.asDict()
            row_key = "/".join(str(values[name]).zfill(_DIGITS) for name in key)
            cells = {f"f:{name}".encode(): str(value).encode() for name, value in values.items() if value is not None}
            batch.put(row_key.encode(), cells)
    connection.close()


def read_rows(
    thrift: str, table: str, names: Sequence[str], key_range: tuple[bytes | None, bytes | None]
) -> Iterator[tuple[str | None, ...]]:
    """A range of rows: the columns ``names`` as text, as a DataFrame takes them."""
    host, _, port = thrift.rpartition(":")
    connection = happybase.Connection(host, int(port))
    start, stop = key_range
    for _, cells in connection.table(table).scan(row_start=start, row_stop=stop, batch_size=BATCH_ROWS):
        row = {column.decode().removeprefix("f:"): value.decode() for column, value in cells.items()}
        yield tuple(row.get(name) for name in names)
    connection.close()


def key_ranges(thrift: str, table: str, parts: int) -> list[tuple[bytes | None, bytes | None]]:
    """A table in parts of about as many rows each: every so many-th of its first column of text."""
    host, _, port = thrift.rpartition(":")
    connection = happybase.Connection(host, int(port))
    keys = [row for row, _ in connection.table(table).scan(filter=b"KeyOnlyFilter() AND FirstKeyOnlyFilter()")]
    connection.close()
    cuts = [keys[len(keys) * part // parts] for part in range(1, parts)]
    return list(zip([None, *cuts], [*cuts, None], strict=True))
