"""Guarded cells: with whom a transaction conflicts through them, with whom not, and that no failover loses that."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from client import Committed, Conflict, InvalidRequest, TableFenced, Transaction, TransactionManager
from client.cells import cell_id, row_id
from client.transactions import guarded_cells
from client.transactions.guarded_cells import GuardedCells
from testkit import small_limits
from tests.unit.client.bulk_writing import write
from tests.unit.client.conftest import Installation
from tests.unit.client.transacting import fail_over, get, open_with, put

A, B = b"f:a", b"f:b"
Guard = Callable[[Transaction, bytes], object]


def by_a_call(transaction: Transaction, row: bytes) -> None:
    transaction.guard("t", [row], [A])


def by_a_read(transaction: Transaction, row: bytes) -> None:
    transaction.get("t", row, [A], guarded=True)


def by_a_read_of_many(transaction: Transaction, row: bytes) -> None:
    transaction.get_many("t", [row], [A, B], guarded=True)


@pytest.fixture(params=[by_a_call, by_a_read, by_a_read_of_many])
def guard(request: pytest.FixtureRequest) -> Guard:
    """Guards f:a of a row in table ``t``, each time in another way."""
    of: Guard = request.param
    return of


@pytest.fixture
def by_row(manager: TransactionManager) -> str:
    """A table with conflicts by row."""
    manager.create_table("by_row", ["f"], conflict_level="row")
    return "by_row"


@pytest.mark.parametrize("fails_over", [None, "before", "after"])
def test_of_two_that_each_decide_by_what_the_other_one_changes_one_commits(
    installation: Installation, guard: Guard, fails_over: str | None
) -> None:
    manager = installation.manager()
    first, second = manager.transaction(), manager.transaction()
    for transaction, own, other in ((first, b"x", b"y"), (second, b"y", b"x")):
        guard(transaction, other)
        transaction.put("t", own, {A: b"off"})
    if fails_over == "before":
        fail_over(installation)
    first.commit()
    if fails_over == "after":
        fail_over(installation)
    with pytest.raises(Conflict, match="guards"):
        second.commit()
    assert (get(manager, b"x"), get(manager, b"y")) == (b"off", None)


@pytest.mark.parametrize("fails_over", [False, True])
def test_those_that_guard_the_same_do_not_conflict_with_each_other(
    installation: Installation, guard: Guard, fails_over: bool
) -> None:
    manager = installation.manager()
    put(manager, b"rate", b"7")
    transactions = [manager.transaction() for _ in range(3)]
    for number, transaction in enumerate(transactions):
        guard(transaction, b"rate")
        transaction.put("t", b"r%d" % number, {A: b"7"})
    transactions[0].commit()
    if fails_over:
        fail_over(installation)
    for transaction in transactions[1:]:
        transaction.commit()


@pytest.mark.parametrize("change", ["put", "delete", "put in bulk"])
@pytest.mark.parametrize("fails_over", [False, True])
def test_every_kind_of_change_is_noticed(
    installation: Installation, guard: Guard, change: str, fails_over: bool
) -> None:
    manager = installation.manager()
    put(manager, b"r", b"0")
    transaction = open_with(manager, b"mine", b"1")
    guard(transaction, b"r")
    with manager.transaction() as rival:
        if change == "put":
            rival.put("t", b"r", {A: b"0"})
        elif change == "delete":
            rival.delete("t", b"r")
        else:
            write_in_bulk(manager, rival, b"r")
    if fails_over:
        fail_over(installation)
    with pytest.raises(Conflict):
        transaction.commit()
    assert get(manager, b"mine") is None


def test_what_changed_before_the_snapshot_or_did_not_commit_is_no_conflict(
    manager: TransactionManager, guard: Guard
) -> None:
    put(manager, b"r", b"0")
    transaction = open_with(manager, b"mine", b"1")
    guard(transaction, b"r")
    given_up, undecided = open_with(manager, b"r", b"1"), open_with(manager, b"r", b"2")
    given_up.rollback()
    transaction.commit()
    undecided.commit()


@pytest.mark.parametrize("fails_over", [False, True])
def test_a_row_that_is_not_there_is_guarded_like_any_other(
    installation: Installation, by_row: str, fails_over: bool
) -> None:
    manager = installation.manager()
    first, second = manager.transaction(), manager.transaction()
    for transaction, name in ((first, b"1"), (second, b"2")):
        assert transaction.get(by_row, b"unique", guarded=True) == {}
        transaction.put(by_row, b"unique" + name, {A: name})
    first.put(by_row, b"unique", {A: b"1"})
    first.commit()
    if fails_over:
        fail_over(installation)
    with pytest.raises(Conflict):
        second.commit()


@pytest.mark.parametrize("fails_over", [False, True])
def test_the_conflict_level_of_the_table_decides_how_much_is_guarded(
    installation: Installation, by_row: str, fails_over: bool
) -> None:
    manager = installation.manager()
    by_cell, whole = manager.transaction(), manager.transaction()
    by_cell.guard("t", [b"r"], [A])
    whole.guard(by_row, [b"r"], [A])
    for transaction in (by_cell, whole):
        transaction.put("t", b"of/%d" % transaction.start_timestamp, {A: b"1"})
    put(manager, b"r", b"rival", column=B)
    put(manager, b"r", b"rival", column=B, table=by_row)
    if fails_over:
        fail_over(installation)
    by_cell.commit()
    with pytest.raises(Conflict):
        whole.commit()


@pytest.mark.parametrize("fails_over", [False, True])
@pytest.mark.parametrize("large", [False, True])
@pytest.mark.parametrize("rival_writes", [False, True])
def test_what_is_guarded_may_be_written_as_well(
    installation: Installation,
    monkeypatch: pytest.MonkeyPatch,
    by_row: str,
    fails_over: bool,
    large: bool,
    rival_writes: bool,
) -> None:
    if large:  # as if it had too many cells for one frame
        monkeypatch.setattr("client.connection.oracle.COMMIT_CELLS_MAX", 1)
    manager = installation.manager()
    transaction = manager.transaction()
    transaction.guard(by_row, [b"r", b"s"])
    transaction.guard("t", [b"r", b"s"], [A, B])
    for table in ("t", by_row):
        transaction.put(table, b"r", {A: b"1"})
    transaction.put("t", b"s", {B: b"1"}, conflict_free=True)
    if rival_writes:
        put(manager, b"s", b"rival", column=B)
    if fails_over:
        fail_over(installation)
    if rival_writes:
        with pytest.raises(Conflict):
            transaction.commit()
    else:
        transaction.commit()
        assert get(manager, b"r") == b"1"


def test_a_guard_that_the_oracle_has_forgotten_is_compared_with_the_data(empty_installation: Installation) -> None:
    empty_installation.serve(limits=small_limits(conflict_map_entries_max=8, commit_share_max=0.5))
    manager = empty_installation.manager()
    manager.create_table("t", ["f"])
    unchanged, changed = open_with(manager, b"mine", b"1"), open_with(manager, b"mine too", b"1")
    unchanged.guard("t", [b"s"], [A])
    changed.guard("t", [b"r"], [A])
    put(manager, b"r", b"rival")
    for number in range(20):
        put(manager, b"other%d" % number, b"x")
    unchanged.commit()
    with pytest.raises(Conflict):
        changed.commit()


def test_no_savepoint_undoes_what_was_guarded(manager: TransactionManager, guard: Guard) -> None:
    transaction = manager.transaction()
    savepoint = transaction.savepoint()
    guard(transaction, b"r")
    transaction.put("t", b"mine", {A: b"1"})
    transaction.rollback_to(savepoint)
    transaction.put("t", b"mine", {A: b"2"})
    put(manager, b"r", b"rival")
    with pytest.raises(Conflict):
        transaction.commit()


def test_one_that_writes_nothing_is_of_one_moment_and_commits(manager: TransactionManager, guard: Guard) -> None:
    readers = [manager.transaction(), manager.transaction(read_only=True)]
    for reader in readers:
        guard(reader, b"r")
    put(manager, b"r", b"rival")
    for reader in readers:
        assert reader.commit().commit_timestamp == reader.snapshot_timestamp


def test_run_runs_a_function_again_whose_guards_did_not_hold(manager: TransactionManager) -> None:
    seen = []

    def function(transaction: Transaction) -> None:
        seen.append(transaction.get("t", b"r", [A], guarded=True))
        transaction.put("t", b"mine", {A: b"%d" % len(seen)})
        if len(seen) == 1:
            put(manager, b"r", b"rival")

    manager.run(function)
    assert seen == [{}, {A: b"rival"}]
    assert get(manager, b"mine") == b"2"


def test_a_fence_of_a_table_stands_against_those_that_guard_it(installation: Installation, by_row: str) -> None:
    manager = installation.manager()
    before, after = manager.transaction(), manager.transaction()
    for transaction in (before, after):
        transaction.guard(by_row, [b"r"])
        transaction.put("t", b"of/%d" % transaction.start_timestamp, {A: b"1"})
    manager.fence(by_row)
    with pytest.raises(TableFenced, match="table 'by_row', which it wrote or guards"):
        before.commit()
    fail_over(installation)
    with pytest.raises(TableFenced):
        after.commit()


def test_a_table_that_was_made_anew_is_not_the_one_that_was_guarded(manager: TransactionManager, by_row: str) -> None:
    transaction = open_with(manager, b"mine", b"1")
    transaction.guard(by_row, [b"r"])
    manager.drop_table(by_row)
    manager.create_table(by_row, ["f"], conflict_level="row")
    with pytest.raises(TableFenced):
        transaction.commit()
    assert get(manager, b"mine") is None


@pytest.mark.parametrize("rival_writes", [False, True])
def test_a_transaction_that_others_write_into_in_bulk_guards_as_any_other(
    installation: Installation, guard: Guard, rival_writes: bool
) -> None:
    manager = installation.manager()
    transaction = manager.transaction()
    write_in_bulk(manager, transaction, b"bulk")
    guard(transaction, b"r")
    if rival_writes:
        put(manager, b"r", b"rival")
        with pytest.raises(Conflict):
            transaction.commit()
    else:
        transaction.commit()
    assert get(manager, b"bulk") == (None if rival_writes else b"1")


def test_what_another_process_committed_was_not_compared_with_what_is_guarded_here(
    manager: TransactionManager, guard: Guard
) -> None:
    transaction = manager.transaction()
    other = manager.resume(transaction.handle())
    other.put("t", b"r", {A: b"1"})
    guard(transaction, b"s")
    committed = other.commit()
    with pytest.raises(InvalidRequest, match="guarded here is not part of it"):
        transaction.commit()
    assert manager.outcome(transaction.start_timestamp) == Committed(committed.commit_timestamp)


@pytest.mark.parametrize(
    ("arguments", "what"),
    [
        (("t", [b"r"]), "name the columns to guard"),
        (("t", [b"r"], [b"f"]), "a column is b'family:qualifier'"),
        (("t", [b"r"], [b"other:a"]), "no family other"),
        (("by_row", [b"r"], [b"other:a"]), "no family other"),
        (("by_row", b"r"), "rows are a list of keys"),
        (("by_row", ["r"]), "a row key is bytes"),
        (("by_row", [b""]), "a row key has 1 to"),
        (("by_row", [b"r"], []), "columns names nothing"),
        (("nowhere", [b"r"], [A]), "nowhere"),
    ],
)
def test_what_cannot_be_guarded_is_refused_and_changes_nothing(
    manager: TransactionManager, by_row: str, arguments: tuple[object, ...], what: str
) -> None:
    transaction = open_with(manager, b"mine", b"1")
    with pytest.raises(InvalidRequest, match=what):
        transaction.guard(*arguments)  # type: ignore[arg-type]
    put(manager, b"r", b"rival")
    put(manager, b"r", b"rival", table=by_row)
    transaction.commit()


def test_one_that_has_ended_guards_nothing(manager: TransactionManager, guard: Guard) -> None:
    transaction = open_with(manager, b"mine", b"1")
    transaction.commit()
    with pytest.raises(InvalidRequest, match="committed"):
        guard(transaction, b"r")


def test_so_many_are_guarded_each_counted_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(guarded_cells, "GUARDED_CELLS_MAX", 6)
    guarded = GuardedCells()
    for _ in range(3):
        guarded.add("t", [b"r", b"s"], [A, B, A], by_row=False)
        guarded.add("by_row", [b"r", b"r"], [A, B], by_row=True)
    with pytest.raises(InvalidRequest, match="a transaction guards 6 cells at most"):
        guarded.add("t", [b"r", b"u"], [A, B], by_row=False)
    guarded.add("by_row", [b"s", b"r"], None, by_row=True)
    with pytest.raises(InvalidRequest):
        guarded.add("by_row", [b"u"], None, by_row=True)
    assert guarded.keys() == {
        *(cell_id("t", row, column) for row in (b"r", b"s") for column in (A, B)),
        *(row_id("by_row", row) for row in (b"r", b"s")),
    }
    assert guarded.by_table() == {
        "t": {b"r": {A, B}, b"s": {A, B}},
        "by_row": {b"r": set(), b"s": set()},
    }


def write_in_bulk(manager: TransactionManager, transaction: Transaction, row: bytes) -> None:
    handle = transaction.handle()
    job = manager.open_job(handle)
    write(manager, handle, job, row)
    manager.seal_job(handle, job, [(0, 0)])
