"""What is on record of claims: told in the order of the keys, and forgotten; by functions and by ``pythia claims``."""

from __future__ import annotations

import json
from collections.abc import Iterable
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from client import InvalidRequest, TransactionManager
from client.claims import claim_of, claims, commands, forget, recorded
from commit_table.timestamps import wall_time_of
from tests.unit.client.conftest import Installation
from tests.unit.client_tables.conftest import Run, done, refused, running

WEEK = timedelta(days=7)


@pytest.fixture
def run(installation: Installation, monkeypatch: pytest.MonkeyPatch) -> Run:
    return running(commands.claims, installation, monkeypatch)


def claim(manager: TransactionManager, keys: Iterable[str], table: str | None = None) -> None:
    with manager.transaction() as transaction:
        for key in keys:
            assert transaction.claim(key, table=table)


def on_record(manager: TransactionManager) -> list[str]:
    return [found.key for found in claims(manager)]


def test_they_are_told_in_the_order_of_their_keys_with_their_transaction(manager: TransactionManager) -> None:
    assert list(claims(manager)) == []
    claim(manager, ["b/1", "a/2", "é", "a/1", "a"])
    found = list(claims(manager))
    assert [each.key for each in found] == ["a", "a/1", "a/2", "b/1", "é"]
    assert {each.start_timestamp for each in found} == {found[0].start_timestamp}
    assert found[0].began == wall_time_of(found[0].start_timestamp)
    assert [each.key for each in claims(manager, "a/")] == ["a/1", "a/2"]
    assert claim_of(manager, "a/1") == found[1]
    assert claim_of(manager, "a/3") is None


def test_a_tables_are_told_apart_from_the_installations_and_other_tables(manager: TransactionManager) -> None:
    manager.create_table("t2", ["f"])
    for table in ("t2", None, "t"):
        claim(manager, ["a/1", "b/1"], table)
    assert [(each.table, each.key) for each in claims(manager)] == [
        (table, key) for table in ("", "t", "t2") for key in ("a/1", "b/1")
    ]
    assert [(each.table, each.key) for each in claims(manager, table="t")] == [("t", "a/1"), ("t", "b/1")]
    assert [each.table for each in claims(manager, "a/")] == ["", "t", "t2"]
    assert [(each.table, each.key) for each in claims(manager, "b/", table="")] == [("", "b/1")]
    assert forget(manager, ["a/1"], table="t") == 1
    assert claim_of(manager, "a/1", table="t") is None
    assert claim_of(manager, "a/1") == next(claims(manager))
    assert len(list(claims(manager))) == 5


def test_of_a_table_that_was_dropped_they_are_on_record_and_of_no_account(manager: TransactionManager) -> None:
    claim(manager, ["a"], "t")
    manager.drop_table("t")
    assert [each.key for each in claims(manager, table="t")] == ["a"]
    with pytest.raises(InvalidRequest, match="there is no table 't'"):
        claim_of(manager, "a", table="t")
    manager.create_table("t", ["f"])
    assert claim_of(manager, "a", table="t") is None
    claim(manager, ["a"], "t")
    assert claim_of(manager, "a", table="t") is not None


def test_they_are_told_by_their_age(manager: TransactionManager) -> None:
    claim(manager, ["a"])
    (found,) = claims(manager)
    assert list(claims(manager, before=found.began)) == []
    assert list(claims(manager, before=found.began + timedelta(milliseconds=1))) == [found]
    with pytest.raises(InvalidRequest, match="has no zone"):
        claims(manager, before=datetime(2026, 11, 21))  # that is what is refused


def test_those_that_are_forgotten_are_claimed_anew(manager: TransactionManager) -> None:
    claim(manager, ["a", "b", "c"])
    assert forget(manager, ["a", "never claimed", "c"]) == 2
    assert on_record(manager) == ["b"]
    claim(manager, ["a"])
    assert on_record(manager) == ["a", "b"]


def test_very_many_are_forgotten_in_several_transactions(
    manager: TransactionManager, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(recorded, "FORGOTTEN_TOGETHER_MAX", 3)
    keys = [f"{number:02}" for number in range(10)]
    claim(manager, keys)
    before = manager.oracle.begin().first_start_timestamp
    assert forget(manager, (found.key for found in claims(manager))) == 10
    assert on_record(manager) == []
    assert manager.oracle.begin().first_start_timestamp - before > 4


def lines(text: str) -> list[Any]:
    return [json.loads(line) for line in text.splitlines()]


def test_the_list_has_a_line_each(run: Run, manager: TransactionManager) -> None:
    assert run("list").stdout == ""
    claim(manager, ["orders/1", "two\nlines"])
    first, second = run("list").stdout.splitlines()
    assert first.endswith("  -  orders/1")
    assert datetime.fromisoformat(first.partition("  ")[0]) > datetime.now(UTC) - WEEK
    assert second.endswith('  -  "two\\nlines"')
    (found,) = lines(run("list", "--prefix", "orders/", "--json").stdout)
    assert (found["key"], found["table"]) == ("orders/1", None)
    assert int(found["transaction"]) == next(claims(manager)).start_timestamp
    assert run("list", "--older-than-days", "1").stdout == ""
    assert len(lines(run("list", "--older-than-days", "0", "--json").stdout)) == 2
    claim(manager, ["orders/1"], "t")
    (line,) = run("list", "--table", "t").stdout.splitlines()
    assert line.endswith("  t  orders/1")


def test_keys_are_forgotten_by_name_prefix_and_age(run: Run, manager: TransactionManager) -> None:
    claim(manager, ["a/1", "a/2", "b/1", "b/2"])
    claim(manager, ["a/1"], "t")
    assert done(run("forget", "a/1", "none", "--json")) == {"forgotten": 1}
    assert done(run("forget", "a/1", "a/2", "--table", "t", "--json")) == {"forgotten": 1}
    assert done(run("forget", "--prefix", "a/", "--dry-run", "--json")) == {"would be forgotten": 1}
    assert run("forget", "--prefix", "a/", "--older-than-days", "1").stdout == "0 forgotten\n"
    assert run("forget", "--prefix", "b/", "--dry-run").stdout == "2 would be forgotten\n"
    assert on_record(manager) == ["a/2", "b/1", "b/2"]
    claim(manager, ["b/1"], "t")
    assert run("forget", "--prefix", "b/", "--table", "t").stdout == "1 forgotten\n"
    assert run("forget", "--prefix", "b/").stdout == "2 forgotten\n"
    claim(manager, ["b/1"], "t")
    assert run("forget", "--older-than-days", "0").stdout == "2 forgotten\n"
    assert on_record(manager) == []


@pytest.mark.parametrize(
    ("arguments", "reason"),
    [
        ((), "say which"),
        (("--table", "t"), "say which"),
        (("a", "--prefix", "a"), "say which"),
        (("a", "--older-than-days", "1"), "say which"),
        (("a", "--dry-run"), "leave it out with keys"),
    ],
)
def test_what_is_to_be_forgotten_is_said_in_one_way(
    run: Run, manager: TransactionManager, arguments: tuple[str, ...], reason: str
) -> None:
    claim(manager, ["a"])
    assert reason in refused(run("forget", *arguments), 2)
    assert on_record(manager) == ["a"]


def test_a_key_that_cannot_be_claimed_cannot_be_forgotten(run: Run) -> None:
    assert "1 to 1,024 bytes" in refused(run("forget", "x" * 1_025))
    assert "'--older-than-days'" in refused(run("list", "--older-than-days", "-1"), 2)
