"""A mapping that exists is valid, says what is wrong where it is not, and comes back from its JSON as it was."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pyspark.sql import types as spark

from client.spark import column_types
from client.spark.errors import InvalidMapping
from client.spark.mapping import KeyColumn, TableMapping, ValueColumn

FLIGHTS = spark.StructType(
    [
        spark.StructField("carrier", spark.StringType()),
        spark.StructField("day", spark.DateType(), nullable=False),
        spark.StructField("delay", spark.DoubleType()),
        spark.StructField("price", spark.DecimalType(12, 2)),
        spark.StructField("noticed", spark.TimestampType()),
    ]
)
MAPPING = TableMapping.from_schema("flights", FLIGHTS, row_key=["day", "carrier"], families={"price": "money"})


def test_a_schema_becomes_a_mapping_and_back() -> None:
    assert MAPPING.row_key == ("day", "carrier")
    assert MAPPING.columns == (
        KeyColumn("carrier", "string"),
        KeyColumn("day", "date"),
        ValueColumn("delay", "double", "f", "delay"),
        ValueColumn("price", "decimal(12,2)", "money", "price"),
        ValueColumn("noticed", "timestamp", "f", "noticed"),
    )
    assert [column.name for column in MAPPING.key_columns] == ["day", "carrier"]
    assert MAPPING.families == ("f", "money")
    assert MAPPING.conflict_level == "row"
    assert MAPPING.to_struct().simpleString() == FLIGHTS.simpleString()
    assert [field.nullable for field in MAPPING.to_struct()] == [False, False, True, True, True]


def test_a_mapping_comes_back_from_json() -> None:
    assert TableMapping.from_json(MAPPING.to_json()) == MAPPING


NAMES = st.text("abcXYZ_ äß:", min_size=1, max_size=6)
TYPES = st.sampled_from([*column_types.KNOWN_TYPES[:-1], "decimal(38,18)", "long"])
KEY_TYPES = st.sampled_from(["string", "binary", "int", "bigint", "timestamp"])


@settings(deadline=None)
@given(data=st.data(), names=st.lists(NAMES, min_size=2, max_size=8, unique_by=str.lower))
def test_any_mapping_comes_back_from_json(data: st.DataObject, names: list[str]) -> None:
    keys = [KeyColumn(name, data.draw(KEY_TYPES)) for name in names[: len(names) // 2]]
    values = [ValueColumn(name, data.draw(TYPES), data.draw(st.sampled_from("fgh"))) for name in names[len(keys) :]]
    mapping = TableMapping("t", tuple(key.name for key in reversed(keys)), (*values, *keys), "cell")
    again = TableMapping.from_json(mapping.to_json())
    assert again == mapping
    assert again.to_struct() == mapping.to_struct()


KEY = KeyColumn("k", "int")
PLAIN = KeyColumn("p", "string", plain=True)
VALUE = ValueColumn("v", "int")


@pytest.mark.parametrize(
    ("arguments", "text"),
    [
        (("t", (), (VALUE,)), "needs at least one row key column"),
        (("t", ("x",), (KEY, VALUE)), "'x' of table 't' is not among its key columns"),
        (("t", ("v",), (KEY, VALUE)), "'v' of table 't' is not among its key columns"),
        (("t", ("k",), (KEY, KeyColumn("l", "int"), VALUE)), "must name each key column once"),
        (("t", ("k", "k"), (KEY, VALUE)), "must name each key column once"),
        (("t", ("k",), (KEY,)), "at least one column that is not part of the row key"),
        (("t", ("k",), (KEY, VALUE, ValueColumn("V", "int"))), "'v' and 'V' of table 't' have the same name"),
        (("t", ("k",), (KEY, VALUE, VALUE)), "have the same name"),
        (("t", ("k",), (KEY, VALUE, ValueColumn("w", "int", "f", "v"))), "share the cell 'f:v'"),
        (("t:u:v", ("k",), (KEY, VALUE)), "a table name has"),
        (("n.s:t", ("k",), (KEY, VALUE)), "a table name has"),
        (("t" * 201, ("k",), (KEY, VALUE)), "a table name has 1 to 200"),
        (("default:t", ("k",), (KEY, VALUE)), "leave it out"),
        (("", ("k",), (KEY, VALUE)), "a table name has"),
        (("t", ("k",), (KEY, VALUE), "table"), "'cell' or 'row', not 'table'"),
        (("t", ("k", "p"), (KEY, PLAIN, VALUE)), "is plain: then it is one column, and the table is not packed"),
        (("t", ("p",), (PLAIN, VALUE), "row", True), "is plain: then it is one column, and the table is not packed"),
    ],
)
def test_a_mapping_that_contradicts_itself_is_refused(arguments: tuple[Any, ...], text: str) -> None:
    with pytest.raises(InvalidMapping) as caught:
        TableMapping(*arguments)
    assert text in str(caught.value)


@pytest.mark.parametrize("type_name", ["int", "date", "boolean"])
def test_only_text_and_binary_are_plain_row_keys(type_name: str) -> None:
    with pytest.raises(InvalidMapping, match=r"'k' is of type .*: a plain row key is a string or binary"):
        KeyColumn("k", type_name, plain=True)


def test_a_mapping_with_a_plain_row_key_is_none_for_who_knows_none() -> None:
    schema = spark.StructType([spark.StructField("p", spark.StringType()), spark.StructField("v", spark.LongType())])
    mapping = TableMapping.from_schema("t", schema, row_key=["p"], plain_row_key=True)
    assert mapping.key_columns == (PLAIN,)
    assert json.loads(mapping.to_json())["format"] == 3
    assert TableMapping.from_json(mapping.to_json()) == mapping


@pytest.mark.parametrize(
    ("type_name", "text"),
    [
        ("varchar(3)", "unknown type 'varchar(3)'; known are string, binary,"),
        ("void", "unknown type"),
        ("array<int>", "column 'v': nested types are not supported: array<int>"),
        ("struct<a:int>", "nested types are not supported: struct<a:int>"),
        ("map<string,int>", "nested types"),
        ("decimal", "needs its precision and scale"),
        ("decimal(39,0)", "the precision lies in 1…38"),
        ("decimal(3,4)", "the scale in 0…precision"),
        ("decimal(3,-1)", "the scale in 0…precision"),
    ],
)
def test_types_that_are_not_supported_are_refused(type_name: str, text: str) -> None:
    with pytest.raises(InvalidMapping) as caught:
        ValueColumn("v", type_name)
    assert text in str(caught.value)


@pytest.mark.parametrize("type_name", ["float", "double", "decimal(5,0)"])
def test_types_without_an_order_of_bytes_are_refused_in_row_keys(type_name: str) -> None:
    with pytest.raises(InvalidMapping, match="row key column 'k' is of type"):
        KeyColumn("k", type_name)


@pytest.mark.parametrize(
    ("arguments", "text"),
    [
        (("v", "int", "f", "\x00row"), "reserved"),
        (("v", "int", "f:g"), "column 'v': a column family's name has"),
        (("v", "int", "f" * 128), "column 'v': a column family's name has 1 to 127"),
        (("v", "int", ""), "column 'v': a column family's name has"),
        (("", "int"), "needs a name"),
    ],
)
def test_cells_that_cannot_be_are_refused(arguments: tuple[str, ...], text: str) -> None:
    with pytest.raises(InvalidMapping, match=text):
        ValueColumn(*arguments)


def test_types_have_one_spelling() -> None:
    spelled = {name: column_types.normalise(name) for name in ("LONG", " byte", "integer", "Decimal( 5, 2 )", "short")}
    assert list(spelled.values()) == ["bigint", "tinyint", "int", "decimal(5,2)", "smallint"]


@pytest.mark.parametrize("keywords", [{"row_key": ["nosuch"]}, {"row_key": ["day"], "families": {"nosuch": "g"}}])
def test_from_schema_refuses_unknown_columns(keywords: dict[str, Any]) -> None:
    with pytest.raises(InvalidMapping, match="unknown column 'nosuch'; the schema has carrier, day, delay"):
        TableMapping.from_schema("flights", FLIGHTS, **keywords)


def test_from_schema_refuses_a_family_for_a_key_column() -> None:
    with pytest.raises(InvalidMapping, match="'day' is part of the row key and has no family"):
        TableMapping.from_schema("flights", FLIGHTS, row_key=["day"], families={"day": "g"})


@pytest.mark.parametrize(
    "text",
    ["", "[]", "null", "{}", '{"format": 1}', '{"format": 1, "table": 3, "row_key": [], "columns": []}', "\x00"],
)
def test_what_is_no_mapping_is_refused(text: str) -> None:
    with pytest.raises(InvalidMapping):
        TableMapping.from_json(text)


def test_a_mapping_of_a_newer_format_is_refused_by_its_number() -> None:
    newer = json.dumps({**json.loads(MAPPING.to_json()), "format": 5})
    with pytest.raises(InvalidMapping, match=r"format version 5 of .*reads 1 and 2 and 3 and 4.*upgrade this program"):
        TableMapping.from_json(newer)


def test_a_dataframe_that_does_not_fit_is_told_every_difference() -> None:
    schema = spark.StructType(
        [
            spark.StructField("day", spark.StringType()),
            spark.StructField("delay", spark.FloatType()),
            spark.StructField("Noticed", spark.TimestampType()),
            spark.StructField("more", spark.IntegerType()),
        ]
    )
    with pytest.raises(InvalidMapping) as caught:
        MAPPING.check_writable(schema)
    for part in (
        "the DataFrame does not fit table 'flights'",
        "column 'day' is string, the table has date (use .cast('date'))",
        "column 'delay' is float, the table has double",
        "column 'more' (int) is not in the table",
        "column 'carrier' (string) is missing",
    ):
        assert part in str(caught.value)
    assert "oticed" not in str(caught.value)
    assert "price" not in str(caught.value)


def some(*names: str) -> spark.StructType:
    return spark.StructType([field for field in FLIGHTS.fields if field.name in names])


def test_the_row_key_and_some_of_the_value_columns_can_be_written() -> None:
    MAPPING.check_writable(some("carrier", "day", "delay"))
    with pytest.raises(InvalidMapping, match=r"no column but the row key.*operation=delete"):
        MAPPING.check_writable(some("carrier", "day"))


def test_rows_are_replaced_as_a_whole_by_all_columns_only() -> None:
    MAPPING.check_replacing(FLIGHTS)
    with pytest.raises(InvalidMapping, match=r"'delay' \(double\) is missing; column 'price' .* is missing"):
        MAPPING.check_replacing(some("carrier", "day", "noticed"))


def test_rows_are_deleted_by_their_row_key_alone() -> None:
    MAPPING.check_keys(some("carrier", "day"))
    with pytest.raises(InvalidMapping, match=r"without delay, price: use .select\('day', 'carrier'\)"):
        MAPPING.check_keys(some("carrier", "day", "delay", "price"))
    with pytest.raises(InvalidMapping, match="column 'day' \\(date\\) is missing"):
        MAPPING.check_keys(some("carrier"))


def test_a_dataframe_in_another_order_fits() -> None:
    MAPPING.check_writable(spark.StructType(list(reversed(FLIGHTS.fields))))
    MAPPING.check_readable(spark.StructType(FLIGHTS.fields[2:4]))


def test_columns_are_chosen_by_name() -> None:
    assert MAPPING.to_struct(["PRICE", "day"]).fieldNames() == ["day", "price"]
    with pytest.raises(InvalidMapping, match="has no column nosuch; it has carrier, day, delay"):
        MAPPING.to_struct(["nosuch"])


@pytest.mark.parametrize("check", [MAPPING.check_writable, MAPPING.check_replacing, MAPPING.check_readable])
def test_two_columns_that_are_one_in_the_table_are_refused(check: Callable[[spark.StructType], None]) -> None:
    """Spark lets them through where ``spark.sql.caseSensitive`` is true; one of them would be dropped silently."""
    twice = spark.StructType([*FLIGHTS.fields, spark.StructField("Delay", FLIGHTS["delay"].dataType)])
    with pytest.raises(InvalidMapping, match="columns 'delay', 'Delay' are one in the table: drop or rename"):
        check(twice)
