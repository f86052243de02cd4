"""CSV and Parquet files as streams of record batches, in bounded memory.

A CSV file is read as text only, and the table says what the text means (``client.tables.casting``): Arrow's own guesses
look at the first block and would refuse, or misread, what comes later. In it an empty field is a null, and a quoted
empty field an empty text, as Arrow writes them.

Arrow takes a quote that nothing closes for one that the end of the file closes: what was cut off, and lines that a
stray quote makes part of a field, would be a value. So the end of a CSV file is looked at before its last row is given.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from stat import S_ISREG
from typing import Final, Literal, get_args

import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet

from client.bulk_writes.batching import rows_of_a_piece
from client.tables.errors import UnreadableFile
from client.tables.supply import Piece

FileFormat = Literal["csv", "parquet"]
FORMATS: Final[tuple[FileFormat, ...]] = get_args(FileFormat)

CSV_BLOCK_BYTES: Final = 4 * 2**20
"""What is read of a CSV file at a time; a row has to fit."""
PARQUET_BUFFER_BYTES: Final = 2**20
PARQUET_BATCH_ROWS: Final = 10_000
"""Read at a time, fewer of large rows."""


@dataclass(frozen=True, slots=True)
class CsvDialect:
    """How a CSV file is written: what stands between fields, and which unquoted texts mean null beside none at all."""

    delimiter: str = ","
    nulls: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class DataFile:
    """A file with rows. Every method raises ``UnreadableFile``."""

    path: Path
    format: FileFormat
    dialect: CsvDialect = CsvDialect()

    def schema(self) -> pa.Schema:
        """The columns; of a CSV file all of them text."""
        with self._explained():
            if self.format == "parquet":
                with pa.parquet.ParquetFile(self.path) as file:
                    return file.schema_arrow
            with self._open_csv(self._column_names()) as reader:
                return reader.schema

    def guessed_schema(self) -> pa.Schema:
        """The columns, and of a CSV file the types that its first ``CSV_BLOCK_BYTES`` suggest."""
        if self.format == "parquet":
            return self.schema()
        with self._explained(), self._open_csv(()) as reader:
            return reader.schema

    def rows_known(self) -> int:
        """How many rows it has, where it says so itself; 0 of a CSV file, which has to be read for that."""
        if self.format == "csv":
            return 0
        with self._explained(), pa.parquet.ParquetFile(self.path) as file:
            rows: int = file.metadata.num_rows
            return rows

    def pieces(self) -> Iterator[Piece]:
        """All rows in order."""
        first_row = 1
        with self._explained():
            for batch in self._parquet() if self.format == "parquet" else self._csv():
                yield Piece(str(self.path), first_row, batch)
                first_row += batch.num_rows

    def require_regular(self) -> None:
        """Raise ``UnreadableFile`` for a pipe, which can be read once only, and what else is not a file on a disk."""
        if not S_ISREG(self.path.stat().st_mode):
            raise UnreadableFile(f"{self.path} is not a regular file: write what it would give to one, and name that")

    def _parquet(self) -> Iterator[pa.RecordBatch]:
        with pa.parquet.ParquetFile(self.path, buffer_size=PARQUET_BUFFER_BYTES, pre_buffer=False) as file:
            groups = (file.metadata.row_group(number) for number in range(file.metadata.num_row_groups))
            size_bytes = sum(group.total_byte_size for group in groups)
            yield from file.iter_batches(rows_of_a_piece(file.metadata.num_rows, size_bytes, PARQUET_BATCH_ROWS))

    def _csv(self) -> Iterator[pa.RecordBatch]:
        last: pa.RecordBatch | None = None
        with self._open_csv(self._column_names()) as reader:
            for batch in reader:
                if batch.num_rows:
                    if last is not None:
                        yield last
                    last = batch
        if last is not None:
            self._require_closed_quotes(last)
            yield last

    def _require_closed_quotes(self, last: pa.RecordBatch) -> None:
        """Raise ``UnreadableFile`` where the last field, of the last rows ``last``, is quoted and has no closing quote.

        Then the file ends with the delimiter, a quote and that field's value, which no other file does. (A file of one
        column has no delimiter, and no table takes it.)
        """
        value = last.column(last.num_columns - 1)[-1].as_py()
        if value is None:
            return
        end = b'%b"%b' % (self.dialect.delimiter.encode(), value.encode().replace(b'"', b'""'))
        with self.path.open("rb") as file:
            file.seek(max(0, self.path.stat().st_size - len(end)))
            is_open = file.read() == end
        if is_open:
            raise UnreadableFile(
                f"{self.path} ends within a field that has an opening quote and no closing one, and begins with "
                f"{value[:40]!r}: the file was cut off, or a quote in it is missing or not doubled"
            )

    def _column_names(self) -> list[str]:
        with self._open_csv(()) as reader:
            return list(reader.schema.names)

    def _open_csv(self, texts: Iterable[str]) -> pa.csv.CSVStreamingReader:
        """Read with the columns of these names as text, and those of others as they look."""
        return pa.csv.open_csv(
            self.path,
            read_options=pa.csv.ReadOptions(block_size=CSV_BLOCK_BYTES, use_threads=False),
            parse_options=pa.csv.ParseOptions(delimiter=self.dialect.delimiter, newlines_in_values=True),
            convert_options=pa.csv.ConvertOptions(
                column_types=dict.fromkeys(texts, pa.string()),
                null_values=["", *self.dialect.nulls],
                strings_can_be_null=True,
                quoted_strings_can_be_null=False,
            ),
        )

    @contextmanager
    def _explained(self) -> Iterator[None]:
        try:
            self.require_regular()
            yield
        except (OSError, pa.ArrowException) as error:
            reason = getattr(error, "strerror", None) or error  # of the system's the words, without number and path
            raise UnreadableFile(f"{self.path} cannot be read as {self.format}: {reason}") from error


def format_of(path: Path, given: FileFormat | None) -> FileFormat:
    """The format that was given, else what the file's name ends with. Raises ``UnreadableFile``."""
    ending = path.suffix.lower().lstrip(".")
    chosen = given or next((known for known in FORMATS if known == ending), None)
    if chosen is None:
        raise UnreadableFile(f"{path}: its name does not end with .csv or .parquet, so say --format csv or parquet")
    return chosen


def digest(files: Sequence[DataFile]) -> str:
    """What tells an import from others: the contents of its files, in order, and how they are read."""
    whole = hashlib.sha256()
    for file in files:
        try:
            file.require_regular()
            content = sha256_of(file.path)
        except OSError as error:
            raise UnreadableFile(f"{file.path} cannot be read: {error}") from error
        whole.update(repr((file.format, file.dialect, content)).encode())
    return whole.hexdigest()


def sha256_of(path: Path) -> str:
    """Of a file's bytes, in hexadecimal digits. Raises ``OSError``."""
    with path.open("rb") as opened:
        return hashlib.file_digest(opened, "sha256").hexdigest()
