"""Values of Arrow columns to bytes, and back. Pure; a column at a time.

Bytes are what HBase's own ``Bytes`` makes of the values, big-endian, so that its shell and other readers understand
them: dates are days and timestamps microseconds since 1970 (UTC), a boolean is one byte, a decimal its unscaled value
in 16. Every bit of a value comes back, a NaN's payload included.
"""

from __future__ import annotations

from typing import Any, Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from client.spark.byte_columns import ByteColumn, fixed, gathered
from client.spark.column_types import TEXTS, arrow_type
from store.columns import ABSENT, Bytes

DECIMAL_BYTES: Final = 16
WIDTHS: Final = {
    "boolean": 1,
    "tinyint": 1,
    "smallint": 2,
    "int": 4,
    "bigint": 8,
    "float": 4,
    "double": 8,
    "date": 4,
    "timestamp": 8,
    "timestamp_ntz": 8,
}
_TRUE: Final = 0xFF
_OFFSET_MAX: Final = 2**31 - 1


def to_bytes(type_name: str, array: pa.Array) -> ByteColumn:
    """The bytes of each value, none for a null. ``array`` has the Arrow type of ``type_name``."""
    if type_name in TEXTS:
        return _absent_nulls(texts(array), array)
    if type_name.startswith("decimal"):
        words = _data(array, np.dtype("<u8"), 2).reshape(-1, 2)
        swapped = np.ascontiguousarray(words[:, ::-1].astype(">u8"))
        return _absent_nulls(ByteColumn.of_width(swapped.view(np.uint8).ravel(), DECIMAL_BYTES), array)
    if type_name == "boolean":
        truths = pc.if_else(array, pa.scalar(_TRUE, pa.uint8()), pa.scalar(0, pa.uint8()))
        return _absent_nulls(big_endian(numbers(truths)), array)
    return _absent_nulls(big_endian(numbers(array)), array)


def to_array(type_name: str, column: ByteColumn) -> pa.Array:
    """The inverse of ``to_bytes``. Raises ``ValueError`` or ``ArrowException`` for bytes that no such value has."""
    if type_name in TEXTS:
        return _texts_to_array(type_name, column)
    if type_name.startswith("decimal"):
        words = fixed(column, DECIMAL_BYTES).view(">u8").reshape(-1, 2)[:, ::-1]
        array = _array(type_name, column, np.ascontiguousarray(words.astype("<u8")).tobytes())
        array.validate(full=True)  # 16 bytes can hold numbers beyond the precision
        return array
    width = WIDTHS[type_name]
    data = fixed(column, width)
    if type_name == "boolean":
        return _array(type_name, column, np.packbits(data != 0, bitorder="little").tobytes())
    return _array(type_name, column, data.view(f">u{width}").astype(f"=u{width}").tobytes())


def big_endian(values: npt.NDArray[Any]) -> ByteColumn:
    """Numbers as their bytes."""
    swapped = np.ascontiguousarray(values.astype(values.dtype.newbyteorder(">")))
    return ByteColumn.of_width(swapped.view(np.uint8).ravel(), values.itemsize)


def texts(array: pa.Array) -> ByteColumn:
    """The bytes of text or binary; any where a null is."""
    if not len(array):
        return ByteColumn(np.empty(0, np.uint8), np.empty(0, np.int64), np.empty(0, np.int64))
    _, offset_buffer, data_buffer = array.buffers()
    offsets = np.frombuffer(offset_buffer, np.int32, len(array) + 1, array.offset * 4).astype(np.int64)
    first, last = int(offsets[0]), int(offsets[-1])
    data = np.frombuffer(data_buffer, np.uint8)[first:last] if last > first else np.empty(0, np.uint8)
    return ByteColumn(data, offsets[:-1] - first, np.diff(offsets))


def numbers(array: pa.Array) -> npt.NDArray[Any]:
    """The values without any change of their bits, whatever stands where a null is."""
    if pa.types.is_date(array.type) or pa.types.is_timestamp(array.type):
        array = array.view(pa.int32() if pa.types.is_date(array.type) else pa.int64())
    return _data(array, np.dtype(array.type.to_pandas_dtype()), 1)


def is_utf8(array: pa.Array) -> bool:
    """Whether text is what Arrow says that it is: it looks at no byte where text comes from elsewhere."""
    try:
        array.validate(full=True)
    except pa.ArrowException:
        return False
    return True


def shown(value: pa.Scalar) -> str:
    """A value for an error, be it one that Python has no object for."""
    try:
        return repr(value.as_py())
    except UnicodeDecodeError:
        return repr(value.cast(pa.string()).cast(pa.binary()).as_py())
    except (OverflowError, ValueError):  # a day before the year 1 or after 9999; nanoseconds, where pandas is missing
        return str(value.cast(pa.string()).as_py())


def null_mask(array: pa.Array) -> npt.NDArray[np.bool_]:
    """Where the nulls are."""
    mask: npt.NDArray[np.bool_] = array.is_null().to_numpy(zero_copy_only=False)
    return mask


def _absent_nulls(column: ByteColumn, array: pa.Array) -> ByteColumn:
    return column.absent_where(null_mask(array)) if array.null_count else column


def _data(array: pa.Array, dtype: np.dtype[Any], words_per_value: int) -> npt.NDArray[Any]:
    if len(array) == 0:
        return np.empty(0, dtype)
    words_before = array.offset * words_per_value
    return np.frombuffer(
        array.buffers()[1], dtype, count=len(array) * words_per_value, offset=words_before * dtype.itemsize
    )


def _texts_to_array(type_name: str, column: ByteColumn) -> pa.Array:
    data, offsets = gathered(column)
    if offsets[-1] > _OFFSET_MAX:
        raise ValueError(f"{int(offsets[-1]):,} bytes of text in one batch are more than Arrow's {_OFFSET_MAX:,}")
    buffers = [_validity(column), pa.py_buffer(offsets.astype(np.int32).tobytes()), pa.py_buffer(data.tobytes())]
    array = pa.Array.from_buffers(pa.binary(), len(column.starts), buffers)
    return array.cast(pa.string()) if type_name == "string" else array


def _array(type_name: str, column: ByteColumn, data: bytes) -> pa.Array:
    return pa.Array.from_buffers(arrow_type(type_name), len(column.starts), [_validity(column), pa.py_buffer(data)])


def _validity(column: ByteColumn) -> pa.Buffer | None:
    valid = column.lengths != ABSENT
    return None if valid.all() else pa.py_buffer(np.packbits(valid, bitorder="little").tobytes())


def of_bytes(data: bytes) -> Bytes:
    """Bytes as an array of their own."""
    return np.frombuffer(bytearray(data), np.uint8)
