"""The values that random jobs write: of every type that a mapping knows, the awkward ones among them.

Also what such a value is in Arrow, in a cell that a program without Spark writes, and in a filter. The bytes of cells
are said here a second time, on purpose: a plain write is read by Spark, and the two have to agree.
"""

from __future__ import annotations

import math
import struct
from collections.abc import Mapping, Sequence
from datetime import UTC, date, datetime, timedelta
from decimal import Context, Decimal
from typing import Any, Final

import pyarrow as pa

KEY_TYPES: Final = (
    "tinyint", "smallint", "int", "bigint", "boolean", "date", "timestamp", "timestamp_ntz", "string", "binary",
)  # fmt: skip
VALUE_TYPES: Final = (*KEY_TYPES, "float", "double", "decimal(10,2)", "decimal(38,18)")

ARROW: Final[Mapping[str, pa.DataType]] = {
    "tinyint": pa.int8(),
    "smallint": pa.int16(),
    "int": pa.int32(),
    "bigint": pa.int64(),
    "boolean": pa.bool_(),
    "date": pa.date32(),
    "timestamp": pa.timestamp("us", tz="UTC"),
    "timestamp_ntz": pa.timestamp("us"),
    "string": pa.string(),
    "binary": pa.binary(),
    "float": pa.float32(),
    "double": pa.float64(),
    "decimal(10,2)": pa.decimal128(10, 2),
    "decimal(38,18)": pa.decimal128(38, 18),
}
_MOMENTS: Final = [
    datetime(1969, 12, 31, 23, 59, 59, 999_999),
    datetime(1970, 1, 1),
    datetime(2013, 7, 4, 12, 30, 0, 1),
    datetime(2013, 11, 3, 5, 30),  # twice on the clocks of New York
    datetime(1900, 1, 1),
    datetime(2100, 2, 28, 23, 59, 59, 999_999),
]
_POOLS: Final[Mapping[str, Sequence[Any]]] = {
    "tinyint": [-128, -63, -1, 0, 1, 127],
    "smallint": [-(2**15), -1, 0, 255, 2**15 - 1],
    "int": [-(2**31), -1, 0, 1, 256, 2**31 - 1],
    "bigint": [-(2**63), -1, 0, 1, 2**32, 2**63 - 1],
    "boolean": [False, True],
    "date": [date(1, 1, 1), date(1969, 12, 31), date(1970, 1, 1), date(2013, 7, 4), date(9999, 12, 31)],
    "timestamp": [moment.replace(tzinfo=UTC) for moment in _MOMENTS],
    "timestamp_ntz": _MOMENTS,
    "string": ["", "a", "ab", "a\x00", "a\x00b", "\x00", "b", "ÿ", "日本", "\U0001f600", " "],
    "binary": [b"", b"\x00", b"\x00\x00", b"\x00\xff", b"\xff", b"\xff\xff\xff", b"a", b"ab", b"\xc1", b"\xc1\xc1"],
    "float": [-math.inf, -9.0, -1.5, -0.0, 0.0, 2.0**-149, 1.0, math.inf, math.nan],
    "double": [-math.inf, -1e7, -1.5, -0.0, 0.0, 5e-324, 1e300, math.inf, math.nan],
    "decimal(10,2)": [Decimal("-99999999.99"), Decimal("-0.01"), Decimal("0.00"), Decimal("99999999.99")],
    "decimal(38,18)": [Decimal(f"-{'9' * 20}.{'9' * 18}"), Decimal(1).scaleb(-18), Decimal("1." + "0" * 18)],
}
"""Among them what begins, as a cell, with the byte that a deletion is."""
_FORMATS: Final = {"tinyint": ">b", "smallint": ">h", "int": ">i", "bigint": ">q", "float": ">f", "double": ">d"}
_DIGITS_MAX: Final = 38
_EPOCH: Final = datetime(1970, 1, 1)


def values_of(type_name: str) -> Sequence[Any]:
    """All values of a type that jobs write; null is not among them."""
    return _POOLS[type_name]


def comparable(value: Any) -> Any:
    """The same for equal values only, of which the text is the same, too: NaN is itself, -0.0 is not 0.0, bytes are
    bytes, and UTC is one.
    """
    if isinstance(value, datetime) and value.tzinfo is not None:
        return value.astimezone(UTC)
    if isinstance(value, float):
        return "NaN" if math.isnan(value) else struct.pack(">d", value)
    return bytes(value) if isinstance(value, bytearray) else value


def cell_bytes(type_name: str, value: Any) -> bytes:
    """What a program without Spark puts into a cell: HBase's own ``Bytes``, big-endian."""
    if type_name in _FORMATS:
        return struct.pack(_FORMATS[type_name], value)
    if type_name == "boolean":
        return b"\xff" if value else b"\x00"
    if type_name == "date":
        return struct.pack(">i", value.toordinal() - _EPOCH.toordinal())
    if type_name.startswith("timestamp"):
        return struct.pack(">q", (value.replace(tzinfo=None) - _EPOCH) // timedelta(microseconds=1))
    if type_name.startswith("decimal"):
        return _unscaled(value, ARROW[type_name].scale).to_bytes(16, "big", signed=True)
    return value.encode() if isinstance(value, str) else bytes(value)


def _unscaled(value: Decimal, scale: int) -> int:
    return int(value.scaleb(scale, Context(prec=_DIGITS_MAX)))


def as_json(value: Any) -> Any:
    """A value of a key column as the option ``overwrite_prefix`` has it."""
    if isinstance(value, date):  # datetimes are dates
        return value.isoformat()
    return value.hex() if isinstance(value, bytes) else value
