"""The gateway's answers: every kind, in pieces of any size, and bytes that are meant to do harm."""

from __future__ import annotations

import contextlib
import struct
from typing import Any

import happybase  # noqa: F401 — loads the module Hbase_thrift
import pytest
from Hbase_thrift import Hbase
from hypothesis import given
from hypothesis import strategies as st
from thriftpy2.protocol import TBinaryProtocol
from thriftpy2.thrift import TApplicationException
from thriftpy2.transport import TMemoryBuffer

from store.errors import InvalidCell, StoreError, StoreUnavailable, TableMissing
from store.hbase.answers import ANSWER_BYTES_MAX, TEXT_BYTES_MAX, Answer, AnswerReader, Kind, NotAnAnswer
from store.hbase.failures import meaning_of_answer
from store.hbase.thrift_types import GatewayIOError, IllegalArgument

REPLY, EXCEPTION = 2, 3
_protocol: Any = TBinaryProtocol
_memory: Any = TMemoryBuffer


def message(content: Any, kind: int = REPLY, method: str = "mutateRowsTs", sequence: int = 7) -> bytes:
    """As Thrift's own library writes it."""
    memory = _memory()
    protocol = _protocol(memory)
    protocol.write_message_begin(method, kind, sequence)
    content.write(protocol)
    written: bytes = memory.getvalue()
    return written


def result(**fields: Any) -> Any:
    made = Hbase.mutateRowsTs_result()
    for name, value in fields.items():
        setattr(made, name, value)
    return made


def text_field(number: int, text: bytes) -> bytes:
    return struct.pack(">bhi", 11, number, len(text)) + text


START = message(result())[:-1]
"""The answer that it is done, but for its end."""

NEWER_IO_ERROR = START + b"\x0c\x00\x01" + text_field(1, b"java: no\n\tat here") + b"\x02\x00\x02\x01" + b"\x00\x00"
"""As HBase 2.6 sends it: its IOError says too whether a retry may help."""

ANSWERS = {
    message(result()): Answer(Kind.DONE),
    message(result(io=GatewayIOError(message=b"java: no\n\tat here"))): Answer(Kind.IO_ERROR, b"java: no\n\tat here"),
    NEWER_IO_ERROR: Answer(Kind.IO_ERROR, b"java: no\n\tat here"),
    message(result(ia=IllegalArgument(message=b"too large"))): Answer(Kind.ILLEGAL_ARGUMENT, b"too large"),
    message(result(io=GatewayIOError(message=b""))): Answer(Kind.IO_ERROR, b""),
    message(result(io=GatewayIOError())): Answer(Kind.IO_ERROR, b""),
    message(TApplicationException(6, "Internal error"), EXCEPTION): Answer(Kind.NOT_SERVED, b"Internal error"),
}


def framed(answer: bytes) -> bytes:
    return struct.pack(">i", len(answer)) + answer


def reader(in_frames: bool = False) -> AnswerReader:
    return AnswerReader(b"mutateRowsTs", 7, framed=in_frames)


@pytest.mark.parametrize("in_frames", [False, True])
@pytest.mark.parametrize(("sent", "answer"), ANSWERS.items())
def test_every_kind_of_answer_cut_at_every_byte(sent: bytes, answer: Answer, in_frames: bool) -> None:
    sent = framed(sent) if in_frames else sent
    assert reader(in_frames).feed(sent) == answer
    for place in range(len(sent)):
        waiting = reader(in_frames)
        assert waiting.feed(sent[:place]) is None
        assert waiting.feed(sent[place:]) == answer


@pytest.mark.parametrize("in_frames", [False, True])
def test_byte_by_byte(in_frames: bool) -> None:
    sent = framed(NEWER_IO_ERROR) if in_frames else NEWER_IO_ERROR
    waiting = reader(in_frames)
    assert [waiting.feed(sent[place : place + 1]) for place in range(len(sent) - 1)] == [None] * (len(sent) - 1)
    assert waiting.feed(sent[-1:]) == ANSWERS[NEWER_IO_ERROR]


@pytest.mark.parametrize("truth", [False, True])
def test_the_answer_to_the_question_for_a_table(truth: bool) -> None:
    made = Hbase.isTableEnabled_result()
    made.success = truth
    sent = message(made, method="isTableEnabled")
    assert AnswerReader(b"isTableEnabled", 7, framed=False).feed(sent) == Answer(Kind.DONE)


@pytest.mark.parametrize(
    "sent",
    [
        message(result(), sequence=8),
        message(result(), method="mutateRowTs"),
        message(result(), method="mutateRows"),
        message(result(), kind=1),
        message(result()) + b"\x00",
        b"HTTP/1.1 400 Bad Request\r\n\r\n",
        struct.pack(">i", 12) + b"mutateRowsTs" + b"\x02" + struct.pack(">i", 7) + b"\x00",
        START + b"\x0c\x00\x03\x00\x00",
        START + b"\x0d\x00\x01" + b"\x0b\x0b\x00\x00\x00\x00" + b"\x00",
        START + b"\xff\x00\x01",
        START + b"\x0c\x00\x01" + b"\x02\x00\x05\x00" * 9,
    ],
    ids=[
        "another request", "a method", "its name is shorter", "a call", "more follows", "HTTP", "the old protocol",
        "an exception that is not declared", "a map", "a type that there is not", "more fields than it takes",
    ],
)  # fmt: skip
@pytest.mark.parametrize("in_frames", [False, True])
def test_what_is_no_answer_to_the_request_is_refused(sent: bytes, in_frames: bool) -> None:
    with pytest.raises(NotAnAnswer):
        reader(in_frames).feed(framed(sent) if in_frames else sent)


@pytest.mark.parametrize("length", [-1, -(2**31), TEXT_BYTES_MAX + 1, 2**31 - 1])
def test_a_length_that_is_absurd_is_refused_before_it_is_waited_for(length: int) -> None:
    with pytest.raises(NotAnAnswer, match="a text of"):
        reader().feed(START + b"\x0c\x00\x01" + struct.pack(">bhi", 11, 1, length))
    with pytest.raises(NotAnAnswer, match="which is no answer to request 7 of mutateRowsTs"):
        reader().feed(START[:4] + struct.pack(">i", length))


@pytest.mark.parametrize("length", [-1, ANSWER_BYTES_MAX + 1, 2**31 - 1])
def test_a_frame_of_absurd_length_is_refused_before_it_is_waited_for(length: int) -> None:
    with pytest.raises(NotAnAnswer, match="a text of"):
        reader(in_frames=True).feed(struct.pack(">i", length))


@pytest.mark.parametrize("sent", [message(result())[:-1], message(result()) + b"\x00"])
def test_a_frame_that_is_not_as_long_as_its_answer_is_refused(sent: bytes) -> None:
    with pytest.raises(NotAnAnswer, match="frame"):
        reader(in_frames=True).feed(framed(sent))


def test_the_longest_text_is_taken() -> None:
    text = b"x" * TEXT_BYTES_MAX
    assert reader().feed(message(result(io=GatewayIOError(message=text)))) == Answer(Kind.IO_ERROR, text)


@given(st.sampled_from(sorted(ANSWERS)), st.integers(0, 200), st.binary(max_size=12), st.booleans())
def test_bytes_that_do_harm_are_refused_and_nothing_else_happens(
    sent: bytes, place: int, harm: bytes, in_frames: bool
) -> None:
    harmed = sent[:place] + harm + sent[place + len(harm) :]
    with contextlib.suppress(NotAnAnswer):
        answer = reader(in_frames).feed(framed(harmed) if in_frames else harmed)
        assert answer is None or isinstance(answer, Answer)


@pytest.mark.parametrize(
    ("answer", "error"),
    [
        (Answer(Kind.IO_ERROR, b"org.apache.hadoop.hbase.TableNotFoundException: t\n\tat Some.java"), TableMissing),
        (Answer(Kind.IO_ERROR, b"RetriesExhausted\n\tNoSuchColumnFamilyException: f"), TableMissing),
        (Answer(Kind.IO_ERROR, b"org.apache.hadoop.hbase.DoNotRetryIOException: no"), StoreError),
        (Answer(Kind.IO_ERROR, b"NotServingRegionException: r"), StoreUnavailable),
        (Answer(Kind.IO_ERROR, b"\xff\xfe"), StoreUnavailable),
        (Answer(Kind.ILLEGAL_ARGUMENT, b"KeyValue size too large\n\tat Some.java"), InvalidCell),
        (Answer(Kind.NOT_SERVED, b"Internal error \xff"), StoreUnavailable),
    ],
)
def test_what_an_answer_means(answer: Answer, error: type[StoreError]) -> None:
    meaning = meaning_of_answer(answer)
    assert isinstance(meaning, error)
    assert meaning.retriable is (error is StoreUnavailable)
    assert "Some.java" not in str(meaning)


def test_done_is_no_error() -> None:
    assert meaning_of_answer(Answer(Kind.DONE)) is None
