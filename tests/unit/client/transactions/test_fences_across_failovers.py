"""Fences when the oracle changes, forgets, or is not there: they are found in the data, as conflicts are."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

import pytest

from client import (
    Committed,
    NoPrimary,
    TableFenced,
    Transaction,
    TransactionManager,
)
from client.cells import encode_value
from client.transactions.fences import place_fence
from client.transactions.guards import FENCE_COLUMN
from commit_table import system_table
from store import RowPut
from testkit import small_limits
from tests.recording import record
from tests.unit.client.conftest import COMMITS, SETTINGS, Installation, begun
from tests.unit.client.transacting import fail_over, get, open_with, put

A = b"f:a"
CATALOG = system_table(SETTINGS.root, "catalog")
SMALL = small_limits(conflict_map_entries_max=8, commit_share_max=0.5)


@pytest.mark.parametrize("fenced", ["before", "after"])
def test_a_fence_holds_on_either_side_of_a_failover(
    installation: Installation, write: Callable[[TransactionManager], Transaction], fenced: str
) -> None:
    manager = installation.manager()
    transaction = write(manager)
    if fenced == "before":
        manager.fence("t")
    fail_over(installation)
    if fenced == "after":
        manager.fence("t")
    with pytest.raises(TableFenced, match="'t'"):
        transaction.commit()
    assert get(installation.manager(), b"r") is None


def test_who_began_after_the_fence_survives_a_failover(
    installation: Installation, write: Callable[[TransactionManager], Transaction]
) -> None:
    manager = installation.manager()
    manager.fence("t")
    transaction = write(manager)
    fail_over(installation)
    transaction.commit()
    assert get(manager, b"r") == b"late"


def test_of_several_tables_written_the_fenced_one_is_named_after_a_failover(installation: Installation) -> None:
    manager = installation.manager()
    for table in ("s", "u"):
        manager.create_table(table, ["f"])
    transaction = open_with(manager, b"r", b"late")
    for table in ("s", "u"):
        transaction.put(table, b"r", {A: b"late"})
    manager.fence("u")
    fail_over(installation)
    with pytest.raises(TableFenced, match="table 'u'"):
        transaction.commit()


def test_a_fence_that_the_oracle_has_forgotten_is_found_in_the_data(empty_installation: Installation) -> None:
    empty_installation.serve(limits=SMALL)
    manager = empty_installation.manager()
    for table in ("t", "other"):
        manager.create_table(table, ["f"])
    transaction = open_with(manager, b"r", b"late")
    manager.fence("t")
    for number in range(10):
        put(manager, b"r%d" % number, b"x", table="other")
    with pytest.raises(TableFenced):
        transaction.commit()


def test_a_fence_that_is_under_way_at_a_failover_stands_all_the_same(installation: Installation) -> None:
    manager = installation.manager()
    transaction, fencing = open_with(manager, b"r", b"late"), begun(manager)
    fail_over(installation)
    fenced_at = place_fence(manager._services, fencing, "t")
    assert manager.outcome(fencing.start_timestamp) == Committed(fenced_at)
    with pytest.raises(TableFenced):
        transaction.commit()


def test_a_writer_that_commits_first_in_the_new_epoch_is_below_a_fence_of_the_old_one(
    installation: Installation,
) -> None:
    manager = installation.manager()
    transaction, fencing = open_with(manager, b"r", b"1"), begun(manager)
    manager.store.put(CATALOG, [RowPut(b"t", {FENCE_COLUMN: b"1"})], fencing.start_timestamp)  # and then a failover
    fail_over(installation)
    committed = transaction.commit()
    assert place_fence(manager._services, fencing, "t") > committed.commit_timestamp
    assert get(manager, b"r") == b"1"


def test_a_late_write_of_the_old_primary_places_no_fence_below_a_writer_that_passed_it_by(
    installation: Installation,
) -> None:
    manager = installation.manager()
    transaction, fencing = open_with(manager, b"r", b"1"), begun(manager)
    manager.store.put(CATALOG, [RowPut(b"t", {FENCE_COLUMN: b"1"})], fencing.start_timestamp)
    decided = manager.oracle.begin().first_start_timestamp
    fail_over(installation)
    transaction.commit()
    record(installation.store, COMMITS, {fencing.start_timestamp: decided}, fencing.epoch)
    assert not isinstance(manager.outcome(fencing.start_timestamp), Committed)


def test_what_the_snapshot_of_a_fence_did_not_show_never_comes_to_be(installation: Installation) -> None:
    manager = installation.manager()
    undecided = open_with(manager, b"r", b"late")
    manager.store.put("t", [RowPut(b"r", {A: encode_value(b"late")})], undecided.start_timestamp)
    decided = manager.oracle.begin().first_start_timestamp
    fail_over(installation)
    fence = manager.fence("t")
    assert fence.get("t", b"r") == {}
    record(installation.store, COMMITS, {undecided.start_timestamp: decided}, undecided.epoch)
    assert installation.manager().resume_snapshot(fence.handle()).get("t", b"r") == {}
    with pytest.raises(TableFenced):
        undecided.commit()


def test_a_fence_waits_out_an_outage(installation: Installation) -> None:
    manager = installation.manager()
    transaction = open_with(manager, b"r", b"late")
    installation._oracles.pop(0).stop()
    installation.find_primary = lambda: None
    with ThreadPoolExecutor(1) as pool:
        fencing = pool.submit(manager.fence, "t")
        standby = installation.oracle("standby")
        standby.await_primary()
        installation.find_primary = lambda: standby.address
        fence = fencing.result()
    assert fence.timestamp > transaction.start_timestamp
    with pytest.raises(TableFenced):
        transaction.commit()


def test_without_any_primary_nothing_is_fenced_or_dropped_until_there_is_one(installation: Installation) -> None:
    # It gives up soon, but not before it can fence on a busy machine.
    patient = installation.manager()
    hasty = installation.manager(settings=dataclasses.replace(SETTINGS, deadline_ms=800))
    first, second = open_with(patient, b"r", b"1"), open_with(patient, b"s", b"late")
    find_primary, installation.find_primary = installation.find_primary, lambda: None
    for attempt in (hasty.fence, hasty.drop_table):
        with pytest.raises(NoPrimary):
            attempt("t")
    installation.find_primary = find_primary
    first.commit()
    hasty.fence("t")
    with pytest.raises(TableFenced):
        second.commit()


def test_a_table_made_anew_keeps_its_fence(installation: Installation) -> None:
    manager = installation.manager()
    transaction = open_with(manager, b"r", b"late")
    manager.drop_table("t")
    manager.create_table("t", ["f"])
    fail_over(installation)
    with pytest.raises(TableFenced):
        transaction.commit()
