"""Filters become ranges of row keys that hold every row that passes, and no other one that Spark would not look at."""

from __future__ import annotations

import datetime as dt
import operator
from collections.abc import Callable, Sequence
from itertools import pairwise
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pyspark.sql.datasource import (
    EqualNullSafe,
    EqualTo,
    Filter,
    GreaterThan,
    GreaterThanOrEqual,
    In,
    IsNotNull,
    IsNull,
    LessThan,
    LessThanOrEqual,
    Not,
    StringContains,
    StringStartsWith,
)

from client.snapshots.ranges import end_of_prefix
from client.spark.column_types import TEXTS
from client.spark.key_codec import row_key, row_key_prefixes
from client.spark.mapping import KeyColumn, TableMapping, ValueColumn
from client.spark.predicates import KEY_RANGES_MAX, demands_a_value, plan
from store import KeyRange
from tests.examples import examples

TEXT = st.text(st.sampled_from("a\x00\x01\x7fä\U0010ffff"), max_size=3)


def few_integers(bits: int) -> st.SearchStrategy[int]:
    limit = 2 ** (bits - 1)
    return st.sampled_from([-limit, -limit + 1, -1, 0, 1, 255, 256, limit - 2, limit - 1]).filter(lambda n: n < limit)


def moments(zone: dt.tzinfo | None) -> st.SearchStrategy[dt.datetime]:
    near = [dt.datetime(1969, 12, 31, 23, 59, 59, 999_999), dt.datetime(1970, 1, 1), dt.datetime(2013, 7, 4, 12)]
    return st.sampled_from(near).map(lambda moment: moment.replace(tzinfo=zone))


VALUES: dict[str, st.SearchStrategy[Any]] = {
    "tinyint": few_integers(8).filter(lambda number: -128 <= number <= 127),
    "smallint": few_integers(16),
    "int": few_integers(32),
    "bigint": few_integers(64),
    "boolean": st.booleans(),
    "date": st.sampled_from(
        [dt.date(1, 1, 1), dt.date(1582, 10, 16), dt.date(1969, 12, 31), dt.date(1970, 1, 1), dt.date(9999, 12, 31)]
    ),
    "timestamp": moments(dt.UTC),
    "timestamp_ntz": moments(None),
    "string": TEXT,
    "binary": st.binary(max_size=2),
}
"""Few values each, so that filters meet rows; the ends of every type among them."""

COMPARISONS: dict[type[Any], Callable[[Any, Any], bool]] = {
    EqualTo: operator.eq,
    EqualNullSafe: operator.eq,
    GreaterThan: operator.gt,
    GreaterThanOrEqual: operator.ge,
    LessThan: operator.lt,
    LessThanOrEqual: operator.le,
}


def mapping_of(*key_types: str, plain: bool = False, salt_buckets: int = 0) -> TableMapping:
    keys = [KeyColumn(f"k{index}", name, plain) for index, name in enumerate(key_types)]
    values = ValueColumn("v", "int"), ValueColumn("w", "int")
    return TableMapping("t", tuple(key.name for key in keys), (*keys, *values), salt_buckets=salt_buckets)


@st.composite
def filters(draw: st.DrawFn, key_types: Sequence[str]) -> Filter:
    index = draw(st.integers(0, len(key_types) - 1))
    attribute, values = (draw(st.sampled_from([f"k{index}", f"K{index}"])),), VALUES[key_types[index]]
    made: list[st.SearchStrategy[Filter]] = [
        st.builds(draw(st.sampled_from(sorted(COMPARISONS, key=str))), st.just(attribute), values),
        st.builds(In, st.just(attribute), st.lists(values, max_size=4).map(tuple)),
        st.builds(draw(st.sampled_from([IsNull, IsNotNull])), st.just(attribute)),
    ]
    if key_types[index] == "string":
        made.append(st.builds(StringStartsWith, st.just(attribute), TEXT))
    condition = draw(st.one_of(made))
    return Not(condition) if draw(st.integers(0, 3)) == 0 else condition


def comparable(value: Any) -> Any:
    """Spark compares text by its UTF-8 bytes."""
    return value.encode() if isinstance(value, str) else value


def passes(condition: Any, row: Sequence[Any]) -> bool:
    if isinstance(condition, Not):
        return not passes(condition.child, row)
    value = comparable(row[int(condition.attribute[0][1:])])
    if isinstance(condition, In):
        return value in [comparable(other) for other in condition.value]
    if isinstance(condition, StringStartsWith):
        return bool(value.startswith(condition.value.encode()))
    if isinstance(condition, IsNull | IsNotNull):
        return isinstance(condition, IsNotNull)
    return COMPARISONS[type(condition)](value, comparable(condition.value))


def held(ranges: Sequence[KeyRange], key: bytes) -> bool:
    return any(start <= key and (not stop or key < stop) for start, stop in ranges)


@pytest.mark.parametrize("first", sorted(VALUES))
@settings(deadline=None, max_examples=examples(60))
@given(data=st.data())
def test_ranges_and_remaining_filters_are_the_filters(first: str, data: st.DataObject) -> None:
    plain = first in TEXTS and data.draw(st.booleans())
    key_types = [first, *data.draw(st.lists(st.sampled_from(sorted(VALUES)), max_size=0 if plain else 2))]
    salt_buckets = 0 if plain else data.draw(st.sampled_from([0, 0, 2, 3, 256]))
    mapping = mapping_of(*key_types, plain=plain, salt_buckets=salt_buckets)
    conditions = data.draw(st.lists(filters(key_types), max_size=4))
    rows = data.draw(st.lists(st.tuples(*(VALUES[name] for name in key_types)), max_size=20))
    planned = plan(mapping, conditions)
    for row in rows:
        if plain and not row[0]:
            continue  # no row key
        read = held(planned.ranges, row_key(mapping, *row))
        assert (read and all(passes(each, row) for each in planned.remaining)) == all(
            passes(each, row) for each in conditions
        )
    assert all(before.stop and before.stop <= after.start for before, after in pairwise(planned.ranges))
    assert all(any(each is given for given in conditions) for each in planned.remaining)


def prefix_range(prefix: bytes) -> KeyRange:
    return KeyRange(prefix, end_of_prefix(prefix))


def test_equality_on_leading_columns_and_a_prefix_of_the_next_are_one_range() -> None:
    mapping = mapping_of("int", "string", "string")
    conditions: list[Filter] = [
        StringStartsWith(("k1",), "ab"), IsNotNull(("k1",)), EqualTo(("k0",), 7), EqualTo(("k2",), "x"),
    ]  # fmt: skip
    planned = plan(mapping, conditions)
    assert planned.ranges == (prefix_range(row_key(mapping, 7) + b"ab"),)
    assert planned.remaining == (conditions[3],)


def test_a_plain_row_key_ends_where_its_text_does() -> None:
    mapping = mapping_of("string", plain=True)
    assert plan(mapping, [EqualTo(("k0",), "a")]).ranges == (KeyRange(b"a", b"a\x00"),)
    assert plan(mapping, [LessThanOrEqual(("k0",), "a")]).ranges == (KeyRange(b"", b"a\x00"),)
    assert plan(mapping, [StringStartsWith(("k0",), "a\x00")]).ranges == (KeyRange(b"a\x00", b"a\x01"),)


def test_lists_of_values_multiply() -> None:
    mapping = mapping_of("int", "string")
    planned = plan(mapping, [In(("k1",), ("b", "a")), In(("k0",), (2, 1))])
    assert planned.ranges == tuple(prefix_range(row_key(mapping, k0, k1)) for k0 in (1, 2) for k1 in ("a", "b"))
    assert planned.remaining == ()


def test_a_range_is_the_last_column_that_narrows() -> None:
    mapping = mapping_of("int", "int")
    later = EqualTo(("k1",), 1)
    planned = plan(mapping, [GreaterThanOrEqual(("k0",), 1), LessThan(("k0",), 3), later])
    assert planned.ranges == (KeyRange(row_key(mapping, 1), row_key(mapping, 3)),)
    assert planned.remaining == (later,)


def test_in_a_salted_table_a_range_lies_in_each_bucket_and_a_whole_key_in_one() -> None:
    mapping, without = mapping_of("int", "int", salt_buckets=3), mapping_of("int", "int")
    one = EqualTo(("k0",), 7)
    planned = plan(mapping, [one])
    assert planned.ranges == tuple(prefix_range(prefix) for prefix in row_key_prefixes(mapping, 7))
    assert planned.remaining == ()
    beyond = plan(mapping, [GreaterThan(("k0",), 2**31 - 2)])
    first = row_key(without, 2**31 - 1)
    assert beyond.ranges == tuple(KeyRange(bytes((salt,)) + first, bytes((salt + 1,))) for salt in range(3))
    last = plan(mapping_of("int", salt_buckets=256), [GreaterThan(("k0",), 0)]).ranges[-1]
    assert (last.start[:1], last.stop) == (b"\xff", b"")
    whole = plan(mapping, [In(("k0",), (1, 2)), In(("k1",), (3, 4, 5, 6))])
    keys = sorted(row_key(mapping, k0, k1) for k0 in (1, 2) for k1 in (3, 4, 5, 6))
    assert whole.ranges == tuple(KeyRange(key, key + b"\x00") for key in keys)
    assert plan(mapping, []).ranges == (KeyRange(b"", b""),)
    assert plan(mapping, [one, EqualTo(("k0",), 8)]).ranges == ()


def test_very_many_ranges_of_a_salted_table_are_one_in_each_bucket() -> None:
    mapping, without = mapping_of("int", "int", salt_buckets=10), mapping_of("int", "int")
    most = In(("k0",), tuple(range(0, KEY_RANGES_MAX // 5, 2)))
    planned = plan(mapping, [most])
    assert (len(planned.ranges), planned.remaining) == (KEY_RANGES_MAX, ())
    more = In(("k0",), tuple(range(0, KEY_RANGES_MAX // 5 + 2, 2)))
    between = KeyRange(row_key(without, 0), end_of_prefix(row_key(without, KEY_RANGES_MAX // 5)))
    planned = plan(mapping, [more])
    assert planned.ranges == tuple(KeyRange(*(bytes((salt,)) + end for end in between)) for salt in range(10))
    assert planned.remaining == (more,)
    keys = In(("k0",), tuple(range(KEY_RANGES_MAX)))
    assert len(plan(mapping_of("int", salt_buckets=10), [keys]).ranges) == KEY_RANGES_MAX


def test_without_a_condition_on_the_first_column_the_whole_table_is_read() -> None:
    conditions: list[Filter] = [EqualTo(("k1",), 1), EqualTo(("v",), 1)]
    planned = plan(mapping_of("int", "int"), conditions)
    assert planned.ranges == (KeyRange(b"", b""),)
    assert planned.remaining == tuple(conditions)


def test_contradictions_read_nothing() -> None:
    assert plan(mapping_of("int"), [EqualTo(("k0",), 1), EqualTo(("k0",), 2)]).ranges == ()
    assert plan(mapping_of("bigint"), [GreaterThan(("k0",), 2**63 - 1)]).ranges == ()


def test_very_many_values_are_read_as_one_range_and_left_to_spark() -> None:
    mapping = mapping_of("int", "int")
    conditions: list[Filter] = [In(("k0",), tuple(range(0, 2 * KEY_RANGES_MAX + 2, 2))), EqualTo(("k1",), 3)]
    planned = plan(mapping, conditions)
    assert planned.ranges == (KeyRange(row_key(mapping, 0), end_of_prefix(row_key(mapping, 2 * KEY_RANGES_MAX))),)
    assert planned.remaining == tuple(conditions)
    most = In(("k0",), tuple(range(KEY_RANGES_MAX)))
    assert plan(mapping, [most]).remaining == ()
    assert len(plan(mapping, [most]).ranges) == KEY_RANGES_MAX


@pytest.mark.parametrize(
    ("key_type", "condition"),
    [
        ("int", EqualTo(("k0",), 1.0)),
        ("int", EqualTo(("k0",), True)),
        ("int", EqualTo(("k0",), None)),
        ("int", Not(In(("k0",), (1, None)))),
        ("tinyint", LessThan(("k0",), 1_000)),
        ("date", EqualTo(("k0",), dt.datetime(2013, 7, 4))),
        ("timestamp", EqualTo(("k0",), dt.datetime(2013, 7, 4))),
        ("timestamp_ntz", EqualTo(("k0",), dt.datetime(2013, 7, 4, tzinfo=dt.UTC))),
        ("date", EqualTo(("k0",), dt.date(1582, 10, 15))),  # what Spark makes of ten other days, too
        ("timestamp", Not(EqualTo(("k0",), dt.datetime(1582, 10, 20, tzinfo=dt.UTC)))),
        ("timestamp", In(("k0",), (dt.datetime(2013, 7, 4, tzinfo=dt.UTC), dt.datetime(1899, 12, 31, tzinfo=dt.UTC)))),
        ("string", StringContains(("k0",), "a")),
        ("binary", StringStartsWith(("k0",), "a")),
        ("int", EqualTo(("k0", "field"), 1)),
    ],
)
def test_what_cannot_be_told_from_the_key_is_left_to_spark(key_type: str, condition: Filter) -> None:
    planned = plan(mapping_of(key_type), [condition])
    assert planned.ranges == (KeyRange(b"", b""),)
    assert planned.remaining == (condition,)


def test_only_a_filter_that_lets_no_null_pass_demands_a_value() -> None:
    mapping = mapping_of("int")
    assert demands_a_value(mapping, [EqualTo(("k0",), 1), IsNotNull(("V",))])
    assert not demands_a_value(mapping, [IsNotNull(("k0",)), Not(IsNotNull(("v",))), IsNull(("v",))])
    assert not demands_a_value(mapping, [])
