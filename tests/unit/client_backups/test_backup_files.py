"""The cells of a table in a file: they come back as they were, or the file is refused."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet
import pytest
from hypothesis import given
from hypothesis import strategies as st

from client.backups import cell_files
from client.backups.cell_files import SCHEMA, read_lines, require_whole, to_columns, write_cells
from client.backups.errors import DamagedBackup
from client.backups.layout import TableBackup, TableFile
from client.catalog.entry import CatalogEntry
from client.snapshots.reading import in_columns
from store import RowPut
from store.columns import CellColumns
from tests.unit.client_backups.conftest import CONTENT

ENTRY = CatalogEntry("row", ("f", "g"))
ROWS = st.dictionaries(
    st.binary(min_size=1, max_size=4),
    st.dictionaries(
        st.tuples(st.sampled_from([b"f:", b"g:"]), st.binary(max_size=3).filter(lambda it: it[:1] != b"\0")).map(
            lambda it: it[0] + it[1]
        ),
        st.binary(max_size=5),
        max_size=4,
    ),
    max_size=12,
)


def written(path: Path, rows: Mapping[bytes, Mapping[bytes, bytes]]) -> TableBackup:
    return TableBackup("t", ENTRY, write_cells(path, in_batches(rows, 5), lambda rows: None))


def read(path: Path, backup: TableBackup) -> list[RowPut]:
    """The rows of a file from which nothing is deleted."""
    return [put for lines in read_lines(path, backup) for cells in to_columns(lines, path) for put in cells.puts()]


def in_batches(rows: Mapping[bytes, Mapping[bytes, bytes]], batch_rows: int) -> Iterator[CellColumns]:
    """As a scan gives them."""
    return in_columns(sorted(rows.items()), None, batch_rows)


@given(rows=ROWS, lines_max=st.integers(1, 9), places_max=st.integers(1, 20))
def test_rows_come_back_as_they_were(
    tmp_path_factory: pytest.TempPathFactory, rows: dict[bytes, dict[bytes, bytes]], lines_max: int, places_max: int
) -> None:
    path = tmp_path_factory.mktemp("cells") / "t.parquet"
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(cell_files, "GROUP_LINES_MAX", lines_max)
        patched.setattr(cell_files, "PLACES_MAX", places_max)
        backup = written(path, rows)
        assert read(path, backup) == sorted(rows.items())
    assert (backup.file.rows, backup.file.cells) == (len(rows), sum(map(len, rows.values())))
    assert backup.file.bytes == path.stat().st_size
    require_whole(path, backup.file)


def test_no_more_is_held_than_a_group_of_so_many_bytes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cell_files, "GROUP_BYTES_MAX", 1_000)
    rows = {b"%04d" % number: {b"f:a": b"x" * 400} for number in range(10)}
    told: list[int] = []
    for batch_rows in (1, 2, 3, 4, 7, 10):
        told.clear()
        write_cells(tmp_path / "t.parquet", in_batches(rows, batch_rows), told.append)
        assert told == [3, 6, 9, 10]
        with pa.parquet.ParquetFile(tmp_path / "t.parquet") as file:
            assert file.num_row_groups == 4


@pytest.mark.parametrize("place", [0, 100, -1])
def test_a_file_of_which_a_byte_has_changed_is_refused(tmp_path: Path, place: int) -> None:
    path = tmp_path / "t.parquet"
    backup = written(path, CONTENT)
    data = bytearray(path.read_bytes())
    data[place] ^= 1
    path.write_bytes(data)
    with pytest.raises(DamagedBackup, match="is not what was written"):
        require_whole(path, backup.file)


def test_a_file_that_cannot_be_read_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "t.parquet"
    backup = written(path, CONTENT)
    path.unlink()
    with pytest.raises(DamagedBackup, match=r"t\.parquet cannot be read: No such file or directory$"):
        require_whole(path, backup.file)
    path.write_bytes(b"PAR1 and no more")
    with pytest.raises(DamagedBackup, match="cannot be read"):
        read(path, backup)


@pytest.mark.parametrize(
    ("lines", "why"),
    [
        ([(b"b", b"f:a", b""), (b"a", b"f:a", b"")], "not in the order of their keys"),
        ([(b"a", b"f:a", b""), (b"b", b"f:a", b""), (b"a", b"f:b", b"")], "not in the order of their keys"),
        ([(b"a", b"f:a", b"1"), (b"a", b"f:a", b"2")], "columns twice"),
        ([(b"a", None, None), (b"a", b"f:a", b"1")], "twice, or none and another"),
        ([(b"a", b"f:a", b"1"), (b"a", None, None)], "twice, or none and another"),
        ([(b"a", None, None), (b"a", None, None)], "twice, or none and another"),
        ([(b"a", b"f:a", None)], "a column without a value"),
        ([(b"a", None, b"1")], "a value without a column"),
        ([(b"a", b"h:a", b"1")], "which its table cannot have"),
        ([(b"a", b"f", b"1")], "which its table cannot have"),
        ([(b"a", b"f:\x00row", b"1")], "which its table cannot have"),
        ([(b"", b"f:a", b"1")], "a row key has 1 to"),
        ([(b"a", b"f:a", b"1")], "has 1 rows, 0 of them deleted, and 1 cells, and 2, 0 and 1 were written"),
        ([], "has 0 rows, 0 of them deleted, and 0 cells, and 2, 0 and 1 were"),
    ],
)
def test_what_no_snapshot_can_have_shown_is_refused(tmp_path: Path, lines: Sequence[Any], why: str) -> None:
    path = tmp_path / "t.parquet"
    columns = [pa.array([line[place] for line in lines], pa.binary()) for place in range(3)]
    pa.parquet.write_table(pa.table(columns, schema=SCHEMA), path)
    with pytest.raises(DamagedBackup, match=why):
        read(path, TableBackup("t", ENTRY, TableFile("t.parquet", 0, "", 2, 1)))


def test_a_file_of_another_kind_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "t.parquet"
    pa.parquet.write_table(pa.table({"row": [b"a"]}), path)
    with pytest.raises(DamagedBackup, match="has other columns than a backup's file"):
        read(path, TableBackup("t", ENTRY, TableFile("t.parquet", 0, "", 1, 0)))
