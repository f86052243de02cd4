"""Tables with a mapping, read as Arrow without Spark."""

from __future__ import annotations

import pyarrow as pa
import pytest

from client import InvalidRequest, TransactionManager
from client.spark import InvalidMapping, KeyColumn, TableMapping, ValueColumn, create_table, record_batches, row_key
from client.spark.codecs import RowEncoder

COLUMNS = (KeyColumn("month", "int"), KeyColumn("day", "int"), ValueColumn("v", "string"), ValueColumn("w", "double"))
ROWS = [
    {"month": 7, "day": 4, "v": "a", "w": 1.5},
    {"month": 7, "day": 5, "v": None, "w": None},
    {"month": 8, "day": 1, "v": "", "w": -0.5},
]


@pytest.mark.parametrize("packed", [False, True])
def test_rows_are_read_with_their_types(manager: TransactionManager, packed: bool) -> None:
    mapping = TableMapping("t", ("month", "day"), COLUMNS, packed=packed)
    create_table(manager, mapping)
    with manager.transaction() as transaction:
        handle = transaction.handle()
        job = manager.open_job(handle)
        writer = manager.attempt_writer(handle, "t", job, partition=0, attempt=0)
        writer.write(RowEncoder(mapping).encode(pa.RecordBatch.from_pylist(ROWS)))
        manager.seal_job(handle, job, [(0, 0)])
        assert pa.Table.from_batches(record_batches(transaction, mapping)).to_pylist() == ROWS
    snapshot = manager.snapshot()
    batches = list(record_batches(snapshot, mapping, batch_rows=2))
    assert [batch.num_rows for batch in batches] == [2, 1]
    assert pa.Table.from_batches(batches).to_pylist() == ROWS
    (july,) = record_batches(snapshot, mapping, ["w", "DAY"], prefix=row_key(mapping, 7))
    assert july.to_pylist() == [{"day": 4, "w": 1.5}, {"day": 5, "w": None}]
    assert july.schema.types == [pa.int32(), pa.float64()]
    with pytest.raises(InvalidMapping, match="no column x"):
        record_batches(snapshot, mapping, ["x"])


def test_a_mapping_that_is_there_already_may_be_meant_again(manager: TransactionManager) -> None:
    mapping = TableMapping("t", ("month", "day"), COLUMNS)
    for _ in range(2):
        create_table(manager, mapping, if_missing=True)
    with pytest.raises(InvalidRequest, match="differs in description"):
        create_table(manager, TableMapping("t", ("month",), (COLUMNS[0], *COLUMNS[2:])), if_missing=True)
