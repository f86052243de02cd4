"""A key that transactions claim lands once, whoever begins when, and however the answer to a commit got lost."""

from __future__ import annotations

import threading
from concurrent.futures import ThreadPoolExecutor
from typing import Any, NoReturn

import pytest
from hypothesis import given
from hypothesis import strategies as st

from client import Conflict, InvalidRequest, OutcomeUnknown, Transaction, TransactionManager
from client.catalog.record_tables import CLAIMS
from client.claims import claim_of, claims
from client.transactions.claims import KEY_BYTES_MAX, RECORD, Claim, row_of
from tests.unit.client.conftest import A, Installation
from tests.unit.client.transacting import fail_over

KEY = "orders/2026-11-21"


def land(manager: TransactionManager, value: bytes, key: str = KEY) -> bool:
    """As a job does it that may be started again; whether it was the one that landed."""

    def job(transaction: Transaction) -> bool:
        if not transaction.claim(key):
            return False
        transaction.put("t", b"r", {A: value})
        return True

    return manager.run(job)


def test_what_has_landed_is_not_landed_again(manager: TransactionManager) -> None:
    assert land(manager, b"first")
    assert not land(manager, b"second")
    assert land(manager, b"other", key="orders/2026-11-22")
    assert manager.snapshot().get("t", b"r") == {A: b"other"}


def test_a_table_has_keys_of_its_own_for_as_long_as_it_stands(manager: TransactionManager) -> None:
    manager.create_table("other", ["f"])
    for table in ("t", "other", None):
        with manager.transaction() as transaction:
            assert transaction.claim(KEY, table=table)
            assert transaction.claim(KEY, table=table)
    for table in ("t", "other", None):
        assert not manager.transaction().claim(KEY, table=table)
    manager.drop_table("t")
    with pytest.raises(InvalidRequest, match="there is no table 't'"):
        manager.transaction().claim(KEY, table="t")
    manager.create_table("t", ["f"])
    with manager.transaction() as transaction:
        assert transaction.claim(KEY, table="t"), "nothing has landed in it"
    assert [manager.transaction().claim(KEY, table=table) for table in ("t", "other")] == [False, False]


def test_a_claim_is_of_no_account_until_its_transaction_has_committed(manager: TransactionManager) -> None:
    transaction = manager.transaction()
    assert transaction.claim(KEY)
    assert transaction.claim(KEY), "it is the one that lands it"
    assert claim_of(manager, KEY) is None
    transaction.rollback()
    assert land(manager, b"first")


def test_of_two_that_claim_a_key_and_overlap_one_commits(manager: TransactionManager) -> None:
    """Though they write nothing else."""
    one, two = manager.transaction(), manager.transaction()
    assert one.claim(KEY)
    assert two.claim(KEY)
    two.commit()
    with pytest.raises(Conflict):
        one.commit()
    assert claim_of(manager, KEY) == Claim(KEY, two.start_timestamp)


def test_many_that_run_at_once_land_once(manager: TransactionManager) -> None:
    together = threading.Barrier(8)

    def started(number: int) -> bool:
        together.wait(30)
        return land(manager, b"%d" % number)

    with ThreadPoolExecutor(8) as threads:
        landed = list(threads.map(started, range(8)))
    assert landed.count(True) == 1
    assert manager.snapshot().get("t", b"r") == {A: b"%d" % landed.index(True)}


def test_what_nobody_knows_the_end_of_is_started_again(
    installation: Installation, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The commit was decided, and its answer lost."""
    manager = installation.manager()
    decide = manager.oracle.commit

    def lose(*arguments: Any, **options: Any) -> NoReturn:
        decide(*arguments, **options)
        raise OutcomeUnknown(transaction.start_timestamp, 1)

    transaction = manager.transaction()
    assert transaction.claim(KEY)
    transaction.put("t", b"r", {A: b"first"})
    monkeypatch.setattr(manager.oracle, "commit", lose)
    with pytest.raises(OutcomeUnknown):
        transaction.commit()
    monkeypatch.undo()
    assert not land(installation.manager(), b"second")
    assert manager.snapshot().get("t", b"r") == {A: b"first"}


def test_a_claim_outlives_the_primary(installation: Installation) -> None:
    """Of one that was open when the primary went, of one that had landed, and of one that comes after."""
    manager = installation.manager()
    open_one = manager.transaction()
    assert open_one.claim("open")
    land(manager, b"landed", key="landed")
    fail_over(installation)
    assert not land(manager, b"again", key="landed")
    assert land(manager, b"other", key="open")
    with pytest.raises(Conflict):
        open_one.commit()
    assert [claim.key for claim in claims(manager)] == ["landed", "open"]


def test_a_table_that_was_just_used_is_not_asked_about(
    installation: Installation, manager: TransactionManager, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A service may claim a key in each of its transactions."""
    land(manager, b"first")
    monkeypatch.setattr(installation.store, "table_names", lambda: pytest.fail("asked for all tables"))
    assert land(manager, b"second", key="another")


def test_a_savepoint_from_before_takes_the_claim_back(manager: TransactionManager) -> None:
    with manager.transaction() as transaction:
        savepoint = transaction.savepoint()
        assert transaction.claim(KEY)
        transaction.rollback_to(savepoint)
    assert claim_of(manager, KEY) is None
    assert land(manager, b"first")


@pytest.mark.parametrize(
    "key", ["", "x" * (KEY_BYTES_MAX + 1), "é" * (KEY_BYTES_MAX // 2 + 1), "\ud800", b"bytes", 7, None]
)
def test_what_is_no_key_is_refused(manager: TransactionManager, key: str) -> None:
    with manager.transaction() as transaction:
        with pytest.raises(InvalidRequest, match="a key to claim"):
            transaction.claim(key)
        transaction.put("t", b"r", {A: b"of use"})
    with pytest.raises(InvalidRequest, match="a key to claim"):
        claim_of(manager, key)


def test_a_read_only_transaction_claims_nothing(manager: TransactionManager) -> None:
    land(manager, b"first")
    with manager.transaction(read_only=True) as transaction:
        for key in (KEY, "never claimed"):
            with pytest.raises(InvalidRequest, match="read-only"):
                transaction.claim(key)


@given(
    key=st.text(st.characters(exclude_categories=["Cs"]), min_size=1, max_size=50),
    start=st.integers(1, 2**63 - 1),
    table=st.sampled_from(["", "t", "name_space:t"]),
)
def test_a_record_is_read_as_it_was_written(key: str, start: int, table: str) -> None:
    claim = Claim(key, start, table, "incarnation" if table else "")
    assert Claim.parse(row_of(key, table), claim.to_json()) == claim


@pytest.mark.parametrize(
    "value", [b"", b"[]", b"{}", b"\xff", b'{"format": 1}', b'{"format": 2, "transaction": 1, "incarnation": ""}']
)
def test_a_record_that_cannot_be_read_is_no_reason_to_land_again(manager: TransactionManager, value: bytes) -> None:
    with manager.transaction() as transaction:
        transaction.put(manager.catalog.create_record_table(CLAIMS), row_of(KEY), {RECORD: value})
    with pytest.raises(InvalidRequest, match=r"no record of a claim|upgrade this program"):
        land(manager, b"again")
