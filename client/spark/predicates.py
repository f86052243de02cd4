"""What filters on row key columns mean as ranges of row keys. Pure.

Row keys sort as their values do (``client.spark.codecs``), and no encoded column begins with another encoded one. So a
condition on one column is a few spans of that column's bytes; and as long as the columns before it are held to single
values, spans of a column are ranges of whole keys. The first column that is not held to single values is the last one
that narrows a read. In a salted table such ranges lie in each of its buckets, but those of whole keys in one.

A filter counts as answered only if the ranges hold the very rows for which it is true; every other one goes back to
Spark, which then looks at each row itself.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime
from functools import reduce
from itertools import pairwise
from typing import Any, Final

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
    StringStartsWith,
)

from client.snapshots.ranges import end_of_prefix
from client.spark.errors import InvalidData
from client.spark.key_codec import end_of_key_part, is_whole_key_part, key_part, key_part_prefix
from client.spark.mapping import KeyColumn, TableMapping
from client.spark.salting import ranges_in_every_bucket, salted_key
from store import ALL_ROWS, KeyRange

KEY_RANGES_MAX: Final = 1_000
"""Of one read. Where a list of values would give more, the range from its first to its last is read."""

_GIVEN_AS_WRITTEN_FROM: Final[Mapping[str, Any]] = {
    "date": date(1582, 10, 16),
    "timestamp": datetime(1900, 1, 1, tzinfo=UTC),
}
"""The first values of a filter that can be believed. Spark 4.3.0 hands over older ones through Java's old calendar.
That lacks ten days of October 1582, and gives the 15th for them; and Spark itself trusts its times from 1900 on only.
"""

Span = tuple[bytes, bytes | None]
"""Bytes of one key column: from, up to but not including; ``None``: without end."""

_ALL: Final[tuple[Span, ...]] = ((b"", None),)


@dataclass(frozen=True)
class KeyPlan:
    """``ranges``, in key order and apart, hold every row that can pass; ``remaining``: filters not answered by them."""

    ranges: tuple[KeyRange, ...]
    remaining: tuple[Filter, ...]


def plan(mapping: TableMapping, filters: Sequence[Filter]) -> KeyPlan:
    """The row keys to read for the conjunction of ``filters``."""
    prefixes: list[bytes] = [b""]
    ranges = [ALL_ROWS]
    answered: set[int] = set()
    keys: list[bytes] | None = None
    for column in mapping.key_columns:
        conditions = [(each, spans) for each in filters if (spans := _spans(column, each)) is not None]
        if not conditions:
            break
        allowed = reduce(_both, (spans for _, spans in conditions), list(_ALL))
        exact = len(prefixes) * len(allowed) <= KEY_RANGES_MAX
        if not exact:
            allowed = [(allowed[0][0], allowed[-1][1])]
        ranges = [_key_range(prefix, span) for prefix in prefixes for span in allowed]
        if exact:
            answered |= {id(each) for each, _ in conditions}
        if not all(_is_one_value(column, span) for span in allowed):
            break
        prefixes = [prefix + start for prefix in prefixes for start, _ in allowed]
    else:  # all columns are held to single values
        keys = prefixes
    if mapping.salt_buckets and ranges != [ALL_ROWS]:
        if keys is not None:
            ranges = sorted(_of_row(salted_key(key, mapping.salt_buckets)) for key in keys)
        else:
            if len(ranges) * mapping.salt_buckets > KEY_RANGES_MAX:
                ranges, answered = [KeyRange(ranges[0].start, ranges[-1].stop)], set()
            ranges = ranges_in_every_bucket(ranges, mapping.salt_buckets)
    return KeyPlan(tuple(ranges), tuple(each for each in filters if id(each) not in answered))


def demands_a_value(mapping: TableMapping, filters: Iterable[Filter]) -> bool:
    """Whether no row passes whose value columns are all null. Spark says so beside every comparison that implies it."""
    values = {column.name.lower() for column in mapping.value_columns}
    return any(isinstance(each, IsNotNull) and _name(each) in values for each in filters)


def _name(condition: Filter) -> str | None:
    """The column that a filter is about, in lower case; ``None`` for a field within one."""
    attribute: tuple[str, ...] = getattr(condition, "attribute", ())
    return attribute[0].lower() if len(attribute) == 1 else None


def _spans(column: KeyColumn, condition: Filter) -> list[Span] | None:
    """The bytes of ``column`` for which a filter is true; ``None`` where it is about something else, or cannot be told.

    A key column is never null, so a filter that is not true is false.
    """
    if isinstance(condition, Not):
        spans = _spans(column, condition.child)
        return None if spans is None else _outside(spans)
    if _name(condition) != column.name.lower():
        return None
    try:
        return _positive_spans(column, condition)
    except InvalidData:  # a literal that is no value of the column's type, or not the one asked for: Spark knows it
        return None


def _positive_spans(column: KeyColumn, condition: Filter) -> list[Span] | None:
    match condition:
        case EqualTo(value=value) | EqualNullSafe(value=value):
            return [_one_value(column, value)]
        case In(value=values):
            return sorted({_one_value(column, value) for value in values})
        case StringStartsWith(value=value) if column.type == "string":
            return [_beginning_with(key_part_prefix(column, value))]
        case IsNotNull():
            return list(_ALL)
        case IsNull():
            return []
        case GreaterThan(value=value) | LessThanOrEqual(value=value):
            at_most: list[Span] = [(b"", _one_value(column, value)[1])]
            return at_most if isinstance(condition, LessThanOrEqual) else _outside(at_most)
        case GreaterThanOrEqual(value=value):
            return [(_one_value(column, value)[0], None)]
        case LessThan(value=value):
            return _outside([(_one_value(column, value)[0], None)])
    return None


def _one_value(column: KeyColumn, value: Any) -> Span:
    part = key_part(column, value)
    first = _GIVEN_AS_WRITTEN_FROM.get(column.type)
    if first is not None and value < first:
        raise InvalidData(f"key column {column.name!r}: {value!r} may have been another {column.type} in the filter")
    return part, end_of_key_part(column, part) or None


def _beginning_with(part: bytes) -> Span:
    return part, end_of_prefix(part) or None


def _is_one_value(column: KeyColumn, span: Span) -> bool:
    start, _ = span
    return is_whole_key_part(column, start) and span == _beginning_with(start)


def _both(left: Sequence[Span], right: Sequence[Span]) -> list[Span]:
    """What lies in spans of both lists; they are sorted and apart, and so is the result."""
    return sorted(
        (max(first[0], second[0]), stop)
        for first in left
        for second in right
        if (stop := _earlier(first[1], second[1])) is None or max(first[0], second[0]) < stop
    )


def _earlier(left: bytes | None, right: bytes | None) -> bytes | None:
    if left is None or right is None:
        return right if left is None else left
    return min(left, right)


def _outside(spans: Sequence[Span]) -> list[Span]:
    """Everything but these spans, which are sorted and apart."""
    if not spans:
        return list(_ALL)
    gaps: list[Span] = [(b"", spans[0][0])] if spans[0][0] else []
    gaps += [(stop, start) for (_, stop), (start, _) in pairwise(spans) if stop is not None and stop < start]
    last = spans[-1][1]
    return gaps if last is None else [*gaps, (last, None)]


def _of_row(key: bytes) -> KeyRange:
    return KeyRange(key, key + b"\x00")


def _key_range(prefix: bytes, span: Span) -> KeyRange:
    start, stop = span
    return KeyRange(prefix + start, end_of_prefix(prefix) if stop is None else prefix + stop)
