"""What a transaction refuses: rows, columns, values and tables that cannot be; it stays usable, and nothing is done."""

from __future__ import annotations

import pytest

from client import AccessDenied, Decision, InvalidRequest, TransactionAborted, TransactionManager

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


@pytest.mark.parametrize("columns", [[], (), [b"f"], ["f:a"], [b"f:\x00"], b"f:a", [A, b""]])
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
    "columns", [[], (), [b"f:\x00"], [b""], ["f:a"], [b":a"], [b"h:a"], [b"h"], [b"f:" + b"x" * 40_000]]
)
def test_a_choice_of_columns_that_cannot_be_read_is_refused(manager: TransactionManager, columns: list[bytes]) -> None:
    with manager.transaction() as transaction:
        transaction.put("t", b"r", {A: b"own"})
        for view in (manager.snapshot(), transaction):
            with pytest.raises(InvalidRequest, match=r"column|no family h; it has f, g"):
                view.get("t", b"r", columns)
            with pytest.raises(InvalidRequest, match=r"column|no family h; it has f, g"):
                list(view.scan("t", columns=columns))


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
