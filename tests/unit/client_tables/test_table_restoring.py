"""Tables put back to what they were: all of it, in one transaction, and nothing else."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from client import Conflict, InvalidRequest, TransactionManager
from client.bulk_writes.batching import ScannedRow
from client.cells import ROW_MARKER_VALUE, TOMBSTONE, encode_value, row_marker_column
from client.tables import batches, restoring
from client.tables.describing import tables
from client.tables.restoring import Restored, restore
from commit_table import system_table
from store import RowPut
from store.columns import PLACES_MAX, CellColumns
from tests.unit.client.conftest import in_bulk
from tests.unit.client_tables.conftest import Run, done, refused

if TYPE_CHECKING:
    from tests.unit.client.conftest import Installation

A, B, G = b"f:a", b"f:b", b"g:c"
THEN = {b"changed": {A: b"1", G: b"\0x"}, b"deleted": {A: b"2"}, b"grown": {A: b"3"}, b"same": {A: b"4", B: b"5"}}


@pytest.fixture
def changed(manager: TransactionManager) -> TransactionManager:
    """Table ``t`` as ``THEN`` at the snapshot ``then``, and otherwise now."""
    with manager.transaction() as before:
        for row, values in THEN.items():
            before.put("t", row, values)
    manager.create_snapshot("then")
    with manager.transaction() as after:
        after.put("t", b"changed", {A: b"9", B: b"9"})
        after.delete("t", b"deleted")
        after.put("t", b"grown", {B: b"9"})
        after.put("t", b"new", {A: b"9"})
    return manager


def nothing_told(table: str, rows: int) -> None:
    pass


def content(manager: TransactionManager, table: str = "t") -> dict[bytes, dict[bytes, bytes]]:
    return dict(manager.snapshot().scan(table))


def test_a_table_is_as_it_was_and_only_what_differs_is_written(changed: TransactionManager) -> None:
    told = restore(changed, changed.snapshot("then"), ["t"], nothing_told)
    assert content(changed) == THEN
    assert told == {"t": Restored(rows=4, put_back=3, removed=1)}
    again = restore(changed, changed.snapshot("then"), ["t"], nothing_told)
    assert again == {"t": Restored(rows=4)}


def test_a_dry_run_counts_and_changes_nothing(changed: TransactionManager) -> None:
    before = content(changed)
    told = restore(changed, changed.snapshot("then"), ["t"], nothing_told, dry_run=True)
    assert told == {"t": Restored(rows=4, put_back=3, removed=1)}
    assert content(changed) == before


def test_several_tables_go_back_at_one_moment_or_not_at_all(
    changed: TransactionManager, monkeypatch: pytest.MonkeyPatch
) -> None:
    changed.create_table("u", ["f"])
    with changed.transaction() as more:
        more.put("u", b"r", {A: b"kept"})
    changed.create_snapshot("later")
    with changed.transaction() as more:
        more.put("u", b"r", {A: b"lost"})
        more.put("t", b"more", {A: b"lost"})
    before = content(changed)
    in_batches = batches.in_batches

    def interfere(rows: Iterable[ScannedRow]) -> Iterator[CellColumns]:
        yield from in_batches(rows)
        with changed.transaction() as rival:
            rival.put("u", b"r", {A: b"rival"})

    monkeypatch.setattr(restoring, "in_batches", interfere)
    with pytest.raises(Conflict):
        restore(changed, changed.snapshot("later"), ["t", "u"], nothing_told)
    assert content(changed) == before
    assert content(changed, "u") == {b"r": {A: b"rival"}}
    monkeypatch.undo()
    restore(changed, changed.snapshot("later"), ["t", "u"], nothing_told)
    assert b"more" not in content(changed)
    assert content(changed, "u") == {b"r": {A: b"kept"}}


def test_a_table_without_rows_then_is_emptied_only_where_that_is_said(changed: TransactionManager) -> None:
    changed.create_table("later", ["f"])
    with changed.transaction() as anew:
        anew.put("later", b"r", {A: b"1"})
    with pytest.raises(InvalidRequest, match="shows no row at that moment"):
        restore(changed, changed.snapshot("then"), ["later"], nothing_told)
    assert content(changed, "later") == {b"r": {A: b"1"}}
    restore(changed, changed.snapshot("then"), ["later"], nothing_told, even_if_empty=True)
    assert content(changed, "later") == {}


@pytest.mark.parametrize("purpose", ["imports", "streams"])
def test_the_records_of_what_landed_are_not_put_back(changed: TransactionManager, purpose: str) -> None:
    records = system_table(changed.settings.root, purpose)
    changed.create_table(records, ["f"])
    with changed.transaction() as landing:
        landing.put(records, b"r", {A: b"1"})
    with pytest.raises(InvalidRequest, match=f"{records}' is Pythia's record of what landed in other tables"):
        restore(changed, changed.snapshot("then"), ["t", records], nothing_told, even_if_empty=True)
    assert content(changed, records) == {b"r": {A: b"1"}}
    assert content(changed) != THEN
    assert records not in tables(changed)


@pytest.mark.parametrize("even_if_empty", [False, True])
def test_a_table_that_was_dropped_since_then_is_not_restored(changed: TransactionManager, even_if_empty: bool) -> None:
    changed.drop_table("t")
    changed.create_table("t", ["f", "g"])
    with changed.transaction() as anew:
        anew.put("t", b"r", {A: b"1"})
    with pytest.raises(InvalidRequest, match="'t' was dropped at"):
        restore(changed, changed.snapshot("then"), ["t"], nothing_told, even_if_empty=even_if_empty)
    assert content(changed) == {b"r": {A: b"1"}}


def test_rows_of_nothing_but_nulls_come_back_and_go(manager: TransactionManager) -> None:
    marker = row_marker_column(b"f")
    in_bulk(manager, [RowPut(b"null", {A: TOMBSTONE, marker: ROW_MARKER_VALUE})]).commit()
    manager.create_snapshot("then")
    in_bulk(
        manager,
        [
            RowPut(b"null", {A: encode_value(b"1"), marker: TOMBSTONE}),
            RowPut(b"new", {A: TOMBSTONE, marker: ROW_MARKER_VALUE}),
        ],
    ).commit()
    assert set(content(manager)) == {b"null", b"new"}
    restore(manager, manager.snapshot("then"), ["t"], nothing_told)
    assert content(manager) == {b"null": {}}


def test_many_rows_go_back_in_pieces(manager: TransactionManager, monkeypatch: pytest.MonkeyPatch) -> None:
    for module in (restoring, batches):
        monkeypatch.setattr(module, "BATCH_ROWS_MAX", 3)
    with manager.transaction() as before:
        for number in range(10):
            before.put("t", b"%02d" % number, {A: b"1"})
    manager.create_snapshot("then")
    with manager.transaction() as after:
        for number in range(10):
            after.put("t", b"%02d" % number, {A: b"2"})
    told: list[int] = []
    restore(manager, manager.snapshot("then"), ["t"], lambda table, rows: told.append(rows))
    assert set(map(tuple, (values.items() for values in content(manager).values()))) == {((A, b"1"),)}
    assert told == [3, 6, 9]


def test_rows_with_columns_of_their_own_are_written_in_bounded_pieces() -> None:
    rows = [(b"%03d" % row, {b"f:%d-%d" % (row, number): b"x" for number in range(100)}) for row in range(400)]
    pieces = list(batches.in_batches(iter(rows)))
    assert [put for cells in pieces for put in cells.puts()] == [RowPut(*row) for row in rows]
    assert max(cells.value_lengths.size for cells in pieces) <= PLACES_MAX
    assert len(pieces) < 10


def test_the_command_restores_and_says_what_it_did(run: Run, installation: Installation, tmp_path: Path) -> None:
    (tmp_path / "one.csv").write_text("id,v\n1,a\n2,b\n")
    (tmp_path / "two.csv").write_text("id,v\n2,c\n3,d\n")
    done(run("create", "x", "--column", "id:bigint", "--column", "v:string", "--row-key", "id", "--json"))
    done(run("import", "x", tmp_path / "one.csv", "--json"))
    installation.manager().create_snapshot("then")
    done(run("import", "x", tmp_path / "two.csv", "--json"))
    counted = run("restore", "x", "--as-of", "then", "--dry-run")
    assert "2 rows as of" in counted.stdout
    assert "1 would have to be put back, 1 would have to be removed" in counted.stdout
    told = done(run("restore", "x", "x", "--as-of", "then", "--json"))
    assert told["tables"] == {"x": {"rows": 2, "put_back": 1, "removed": 1}}
    done(run("export", "x", tmp_path / "back.csv", "--json"))
    assert (tmp_path / "back.csv").read_text().splitlines()[1:] == ['1,"a"', '2,"b"']
    assert "no snapshot" in refused(run("restore", "x", "--as-of", "never"))
    assert "no table" in refused(run("restore", "nothing", "--as-of", "then"))
