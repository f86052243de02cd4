"""Overwrites whose tasks are repeated: what an attempt that lost wrote must not come back."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pytest

from client import TransactionAborted, TransactionManager
from client.spark import writer
from client.spark.codecs import RowEncoder
from client.spark.key_codec import row_key
from client.spark.mapping import KeyColumn, TableMapping, ValueColumn
from client.spark.options import SourceOptions
from client.spark.tables import create_table

MAPPING = TableMapping("w", ("k",), (KeyColumn("k", "int"), ValueColumn("v", "string")))


def batch(rows: dict[int, str]) -> pa.RecordBatch:
    return pa.record_batch([pa.array(list(rows), pa.int32()), pa.array(list(rows.values()))], ["k", "v"])


@pytest.mark.parametrize("overwrite", [False, True])
def test_an_attempt_that_lost_with_other_rows_is_found_out(
    manager: TransactionManager, monkeypatch: pytest.MonkeyPatch, overwrite: bool
) -> None:
    """It has recorded a row that was there before, and not written it yet."""
    monkeypatch.setattr(writer, "manager_for", lambda settings: manager)
    create_table(manager, MAPPING)
    with manager.transaction() as transaction:
        transaction.put("w", row_key(MAPPING, 3), {b"f:v": b"old"})
    overwriting = writer.PythiaWriter(SourceOptions(manager.settings, "w"), MAPPING, ["k", "v"], overwrite=overwrite)

    def attempt(number: int, rows: dict[int, str]) -> writer.WrittenRows:
        writer.write_batches(overwriting._attempt_writer(0, number), RowEncoder(MAPPING), [batch(rows)], 10_000)
        return writer.WrittenRows(0, number, len(rows))

    put_columns, late = manager.store.put_columns, list[tuple[Any, ...]]()
    with monkeypatch.context() as stalled:
        stalled.setattr(manager.store, "put_columns", lambda *arguments, **named: late.append(arguments))
        attempt(1, {3: "of the attempt that lost"})
    won = attempt(2, {4: "of the attempt that won"})
    with pytest.raises(TransactionAborted, match="repeated with other rows"):
        overwriting.commit([won])
    put_columns(*late[0])
    assert list(manager.snapshot().scan("w")) == [(row_key(MAPPING, 3), {b"f:v": b"old"})]


@pytest.mark.parametrize("salt_buckets", [0, 5])
def test_the_rows_of_a_prefix_are_replaced_wherever_they_lie(
    manager: TransactionManager, monkeypatch: pytest.MonkeyPatch, salt_buckets: int
) -> None:
    monkeypatch.setattr(writer, "manager_for", lambda settings: manager)
    columns = (KeyColumn("k", "int"), KeyColumn("m", "int"), ValueColumn("v", "string"))
    mapping = TableMapping("w", ("k", "m"), columns, salt_buckets=salt_buckets)
    create_table(manager, mapping)
    with manager.transaction() as transaction:
        for k in (6, 7, 8):
            for m in range(20):
                transaction.put("w", row_key(mapping, k, m), {b"f:v": b"old"})
    overwriting = writer.PythiaWriter(
        SourceOptions(manager.settings, "w", overwrite_prefix="[7]"), mapping, ["k", "m", "v"], overwrite=True
    )
    new = [pa.array([7] * 3, pa.int32()), pa.array([19, 20, 21], pa.int32()), pa.array(["new"] * 3)]
    rows = [pa.record_batch(new, ["k", "m", "v"])]
    writer.write_batches(overwriting._attempt_writer(0, 1), overwriting._encoder(), rows, 10_000)
    overwriting.commit([writer.WrittenRows(0, 1, 3)])
    expected = {row_key(mapping, k, m): {b"f:v": b"old"} for k in (6, 8) for m in range(20)}
    expected |= {row_key(mapping, 7, m): {b"f:v": b"new"} for m in (19, 20, 21)}
    assert dict(manager.snapshot().scan("w")) == expected
