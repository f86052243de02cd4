"""A backup is one moment of all tables, whole, under a name that nothing had before."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from client import InvalidRequest, TransactionManager
from client.backups import naming
from client.backups.creating import create
from client.backups.layout import CONTENTS, Backup
from client.backups.opening import check, open_backup
from client.tables.errors import UnreadableFile
from client.tables.record import ImportRecord
from client.tables.unfinished import UNFINISHED
from commit_table import system_table
from store import StoreUnavailable
from store.faults import Fault
from tests.unit.client_backups.conftest import CONTENT, MAPPING, A, Content, nothing_told

if TYPE_CHECKING:
    from tests.unit.client.conftest import Installation


def saved(directory: Path) -> dict[str, Content]:
    """All rows of a backup, with those that it is based on."""
    return {
        one.table.table: {put.row: dict(put.columns) for cells in one.rows() for put in cells.puts()}
        for one in open_backup(directory).tables()
    }


def made(manager: TransactionManager, directory: Path, *names: str) -> Backup:
    return create(manager, manager.snapshot(), names, directory, nothing_told)


def test_it_holds_every_table_as_one_snapshot_shows_it(filled: TransactionManager, tmp_path: Path) -> None:
    ImportRecord(filled, "t", "something that landed")  # has a table of its own, which is in no backup
    snapshot = filled.snapshot()
    with filled.transaction() as later:
        later.put("t", b"later", {A: b"x"})
    told: list[tuple[str, int, bool]] = []
    backup = create(filled, snapshot, [], tmp_path / "b", lambda *so_far: told.append(so_far))
    assert backup.snapshot == snapshot.timestamp
    assert check(tmp_path / "b", lambda table: None).newest == backup
    found = saved(tmp_path / "b")
    assert found == {"t": CONTENT, "typed": {}}
    assert told == [("t", len(CONTENT), False), ("t", len(CONTENT), True), ("typed", 0, True)]
    plain, typed = (one.entry for one in backup.tables)
    assert (plain.conflict_level, plain.families, plain.description) == ("cell", ("f", "g"), b"")
    assert (typed.conflict_level, typed.families, typed.description) == ("row", ("h",), MAPPING.to_json().encode())
    assert sorted(path.name for path in tmp_path.iterdir()) == ["b"]


def test_it_holds_the_tables_that_were_named_once(filled: TransactionManager, tmp_path: Path) -> None:
    assert [one.table for one in made(filled, tmp_path / "b", "typed", "typed").tables] == ["typed"]


@pytest.mark.parametrize(
    ("name", "why"),
    [
        ("nowhere", "Pythia knows no table 'nowhere'"),
        (system_table("/pythia", "commits"), "Pythia's own"),
        (system_table("/pythia", "imports"), "record of what landed in other tables"),
    ],
)
def test_what_is_no_table_of_ones_own_is_refused(
    filled: TransactionManager, tmp_path: Path, name: str, why: str
) -> None:
    with pytest.raises(InvalidRequest, match=why):
        made(filled, tmp_path / "b", "t", name)
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("is_file", [True, False])
def test_what_is_there_is_left_alone(filled: TransactionManager, tmp_path: Path, is_file: bool) -> None:
    if is_file:
        (tmp_path / "b").write_text("mine")
    else:
        (tmp_path / "b").mkdir()
    with pytest.raises(UnreadableFile, match="exists already"):
        made(filled, tmp_path / "b")
    assert [path.name for path in tmp_path.iterdir()] == ["b"]


def test_what_came_meanwhile_is_left_alone(
    filled: TransactionManager, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def meanwhile(table: str, rows: int, all_of_it: bool) -> None:
        if all_of_it:
            return
        (tmp_path / "b").mkdir()
        (tmp_path / "b" / "mine").touch()

    with pytest.raises(UnreadableFile, match="cannot be written: Directory not empty"):
        create(filled, filled.snapshot(), ["t"], tmp_path / "b", meanwhile)
    assert [path.name for path in tmp_path.rglob("*")] == ["b", "mine"]


def test_one_that_fails_leaves_nothing(filled: TransactionManager, installation: Installation, tmp_path: Path) -> None:
    def fail(table: str, rows: int, all_of_it: bool) -> None:
        installation.store.plan("scan", Fault.DONE)

    with pytest.raises(StoreUnavailable):
        create(filled, filled.snapshot(), ["t", "typed"], tmp_path / "b", fail)
    assert not list(tmp_path.iterdir())


def test_it_has_its_name_only_once_all_of_it_is_on_the_disk(
    filled: TransactionManager, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    kept: list[str] = []

    def keep(path: Path) -> None:
        kept.append(path.name)
        assert (tmp_path / "b").exists() == (path == tmp_path)

    monkeypatch.setattr(naming, "keep", keep)
    made(filled, tmp_path / "b")
    assert sorted(kept[:3]) == sorted([CONTENTS, "t.parquet", "typed.parquet"])
    assert kept[3].endswith(UNFINISHED)
    assert kept[4:] == [tmp_path.name]


def test_a_place_that_cannot_be_written_is_told(filled: TransactionManager, tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    for place, why in (
        (tmp_path / "file" / "b", "Not a directory"),
        (tmp_path / ("b" * 300), "File name too long"),
    ):
        with pytest.raises(UnreadableFile, match=f"cannot be written: {why}$"):
            made(filled, place)
