"""The Spark types that a column of a Pythia table may have, and what they are in Arrow.

A mapping outlives the Spark version that wrote it, so it names types as plain text in Spark's own SQL spelling
(``bigint``, ``decimal(10,2)``); this module is the only place that turns the text into Spark's or Arrow's objects.
Only types with one obvious byte form are taken: nested types are refused by name.
"""

from __future__ import annotations

import re
from typing import Final

import pyarrow as pa
from pyspark.sql import types as spark

from client.spark.errors import InvalidMapping

TIMESTAMP: Final = "timestamp"
TIMESTAMP_NTZ: Final = "timestamp_ntz"
TEXTS: Final = ("string", "binary")
"""Of as many bytes as a value has."""

_SPARK: Final[dict[str, spark.DataType]] = {
    "string": spark.StringType(),
    "binary": spark.BinaryType(),
    "boolean": spark.BooleanType(),
    "tinyint": spark.ByteType(),
    "smallint": spark.ShortType(),
    "int": spark.IntegerType(),
    "bigint": spark.LongType(),
    "float": spark.FloatType(),
    "double": spark.DoubleType(),
    "date": spark.DateType(),
    TIMESTAMP: spark.TimestampType(),
    TIMESTAMP_NTZ: spark.TimestampNTZType(),
}
_ARROW: Final[dict[str, pa.DataType]] = {
    "string": pa.string(),
    "binary": pa.binary(),
    "boolean": pa.bool_(),
    "tinyint": pa.int8(),
    "smallint": pa.int16(),
    "int": pa.int32(),
    "bigint": pa.int64(),
    "float": pa.float32(),
    "double": pa.float64(),
    "date": pa.date32(),
    TIMESTAMP: pa.timestamp("us", tz="UTC"),
    TIMESTAMP_NTZ: pa.timestamp("us"),
}
_ALIASES: Final = {"byte": "tinyint", "short": "smallint", "integer": "int", "long": "bigint", "bool": "boolean"}
_DECIMAL: Final = re.compile(r"decimal\(\s*(\d+)\s*,\s*(-?\d+)\s*\)")
_DECIMAL_PRECISION_MAX: Final = 38
_NESTED: Final = ("array", "map", "struct")
_WITHOUT_KEY_ORDER: Final = ("float", "double", "decimal")

KNOWN_TYPES: Final = (*_SPARK, "decimal(precision,scale)")
"""What an error lists when it meets another type."""


def normalise(text: str) -> str:
    """Spark's own spelling of a type, e.g. ``long`` → ``bigint``. Raises ``InvalidMapping`` for one not supported."""
    name = text.strip().lower()
    name = _ALIASES.get(name, name)
    if name in _SPARK:
        return name
    if name.startswith("decimal"):
        return "decimal({},{})".format(*_precision_and_scale(name))
    if name.startswith(_NESTED):
        raise InvalidMapping(f"nested types are not supported: {text}; give each of its fields a column of its own")
    raise InvalidMapping(f"unknown type {text!r}; known are {', '.join(KNOWN_TYPES)}")


def check_key_type(column: str, type_name: str) -> None:
    """Refuse a type that has no order-preserving byte form here. Raises ``InvalidMapping``."""
    if type_name.startswith(_WITHOUT_KEY_ORDER):
        raise InvalidMapping(
            f"row key column {column!r} is of type {type_name}: float, double and decimal cannot be part of a row key; "
            "use an integer or a string"
        )


def spark_type(type_name: str) -> spark.DataType:
    """The Spark type of a normalised type name."""
    if type_name.startswith("decimal"):
        return spark.DecimalType(*_precision_and_scale(type_name))
    return _SPARK[type_name]


def arrow_type(type_name: str) -> pa.DataType:
    """The Arrow type in which Spark exchanges a column of a normalised type name with Python (UTC for timestamps)."""
    if type_name.startswith("decimal"):
        return pa.decimal128(*_precision_and_scale(type_name))
    return _ARROW[type_name]


def _precision_and_scale(text: str) -> tuple[int, int]:
    match = _DECIMAL.fullmatch(text)
    if match is None:
        raise InvalidMapping(f"a decimal needs its precision and scale, e.g. decimal(10,2), not {text!r}")
    precision, scale = int(match[1]), int(match[2])
    if not 1 <= precision <= _DECIMAL_PRECISION_MAX or not 0 <= scale <= precision:
        raise InvalidMapping(
            f"{text}: the precision lies in 1…{_DECIMAL_PRECISION_MAX} and the scale in 0…precision, as in Spark"
        )
    return precision, scale
