"""Tables made anew from a backup: as they were, once, and never over what somebody has."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from client import InvalidRequest, TransactionManager
from client.backups.creating import create, merge
from client.backups.errors import DamagedBackup
from client.backups.layout import CONTENTS
from client.backups.opening import open_backup
from client.backups.restoring import restore
from client.spark import table_mapping
from client.tables.errors import UnreadableFile
from client.tables.steps import Landed
from commit_table import system_table
from store import ALL_ROWS, Family, RowPut, StoreUnavailable
from store.faults import Fault
from tests.unit.client.conftest import SETTINGS
from tests.unit.client_backups.conftest import CONTENT, MAPPING, A, content, nothing_told

if TYPE_CHECKING:
    from tests.unit.client.conftest import Installation

ROWS = len(CONTENT)


@pytest.fixture
def saved(filled: TransactionManager, tmp_path: Path) -> Path:
    """A backup of both tables."""
    create(filled, filled.snapshot(), [], tmp_path / "b", nothing_told)
    return tmp_path / "b"


def restored(
    manager: TransactionManager, saved: Path, *names: str, rows: int = 100, prefix: str = ""
) -> dict[str, Landed]:
    return restore(manager, saved, names, rows, nothing_told, prefix=prefix)


@pytest.mark.parametrize(("rows", "transactions"), [(1, 5), (2, 3), (5, 1), (100, 1)])
def test_tables_are_as_they_were(manager: TransactionManager, saved: Path, rows: int, transactions: int) -> None:
    manager.drop_table("t")
    manager.drop_table("typed")
    assert restored(manager, saved, rows=rows) == {"t": Landed(0, ROWS, transactions), "typed": Landed(0, 0, 0)}
    assert content(manager) == CONTENT
    assert list(content(manager)) == list(CONTENT)
    assert manager.catalog.fresh_entry("t").to_make_anew() == open_backup(saved).newest.tables[0].entry
    assert table_mapping(manager, "typed") == MAPPING


@pytest.mark.parametrize("thrift2", ["g:1", ""])
def test_they_have_the_regions_that_they_had_where_that_can_be(
    installation: Installation, tmp_path: Path, thrift2: str
) -> None:
    manager = installation.manager(settings=replace(SETTINGS, thrift2=thrift2))
    manager.create_table("parted", ["f"], split_keys=[b"m", b"d"])
    with manager.transaction() as transaction:
        for row in (b"a", b"d", b"z"):
            transaction.put("parted", row, {A: row})
    create(manager, manager.snapshot(), ["parted"], tmp_path / "b", nothing_told)
    merge(tmp_path / "b", tmp_path / "merged", nothing_told)
    regions = installation.store.regions("parted")
    manager.drop_table("parted")
    restored(manager, tmp_path / "merged")
    assert installation.store.regions("parted") == (regions if thrift2 else [ALL_ROWS])
    assert len(regions) == 3
    assert content(manager, "parted") == {row: {A: row} for row in (b"a", b"d", b"z")}


def test_they_are_made_under_another_name(manager: TransactionManager, saved: Path) -> None:
    with manager.transaction() as since:
        since.put("t", b"since", {A: b"x"})
    assert list(restored(manager, saved, prefix="old_")) == ["old_t", "old_typed"]
    assert content(manager, "old_t") == CONTENT
    assert b"since" in content(manager)
    assert table_mapping(manager, "old_typed").table == "old_typed"
    assert table_mapping(manager, "old_typed").columns == MAPPING.columns


def test_a_mapping_that_another_release_wrote_is_kept_to_the_byte(
    manager: TransactionManager, installation: Installation, tmp_path: Path
) -> None:
    written = MAPPING.to_json().replace(", ", ",  ").encode()
    manager.create_table("typed", MAPPING.families, conflict_level="row", description=written)
    create(manager, manager.snapshot(), ["typed"], tmp_path / "b", nothing_told)
    assert list(restored(manager, tmp_path / "b")) == ["typed"]
    assert manager.catalog.fresh_entry("typed").description == written


def test_what_was_adopted_comes_back_as_a_table_of_our_own(
    manager: TransactionManager, installation: Installation, tmp_path: Path
) -> None:
    installation.store.create_table("old", [Family("f"), Family("g")])
    there = {row: cells for row, cells in CONTENT.items() if cells}
    installation.store.put("old", [RowPut(row, cells) for row, cells in there.items()], 1_700_000_000_000)
    manager.adopt_table("old")
    create(manager, manager.snapshot(), ["old"], tmp_path / "b", nothing_told)
    assert restored(manager, tmp_path / "b", prefix="new_") == {"new_old": Landed(0, len(there), 1)}
    assert content(manager, "new_old") == content(manager, "old") == there
    assert manager.catalog.fresh_entry("new_old").plain_through == 0


def test_a_name_in_a_namespace_keeps_that(
    manager: TransactionManager, installation: Installation, tmp_path: Path
) -> None:
    manager.create_table("space:t", ["f"], description=b"\xff no mapping")
    create(manager, manager.snapshot(), ["space:t"], tmp_path / "b", nothing_told)
    assert list(restored(manager, tmp_path / "b", prefix="old_")) == ["space:old_t"]
    assert manager.catalog.fresh_entry("space:old_t").description == b"\xff no mapping"


def test_only_those_that_were_named(manager: TransactionManager, saved: Path) -> None:
    assert list(restored(manager, saved, "typed", prefix="old_")) == ["old_typed"]
    assert not manager.catalog.has_entry("old_t")
    with pytest.raises(InvalidRequest, match="the backup has no table 'nowhere'; it has t, typed"):
        restored(manager, saved, "nowhere")


def test_it_goes_on_after_the_last_row_that_landed(
    manager: TransactionManager, installation: Installation, saved: Path
) -> None:
    def fail(table: str, rows: int, landed: bool) -> None:
        if landed and rows == 2:
            installation.store.plan("put", None, None, Fault.DONE)  # announced, recorded; then the rows

    with pytest.raises(StoreUnavailable):
        restore(manager, saved, ["t"], 2, fail, prefix="old_")
    first = list(CONTENT)[:2]
    assert content(manager, "old_t") == {row: CONTENT[row] for row in first}
    with manager.transaction() as changing:
        changing.put("old_t", first[0], {A: b"changed since"})
    assert restored(manager, saved, "t", rows=2, prefix="old_") == {"old_t": Landed(2, 3, 2)}
    assert restored(manager, saved, "t", rows=2, prefix="old_") == {"old_t": Landed(5, 0, 0)}
    assert content(manager, "old_t") == CONTENT | {first[0]: CONTENT[first[0]] | {A: b"changed since"}}


def test_two_at_once_land_nothing_twice(manager: TransactionManager, saved: Path) -> None:
    def other(table: str, rows: int, landed: bool) -> None:
        if landed and rows == 2:
            restored(manager, saved, "t", rows=1, prefix="old_")

    with pytest.raises(InvalidRequest, match="another process lands the same: it has landed 5 rows"):
        restore(manager, saved, ["t"], 2, other, prefix="old_")
    assert content(manager, "old_t") == CONTENT


def fill(manager: TransactionManager) -> None:
    manager.create_table("old_typed", MAPPING.families, conflict_level="row", description=_old_mapping())
    with manager.transaction() as transaction:
        transaction.put("old_typed", b"somebody's", {b"h:v": b"x"})


def make_otherwise(manager: TransactionManager) -> None:
    manager.create_table("old_typed", MAPPING.families, conflict_level="cell", description=_old_mapping())


def make_with_another_family(manager: TransactionManager) -> None:
    manager.create_table("old_typed", ["h", "i"], conflict_level="row", description=_old_mapping())


def make_with_another_mapping(manager: TransactionManager) -> None:
    manager.create_table("old_typed", MAPPING.families, conflict_level="row")


def _old_mapping() -> bytes:
    return MAPPING.to_json().replace('"typed"', '"old_typed"').encode()


@pytest.mark.parametrize(
    ("make", "why"),
    [
        (fill, "table 'old_typed' has rows already"),
        (make_otherwise, "there is a table 'old_typed' already, with other"),
        (make_with_another_family, "there is a table 'old_typed' already, with other"),
        (make_with_another_mapping, "there is a table 'old_typed' already, with other"),
    ],
)
def test_a_table_that_is_in_the_way_is_refused_before_anything_is_made(
    manager: TransactionManager, saved: Path, make: Callable[[TransactionManager], None], why: str
) -> None:
    make(manager)
    before = content(manager, "old_typed")
    with pytest.raises(InvalidRequest, match=why):
        restored(manager, saved, prefix="old_")
    assert content(manager, "old_typed") == before
    assert not manager.catalog.has_entry("old_t")


def test_an_empty_table_of_the_same_kind_is_filled(manager: TransactionManager, saved: Path) -> None:
    manager.create_table("old_t", ["g", "f"])
    assert restored(manager, saved, "t", prefix="old_") == {"old_t": Landed(0, ROWS, 1)}


def test_pythias_own_names_are_refused(manager: TransactionManager, saved: Path) -> None:
    own = system_table(manager.settings.root, "streams")
    contents = (saved / CONTENTS).read_text()
    (saved / "t.parquet").rename(saved / f"{own}.parquet")
    (saved / CONTENTS).write_text(contents.replace('"t"', f'"{own}"').replace('"t.parquet"', f'"{own}.parquet"'))
    with pytest.raises(InvalidRequest, match="is Pythia's own here"):
        restored(manager, saved, own)


def test_nothing_is_made_of_a_backup_that_is_damaged(manager: TransactionManager, saved: Path) -> None:
    with (saved / "typed.parquet").open("ab") as file:
        file.write(b"x")
    with pytest.raises(DamagedBackup, match="is not what was written"):
        restored(manager, saved, prefix="old_")
    assert not manager.catalog.has_entry("old_t")
    (saved / CONTENTS).unlink()
    with pytest.raises(UnreadableFile, match=r"backup\.json cannot be read, which every backup has: No such file"):
        restored(manager, saved)
