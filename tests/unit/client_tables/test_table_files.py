"""Files as streams: read in pieces, as what they say and not as their beginning looks."""

from __future__ import annotations

import os
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet
import pytest

from client.tables import files
from client.tables.errors import UnreadableFile
from client.tables.files import CsvDialect, DataFile, digest, format_of
from client.tables.supply import Piece


@pytest.fixture(autouse=True)
def _small_pieces(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(files, "CSV_BLOCK_BYTES", 64)
    monkeypatch.setattr(files, "PARQUET_BATCH_ROWS", 3)


def text(path: Path, content: str) -> DataFile:
    path.write_text(content)
    return DataFile(path, "csv")


def test_a_csv_file_is_read_in_blocks_as_text_whatever_its_beginning_looks_like(tmp_path: Path) -> None:
    lines = [(str(number), f"{number}\n,\n") for number in range(50)] + [("fifty", "x")]
    file = text(tmp_path / "f.csv", "k,v\n" + "".join(f'{key},"{value}"\n' for key, value in lines))
    assert file.schema() == pa.schema({"k": pa.string(), "v": pa.string()})
    pieces = list(file.pieces())
    assert len(pieces) > 5
    assert [tuple(row.values()) for piece in pieces for row in piece.batch.to_pylist()] == lines
    assert [piece.batch.column(0)[0].as_py() for piece in pieces if piece.first_row <= 50] == [
        str(piece.first_row - 1) for piece in pieces if piece.first_row <= 50
    ]


def test_a_parquet_file_is_read_in_batches(tmp_path: Path) -> None:
    pa.parquet.write_table(pa.table({"k": range(7)}), tmp_path / "f")
    pieces = list(DataFile(tmp_path / "f", "parquet").pieces())
    assert [(piece.first_row, piece.batch.num_rows) for piece in pieces] == [(1, 3), (4, 3), (7, 1)]


def test_a_parquet_file_with_large_rows_is_read_in_batches_of_fewer(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(files, "PARQUET_BATCH_ROWS", 10_000)
    texts = [str(number) * 2**20 for number in range(10, 30)]
    pa.parquet.write_table(pa.table({"t": texts}), tmp_path / "f", row_group_size=7, compression="none")
    pieces = list(DataFile(tmp_path / "f", "parquet").pieces())
    assert max(piece.batch.num_rows for piece in pieces) <= 4
    assert [text for piece in pieces for text in piece.batch.column(0).to_pylist()] == texts


def test_a_line_that_is_longer_than_a_block_is_refused(tmp_path: Path) -> None:
    with pytest.raises(UnreadableFile, match=r"f\.csv cannot be read as csv: .*block"):
        list(text(tmp_path / "f.csv", f"k,v\n1,{'x' * 200}\n").pieces())


@pytest.mark.parametrize("cut", ['"', '"x', '"x\n', '"x,y', '"x""', '"x,""', '"x\n1,b\n1,c\n', '"' + "long" * 8])
@pytest.mark.parametrize("rows", [0, 50])
def test_a_file_that_ends_within_quotes_is_refused_before_its_last_row_is_given(
    tmp_path: Path, cut: str, rows: int
) -> None:
    given: list[Piece] = []
    with pytest.raises(UnreadableFile, match=r"f\.csv ends within a field that has an opening quote"):
        given.extend(text(tmp_path / "f.csv", "k,v\n" + "1,x\n" * rows + f"2,{cut}").pieces())
    assert sum(piece.batch.num_rows for piece in given) <= rows


@pytest.mark.parametrize("end", ["", "\n", "\r\n", "\n\n"])
@pytest.mark.parametrize(
    ("field", "value"),
    [
        ('""', ""),
        ('"x"', "x"),
        ('"""x"""', '"x"'),
        ('"x"""', 'x"'),
        ('","""', ',"'),
        ('""""', '"'),
        ('"\n"', "\n"),
        ('",""\n"', ',"\n'),
        ('x"', 'x"'),
        ("", None),
    ],
)
def test_a_file_whose_quotes_are_closed_is_read_to_its_end(
    tmp_path: Path, field: str, value: str | None, end: str
) -> None:
    (piece,) = text(tmp_path / "f.csv", f"k,v\n2,{field}{end}").pieces()
    assert piece.batch.to_pylist() == [{"k": "2", "v": value}]


def test_what_is_wrong_further_down_is_said_when_it_is_met(tmp_path: Path) -> None:
    pieces = text(tmp_path / "f.csv", "k,v\n" + "1,2\n" * 100 + "1,2,3\n").pieces()
    assert next(pieces).batch.num_rows
    with pytest.raises(UnreadableFile, match="Expected 2 columns, got 3"):
        list(pieces)


def test_the_types_of_a_csv_file_are_guessed_for_a_table_like_it(tmp_path: Path) -> None:
    file = text(tmp_path / "f.csv", "a,b,c\n1,2026-11-21,x\n")
    assert file.guessed_schema() == pa.schema({"a": pa.int64(), "b": pa.date32(), "c": pa.string()})


@pytest.mark.parametrize(
    ("name", "given", "expected"),
    [("a.CSV", None, "csv"), ("a.parquet", None, "parquet"), ("a.csv", "parquet", "parquet"), ("a", "csv", "csv")],
)
def test_the_format_is_what_is_given_else_what_the_name_says(
    name: str, given: files.FileFormat | None, expected: str
) -> None:
    assert format_of(Path(name), given) == expected


def test_a_digest_tells_contents_order_and_reading_apart_and_nothing_else(tmp_path: Path) -> None:
    first, second = text(tmp_path / "1", "a\n"), text(tmp_path / "2", "b\n")
    tabs = DataFile(first.path, "csv", CsvDialect("\t"))
    digests = [digest(chosen) for chosen in ([first], [second], [first, second], [second, first], [tabs], [])]
    assert len(set(digests)) == len(digests)
    assert digest([text(tmp_path / "3", "a\n")]) == digest([first])


@pytest.mark.timeout(30)
@pytest.mark.parametrize("file_format", ["csv", "parquet"])
def test_a_pipe_is_refused_before_anybody_waits_for_who_writes_it(
    tmp_path: Path, file_format: files.FileFormat
) -> None:
    os.mkfifo(tmp_path / "pipe")
    pipe = DataFile(tmp_path / "pipe", file_format)
    for read in (pipe.schema, pipe.guessed_schema, lambda: list(pipe.pieces()), lambda: digest([pipe])):
        with pytest.raises(UnreadableFile, match="pipe is not a regular file: write what it would give to one"):
            read()
