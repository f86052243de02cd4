"""The front door, over real sockets: whatever one connection sends, it hurts only itself."""

from __future__ import annotations

import asyncio
import socket
import struct
from typing import TYPE_CHECKING

import numpy as np
import pytest

from commit_table import CommitTable, Committed, table_name
from tso.server import Connection
from wire import (
    AbortRequest,
    BadRequest,
    BeginReply,
    BeginRequest,
    CommitReply,
    CommitRequest,
    NotPrimary,
    OutcomeReply,
    OutcomeRequest,
    OutcomeStatus,
    Overloaded,
    Reason,
    Role,
    StatusReply,
    StatusRequest,
    encode,
)

if TYPE_CHECKING:
    from tests.unit.tso.conftest import Caller, House, RunHouse


def ids(*timestamps: int) -> np.ndarray[tuple[int], np.dtype[np.int64]]:
    return np.array(timestamps, "<i8")


def commit_request(begun: BeginReply, cells: list[int]) -> CommitRequest:
    offsets, flat = np.array([0, len(cells)], "<u4"), np.array(cells, "<u8")
    return CommitRequest(ids(begun.first_start_timestamp), ids(begun.snapshot), ids(0), offsets, flat)


async def begin(caller: Caller) -> BeginReply:
    begun = await caller.ask(BeginRequest(1))
    assert isinstance(begun, BeginReply)
    return begun


async def transact(caller: Caller, cells: list[int]) -> tuple[int, int]:
    """Begin and commit; returns start and commit timestamp."""
    begun = await begin(caller)
    reply = await caller.ask(commit_request(begun, cells))
    assert isinstance(reply, CommitReply)
    assert reply.reasons.tolist() == [Reason.COMMITTED]
    return begun.first_start_timestamp, int(reply.commit_timestamps[0])


def raw(kind: int, payload: bytes, *, version: int = 1, flags: int = 0, length: int | None = None) -> bytes:
    return struct.pack("<IBBHQ", len(payload) if length is None else length, version, kind, flags, 9) + payload


BEGIN, COMMIT, ABORT, COMMIT_REPLY = 1, 3, 5, 4
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
    "commit of nothing": (raw(COMMIT, bytes(12)), "empty", 9),
    "absurd counts": (raw(COMMIT, COUNTS.pack(2**32 - 1, 2**32 - 1)), "too short", 9),
    "offsets beyond": (raw(COMMIT, COUNTS.pack(1, 0) + struct.pack("<qqqII", 5, 4, 0, 0, 9)), "offsets", 9),
    "offsets falling": (
        raw(COMMIT, COUNTS.pack(2, 1) + struct.pack("<qqqqqqQIII", 5, 6, 4, 4, 0, 0, 1, 0, 2, 1)),
        "not decrease",
        9,
    ),
    "negative timestamps": (raw(COMMIT, COUNTS.pack(1, 0) + struct.pack("<qqqII", -5, -6, 0, 0, 0)), "negative", 9),
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
        assert (status.begins, status.commits, status.conflict_map_entries, status.connections) == (1, 1, 3, 1)
        assert status.epoch == status.low_watermark < time <= status.durable_watermark <= status.last_timestamp
        assert status.last_timestamp < status.ceiling

    run_house(scenario)


def test_a_connection_over_the_limit_is_told_and_closed(run_house: RunHouse) -> None:
    async def scenario(house: House) -> None:
        await house.start_primary("a", connections_max=1)
        first = await house.call("a")
        await begin(first)
        second = await house.call("a")
        assert await second.receive() == (0, Overloaded(20))
        assert await second.receive() is None
        await first.close()
        await house.until(lambda: not house.processes["a"].server.connections)
        await begin(await house.call("a"))

    run_house(scenario)


def test_a_connection_that_never_reads_is_dropped_and_others_go_on(run_house: RunHouse) -> None:
    async def scenario(house: House) -> None:
        process = await house.start_primary("a", connection_write_bytes_max=50_000)
        good, deaf = await house.call("a"), await house.call("a")
        await begin(good)
        deaf_transport = deaf.writer.transport
        assert isinstance(deaf_transport, asyncio.ReadTransport)
        deaf_transport.pause_reading()
        while len(process.server.connections) == 2 and not deaf.writer.is_closing():
            deaf.writer.write(encode(StatusRequest(), 1) * 1000)
            await begin(good)
        await house.until(lambda: len(process.server.connections) == 1)
        await transact(good, [1])
        deaf_transport.resume_reading()
        await deaf.close()

    run_house(scenario)


def test_too_many_unanswered_requests_of_one_connection_are_refused(run_house: RunHouse) -> None:
    async def scenario(house: House) -> None:
        await house.start_primary("a", connection_requests_max=3)
        caller = await house.call("a")
        caller.writer.write(b"".join(encode(BeginRequest(1), number) for number in range(5)))
        answers = dict([await caller.receive() or (0, BadRequest("closed")) for _ in range(5)])
        assert [number for number, answer in answers.items() if isinstance(answer, Overloaded)] == [3, 4]
        await begin(caller)

    run_house(scenario)


def test_frames_that_are_never_completed_are_bounded_in_bytes(run_house: RunHouse) -> None:
    async def scenario(house: House) -> None:
        process = await house.start_primary("a", frame_bytes_max=20_000, receive_bytes_max=20_000)
        one, two, good = await house.call("a"), await house.call("a"), await house.call("a")
        half = raw(COMMIT, bytes(12_000), length=15_000)
        one.writer.write(half)
        await house.until(lambda: process.server.receive_bytes == len(half))
        two.writer.write(half[:-100])
        assert await one.receive() == (0, Overloaded(20)), "who holds most goes, whoever sent last"
        assert await one.receive() is None
        assert process.server.receive_bytes == len(half) - 100
        await transact(good, [1])
        await two.close()
        await house.until(lambda: process.server.receive_bytes == 0)

    run_house(scenario)


def test_whoever_floods_the_server_with_halves_of_frames_harms_nobody_else(run_house: RunHouse) -> None:
    """The hostile ones do not read, so that each lingers; what it held must not count against others meanwhile."""

    async def scenario(house: House) -> None:
        limits = {"receive_bytes_max": 2 * 2**20, "frame_bytes_max": 2**20, "linger_ms_max": 60_000}
        process = await house.start_primary("a", **limits)
        server, good = process.server, await house.call("a")
        sent, hostile = 0, [unread_socket(server.address) for _ in range(6)]
        questions, half = encode(StatusRequest(), 1) * 1000, raw(COMMIT, bytes(1_000_000), length=1_040_000)
        for each in hostile:
            pushing = asyncio.create_task(push(each, [questions] * 20 + [half]))
            while not pushing.done():
                await transact(good, [sent])
                sent += 1
        await house.until(lambda: any(connection.closing for connection in server.connections))
        for _ in range(50):
            await transact(good, [1])
        await transact(await house.call("a"), [2])
        assert 0 < server.receive_bytes <= server.limits.receive_bytes_max
        assert server.receive_bytes == sum(connection.held_bytes for connection in server.connections)
        for each in hostile:
            each.close()
        await house.until(lambda: server.receive_bytes == 0)

    run_house(scenario)


def unread_socket(address: str) -> socket.socket:
    """A connection that takes in next to nothing of what it is sent."""
    host, _, port = address.rpartition(":")
    opened = socket.socket()
    opened.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
    opened.connect((host, int(port)))
    opened.setblocking(False)
    return opened


async def push(to: socket.socket, chunks: list[bytes]) -> None:
    loop = asyncio.get_running_loop()
    try:
        for chunk in chunks:
            await loop.sock_sendall(to, chunk)
    except ConnectionError:
        return  # turned away in the middle of it


def test_the_longest_idle_connection_makes_room_and_none_that_works_does(
    run_house: RunHouse, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def scenario(house: House) -> None:
        process = await house.start_primary("a", connections_max=4, connection_idle_ms_min=1)
        pipeline, swallowed = process.server.pipeline, list[object]()
        assert pipeline is not None
        owed, sending, oldest, newer = [await house.call("a") for _ in range(4)]
        with monkeypatch.context() as held:
            held.setattr(pipeline, "submit", swallowed.append)
            owed.send(BeginRequest(1))
            await house.until(lambda: bool(swallowed))
        sending.writer.write(encode(BeginRequest(1), 1)[:-1])
        await house.until(lambda: process.server.receive_bytes > 0)
        for idle in (oldest, newer):
            await begin(idle)
            await outlast_ms(house, 1)
        newcomer = await house.call("a")
        await begin(newcomer)
        assert await oldest.receive() is None
        await begin(newer)
        sending.writer.write(encode(BeginRequest(1), 1)[-1:])
        assert isinstance((await sending.receive() or (0, None))[1], BeginReply)
        pipeline.submit(swallowed[0])  # type: ignore[arg-type]
        assert isinstance((await owed.receive() or (0, None))[1], BeginReply)

    run_house(scenario)


async def outlast_ms(house: House, milliseconds: int) -> None:
    loop = asyncio.get_running_loop()
    until_s = loop.time() + (milliseconds + 1) / 1000
    await house.until(lambda: loop.time() > until_s)


def test_idle_connections_that_fill_every_place_keep_nobody_out(run_house: RunHouse) -> None:
    async def scenario(house: House) -> None:
        process = await house.start_primary("a", connections_max=5, connection_idle_ms_min=1)
        for _ in range(20):
            await house.call("a")
            await house.until(lambda: len(process.server.connections) <= 5)
            await outlast_ms(house, 1)
        await transact(await house.call("a"), [1])

    run_house(scenario)


def test_clients_whose_host_has_vanished_are_noticed(run_house: RunHouse, monkeypatch: pytest.MonkeyPatch) -> None:
    kept_alive: list[int] = []
    made = Connection.connection_made

    def look(self: Connection, transport: asyncio.BaseTransport) -> None:
        accepted = transport.get_extra_info("socket")
        kept_alive.append(accepted.getsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE))
        made(self, transport)

    async def scenario(house: House) -> None:
        await house.start_primary("a")
        await begin(await house.call("a"))
        assert kept_alive == [1]

    monkeypatch.setattr(Connection, "connection_made", look)
    run_house(scenario)


def test_frames_that_are_never_completed_are_bounded_in_time(run_house: RunHouse) -> None:
    async def scenario(house: House) -> None:
        await house.start_primary("a", partial_frame_ms_max=1)
        slow, good = await house.call("a"), await house.call("a")
        slow.writer.write(encode(BeginRequest(1), 1)[:-1])
        received = await slow.receive()
        assert received is not None
        assert isinstance(received[1], BadRequest)
        assert await slow.receive() is None
        await transact(good, [1])

    run_house(scenario)
