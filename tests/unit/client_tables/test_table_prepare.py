"""``pythia table prepare``: once an administrator has run it, nobody needs the right to make or describe a table."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import pytest
from click.testing import CliRunner

from client import InvalidRequest, TransactionManager
from client.catalog.record_tables import STREAMS
from client.cells import encode_value
from client.tables.commands import table
from client.tables.record import ImportRecord
from store import KeyRange, MemoryCellStore, RowPut, StoreError
from store.columns import CellColumns
from tests.unit.client.conftest import A, Installation
from tests.unit.client_tables.conftest import Run, done, refused, running

OWN = [
    "pythia_catalog", "pythia_claims", "pythia_commits", "pythia_imports", "pythia_manifest", "pythia_snapshots",
    "pythia_streams",
]  # fmt: skip


def only_read_and_write(installation: Installation, monkeypatch: pytest.MonkeyPatch) -> None:
    """As of a user who has been granted nothing more."""

    def refuse(*_: Any) -> None:
        raise StoreError("AccessDeniedException: Insufficient permissions")

    for method in ("create_table", "drop_table", "families"):
        monkeypatch.setattr(installation.store, method, refuse)


def write_with_records(manager: TransactionManager) -> None:
    """All that needs one of Pythia's own tables."""
    with manager.transaction() as bulk:
        job = manager.open_job(bulk.handle())
        writer = manager.attempt_writer(bulk.handle(), "t", job, partition=0, attempt=0)
        writer.write(CellColumns.of_puts([RowPut(b"r", {A: encode_value(b"1")})]))
        manager.seal_job(bulk.handle(), job, [(0, 0)])
    manager.create_snapshot("landed")
    record = ImportRecord(manager, "t", "a file")
    with manager.transaction() as transaction:
        record.require(transaction, record.read())
        transaction.put(manager.catalog.create_record_table(STREAMS), b"query", {b"b:batches": b"1"})
        assert transaction.claim("a file")
    assert manager.snapshot("landed").get("t", b"r") == {A: b"1"}


def test_after_it_nobody_has_to_make_a_table(
    run: Run, installation: Installation, monkeypatch: pytest.MonkeyPatch
) -> None:
    found = done(run("prepare", "--json"))
    assert found["own_tables"] == OWN
    assert set(found["made"]) == {*OWN} - {"pythia_catalog", "pythia_commits"}
    only_read_and_write(installation, monkeypatch)
    write_with_records(installation.manager())
    assert done(run("prepare", "--json")) == {"own_tables": OWN, "made": []}


def test_the_commit_table_is_made_with_as_many_regions_as_were_said(monkeypatch: pytest.MonkeyPatch) -> None:
    store = MemoryCellStore()
    monkeypatch.setattr(store, "close", lambda: None)
    monkeypatch.setattr("client.manager.store_of", lambda settings: store)

    def prepared(*arguments: str) -> list[str]:
        told = CliRunner().invoke(table, ["prepare", "--thrift", "127.0.0.1:1", "--json", *arguments])
        made: list[str] = done(told)["made"]
        return made

    assert prepared("--commit-table-regions", "4") == OWN
    bounds = [b"", b"\x40", b"\x80", b"\xc0", b""]
    assert store.regions("pythia_commits") == [KeyRange(*pair) for pair in pairwise(bounds)]
    assert prepared("--commit-table-regions", "9") == []


@pytest.mark.parametrize("regions", [0, 257])
def test_it_has_no_more_regions_than_salts(manager: TransactionManager, regions: int) -> None:
    with pytest.raises(InvalidRequest, match=f"made with 1 to 256 regions, not {regions}"):
        manager.create_own_tables(commit_table_regions=regions)


def test_without_it_they_would(installation: Installation, monkeypatch: pytest.MonkeyPatch) -> None:
    only_read_and_write(installation, monkeypatch)
    with pytest.raises(StoreError, match="AccessDenied"):
        write_with_records(installation.manager())


def test_before_the_first_oracle_it_makes_all(
    empty_installation: Installation, monkeypatch: pytest.MonkeyPatch
) -> None:
    run_on_empty = running(table, empty_installation, monkeypatch)
    result = run_on_empty("prepare")
    assert result.exit_code == 0, result.output
    assert result.stdout.splitlines() == [f"{name}  made" for name in OWN]
    empty_installation.serve()
    manager = empty_installation.manager()
    manager.create_table("t", ["f", "g"])
    write_with_records(manager)
    assert {line.split()[1] for line in run_on_empty("prepare").stdout.splitlines()} == {"was"}


def test_what_stands_under_such_a_name_and_is_another_table_is_refused(run: Run, manager: TransactionManager) -> None:
    manager.create_table("pythia_streams", ["other"])
    assert "'pythia_streams' exists already, and differs in" in refused(run("prepare"))
    with pytest.raises(Exception, match="differs in"):
        manager.catalog.create_record_table(STREAMS)
