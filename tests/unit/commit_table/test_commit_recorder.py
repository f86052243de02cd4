"""Recording batches of commits: what `CommitTable` reads of them, in puts of bounded size."""

from __future__ import annotations

import asyncio

import numpy as np
import pytest

from commit_table import CommitTable, Committed, Undecided, layout
from commit_table.columns import Timestamps
from commit_table.recorder import RECORD_COMMITS_MAX, CommitRecorder
from commit_table.timestamps import compose
from store import KeyRange, MemoryCellStore, RowPut, StoreUnavailable
from store.bulk import BlockingPutter
from store.faults import Fault, FaultyCellStore
from store.lines import ByteLines

EPOCH = compose(1_000_000_000_000)


class CountingPutter(BlockingPutter):
    """Notes how many cells each put has."""

    def __init__(self, store: MemoryCellStore) -> None:
        super().__init__(store)
        self.puts: list[int] = []

    async def put(self, table: str, rows: ByteLines, columns: ByteLines, values: ByteLines, timestamp: int) -> None:
        self.puts.append(len(rows))
        await super().put(table, rows, columns, values, timestamp)


def record(putter: BlockingPutter, starts: Timestamps, times: Timestamps, epoch: int = EPOCH) -> None:
    asyncio.run(CommitRecorder(putter, "commits").record(starts, times, epoch))


def starts_of(count: int) -> Timestamps:
    """Some in one millisecond, some in others, not in order."""
    numbers = np.arange(count, dtype=np.int64)[::-1]
    return EPOCH + ((numbers // 100) << 18) + numbers


def cells(store: MemoryCellStore) -> list[object]:
    return list(store.scan("commits", KeyRange(b"", b""), [b"c", b"f"]))


def test_what_is_recorded_is_what_the_layout_says_and_the_commit_table_reads() -> None:
    stores = [MemoryCellStore(), MemoryCellStore()]
    tables = [CommitTable(store, "commits") for store in stores]
    for table in tables:
        table.create()
    starts = starts_of(1_000)
    record(BlockingPutter(stores[0]), starts, starts + 5)
    for start in starts.tolist():
        commit = {layout.commit_column(start): layout.commit_value(start + 5)}
        stores[1].put("commits", [RowPut(layout.row_key(start), commit)], EPOCH)
    assert cells(stores[0]) == cells(stores[1])
    assert tables[0].outcomes([int(starts[0]), 1]) == {int(starts[0]): Committed(int(starts[0]) + 5), 1: Undecided()}


def test_a_late_write_of_an_older_epoch_covers_nothing() -> None:
    store = MemoryCellStore()
    table = CommitTable(store, "commits")
    table.create()
    starts = starts_of(1)
    record(BlockingPutter(store), starts, starts + 5, EPOCH)
    record(BlockingPutter(store), starts, starts + 1, EPOCH - 1)
    assert table.outcome(int(starts[0])) == Committed(int(starts[0]) + 5)


@pytest.mark.parametrize(
    ("count", "puts"),
    [
        (0, []),
        (1, [1]),
        (RECORD_COMMITS_MAX, [RECORD_COMMITS_MAX]),
        (2 * RECORD_COMMITS_MAX + 1, [RECORD_COMMITS_MAX, RECORD_COMMITS_MAX, 1]),
    ],
)
def test_many_commits_are_several_puts(count: int, puts: list[int]) -> None:
    store = MemoryCellStore()
    CommitTable(store, "commits").create()
    putter = CountingPutter(store)
    record(putter, starts_of(count), starts_of(count) + 5)
    assert putter.puts == puts
    assert sum(len(columns) for _, columns in store.scan("commits", KeyRange(b"", b""), [b"c"])) == count


def test_a_put_that_fails_is_the_callers_concern() -> None:
    store = FaultyCellStore()
    CommitTable(store, "commits").create()
    store.plan("put", None, Fault.LOST)
    count = 3 * RECORD_COMMITS_MAX
    with pytest.raises(StoreUnavailable):
        record(BlockingPutter(store), starts_of(count), starts_of(count))
    assert sum(len(columns) for _, columns in store.scan("commits", KeyRange(b"", b""), [b"c"])) == RECORD_COMMITS_MAX


def test_nothing_is_written_of_a_batch_that_no_oracle_could_have_decided() -> None:
    store = MemoryCellStore()
    CommitTable(store, "commits").create()
    starts = np.array([5, 6, 5], np.int64)
    with pytest.raises(ValueError, match="twice"):
        record(BlockingPutter(store), starts, starts)
    assert cells(store) == []
