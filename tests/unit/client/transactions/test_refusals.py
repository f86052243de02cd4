"""What a transaction refuses: rows, columns, values and tables that cannot be; it stays usable, and nothing is done."""

from __future__ import annotations

import asyncio
import copy
import pickle
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import pytest
from prometheus_client import CollectorRegistry

from client import (
    AccessDenied,
    AsyncOracleClient,
    AsyncTransactionManager,
    ClientMetrics,
    Decision,
    InvalidRequest,
    InvalidSettings,
    Transaction,
    TransactionAborted,
    TransactionHooks,
    TransactionManager,
)
from store import StoreClosed
from tests.unit.client.conftest import SETTINGS, Installation

A = b"f:a"


def test_a_read_only_transaction_does_not_write(manager: TransactionManager) -> None:
    with manager.transaction(read_only=True) as transaction:
        with pytest.raises(InvalidRequest, match="read-only"):
            transaction.put("t", b"r", {A: b"1"})
        with pytest.raises(InvalidRequest, match="read-only"):
            transaction.delete("t", b"r")


@pytest.mark.parametrize(
    ("table", "row", "values", "message"),
    [
        ("t", b"", {A: b"1"}, "row key"),
        ("t", bytes(40_000), {A: b"1"}, "row key"),
        ("t", b"r", {b"f:\x00": b"1"}, "reserved"),
        ("t", b"r", {b"f:\x00row": b"1"}, "reserved"),
        ("t", b"r", {b"f": b"1"}, "family:qualifier"),
        ("t", b"r", {b"h:a": b"1"}, "no family"),
        ("t", b"r", {b"f:" + bytes([1]) * 40_000: b"1"}, "column"),
        ("t", b"r", {A: bytes(11 * 2**20)}, "value"),
        ("default:t", b"r", {A: b"1"}, "one name"),
        ("t", b"r", {A: "text"}, "value is bytes"),
        ("t", b"r", {}, "at least one"),
        ("nowhere", b"r", {A: b"1"}, "no table"),
        ("pythia_commits", b"r", {A: b"1"}, "Pythia's own"),
        ("pythia_catalog", b"r", {A: b"1"}, "Pythia's own"),
    ],
)
def test_what_cannot_be_stored_is_refused_and_leaves_the_transaction_usable(
    manager: TransactionManager, table: str, row: bytes, values: dict[bytes, bytes], message: str
) -> None:
    with manager.transaction() as transaction:
        with pytest.raises(InvalidRequest, match=message):
            transaction.put(table, row, values)
        transaction.put("t", b"good", {A: b"1"})
    assert list(manager.snapshot().scan("t")) == [(b"good", {A: b"1"})]


@pytest.mark.parametrize("start", [2**63, -1, 1.5], ids=["too large", "negative", "a part"])
def test_a_transaction_that_no_frame_can_name_is_refused(manager: TransactionManager, start: int) -> None:
    for ask in (manager.oracle.abort, lambda start: manager.oracle.lives([start]), manager.abort, manager.outcome):
        with pytest.raises(InvalidRequest):
            ask(start)


def test_a_delete_of_an_unknown_family_is_refused_at_once(manager: TransactionManager) -> None:
    with manager.transaction() as transaction, pytest.raises(InvalidRequest, match="no family h"):
        transaction.delete("t", b"r", [b"h:a"])


def test_a_commit_that_is_not_granted_aborts_and_is_not_worth_another_try(
    manager: TransactionManager, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*_: object, **__: object) -> Decision:
        raise AccessDenied("the token etl has read")

    transaction = manager.transaction()
    transaction.put("t", b"r", {A: b"1"})
    with monkeypatch.context() as denying:
        denying.setattr(manager.oracle, "commit", refuse)
        with pytest.raises(TransactionAborted, match="the token etl has read") as caught:
            transaction.commit()
    assert not caught.value.retriable
    assert list(manager.snapshot().scan("t")) == []


@pytest.mark.parametrize(
    "columns", [[], (), [b"f"], ["f:a"], [b"f:\x00"], b"f:a", [A, b""], iter([A]), map(bytes, [A]), 5]
)
def test_columns_that_cannot_be_deleted_are_refused_and_nothing_is(
    manager: TransactionManager, columns: list[bytes]
) -> None:
    with manager.transaction() as before:
        before.put("t", b"r", {A: b"1"})
    with manager.transaction() as transaction:
        with pytest.raises(InvalidRequest, match="column"):
            transaction.delete("t", b"r", columns)
        assert transaction.get("t", b"r") == {A: b"1"}


@pytest.mark.parametrize(
    "columns",
    [[], (), [b"f:\x00"], [b""], ["f:a"], [b":a"], [b"h:a"], [b"h"], [b"f:" + b"x" * 40_000], A, "f:a", iter([A]), 5],
)
def test_a_choice_of_columns_that_cannot_be_read_is_refused(manager: TransactionManager, columns: list[bytes]) -> None:
    with manager.transaction() as transaction:
        transaction.put("t", b"r", {A: b"own"})
        for view in (manager.snapshot(), transaction):
            with pytest.raises(InvalidRequest, match=r"column|no family h; it has f, g"):
                view.get("t", b"r", columns)
            with pytest.raises(InvalidRequest, match=r"column|no family h; it has f, g"):
                view.get_many("t", [b"r"], columns)
            with pytest.raises(InvalidRequest, match=r"column|no family h; it has f, g"):
                list(view.scan("t", columns=columns))
            with pytest.raises(InvalidRequest, match=r"column|no family h; it has f, g"):
                list(view.scan_columns("t", [A], columns=columns))


@pytest.mark.parametrize("rows", [b"r", "r", iter([b"r"]), 5, [b""], ["r"], [b"r", None], [b"x" * 40_000]])
def test_rows_to_read_that_are_no_list_of_keys_are_refused(manager: TransactionManager, rows: list[bytes]) -> None:
    with manager.transaction() as transaction:
        for view in (manager.snapshot(), transaction):
            with pytest.raises(InvalidRequest, match="row"):
                view.get_many("t", rows)
            assert view.get_many("t", []) == {}
            with pytest.raises(InvalidRequest, match="none"):
                view.get_many("none", [b"r"])


def test_one_column_for_a_list_of_them_is_told_how_to_be_written(manager: TransactionManager) -> None:
    with pytest.raises(InvalidRequest, match=r"write \[b'f:a'\]"):
        manager.snapshot().get("t", b"r", A)  # type: ignore[arg-type]  # that is what is tried


@pytest.mark.parametrize("known", [[], A, iter([A]), 5, [A, b"f:b", A]])
def test_columns_that_a_scan_cannot_show_are_refused(manager: TransactionManager, known: list[bytes]) -> None:
    for view in (manager.snapshot(), manager.transaction()):
        with pytest.raises(InvalidRequest, match=r"known|columns are"):
            list(view.scan_columns("t", known))


@pytest.mark.parametrize("batch_rows", [0, -1, None, 1.5, "5", True, 2**70])
def test_batches_that_cannot_be_are_refused_with_and_without_own_writes(
    manager: TransactionManager, batch_rows: int
) -> None:
    with manager.transaction() as transaction:
        with pytest.raises(InvalidRequest, match="batch_rows"):
            list(transaction.scan_columns("t", [A], batch_rows=batch_rows))
        transaction.put("t", b"r", {A: b"own"})
        for view in (manager.snapshot(), transaction):
            with pytest.raises(InvalidRequest, match="batch_rows"):
                list(view.scan_columns("t", [A], batch_rows=batch_rows))


@pytest.mark.parametrize("handle", [None, "text", 7])
def test_what_is_no_handle_is_not_resumed(manager: TransactionManager, handle: object) -> None:
    of_a_snapshot, of_a_transaction = manager.snapshot().handle(), manager.transaction().handle()
    for given in (handle, of_a_snapshot, of_a_snapshot.to_json()):
        with pytest.raises(InvalidRequest, match="a TransactionHandle is needed"):
            manager.resume(given)  # type: ignore[arg-type]
    for given in (handle, of_a_transaction):
        with pytest.raises(InvalidRequest, match="a SnapshotHandle is needed"):
            manager.resume_snapshot(given)  # type: ignore[arg-type]


def test_what_cannot_describe_a_table_is_refused_before_it_is_made(
    installation: Installation, manager: TransactionManager
) -> None:
    for families, description in ((None, b""), (5, b""), (["f"], None), (["f"], "text")):
        with pytest.raises(InvalidRequest, match=r"families|description"):
            manager.create_table("described", families, description=description)  # type: ignore[arg-type]
    assert "described" not in installation.store.table_names()


def test_a_coroutine_is_not_run_for_nothing(manager: TransactionManager) -> None:
    async def put(transaction: Transaction) -> None:
        transaction.put("t", b"r", {A: b"1"})

    for function in (put, lambda transaction: put(transaction), partial(put)):
        with pytest.raises(InvalidRequest, match="a function that blocks"):
            manager.run(function)  # type: ignore[unused-coroutine]  # which is what is refused
    assert list(manager.snapshot().scan("t")) == []


def test_a_generator_is_not_run_for_nothing(manager: TransactionManager) -> None:
    def put(transaction: Transaction) -> Iterator[bytes]:
        transaction.put("t", b"r", {A: b"1"})
        yield b"r"

    for function in (put, partial(put)):
        with pytest.raises(InvalidRequest, match="yield"):
            manager.run(function)


def test_what_it_is_that_one_holds_is_seen(manager: TransactionManager) -> None:
    with manager.transaction() as transaction:
        assert repr(transaction) == f"<Transaction {transaction.start_timestamp}, active>"
    assert repr(transaction) == f"<Transaction {transaction.start_timestamp}, committed>"
    asynchronous = AsyncTransactionManager(manager)
    assert repr(asynchronous) == f"<AsyncTransactionManager of {manager!r}>"
    snapshot = manager.snapshot()
    assert repr(snapshot) == f"<Snapshot at {snapshot.timestamp}>"
    assert repr(manager) == f"<TransactionManager of {manager.settings.root} at {manager.settings.zookeeper}>"


def test_what_are_no_settings_is_told() -> None:
    with pytest.raises(InvalidSettings, match="connect takes ClientSettings"):
        TransactionManager.connect("127.0.0.1:2181")  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("wrong", "told"),
    [
        ({"metrics": CollectorRegistry()}, r"metrics is a ClientMetrics\(\), which registry\.register"),
        ({"metrics": ClientMetrics}, "metrics is a ClientMetrics"),
        ({"hooks": TransactionHooks}, "hooks is an object of a class derived from TransactionHooks"),
        ({"hooks": [TransactionHooks()]}, "hooks is an object"),
    ],
)
def test_what_cannot_be_told_of_transactions_is_refused_before_there_are_any(wrong: Any, told: str) -> None:
    with pytest.raises(InvalidSettings, match=told):
        TransactionManager.connect(SETTINGS, **wrong)
    with pytest.raises(InvalidSettings, match=told):
        AsyncTransactionManager.connect(SETTINGS, **wrong)


def test_raw_access_takes_no_other_metrics_either() -> None:
    async def connect() -> None:
        AsyncOracleClient.connect(SETTINGS, metrics=CollectorRegistry())  # type: ignore[arg-type]

    with pytest.raises(InvalidSettings, match="metrics is a ClientMetrics"):
        asyncio.run(connect())


def test_a_closed_manager_says_so_and_that_no_other_try_helps(
    installation: Installation, manager: TransactionManager
) -> None:
    transaction = manager.transaction()
    manager.close()
    installation.store.close()
    for call in (manager.transaction, lambda: manager.outcome(5), lambda: transaction.get("t", b"r")):
        with pytest.raises((InvalidRequest, StoreClosed), match=r"closed.* make another"):
            call()
    assert not InvalidRequest.retriable
    assert not StoreClosed.retriable


def test_a_put_that_is_refused_counts_for_nothing(manager: TransactionManager) -> None:
    transaction = manager.transaction()
    transaction.put("t", b"r", {A: b"1"}, conflict_free=None)  # type: ignore[arg-type]  # as false as any
    held_bytes = transaction.written_bytes
    for values in (None, [(A, b"1")], b"x", "x", 5):
        with pytest.raises(InvalidRequest, match="put takes a dictionary"):
            transaction.put("t", b"r", values)  # type: ignore[arg-type]
    assert transaction.written_bytes == held_bytes


@pytest.mark.parametrize("table", ["bad name!", "", "default:t", "x" * 201, "a:b:c", "nowhere", b"t", None])
@pytest.mark.parametrize("columns", [None, [A]])
def test_a_table_that_cannot_be_read_is_refused_by_its_name(
    manager: TransactionManager, table: str, columns: list[bytes] | None
) -> None:
    with pytest.raises(InvalidRequest, match="table"):
        manager.snapshot().get(table, b"r", columns)
    with pytest.raises(InvalidRequest, match="table"):
        list(manager.transaction().scan(table, columns=columns))


def test_a_range_that_cannot_be_read_is_refused(manager: TransactionManager) -> None:
    with pytest.raises(InvalidRequest, match="an end of a key range"):
        list(manager.snapshot().scan("t", stop=bytes([1]) * 40_000))


@pytest.mark.parametrize("leave", [pickle.dumps, copy.copy, copy.deepcopy])
def test_what_holds_connections_says_what_travels_in_its_place(
    manager: TransactionManager, leave: Callable[[object], object]
) -> None:
    held = {"its settings": manager, "resume that": manager.transaction(), "resume_snapshot": manager.snapshot()}
    for instead, one in held.items():
        with pytest.raises(TypeError, match=instead):
            leave(one)
