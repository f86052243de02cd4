"""Many frames at once: the same columns and the same refusals as one message at a time."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from wire import CommitReply, CommitRequest, Frame, FrameDecoder, Kind, ProtocolError, decode
from wire.gathering import GatheredCommits, gather_commits, scatter_answers

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


def read_alone(payload: bytes) -> CommitRequest | None:
    try:
        message = decode(Frame(Kind.COMMIT_REQUEST, 1, payload))
    except ProtocolError:
        return None
    assert isinstance(message, CommitRequest)
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
    assert [part(gathered, place) for place in range(len(messages))] == messages


@settings(max_examples=400)
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
