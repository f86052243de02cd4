"""What a backup says of itself: read back as it was, and refused where nobody should act on it."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from client.backups.errors import DamagedBackup
from client.backups.layout import Backup, Base, TableBackup, TableFile, file_name
from client.catalog.entry import CatalogEntry

ENTRY = CatalogEntry("row", ("f", "g"), b"\xff\x00 whatever")
FILE = TableFile("t.parquet", 10, "0" * 64, 2, 3, 1)
BASE = Base("2026-11-25", "id before")
OTHER = TableBackup("space:t", CatalogEntry("cell", ("f",)), TableFile("space=t.parquet", 7, "a" * 64, 5, 5))
PARTED = TableBackup("u", ENTRY, TableFile("u.parquet", 1, "0" * 64, 0, 0), 0, (b"\x00", b"m"))
BACKUP = Backup("id", "/pythia", 2**60, (TableBackup("t", ENTRY, FILE, 2**59), OTHER, PARTED), "0" * 32, BASE)


def test_it_is_read_back_as_it_was() -> None:
    assert Backup.parse(BACKUP.encode(), "here") == BACKUP
    assert (BACKUP.rows, BACKUP.bytes) == (7, 18)
    assert [BACKUP.find(name) for name in ("space:t", "nowhere")] == [OTHER, None]


def test_a_table_in_a_namespace_has_a_file_of_its_own() -> None:
    assert file_name("a:b") == "a=b.parquet"
    assert len({file_name(name) for name in ("a:b", "a.b", "a_b", "b", "ab")}) == 5


def test_one_of_an_earlier_release_says_nothing_of_regions() -> None:
    earlier = Backup.parse(changed(lambda fields: fields["tables"][2].pop("split_keys")), "here")
    assert earlier.tables[2] == replace(PARTED, split_keys=())


def changed(change: Callable[[dict[str, Any]], None]) -> str:
    fields = json.loads(BACKUP.encode())
    change(fields)
    return json.dumps(fields)


@pytest.mark.parametrize(
    ("change", "why"),
    [
        (lambda fields: fields.update(format=3), "a newer release wrote it"),
        (lambda fields: fields.pop("format"), "format"),
        (lambda fields: fields.update(backup_id=1), "1 is no text"),
        (lambda fields: fields.update(snapshot=-1), "-1 is no count"),
        (lambda fields: fields.update(snapshot=True), "True is no count"),
        (lambda fields: fields.update(tables=1), "TypeError"),
        (lambda fields: fields.pop("data"), "data"),
        (lambda fields: fields.update(data=1), "1 is no text"),
        (lambda fields: fields.update(base="2026-11-25"), "TypeError"),
        (lambda fields: fields.update(base=None), "since a moment that no base is of"),
        (lambda fields: fields["base"].update(backup_id=None), "None is no text"),
        (lambda fields: fields["base"].update(name="../elsewhere"), "'../elsewhere' is no name of a directory beside"),
        (lambda fields: fields["base"].update(name=".."), "'..' is no name of a directory beside"),
        (lambda fields: fields["base"].update(name="."), "'.' is no name of a directory beside"),
        (lambda fields: fields["base"].update(name=""), "'' is no name of a directory beside"),
        (lambda fields: fields["base"].update(name="\0"), "is no name of a directory beside"),
        (lambda fields: fields["base"].update(name=3), "3 is no text"),
        (lambda fields: fields["tables"][0].update(since=2**60), "since a moment that no base is of"),
        (lambda fields: fields["tables"][0].update(since=-1), "-1 is no count"),
        (lambda fields: fields["tables"][2].update(split_keys=["="]), "split_keys|adding|base64"),
        (lambda fields: fields["tables"][2].update(split_keys=[3]), "3 is no text"),
        (lambda fields: fields["tables"][2].update(split_keys=[""]), "a row key is 1 to"),
        (lambda fields: fields["tables"][2].update(split_keys=["YQ==", "YQ=="]), "cannot both begin at b'a'"),
        (lambda fields: fields["tables"][2].update(split_keys=3), "TypeError"),
        (lambda fields: fields["tables"][0]["file"].update(deleted=None), "None is no count"),
        (lambda fields: fields["tables"].append(fields["tables"][0]), "table 't' is there twice"),
        (lambda fields: fields["tables"][0].update(table="../t"), "a table name has"),
        (lambda fields: fields["tables"][0].update(families=[]), "at least one column family"),
        (lambda fields: fields["tables"][0].update(families="fg"), "families are a list of names"),
        (lambda fields: fields["tables"][0].update(families=["f:"]), "family"),
        (lambda fields: fields["tables"][0].update(conflict_level="table"), "conflict_level"),
        (lambda fields: fields["tables"][0].update(description="é"), "ASCII"),
        (lambda fields: fields["tables"][0]["file"].update(name="../../etc/passwd"), "the file of table 't' is"),
        (lambda fields: fields["tables"][0]["file"].update(name="/t.parquet"), "the file of table 't' is"),
        (lambda fields: fields["tables"][0]["file"].update(sha256="0" * 63), "sha256"),
        (lambda fields: fields["tables"][0]["file"].update(rows="2"), "'2' is no count"),
        (lambda fields: fields["tables"][0]["file"].update(more=1), "TypeError"),
        (lambda fields: fields["tables"][0]["file"].pop("cells"), "TypeError"),
    ],
)
def test_what_is_wrong_is_refused(change: Callable[[dict[str, Any]], None], why: str) -> None:
    with pytest.raises(DamagedBackup, match=why) as refused:
        Backup.parse(changed(change), "here")
    assert str(refused.value).startswith("here")


@pytest.mark.parametrize("text", ["", "{", "[]", "null", '"text"', "[" * 100_000, "\ufffd"])
def test_what_is_no_description_is_refused(text: str) -> None:
    with pytest.raises(DamagedBackup, match="here is no description of a backup"):
        Backup.parse(text, "here")
