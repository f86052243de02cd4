"""A table that programs without transactions have written, taken over: what was there is seen, and nothing else."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable
from typing import cast

import pytest

from client import Adopted, AsyncTransactionManager, CatalogEntry, Conflict, InvalidRequest, TransactionManager
from client.adoption import adopting
from client.catalog.age import ENTRY_AGE_SECONDS_MAX
from client.catalog.catalog import Catalog
from client.catalog.entry import ConflictLevel
from client.cells import is_reserved
from client.snapshots.plain_cells import TRANSACTIONS_FROM
from client.vacuum import run_vacuum
from commit_table import table_name
from store import CELL_TIMESTAMP_MAX, Family, KeyRange, RowPut
from testkit import small_limits
from tests.horizon import await_horizon
from tests.unit.client.conftest import SETTINGS, Installation
from tests.unit.client.transacting import fail_over, get, put
from versions import formats

A, B, G = b"f:a", b"f:b", b"g:a"
OLD_MS, NOW_MS, LATER_MS = 1_600_000_000_000, 1_700_000_000_000, 1_800_000_000_000
THERE = {
    b"r1": {A: b"1", B: b""},
    b"r2": {A: b"\xc1", G: b"\xc1x"},
    b"r3": {b"f:%d" % number: b"%d" % number for number in range(40)},
}
Content = dict[bytes, dict[bytes, bytes]]


@pytest.fixture
def plain(installation: Installation) -> Installation:
    """Table ``old``, in which each cell has an older version."""
    put_plainly(installation)
    return installation


@pytest.fixture
def forgetful(empty_installation: Installation) -> Installation:
    """The same, with an oracle that gives up soon what it hears nothing of, so that its horizon moves."""
    empty_installation.serve(limits=small_limits(transaction_life_ms=100))
    put_plainly(empty_installation)
    return empty_installation


def put_plainly(installation: Installation) -> None:
    installation.store.create_table("old", [Family("f"), Family("g")])
    installation.store.put("old", [RowPut(row, dict.fromkeys(values, b"older")) for row, values in THERE.items()], 5)
    installation.store.put("old", [RowPut(row, values) for row, values in THERE.items()], OLD_MS)


@pytest.fixture(autouse=True)
def now(monkeypatch: pytest.MonkeyPatch) -> None:
    """The time of HBase's timestamps."""
    monkeypatch.setattr(adopting, "wall_ms", lambda: NOW_MS)


def content(manager: TransactionManager) -> Content:
    return dict(manager.snapshot().scan("old"))


def test_what_was_there_is_seen_by_every_snapshot_and_changed_by_none(plain: Installation) -> None:
    manager, told = plain.manager(), list[int]()
    before, cells = manager.snapshot(), dict(plain.store.scan("old", KeyRange(b"", b""), [b"f", b"g"]))
    assert manager.adopt_table("old", conflict_level="row", progress=told.append) == Adopted(3, NOW_MS)
    assert told == [3]
    for reader in (manager.snapshot(), before, plain.manager().snapshot()):
        assert dict(reader.scan("old")) == THERE
        assert {row: reader.get("old", row) for row in THERE} == THERE
    with manager.transaction() as transaction:
        transaction.put("old", b"r1", {A: b"2"})
        transaction.delete("old", b"r2", [A])
        transaction.put("old", b"r4", {G: b"new"})
    changed = THERE | {b"r1": {A: b"2", B: b""}, b"r2": {G: b"\xc1x"}, b"r4": {G: b"new"}}
    assert content(plain.manager()) == changed
    assert dict(before.scan("old")) == THERE
    for row, columns in cells.items():
        for column, cell in columns.items():
            assert plain.store.versions("old", row, column, before=cell.timestamp + 1, limit=1) == [cell]


def test_no_question_is_asked_of_the_commit_table_about_what_was_there(plain: Installation) -> None:
    manager = plain.manager()
    manager.adopt_table("old")
    fail_over(plain)  # a reader of the new epoch fences who is undecided
    assert content(manager) == THERE
    plain.store.put("old", [RowPut(b"r1", {A: b"of who went on"}), RowPut(b"r9", {A: b"so"})], LATER_MS)
    assert content(manager) == THERE
    fences = plain.store.scan(table_name(SETTINGS.root), KeyRange(b"", b""), [b"f"])
    assert list(fences) == []
    columns = {column for _, row in plain.store.scan("old", KeyRange(b"", b""), [b"f", b"g"]) for column in row}
    assert not any(map(is_reserved, columns))


def test_two_who_write_what_was_there_conflict(plain: Installation) -> None:
    manager = plain.manager()
    manager.adopt_table("old", conflict_level="row")
    first, second = manager.transaction(), manager.transaction()
    first.put("old", b"r1", {A: b"first"})
    second.put("old", b"r1", {B: b"second"})
    first.commit()
    with pytest.raises(Conflict):
        second.commit()


def test_a_commit_after_a_failover_takes_what_was_there_for_no_conflict(plain: Installation) -> None:
    manager = plain.manager()
    manager.adopt_table("old")
    transaction = manager.transaction()
    transaction.put("old", b"r1", {A: b"2"})
    fail_over(plain)
    transaction.commit()
    assert get(manager, b"r1", table="old") == b"2"


def test_a_vacuum_leaves_what_is_seen_and_takes_what_lies_below_what_was_written(
    forgetful: Installation,
) -> None:
    manager, store = forgetful.manager(), forgetful.store
    manager.adopt_table("old")
    put(manager, b"r1", b"2", table="old")
    with manager.transaction() as transaction:
        transaction.delete("old", b"r2")
    store.put("old", [RowPut(b"r9", {A: b"of who went on"})], LATER_MS)
    left = content(manager)
    await_horizon(manager, lambda counted: counted.outcomes_horizon > transaction.start_timestamp)
    for everything in (False, False, True):
        report = run_vacuum(
            manager, retain_ms=0, outcomes_retain_ms=0, everything=everything, wait=lambda seconds: None
        )
        assert report.problems == {}
        assert content(manager) == left
        assert (report.tables["old"].shadow_cells_left_out, report.tables["old"].transactions_aborted) == (0, 0)
    assert len(store.versions("old", b"r1", A, limit=9)) == 1
    assert [row for row, _ in store.scan("old", KeyRange(b"", b""), [b"f", b"g"])] == [b"r1", b"r3"]


def test_repeating_it_is_harmless_and_looks_at_nothing(plain: Installation) -> None:
    manager = plain.manager()
    manager.adopt_table("old", conflict_level="row", description=b"of us")
    put(manager, b"r1", b"2", table="old")
    assert plain.manager().adopt_table("old", conflict_level="row", description=b"of us") == Adopted(0, NOW_MS)
    manager.create_table("old", ["f", "g"], conflict_level="row", description=b"of us", if_missing=True)
    assert get(plain.manager(), b"r1", table="old") == b"2"
    for level, description, words in (("cell", b"of us", "conflict level"), ("row", b"", "description")):
        with pytest.raises(InvalidRequest, match=f"exists already, and differs in {words}"):
            manager.adopt_table("old", conflict_level=cast("ConflictLevel", level), description=description)


def test_of_two_at_once_one_is_agreed_on(plain: Installation, monkeypatch: pytest.MonkeyPatch) -> None:
    manager, adopt_table = plain.manager(), Catalog.adopt_table

    def overtaken(catalog: Catalog, table: str, entry: CatalogEntry) -> CatalogEntry:
        monkeypatch.setattr(Catalog, "adopt_table", adopt_table)
        monkeypatch.setattr(adopting, "wall_ms", lambda: NOW_MS + 7)
        plain.manager().adopt_table("old")
        return catalog.adopt_table(table, entry)

    monkeypatch.setattr(Catalog, "adopt_table", overtaken)
    assert manager.adopt_table("old") == Adopted(3, NOW_MS + 7)
    assert manager.catalog.fresh_entry("old").plain_through == NOW_MS + 7
    assert content(manager) == THERE


def test_a_cell_that_is_newer_than_our_clock_was_there_all_the_same(plain: Installation) -> None:
    plain.store.put("old", [RowPut(b"r1", {A: b"by a region server's clock"})], NOW_MS + 20_000)
    assert plain.manager().adopt_table("old").plain_through == NOW_MS + 20_000
    assert get(plain.manager(), b"r1", table="old") == b"by a region server's clock"


@pytest.mark.parametrize("column", [A, b"f:of no other row"])
@pytest.mark.parametrize("timestamp", [TRANSACTIONS_FROM, CELL_TIMESTAMP_MAX])
def test_a_cell_that_could_be_a_transaction_s_is_refused(plain: Installation, column: bytes, timestamp: int) -> None:
    plain.store.put("old", [RowPut(b"r1", {column: b"new for ever"})], timestamp)
    refused(plain, "old", rf"a cell with the timestamp {timestamp}, between the rows b'r1' and b'r3'")


@pytest.mark.parametrize("column", [b"f:\x00", b"g:\x00row", b"f:\x00mine"])
def test_a_column_that_could_be_ours_is_refused(plain: Installation, column: bytes) -> None:
    plain.store.put("old", [RowPut(b"r2", {column: b"1"})], OLD_MS)
    refused(plain, "old", r"row b'r2' of table 'old' has a column b'.:\\x00.*' that begin|names that begin")


@pytest.mark.parametrize(
    ("family", "words"),
    [
        (Family("g", versions_max=1), r"keeps 1 version\(s\) of a cell; .* VERSIONS => 2147483647"),
        (Family("g", lives_seconds_max=3_600), "drops cells after 3,600 seconds.* TTL => 'FOREVER'"),
    ],
)
def test_a_family_that_drops_cells_is_refused(plain: Installation, family: Family, words: str) -> None:
    plain.store.create_table("short", [Family("f"), family])
    plain.store.put("short", [RowPut(b"r", {A: b"1"})], OLD_MS)
    refused(plain, "short", words)


def test_what_is_ours_or_is_not_there_is_refused(plain: Installation) -> None:
    put(plain.manager(), b"r", b"1")
    for table, words in (
        ("t", "one of this installation's already: there is nothing to adopt"),
        ("none", "there is no table 'none': give the name that HBase knows it by"),
        (table_name(SETTINGS.root), "is Pythia's own"),
        ("a b", "a table name has"),
    ):
        with pytest.raises(InvalidRequest, match=words):
            plain.manager().adopt_table(table, conflict_level="cell")
    with pytest.raises(InvalidRequest, match="conflict_level is 'cell' or 'row'"):
        plain.manager().adopt_table("old", conflict_level=cast("ConflictLevel", "table"))
    assert get(plain.manager(), b"r") == b"1"


def refused(installation: Installation, table: str, words: str) -> None:
    """And nothing is agreed on."""
    manager = installation.manager()
    with pytest.raises(InvalidRequest, match=words):
        manager.adopt_table(table)
    assert not manager.catalog.has_entry(table)
    with pytest.raises(InvalidRequest):
        manager.snapshot().get(table, b"r1")


def test_while_the_oracle_s_clock_is_that_of_1970_nothing_is_adopted(plain: Installation) -> None:
    """Its transactions could not be told from plain puts."""
    manager = plain.manager()
    with pytest.raises(InvalidRequest, match=r"hands out timestamps of 1970-07-18, .* set the clock of its machine"):
        adopting.adopt(plain.store, manager.catalog, "old", "row", b"", print, now=TRANSACTIONS_FROM - 1)
    assert not manager.catalog.has_entry("old")
    adopting.adopt(plain.store, manager.catalog, "old", "row", b"", print, now=TRANSACTIONS_FROM)


def test_an_empty_table_can_be_adopted_too(installation: Installation) -> None:
    installation.store.create_table("empty", [Family("f")])
    assert installation.manager().adopt_table("empty") == Adopted(0, NOW_MS)
    put(installation.manager(), b"r", b"1", table="empty")
    assert get(installation.manager(), b"r", table="empty") == b"1"


def test_in_the_place_of_a_table_that_was_dropped_nothing_of_that_one_is_seen(plain: Installation) -> None:
    manager = plain.manager()
    before = manager.snapshot()
    manager.adopt_table("old")
    put(manager, b"r1", b"2", table="old")
    straggler = manager.transaction()
    straggler.put("old", b"r2", {A: b"late"})
    manager.drop_table("old")
    plain.store.create_table("old", [Family("f")])
    plain.store.put("old", [RowPut(b"r1", {A: b"of another table"})], OLD_MS)
    assert manager.adopt_table("old") == Adopted(1, NOW_MS)
    assert content(manager) == {b"r1": {A: b"of another table"}}
    with pytest.raises(InvalidRequest, match="was dropped at"):
        before.get("old", b"r1")


def test_a_name_is_adopted_once_every_process_has_had_to_ask_again(
    plain: Installation, monkeypatch: pytest.MonkeyPatch
) -> None:
    manager, slept = plain.manager(), list[float]()
    manager.adopt_table("old")
    manager.drop_table("old")
    put_plainly(plain)
    monkeypatch.setattr("client.catalog.stored_entries.REMADE_AFTER_SECONDS_MIN", ENTRY_AGE_SECONDS_MAX + 1)
    monkeypatch.setattr("client.catalog.stored_entries.time.sleep", slept.append)
    manager.adopt_table("old")
    assert slept == [ENTRY_AGE_SECONDS_MAX + 1]


def test_a_release_that_knows_nothing_of_it_shows_nothing(
    forgetful: Installation, monkeypatch: pytest.MonkeyPatch
) -> None:
    manager = forgetful.manager()
    manager.adopt_table("old")
    await_horizon(manager, lambda counted: True)
    monkeypatch.setattr(
        "client.catalog.entry.CATALOG_ENTRIES", formats.Format("catalog entries", "table ROOT_catalog", {1: 1})
    )
    other = forgetful.manager()
    uses: list[Callable[[], object]] = [
        lambda: other.snapshot().get("old", b"r1"),
        lambda: other.transaction().put("old", b"r1", {A: b"2"}),
        lambda: run_vacuum(other, wait=lambda seconds: None),
    ]
    for use in uses:
        with pytest.raises(InvalidRequest, match=r"format version 2 of catalog entries .* upgrade this program first"):
            use()


def test_what_is_stored_of_a_table_that_was_made_is_as_before() -> None:
    made, adopted = (json.loads(CatalogEntry("row", ("f",), b"", through).encode("once")) for through in (0, 9))
    assert (made["format"], "plain_through" in made) == (1, False)
    assert (adopted["format"], adopted["plain_through"]) == (2, 9)


def test_tasks_wait_for_it(plain: Installation) -> None:
    async def adopted() -> tuple[Adopted, object]:
        async with AsyncTransactionManager(plain.manager()) as manager:
            told: list[int] = []
            done = await manager.adopt_table("old", conflict_level="row", description=b"of us", progress=told.append)
            assert told == [3]
            return done, await (await manager.snapshot()).get("old", b"r1")

    assert asyncio.run(adopted()) == (Adopted(3, NOW_MS), THERE[b"r1"])
    assert plain.manager().catalog.entry("old") == CatalogEntry("row", ("f", "g"), b"of us", NOW_MS)
