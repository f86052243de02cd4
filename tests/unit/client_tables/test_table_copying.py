"""A plain HBase table copied: every newest cell once, on from the last row that landed, and nothing that cannot be."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import pytest

from client import InvalidRequest, TransactionManager
from client.tables import copying
from client.tables.copying import copy
from client.tables.steps import Landed
from commit_table import table_name
from store import ALL_ROWS, Family, RowPut, StoreUnavailable
from store.faults import Fault
from tests.unit.client.conftest import SETTINGS
from tests.unit.client_tables.conftest import Run, done, refused

if TYPE_CHECKING:
    from tests.unit.client.conftest import Installation

A, B, G = b"f:a", b"f:", b"g:\xffc"
NOW_MS = 1_700_000_000_000
OLD = {
    b"\x00": {A: b"1"},
    b"deleted-looking": {A: b"\xc1", G: b"\xc1x"},
    b"empty": {B: b"", A: b"2"},
    b"wide": {b"f:%d" % number: b"%d" % number for number in range(50)},
    b"\xff\xff": {G: b"3"},
}
Content = dict[bytes, dict[bytes, bytes]]


@pytest.fixture
def plain(installation: Installation) -> TransactionManager:
    """Table ``old``, as programs without transactions wrote it: some cells twice."""
    installation.store.create_table("old", [Family("f", versions_max=1), Family("g", versions_max=3)])
    installation.store.put("old", [RowPut(row, dict.fromkeys(values, b"older")) for row, values in OLD.items()], 5)
    installation.store.put("old", [RowPut(row, values) for row, values in OLD.items()], NOW_MS)
    return installation.manager()


def ignore(rows: int, landed: bool) -> None:
    """No progress is shown."""


def content(manager: TransactionManager, table: str = "new") -> Content:
    return dict(manager.snapshot().scan(table))


@pytest.mark.parametrize(("thrift2", "regions"), [("g:1", 3), ("", 1)])
def test_a_table_that_is_made_has_the_regions_of_the_old_one_where_it_can(
    installation: Installation, thrift2: str, regions: int
) -> None:
    installation.store.create_table("old", [Family("f")], [b"e", b"w"])
    installation.store.put("old", [RowPut(row, {A: row}) for row in OLD], 5)
    manager = installation.manager(settings=replace(SETTINGS, thrift2=thrift2))
    copy(manager, "old", "new", 100, ignore)
    assert installation.store.regions("new") == (installation.store.regions("old") if thrift2 else [ALL_ROWS])
    assert len(installation.store.regions("new")) == regions
    assert content(manager) == {row: {A: row} for row in OLD}


@pytest.mark.parametrize(("rows", "transactions"), [(1, 5), (2, 3), (5, 1), (100, 1)])
def test_every_row_is_copied_once_as_it_is(plain: TransactionManager, rows: int, transactions: int) -> None:
    told: list[int] = []
    landed = copy(plain, "old", "new", rows, lambda number, landed: told.append(number) if landed else None)
    assert landed == Landed(0, 5, transactions)
    assert content(plain) == OLD
    assert told == sorted({*range(rows, 5, rows), 5})
    entry = plain.catalog.entry("new")
    assert (entry.families, entry.conflict_level) == (("f", "g"), "row")


def test_a_batch_ends_at_its_size(plain: TransactionManager, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(copying, "BATCH_ROWS_MAX", 2)
    told: list[tuple[int, bool]] = []
    copy(plain, "old", "new", 5, lambda rows, landed: told.append((rows, landed)))
    assert told == [(2, False), (4, False), (5, False), (5, True)]
    assert content(plain) == OLD


def test_it_goes_on_after_the_last_row_that_landed(plain: TransactionManager, installation: Installation) -> None:
    def fail(rows: int, landed: bool) -> None:
        if landed and rows == 2:
            installation.store.plan("put", None, None, Fault.DONE)  # announced, recorded; then the rows

    with pytest.raises(StoreUnavailable):
        copy(plain, "old", "new", 2, fail)
    first = sorted(OLD)[:2]
    assert content(plain) == {row: OLD[row] for row in first}
    with plain.transaction() as changing:
        changing.put("new", first[0], {A: b"changed since"})
    installation.store.delete("old", [first[1]], NOW_MS)  # a count of rows would now leave one out
    assert copy(plain, "old", "new", 2, ignore) == Landed(2, 3, 2)
    assert content(plain) == OLD | {first[0]: {A: b"changed since"}}
    assert copy(plain, "old", "new", 2, ignore) == Landed(5, 0, 0)
    assert copy(plain, "old", "new", 2, ignore, again=True) == Landed(0, 4, 2)
    assert content(plain) == OLD


def test_two_copies_at_once_land_nothing_twice(plain: TransactionManager) -> None:
    def other(rows: int, landed: bool) -> None:
        if landed and rows == 2:
            copy(plain, "old", "new", 1, ignore)

    with pytest.raises(InvalidRequest, match="another process lands the same: it has landed 5 rows"):
        copy(plain, "old", "new", 2, other)
    assert content(plain) == OLD


def test_a_table_that_is_there_takes_the_rows_if_it_has_the_families(plain: TransactionManager) -> None:
    plain.create_table("narrow", ["g"])
    with pytest.raises(InvalidRequest, match="'narrow' lacks column families of the one to copy: f"):
        copy(plain, "old", "narrow", 2, ignore)
    plain.create_table("broad", ["h", "g", "f"])
    with pytest.raises(InvalidRequest, match="conflicts of table 'broad' are by cell, for good"):
        copy(plain, "old", "broad", 2, ignore, conflict_level="row")
    copy(plain, "old", "broad", 2, ignore)
    assert content(plain, "broad") == OLD
    copy(plain, "old", "by_cell", 2, ignore, conflict_level="cell")
    assert plain.catalog.entry("by_cell").conflict_level == "cell"


def test_what_pythia_keeps_itself_is_no_plain_table(plain: TransactionManager) -> None:
    for own in ("t", table_name(plain.settings.root)):
        with pytest.raises(InvalidRequest, match="one of Pythia's"):
            copy(plain, own, "new", 2, ignore)
    with pytest.raises(InvalidRequest, match="no table 'nowhere'"):
        copy(plain, "nowhere", "new", 2, ignore)
    assert "new" not in plain.store.table_names()


def test_columns_that_would_be_taken_for_pythias_are_refused(
    plain: TransactionManager, installation: Installation
) -> None:
    installation.store.put("old", [RowPut(b"odd", {b"f:\x00": b"1"})], NOW_MS)
    with pytest.raises(InvalidRequest, match=r"row b'odd' of table 'old' has a column b'f:\\x00'"):
        copy(plain, "old", "new", 100, ignore)
    assert content(plain) == {}


def test_on_the_command_line(plain: TransactionManager, run: Run) -> None:
    told = done(run("copy", "old", "new", "--rows-per-transaction", "3", "--level", "cell", "--json"))
    assert told == {"copied": "old", "table": "new", "rows_before": 0, "rows": 5, "transactions": 2}
    ended = run("copy", "old", "new")
    assert (ended.exit_code, ended.stdout) == (
        0,
        "new: 0 rows have landed in 0 transactions; 5 had landed before\n",
    )
    assert "one of Pythia's" in refused(run("copy", "new", "newer"))
    refused(run("copy", "old", "new", "--rows-per-transaction", "0"), 2)
