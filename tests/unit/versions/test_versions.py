"""One place names every version: what is not listed there is refused by each reader, with what to upgrade."""

from __future__ import annotations

import json
import tomllib
from collections.abc import Callable
from typing import Any

import pytest

from client import CatalogEntry, ClientSettings, InvalidRequest, NamedSnapshot, SnapshotHandle, TransactionHandle
from client.spark.errors import InvalidMapping
from client.spark.mapping import KeyColumn, TableMapping, ValueColumn
from client.spark.progress import Progress
from commit_table.layout import OWN_ROW
from commit_table.level_record import LevelOfData
from commit_table.table import CommitTable, table_name
from histories.errors import HistoryError
from histories.history import History
from histories.json_lines import from_lines, to_lines
from lease import EpochRecord, LeaseRecord, LevelRecord, Member, RecordInvalid
from lease import History as Tenures
from lease.solo import SoloRecord
from store import MemoryCellStore
from tests.imports import ROOT
from versions import FIRST_LEVEL, FORMATS, RELEASE, FormatNotSpoken, LevelNotSpoken, LevelRange, spoken
from versions.formats import FRAMES, ITSELF, LEVEL
from wire import VERSION
from wire.frames import VERSION_LOWEST

SETTINGS = ClientSettings(zookeeper="h:1", thrift="h:2")
MAPPING = TableMapping("t", ("k",), (KeyColumn("k", "int"), ValueColumn("v", "int")))
RECORDS: dict[str, tuple[str | bytes, Callable[[Any], object]]] = {
    "lease": (LeaseRecord("a", "n", ("h:1",), 5, False, 1000).encode(), LeaseRecord.parse),
    "epoch": (EpochRecord(5, 9, 6).encode(), EpochRecord.parse),
    "level": (LevelRecord(1, 2).encode(), LevelRecord.parse),
    "member": (Member("a", "standby", "h:1").encode(), Member.parse),
    "tenures": (Tenures().encode(), Tenures.parse),
    "solo": (SoloRecord(EpochRecord(5, 9, 6), "n", "h:1").encode(), SoloRecord.parse),
    "catalog": (CatalogEntry("cell", ("f",)).encode("made"), lambda data: CatalogEntry.parse("t", data)),
    "mapping": (MAPPING.to_json(), TableMapping.from_json),
    "snapshot": (NamedSnapshot("s", 7, 5, True, "m").encode(), lambda data: NamedSnapshot.parse("s", data)),
    "stream": (Progress(1, 2).to_json(), Progress.from_json),
    "transaction": (TransactionHandle(7, 6, 5, SETTINGS).to_json(), TransactionHandle.from_json),
    "snapshot handle": (SnapshotHandle(6, 5, SETTINGS).to_json(), SnapshotHandle.from_json),
    "history": ("\n".join(to_lines(History(()))), lambda text: from_lines(text.splitlines())),
}
REFUSED = (RecordInvalid, InvalidRequest, InvalidMapping, HistoryError)


@pytest.mark.parametrize("name", RECORDS)
def test_what_says_its_version_is_read_and_a_newer_one_is_refused_with_what_to_do(name: str) -> None:
    written, read = RECORDS[name]
    read(written)
    text = written if isinstance(written, str) else written.decode()
    fields = json.loads(text)
    key = "version" if name == "history" else "format"
    newer = json.dumps({**fields, key: 99, "something": "new"})
    with pytest.raises(REFUSED, match=r"format version 99 .*upgrade this program first"):
        read(newer if isinstance(written, str) else newer.encode())
    for odd in (0, True, "1", None):
        with pytest.raises(REFUSED):
            read(json.dumps({**fields, key: odd}) if isinstance(written, str) else json.dumps({key: odd}).encode())


def test_frames_have_the_versions_that_are_listed() -> None:
    assert (min(FRAMES.versions), FRAMES.newest) == (VERSION_LOWEST, VERSION)


def test_every_version_belongs_to_a_level_that_is_there() -> None:
    for one in FORMATS:
        assert one.said_by in (ITSELF, LEVEL)
        assert all(FIRST_LEVEL <= level <= spoken().highest for level in one.versions.values()), one.what


def test_the_documentation_lists_every_format() -> None:
    text = (ROOT / "docs" / "operations" / "upgrades.md").read_text()
    for one in FORMATS:
        versions = ", ".join(map(str, sorted(one.versions)))
        assert f"| {one.what} | {one.place} | {versions} | {one.said_by} |" in text, one.what


def test_the_release_is_that_of_the_package() -> None:
    assert tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["version"] == RELEASE


def test_a_level_that_is_not_spoken_says_which_side_to_upgrade() -> None:
    spoken_here = LevelRange(2, 3)
    for level in (2, 3):
        spoken_here.require(level, "it")
    with pytest.raises(LevelNotSpoken, match=r"it requires level 4.*levels 2 to 3: upgrade this program"):
        spoken_here.require(4, "it")
    with pytest.raises(LevelNotSpoken, match=r"it is at level 1.*step by step"):
        spoken_here.require(1, "it")


@pytest.mark.parametrize(("lowest", "highest"), [(0, 1), (2, 1), (True, 2), (1, 10**7)])
def test_what_is_no_range_of_levels_is_refused(lowest: int, highest: int) -> None:
    with pytest.raises(ValueError, match="levels are whole numbers"):
        LevelRange(lowest, highest)


@pytest.fixture
def store() -> MemoryCellStore:
    return MemoryCellStore()


def test_the_level_of_data_is_put_once_and_only_goes_up(store: MemoryCellStore) -> None:
    level = LevelOfData(store, "/pythia")
    assert level.read() is None
    CommitTable(store, table_name("/pythia")).create()
    assert level.read() is None
    for wanted, then in ((1, 1), (3, 3), (2, 3)):
        level.raise_to(wanted)
        assert level.read() == then


@pytest.mark.parametrize(
    "stored", [b"x", b"[]", b'{"level":1}', b'{"format":2,"level":1}', b'{"format":1,"level":"1"}', b"\xff"]
)
def test_a_level_of_data_that_is_not_understood_is_refused(store: MemoryCellStore, stored: bytes) -> None:
    CommitTable(store, table_name("/pythia")).create()
    store.compare_and_set(table_name("/pythia"), OWN_ROW, check=b"c:level", expected=None, put=b"c:level", value=stored)
    with pytest.raises(FormatNotSpoken):
        LevelOfData(store, "/pythia").read()
