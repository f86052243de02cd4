"""The columns of a file as the types of a table: exactly, or refused by file, row and column."""

from __future__ import annotations

import datetime
import math
import re
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest

from client.spark import KeyColumn, TableMapping, ValueColumn
from client.spark.errors import InvalidData
from client.tables.casting import cast, check_fits
from client.tables.supply import Piece

UTC = datetime.UTC


def mapping(kind: str) -> TableMapping:
    return TableMapping("t", ("k",), (KeyColumn("k", "int"), ValueColumn("v", kind)))


def piece(values: list[Any], kind: pa.DataType, keys: list[Any] | None = None, first_row: int = 1) -> Piece:
    numbers = pa.array(range(len(values)) if keys is None else keys, pa.int32())
    return Piece("f.csv", first_row, pa.record_batch([numbers, pa.array(values, kind)], ["K", "v"]))


@pytest.mark.parametrize(
    ("kind", "text", "value"),
    [
        ("int", "-7", -7),
        ("boolean", "true", True),
        ("boolean", "TRUE", True),
        ("boolean", "0", False),
        ("bigint", "-007", -7),
        ("double", "1e-3", 0.001),
        ("double", "+1.5", 1.5),
        ("double", "inf", math.inf),
        ("float", "-INF", -math.inf),
        ("double", "+Infinity", math.inf),
        ("string", "", ""),
        ("binary", "00ff", b"\x00\xff"),
        ("date", "2026-11-21", datetime.date(2026, 11, 21)),
        ("timestamp", "2026-11-21T12:00:00+02:00", datetime.datetime(2026, 11, 21, 10, tzinfo=UTC)),
        ("timestamp_ntz", "2026-11-21 12:00:00", datetime.datetime(2026, 11, 21, 12)),
        ("decimal(10,2)", "1.5", Decimal("1.50")),
        ("int", None, None),
    ],
)
def test_text_becomes_what_it_says(kind: str, text: str | None, value: Any) -> None:
    assert cast(mapping(kind), piece([text], pa.string())).column("v").to_pylist() == [value]


@pytest.mark.parametrize(
    ("kind", "text"),
    [
        ("int", "1.5"),
        ("int", ""),
        ("int", "0x10"),
        ("int", "0xFFFFFFFF"),
        ("bigint", "0Xff"),
        ("int", " 1"),
        ("int", "+1"),
        ("tinyint", "128"),
        ("double", "1e999"),
        ("double", "-1e999"),
        ("float", "1e400"),
        ("float", "3.5e38"),
        ("double", "infinit"),
        ("boolean", "2"),
        ("boolean", "maybe"),
        ("binary", "0"),
        ("date", "21.11.2026"),
        ("timestamp", "2026-11-21 12:00:00"),
        ("timestamp_ntz", "2026-11-21 12:00:00Z"),
        ("decimal(10,2)", "1.555"),
    ],
)
def test_text_that_says_something_else_is_refused_by_file_row_and_column(kind: str, text: str) -> None:
    good = cast(mapping("string"), piece([text], pa.string()))
    values = [None] * 5 + [text] + [None] * 3 + [text]
    with pytest.raises(InvalidData, match=rf"f\.csv, row 1,006, column 'v': '{re.escape(text)}' is no ") as refusal:
        cast(mapping(kind), piece(values, pa.string(), first_row=1_001))
    assert good.num_rows == 1
    assert kind in str(refusal.value)


@pytest.mark.parametrize(
    ("found", "values", "kind"),
    [
        (pa.int64(), [1, 2**31], "int"),
        (pa.int64(), [1, 2**53 + 1], "double"),
        (pa.decimal128(10, 3), [Decimal("1.000"), Decimal("1.001")], "decimal(10,2)"),
        (pa.timestamp("ns"), [1_000, 1_001], "timestamp_ntz"),
    ],
)
def test_a_value_that_does_not_fit_is_refused(found: pa.DataType, values: list[Any], kind: str) -> None:
    assert cast(mapping(kind), piece(values[:1], found)).num_rows == 1
    with pytest.raises(InvalidData, match=r"row 2, column 'v'"):
        cast(mapping(kind), piece(values, found))


@pytest.mark.parametrize(
    ("found", "kind"),
    [
        (pa.timestamp("us"), "timestamp"),
        (pa.timestamp("us", "UTC"), "timestamp_ntz"),
        (pa.timestamp("us"), "date"),
        (pa.float64(), "float"),
        (pa.float64(), "int"),
        (pa.float64(), "decimal(10,2)"),
        (pa.int32(), "string"),
        (pa.int32(), "boolean"),
        (pa.list_(pa.int32()), "string"),
        (pa.decimal128(10, 2), "double"),
    ],
)
def test_types_between_which_something_would_be_lost_are_refused(found: pa.DataType, kind: str) -> None:
    with pytest.raises(InvalidData, match=r"f\.parquet does not fit table 't': column 'v' is .* cannot become"):
        check_fits(mapping(kind), pa.schema({"k": pa.int32(), "v": found}), "f.parquet", "parquet")


@pytest.mark.parametrize(
    ("found", "kind"),
    [
        (pa.float32(), "double"),
        (pa.null(), "date"),
        (pa.dictionary(pa.int8(), pa.string()), "string"),
        (pa.uint64(), "int"),
    ],
)
def test_types_that_lose_nothing_are_taken(found: pa.DataType, kind: str) -> None:
    check_fits(mapping(kind), pa.schema({"k": pa.int32(), "v": found}), "f.parquet", "parquet")


@pytest.mark.parametrize("found", [pa.large_string(), pa.string_view(), pa.dictionary(pa.int8(), pa.string())])
def test_every_kind_of_text_is_read_as_text(found: pa.DataType) -> None:
    numbers = cast(mapping("int"), piece(["1", None, "-2"], pa.string()))
    given = Piece("f", 1, pa.record_batch([pa.array([0, 1, 2]), pa.array(["1", None, "-2"]).cast(found)], ["k", "v"]))
    assert cast(mapping("int"), given) == numbers
    given = Piece("f", 1, pa.record_batch([pa.array([0, 1]), pa.array(["1", "0x2"]).cast(found)], ["k", "v"]))
    with pytest.raises(InvalidData, match="row 2, column 'v': '0x2' is no int"):
        cast(mapping("int"), given)


@pytest.mark.parametrize("kind", ["string", "int", "double"])
def test_text_that_is_no_utf8_is_refused_by_file_row_and_column(kind: str) -> None:
    texts = pa.array([b"1", None, b"\xff", b"\xff"], pa.binary()).view(pa.string())
    given = Piece("f.parquet", 11, pa.record_batch([pa.array([0, 1, 2, 3]), texts], ["k", "v"]))
    with pytest.raises(InvalidData, match=rf"f\.parquet, row 13, column 'v': b'\\xff' is no {kind}; nothing of its"):
        cast(mapping(kind), given)
    in_a_dictionary = given._replace(batch=pa.record_batch({"k": [0, 1, 2, 3], "v": texts.dictionary_encode()}))
    with pytest.raises(InvalidData, match=rf"f\.parquet, row 13, column 'v': b'\\xff' is no {kind}; nothing of its"):
        cast(mapping(kind), in_a_dictionary)
    assert cast(mapping(kind), given._replace(batch=given.batch.slice(0, 2))).num_rows == 2


def test_a_dictionary_is_read_as_its_values() -> None:
    given = Piece("f", 1, pa.record_batch([pa.array([1]), pa.array(["x"]).dictionary_encode()], ["k", "v"]))
    assert cast(mapping("string"), given).column("v").to_pylist() == ["x"]


@pytest.mark.parametrize("text", [pa.string(), pa.large_string(), pa.dictionary(pa.int8(), pa.string())])
def test_only_a_csv_file_has_binary_as_hexadecimal_digits(text: pa.DataType) -> None:
    schema = pa.schema({"k": pa.int32(), "v": text})
    check_fits(mapping("binary"), schema, "f.csv", "csv")
    check_fits(mapping("string"), schema, "f.parquet", "parquet")
    with pytest.raises(InvalidData, match=r"'v' is .*, which cannot become the table's binary exactly: .* cast it to"):
        check_fits(mapping("binary"), schema, "f.parquet", "parquet")
    check_fits(mapping("binary"), pa.schema({"k": pa.int32(), "v": pa.null()}), "f.parquet", "parquet")


def test_every_column_that_does_not_fit_is_named() -> None:
    with pytest.raises(
        InvalidData, match=r"column 'x' is not in the table; column 'k' \(int\) is missing; column 'v' is"
    ):
        check_fits(mapping("int"), pa.schema({"x": pa.int32(), "v": pa.float64()}), "f", "parquet")


def test_a_name_that_occurs_twice_is_refused() -> None:
    schema = pa.schema([("k", pa.int32()), ("v", pa.string()), ("V", pa.string())])
    with pytest.raises(InvalidData, match="occurs twice"):
        check_fits(mapping("string"), schema, "f", "parquet")


def test_a_day_without_a_name_in_python_is_refused_by_row_and_column() -> None:
    days = pa.array([0, 2**62], pa.int64()).view(pa.timestamp("s"))
    given = Piece("f.parquet", 1, pa.record_batch([pa.array([1, 2]), days], ["k", "v"]))
    with pytest.raises(
        InvalidData, match=r"f\.parquet, row 2, column 'v': <value out of range: .*> is no timestamp_ntz"
    ):
        cast(mapping("timestamp_ntz"), given)


def test_an_empty_row_key_is_refused() -> None:
    with pytest.raises(InvalidData, match=r"f\.csv, row 12, column 'k': it is empty, but part of the row key"):
        cast(mapping("int"), piece([1, 2], pa.int32(), keys=[1, None], first_row=11))
