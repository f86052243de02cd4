"""The gateway's answers, read out of a stream of bytes: done, or an exception and its text.

A buffered transport has no lengths: where an answer ends is known only by reading it. So what has arrived is read from
its start each time more of it arrives, until it is whole; an answer is a few fields, whatever their length.

Invariants: an answer counts only for the request with its sequence number and method. Bytes that can no longer become
such an answer are refused at once, and a length is refused before it is waited for, so that what is kept is bounded.
"""

from __future__ import annotations

import enum
import struct
from collections.abc import Iterator
from dataclasses import dataclass

from store.hbase.binary_protocol import EXCEPTION, NUMBER_BYTES, REPLY, STOP, STRING, STRUCT, VERSION

TEXT_BYTES_MAX = 2**20
"""Of an exception's text, which has Java's whole stack trace in it."""

ANSWER_BYTES_MAX = TEXT_BYTES_MAX + 2**10
"""Of a frame."""

FIELDS_MAX = 8
"""Of a struct. So whatever a gateway sends, reading it from its start again costs a few steps."""


class Kind(enum.Enum):
    """What an answer says."""

    DONE = enum.auto()
    IO_ERROR = enum.auto()
    ILLEGAL_ARGUMENT = enum.auto()
    NOT_SERVED = enum.auto()
    """The gateway's Thrift layer, not HBase, reports a failure: a ``TApplicationException``."""


@dataclass(frozen=True, slots=True)
class Answer:
    """One answer; ``text`` is what an exception says."""

    kind: Kind
    text: bytes = b""


_NUMBER_BYTES = {layout: struct.calcsize(layout) for layout in (">b", ">h", ">i", ">I")}
_EXCEPTIONS = {1: Kind.IO_ERROR, 2: Kind.ILLEGAL_ARGUMENT}
"""By the number that the result has for each of the exceptions that the gateway declares."""


_DONE = Answer(Kind.DONE)


class NotAnAnswer(Exception):
    """What arrived is no answer to what was asked: the connection is out of step, or this is no gateway."""


class _Incomplete(Exception):
    """The answer goes on beyond what has arrived."""


class AnswerReader:
    """Reads the answer to one request from the bytes after it."""

    def __init__(self, method: bytes, sequence: int, *, framed: bool) -> None:
        self._expected = method, sequence
        self._start = struct.pack(f">i{len(method)}si", len(method), method, sequence)
        self._framed = framed
        self._received = bytearray()

    def feed(self, data: bytes) -> Answer | None:
        """The answer, when it is whole with ``data``; ``None`` when more must come. Raises ``NotAnAnswer``."""
        self._received += data
        fields = _Fields(self._received)
        try:
            answer = self._read_frame(fields) if self._framed else self._read_message(fields)
        except _Incomplete:
            return None
        if fields.rest:
            raise NotAnAnswer(f"{fields.rest} bytes follow the answer")
        return answer

    def _read_frame(self, fields: _Fields) -> Answer:
        message = _Fields(fields.text(ANSWER_BYTES_MAX))
        try:
            answer = self._read_message(message)
        except _Incomplete:
            raise NotAnAnswer("the answer goes on beyond its frame") from None
        if message.rest:
            raise NotAnAnswer(f"{message.rest} bytes follow the answer in its frame")
        return answer

    def _read_message(self, fields: _Fields) -> Answer:
        version = fields.number(">I")
        if version not in (VERSION | REPLY, VERSION | EXCEPTION):
            raise NotAnAnswer(f"a message that starts with {version:#010x}")
        start = fields.take(len(self._start))
        if not self._start.startswith(start):
            method, sequence = self._expected
            raise NotAnAnswer(f"{start!r}, which is no answer to request {sequence} of {method.decode()}")
        if len(start) < len(self._start):
            raise _Incomplete
        if version == VERSION | EXCEPTION:
            return Answer(Kind.NOT_SERVED, _read_exception(fields))
        return _read_result(fields)


class _Fields:
    """Bytes that are read from their start."""

    def __init__(self, data: bytes | bytearray) -> None:
        self._data = data
        self._at = 0

    @property
    def rest(self) -> int:
        return len(self._data) - self._at

    def number(self, layout: str) -> int:
        start = self._pass(_NUMBER_BYTES[layout])
        number: int = struct.unpack_from(layout, self._data, start)[0]
        return number

    def text(self, bytes_max: int) -> bytes:
        size = self.number(">i")
        if not 0 <= size <= bytes_max:
            raise NotAnAnswer(f"a text of {size} bytes")
        start = self._pass(size)
        return bytes(self._data[start : start + size])

    def take(self, bytes_max: int) -> bytes:
        """The next bytes, as far as they have arrived."""
        start = self._pass(min(self.rest, bytes_max))
        return bytes(self._data[start : self._at])

    def _pass(self, size: int) -> int:
        """Where the next ``size`` bytes start, all of which have arrived."""
        if self.rest < size:
            raise _Incomplete
        self._at += size
        return self._at - size

    def skip(self, kind: int) -> None:
        """Pass the value of a field that says nothing here. Exceptions have no others than numbers and texts."""
        if kind == STRING:
            self.text(TEXT_BYTES_MAX)
        elif kind in NUMBER_BYTES:
            self._pass(NUMBER_BYTES[kind])
        else:
            raise NotAnAnswer(f"a field of type {kind}")

    def struct(self) -> Iterator[tuple[int, int]]:
        """Number and type of each field of a struct; whoever asks for the next has read the value of the one before."""
        for _ in range(FIELDS_MAX + 1):
            kind = self.number(">b")
            if kind == STOP:
                return
            yield self.number(">h"), kind
        raise NotAnAnswer(f"a struct of more than {FIELDS_MAX} fields")


def _read_result(fields: _Fields) -> Answer:
    """The result of either call: nothing or a truth value, or one of the exceptions that the gateway declares."""
    answer = _DONE
    for number, kind in fields.struct():
        if kind == STRUCT and number in _EXCEPTIONS:
            answer = Answer(_EXCEPTIONS[number], _read_exception(fields))
        else:
            fields.skip(kind)
    return answer


def _read_exception(fields: _Fields) -> bytes:
    """The text of an exception. Thrift's own has a number beside it, an IOError of a newer HBase a truth value."""
    text = b""
    for number, kind in fields.struct():
        if (number, kind) == (1, STRING):
            text = fields.text(TEXT_BYTES_MAX)
        else:
            fields.skip(kind)
    return text
