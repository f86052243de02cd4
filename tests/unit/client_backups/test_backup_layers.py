"""A table's rows from a whole file and from files of what changed: of each row what the newest one says."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from client import ChangedColumns
from client.backups import cell_files
from client.backups.cell_files import SCHEMA_OF_CHANGES, read_lines, to_columns, write_cells, write_changes
from client.backups.errors import DamagedBackup
from client.backups.layers import merged
from client.backups.layout import TableBackup, TableFile
from client.catalog.entry import CatalogEntry
from client.snapshots.reading import in_columns
from tests.unit.client_backups.conftest import CONTENT, WITHOUT_CELLS
from tests.unit.client_backups.test_backup_files import ENTRY, ROWS

Changes = Mapping[bytes, Mapping[bytes, bytes] | None]
SINCE = 9

CHANGES = st.tuples(ROWS, st.sets(st.binary(min_size=1, max_size=4), max_size=6)).map(
    lambda drawn: {**drawn[0], **dict.fromkeys(drawn[1])}
)


def changed(path: Path, changes: Changes, batch_rows: int = 5) -> TableBackup:
    """A file of what changed."""
    rows = sorted(changes.items())
    batches: list[ChangedColumns] = []
    for first in range(0, len(rows), batch_rows):
        batch = rows[first : first + batch_rows]
        deleted = np.array([values is None for _, values in batch])
        pieces = in_columns([(row, values or {}) for row, values in batch], None, batch_rows)
        batches += ChangedColumns.of_pieces(pieces, deleted, np.zeros(len(batch), np.int64))
    return TableBackup("t", ENTRY, write_changes(path, batches, lambda rows: None), SINCE)


def together(files: Sequence[tuple[Path, TableBackup]]) -> list[tuple[bytes, Mapping[bytes, bytes]]]:
    """Of the newest file first."""
    return [
        (put.row, put.columns)
        for lines in merged([read_lines(path, one) for path, one in files])
        for cells in to_columns(lines, files[0][0])
        for put in cells.puts()
    ]


@given(
    rows=ROWS,
    later=st.lists(CHANGES, max_size=4),
    lines_max=st.integers(1, 9),
    places_max=st.integers(1, 20),
    batch_rows=st.integers(1, 5),
)
@example(  # a row of the two older files, beside one of the newest
    rows={b"b": {b"f:x": b"0"}},
    later=[{b"b": {b"f:x": b"1"}}, {b"a": {b"f:x": b"2"}, b"c": {b"f:x": b"2"}}],
    lines_max=9,
    places_max=20,
    batch_rows=5,
)
def test_they_are_what_the_changes_made_of_them_one_after_the_other(
    tmp_path_factory: pytest.TempPathFactory,
    rows: dict[bytes, dict[bytes, bytes]],
    later: list[Changes],
    lines_max: int,
    places_max: int,
    batch_rows: int,
) -> None:
    directory = tmp_path_factory.mktemp("layers")
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(cell_files, "GROUP_LINES_MAX", lines_max)
        patched.setattr(cell_files, "PLACES_MAX", places_max)
        path = directory / "whole.parquet"
        batches = in_columns(sorted(rows.items()), None, batch_rows)
        files = [(path, TableBackup("t", ENTRY, write_cells(path, batches, lambda rows: None)))]
        want: dict[bytes, Any] = dict(rows)
        for number, changes in enumerate(later):
            path = directory / f"{number}.parquet"
            files.insert(0, (path, changed(path, changes, batch_rows)))
            want.update(changes)
        assert together(files) == sorted((row, values) for row, values in want.items() if values is not None)
    for (_, one), changes in zip(reversed(files[:-1]), later, strict=True):
        counted = (one.file.rows, one.file.cells, one.file.deleted)
        cells = sum(map(len, filter(None, changes.values())))
        assert counted == (len(changes), cells, sum(values is None for values in changes.values()))


def test_a_row_that_is_gone_and_one_without_cells_are_told_apart(tmp_path: Path) -> None:
    path, whole = tmp_path / "t.parquet", tmp_path / "whole.parquet"
    first = TableBackup("t", ENTRY, write_cells(whole, in_columns(sorted(CONTENT.items()), None, 2), lambda rows: None))
    later = changed(path, {WITHOUT_CELLS: None, b"wide": {}})
    want = {**CONTENT, b"wide": {}}
    del want[WITHOUT_CELLS]
    assert together([(path, later), (whole, first)]) == sorted(want.items())


@pytest.mark.parametrize(
    ("lines", "why"),
    [
        ([(b"a", b"f:a", b"1", True)], "a row is deleted, and has cells"),
        ([(b"a", None, None, True), (b"a", None, None, True)], "or is deleted twice"),
        ([(b"a", None, None, True), (b"a", b"f:a", b"1", False)], "a row is deleted, and has cells"),
        ([(b"a", b"f:a", b"1", False), (b"a", None, None, True)], "a row is deleted, and has cells"),
        ([(b"a", None, None, False)], "has 1 rows, 0 of them deleted, and 0 cells, and 1, 1 and 0 were written"),
    ],
)
def test_what_no_change_can_have_been_is_refused(tmp_path: Path, lines: Sequence[Any], why: str) -> None:
    path = tmp_path / "t.parquet"
    columns = [pa.array([line[place] for line in lines]) for place in range(4)]
    arrays = [array.cast(field.type) for array, field in zip(columns, SCHEMA_OF_CHANGES, strict=True)]
    pa.parquet.write_table(pa.table(arrays, schema=SCHEMA_OF_CHANGES), path)
    one = TableBackup("t", ENTRY, TableFile("t.parquet", 0, "", 1, 0, 1), SINCE)
    with pytest.raises(DamagedBackup, match=why):
        list(read_lines(path, one))


def test_a_file_of_changes_is_not_taken_for_one_of_all_rows(tmp_path: Path) -> None:
    path = tmp_path / "t.parquet"
    one = changed(path, {b"a": None})
    with pytest.raises(DamagedBackup, match="has other columns than a backup's file"):
        list(read_lines(path, TableBackup("t", CatalogEntry("row", ("f", "g")), one.file)))
