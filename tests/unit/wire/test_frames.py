"""Frames: cut as they were joined, and refused with a reason when they were not."""

from __future__ import annotations

import struct

import pytest
from hypothesis import given
from hypothesis import strategies as st

from wire import FRAME_BYTES_MAX, HEADER_BYTES, Frame, FrameDecoder, Kind, ProtocolError, encode_frame

frames = st.builds(Frame, st.sampled_from(Kind), st.integers(min_value=0, max_value=2**64 - 1), st.binary(max_size=100))


def header(
    length: int = 0, version: int = 1, kind: int = Kind.STATUS_REQUEST, flags: int = 0, request: int = 9
) -> bytes:
    return struct.pack("<IBBHQ", length, version, kind, flags, request)


def parts_of(given: list[Frame]) -> list[tuple[Kind, int, bytes]]:
    return [(frame.kind, frame.request_id, frame.payload) for frame in given]


@given(st.lists(frames, max_size=8), st.lists(st.integers(min_value=1, max_value=60), min_size=1))
def test_frames_come_out_as_they_went_in_however_the_stream_is_cut(sent: list[Frame], cuts: list[int]) -> None:
    stream = b"".join(encode_frame(frame.kind, frame.request_id, frame.payload) for frame in sent)
    decoder, received, position = FrameDecoder(), [], 0
    while position < len(stream):
        size = cuts[position % len(cuts)]
        received += list(decoder.feed(stream[position : position + size]))
        position += size
    assert parts_of(received) == parts_of(sent)
    assert decoder.buffered_bytes == 0


def test_the_header_is_these_sixteen_bytes() -> None:
    assert encode_frame(Kind.COMMIT_REQUEST, 0x0102030405060708, b"\xaa\xbb") == bytes.fromhex(
        "02000000 01 03 0000 0807060504030201 aabb"
    )


@pytest.mark.parametrize(
    ("wrong", "reason", "request_id"),
    [
        (header(version=2), "version 2", 0),
        (header(kind=0), "kind 0", 9),
        (header(kind=77), "kind 77", 9),
        (header(flags=1), "flags 0x0001", 9),
        (header(length=2**32 - 1), "over the limit", 9),
        (header(length=FRAME_BYTES_MAX - HEADER_BYTES + 1), "over the limit", 9),
        (b"GET / HTTP/1.1\r\nHost: oracle\r\n", "version 47", 0),
    ],
)
def test_a_wrong_header_is_refused_with_its_reason(wrong: bytes, reason: str, request_id: int) -> None:
    decoder = FrameDecoder()
    with pytest.raises(ProtocolError, match=reason) as caught:
        list(decoder.feed(wrong))
    assert caught.value.request_id == request_id


def test_an_absurd_length_is_refused_from_the_header_alone() -> None:
    decoder = FrameDecoder()
    with pytest.raises(ProtocolError, match="4294967311 bytes is over the limit of 1048576"):
        list(decoder.feed(header(length=2**32 - 1)))
    assert decoder.buffered_bytes <= HEADER_BYTES


def test_the_largest_frame_is_taken() -> None:
    payload = bytes(1000 - HEADER_BYTES)
    whole = encode_frame(Kind.BAD_REQUEST, 1, payload, frame_bytes_max=1000)
    assert parts_of(list(FrameDecoder(frame_bytes_max=1000).feed(whole))) == [(Kind.BAD_REQUEST, 1, payload)]
    with pytest.raises(ProtocolError, match="over the limit of 999"):
        encode_frame(Kind.BAD_REQUEST, 1, payload, frame_bytes_max=999)


def test_frames_before_a_wrong_one_are_given_and_nothing_after_it() -> None:
    good = encode_frame(Kind.STATUS_REQUEST, 1, b"")
    decoder = FrameDecoder()
    incoming = decoder.feed(good + header(kind=99) + good)
    assert next(incoming).request_id == 1
    with pytest.raises(ProtocolError, match="kind 99"):
        next(incoming)
    with pytest.raises(ProtocolError, match="kind 99"):
        decoder.feed(good)


def test_a_frame_that_began_well_enough_and_goes_on_wrong_is_refused_with_the_byte_that_shows_it() -> None:
    decoder = FrameDecoder()
    wrong = header(kind=99)
    decoder.take(wrong[:-1])
    assert decoder.next_frame() is None
    decoder.take(wrong[-1:])
    with pytest.raises(ProtocolError, match="kind 99"):
        decoder.next_frame()
    with pytest.raises(ProtocolError, match="kind 99"):
        decoder.take(b"")
    long = header(length=2**31)
    decoder = FrameDecoder()
    decoder.take(long[:-1])
    assert decoder.next_frame() is None
    decoder.take(long[-1:])
    with pytest.raises(ProtocolError, match="over the limit"):
        decoder.next_frame()


def test_nothing_is_held_of_a_chunk_that_was_whole_frames() -> None:
    decoder = FrameDecoder()
    whole = encode_frame(Kind.STATUS_REQUEST, 1, b"1234")
    decoder.take(whole[:-1])
    assert decoder.next_frame() is None
    assert decoder.buffered_bytes == len(whole) - 1
    decoder.take(whole[-1:] + whole)
    assert [decoder.next_frame() is None for _ in range(3)] == [False, False, True]
    assert decoder.buffered_bytes == 0


@pytest.mark.parametrize("request_id", [-1, 2**64])
def test_a_request_id_that_does_not_fit_is_refused(request_id: int) -> None:
    with pytest.raises(ProtocolError, match="unsigned 64-bit"):
        encode_frame(Kind.STATUS_REQUEST, request_id, b"")


@given(st.binary(max_size=400))
def test_any_bytes_give_frames_or_a_protocol_error(data: bytes) -> None:
    decoder = FrameDecoder()
    try:
        given_back = list(decoder.feed(data))
    except ProtocolError:
        return
    assert sum(HEADER_BYTES + len(frame.payload) for frame in given_back) + decoder.buffered_bytes == len(data)
