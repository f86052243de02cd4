"""Mappings from a command line and from files."""

from __future__ import annotations

import pyarrow as pa
import pytest

from client.spark import KeyColumn, TableMapping, ValueColumn
from client.spark.errors import InvalidMapping
from client.tables.columns import columns_like, mapping_of, parse_column


def test_a_column_is_a_name_and_a_type() -> None:
    assert parse_column("id:long") == ("id", "bigint")
    assert parse_column("a:b: decimal(10,2)") == ("a:b", "decimal(10,2)")


@pytest.mark.parametrize("text", ["id", "id:", ":int", "", " :int"])
def test_half_a_column_is_refused(text: str) -> None:
    with pytest.raises(InvalidMapping, match="a column is 'name:type'"):
        parse_column(text)


def test_an_unknown_type_is_refused_with_those_that_are_known() -> None:
    with pytest.raises(InvalidMapping, match=r"unknown type 'number'; known are string, .*decimal"):
        parse_column("id:number")


def test_columns_make_a_mapping() -> None:
    mapping = mapping_of("t", [("v", "string"), ("k", "int")], ("k",), family="g", conflict_level="cell")
    assert mapping == TableMapping("t", ("k",), (ValueColumn("v", "string", "g"), KeyColumn("k", "int")), "cell")


def test_the_types_of_a_file_are_those_that_hold_its_values() -> None:
    types = {
        "a": pa.int8(), "b": pa.uint8(), "c": pa.uint16(), "d": pa.uint32(), "e": pa.int64(), "f": pa.float32(),
        "g": pa.large_string(), "h": pa.string_view(), "i": pa.large_binary(),
        "j": pa.dictionary(pa.int8(), pa.string()), "k": pa.timestamp("ns", "America/New_York"),
        "l": pa.timestamp("s"), "m": pa.decimal128(9, 3), "n": pa.date32(), "o": pa.bool_(), "p": pa.float64(),
        "q": pa.int32(), "r": pa.int16(), "s": pa.binary(),
    }  # fmt: skip
    assert [kind for _, kind in columns_like(pa.schema(types))] == [
        "tinyint", "smallint", "int", "bigint", "bigint", "float", "string", "string", "binary", "string", "timestamp",
        "timestamp_ntz", "decimal(9,3)", "date", "boolean", "double", "int", "smallint", "binary",
    ]  # fmt: skip


@pytest.mark.parametrize("kind", [pa.uint64(), pa.null(), pa.list_(pa.int8()), pa.time64("us"), pa.float16()])
def test_a_type_that_no_column_holds_exactly_is_refused(kind: pa.DataType) -> None:
    with pytest.raises(InvalidMapping, match=r"column 'x' of the file is .* --column"):
        columns_like(pa.schema({"x": kind}))
