"""Columns: the arrays of which messages are made, checked when a message is built and when one is read.

A message holds numpy arrays of exactly the type that travels, so reading one is `np.frombuffer` and writing one is a
copy of bytes. Nothing is rounded or wrapped on the way in: a value that does not fit its column is refused.
"""

from __future__ import annotations

import struct
from enum import IntEnum
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from wire.errors import ProtocolError

Timestamps: TypeAlias = npt.NDArray[np.int64]
Cells: TypeAlias = npt.NDArray[np.uint64]
Offsets: TypeAlias = npt.NDArray[np.uint32]
Codes: TypeAlias = npt.NDArray[np.uint8]

TIMESTAMP = np.dtype("<i8")
CELL = np.dtype("<u8")
OFFSET = np.dtype("<u4")
CODE = np.dtype("u1")

REASON_BYTES_MAX = 2_048
"""Longer reasons are cut."""


def column(name: str, values: Any, dtype: np.dtype[Any]) -> npt.NDArray[Any]:
    """``values``, an array or a sequence of integers, as one contiguous column of ``dtype``. Raises ``ProtocolError``.

    Arrays of that type already are taken as they are, without a copy; they must not be written to afterwards.
    """
    if not isinstance(values, np.ndarray):
        return _listed(name, list(values), dtype)
    if values.ndim != 1:
        raise ProtocolError(f"{name} must be one column, not an array of {values.ndim} dimensions")
    if values.dtype == dtype:
        return values if values.flags.c_contiguous else np.ascontiguousarray(values)
    if values.dtype.kind not in "iu":
        raise ProtocolError(f"{name} must hold integers that fit {dtype.name}, not {values.dtype.name}")
    if values.size:
        _check_bounds(name, int(values.min()), int(values.max()), dtype)
    return values.astype(dtype)


def _listed(name: str, values: list[Any], dtype: np.dtype[Any]) -> npt.NDArray[Any]:
    """Not left to numpy: it turns large integers into floats, and texts into integers, without a word."""
    if not all(isinstance(value, int | np.integer) for value in values):
        raise ProtocolError(f"{name} must hold integers that fit {dtype.name}")
    integers = [int(value) for value in values]
    if integers:
        _check_bounds(name, min(integers), max(integers), dtype)
    return np.array(integers, dtype)


def _check_bounds(name: str, smallest: int, largest: int, dtype: np.dtype[Any]) -> None:
    bounds = np.iinfo(dtype)
    if smallest < bounds.min or largest > bounds.max:
        raise ProtocolError(f"{name} must lie in {bounds.min}…{bounds.max}")


def check_timestamps(name: str, timestamps: Timestamps) -> None:
    """Refuse a column with a negative timestamp."""
    if timestamps.size and int(timestamps.min()) < 0:
        raise ProtocolError(f"{name} holds a negative timestamp")


def check_same_length(**columns: npt.NDArray[Any]) -> None:
    """Refuse columns of different lengths."""
    if len({array.size for array in columns.values()}) > 1:
        lengths = ", ".join(f"{name} {array.size}" for name, array in columns.items())
        raise ProtocolError(f"columns must have the same length: {lengths}")


def check_not_empty(name: str, array: npt.NDArray[Any]) -> None:
    """Refuse a request about nothing."""
    if array.size == 0:
        raise ProtocolError(f"{name} is empty: a request is about one transaction at least")


class PayloadReader:
    """Takes columns off a payload one after the other, without copying, and demands that nothing is left over."""

    def __init__(self, payload: bytes) -> None:
        self._payload = payload
        self._position = 0

    def number(self, dtype: np.dtype[Any]) -> int:
        """One number."""
        begin, end = self._position, self._position + dtype.itemsize
        if end > len(self._payload):
            raise ProtocolError(f"the payload of {len(self._payload)} bytes is too short: a number would end at {end}")
        self._position = end
        return int.from_bytes(self._payload[begin:end], "little", signed=dtype.kind == "i")

    def numbers(self, layout: struct.Struct) -> tuple[int, ...]:
        """Some numbers, one after the other."""
        begin, self._position = self._position, self._position + layout.size
        if self._position > len(self._payload):
            raise ProtocolError(
                f"the payload of {len(self._payload)} bytes is too short: its numbers would end at {self._position}"
            )
        return layout.unpack_from(self._payload, begin)

    def take(self, name: str, dtype: np.dtype[Any], count: int) -> npt.NDArray[Any]:
        """A column of ``count`` values; the count is judged against what is there before any room is made."""
        end = self._position + count * dtype.itemsize
        if end > len(self._payload):
            raise ProtocolError(f"the payload of {len(self._payload)} bytes is too short: {name} would end at {end}")
        array = np.frombuffer(self._payload, dtype, count, self._position)
        self._position = end
        return array

    def text(self) -> str:
        """UTF-8 text with its length in bytes before it."""
        length = self.number(OFFSET)
        raw = self.take("a text", CODE, length).tobytes()
        try:
            return raw.decode("utf-8")
        except UnicodeDecodeError as error:
            raise ProtocolError(f"a text is not UTF-8: {error.reason} at byte {error.start}") from error

    def finish(self) -> None:
        """Refuse bytes that nothing has asked for."""
        if self._position != len(self._payload):
            raise ProtocolError(
                f"the payload has {len(self._payload)} bytes where {self._position} were to be expected"
            )


def number_bytes(value: int, dtype: np.dtype[Any]) -> bytes:
    """One number as it travels. Raises ``ProtocolError`` when it does not fit."""
    try:
        return int(value).to_bytes(dtype.itemsize, "little", signed=dtype.kind == "i")
    except OverflowError:
        bounds = np.iinfo(dtype)
        raise ProtocolError(f"{value} does not lie in {bounds.min}…{bounds.max}") from None


def text_bytes(text: str) -> bytes:
    """A text as it travels. Raises ``ProtocolError`` for lone surrogates, which UTF-8 cannot carry."""
    try:
        raw = text.encode("utf-8")
    except UnicodeEncodeError as error:
        raise ProtocolError(f"a text cannot be written as UTF-8: {error.reason} at {error.start}") from error
    return number_bytes(len(raw), OFFSET) + raw


def reason_bytes(text: str) -> bytes:
    """A text for people as it travels: cut where it is long, and without what UTF-8 cannot carry."""
    whole = text.encode("utf-8", "replace")[:REASON_BYTES_MAX]
    return text_bytes(whole.decode("utf-8", "ignore"))


def check_answers(timestamps: Timestamps, name: str, codes: Codes, known: type[IntEnum], committed: IntEnum) -> None:
    """Refuse answers that no oracle gives: unknown codes, a commit timestamp without a commit, or the reverse."""
    check_same_length(commit_timestamps=timestamps, **{name: codes})
    check_not_empty("commit_timestamps", timestamps)
    if not committed and not np.count_nonzero(codes) and int(timestamps.min()) > 0:
        return  # as a rule: all of them committed
    check_timestamps("commit_timestamps", timestamps)
    if int(codes.max()) > max(known):
        raise ProtocolError(f"{name} holds {int(codes.max())}; the largest that is known is {max(known)}")
    if bool(((codes == committed) != (timestamps > 0)).any()):
        raise ProtocolError("a commit timestamp must be there exactly where the transaction committed")


def count_bytes(count: int) -> bytes:
    """How many lines follow, padded so that 8-byte columns stay aligned."""
    return number_bytes(count, OFFSET) + number_bytes(0, OFFSET)


def read_count(reader: PayloadReader) -> int:
    """The inverse of ``count_bytes``."""
    count = reader.number(OFFSET)
    if reader.number(OFFSET) != 0:
        raise ProtocolError("the four bytes after the count must be 0")
    return count


def answers_payload(timestamps: Timestamps, codes: Codes) -> bytes:
    """Commit timestamps and what goes with each, as they travel."""
    return count_bytes(timestamps.size) + timestamps.tobytes() + codes.tobytes()


def read_answers(reader: PayloadReader) -> tuple[Timestamps, Codes]:
    """The inverse of ``answers_payload``."""
    count = read_count(reader)
    timestamps = reader.take("commit_timestamps", TIMESTAMP, count)
    return timestamps, reader.take("codes", CODE, count)
