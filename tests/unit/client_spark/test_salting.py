"""Salted row keys: every row in the one place that its key names for ever, evenly, and found again by what is known."""

from __future__ import annotations

import datetime as dt
import json
from collections import Counter
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from client import InvalidRequest
from client.spark import (
    InvalidData,
    InvalidMapping,
    KeyColumn,
    TableMapping,
    ValueColumn,
    row_key,
    row_key_prefixes,
    split_keys,
)
from client.spark.byte_columns import ByteColumn
from client.spark.codecs import RowDecoder, RowEncoder
from client.spark.key_codec import row_keys
from client.spark.key_values import key_prefixes
from client.spark.removal import PrefixedEncoder
from client.spark.salting import salted, salted_key
from store import ROW_KEY_BYTES_MAX, RowPut
from store.columns import CellColumns, taken

KEYS = (KeyColumn("day", "date"), KeyColumn("name", "string"), KeyColumn("n", "int"))
VALUE = ValueColumn("v", "int", "f", "v")
PLAIN = TableMapping("t", ("day", "name", "n"), (*KEYS, VALUE))
SALTED = TableMapping("t", ("day", "name", "n"), (*KEYS, VALUE), salt_buckets=7)
DAY = dt.date(2013, 7, 4)


def rows(count: int) -> pa.RecordBatch:
    """Of which each key is a little more than the one before."""
    return pa.record_batch(
        {
            "day": pa.array([DAY] * count),
            "name": ["AA"] * count,
            "n": pa.array(range(count), pa.int32()),
            "v": pa.array(range(count), pa.int32()),
        }
    )


def column(keys: list[bytes]) -> ByteColumn:
    lengths = np.array([len(key) for key in keys], np.int64)
    return ByteColumn(np.frombuffer(b"".join(keys) or b"x", np.uint8), np.cumsum(lengths) - lengths, lengths)


@settings(deadline=None)
@given(st.lists(st.binary(max_size=300)), st.integers(2, 256))
def test_the_salts_of_many_keys_are_those_of_each(keys: list[bytes], buckets: int) -> None:
    assert taken(*salted(column(keys), buckets)) == [salted_key(key, buckets) for key in keys]
    assert all(salted_key(key, buckets)[0] < buckets for key in keys)


def test_a_key_lies_where_every_release_has_put_it() -> None:
    """These numbers are in tables: other ones would make rows of theirs be written twice, and not be found."""
    keys = (b"", b"a", b"\x80\x00\x00\x07", b"x" * 300)
    placed = [[salted_key(key, buckets)[0] for buckets in (2, 16, 256)] for key in keys]
    assert placed == [[1, 11, 75], [1, 3, 19], [0, 2, 226], [0, 0, 128]]


def test_neighbours_are_spread_evenly() -> None:
    held = Counter(key[0] for key in taken(*row_keys(SALTED, rows(7_000))))
    assert set(held) == set(range(7))
    assert min(held.values()) > 850


def test_rows_come_back_as_they_were() -> None:
    batch = rows(50)
    puts = list(RowEncoder(SALTED).encode(batch).puts())
    scanned = CellColumns.of_puts(sorted(RowPut(row, dict(cells)) for row, cells in puts))
    decoded = RowDecoder(SALTED, batch.schema).decode(scanned)
    assert sorted(decoded.to_pylist(), key=lambda row: row["n"]) == batch.to_pylist()
    assert [row for row, _ in puts] == [row_key(SALTED, DAY, "AA", n) for n in range(50)]


def test_a_row_key_is_found_by_all_of_its_values_or_in_each_bucket() -> None:
    whole = row_key(PLAIN, DAY, "AA", 7)
    assert row_key(SALTED, DAY, "AA", 7) == salted_key(whole, 7)
    assert row_key_prefixes(SALTED, DAY, "AA", 7) == [salted_key(whole, 7)]
    assert row_key_prefixes(PLAIN, DAY) == [row_key(PLAIN, DAY)]
    assert row_key_prefixes(SALTED, DAY) == [bytes((bucket,)) + row_key(PLAIN, DAY) for bucket in range(7)]
    with pytest.raises(InvalidData, match="in 7 places; give all values, or read each of row_key_prefixes"):
        row_key(SALTED, DAY, "AA")


def test_what_an_overwrite_replaces_lies_in_each_bucket() -> None:
    prefixes = key_prefixes(SALTED, "o", '["2013-07-04"]')
    assert prefixes == tuple(row_key_prefixes(SALTED, DAY))
    assert key_prefixes(SALTED, "o", '["2013-07-04", "AA", 7]') == (row_key(SALTED, DAY, "AA", 7),)
    encoder = PrefixedEncoder(RowEncoder(SALTED), prefixes, "…")
    assert sum(cells.rows for cells in encoder.pieces(rows(20))) == 20
    other = rows(1).set_column(0, "day", pa.array([dt.date(2013, 7, 5)]))
    with pytest.raises(InvalidData, match="lies outside of what overwrite_prefix"):
        encoder.pieces(other)


def test_a_key_may_be_as_long_as_its_salt_leaves_room_for() -> None:
    mapping = TableMapping("t", ("k",), (KeyColumn("k", "binary"), VALUE), salt_buckets=2)
    longest = ROW_KEY_BYTES_MAX - 3  # the salt, and what ends the bytes
    assert len(row_key(mapping, b"x" * longest)) == ROW_KEY_BYTES_MAX
    batch = pa.record_batch({"k": [b"x" * (longest + 1)], "v": pa.array([1], pa.int32())})
    for call in (lambda: row_key(mapping, b"x" * (longest + 1)), lambda: row_keys(mapping, batch)):
        with pytest.raises(InvalidData, match=f"has at most {ROW_KEY_BYTES_MAX - 1:,} bytes"):
            call()


def test_regions_share_the_buckets_without_a_sample() -> None:
    assert split_keys(SALTED, 7) == [bytes((bucket,)) for bucket in range(1, 7)]
    assert split_keys(SALTED, 3) == [b"\x02", b"\x04"]
    assert split_keys(SALTED, 1) == split_keys(PLAIN, 1) == []
    with pytest.raises(InvalidRequest, match="is salted over 7 buckets: 8 regions need rows by which to part them"):
        split_keys(SALTED, 8)
    with pytest.raises(InvalidRequest, match="is not salted: 2 regions need rows"):
        split_keys(PLAIN, 2)
    assert len(split_keys(SALTED, 20, pa.Table.from_batches([rows(7_000)]))) == 19


@pytest.mark.parametrize("packed", [False, True])
def test_the_mapping_is_none_for_who_knows_no_salts(packed: bool) -> None:
    schema = PLAIN.to_struct()
    mapping = TableMapping.from_schema("t", schema, row_key=["day"], packed=packed, salt_buckets=16)
    assert TableMapping.from_json(mapping.to_json()) == mapping
    assert (mapping.packed, mapping.salt_buckets) == (packed, 16)
    assert json.loads(mapping.to_json())["format"] == 4
    assert "salt_buckets" not in PLAIN.to_json()


@pytest.mark.parametrize("buckets", [1, -1, 257, 2.0, True, "2", None])
def test_what_is_no_number_of_buckets_is_refused(buckets: Any) -> None:
    with pytest.raises(InvalidMapping, match="salted over 2 to 256 buckets, or with 0 over none; not"):
        TableMapping("t", ("day",), (KEYS[0], VALUE), salt_buckets=buckets)
    wrong = {**json.loads(SALTED.to_json()), "salt_buckets": buckets}
    with pytest.raises(InvalidMapping):
        TableMapping.from_json(json.dumps(wrong))


def test_a_plain_row_key_has_no_salt() -> None:
    with pytest.raises(InvalidMapping, match="is plain: then it has no salt before it"):
        TableMapping("t", ("p",), (KeyColumn("p", "string", plain=True), VALUE), salt_buckets=2)
