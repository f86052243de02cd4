"""An installation in one process, what its tables hold, and the command line on it."""

from __future__ import annotations

import pytest

from client import TransactionManager
from client.backups.commands import backup
from client.cells import ROW_MARKER_VALUE, TOMBSTONE, row_marker_column
from client.spark import TableMapping, create_table
from client.spark.mapping import KeyColumn, ValueColumn
from store import RowPut
from store.columns import CellColumns
from tests.unit.client.conftest import Installation, empty_installation, installation, made_anew_at_once, manager
from tests.unit.client_tables.conftest import Run, running

__all__ = ["empty_installation", "installation", "made_anew_at_once", "manager"]

Content = dict[bytes, dict[bytes, bytes]]
A, G = b"f:a", b"g:\xffc"
CELLS = {
    b"\x00": {A: b"1", b"f:": b""},
    b"deleted-looking": {A: TOMBSTONE, G: TOMBSTONE + b"x"},
    b"wide": {b"f:%03d" % number: b"%d" % number for number in range(50)},
    b"\xff\xff": {G: b"3"},
}
WITHOUT_CELLS = b"nothing but nulls"
CONTENT = dict(sorted({**CELLS, WITHOUT_CELLS: {}}.items()))
"""Of table ``t``."""
MAPPING = TableMapping("typed", ("id",), (KeyColumn("id", "bigint"), ValueColumn("v", "int", "h", "v")), "row")


@pytest.fixture
def filled(manager: TransactionManager) -> TransactionManager:
    """Table ``t`` without a mapping, which has versions beside those that count, and ``typed``, which is empty."""
    with manager.transaction() as before:
        before.put("t", b"\x00", {A: b"before", b"f:gone": b"x"})
        before.put("t", b"gone", {A: b"x"})
    with manager.transaction() as transaction:
        transaction.delete("t", b"gone")
        transaction.delete("t", b"\x00", [b"f:gone"])
        for row, values in CELLS.items():
            transaction.put("t", row, values)
        handle = transaction.handle()
        job = manager.open_job(handle)
        writer = manager.attempt_writer(handle, "t", job, partition=0, attempt=0)
        marker = {row_marker_column(b"g"): ROW_MARKER_VALUE}
        writer.write(CellColumns.of_puts([RowPut(WITHOUT_CELLS, marker)]))
        manager.seal_job(handle, job, [(0, 0)])
    open_for_good = manager.transaction()
    open_for_good.put("t", b"not committed", {A: b"x"})
    create_table(manager, MAPPING)
    return manager


@pytest.fixture
def run(installation: Installation, monkeypatch: pytest.MonkeyPatch) -> Run:
    """``pythia backup`` with these arguments, on the installation."""
    return running(backup, installation, monkeypatch)


def content(manager: TransactionManager, table: str = "t") -> Content:
    return dict(manager.snapshot().scan(table))


def nothing_told(table: str, rows: int, counts: bool) -> None:
    """No progress is shown."""
