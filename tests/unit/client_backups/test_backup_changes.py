"""Backups of what changed since another one: with that they are as good as whole ones, or they are refused."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from client import InvalidRequest, TransactionManager
from client.backups import creating, opening
from client.backups.creating import create, merge
from client.backups.errors import DamagedBackup
from client.backups.layout import CONTENTS, Backup, Base
from client.backups.opening import check, open_backup
from client.backups.restoring import restore
from client.tables.errors import UnreadableFile
from store import StoreUnavailable
from store.faults import Fault
from tests.unit.client_backups.conftest import CONTENT, A, content, nothing_told
from tests.unit.client_backups.test_backup_creating import saved

if TYPE_CHECKING:
    from tests.unit.client.conftest import Installation

POSITION = "for-backups"


def made(
    manager: TransactionManager, directory: Path, since: Path | None = None, *names: str, position: str | None = None
) -> Backup:
    return create(manager, manager.snapshot(), names, directory, nothing_told, since=since, position_snapshot=position)


def change(manager: TransactionManager) -> None:
    """One row put, one deleted, one that was without cells has some, one left with none of those that it had."""
    with manager.transaction() as transaction:
        transaction.put("t", b"new", {b"g:late": b"1"})
        transaction.delete("t", b"\xff\xff")
        transaction.put("t", b"\x00", {A: b"changed"})
        transaction.delete("t", b"wide", [b"f:007"])


@pytest.fixture
def two(filled: TransactionManager, tmp_path: Path) -> tuple[Path, Path]:
    """A whole backup, and one of what changed since."""
    made(filled, tmp_path / "1")
    change(filled)
    made(filled, tmp_path / "2", tmp_path / "1")
    return tmp_path / "1", tmp_path / "2"


def test_with_the_ones_before_it_is_as_good_as_a_whole_one(filled: TransactionManager, tmp_path: Path) -> None:
    first = made(filled, tmp_path / "1")
    before = content(filled)
    change(filled)
    told: list[tuple[str, int, bool]] = []
    second = create(
        filled, filled.snapshot(), [], tmp_path / "2", lambda *so_far: told.append(so_far), since=tmp_path / "1"
    )
    middle = content(filled)
    with filled.transaction() as transaction:
        transaction.delete("t", b"new")
        transaction.put("t", b"\xff\xff", {b"g:back": b""})
    third = made(filled, tmp_path / "3", tmp_path / "2")
    assert [saved(tmp_path / name)["t"] for name in "123"] == [before, middle, content(filled)]
    assert (second.base, third.base) == (Base("1", first.backup_id), Base("2", second.backup_id))
    counts = [(one.since, one.file.rows, one.file.deleted) for one in (second.tables[0], third.tables[0])]
    assert counts == [(first.snapshot, 4, 1), (second.snapshot, 2, 1)]
    assert told == [("t", 4, False), ("t", 4, True), ("typed", 0, True)]
    assert [each.backup for each in check(tmp_path / "3", lambda table: None).opened] == [third, second, first]


def test_tables_that_the_base_has_not_or_had_before_they_were_dropped_come_whole(
    filled: TransactionManager, tmp_path: Path, made_anew_at_once: None
) -> None:
    made(filled, tmp_path / "1")
    filled.create_table("later", ["f"])
    filled.drop_table("typed")
    filled.drop_table("t")
    filled.create_table("t", ["f", "h"])
    with filled.transaction() as transaction:
        transaction.put("t", b"anew", {b"h:a": b"1"})
        transaction.put("later", b"x", {A: b"1"})
    second = made(filled, tmp_path / "2", tmp_path / "1")
    assert {one.table: one.since for one in second.tables} == {"later": 0, "t": 0}
    assert saved(tmp_path / "2") == {"t": {b"anew": {b"h:a": b"1"}}, "later": {b"x": {A: b"1"}}}
    with filled.transaction() as transaction:
        transaction.put("t", b"later", {b"h:a": b"2"})
    made(filled, tmp_path / "3", tmp_path / "2")
    assert saved(tmp_path / "3")["t"] == content(filled)


def test_only_some_tables(filled: TransactionManager, tmp_path: Path) -> None:
    made(filled, tmp_path / "1", None, "typed")
    change(filled)
    second = made(filled, tmp_path / "2", tmp_path / "1", "t")
    assert [(one.table, one.since) for one in second.tables] == [("t", 0)]
    assert saved(tmp_path / "2") == {"t": content(filled)}


def test_tables_are_made_anew_from_all_of_them(filled: TransactionManager, two: tuple[Path, Path]) -> None:
    want = content(filled)
    assert restore(filled, two[1], [], 2, nothing_told, prefix="old_")["old_t"].rows == len(want)
    assert content(filled, "old_t") == want
    assert list(want) == list(content(filled, "old_t"))
    with (two[0] / "t.parquet").open("ab") as file:
        file.write(b"x")
    with pytest.raises(DamagedBackup, match=r"1/t\.parquet is not what was written"):
        restore(filled, two[1], [], 2, nothing_told, prefix="other_")
    assert not filled.catalog.has_entry("other_t")


def test_merged_they_are_a_whole_one(filled: TransactionManager, two: tuple[Path, Path], tmp_path: Path) -> None:
    want, second = content(filled), open_backup(two[1]).newest
    whole = merge(two[1], tmp_path / "whole", nothing_told)
    change(filled)
    made(filled, tmp_path / "3", tmp_path / "whole")
    for directory in two:
        shutil.rmtree(directory)
    assert whole.base is None
    assert (whole.snapshot, whole.data, whole.root) == (second.snapshot, second.data, second.root)
    assert whole.backup_id != second.backup_id
    assert saved(tmp_path / "whole") == {"t": want, "typed": {}}
    assert saved(tmp_path / "3")["t"] == content(filled)
    assert open_backup(tmp_path / "whole").newest == whole


def test_what_is_merged_has_to_be_whole(two: tuple[Path, Path], tmp_path: Path) -> None:
    with pytest.raises(UnreadableFile, match="exists already"):
        merge(two[1], two[0], nothing_told)
    with (two[0] / "t.parquet").open("ab") as file:
        file.write(b"x")
    with pytest.raises(DamagedBackup, match="is not what was written"):
        merge(two[1], tmp_path / "whole", nothing_told)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["1", "2"]


def test_they_may_be_moved_together_and_named_by_a_link(
    filled: TransactionManager, two: tuple[Path, Path], tmp_path: Path
) -> None:
    (tmp_path / "links").mkdir()
    (tmp_path / "links" / "newest").symlink_to(two[1])
    assert saved(tmp_path / "links" / "newest")["t"] == content(filled)
    (tmp_path / "newest").symlink_to(two[1])
    assert made(filled, tmp_path / "3", tmp_path / "newest").base == Base("2", open_backup(two[1]).newest.backup_id)
    (tmp_path / "elsewhere").mkdir()
    for name in "123":
        (tmp_path / name).rename(tmp_path / "elsewhere" / name)
    assert saved(tmp_path / "elsewhere" / "3")["t"] == content(filled)


def gone(base: Path, later: Path) -> None:
    shutil.rmtree(base)


def replaced(base: Path, later: Path) -> None:
    rewrite(base, lambda fields: fields.update(backup_id="another"))


def without_the_table(base: Path, later: Path) -> None:
    rewrite(base, lambda fields: fields["tables"].pop(0))


def of_another_moment(base: Path, later: Path) -> None:
    rewrite(base, lambda fields: fields.update(snapshot=fields["snapshot"] - 1))


def with_other_families(base: Path, later: Path) -> None:
    rewrite(base, lambda fields: fields["tables"][0].update(families=["f"]))


def rewrite(directory: Path, change_fields: Callable[[dict[str, Any]], object]) -> None:
    fields = json.loads((directory / CONTENTS).read_text())
    change_fields(fields)
    (directory / CONTENTS).write_text(json.dumps(fields))


@pytest.mark.parametrize(
    ("break_it", "why"),
    [
        (
            gone,
            r"2 is based on a backup that is not there: .*1/backup\.json cannot be read",
        ),
        (replaced, r"1 is another backup \(another\) than .*2 is based on"),
        (without_the_table, "1 has no table 't' that .*2/t.parquet could be based on"),
        (of_another_moment, "1 has no table 't' that .*2/t.parquet could be based on"),
        (with_other_families, "1 has no table 't' that .*2/t.parquet could be based on"),
    ],
)
def test_one_whose_base_is_not_there_is_refused(
    filled: TransactionManager, two: tuple[Path, Path], break_it: Callable[[Path, Path], None], why: str
) -> None:
    break_it(*two)
    for act in (
        lambda: check(two[1], lambda table: None),
        lambda: restore(filled, two[1], [], 9, nothing_told, prefix="old_"),
        lambda: merge(two[1], two[1].parent / "whole", nothing_told),
        lambda: made(filled, two[1].parent / "3", two[1]),
    ):
        with pytest.raises((DamagedBackup, UnreadableFile), match=why):
            act()
    assert not filled.catalog.has_entry("old_t")


def test_no_more_are_based_one_on_the_other_than_are_read_together(
    filled: TransactionManager, two: tuple[Path, Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(opening, "CHAIN_BACKUPS_MAX", 2)
    monkeypatch.setattr(creating, "CHAIN_BACKUPS_MAX", 2)
    assert saved(two[1])["t"] == content(filled)
    with pytest.raises(InvalidRequest, match=r"2 is the last of 2 backups that are based one on the other: .* merge"):
        made(filled, tmp_path / "3", two[1])
    monkeypatch.setattr(opening, "CHAIN_BACKUPS_MAX", 1)
    with pytest.raises(InvalidRequest, match=r"is based on 1 backups and more, .* \(pythia backup merge\)"):
        open_backup(two[1])


def test_what_a_vacuum_may_have_taken_is_not_guessed_at(
    filled: TransactionManager, installation: Installation, tmp_path: Path
) -> None:
    first = made(filled, tmp_path / "1")
    change(filled)
    filled.catalog.vacuums.mark("t", first.snapshot)
    made(filled, tmp_path / "2", tmp_path / "1", position=POSITION)
    filled.catalog.vacuums.mark("t", first.snapshot + 1)
    with pytest.raises(
        InvalidRequest, match=r"table 't' was vacuumed below .* make a whole backup, and give it"
    ) as why:
        made(filled, tmp_path / "3", tmp_path / "1", position="not-made")
    assert str(tmp_path / "1") in str(why.value)
    assert [each.name for each in filled.snapshots()] == [POSITION]


def test_a_position_is_made_first_and_moved_once_the_backup_is_there(
    filled: TransactionManager, installation: Installation, tmp_path: Path
) -> None:
    def positions() -> list[tuple[str, int]]:
        return [(each.name, each.timestamp) for each in filled.snapshots()]

    def while_it_is_read(expected: list[tuple[str, int]]) -> Callable[[str, int, bool], None]:
        def look(table: str, rows: int, all_of_it: bool) -> None:
            assert positions() == expected

        return look

    snapshot = filled.snapshot()
    at_first = [(POSITION, snapshot.timestamp)]
    create(filled, snapshot, [], tmp_path / "1", while_it_is_read(at_first), position_snapshot=POSITION)
    assert positions() == at_first
    change(filled)
    later = filled.snapshot()

    def fail(table: str, rows: int, all_of_it: bool) -> None:
        if all_of_it:
            installation.store.plan("scan", Fault.DONE)

    with pytest.raises(StoreUnavailable):
        create(filled, later, [], tmp_path / "2", fail, since=tmp_path / "1", position_snapshot=POSITION)
    assert positions() == at_first
    look = while_it_is_read(at_first)
    create(filled, later, [], tmp_path / "2", look, since=tmp_path / "1", position_snapshot=POSITION)
    assert positions() == [(POSITION, later.timestamp)]


def test_a_position_that_keeps_nothing_is_refused(filled: TransactionManager, tmp_path: Path) -> None:
    earlier = filled.snapshot()
    change(filled)
    filled.create_snapshot(POSITION)
    with pytest.raises(InvalidRequest, match=r"is of a later moment .* of which it keeps nothing: name another one"):
        create(filled, earlier, [], tmp_path / "1", nothing_told, position_snapshot=POSITION)
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize(
    ("change_fields", "why"),
    [
        (
            lambda fields: fields.update(root="/other"),
            r"not of this installation \(root /other, data [0-9a-f]+; here",
        ),
        (lambda fields: fields.update(data="0" * 32), "not of this installation .*make a whole backup"),
        (lambda fields: fields.update(snapshot=2**62), "is of 4611686018427387904 .*, which is not before "),
    ],
)
def test_what_is_no_base_is_refused(
    filled: TransactionManager, tmp_path: Path, change_fields: Callable[[dict[str, Any]], None], why: str
) -> None:
    made(filled, tmp_path / "1")
    rewrite(tmp_path / "1", change_fields)
    with pytest.raises(InvalidRequest, match=why):
        made(filled, tmp_path / "2", tmp_path / "1")
    assert [path.name for path in tmp_path.iterdir()] == ["1"]


def test_a_base_lies_beside_it(filled: TransactionManager, tmp_path: Path) -> None:
    made(filled, tmp_path / "1")
    with pytest.raises(InvalidRequest, match="does not lie beside"):
        made(filled, tmp_path / "further" / "2", tmp_path / "1")
    (tmp_path / "circle").symlink_to(tmp_path / "circle")
    for name in ("0", "circle"):
        with pytest.raises(UnreadableFile, match="cannot be read, which every backup has"):
            made(filled, tmp_path / "2", tmp_path / name)


def test_one_of_an_earlier_release_is_restored_and_is_no_base(filled: TransactionManager, tmp_path: Path) -> None:
    made(filled, tmp_path / "1")

    def as_it_was(fields: dict[str, Any]) -> None:
        fields.update(format=1)
        del fields["data"], fields["base"]
        for table in fields["tables"]:
            del table["since"], table["file"]["deleted"]

    rewrite(tmp_path / "1", as_it_was)
    assert saved(tmp_path / "1") == {"t": CONTENT, "typed": {}}
    restore(filled, tmp_path / "1", ["t"], 9, nothing_told, prefix="old_")
    assert content(filled, "old_t") == CONTENT
    with pytest.raises(InvalidRequest, match="or of an earlier release: make a whole backup"):
        made(filled, tmp_path / "2", tmp_path / "1")
