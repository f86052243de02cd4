"""The twin against a model too simple to be wrong, and its failures on demand."""

from __future__ import annotations

import subprocess
import sys
from dataclasses import dataclass, field

import pytest
from hypothesis import given
from hypothesis import strategies as st

from store import (
    Applied,
    Cell,
    CellStore,
    Family,
    KeyRange,
    MemoryCellStore,
    Rejected,
    RowPut,
    StoreUnavailable,
    TableMissing,
    Unknown,
)
from store.faults import Fault, FaultyCellStore
from store.hbase import HBaseCellStore

rows = st.sampled_from([b"a", b"b", b"b\x00", b"c"])
columns = st.sampled_from([b"f:", b"f:a", b"f:b", b"g:a"])
timestamps = st.integers(0, 12)
puts = st.tuples(st.just("put"), rows, st.dictionaries(columns, st.binary(max_size=2), min_size=1), timestamps)
nothing: dict[bytes, bytes] = {}
deletes = st.tuples(st.just("delete"), rows, st.just(nothing), timestamps)


@dataclass
class Model:
    """Every put that is not hidden, as a flat list of facts."""

    facts: dict[tuple[bytes, bytes, int], bytes] = field(default_factory=dict)
    deleted: dict[bytes, int] = field(default_factory=dict)

    def put(self, row: bytes, cells: dict[bytes, bytes], timestamp: int) -> None:
        if timestamp > self.deleted.get(row, -1):
            self.facts.update({(row, column, timestamp): value for column, value in cells.items()})

    def delete(self, row: bytes, timestamp: int) -> None:
        self.deleted[row] = max(timestamp, self.deleted.get(row, -1))
        self.facts = {key: value for key, value in self.facts.items() if key[0] != row or key[2] > timestamp}

    def versions(self, row: bytes, column: bytes, before: int) -> list[Cell]:
        found = [Cell(value, at) for (r, c, at), value in self.facts.items() if (r, c) == (row, column) and at < before]
        return sorted(found, key=lambda cell: -cell.timestamp)

    def row(self, row: bytes, family: bytes, before: int) -> dict[bytes, Cell]:
        names = {c for r, c, _ in self.facts if r == row and c.startswith(family + b":")}
        newest = {column: self.versions(row, column, before)[:1] for column in names}
        return {column: cells[0] for column, cells in newest.items() if cells}


def store_with_table() -> MemoryCellStore:
    store = MemoryCellStore()
    store.create_table("t", [Family("f"), Family("g")])
    return store


@given(st.lists(puts | deletes, max_size=25), st.integers(0, 13), st.integers(1, 5), st.booleans())
def test_it_holds_what_the_model_holds(
    steps: list[tuple[str, bytes, dict[bytes, bytes], int]], before: int, batch_rows: int, reverse: bool
) -> None:
    store, model = store_with_table(), Model()
    for kind, row, cells, timestamp in steps:
        if kind == "put":
            store.put("t", [RowPut(row, cells)], timestamp)
            model.put(row, cells, timestamp)
        else:
            store.delete("t", [row], timestamp)
            model.delete(row, timestamp)
    expected = {row: model.row(row, b"f", before) for row in (b"a", b"b", b"b\x00", b"c")}
    expected = {row: cells for row, cells in expected.items() if cells}
    assert store.get_many("t", [b"a", b"b", b"b\x00", b"c"], [b"f"], before=before) == expected
    scan = store.scan("t", KeyRange(b"", b""), [b"f"], before=before, batch_rows=batch_rows, reverse=reverse)
    assert list(scan) == sorted(expected.items(), reverse=reverse)
    for row in expected:
        assert store.versions("t", row, b"f:a", before=before, limit=99) == model.versions(row, b"f:a", before)


def test_versions_beyond_the_familys_limit_are_gone() -> None:
    store = MemoryCellStore()
    store.create_table("t", [Family("f", versions_max=2)])
    for timestamp in (30, 10, 20, 5):
        store.put("t", [RowPut(b"r", {b"f:a": b""})], timestamp)
    assert [cell.timestamp for cell in store.versions("t", b"r", b"f:a", limit=9)] == [30, 20]


def test_a_put_with_one_missing_family_writes_nothing() -> None:
    store = store_with_table()
    with pytest.raises(TableMissing):
        store.put("t", [RowPut(b"r", {b"f:a": b"1"}), RowPut(b"s", {b"x:a": b"1"})], 5)
    assert list(store.scan("t", KeyRange(b"", b""), [b"f"])) == []


def test_a_scan_between_batches_meets_rows_written_meanwhile() -> None:
    store = store_with_table()
    store.put("t", [RowPut(b"%d" % number, {b"f:a": b"1"}) for number in range(4)], 5)
    scan = store.scan("t", KeyRange(b"", b""), [b"f"], batch_rows=2)
    assert next(scan)[0] == b"0"
    store.put("t", [RowPut(b"25", {b"f:a": b"1"})], 5)
    store.delete("t", [b"3"], 5)
    assert [row for row, _ in scan] == [b"1", b"2", b"25"]


def test_its_own_time_is_given() -> None:
    store = MemoryCellStore(wall_ms=lambda: 77)
    store.create_table("t", [Family("f")])
    assert store.compare_and_set("t", b"r", check=b"f:a", expected=None, put=b"f:a", value=b"1") == Applied()
    assert store.get("t", b"r", [b"f:a"]) == {b"f:a": Cell(b"1", 77)}


def test_both_adapters_are_cell_stores() -> None:
    stores: list[CellStore] = [MemoryCellStore(), FaultyCellStore(), HBaseCellStore("127.0.0.1:1")]
    for store in stores:
        store.close()


def test_the_protocol_and_the_twin_load_no_thrift() -> None:
    code = "import store, sys; sys.exit(' '.join({'happybase', 'thriftpy2'} & set(sys.modules)) or None)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


class TestFaults:
    @pytest.fixture
    def faulty(self) -> FaultyCellStore:
        store = FaultyCellStore(wall_ms=lambda: 50)
        store.create_table("t", [Family("f")])
        return store

    @staticmethod
    def compare_and_set(store: FaultyCellStore) -> object:
        return store.compare_and_set("t", b"r", check=b"f:a", expected=None, put=b"f:a", value=b"set")

    @staticmethod
    def value(store: FaultyCellStore) -> bytes | None:
        cell = store.get("t", b"r", [b"f:a"]).get(b"f:a")
        return cell.value if cell else None

    @pytest.mark.parametrize(("fault", "left"), [(Fault.LOST, None), (Fault.DONE, b"put"), (Fault.LATE, None)])
    def test_a_put_that_fails(self, faulty: FaultyCellStore, fault: Fault, left: bytes | None) -> None:
        faulty.plan("put", None, fault)
        faulty.put("t", [RowPut(b"other", {b"f:a": b"1"})], 5)
        with pytest.raises(StoreUnavailable):
            faulty.put("t", [RowPut(b"r", {b"f:a": b"put"})], 5)
        assert self.value(faulty) == left
        faulty.deliver_late()
        assert self.value(faulty) == (b"put" if fault is not Fault.LOST else None)

    @pytest.mark.parametrize(("fault", "left"), [(Fault.LOST, None), (Fault.DONE, b"set"), (Fault.LATE, None)])
    def test_a_compare_and_set_that_fails(self, faulty: FaultyCellStore, fault: Fault, left: bytes | None) -> None:
        faulty.plan("compare_and_set", fault)
        assert isinstance(self.compare_and_set(faulty), Unknown)
        assert self.value(faulty) == left
        assert self.compare_and_set(faulty) == (Rejected() if fault is Fault.DONE else Applied())

    def test_a_late_compare_and_set_compares_when_it_arrives(self, faulty: FaultyCellStore) -> None:
        faulty.plan("compare_and_set", Fault.LATE)
        self.compare_and_set(faulty)
        faulty.put("t", [RowPut(b"r", {b"f:a": b"someone else's"})], 60)
        faulty.deliver_late()
        assert self.value(faulty) == b"someone else's"

    def test_reads_and_deletes_fail_as_planned(self, faulty: FaultyCellStore) -> None:
        for method in ("get_many", "versions", "scan", "delete"):
            faulty.plan(method, Fault.LOST)
        for call in (
            lambda: faulty.get("t", b"r", [b"f"]),
            lambda: faulty.versions("t", b"r", b"f:a", limit=1),
            lambda: list(faulty.scan("t", KeyRange(b"", b""), [b"f"])),
            lambda: faulty.delete("t", [b"r"], 5),
        ):
            with pytest.raises(StoreUnavailable):
                call()
            call()

    def test_a_misspelt_method_is_refused(self, faulty: FaultyCellStore) -> None:
        with pytest.raises(ValueError, match="faults can be planned for"):
            faulty.plan("putt", Fault.LOST)
