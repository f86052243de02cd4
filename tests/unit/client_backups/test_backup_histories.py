"""Backups of what changed, along random histories with vacuums and tables made anew: each has what its snapshot shows.

What may be refused is one since a backup that no position keeps, and nothing else.
"""

from __future__ import annotations

import random
from pathlib import Path

import pytest

from client import InvalidRequest, TransactionManager
from client.backups.creating import create, merge
from client.backups.restoring import restore
from client.vacuum import run_vacuum
from testkit import small_limits
from tests.horizon import await_horizon
from tests.unit.client.conftest import Installation
from tests.unit.client_backups.conftest import Content, nothing_told
from tests.unit.client_backups.test_backup_creating import saved

LIFE_MS = 100
POSITION = "nightly"
ROWS = [b"r%d" % number for number in range(8)]
COLUMNS = [b"f:a", b"f:b", b"f:c"]
STEPS = 40


@pytest.fixture
def forgetful(empty_installation: Installation, made_anew_at_once: None) -> TransactionManager:
    """The oracle gives up soon what it hears nothing of, so that the vacuum's horizon moves."""
    empty_installation.serve(limits=small_limits(transaction_life_ms=LIFE_MS))
    return empty_installation.manager()


class History:
    """What is done to the tables, and the backups that are made meanwhile."""

    def __init__(self, manager: TransactionManager, directory: Path, draw: random.Random) -> None:
        self._manager = manager
        self._directory = directory
        self._draw = draw
        self.made: dict[Path, dict[str, Content]] = {}
        """Each backup, and what the tables were."""
        self.newest: Path | None = None
        """The one that the position is at."""

    def write(self) -> None:
        tables = self._tables()
        if not tables:
            return
        transaction = self._manager.transaction()
        for _ in range(self._draw.randint(1, 6)):
            table, row = self._draw.choice(tables), self._draw.choice(ROWS)
            columns = self._draw.sample(COLUMNS, self._draw.randint(1, 3))
            kind = self._draw.random()
            if kind < 0.6:
                transaction.put(table, row, {column: b"%d" % self._draw.randrange(100) for column in columns})
            elif kind < 0.8:
                transaction.delete(table, row, columns)
            else:
                transaction.delete(table, row)
        end = self._draw.random()
        if end < 0.8:
            transaction.commit()
        elif end < 0.9:
            transaction.rollback()

    def make_or_drop(self) -> None:
        table = self._draw.choice(["t", "u"])
        if table in self._tables():
            self._manager.drop_table(table)
        else:
            self._manager.create_table(table, ["f"])

    def vacuum(self) -> None:
        now = self._manager.snapshot().timestamp
        kept = [each.timestamp for each in self._manager.snapshots()]
        await_horizon(self._manager, lambda counted: counted.horizon >= min([now, *kept]))
        assert run_vacuum(self._manager, retain_ms=0, outcomes_retain_ms=0, wait=lambda seconds: None).problems == {}

    def back_up(self) -> None:
        since = self._draw.choice([None, self.newest, self.newest, self.newest, *self.made])
        directory, snapshot = self._directory / str(len(self.made)), self._manager.snapshot()
        try:
            create(self._manager, snapshot, [], directory, nothing_told, since=since, position_snapshot=POSITION)
        except InvalidRequest as error:
            if "was vacuumed below" not in str(error) or since in (None, self.newest):
                raise
            return
        self.newest = directory
        self.made[directory] = {table: dict(snapshot.scan(table)) for table in self._tables()}

    def merge(self) -> None:
        if self.newest is None:
            return
        directory = self._directory / str(len(self.made))
        merge(self.newest, directory, nothing_told)
        self.made[directory] = self.made[self.newest]
        self.newest = directory

    def _tables(self) -> list[str]:
        return [table for table in ("t", "u") if self._manager.catalog.has_entry(table)]


@pytest.mark.parametrize("seed", range(6))
def test_each_backup_holds_what_its_snapshot_shows(forgetful: TransactionManager, tmp_path: Path, seed: int) -> None:
    history = History(forgetful, tmp_path, random.Random(seed))
    steps = [history.write] * 8 + [history.back_up] * 5 + [history.vacuum] * 2 + [history.make_or_drop, history.merge]
    draw = random.Random(seed)
    history.make_or_drop()
    for _ in range(STEPS):
        draw.choice(steps)()
    history.back_up()
    for directory, tables in history.made.items():
        assert saved(directory) == tables
    last = list(history.made)[-1]
    restore(forgetful, last, [], 3, nothing_told, prefix="again_")
    assert {table: dict(forgetful.snapshot().scan(f"again_{table}")) for table in history.made[last]} == history.made[
        last
    ]
