"""What is agreed on about tables: what may be one, what others did to it meanwhile, and answers that were lost."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from types import SimpleNamespace

import pytest

from client import CatalogEntry, InvalidRequest, NoPrimary, TransactionManager
from client.catalog.age import ENTRY_AGE_SECONDS_MAX
from client.catalog.catalog import Catalog
from client.catalog.entry import ConflictLevel, family_names
from commit_table import table_name
from store import Family, KeyRange, Row, RowPut, StoreUnavailable
from store.faults import Fault, FaultyCellStore
from tests.unit.client.conftest import SETTINGS, Installation
from tests.unit.client.transacting import put

ENTRY = CatalogEntry("cell", ("f",), shadows_apart=True)
BESIDE = CatalogEntry("cell", ("f",))
"""Of a table that HBase had before, without a family for shadow cells."""
WIDER = CatalogEntry("cell", ("f", "g"), shadows_apart=True)
ATTEMPTS = 10


@pytest.fixture
def store() -> FaultyCellStore:
    return FaultyCellStore()


@pytest.fixture
def catalog(store: FaultyCellStore) -> Catalog:
    return Catalog(store, "/pythia")


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> SimpleNamespace:
    """The catalogs' clock: ``now`` is what it shows."""
    clock = SimpleNamespace(now=1_000.0)
    monkeypatch.setattr("client.catalog.age.monotonic_ms", lambda: 1_000 * clock.now)
    return clock


def fence() -> int:
    """As one that was placed at this timestamp."""
    return 7


def stored(store: FaultyCellStore, table: str) -> CatalogEntry:
    """As a process finds it that remembers nothing."""
    return Catalog(store, "/pythia").entry(table)


@pytest.mark.parametrize("faults", [[fault] * times for fault in Fault for times in (1, 2)])
def test_a_name_is_free_after_a_drop_whose_answers_were_lost(
    store: FaultyCellStore, catalog: Catalog, faults: Sequence[Fault]
) -> None:
    catalog.create_table("t", ENTRY)
    store.plan("compare_and_set", *faults)
    catalog.drop_table("t", fence)
    assert "t" not in store.table_names()
    catalog.create_table("t", WIDER)
    assert stored(store, "t") == WIDER


def test_a_drop_that_failed_halfway_is_ended_by_another(store: FaultyCellStore, catalog: Catalog) -> None:
    catalog.create_table("t", ENTRY)
    store.plan("compare_and_set", *[Fault.LOST] * ATTEMPTS)
    with pytest.raises(StoreUnavailable, match="drop it again"):
        catalog.drop_table("t", fence)
    for if_missing in (False, True):
        with pytest.raises(InvalidRequest, match="drop it again"):
            catalog.create_table("t", ENTRY, if_missing=if_missing)
    Catalog(store, "/pythia").drop_table("t", fence)
    catalog.create_table("t", ENTRY)
    assert stored(store, "t") == ENTRY


def test_a_table_that_is_there_is_not_to_be_dropped(catalog: Catalog) -> None:
    catalog.create_table("t", ENTRY)
    with pytest.raises(InvalidRequest, match=r"exists already$"):
        catalog.create_table("t", ENTRY)


def test_a_table_that_was_to_be_made_if_missing_is_left_as_it_is(store: FaultyCellStore, catalog: Catalog) -> None:
    made = CatalogEntry("row", ("f", "g"), b"of the first", shadows_apart=True)
    for entry in (made, made, CatalogEntry("row", ("g", "f"), b"of the first")):
        catalog.create_table("t", entry, if_missing=True)
    for entry, unlike in (
        (CatalogEntry("cell", ("f", "g"), b"of the first"), "differs in conflict level$"),
        (CatalogEntry("row", ("f",), b"of the first"), "differs in families$"),
        (CatalogEntry("row", ("f", "g")), "differs in description$"),
    ):
        with pytest.raises(InvalidRequest, match=unlike):
            catalog.create_table("t", entry, if_missing=True)
    assert stored(store, "t") == made


def test_a_table_that_two_make_at_once_is_made_for_both_if_they_mean_the_same(
    store: FaultyCellStore, catalog: Catalog, monkeypatch: pytest.MonkeyPatch
) -> None:
    other, seen = Catalog(store, "/pythia"), catalog._stored.agreed_level

    def overtaken(table: str, level: ConflictLevel) -> ConflictLevel:
        other.create_table(table, CatalogEntry("cell", ("f", "g")))
        return seen(table, level)

    monkeypatch.setattr(catalog._stored, "agreed_level", overtaken)
    catalog.create_table("t", CatalogEntry("cell", ("g", "f")))
    with pytest.raises(InvalidRequest, match="differs in description"):
        catalog.create_table("u", CatalogEntry("cell", ("f", "g"), b"of the first"))


def test_a_drop_that_arrives_late_takes_no_newer_table(store: FaultyCellStore, catalog: Catalog) -> None:
    catalog.create_table("t", ENTRY)
    store.plan("compare_and_set", Fault.LATE)
    catalog.drop_table("t", fence)
    catalog.create_table("t", ENTRY)
    store.put("t", [RowPut(b"r", {b"f:a": b"1"})], 5)
    store.deliver_late()
    assert stored(store, "t") == ENTRY


def test_an_entry_that_arrives_late_brings_no_dropped_table_back(store: FaultyCellStore, catalog: Catalog) -> None:
    catalog.create_table("t", ENTRY)
    catalog.drop_table("t", fence)
    store.plan("compare_and_set", Fault.LATE)
    catalog.create_table("t", ENTRY)
    catalog.drop_table("t", fence)
    store.deliver_late()
    with pytest.raises(InvalidRequest, match="there is no table 't'"):
        stored(store, "t")
    catalog.create_table("t", ENTRY)


def test_a_drop_leaves_the_entry_of_a_table_that_was_made_meanwhile(
    store: FaultyCellStore, catalog: Catalog, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its own mark stands already, the answer was lost, and another process was quick."""
    catalog.create_table("t", ENTRY)
    other, compare_and_set = Catalog(store, "/pythia"), store.compare_and_set

    def mark_and_make_anew(*arguments: object, **named: object) -> object:
        monkeypatch.setattr(store, "compare_and_set", compare_and_set)
        answer = compare_and_set(*arguments, **named)  # type: ignore[arg-type]
        other.create_table("t", ENTRY)
        return answer

    monkeypatch.setattr(store, "compare_and_set", mark_and_make_anew)
    catalog.drop_table("t", fence)
    assert stored(store, "t") == ENTRY


@pytest.mark.parametrize("table", ["nope", "bad name!", "", "default:t", "pythia_commits"])
def test_what_is_no_table_is_not_dropped(catalog: Catalog, table: str) -> None:
    catalog.create_table("dropped", ENTRY)
    catalog.drop_table("dropped", fence)
    for name in (table, "dropped"):
        with pytest.raises(InvalidRequest, match=name if name in ("nope", "dropped") else "table"):
            catalog.drop_table(name, fence)


def test_a_table_without_an_entry_can_be_dropped(store: FaultyCellStore, catalog: Catalog) -> None:
    store.create_table("plain", [Family("f")])
    catalog.drop_table("plain", fence)
    assert "plain" not in store.table_names()


def test_the_data_of_others_is_not_dropped(store: FaultyCellStore, catalog: Catalog) -> None:
    store.create_table("plain", [Family("f")])
    store.put("plain", [RowPut(b"r", {b"f:a": b"1"})], 1)
    other = Catalog(store, "/other")
    other.create_table("theirs", ENTRY)
    store.put("theirs", [RowPut(b"r", {b"f:a": b"1"})], 1)
    for table in ("plain", "theirs", other.own_table):
        with pytest.raises(InvalidRequest, match="another one's"):
            catalog.drop_table(table, fence)
        assert table in store.table_names()
    other.drop_table("theirs", fence)


def test_an_entry_is_believed_for_a_while_only(store: FaultyCellStore, clock: SimpleNamespace) -> None:
    here, there = Catalog(store, "/pythia"), Catalog(store, "/pythia")
    there.create_table("t", ENTRY)
    assert here.entry("t") == ENTRY
    there.drop_table("t", fence)
    there.create_table("t", WIDER)
    clock.now += ENTRY_AGE_SECONDS_MAX - 0.1
    assert here.entry("t") == ENTRY
    clock.now += 0.2
    assert here.entry("t") == WIDER


def test_what_is_remembered_is_as_old_as_the_question(
    store: FaultyCellStore, catalog: Catalog, clock: SimpleNamespace, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Not as the answer: its process may have been paused in between."""
    catalog.create_table("t", ENTRY)
    ask = store.get

    def answer_late(table: str, row: bytes, columns: Sequence[bytes], *, before: int | None = None) -> Row:
        found = ask(table, row, columns, before=before)
        clock.now += ENTRY_AGE_SECONDS_MAX
        return found

    reader = Catalog(store, "/pythia")
    with monkeypatch.context() as late:
        late.setattr(store, "get", answer_late)
        assert reader.shown_from("t").vacuumed_below == 0
    catalog.vacuums.mark("t", 7)
    assert reader.shown_from("t").vacuumed_below == 7


def test_what_is_remembered_ages_while_the_machine_sleeps(
    store: FaultyCellStore, catalog: Catalog, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Then only one of the two clocks goes on."""
    catalog.create_table("t", ENTRY)
    catalog.vacuums.mark("t", 5)
    assert catalog.shown_from("t").vacuumed_below == 5
    Catalog(store, "/pythia").vacuums.mark("t", 9)
    asleep_ns = int(1e9 * (ENTRY_AGE_SECONDS_MAX + 1))
    boot_ns = time.clock_gettime_ns
    monkeypatch.setattr("lease.clocks.time.clock_gettime_ns", lambda clock: boot_ns(clock) + asleep_ns)
    assert catalog.shown_from("t").vacuumed_below == 9


def test_a_table_that_was_made_anew_with_more_families_is_read_whole_after_a_while(
    installation: Installation, clock: SimpleNamespace
) -> None:
    here, there = installation.manager(), installation.manager()
    assert here.snapshot().get("t", b"r") == {}
    there.drop_table("t")
    there.create_table("t", ["f", "g", "h"])
    with there.transaction() as transaction:
        transaction.put("t", b"r", {b"f:a": b"1", b"h:a": b"2"})
    clock.now += ENTRY_AGE_SECONDS_MAX
    assert here.snapshot().get("t", b"r") == {b"f:a": b"1", b"h:a": b"2"}


def test_a_table_that_was_made_anew_with_other_families_is_read_at_once(installation: Installation) -> None:
    made_anew = {b"f:a": b"1", b"h:a": b"2"}
    there = installation.manager()
    readers = [installation.manager() for _ in range(3)]
    for reader in readers:
        assert reader.snapshot().get("t", b"r") == {}
    there.drop_table("t")
    there.create_table("t", ["f", "h"])
    with there.transaction() as transaction:
        transaction.put("t", b"r", made_anew)
    assert readers[0].snapshot().get("t", b"r") == made_anew
    assert list(readers[1].transaction().scan("t")) == [(b"r", made_anew)]
    assert readers[2].snapshot().get("t", b"r", [b"h"]) == {b"h:a": b"2"}
    with pytest.raises(InvalidRequest, match="no family g; it has f, h"):
        readers[2].snapshot().get("t", b"r", [b"g:a"])


def test_who_looks_from_before_a_drop_is_told_of_it_and_sees_no_new_table(
    installation: Installation,
) -> None:
    here, there = installation.manager(), installation.manager()
    put(there, b"r", b"1")
    before, deciding = there.snapshot(), there.transaction()
    there.create_snapshot("before")
    remembered = here.resume_snapshot(before.handle())
    there.drop_table("t")
    there.create_table("t", ["f"])
    for look in (before, there.snapshot("before"), installation.manager().resume_snapshot(before.handle()), deciding):
        with pytest.raises(InvalidRequest, match=r"table 't' was dropped at .* and made anew"):
            look.get("t", b"r")
        with pytest.raises(InvalidRequest, match=r"table 't' was dropped at .* and made anew"):
            list(look.scan("t"))
    with pytest.raises(InvalidRequest, match=r"table 't' was dropped at .* and made anew"):
        list(remembered.scan("t"))
    assert there.snapshot().get("t", b"r") == {}


def test_a_name_is_nobodys_until_every_process_has_had_to_ask_again(
    store: FaultyCellStore, catalog: Catalog, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("client.catalog.stored_entries.REMADE_AFTER_SECONDS_MIN", ENTRY_AGE_SECONDS_MAX + 1)
    now_ms, slept = 1_000_000, list[float]()

    def sleep(seconds: float) -> None:
        assert "t" not in store.table_names(), "whoever remembers the old one would read it"
        slept.append(seconds)

    monkeypatch.setattr("client.catalog.stored_entries.time.sleep", sleep)
    monkeypatch.setattr("client.catalog.stored_entries.wall_ms", lambda: now_ms)
    for later_ms, expected in [(0, 11), (29_000, 11), (35_000, 6), (41_000, None), (-5_000, 11)]:
        catalog.create_table("t", ENTRY)
        catalog.drop_table("t", fence)
        now_ms += later_ms
        catalog.create_table("t", ENTRY)
        catalog.drop_table("t", fence)
        now_ms += 100_000
        assert slept == ([] if expected is None else [expected])
        slept.clear()


def test_a_table_is_dropped_once_more_where_its_second_fence_failed(store: FaultyCellStore, catalog: Catalog) -> None:
    def no_fence() -> int:
        raise NoPrimary(0, "nobody")

    catalog.create_table("t", ENTRY)
    with pytest.raises(NoPrimary):
        catalog.drop_table("t", no_fence)
    with pytest.raises(InvalidRequest, match="drop it again"):
        catalog.create_table("t", ENTRY)
    catalog.drop_table("t", fence)
    catalog.create_table("t", ENTRY)


def test_a_table_that_is_gone_is_an_invalid_request_at_once(installation: Installation) -> None:
    here, there = installation.manager(), installation.manager()
    assert here.snapshot().get("t", b"r") == {}
    there.drop_table("t")
    for columns in (None, [b"f:a"]):
        with pytest.raises(InvalidRequest, match="no table 't'"):
            here.snapshot().get("t", b"r", columns)
    with pytest.raises(InvalidRequest, match="no table 't'"):
        list(here.snapshot().scan("t"))


def test_data_that_no_transaction_wrote_is_refused_and_not_hidden(
    installation: Installation, manager: TransactionManager
) -> None:
    installation.store.create_table("plain", [Family("f"), Family("g")])
    installation.store.put("plain", [RowPut(b"r", {b"g:a": b"old"})], 1_700_000_000_000)
    transaction = manager.transaction()
    uses: list[Callable[[], object]] = [
        lambda: manager.snapshot().get("plain", b"r"),
        lambda: manager.snapshot().get("plain", b"r", [b"f:a"]),
        lambda: list(manager.snapshot().scan("plain", columns=[b"f"])),
        lambda: transaction.put("plain", b"r", {b"f:a": b"1"}),
        lambda: manager.create_table("plain", ["f"]),
    ]
    for use in uses:
        with pytest.raises(InvalidRequest, match=r"have it adopted .* table copy writes its rows into a new one"):
            use()
    commits = installation.store.scan(table_name(SETTINGS.root), KeyRange(b"", b""), [b"f"])
    assert list(commits) == []
    installation.store.delete("plain", [b"r"], 1_700_000_000_000)
    transaction.put("plain", b"r", {b"f:a": b"1"})
    transaction.commit()
    assert manager.snapshot().get("plain", b"r") == {b"f:a": b"1"}


def test_a_table_that_another_process_registers_and_fills_meanwhile_is_no_plain_one(
    store: FaultyCellStore, catalog: Catalog, monkeypatch: pytest.MonkeyPatch
) -> None:
    store.create_table("t", [Family("f")])
    scan = store.scan

    def scan_late(*arguments: object, **named: object) -> Iterator[tuple[bytes, Row]]:
        monkeypatch.undo()
        assert stored(store, "t") == BESIDE
        store.put("t", [RowPut(b"r", {b"f:a": b"1"})], 5)
        return scan(*arguments, **named)  # type: ignore[arg-type]

    monkeypatch.setattr(store, "scan", scan_late)
    assert catalog.entry("t") == BESIDE


def test_an_entry_comes_back_as_it_was_and_never_as_the_same_bytes() -> None:
    for entry in (
        CatalogEntry("row", ("f", "g"), b"\x00\xff"),
        CatalogEntry("cell", ("f",), plain_through=7),
        CatalogEntry("cell", ("f",), shadows_apart=True),
    ):
        assert CatalogEntry.parse("t", entry.encode("one")) == entry
        assert entry.encode("one") != entry.encode("two")


@pytest.mark.parametrize("name", ["bad name!", "", ".t", "a:b:c", "default:t", "x" * 201, b"t", None])
def test_names_that_no_table_can_have_are_refused(manager: TransactionManager, name: str) -> None:
    with pytest.raises(InvalidRequest, match="a table"):
        manager.create_table(name, ["f"])


@pytest.mark.parametrize(
    "families", ["info", b"info", [], ["f", "f"], ["a b"], ["f:g"], [""], [b"f"], [None], [["f"]], ["f" * 128]]
)
def test_families_that_no_table_can_have_are_refused(manager: TransactionManager, families: list[str]) -> None:
    with pytest.raises(InvalidRequest, match="famil"):
        manager.create_table("fresh", families)
    assert "fresh" not in manager.store.table_names()


def test_families_may_be_listed_in_any_way() -> None:
    assert family_names(("f", "g")) == family_names(["f", "g"]) == ("f", "g")


def test_a_family_that_is_not_there_is_told_with_those_that_are(manager: TransactionManager) -> None:
    manager.create_table("two", ["e", "d"])
    with (
        manager.transaction() as transaction,
        pytest.raises(InvalidRequest, match=r"'two' has no family x; it has d, e$"),
    ):
        transaction.put("two", b"r", {b"x:a": b"1"})
