"""The floor of timestamps in the commit table: what is on record there, and that others are not disturbed by it."""

from __future__ import annotations

import pytest

from commit_table import CommitTable, table_name
from commit_table.floor import COLUMN
from commit_table.layout import OWN_ROW
from commit_table.level_record import LevelOfData
from lease import CoordinatorUnavailable, FloorRecord
from store import MemoryCellStore
from store.faults import Fault, FaultyCellStore
from tso.persistence.floor import FloorOfData

ROOT = "/pythia"
NAME = table_name(ROOT)


@pytest.fixture
def store() -> FaultyCellStore:
    store = FaultyCellStore()
    CommitTable(store, NAME).create()
    return store


def test_what_was_put_is_read_and_the_highest_stands(store: FaultyCellStore) -> None:
    floor = FloorOfData(store, ROOT, look=lambda: None)
    assert floor.read() is None
    floor.put(FloorRecord(2000, 5000, 70))
    floor.put(FloorRecord(1000, 2000, 60))
    assert floor.read() == FloorRecord(2000, 5000, 70)
    floor.put(FloorRecord(2000, 7000, 70))
    assert floor.read() == FloorRecord(2000, 7000, 70)


def test_level_and_vacuum_mark_lie_beside_it(store: FaultyCellStore) -> None:
    table = CommitTable(store, NAME)
    LevelOfData(store, ROOT).raise_to(1)
    FloorOfData(store, ROOT, look=lambda: None).put(FloorRecord(2000, 5000, 70))
    table.forget_below(900)
    assert LevelOfData(store, ROOT).read() == 1
    assert table.forgotten_below() == 900
    assert store.get(NAME, OWN_ROW, [COLUMN])[COLUMN].timestamp == 2000


def test_there_are_data_where_a_transaction_is_on_record_or_was(store: FaultyCellStore) -> None:
    floor, table = FloorOfData(store, ROOT, look=lambda: None), CommitTable(store, NAME)
    LevelOfData(store, ROOT).raise_to(1)
    assert not floor.has_data(), "the level is put on record before anybody has served"
    table.abort(12_345)
    assert floor.has_data()


def test_there_are_data_where_all_of_them_were_vacuumed(store: FaultyCellStore) -> None:
    CommitTable(store, NAME).forget_below(900)
    assert FloorOfData(store, ROOT, look=lambda: None).has_data()


def test_without_a_commit_table_there_is_nothing() -> None:
    floor = FloorOfData(MemoryCellStore(), ROOT, look=lambda: None)
    assert floor.read() is None
    assert not floor.has_data()


def test_a_store_that_does_not_answer_is_another_try(store: FaultyCellStore) -> None:
    floor = FloorOfData(store, ROOT, look=lambda: None)
    for method in ("get_many", "scan", "put"):
        store.plan(method, Fault.LOST)
    for ask in (floor.read, floor.has_data, lambda: floor.put(FloorRecord(1, 1, 1))):
        with pytest.raises(CoordinatorUnavailable, match=r"floor|data"):
            ask()
