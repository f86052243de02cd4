"""Many frames at once: the same columns and the same refusals as one message at a time."""

from __future__ import annotations

import struct

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.examples import examples
from wire import (
    BeginReply,
    BeginRequest,
    CommitReply,
    CommitRequest,
    Frame,
    FrameDecoder,
    Kind,
    Message,
    ProtocolError,
    decode,
)
from wire.gathering import (
    GatheredCommits,
    commits_in,
    gather_begins,
    gather_commits,
    scatter_answers,
    scatter_begins,
)
from wire.packing import unpack_begin_reply

timestamps = st.integers(0, 2**63 - 1)
write_sets = st.lists(st.integers(0, 2**64 - 1), max_size=4)


@st.composite
def requests(draw: st.DrawFn) -> CommitRequest:
    sets = draw(st.lists(write_sets, min_size=1, max_size=5))
    count = len(sets)
    starts, snapshots, validated = (
        np.array(draw(st.lists(timestamps, min_size=count, max_size=count))) for _ in range(3)
    )
    guards = np.array([draw(st.integers(0, len(cells))) for cells in sets], "<u4")
    offsets = np.cumsum([0, *map(len, sets)])
    cells = np.array([cell for cells in sets for cell in cells], "<u8")
    return CommitRequest(starts, snapshots, validated, offsets.astype("<u4"), cells, guards)


def decoded(kind: Kind, payload: bytes) -> Message | None:
    try:
        return decode(Frame(kind, 1, payload))
    except ProtocolError:
        return None


def read_alone(payload: bytes) -> CommitRequest | None:
    message = decoded(Kind.COMMIT_REQUEST, payload)
    assert message is None or isinstance(message, CommitRequest)
    return message


def part(gathered: GatheredCommits, place: int) -> CommitRequest:
    begin, end = gathered.first[place], gathered.first[place + 1]
    offsets = gathered.offsets[begin : end + 1]
    return CommitRequest(
        gathered.start_timestamps[begin:end],
        gathered.snapshots[begin:end],
        gathered.validated[begin:end],
        (offsets - offsets[0]).astype("<u4"),
        gathered.cells[offsets[0] : offsets[-1]],
        gathered.guards[begin:end].astype("<u4"),
    )


@given(st.lists(requests(), min_size=1, max_size=6))
def test_the_columns_are_those_of_the_messages(messages: list[CommitRequest]) -> None:
    gathered = gather_commits([message.payload() for message in messages])
    assert gathered.well_formed.all()
    assert gathered.malformed == 0
    assert sum(commits_in(message.payload()) for message in messages) == gathered.start_timestamps.size
    assert [part(gathered, place) for place in range(len(messages))] == messages


@settings(max_examples=examples(400))
@given(requests(), requests(), st.data())
def test_damaged_payloads_are_left_out_exactly_where_the_message_refuses_them(
    sound: CommitRequest, broken: CommitRequest, data: st.DataObject
) -> None:
    payload = bytearray(broken.payload())
    if data.draw(st.booleans()):
        del payload[data.draw(st.integers(0, len(payload))) :]
    else:
        position = data.draw(st.integers(0, len(payload) - 1))
        payload[position] = data.draw(st.sampled_from((0, 1, 2, 3, 127, 128, 255)))
    gathered = gather_commits([sound.payload(), bytes(payload), sound.payload()])
    alone = read_alone(bytes(payload))
    assert gathered.well_formed.tolist() == [1, int(alone is not None), 1]
    assert gathered.malformed == int(alone is None)
    assert part(gathered, 0) == part(gathered, 2) == sound
    if alone is not None:
        assert part(gathered, 1) == alone


@pytest.mark.parametrize("column", ["start", "snapshot", "validated"])
@pytest.mark.parametrize("transaction", [0, 1])
def test_a_negative_timestamp_leaves_its_message_out(column: str, transaction: int) -> None:
    times, offsets, cells = np.array([5, 6]), np.array([0, 1, 2], "<u4"), np.array([7, 8], "<u8")
    sound = CommitRequest(times, times, times, offsets, cells)
    payload = bytearray(sound.payload())
    place = ["start", "snapshot", "validated"].index(column) * 2 + transaction
    payload[8 + 8 * place : 16 + 8 * place] = (-1).to_bytes(8, "little", signed=True)
    assert read_alone(bytes(payload)) is None
    assert gather_commits([sound.payload(), bytes(payload)]).well_formed.tolist() == [1, 0]


@given(st.lists(st.tuples(st.integers(0, 2**64 - 1), st.integers(1, 5)), min_size=1, max_size=5))
def test_the_answers_are_frames_of_commit_replies(asked: list[tuple[int, int]]) -> None:
    ids, counts = [number for number, _ in asked], [count for _, count in asked]
    reasons = np.arange(sum(counts), dtype=np.uint8) % 6
    times = np.where(reasons == 0, np.arange(reasons.size) + 2**60, 0)
    frames = scatter_answers(ids, counts, times, reasons)
    begin = 0
    for number, count, raw in zip(ids, counts, frames, strict=True):
        (frame,) = FrameDecoder().feed(raw)
        assert frame.request_id == number
        assert decode(frame) == CommitReply(times[begin : begin + count], reasons[begin : begin + count])
        begin += count


@given(st.lists(st.binary(max_size=6) | st.binary(min_size=4, max_size=4), min_size=1))
def test_begins_are_counted_exactly_where_the_message_is_read(payloads: list[bytes]) -> None:
    alone = [decoded(Kind.BEGIN_REQUEST, payload) for payload in payloads]
    assert gather_begins(payloads) == [each.count if isinstance(each, BeginRequest) else 0 for each in alone]


@given(st.lists(st.tuples(st.integers(0, 2**64 - 1), st.integers(1, 5)), min_size=1, max_size=5))
def test_a_reply_to_many_begins_is_divided_among_them(asked: list[tuple[int, int]]) -> None:
    ids, counts = [number for number, _ in asked], [count for _, count in asked]
    first = 2**60
    for number, count, raw in zip(
        ids, counts, scatter_begins(ids, counts, BeginReply(first, sum(counts), 70, 50)), strict=True
    ):
        (frame,) = FrameDecoder().feed(raw)
        assert frame.request_id == number
        assert decode(frame) == BeginReply(first, count, 70, 50)
        first += count


begin_replies = st.tuples(*[st.integers(-1, 3)] * 3, st.integers(0, 2)).map(lambda parts: struct.pack("<qqqI", *parts))


@given(begin_replies | st.binary(max_size=40))
def test_a_begins_answer_is_unpacked_exactly_where_the_message_is_read(payload: bytes) -> None:
    alone = decoded(Kind.BEGIN_REPLY, payload)
    try:
        first, snapshot, epoch, count = unpack_begin_reply(payload)
    except ProtocolError:
        assert alone is None
    else:
        assert alone == BeginReply(first, count, snapshot, epoch)
