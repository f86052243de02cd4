"""The anomalies of docs/concepts/snapshot-isolation.md on the real store: prevented, or allowed, as that page says."""

from __future__ import annotations

import uuid
from collections.abc import Iterator

import pytest

from client import Conflict, Transaction, TransactionManager

pytestmark = pytest.mark.integration

VALUE = b"f:value"


@pytest.fixture(scope="module", params=["cell", "row"])
def table(request: pytest.FixtureRequest, manager: TransactionManager) -> Iterator[str]:
    name = f"anomalies_{request.param}_{uuid.uuid4().hex[:8]}"
    manager.create_table(name, ["f"], conflict_level=request.param)
    yield name
    manager.drop_table(name)


@pytest.fixture
def accounts(manager: TransactionManager, table: str) -> tuple[bytes, bytes]:
    """Two fresh rows with 100 each."""
    prefix = uuid.uuid4().bytes
    rows = prefix + b"x", prefix + b"y"
    with manager.transaction() as transaction:
        for row in rows:
            transaction.put(table, row, {VALUE: b"100"})
    return rows


def read(transaction: Transaction, table: str, row: bytes) -> int:
    return int(transaction.get(table, row)[VALUE])


def write(transaction: Transaction, table: str, row: bytes, value: int) -> None:
    transaction.put(table, row, {VALUE: b"%d" % value})


Accounts = tuple[bytes, bytes]


def test_lost_update_is_prevented(manager: TransactionManager, table: str, accounts: Accounts) -> None:
    x, _ = accounts
    first, second = manager.transaction(), manager.transaction()
    write(first, table, x, read(first, table, x) + 1)
    write(second, table, x, read(second, table, x) + 10)
    first.commit()
    with pytest.raises(Conflict):
        second.commit()
    assert read(manager.transaction(), table, x) == 101


def test_dirty_read_is_prevented(manager: TransactionManager, table: str, accounts: Accounts) -> None:
    x, _ = accounts
    writer = manager.transaction()
    write(writer, table, x, 0)
    writer_cells_are_in_the_store(manager, writer, table)
    assert read(manager.transaction(), table, x) == 100
    writer.rollback()
    assert read(manager.transaction(), table, x) == 100


def writer_cells_are_in_the_store(manager: TransactionManager, writer: Transaction, table: str) -> None:
    """Write the tentative versions as a commit would, without committing: what a dirty reader could meet."""
    for buffered_table, puts in writer._buffer.puts():
        assert buffered_table == table
        manager.store.put(table, puts, writer.start_timestamp)


def test_an_aborted_write_is_never_read(manager: TransactionManager, table: str, accounts: Accounts) -> None:
    x, _ = accounts
    loser = manager.transaction()
    write(loser, table, x, 1)
    with manager.transaction() as winner:
        write(winner, table, x, 2)
    with pytest.raises(Conflict):
        loser.commit()
    assert read(manager.transaction(), table, x) == 2


def test_read_skew_is_prevented(manager: TransactionManager, table: str, accounts: Accounts) -> None:
    x, y = accounts
    reader = manager.transaction()
    seen_before = read(reader, table, x)
    with manager.transaction() as transfer:
        write(transfer, table, x, 50)
        write(transfer, table, y, 150)
    assert seen_before + read(reader, table, y) == 200


def test_non_repeatable_read_is_prevented(manager: TransactionManager, table: str, accounts: Accounts) -> None:
    x, _ = accounts
    reader = manager.snapshot()
    first = reader.get(table, x)
    with manager.transaction() as other:
        write(other, table, x, 1)
    assert reader.get(table, x) == first


def test_a_phantom_is_not_met_by_a_scan(manager: TransactionManager, table: str, accounts: Accounts) -> None:
    prefix = accounts[0][:-1]
    reader = manager.transaction()
    before = list(reader.scan(table, prefix=prefix))
    with manager.transaction() as other:
        write(other, table, prefix + b"z", 1)
        other.delete(table, accounts[1])
    assert list(reader.scan(table, prefix=prefix)) == before
    after = [row for row, _ in manager.snapshot().scan(table, prefix=prefix)]
    assert after == [accounts[0], prefix + b"z"]


def test_a_long_fork_is_prevented(manager: TransactionManager, table: str, accounts: Accounts) -> None:
    """Two independent commits: no reader sees the second without the first, in whatever order it reads."""
    x, y = accounts
    snapshots = [manager.snapshot()]
    for row in (x, y):
        with manager.transaction() as writer:
            write(writer, table, row, 1)
        snapshots.append(manager.snapshot())
    for order in (x, y), (y, x):
        seen = [{row: int(snapshot.get(table, row)[VALUE]) for row in order} for snapshot in snapshots]
        assert seen == [{x: 100, y: 100}, {x: 1, y: 100}, {x: 1, y: 1}]


def test_write_skew_is_allowed(manager: TransactionManager, table: str, accounts: Accounts) -> None:
    x, y = accounts
    first, second = manager.transaction(), manager.transaction()
    for transaction, row in ((first, x), (second, y)):
        assert read(transaction, table, x) + read(transaction, table, y) == 200
        write(transaction, table, row, -50)
    first.commit()
    second.commit()
    last = manager.snapshot()
    assert [last.get(table, row)[VALUE] for row in accounts] == [b"-50", b"-50"]


@pytest.mark.parametrize("reads", ["one by one", "together"])
def test_write_skew_is_prevented_where_the_reads_are_guarded(
    manager: TransactionManager, table: str, accounts: Accounts, reads: str
) -> None:
    x, y = accounts
    first, second = manager.transaction(), manager.transaction()
    for transaction, own in ((first, x), (second, y)):
        if reads == "together":
            found = transaction.get_many(table, accounts, [VALUE], guarded=True)
        else:
            found = {row: transaction.get(table, row, [VALUE], guarded=True) for row in accounts}
        assert [values[VALUE] for values in found.values()] == [b"100", b"100"]
        write(transaction, table, own, -50)
    first.commit()
    with pytest.raises(Conflict):
        second.commit()
    last = manager.snapshot()
    assert [last.get(table, row)[VALUE] for row in accounts] == [b"-50", b"100"]


def test_the_conflict_level_decides_about_two_columns_of_a_row(
    manager: TransactionManager, table: str, accounts: Accounts
) -> None:
    x, _ = accounts
    first, second = manager.transaction(), manager.transaction()
    first.put(table, x, {b"f:one": b"1"})
    second.put(table, x, {b"f:two": b"2"})
    first.commit()
    if manager.catalog.entry(table).conflict_level == "row":
        with pytest.raises(Conflict):
            second.commit()
    else:
        second.commit()
        assert manager.snapshot().get(table, x) == {b"f:one": b"1", b"f:two": b"2", VALUE: b"100"}


def test_a_commit_is_seen_by_every_later_begin(manager: TransactionManager, table: str, accounts: Accounts) -> None:
    x, _ = accounts
    with TransactionManager.connect(manager.settings) as elsewhere:
        for value in range(20):
            with manager.transaction() as writer:
                write(writer, table, x, value)
            assert read(elsewhere.transaction(), table, x) == value


def test_run_runs_the_function_again_on_a_new_snapshot(
    manager: TransactionManager, table: str, accounts: Accounts
) -> None:
    x, _ = accounts
    attempts: list[int] = []

    def increment(transaction: Transaction) -> int:
        attempts.append(read(transaction, table, x))
        if len(attempts) == 1:
            with manager.transaction() as rival:
                write(rival, table, x, 500)
        write(transaction, table, x, attempts[-1] + 1)
        return attempts[-1]

    assert manager.run(increment) == 500
    assert attempts == [100, 500]
    assert read(manager.transaction(), table, x) == 501
