"""``pythia backup`` as processes on real services: made while somebody writes, killed in the middle, made anew."""

from __future__ import annotations

import threading
import time
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from client import ClientSettings, Transaction, TransactionManager
from client.cells import TOMBSTONE
from client.spark import TableMapping, create_table, table_mapping
from client.spark.mapping import KeyColumn, ValueColumn
from client.tables.unfinished import UNFINISHED
from client.vacuum import run_vacuum
from tests.horizon import at_once, await_horizon
from tests.integration.command_processes import Command

pytestmark = pytest.mark.integration

ACCOUNTS = 40
TOTAL = 1_000 * ACCOUNTS
ROWS_EACH = 7
WRITER_ENDS_SECONDS_MAX = 60

Content = dict[bytes, dict[bytes, bytes]]


@pytest.fixture
def command(oracle: ClientSettings) -> Command:
    return Command(oracle, "backup")


@pytest.fixture
def names(manager: TransactionManager) -> tuple[str, str]:
    return two_tables(manager)


def two_tables(manager: TransactionManager) -> tuple[str, str]:
    """One of a program's own, and one with a mapping. Money moves between them."""
    plain, typed = (f"backup_{kind}_{uuid.uuid4().hex[:12]}" for kind in ("plain", "typed"))
    manager.create_table(plain, ["d", "e"])
    columns = (KeyColumn("id", "string"), ValueColumn("balance", "string", "f", "balance"))
    create_table(manager, TableMapping(typed, ("id",), columns, "row"))

    def fill(transaction: Transaction) -> None:
        for number in range(ACCOUNTS // 2):
            transaction.put(plain, b"\x00%03d" % number, {b"d:balance": b"1000", b"e:\xff": TOMBSTONE * number})
            transaction.put(typed, b"%03d\x00" % number, {b"f:balance": b"1000"})

    manager.run(fill)
    return plain, typed


def moving(manager: TransactionManager, plain: str, typed: str, ended: threading.Event) -> None:
    number = 0

    def move(transaction: Transaction) -> None:
        for table, row, column, change in (
            (plain, b"\x00%03d" % (number % 20), b"d:balance", -1),
            (typed, b"%03d\x00" % (number % 19), b"f:balance", 1),
        ):
            balance = int(transaction.get(table, row)[column])
            transaction.put(table, row, {column: b"%d" % (balance + change)})

    while not ended.is_set():
        manager.run(move)
        number += 1


@contextmanager
def money_moves(manager: TransactionManager, names: tuple[str, str]) -> Iterator[None]:
    """Between the two tables, meanwhile."""
    ended = threading.Event()
    writer = threading.Thread(target=moving, args=(manager, *names, ended), daemon=True)
    writer.start()
    try:
        yield
    finally:
        ended.set()
        writer.join(WRITER_ENDS_SECONDS_MAX)
    assert not writer.is_alive()


def total(content: Content) -> int:
    return sum(int(values.get(b"d:balance", values.get(b"f:balance", b"0"))) for values in content.values())


def scanned(manager: TransactionManager, table: str, at: Any = None) -> Content:
    return dict(manager.snapshot(at).scan(table))


def test_tables_that_change_are_saved_at_one_moment_and_made_anew_after_a_kill(
    command: Command, manager: TransactionManager, names: tuple[str, str], tmp_path: Path
) -> None:
    plain, typed = names
    with money_moves(manager, names):
        made = command.done("create", tmp_path / "b", plain, typed)
    assert [counts["rows"] for counts in made["tables"].values()] == [ACCOUNTS // 2, ACCOUNTS // 2]
    assert command.done("check", tmp_path / "b") == made

    assert "has rows already" in command.refused("restore", tmp_path / "b")
    restoring = ["restore", tmp_path / "b", "--prefix", "again.", "--rows-per-transaction", ROWS_EACH]
    command.killed_once_it_said(f"again.{plain}: {ROWS_EACH} rows", *restoring)
    landed = len(scanned(manager, f"again.{plain}"))
    assert landed in range(ROWS_EACH, ACCOUNTS // 2 + 1)
    done = command.done(*restoring)["tables"]
    assert [counts["rows_before"] + counts["rows"] for counts in done.values()] == [ACCOUNTS // 2, ACCOUNTS // 2]
    assert done[f"again.{plain}"]["rows_before"] >= landed

    restored = {table: scanned(manager, f"again.{table}") for table in names}
    assert restored == {table: scanned(manager, table, made["snapshot"]) for table in names}
    assert sum(map(total, restored.values())) == TOTAL
    assert table_mapping(manager, f"again.{typed}").table == f"again.{typed}"


def test_what_changed_is_saved_night_by_night_across_vacuums_and_a_kill(
    forgetful: TransactionManager, command: Command, manager: TransactionManager, tmp_path: Path
) -> None:
    here = Command(forgetful.settings, "backup")
    names = plain, typed = two_tables(forgetful)
    position = "nightly"
    keeping = ("--position-snapshot", position)
    forgetful.run(lambda transaction: transaction.put(plain, b"\x00late0", {b"d:new0": b"1"}))
    made = [here.done("create", tmp_path / "0", plain, typed, *keeping)]
    for night in range(1, 3):
        arguments = (tmp_path / f"{night}", plain, typed, "--since", tmp_path / f"{night - 1}", *keeping)
        with money_moves(forgetful, names):
            if night == 2:
                kill_once_it_writes(here, tmp_path, "create", *arguments)
                assert forgetful.snapshot(position).timestamp == made[-1]["snapshot"]
            made.append(here.done("create", *arguments))
            vacuumed_up_to(forgetful, made[-1]["snapshot"])
        forgetful.run(lambda transaction: transaction.put(plain, b"\x00late2", {b"d:new2": b"1"}))
        forgetful.run(lambda transaction: transaction.delete(plain, b"\x00late0"))
    want = {table: scanned(forgetful, table, position) for table in names}
    assert sum(map(total, want.values())) == TOTAL
    assert made[2]["tables"][plain]["deleted"] == 1
    assert "was vacuumed below" in here.refused("create", tmp_path / "3", plain, "--since", tmp_path / "0")

    assert here.done("check", tmp_path / "2") == made[2]
    here.done("merge", tmp_path / "2", tmp_path / "whole")
    for directory, prefix in ((tmp_path / "2", "chain."), (tmp_path / "whole", "whole.")):
        command.done("restore", directory, "--prefix", prefix)
        assert {table: scanned(manager, f"{prefix}{table}") for table in names} == want
    for table in names:
        forgetful.drop_table(table)


def vacuumed_up_to(manager: TransactionManager, position: int) -> None:
    """Have a vacuum go as far as the position lets it."""
    await_horizon(manager, lambda counted: counted.horizon == position)
    assert run_vacuum(manager, retain_ms=0, outcomes_retain_ms=0, wait=at_once).problems == {}


def kill_once_it_writes(command: Command, directory: Path, *arguments: object) -> None:
    with command.start(*arguments) as process:
        deadline = time.monotonic() + WRITER_ENDS_SECONDS_MAX
        while not list(directory.glob(f"*{UNFINISHED}")) and time.monotonic() < deadline:
            assert process.poll() is None
            time.sleep(0.001)
        process.kill()
    assert len(list(directory.glob(f"*{UNFINISHED}"))) == 1
