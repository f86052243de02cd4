"""Messages: the bytes of each kind, round trips, and what is refused."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from wire import (
    HEADER_BYTES,
    AbortRequest,
    BadRequest,
    BeginReply,
    BeginRequest,
    CommitReply,
    CommitRequest,
    DetailsReply,
    DetailsRequest,
    DrainReply,
    DrainRequest,
    Frame,
    FrameDecoder,
    HandoverReply,
    HandoverRequest,
    HeartbeatReply,
    HeartbeatRequest,
    HelloReply,
    HelloRequest,
    HindranceReply,
    HindranceRequest,
    Kind,
    LargeCommitRequest,
    Life,
    LivesReply,
    LivesRequest,
    Message,
    MetricsReply,
    MetricsRequest,
    NotAllowed,
    NotAllowedCode,
    NotPrimary,
    OutcomeReply,
    OutcomeRequest,
    OutcomeStatus,
    Overloaded,
    ProtocolError,
    Reason,
    Role,
    StatusReply,
    StatusRequest,
    WriteSetPart,
    WriteSetTaken,
    decode,
    encode,
)
from wire.details import OPEN_TRANSACTIONS_MAX
from wire.frames import OPENING_KINDS
from wire.metrics import SAMPLE
from wire.packing import SINGLE_CELLS_MAX, CommitArguments, pack_commits, unpack_answers

PATIENT = settings(deadline=None, suppress_health_check=(HealthCheck.too_slow,))
"""No test here is about time: a busy machine must not fail one."""

NUMBERS_OF_STATUS = "".join(f"{number:02x}00000000000000" for number in range(1, 13))

GOLDEN: list[tuple[Message, str]] = [
    # Of these three nothing may ever change, whatever the version: see wire.hello.
    (HelloRequest("pythia_x", 1, 3, "0.1.0"), "01 03 05000000 302e312e30 08000000 7079746869615f78"),
    (
        HelloReply(2, ("operate", "read"), 1, 3, "0.1.0"),
        "02 01 03 05000000 302e312e30 0c000000 6f7065726174652c72656164",
    ),
    (NotAllowed(NotAllowedCode.EXPIRED, "no"), "03 02000000 6e6f"),
    (BeginRequest(3), "03000000"),
    (
        WriteSetPart(7, 5, 6, 9, 1, 2, np.array([1, 2**64 - 1], "<u8")),
        "0700000000000000 0500000000000000 0600000000000000 09000000 01000000 02000000 02000000"
        "0100000000000000 ffffffffffffffff",
    ),
    (WriteSetTaken(4), "04000000"),
    (LargeCommitRequest(7, 5, 6, 9), "0700000000000000 0500000000000000 0600000000000000 09000000"),
    (BeginReply(0x10, 2, 0x0F, 0x0E), "1000000000000000 0f00000000000000 0e00000000000000 02000000"),
    (
        CommitRequest([7, 9], [5, 8], [0, 10], [0, 2, 3], [1, 2**64 - 1, 2**63], [1, 0]),  # type: ignore[arg-type]
        "02000000 03000000 0700000000000000 0900000000000000 0500000000000000 0800000000000000"
        "0000000000000000 0a00000000000000"
        "0100000000000000 ffffffffffffffff 0000000000000080 00000000 02000000 03000000 01000000 00000000 00000000",
    ),
    (
        CommitReply([0x21, 0], [Reason.COMMITTED, Reason.TOO_OLD]),  # type: ignore[arg-type]
        "02000000 00000000 2100000000000000 0000000000000000 00 02",
    ),
    (AbortRequest([0x0102]), "01000000 00000000 0201000000000000"),  # type: ignore[arg-type]
    (OutcomeRequest([1, 2]), "02000000 00000000 0100000000000000 0200000000000000"),  # type: ignore[arg-type]
    (
        OutcomeReply([OutcomeStatus.ABORTED, OutcomeStatus.COMMITTED, OutcomeStatus.UNDECIDED], [0, 5, 0]),  # type: ignore[arg-type]
        "03000000 00000000 0000000000000000 0500000000000000 0000000000000000 02 01 00",
    ),
    (
        HeartbeatRequest([3, 4], [1, 2]),  # type: ignore[arg-type]
        "02000000 00000000 0300000000000000 0400000000000000 0100000000000000 0200000000000000",
    ),
    (HeartbeatReply([1, 0]), "02000000 00000000 01 00"),  # type: ignore[arg-type]
    (HandoverRequest(), ""),
    (HandoverReply(0x0E), "0e00000000000000"),
    (DrainRequest(250), "fa000000"),
    (DrainReply(0x0E, 3), "0e00000000000000 03000000"),
    (LivesRequest([1, 2]), "02000000 00000000 0100000000000000 0200000000000000"),  # type: ignore[arg-type]
    (LivesReply([Life.YOUNG, Life.HEARD_OF]), "02000000 00000000 01 02"),  # type: ignore[arg-type]
    (StatusRequest(), ""),
    (
        StatusReply(Role.PRIMARY, "a", "h:1", "é", 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12),
        NUMBERS_OF_STATUS + "01 01000000 61 03000000 683a31 02000000 c3a9",
    ),
    (MetricsRequest(), ""),
    (
        MetricsReply(Role.PRIMARY, "a", "h:1", ("up", 'n_total{le="0.5"}'), np.array([1.0, 2.5])),
        "02000000 00000000 000000000000f03f 0000000000000440 01 01000000 61 03000000 683a31"
        "14000000 75700a6e5f746f74616c7b6c653d22302e35227d",
    ),
    (DetailsRequest(), ""),
    (
        DetailsReply([7, 9], [5, 8], [10, 0], "h:4", True, 2000, 1500, -1),  # type: ignore[arg-type]
        "02000000 00000000 0700000000000000 0900000000000000 0500000000000000 0800000000000000"
        "0a00000000000000 0000000000000000 d007000000000000 dc05000000000000 ffffffffffffffff 01 03000000 683a34",
    ),
    (HindranceRequest(), ""),
    (HindranceReply("é"), "02000000 c3a9"),
    (NotPrimary("h:2", 4), "0400000000000000 03000000 683a32"),
    (Overloaded(250), "fa000000"),
    (BadRequest("no"), "02000000 6e6f"),
]

timestamps = st.integers(min_value=0, max_value=2**63 - 1)
cell_ids = st.integers(min_value=0, max_value=2**64 - 1)
texts = st.text(max_size=20)


def details_of(ids: Iterable[int], lease_ms: int = 1) -> DetailsReply:
    column = np.array([*ids], "<i8")
    return DetailsReply(column, column, column, "", False, lease_ms)


def commit_request(write_sets: list[tuple[int, int, list[int]]]) -> CommitRequest:
    starts, snapshots, cells = zip(*write_sets, strict=True)
    flat = np.array([cell for write_set in cells for cell in write_set], "<u8")
    return CommitRequest(starts, snapshots, [0] * len(starts), np.cumsum([0, *map(len, cells)]), flat)  # type: ignore[arg-type]


def commit_reply(answers: list[tuple[int, int]]) -> CommitReply:
    reasons = np.array([reason for _, reason in answers], "u1")
    return CommitReply(np.where(reasons == 0, np.array([max(1, time) for time, _ in answers]), 0), reasons)


def outcome_reply(answers: list[tuple[int, int]]) -> OutcomeReply:
    statuses = np.array([status for _, status in answers], "u1")
    return OutcomeReply(statuses, np.where(statuses == 1, np.array([max(1, time) for time, _ in answers]), 0))


def status_reply(role: Role, names: list[str], numbers: list[int]) -> StatusReply:
    holder, address, primary = names
    return StatusReply(role, holder, address, primary, *numbers)


def metrics_reply(role: Role, holder: str, address: str, sampled: dict[str, float]) -> MetricsReply:
    return MetricsReply(role, holder, address, tuple(sampled), np.array([*sampled.values()]))


finite = st.floats(allow_nan=False, allow_infinity=False)
samples = st.from_regex(SAMPLE, fullmatch=True)
some_ids = st.lists(timestamps, min_size=1, max_size=5).map(lambda ids: np.array(ids, "<i8"))
messages: st.SearchStrategy[Message] = st.one_of(
    st.builds(BeginRequest, st.integers(min_value=1, max_value=2**32 - 1)),
    st.builds(
        lambda three, count: BeginReply(sorted(three)[2], count, sorted(three)[1], sorted(three)[0]),
        st.sets(timestamps, min_size=3, max_size=3),
        st.integers(min_value=1, max_value=1000),
    ),
    st.builds(
        commit_request,
        st.lists(st.tuples(timestamps, timestamps, st.lists(cell_ids, max_size=4)), min_size=1, max_size=5),
    ),
    st.builds(commit_reply, st.lists(st.tuples(timestamps, st.sampled_from(Reason)), min_size=1, max_size=5)),
    st.builds(
        lambda times, cells, before, after, guards: WriteSetPart(
            times[0],
            times[1],
            times[2],
            before + len(cells) + after,
            min(guards, len(cells)),
            before,
            np.array(cells, "<u8"),
        ),
        st.tuples(*[st.integers(0, 2**63 - 1)] * 3),
        st.lists(st.integers(0, 2**64 - 1), min_size=1, max_size=5),
        st.integers(0, 2**20),
        st.integers(0, 2**20),
        st.integers(0, 5),
    ),
    st.builds(WriteSetTaken, st.integers(0, 2**32 - 1)),
    st.builds(LargeCommitRequest, *[st.integers(0, 2**63 - 1)] * 3, st.integers(1, 2**32 - 1)),
    st.builds(AbortRequest, some_ids),
    st.builds(OutcomeRequest, some_ids),
    st.builds(outcome_reply, st.lists(st.tuples(timestamps, st.sampled_from(OutcomeStatus)), min_size=1, max_size=5)),
    st.just(StatusRequest()),
    st.builds(
        status_reply,
        st.sampled_from(Role),
        st.lists(texts, min_size=3, max_size=3),
        st.lists(timestamps, min_size=12, max_size=12),
    ),
    st.just(MetricsRequest()),
    st.builds(
        metrics_reply, st.sampled_from(Role), texts, texts, st.dictionaries(samples, finite, min_size=1, max_size=5)
    ),
    st.just(DetailsRequest()),
    st.builds(
        lambda ids, rest, warm, numbers: DetailsReply(ids, ids, ids, rest, warm, *numbers),
        st.lists(timestamps, max_size=OPEN_TRANSACTIONS_MAX),
        texts,
        st.booleans(),
        st.lists(st.integers(-1, 2**63 - 1), min_size=3, max_size=3),
    ),
    st.builds(lambda ids: HeartbeatRequest(ids, ids), some_ids),
    st.builds(HeartbeatReply, st.lists(st.integers(0, 1), min_size=1, max_size=5)),
    st.just(HandoverRequest()),
    st.builds(HandoverReply, st.integers(min_value=1, max_value=2**63 - 1)),
    st.builds(DrainRequest, st.integers(min_value=1, max_value=2**32 - 1)),
    st.builds(DrainReply, timestamps, st.integers(min_value=0, max_value=2**32 - 1)),
    st.builds(LivesRequest, some_ids),
    st.just(HindranceRequest()),
    st.builds(HindranceReply, texts),
    st.builds(LivesReply, st.lists(st.sampled_from(Life), min_size=1, max_size=5)),
    st.builds(NotPrimary, texts, timestamps),
    st.builds(Overloaded, st.integers(min_value=0, max_value=2**32 - 1)),
    st.builds(BadRequest, texts),
)


def decode_whole(data: bytes) -> list[tuple[Message, int]]:
    decoder = FrameDecoder()
    return [(decode(frame), frame.request_id) for frame in decoder.feed(data)]


@pytest.mark.parametrize(("message", "payload"), GOLDEN, ids=lambda value: type(value).__name__)
def test_the_bytes_of_each_kind_are_these(message: Message, payload: str) -> None:
    expected = bytes.fromhex(payload)
    version = 0 if message.KIND in OPENING_KINDS else 1
    header = len(expected).to_bytes(4, "little") + bytes([version, message.KIND, 0, 0]) + (77).to_bytes(8, "little")
    assert encode(message, 77) == header + expected
    assert decode_whole(header + expected) == [(message, 77)]


def test_each_kind_has_a_golden_vector() -> None:
    assert {message.KIND for message, _ in GOLDEN} == set(Kind)


@PATIENT
@given(messages, st.integers(min_value=0, max_value=2**64 - 1))
def test_every_message_survives_the_journey(message: Message, request_id: int) -> None:
    [(received, received_id)] = decode_whole(encode(message, request_id))
    assert received == message
    assert type(received) is type(message)
    assert received_id == request_id


@PATIENT
@given(messages, st.data())
def test_a_truncated_payload_gives_a_protocol_error(message: Message, data: st.DataObject) -> None:
    payload = message.payload()
    kept = data.draw(st.integers(min_value=0, max_value=max(0, len(payload) - 1)))
    if payload:
        with pytest.raises(ProtocolError, match=message.KIND.name):
            decode(Frame(message.KIND, 5, payload[:kept]))
    with pytest.raises(ProtocolError, match=message.KIND.name):
        decode(Frame(message.KIND, 5, payload + b"\0"))


@PATIENT
@given(messages, st.data())
def test_a_flipped_bit_gives_a_protocol_error_or_a_valid_message(message: Message, data: st.DataObject) -> None:
    whole = bytearray(encode(message, 5))
    position = data.draw(st.integers(min_value=0, max_value=len(whole) * 8 - 1))
    whole[position // 8] ^= 1 << (position % 8)
    try:
        received = decode_whole(bytes(whole))
    except ProtocolError:
        return
    for again, request_id in received:
        assert encode(again, request_id) == bytes(whole)


@PATIENT
@given(st.sampled_from(Kind), st.binary(max_size=200))
def test_any_payload_gives_a_protocol_error_or_a_valid_message(kind: Kind, payload: bytes) -> None:
    try:
        message = decode(Frame(kind, 1, payload))
    except ProtocolError:
        return
    assert encode(message, 1)[HEADER_BYTES:] == payload


def test_an_absurd_count_is_refused_before_room_is_made() -> None:
    absurd = b"\xff\xff\xff\xff" + bytes(4)
    counting = (Kind.COMMIT_REQUEST, Kind.COMMIT_REPLY, Kind.ABORT_REQUEST, Kind.OUTCOME_REPLY)
    for kind in (*counting, Kind.HEARTBEAT_REQUEST, Kind.HEARTBEAT_REPLY, Kind.METRICS_REPLY, Kind.DETAILS_REPLY):
        with pytest.raises(ProtocolError, match="too short") as caught:
            decode(Frame(kind, 8, absurd))
        assert caught.value.request_id == 8


WRONG: list[tuple[Callable[[], Message], str]] = [
    (lambda: BeginRequest(0), "at least 1"),
    (lambda: BeginRequest(2**32), "fit 32 bits"),
    (lambda: BeginReply(5, 1, 5, 1), "must hold"),
    (lambda: BeginReply(6, 1, 5, 7), "must hold"),
    (lambda: commit([], [], [0], []), "empty"),
    (lambda: commit([5], [4, 4], [0, 0], []), "same length"),
    (lambda: commit([-5], [4], [0, 0], []), "negative"),
    (lambda: commit([5], [-4], [0, 0], []), "negative"),
    (lambda: commit([5], [4], [0], []), "one more value"),
    (lambda: CommitRequest(*map(np.array, ([5], [4], [-1], [0, 1], [1]))), "negative"),
    (lambda: CommitRequest(*map(np.array, ([5], [4], [6, 6], [0, 1], [1]))), "same length"),
    (lambda: HeartbeatRequest(np.array([5, 6]), np.array([4])), "same length"),
    (lambda: HeartbeatReply(np.array([2])), "0 or 1"),
    (lambda: HandoverReply(0), "a timestamp"),
    (lambda: DrainRequest(0), "at least 1"),
    (lambda: DrainReply(-1), "a timestamp"),
    (lambda: LivesRequest(np.array([], "<i8")), "empty"),
    (lambda: LivesReply(np.array([3])), "up to 2"),
    (lambda: CommitRequest(*map(np.array, ([5], [4], [0], [0, 1], [1], [2]))), "guards are a part"),
    (lambda: WriteSetPart(5, 4, 0, 1, 0, 0, np.array([1, 2], "<u8")), "no part of a write set"),
    (lambda: WriteSetPart(5, 4, 0, 2, 3, 0, np.array([1], "<u8")), "cannot be guards"),
    (lambda: WriteSetPart(5, -4, 0, 2, 0, 0, np.array([1], "<u8")), "negative"),
    (lambda: WriteSetPart(5, 4, 0, 9, 0, 0, np.array([], "<u8")), "empty"),
    (lambda: WriteSetPart(5, 4, 0, 10**6, 0, 0, np.arange(8_193, dtype="<u8")), "4096 cells at most"),
    (lambda: WriteSetTaken(2**32), "2\\*\\*32"),
    (lambda: LargeCommitRequest(5, 4, 0, 0), "one cell at least"),
    (lambda: LargeCommitRequest(-5, 4, 0, 1), "negative"),
    (lambda: commit([5], [4], [0, 2], [1]), "from 0 to the 1 cells"),
    (lambda: commit([5], [4], [1, 1], [1]), "from 0 to the 1 cells"),
    (lambda: commit([5, 6, 7], [4, 4, 4], [0, 2, 1, 3], [1, 2, 3]), "not decrease"),
    (lambda: commit([5], [4], [0, 1], [-1]), "must lie in 0"),
    (lambda: commit([5], [4], [0, 1], [2**64]), "cells must lie in"),
    (lambda: commit([float("nan")], [4], [0, 0], []), "must hold integers"),
    (lambda: commit([5.0], [4], [0, 0], []), "must hold integers"),
    (lambda: commit([2**63], [4], [0, 0], []), "must lie in"),
    (lambda: commit([[5]], [4], [0, 0], []), "must hold integers"),
    (lambda: AbortRequest(np.array([[5]])), "2 dimensions"),
    (lambda: AbortRequest(np.array([5.0])), "not float64"),
    (lambda: AbortRequest(np.array([2**63], "<u8")), "must lie in"),
    (lambda: commit(["5"], [4], [0, 0], []), "must hold integers"),
    (lambda: CommitReply(np.array([5]), np.array([1])), "exactly where"),
    (lambda: CommitReply(np.array([0]), np.array([0])), "exactly where"),
    (lambda: CommitReply(np.array([5, 0]), np.array([0, 0])), "exactly where"),
    (lambda: CommitReply(np.array([5, -5]), np.array([0, 0])), "negative"),
    (lambda: CommitReply(np.array([0]), np.array([6])), "largest that is known is 5"),
    (lambda: CommitReply(np.array([0, 0]), np.array([1])), "same length"),
    (lambda: OutcomeReply(np.array([3]), np.array([0])), "largest that is known is 2"),
    (lambda: OutcomeReply(np.array([1]), np.array([0])), "exactly where"),
    (lambda: AbortRequest(np.array([], "<i8")), "empty"),
    (lambda: OutcomeRequest(np.array([-1])), "negative"),
    (lambda: StatusReply(Role.PRIMARY, "", "", "", epoch=-1), "epoch"),
    (lambda: NotPrimary("", -1), "epoch"),
    (lambda: details_of(range(OPEN_TRANSACTIONS_MAX + 1)), "20 transactions at most"),
    (lambda: details_of([-1]), "negative"),
    (lambda: details_of([1], lease_ms=-2), "lease_ms"),
    (lambda: metrics_reply(Role.PRIMARY, "", "", {}), "empty"),
    (lambda: metrics_reply(Role.PRIMARY, "", "", {"up": float("nan")}), "finite"),
    (lambda: metrics_reply(Role.PRIMARY, "", "", {"up": float("inf")}), "finite"),
    (lambda: metrics_reply(Role.PRIMARY, "", "", {"up\n": 1}), "not the name of a sample"),
    (lambda: metrics_reply(Role.PRIMARY, "", "", {'up{le="\\"}': 1}), "not the name of a sample"),
    (lambda: metrics_reply(Role.PRIMARY, "", "", {"up{}": 1}), "not the name of a sample"),
    (lambda: MetricsReply(Role.PRIMARY, "", "", ("up",), np.array([1.0, 2.0])), "a name and a value"),
    (lambda: MetricsReply(Role.PRIMARY, "", "", ("up", "up"), np.array([1.0, 2.0])), "given once"),
]


def commit(starts: list[Any], snapshots: list[Any], offsets: list[Any], cells: list[Any]) -> CommitRequest:
    return CommitRequest(starts, snapshots, [0] * len(starts), offsets, cells)  # type: ignore[arg-type]


@pytest.mark.parametrize(("build", "reason"), WRONG, ids=lambda value: value if isinstance(value, str) else "")
def test_a_wrong_message_cannot_be_built(build: Callable[[], Message], reason: str) -> None:
    with pytest.raises(ProtocolError, match=reason):
        build()


@pytest.mark.parametrize(
    ("message", "reason"),
    [(Overloaded(-1), "does not lie in"), (NotPrimary("\ud800"), "cannot be written as UTF-8")],
)
def test_a_value_that_does_not_fit_is_refused_when_it_is_sent(message: Message, reason: str) -> None:
    with pytest.raises(ProtocolError, match=reason):
        encode(message, 1)


def test_text_that_is_not_utf8_is_refused() -> None:
    with pytest.raises(ProtocolError, match="not UTF-8"):
        decode(Frame(Kind.BAD_REQUEST, 1, b"\x01\0\0\0\xff"))


def test_an_unknown_role_is_refused() -> None:
    payload = bytearray(StatusReply(Role.STANDBY, "", "", "").payload())
    payload[12 * 8] = 9
    with pytest.raises(ProtocolError, match="no role 9"):
        decode(Frame(Kind.STATUS_REPLY, 1, bytes(payload)))


def test_an_unknown_role_of_metrics_is_refused() -> None:
    payload = bytearray(metrics_reply(Role.STANDBY, "", "", {"up": 1.0}).payload())
    payload[16] = 9
    with pytest.raises(ProtocolError, match="no role 9"):
        decode(Frame(Kind.METRICS_REPLY, 1, bytes(payload)))


def test_a_long_reason_is_cut() -> None:
    [(received, _)] = decode_whole(encode(BadRequest("é" * 5000), 1))
    assert received == BadRequest("é" * 2048)


def test_columns_are_read_without_a_copy() -> None:
    request = commit_request([(7, 5, [1, 2])])
    received = decode(Frame(Kind.COMMIT_REQUEST, 1, request.payload()))
    assert isinstance(received, CommitRequest)
    assert not received.cells.flags.owndata
    assert not received.cells.flags.writeable


def test_messages_of_one_payload_and_two_kinds_differ() -> None:
    abort, outcome = AbortRequest(np.array([5])), OutcomeRequest(np.array([5]))
    assert abort.payload() == outcome.payload()
    assert abort != outcome
    assert len({abort, outcome, AbortRequest(np.array([5]))}) == 2


_SINGLES = [[(2**63 - 1, 5, 2**62, [2**64 - 1] * cells)] for cells in (0, SINGLE_CELLS_MAX, SINGLE_CELLS_MAX + 1)]


@given(
    st.lists(st.tuples(*[st.integers(0, 2**63 - 1)] * 3, st.lists(st.integers(0, 2**64 - 1), max_size=3)), min_size=1)
)
@example(_SINGLES[0])
@example(_SINGLES[1])
@example(_SINGLES[2])
def test_what_single_callers_send_is_packed_as_the_message_would_be(
    sent: list[tuple[int, int, int, list[int]]],
) -> None:
    starts, snapshots, validated, sets = zip(*sent, strict=True)
    guards = [len(cells) // 2 for cells in sets]
    offsets, cells = np.cumsum([0, *map(len, sets)]), [cell for cells in sets for cell in cells]
    message = CommitRequest(starts, snapshots, validated, offsets, cells, guards)  # type: ignore[arg-type]
    sent_first, *others = (
        CommitArguments.of_one(*each) for each in zip(starts, snapshots, validated, sets, guards, strict=True)
    )
    for other in others:
        sent_first.add_all(other)
    assert pack_commits(sent_first) == message.payload()
    assert [pack_commits(part) for part in sent_first.split()[1:]] == [pack_commits(other) for other in others]


def _alike(one: Any, among: int) -> CommitArguments:
    arguments = CommitArguments()
    for _ in range(among):
        arguments.add(*one)
    return arguments


@pytest.mark.parametrize("among", [1, 2])
@pytest.mark.parametrize("cell", [-1, 2**64, 0.5, "7", None])
def test_a_cell_id_that_is_none_cannot_be_packed(cell: Any, among: int) -> None:
    with pytest.raises(ProtocolError, match="64 bits"):
        pack_commits(_alike((1, 0, 0, [cell], 0), among))


@pytest.mark.parametrize("among", [1, 2])
@pytest.mark.parametrize(
    "wrong", [(2**63, 0, 0, [], 0), (1, 0.5, 0, [], 0), (1, 0, -(2**64), [], 0), (1, 0, 0, [], -1)]
)
def test_a_number_that_fits_no_column_cannot_be_packed(wrong: Any, among: int) -> None:
    with pytest.raises(ProtocolError, match="64 bits"):
        pack_commits(_alike(wrong, among))


@pytest.mark.parametrize("asked", [1, 2, 3])
def test_answers_are_unpacked_one_or_several(asked: int) -> None:
    reply = CommitReply(np.arange(1, asked + 1), np.full(asked, Reason.COMMITTED, np.uint8))
    times, reasons = unpack_answers(reply.payload())
    assert (list(times), list(reasons)) == (list(range(1, asked + 1)), [Reason.COMMITTED] * asked)


@given(st.binary(max_size=60))
def test_answers_are_unpacked_as_the_message_reads_them_or_refused(payload: bytes) -> None:
    """The message refuses more: codes that do not fit the timestamps, which whoever unpacks must look at."""
    try:
        message = decode(Frame(Kind.COMMIT_REPLY, 1, payload))
    except ProtocolError:
        return
    assert isinstance(message, CommitReply)
    times, reasons = unpack_answers(payload)
    assert (list(times), list(reasons)) == (message.commit_timestamps.tolist(), message.reasons.tolist())


@pytest.mark.parametrize(
    "payload", [b"", bytes(8), bytes(4), b"\1\0\0\0\0\0\0\0" + bytes(8), b"\1\0\0\0\1\0\0\0" + bytes(9)]
)
def test_answers_that_are_none_are_refused(payload: bytes) -> None:
    with pytest.raises(ProtocolError):
        unpack_answers(payload)
