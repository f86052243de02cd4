"""Jobs that write into a transaction, and what is left of them: what the tests of several subjects share."""

from __future__ import annotations

from client import TransactionHandle, TransactionManager
from client.cells import decode_shadow
from store import RowPut
from store.columns import CellColumns
from tests.unit.client.conftest import A


def puts(*rows: bytes, value: bytes = b"1") -> list[RowPut]:
    return [RowPut(row, {A: value}) for row in rows]


def write(
    manager: TransactionManager,
    handle: TransactionHandle,
    job: str,
    *rows: bytes,
    table: str = "t",
    partition: int = 0,
    attempt: int = 0,
) -> None:
    manager.attempt_writer(handle, table, job, partition=partition, attempt=attempt).write(
        CellColumns.of_puts(puts(*rows))
    )


def rows_seen(manager: TransactionManager) -> list[bytes]:
    return [row for row, _ in manager.snapshot().scan("t")]


def shadow(manager: TransactionManager, row: bytes) -> int | None:
    versions = manager.store.versions("t", row, b"f:\x00", limit=1)
    return decode_shadow(versions[0].value) if versions else None
