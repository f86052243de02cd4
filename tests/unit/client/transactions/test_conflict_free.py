"""Conflict-free writes: who sees which of them, and that they are transactional in all but their conflicts."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import permutations

import pytest

from client import Conflict, Transaction, TransactionManager
from client.cells import decode_shadow, shadow_column
from tests.unit.client.conftest import Installation
from tests.unit.client.transacting import fail_over, get, put

A, B = b"f:a", b"f:b"


def put_free(transaction: Transaction, value: bytes, row: bytes = b"r", column: bytes = A, table: str = "t") -> None:
    transaction.put(table, row, {column: value}, conflict_free=True)


@pytest.mark.parametrize("deleting", [None, 0, 1, 2])
@pytest.mark.parametrize("order", list(permutations(range(3))))
def test_of_those_that_have_committed_the_one_that_began_last_is_seen(
    manager: TransactionManager, order: Sequence[int], deleting: int | None
) -> None:
    put(manager, b"r", b"before")
    transactions = [manager.transaction() for _ in range(3)]
    for number, transaction in enumerate(transactions):
        if number == deleting:
            transaction.delete("t", b"r", [A], conflict_free=True)
        else:
            put_free(transaction, b"%d" % number)
    seen = []
    for number in order:
        transactions[number].commit()
        seen.append(manager.snapshot())
    for committed, snapshot in enumerate(seen, 1):
        begun_last = max(order[:committed])
        assert snapshot.get("t", b"r") == ({} if begun_last == deleting else {A: b"%d" % begun_last})


def test_a_counter_with_a_column_for_each_transaction_counts_all_of_them(installation: Installation) -> None:
    manager = installation.manager()
    manager.create_table("by_row", ["f"], conflict_level="row")
    transactions = [manager.transaction() for _ in range(10)]
    for number, transaction in enumerate(transactions):
        put_free(transaction, b"%d" % number, column=b"f:%d" % transaction.start_timestamp, table="by_row")
    for transaction in transactions[:5]:
        transaction.commit()
    fail_over(installation)
    for transaction in transactions[5:]:
        transaction.commit()
    assert sum(int(value) for value in manager.snapshot().get("by_row", b"r").values()) == sum(range(10))


def test_they_land_with_the_rest_of_their_transaction_or_not_at_all(manager: TransactionManager) -> None:
    winner, loser = manager.transaction(), manager.transaction()
    for transaction, value in ((winner, b"won"), (loser, b"lost")):
        transaction.put("t", b"ordinary", {A: value})
        put_free(transaction, value)
    before = manager.snapshot()
    winner.commit()
    with pytest.raises(Conflict):
        loser.commit()
    assert before.get("t", b"r") == {}
    assert get(manager, b"r") == get(manager, b"ordinary") == b"won"


def test_they_have_shadow_cells_like_any_others(manager: TransactionManager) -> None:
    transaction = manager.transaction()
    put_free(transaction, b"1")
    committed = transaction.commit()
    shadow = manager.store.versions("t", b"r", shadow_column(b"f"), limit=1)[0]
    assert (shadow.timestamp, decode_shadow(shadow.value)) == (transaction.start_timestamp, committed.commit_timestamp)


def test_a_delete_of_a_whole_row_may_be_conflict_free(manager: TransactionManager) -> None:
    put(manager, b"r", b"1")
    put(manager, b"r", b"1", column=B)
    first, second, third = (manager.transaction() for _ in range(3))
    for transaction in (first, second):
        transaction.delete("t", b"r", conflict_free=True)
    put_free(third, b"begun last")
    for transaction in (third, second, first):
        transaction.commit()
    assert manager.snapshot().get("t", b"r") == {A: b"begun last"}


Write = Callable[[Transaction], None]


def ordinarily(transaction: Transaction) -> None:
    transaction.put("t", b"r", {A: b"1"})


def conflict_free(transaction: Transaction) -> None:
    put_free(transaction, b"2")


def deleting(transaction: Transaction) -> None:
    transaction.delete("t", b"r", [A])


def deleting_conflict_free(transaction: Transaction) -> None:
    transaction.delete("t", b"r", [A], conflict_free=True)


@pytest.mark.parametrize(
    "writes",
    [
        (ordinarily, conflict_free),
        (conflict_free, ordinarily),
        (conflict_free, ordinarily, conflict_free),
        (deleting_conflict_free, ordinarily),
        (deleting, conflict_free),
    ],
)
@pytest.mark.parametrize("fails_over", [False, True])
def test_a_cell_that_is_written_both_ways_is_an_ordinary_one(
    installation: Installation, writes: Sequence[Write], fails_over: bool
) -> None:
    manager = installation.manager()
    transaction = manager.transaction()
    for write in writes:
        write(transaction)
    put(manager, b"r", b"rival")
    if fails_over:
        fail_over(installation)
    with pytest.raises(Conflict):
        transaction.commit()


@pytest.mark.parametrize("fails_over", [False, True])
def test_what_is_undone_counts_for_neither_way(installation: Installation, fails_over: bool) -> None:
    manager = installation.manager()
    free, ordinary, both = (manager.transaction() for _ in range(3))
    for transaction, write, undone in (
        (free, conflict_free, ordinarily),
        (ordinary, ordinarily, conflict_free),
        (both, conflict_free, conflict_free),
    ):
        write(transaction)
        savepoint = transaction.savepoint()
        undone(transaction)
        transaction.savepoint()
        undone(transaction)
        transaction.rollback_to(savepoint)
        transaction.release(savepoint)
    ordinarily(both)
    put(manager, b"r", b"rival")
    if fails_over:
        fail_over(installation)
    free.commit()
    for transaction in (ordinary, both):
        with pytest.raises(Conflict):
            transaction.commit()


def test_what_was_read_of_them_is_written_again_as_an_ordinary_value(manager: TransactionManager) -> None:
    transaction = manager.transaction()
    put_free(transaction, b"1")
    seen = transaction.get("t", b"r")
    scanned = dict(transaction.scan("t"))
    assert {type(value) for values in (seen, *scanned.values()) for value in values.values()} == {bytes}
    transaction.put("t", b"s", seen)
    put(manager, b"s", b"rival")
    with pytest.raises(Conflict):
        transaction.commit()


@pytest.mark.parametrize("rival_writes", ["ordinarily", "conflict-free"])
@pytest.mark.parametrize("fails_over", [False, True])
def test_no_rival_stands_against_them(installation: Installation, rival_writes: str, fails_over: bool) -> None:
    manager = installation.manager()
    transaction = manager.transaction()
    put_free(transaction, b"mine")
    transaction.put("t", b"other", {A: b"mine"})
    with manager.transaction() as rival:
        rival.put("t", b"r", {A: b"rival"}, conflict_free=rival_writes == "conflict-free")
    if fails_over:
        fail_over(installation)
    transaction.commit()
    assert get(manager, b"other") == b"mine"
    assert get(manager, b"r") == b"rival", "it began last"


def test_they_stand_against_no_rival_but_after_a_failover_which_cannot_tell_them_apart(
    installation: Installation,
) -> None:
    manager = installation.manager()
    before, after = manager.transaction(), manager.transaction()
    before.put("t", b"r", {A: b"ordinary"})
    after.put("t", b"s", {A: b"ordinary"})
    with manager.transaction() as free:
        put_free(free, b"free", b"r")
        put_free(free, b"free", b"s")
    before.commit()
    fail_over(installation)
    with pytest.raises(Conflict):
        after.commit()
    assert get(manager, b"r") == b"free", "it began last"
