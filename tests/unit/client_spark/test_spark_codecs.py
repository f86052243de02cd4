"""Every value comes back as it was, bit for bit, and row keys sort as their values do."""

from __future__ import annotations

import datetime as dt
import struct
from collections.abc import Sequence
from decimal import Decimal
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from client import cells
from client.spark import codecs
from client.spark.codecs import RowDecoder, RowEncoder
from client.spark.column_types import TEXTS, arrow_type
from client.spark.errors import InvalidData
from client.spark.key_codec import row_key
from client.spark.mapping import KeyColumn, TableMapping, ValueColumn
from store import ROW_KEY_BYTES_MAX, RowPut
from store.columns import CellColumns

UTC = dt.UTC
MICROSECONDS_MAX = 2**63 - 1
TEXT = st.text(st.characters(exclude_categories=["Cs"]))


def integers(bits: int) -> st.SearchStrategy[int]:
    return st.integers(-(2 ** (bits - 1)), 2 ** (bits - 1) - 1)


def decimals(precision: int, scale: int) -> st.SearchStrategy[Decimal]:
    limit = 10**precision - 1
    return st.integers(-limit, limit).map(
        lambda unscaled: Decimal((int(unscaled < 0), tuple(map(int, str(abs(unscaled)))), -scale))
    )


def doubles(text_format: str, byte_count: int) -> st.SearchStrategy[float]:
    """Every bit pattern there is, NaNs with a payload included."""
    return st.binary(min_size=byte_count, max_size=byte_count).map(lambda raw: struct.unpack(text_format, raw)[0])


KEY_VALUES: dict[str, st.SearchStrategy[Any]] = {
    "tinyint": integers(8),
    "smallint": integers(16),
    "int": integers(32),
    "bigint": integers(64),
    "boolean": st.booleans(),
    "date": st.dates(),
    "timestamp": st.datetimes(timezones=st.timezones()).filter(lambda moment: 2 < moment.year < 9998),
    "timestamp_ntz": st.datetimes(),
    "string": TEXT,
    "binary": st.binary(),
}
VALUES = KEY_VALUES | {
    "float": st.floats(width=32),
    "double": st.one_of(st.floats(), st.sampled_from([-0.0, float("nan"), float("-inf")])),
    "decimal(38,18)": decimals(38, 18),
    "decimal(9,0)": decimals(9, 0),
    "binary": st.one_of(st.binary(), st.sampled_from([b"", b"\xc1", b"\xc1\xc1", b"\xc1x", b"\x00"])),
}


def mapping_of(*key_types: str, values: Sequence[str] = ("int",)) -> TableMapping:
    keys = [KeyColumn(f"k{index}", name) for index, name in enumerate(key_types)]
    columns = [ValueColumn(f"v{index}", name) for index, name in enumerate(values)]
    return TableMapping("t", tuple(key.name for key in keys), (*keys, *columns))


def schema_of(mapping: TableMapping) -> pa.Schema:
    return pa.schema([(column.name, arrow_type(column.type)) for column in mapping.columns])


def encoded(mapping: TableMapping, batch: pa.RecordBatch, names: Sequence[str] | None = None) -> list[RowPut]:
    return list(RowEncoder(mapping, names).encode(batch).puts())


def as_scanned(mapping: TableMapping, puts: Sequence[RowPut]) -> CellColumns:
    """What a scan gives of rows that were put: reserved columns and tombstones are not shown."""
    rows = []
    for _, columns in puts:
        decoded = {name: cells.decode_value(value) for name, value in columns.items() if not cells.is_reserved(name)}
        rows.append({name: value for name, value in decoded.items() if value is not None})
    return CellColumns.of_values(mapping.cells, [put.row for put in puts], rows)


def visible(mapping: TableMapping, *rows: tuple[bytes, dict[bytes, bytes]]) -> CellColumns:
    return CellColumns.of_values(mapping.cells, [key for key, _ in rows], [values for _, values in rows])


def round_trip(mapping: TableMapping, batch: pa.RecordBatch) -> pa.RecordBatch:
    return RowDecoder(mapping, batch.schema).decode(as_scanned(mapping, encoded(mapping, batch)))


def bits(array: pa.Array) -> list[Any]:
    """Values that compare by their bits: a NaN is then equal to itself, and 0.0 is not equal to -0.0."""
    size = {"float": "<f", "double": "<d"}.get(str(array.type))
    values = array.to_pylist()
    return [value if value is None or size is None else struct.pack(size, value) for value in values]


@pytest.mark.parametrize("type_name", sorted(VALUES))
@settings(deadline=None)
@given(data=st.data())
def test_values_and_nulls_come_back(type_name: str, data: st.DataObject) -> None:
    mapping = mapping_of("int", values=(type_name, "int"))
    values = data.draw(st.lists(st.one_of(st.none(), VALUES[type_name]), max_size=20))
    array = pa.array(values, type=arrow_type(type_name))
    batch = pa.record_batch(
        [pa.array(range(len(values)), pa.int32()), array, array.is_null().cast(pa.int32())], schema_of(mapping)
    )
    after = round_trip(mapping, batch)
    after.validate(full=True)
    assert bits(after.column("v0")) == bits(array)
    assert after.column("k0").equals(batch.column("k0"))


@settings(deadline=None)
@given(st.lists(doubles("<d", 8), max_size=20))
def test_every_bit_pattern_of_a_double_comes_back(values: list[float]) -> None:
    mapping = mapping_of("int", values=("double",))
    batch = pa.record_batch(
        [pa.array(range(len(values)), pa.int32()), pa.array(values, pa.float64())], schema_of(mapping)
    )
    assert bits(round_trip(mapping, batch).column("v0")) == bits(batch.column("v0"))


@pytest.mark.parametrize("type_name", sorted(KEY_VALUES))
@settings(deadline=None)
@given(data=st.data())
def test_row_keys_sort_as_their_values(type_name: str, data: st.DataObject) -> None:
    mapping = mapping_of(type_name, "bigint", type_name)
    values = st.tuples(KEY_VALUES[type_name], integers(64), KEY_VALUES[type_name])
    first, second = data.draw(values), data.draw(st.one_of(values, values.map(lambda drawn: drawn)))
    left, right = row_key(mapping, *first), row_key(mapping, *second)
    assert (left < right) == (comparable(first) < comparable(second))
    assert (left == right) == (comparable(first) == comparable(second))


def comparable(values: tuple[Any, ...]) -> tuple[Any, ...]:
    """Spark sorts text by its UTF-8 bytes."""
    return tuple(value.encode() if isinstance(value, str) else value for value in values)


@settings(deadline=None)
@given(data=st.data(), key_types=st.lists(st.sampled_from(sorted(KEY_VALUES)), min_size=1, max_size=4))
def test_composite_row_keys_come_back(data: st.DataObject, key_types: list[str]) -> None:
    mapping = mapping_of(*key_types)
    rows = data.draw(st.lists(st.tuples(*(KEY_VALUES[name] for name in key_types)), max_size=10))
    keys = [row_key(mapping, *row) for row in rows]
    decoder = RowDecoder(mapping, pa.schema(list(schema_of(mapping))[: len(key_types)]))
    after = decoder.decode(visible(mapping, *((key, {}) for key in keys)))
    for index, name in enumerate(key_types):
        assert after.column(index).equals(pa.array([row[index] for row in rows], arrow_type(name)))


@pytest.mark.parametrize("type_name", TEXTS)
@settings(deadline=None)
@given(data=st.data())
def test_a_plain_row_key_is_its_value(type_name: str, data: st.DataObject) -> None:
    mapping = TableMapping("t", ("k",), (KeyColumn("k", type_name, plain=True), ValueColumn("v", "int")))
    values = data.draw(st.lists(KEY_VALUES[type_name].filter(bool), max_size=10, unique=True))
    numbers = pa.array(range(len(values)), pa.int32())
    batch = pa.record_batch([pa.array(values, arrow_type(type_name)), numbers], ["k", "v"])
    puts = encoded(mapping, batch)
    assert [put.row for put in puts] == [value if isinstance(value, bytes) else value.encode() for value in values]
    assert RowDecoder(mapping, batch.schema).decode(as_scanned(mapping, puts)).equals(batch)


def test_what_is_no_plain_row_key_is_refused() -> None:
    mapping = TableMapping("t", ("k",), (KeyColumn("k", "string", plain=True), ValueColumn("v", "int")))
    for value, words in (("", "'k' is empty: a plain row key has at least one byte"), (None, "'k' is null")):
        batch = pa.record_batch([pa.array(["a", value]), pa.array([1, 2], pa.int32())], ["k", "v"])
        with pytest.raises(InvalidData, match=words):
            encoded(mapping, batch)
    with pytest.raises(InvalidData, match="does not fit key column 'k'"):
        RowDecoder(mapping, pa.schema([("k", pa.string())])).decode(visible(mapping, (b"\xff", {})))
    assert row_key(mapping, "ab\x00") == b"ab\x00"


def test_the_prefix_of_a_row_key_is_the_key_of_its_first_columns() -> None:
    mapping = mapping_of("string", "int")
    assert row_key(mapping, "AA", 7).startswith(row_key(mapping, "AA"))
    assert not row_key(mapping, "AAL", 7).startswith(row_key(mapping, "AA"))


def test_timestamps_are_the_same_moment_in_every_zone() -> None:
    mapping = mapping_of("timestamp")
    moment = dt.datetime(2013, 7, 4, 12, 0, tzinfo=UTC)
    new_york = moment.astimezone(dt.timezone(dt.timedelta(hours=-4)))
    assert row_key(mapping, moment) == row_key(mapping, new_york)
    zoned = pa.array([moment], pa.timestamp("us", tz="America/New_York"))
    batch = pa.record_batch([zoned, pa.array([1], pa.int32())], ["k0", "v0"])
    assert encoded(mapping, batch)[0].row == row_key(mapping, moment)


def test_values_are_what_hbase_itself_would_write() -> None:
    mapping = mapping_of("int", values=("int", "double", "boolean", "string", "date", "timestamp", "decimal(5,2)"))
    batch = pa.record_batch(
        [
            pa.array([value], type=field.type)
            for value, field in zip(
                (1, -2, 1.5, True, "ä", dt.date(1969, 12, 31), dt.datetime(1970, 1, 1, tzinfo=UTC), Decimal("-1.00")),
                schema_of(mapping),
                strict=True,
            )
        ],
        schema=schema_of(mapping),
    )
    (put,) = encoded(mapping, batch)
    assert put.row == b"\x80\x00\x00\x01"
    assert put.columns == {
        b"f:v0": b"\xff\xff\xff\xfe",
        b"f:v1": struct.pack(">d", 1.5),
        b"f:v2": b"\xff",
        b"f:v3": "ä".encode(),
        b"f:v4": b"\xff\xff\xff\xff",
        b"f:v5": bytes(8),
        b"f:v6": (-100).to_bytes(16, "big", signed=True),
    }


def test_a_null_is_a_tombstone_and_a_row_of_nulls_has_a_marker() -> None:
    mapping = mapping_of("int", values=("int", "binary"))
    batch = pa.record_batch(
        [
            pa.array([1, 2, 3], pa.int32()),
            pa.array([None, None, 5], pa.int32()),
            pa.array([b"\xc1", None, b""], pa.binary()),
        ],
        schema=schema_of(mapping),
    )
    one, nothing, empty = encoded(mapping, batch)
    assert one.columns == {b"f:v0": cells.TOMBSTONE, b"f:v1": b"\xc1\xc1"}
    assert nothing.columns == {
        b"f:v0": cells.TOMBSTONE,
        b"f:v1": cells.TOMBSTONE,
        cells.row_marker_column(b"f"): cells.ROW_MARKER_VALUE,
    }
    assert empty.columns[b"f:v1"] == b""


def test_slices_and_other_orders_of_columns_are_the_same_rows() -> None:
    mapping = mapping_of("int", "string", values=("bigint", "string", "decimal(20,4)", "boolean"))
    rows = [
        {"V3": row % 2 == 0, "v2": Decimal(row), "v1": str(row) or None, "v0": row, "k1": f"x{row}", "k0": row}
        for row in range(10)
    ]
    fields = {column.name: arrow_type(column.type) for column in mapping.columns}
    batch = pa.RecordBatch.from_pylist(rows, pa.schema([(name, fields[name.lower()]) for name in rows[0]]))
    assert encoded(mapping, batch)[3:7] == encoded(mapping, batch.slice(3, 4))
    assert round_trip(mapping, batch.slice(3, 4)).to_pylist() == rows[3:7]


def test_some_of_the_value_columns_leave_the_others_alone() -> None:
    mapping = mapping_of("int", values=("int", "int"))
    batch = pa.record_batch([pa.array([1, None], pa.int32()), pa.array([7, 8], pa.int32())], ["V1", "k0"])
    first, second = encoded(mapping, batch, batch.schema.names)
    assert first.columns == {b"f:v1": bytes([0, 0, 0, 1])}
    assert second.columns == {b"f:v1": cells.TOMBSTONE, cells.row_marker_column(b"f"): cells.ROW_MARKER_VALUE}


@pytest.mark.parametrize("type_name", ["string", "binary"])
def test_large_arrow_types_are_taken(type_name: str) -> None:
    mapping = mapping_of(type_name, values=(type_name,))
    large = pa.array(["a"], pa.large_string()) if type_name == "string" else pa.array([b"a"], pa.large_binary())
    (put,) = encoded(mapping, pa.record_batch([large, large], ["k0", "v0"]))
    assert put == RowPut(b"a\x00\x00", {b"f:v0": b"a"})


def encode_error(mapping: TableMapping, rows: list[dict[str, Any]]) -> str:
    with pytest.raises(InvalidData) as caught:
        RowEncoder(mapping).encode(pa.RecordBatch.from_pylist(rows, schema_of(mapping)))
    return str(caught.value)


def test_a_null_in_the_row_key_is_refused() -> None:
    assert "'k1' is null (row 1 of a batch)" in encode_error(
        mapping_of("int", "string"), [{"k0": 1, "k1": "a", "v0": 1}, {"k0": 2, "k1": None, "v0": 1}]
    )


def test_a_row_key_given_twice_is_refused() -> None:
    text = encode_error(mapping_of("int"), [{"k0": 1, "v0": 1}, {"k0": 2, "v0": 2}, {"k0": 1, "v0": 3}])
    assert "{'k0': 1}" in text
    assert "dropDuplicates(['k0'])" in text


def test_row_keys_that_only_have_one_hash_are_different(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(
        codecs, "hashes_of_rows", lambda before, data, starts, lengths: np.zeros(len(starts), np.uint64)
    )
    batch = pa.record_batch({"k0": pa.array([1, 2, 3], pa.int32()), "v0": pa.array([1, 2, 3], pa.int32())})
    assert RowEncoder(mapping_of("int")).encode(batch).rows == 3


def test_a_row_key_without_a_name_in_python_is_told_when_it_is_given_twice() -> None:
    days = pa.array([1, 2_932_897, 2_932_897], pa.int32()).view(pa.date32())
    with pytest.raises(InvalidData, match=r"the row key \{'k0': 10000-01-01\}: which"):
        RowEncoder(mapping_of("date")).encode(pa.record_batch({"k0": days, "v0": pa.array([1, 2, 3], pa.int32())}))


def test_a_row_key_that_is_too_long_is_refused() -> None:
    assert f"at most {ROW_KEY_BYTES_MAX:,} bytes" in encode_error(mapping_of("string"), [{"k0": "x" * 40_000, "v0": 1}])


def any_text(kind: pa.DataType, *values: bytes | None) -> pa.Array:
    """Text of any bytes, as Spark and foreign files may have it."""
    large = pa.types.is_large_string(kind)
    return pa.array(values, pa.large_binary() if large else pa.binary()).view(kind)


@pytest.mark.parametrize("kind", [pa.string(), pa.large_string()])
@pytest.mark.parametrize("column", ["k0", "v0"])
@pytest.mark.parametrize("packed", [False, True])
def test_text_that_is_no_utf8_is_refused_before_it_is_written(kind: pa.DataType, column: str, packed: bool) -> None:
    plain = mapping_of("string", values=("string",))
    encoder = RowEncoder(TableMapping("t", plain.row_key, plain.columns, packed=packed))
    good = any_text(kind, b"a", b"b", b"c", "ä".encode())
    columns = {"k0": good, "v0": good, column: any_text(kind, b"a", "ö".encode(), b"\xffx", "ä".encode()[:1])}
    batch = pa.record_batch(columns)
    with pytest.raises(InvalidData, match=rf"column '{column}' is no UTF-8 in row 2 of a batch \(b'\\xffx'\)"):
        encoder.encode(batch)
    assert encoder.encode(batch.slice(0, 2)).rows == 2


def test_bytes_under_a_null_are_no_text() -> None:
    array = pa.Array.from_buffers(
        pa.string(), 1, [pa.py_buffer(b"\0"), pa.py_buffer(struct.pack("=ii", 0, 1)), pa.py_buffer(b"\xff")]
    )
    (put,) = encoded(mapping_of("int", values=("string",)), pa.record_batch({"k0": [1], "v0": array}))
    assert put.columns[b"f:v0"] == cells.TOMBSTONE


@pytest.mark.parametrize(
    ("type_name", "stored"),
    [
        ("int", b"\x00"),
        ("int", b""),
        ("bigint", b"123456789"),
        ("string", b"\xff\xfe"),
        ("boolean", b""),
        ("decimal(3,0)", (1000).to_bytes(16, "big")),
        ("decimal(3,0)", b"12"),
    ],
)
def test_bytes_of_another_writer_are_refused_with_the_row_and_column(type_name: str, stored: bytes) -> None:
    mapping = mapping_of("int", values=(type_name,))
    decoder = RowDecoder(mapping, schema_of(mapping))
    rows = [(row_key(mapping, 1), dict[bytes, bytes]()), (row_key(mapping, 2), {b"f:v0": stored})]
    with pytest.raises(InvalidData, match=r"'v0' of row b'\\x80\\x00\\x00\\x02'"):
        decoder.decode(visible(mapping, *rows))


@pytest.mark.parametrize("type_name", ["int", "string", "decimal(3,0)", "boolean"])
def test_a_null_that_the_schema_asked_for_denies_is_refused_with_the_row_and_column(type_name: str) -> None:
    """Spark would fail on it in Java, and say neither."""
    mapping = mapping_of("int", values=(type_name, type_name))
    schema = pa.schema([field.with_nullable(field.name == "v1") for field in schema_of(mapping)])
    row = visible(mapping, (row_key(mapping, 2), {b"f:v1": b""}))
    with pytest.raises(InvalidData, match=r"'v0' of row b'\\x80\\x00\\x00\\x02' is null, .* leave NOT NULL out"):
        RowDecoder(mapping, schema).decode(row)


@pytest.mark.parametrize("key", [b"\x00", b"abc\x00\x00\x80\x00\x00\x01more", b"abc\x00", b"abc\x00\x00\x80"])
def test_row_keys_of_another_writer_are_refused(key: bytes) -> None:
    mapping = mapping_of("string", "int")
    with pytest.raises(InvalidData, match="row key"):
        RowDecoder(mapping, schema_of(mapping)).decode(visible(mapping, (key, {})))


def test_a_choice_of_columns_is_decoded_alone() -> None:
    mapping = mapping_of("int", values=("int", "string"))
    rows = [(b"not read", {b"f:v1": b"x", b"f:v0": b"not read either"})]
    assert RowDecoder(mapping, pa.schema([("v1", pa.string())])).decode(visible(mapping, *rows)).to_pylist() == [
        {"v1": "x"}
    ]


@pytest.mark.parametrize("values", [(), (1, 2), ("one",), (2**40,)])
def test_row_key_refuses_values_that_do_not_fit(values: tuple[Any, ...]) -> None:
    with pytest.raises(InvalidData):
        row_key(mapping_of("int"), *values)


def test_a_text_that_came_from_bytes_of_no_utf8_is_refused_as_a_row_key() -> None:
    with pytest.raises(InvalidData, match=r"key column 'k0': 'a\\udc80' is no string"):
        row_key(mapping_of("string"), b"a\x80".decode(errors="surrogateescape"))
