"""The front door, over real sockets: whatever one connection sends, it hurts only itself."""

from __future__ import annotations

import struct
from typing import TYPE_CHECKING

import numpy as np
import pytest

from commit_table import CommitTable, Committed, table_name
from tests.unit.tso.calling import COMMIT, begin, commit_request, ids, raw, transact
from wire import (
    HEARTBEAT_TRANSACTIONS_MAX,
    LIVES_TRANSACTIONS_MAX,
    AbortRequest,
    BadRequest,
    BeginReply,
    BeginRequest,
    CommitReply,
    CommitRequest,
    HeartbeatReply,
    HeartbeatRequest,
    LivesReply,
    LivesRequest,
    NotPrimary,
    OutcomeReply,
    OutcomeRequest,
    OutcomeStatus,
    Reason,
    Role,
    StatusReply,
    StatusRequest,
    encode,
)

if TYPE_CHECKING:
    from tests.unit.tso.conftest import House, RunHouse

BEGIN, ABORT, COMMIT_REPLY = 1, 5, 4
COUNTS = struct.Struct("<II")

HOSTILE = {
    "not our protocol": (b"GET / HTTP/1.1\r\nHost: x\r\n\r\n", "version", 0),
    "unknown version": (raw(BEGIN, b"", version=9), "version 9", 0),
    "unknown kind": (raw(77, b""), "no frame of kind 77", 9),
    "flags": (raw(BEGIN, bytes(4), flags=4), "flags", 9),
    "absurd length": (raw(BEGIN, b"", length=2**32 - 1), "over the limit", 9),
    "payload cut short": (raw(BEGIN, b"\1"), "too short", 9),
    "payload too long": (raw(BEGIN, bytes(5)), "BEGIN_REQUEST", 9),
    "begin of nothing": (raw(BEGIN, bytes(4)), "at least 1", 9),
    "commit of nothing": (raw(COMMIT, bytes(16)), "empty", 9),
    "absurd counts": (raw(COMMIT, COUNTS.pack(2**32 - 1, 2**32 - 1)), "too short", 9),
    "offsets beyond": (raw(COMMIT, COUNTS.pack(1, 0) + struct.pack("<qqqIIII", 5, 4, 0, 0, 9, 0, 0)), "offsets", 9),
    "offsets falling": (
        raw(COMMIT, COUNTS.pack(2, 1) + struct.pack("<qqqqqqQIIIIII", 5, 6, 4, 4, 0, 0, 1, 0, 2, 1, 0, 0, 0)),
        "not decrease",
        9,
    ),
    "negative timestamps": (
        raw(COMMIT, COUNTS.pack(1, 0) + struct.pack("<qqqIIII", -5, -6, 0, 0, 0, 0, 0)),
        "negative",
        9,
    ),
    "more guards than cells": (
        raw(COMMIT, COUNTS.pack(1, 0) + struct.pack("<qqqIIII", 5, 4, 0, 0, 0, 1, 0)),
        "guards are a part",
        9,
    ),
    "a commit cut within a number": (raw(COMMIT, COUNTS.pack(1, 0) + bytes(33)), "too short", 9),
    "abort of nothing": (raw(ABORT, bytes(8)), "empty", 9),
    "an answer as a request": (raw(COMMIT_REPLY, COUNTS.pack(1, 0) + struct.pack("<qB", 0, 1)), "not a request", 9),
}


@pytest.mark.parametrize(("data", "reason", "request_id"), HOSTILE.values(), ids=HOSTILE)
def test_hostile_bytes_get_their_reason_and_others_go_on(
    run_house: RunHouse, data: bytes, reason: str, request_id: int
) -> None:
    async def scenario(house: House) -> None:
        await house.start_primary("a")
        good, bad = await house.call("a"), await house.call("a")
        before = await begin(good)
        bad.writer.write(data)
        received = await bad.receive()
        assert received is not None
        assert received[0] == request_id
        assert isinstance(received[1], BadRequest)
        assert reason in received[1].text
        assert await bad.receive() is None, "the connection stays open after a broken frame"
        assert isinstance(await good.ask(commit_request(before, [1])), CommitReply)
        await transact(await house.call("a"), [2])

    run_house(scenario)


def test_requests_before_a_broken_frame_take_effect_and_those_after_it_do_not(run_house: RunHouse) -> None:
    async def scenario(house: House) -> None:
        process = await house.start_primary("a")
        caller = await house.call("a")
        caller.writer.write(encode(BeginRequest(2), 1) + raw(99, b"") + encode(BeginRequest(5), 2))
        while await caller.receive() is not None:
            pass
        assert process.server.pipeline is not None
        assert process.server.pipeline.oracle.counts.begins == 2

    run_house(scenario)


def test_a_frame_cut_short_by_a_closing_client_does_nothing(run_house: RunHouse) -> None:
    async def scenario(house: House) -> None:
        process = await house.start_primary("a")
        bad, good = await house.call("a"), await house.call("a")
        bad.writer.write(encode(BeginRequest(1), 1)[:-1])
        await bad.writer.drain()
        await bad.close()
        await begin(good)
        await house.until(lambda: len(process.server.connections) == 1)
        assert process.server.receive_bytes == 0

    run_house(scenario)


@pytest.mark.parametrize("cells", [[0], [2**63], [2**64 - 1], [], [7] * 1000])
def test_any_64_bit_cell_id_is_legal(run_house: RunHouse, cells: list[int]) -> None:
    async def scenario(house: House) -> None:
        await house.start_primary("a")
        caller = await house.call("a")
        one, two = await begin(caller), await begin(caller)
        first = await caller.ask(commit_request(one, cells))
        second = await caller.ask(commit_request(two, cells))
        assert isinstance(first, CommitReply)
        assert isinstance(second, CommitReply)
        assert first.reasons.tolist() == [Reason.COMMITTED]
        assert second.reasons.tolist() == [Reason.CONFLICT if cells else Reason.COMMITTED]

    run_house(scenario)


def test_an_impossible_request_is_refused_and_its_connection_stays(run_house: RunHouse) -> None:
    async def scenario(house: House) -> None:
        await house.start_primary("a")
        caller = await house.call("a")
        far = 2**63 - 1
        for request in (
            commit_request(BeginReply(far, 1, far - 1, 0), [1]),
            AbortRequest(ids(far)),
            AbortRequest(ids(0)),
            OutcomeRequest(ids(0)),
            BeginRequest(10**6),
        ):
            assert isinstance(await caller.ask(request), BadRequest)
        await transact(caller, [1])

    run_house(scenario)


def test_a_request_about_more_transactions_than_the_protocol_has_is_refused(run_house: RunHouse) -> None:
    async def scenario(house: House) -> None:
        await house.start_primary("a", lookup_ids_max=1)
        caller = await house.call("a")
        start = (await begin(caller)).first_start_timestamp
        lives = np.full(LIVES_TRANSACTIONS_MAX + 1, start)
        beats = np.full(HEARTBEAT_TRANSACTIONS_MAX + 1, start)
        for beyond, most in (
            (LivesRequest(lives), LIVES_TRANSACTIONS_MAX),
            (HeartbeatRequest(beats, beats - 1), HEARTBEAT_TRANSACTIONS_MAX),
        ):
            refused = await caller.ask(beyond)
            assert isinstance(refused, BadRequest)
            assert refused.text == f"one request may name {most} transactions, not {most + 1}"
        assert isinstance(await caller.ask(LivesRequest(lives[1:])), LivesReply)
        assert isinstance(await caller.ask(HeartbeatRequest(beats[1:], beats[1:] - 1)), HeartbeatReply)

    run_house(scenario)


def test_commits_are_in_the_real_table_and_outcomes_come_back(run_house: RunHouse) -> None:
    async def scenario(house: House) -> None:
        await house.start_primary("a")
        caller = await house.call("a")
        start, time = await transact(caller, [1, 2])
        assert CommitTable(house.store, table_name("/pythia")).outcome(start) == Committed(time)
        aborted = await begin(caller)
        request = AbortRequest(ids(start, aborted.first_start_timestamp))
        reply = await caller.ask(request)
        assert reply == OutcomeReply(np.array([1, 2], "u1"), ids(time, 0))
        refused = await caller.ask(commit_request(aborted, [5]))
        assert isinstance(refused, CommitReply)
        assert refused.reasons.tolist() == [Reason.ABORTED]
        asked = await caller.ask(OutcomeRequest(request.start_timestamps))
        assert isinstance(asked, OutcomeReply)
        assert asked.statuses.tolist() == [OutcomeStatus.COMMITTED, OutcomeStatus.ABORTED]

    run_house(scenario)


def test_many_requests_on_one_connection_are_told_apart_by_their_ids(run_house: RunHouse) -> None:
    async def scenario(house: House) -> None:
        await house.start_primary("a")
        caller = await house.call("a")
        sent = [caller.send(BeginRequest(1)) for _ in range(200)]
        received = [await caller.receive() for _ in sent]
        assert [answer[0] for answer in received if answer is not None] == sent
        starts = [answer[1].first_start_timestamp for answer in received if answer is not None]  # type: ignore[attr-defined]
        assert len(set(starts)) == 200

    run_house(scenario)


def test_a_standby_names_the_primary_at_once_and_tells_its_state(run_house: RunHouse) -> None:
    async def scenario(house: House) -> None:
        primary = await house.start_primary("a")
        epoch = await house.until_primary("a")
        standby = await house.start("b")
        await house.until(lambda: standby.server.not_primary != NotPrimary())
        caller = await house.call("b")
        expected = NotPrimary(primary.server.address, epoch)
        request = CommitRequest(ids(5), ids(4), ids(0), np.array([0, 0], "<u4"), np.array([], "<u8"))
        for message in (BeginRequest(1), request, AbortRequest(ids(5)), OutcomeRequest(ids(5))):
            assert await caller.ask(message) == expected
        status = await caller.ask(StatusRequest())
        assert isinstance(status, StatusReply)
        assert (status.role, status.holder, status.primary_address) == (Role.STANDBY, "b", primary.server.address)

    run_house(scenario)


def test_the_primary_tells_its_state(run_house: RunHouse) -> None:
    async def scenario(house: House) -> None:
        await house.start_primary("a")
        caller = await house.call("a")
        _, time = await transact(caller, [1, 2])
        status = await caller.ask(StatusRequest())
        assert isinstance(status, StatusReply)
        assert status.role is Role.PRIMARY
        assert (status.begins, status.commits, status.conflict_map_entries, status.connections) == (1, 1, 2, 1)
        assert status.epoch == status.low_watermark < time <= status.durable_watermark <= status.last_timestamp
        assert status.last_timestamp < status.ceiling

    run_house(scenario)
