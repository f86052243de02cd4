"""Where shadow cells lie: in a family of their own in each table made here, and of that nothing is to be seen."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from typing import Any

import pytest

from client import CatalogEntry, InvalidRequest, TransactionManager
from client.catalog.age import ENTRY_AGE_SECONDS_MAX
from client.catalog.catalog import Catalog
from client.catalog.shadow_family import SHADOW_FAMILY, named_column, stored_choice, stored_column
from client.cells import SHADOW_QUALIFIER, row_marker_column, shadow_column
from client.tables.describing import describe
from lease import monotonic_ms
from store import Family, KeyRange, MemoryCellStore, RowPut, StoreClosed
from store.columns import CellColumns, ScannedColumns
from store.faults import FaultyCellStore
from tests.unit.client.bulk_writing import write as bulk_write
from tests.unit.client.conftest import A, Installation
from tests.unit.client.transacting import get, put
from versions.formats import CATALOG_ENTRIES

EVERYTHING = KeyRange(b"", b"")
G = b"g:b"
F_SHADOW, G_SHADOW = shadow_column(b"f"), shadow_column(b"g")
FAMILIES = (b"f", b"g")


def columns_of(store: FaultyCellStore, table: str) -> set[bytes]:
    """All that have a cell, as HBase has them."""
    families = [name.encode() for name in store.families(table)]
    return {column for _, cells in store.scan(table, EVERYTHING, families) for column in cells}


def test_shadow_cells_lie_apart_in_a_table_that_is_made_here(
    installation: Installation, manager: TransactionManager
) -> None:
    with manager.transaction() as transaction:
        transaction.put("t", b"r", {A: b"1", G: b"2"})
    assert columns_of(installation.store, "t") == {A, G, b"_:f", b"_:g"}
    shadows = manager.store.get("t", b"r", [F_SHADOW, G_SHADOW])
    assert [cell.timestamp for cell in shadows.values()] == [transaction.start_timestamp] * 2
    assert set(manager.store.get("t", b"r", [b"f", b"g"])) == {A, G, F_SHADOW, G_SHADOW}
    assert set(manager.store.get("t", b"r", [b"f"])) == {A, F_SHADOW}
    assert set(manager.store.families("t")) == {"f", "g"}
    assert describe(manager, "t").shadow_family == SHADOW_FAMILY


def test_a_table_that_hbase_had_keeps_them_beside_their_versions(
    installation: Installation, manager: TransactionManager
) -> None:
    installation.store.create_table("had", [Family("f")])
    installation.store.create_table("agreed", [Family("f")])
    manager.create_table("agreed", ["f"])
    for table in ("had", "agreed"):
        with manager.transaction() as transaction:
            transaction.put(table, b"r", {A: b"1"})
        assert columns_of(installation.store, table) == {A, F_SHADOW}
        assert describe(manager, table).shadow_family is None
        assert manager.snapshot().get(table, b"r") == {A: b"1"}


def test_a_family_of_that_name_may_be_an_applications_own(
    installation: Installation, manager: TransactionManager
) -> None:
    manager.create_table("own", [SHADOW_FAMILY, "f"])
    with manager.transaction() as transaction:
        transaction.put("own", b"r", {A: b"1", b"_:f": b"2"})
    assert manager.snapshot().get("own", b"r") == {A: b"1", b"_:f": b"2"}
    assert columns_of(installation.store, "own") == {A, b"_:f", F_SHADOW, b"_:\x00"}


def test_the_family_is_not_to_be_named(manager: TransactionManager) -> None:
    for columns in ([b"_"], [b"_:f"]):
        with pytest.raises(InvalidRequest, match=r"has no family _; it has f, g$"):
            manager.snapshot().get("t", b"r", columns)
    with manager.transaction() as transaction, pytest.raises(InvalidRequest, match=r"has no family _; it has f, g$"):
        transaction.put("t", b"r", {b"_:f": b"1"})


def test_who_finds_a_table_half_made_agrees_with_whoever_makes_it(
    installation: Installation, monkeypatch: pytest.MonkeyPatch
) -> None:
    store, maker, finder = installation.store, installation.manager(), installation.manager()
    create_table = store.create_table

    def found(table: str, families: Sequence[Family], split_keys: Sequence[bytes]) -> None:
        monkeypatch.undo()
        create_table(table, families, split_keys)
        assert finder.snapshot().get(table, b"r") == {}

    monkeypatch.setattr(store, "create_table", found)
    maker.create_table("half", ["f"])
    assert maker.catalog.fresh_entry("half") == CatalogEntry("cell", ("f",), shadows_apart=True)


@pytest.mark.parametrize("agreed", [True, False])
def test_a_table_that_was_made_in_hbase_with_the_family_has_it(
    installation: Installation, manager: TransactionManager, agreed: bool
) -> None:
    installation.store.create_table("made", [Family("f"), Family(SHADOW_FAMILY)])
    if agreed:
        manager.create_table("made", ["f"])
    with manager.transaction() as transaction:
        transaction.put("made", b"r", {A: b"1"})
    assert columns_of(installation.store, "made") == {A, b"_:f"}
    assert manager.catalog.fresh_entry("made").families == ("f",)


def test_a_table_that_has_that_family_alone_is_an_applications(
    installation: Installation, manager: TransactionManager
) -> None:
    installation.store.create_table("odd", [Family(SHADOW_FAMILY)])
    with manager.transaction() as transaction:
        transaction.put("odd", b"r", {b"_:f": b"2"})
    assert columns_of(installation.store, "odd") == {b"_:f", b"_:\x00"}


def test_it_is_asked_for_anew_after_a_while(installation: Installation, monkeypatch: pytest.MonkeyPatch) -> None:
    manager, other = installation.manager(), installation.manager()
    put(manager, b"r", b"1")
    other.drop_table("t")
    installation.store.create_table("t", [Family("f")])
    other.create_table("t", ["f"])
    later = monotonic_ms() + 1_000 * (ENTRY_AGE_SECONDS_MAX + 1)
    monkeypatch.setattr("client.catalog.age.monotonic_ms", lambda: later)
    manager.store.put("t", [RowPut(b"r", {F_SHADOW: b"x"})], 5)
    assert columns_of(installation.store, "t") == {F_SHADOW}


def test_to_read_a_plain_table_agrees_on_nothing(installation: Installation, manager: TransactionManager) -> None:
    installation.store.create_table("plain", [Family("f"), Family(SHADOW_FAMILY)])
    installation.store.put("plain", [RowPut(b"r", {A: b"1", b"_:f": b"2"})], 5)
    assert set(manager.store.get("plain", b"r", [b"f", b"_"])) == {A, b"_:f"}
    assert not manager.catalog.has_entry("plain")


def test_of_pythias_own_tables_nobody_asks() -> None:
    store = MemoryCellStore()
    store.close()
    catalog = Catalog(store, "/pythia")
    assert [catalog.families_apart_from_shadows(table) for table in catalog.own_tables] == [None] * 4
    with pytest.raises(StoreClosed):
        catalog.families_apart_from_shadows("t")


@pytest.mark.parametrize(
    ("columns", "stored", "lean"),
    [
        ([b"f", b"g"], [b"f", b"g", b"_"], [b"f", b"g"]),
        ([b"f"], [b"f", b"_:f"], [b"f"]),
        ([A, row_marker_column(b"f"), F_SHADOW], [A, row_marker_column(b"f"), b"_:f"], [A, row_marker_column(b"f")]),
        ([b"g", A, F_SHADOW], [b"g", A, b"_:g", b"_:f"], [b"g", A]),
        ([A], [A], [A]),
        ([F_SHADOW, F_SHADOW], [b"_:f"], []),
    ],
)
def test_what_is_chosen_brings_the_shadow_cells_that_are_in_it(
    columns: list[bytes], stored: list[bytes], lean: list[bytes]
) -> None:
    assert stored_choice(columns, FAMILIES) == stored
    assert stored_choice(columns, FAMILIES, with_shadows=False) == lean


@pytest.mark.parametrize("column", [A, b"f:", F_SHADOW, row_marker_column(b"f"), b"f:_:", b"ff:\x00\x00"])
def test_names_come_back(column: bytes) -> None:
    assert named_column(stored_column(column)) == column


def test_a_scan_without_shadow_cells_does_not_open_their_family(
    installation: Installation, manager: TransactionManager, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of what one transaction wrote, behind the first rows, which say that."""
    transaction = manager.transaction()
    bulk_write(manager, transaction.handle(), "job", *(b"%04d" % number for number in range(1_200)))
    manager.manifest.seal(transaction.start_timestamp, "job", [(0, 0)])
    transaction.commit()
    asked: list[tuple[Any, Any]] = []
    scan_columns: Callable[..., Iterator[ScannedColumns]] = installation.store.scan_columns

    def seen(table: str, key_range: KeyRange, columns: Any, known: Any, **named: Any) -> Iterator[ScannedColumns]:
        asked.append((list(columns), named["without_qualifier"]))
        return scan_columns(table, key_range, columns, known, **named)

    monkeypatch.setattr(installation.store, "scan_columns", seen)
    snapshot = manager.snapshot()
    assert sum(batch.rows for batch in snapshot.scan_columns("t", [A], columns=[A])) == 1_200
    with_shadows, lean = asked
    assert b"_:f" in with_shadows[0]
    assert with_shadows[1] is None
    assert lean == ([A, row_marker_column(b"f")], None)


def test_what_is_written_and_deleted_by_columns_lies_there_too(
    installation: Installation, manager: TransactionManager
) -> None:
    cells = CellColumns.of_puts([RowPut(b"r", {A: b"1", F_SHADOW: b"x", G_SHADOW: b"y"})])
    manager.store.put_columns("t", cells, 5)
    assert columns_of(installation.store, "t") == {A, b"_:f", b"_:g"}
    assert manager.store.versions("t", b"r", G_SHADOW, limit=1)[0].value == b"y"
    manager.store.delete_columns("t", {b"r": [F_SHADOW]}, 5)
    assert columns_of(installation.store, "t") == {A, b"_:g"}
    manager.store.compare_and_set("t", b"r", check=F_SHADOW, expected=None, put=F_SHADOW, value=b"z")
    assert columns_of(installation.store, "t") == {A, b"_:f", b"_:g"}
    manager.store.delete("t", [b"r"], 2**62)
    assert columns_of(installation.store, "t") == set()


def test_a_scan_with_another_filter_is_filtered(manager: TransactionManager) -> None:
    manager.store.put("t", [RowPut(b"r", {A: b"1", b"f:b": b"2", F_SHADOW: b"x"})], 5)
    known = (A, F_SHADOW)
    (batch,) = manager.store.scan_columns("t", EVERYTHING, [b"f"], known, without_qualifier=b"b")
    assert batch.rows_at([0])[0][1].keys() == {A, F_SHADOW}
    (batch,) = manager.store.scan_columns("t", EVERYTHING, [b"f"], known, without_qualifier=SHADOW_QUALIFIER)
    assert batch.rows_at([0])[0][1].keys() == {A, b"f:b"}


def test_a_library_that_does_not_know_of_it_refuses_the_table(
    installation: Installation, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It would look for shadow cells where there are none, and take what committed long ago for aborted."""
    monkeypatch.setattr("client.catalog.entry.CATALOG_ENTRIES", replace(CATALOG_ENTRIES, versions={1: 1, 2: 1}))
    with pytest.raises(InvalidRequest, match="format version 3 of catalog entries is not known"):
        get(installation.manager(), b"r")


def test_a_bulk_write_has_its_shadow_cells_there(installation: Installation, manager: TransactionManager) -> None:
    transaction = manager.transaction()
    bulk_write(manager, transaction.handle(), "job", b"a", b"b")
    manager.manifest.seal(transaction.start_timestamp, "job", [(0, 0)])
    transaction.commit()
    assert columns_of(installation.store, "t") == {A, b"_:f"}
