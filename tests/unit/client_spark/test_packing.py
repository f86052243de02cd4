"""Rows of packed tables: every value comes back out of the one cell, and cells that are none of them are refused."""

from __future__ import annotations

from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from client.spark.codecs import RowDecoder, RowEncoder
from client.spark.column_types import arrow_type
from client.spark.errors import InvalidData, InvalidMapping
from client.spark.mapping import KeyColumn, TableMapping, ValueColumn
from store import RowPut
from store.columns import CellColumns

TYPES = ("int", "string", "double", "binary", "boolean", "decimal(20,3)", "tinyint", "timestamp_ntz", "string", "date")
MAPPING = TableMapping(
    "t",
    ("k",),
    (KeyColumn("k", "bigint"), *(ValueColumn(f"v{index}", name) for index, name in enumerate(TYPES))),
    packed=True,
)
SCHEMA = pa.schema([(column.name, arrow_type(column.type)) for column in MAPPING.columns])
VALUES: dict[str, st.SearchStrategy[Any]] = {
    "int": st.integers(-(2**31), 2**31 - 1),
    "string": st.text(st.characters(exclude_categories=["Cs"])),
    "double": st.floats(allow_nan=False),
    "binary": st.binary(),
    "boolean": st.booleans(),
    "decimal(20,3)": st.integers(-(10**19), 10**19).map(lambda number: Decimal(number).scaleb(-3)),
    "tinyint": st.integers(-128, 127),
    "timestamp_ntz": st.datetimes(),
    "date": st.dates(),
}


def encoded(*rows: dict[str, Any]) -> CellColumns:
    return RowEncoder(MAPPING).encode(pa.RecordBatch.from_pylist(list(rows), SCHEMA))


def decoded(cells: CellColumns, names: list[str] | None = None) -> list[dict[str, Any]]:
    schema = SCHEMA if names is None else pa.schema([SCHEMA.field(name) for name in names])
    rows: list[dict[str, Any]] = RowDecoder(MAPPING, schema).decode(cells).to_pylist()
    return rows


@settings(deadline=None)
@given(st.lists(st.tuples(*(st.none() | VALUES[name] for name in TYPES)), max_size=12))
def test_rows_come_back(rows: list[tuple[Any, ...]]) -> None:
    named = [{"k": number, **{f"v{i}": value for i, value in enumerate(row)}} for number, row in enumerate(rows)]
    cells = encoded(*named)
    assert cells.columns == (b"f:packed",)
    assert decoded(cells) == named
    assert decoded(cells, ["v8", "v1"]) == [{"v8": row["v8"], "v1": row["v1"]} for row in named]


def test_a_row_of_nulls_has_a_cell_as_well() -> None:
    cells = encoded({"k": 1})
    assert [put.columns for put in cells.puts()] == [{b"f:packed": b"\x01\xff\x03"}]
    assert decoded(cells) == [{"k": 1, **{f"v{index}": None for index in range(len(TYPES))}}]


def test_the_layout_is_the_one_that_is_documented() -> None:
    (put,) = encoded({"k": 1, "v0": 2, "v1": "ä"}).puts()
    nulls = bytes([0b11111100, 0b11])
    assert put == RowPut(
        b"\x80" + bytes(6) + b"\x01", {b"f:packed": b"\x01" + nulls + bytes([0, 0, 0, 2]) + b"\0\0\0\2" + "ä".encode()}
    )


def test_columns_are_not_looked_for_one_by_one_among_all_of_them(monkeypatch: pytest.MonkeyPatch) -> None:
    """Of ten thousand columns that took minutes for each batch."""
    columns, looks = vars(TableMapping)["value_columns"].fget, list[int]()

    def counted(mapping: TableMapping) -> tuple[ValueColumn, ...]:
        looks.append(1)
        found: tuple[ValueColumn, ...] = columns(mapping)
        return found

    row = {"k": 1, **dict.fromkeys(SCHEMA.names[1:])}
    cells, decoder = encoded(row), RowDecoder(MAPPING, SCHEMA)
    monkeypatch.setattr(TableMapping, "value_columns", property(counted))
    assert decoder.decode(cells).to_pylist() == [row]
    assert len(looks) < len(TYPES)


def test_a_cell_that_is_no_packed_row_is_refused() -> None:
    (good,) = encoded({"k": 1, "v0": 2, "v1": "text"}).puts()
    value = good.columns[b"f:packed"]
    for wrong in (b"", b"\x02" + value[1:], value[:-1], value + b"x", value[:2], value[:8]):
        cells = CellColumns.of_puts([good, RowPut(good.row, {b"f:packed": wrong})])
        with pytest.raises(InvalidData, match="no rows of a packed table"):
            decoded(cells)


def test_a_packed_table_has_one_family_and_conflicts_by_row() -> None:
    columns = (KeyColumn("k", "int"), ValueColumn("a", "int"), ValueColumn("b", "int", "g"))
    with pytest.raises(InvalidMapping, match="one family"):
        TableMapping("t", ("k",), columns, packed=True)
    with pytest.raises(InvalidMapping, match="conflict level is 'row'"):
        TableMapping("t", ("k",), columns[:2], "cell", packed=True)


def test_a_write_of_some_of_the_columns_is_refused() -> None:
    with pytest.raises(InvalidMapping, match="column 'v9'"):
        MAPPING.check_writable(MAPPING.to_struct(["k", *(f"v{index}" for index in range(9))]))


def test_the_mapping_says_of_what_layout_it_is() -> None:
    assert TableMapping.from_json(MAPPING.to_json()) == MAPPING
    assert MAPPING.cells == (b"f:packed",)
    assert MAPPING.cells_of(["v1"]) == MAPPING.cells
    assert MAPPING.cells_of(["k"]) == ()
