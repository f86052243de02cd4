"""Connections to the front door: how many there may be, and what each may hold, leave unread or unfinished."""

from __future__ import annotations

import asyncio
import socket
from typing import TYPE_CHECKING

import pytest

from tests.unit.tso.calling import COMMIT, begin, raw, transact
from tso.serving.connection import Connection
from wire import BadRequest, BeginReply, BeginRequest, HelloRequest, Overloaded, StatusRequest, encode

if TYPE_CHECKING:
    from tests.unit.tso.conftest import House, RunHouse


def test_a_connection_over_the_limit_is_told_and_closed(run_house: RunHouse) -> None:
    async def scenario(house: House) -> None:
        await house.start_primary("a", connections_max=1)
        first = await house.call("a")
        await begin(first)
        second = await house.knock("a")
        assert await second.hello() == (0, Overloaded(20))
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
            pushing = asyncio.create_task(push(each, [questions] * 300 + [half]))
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
    opened.sendall(encode(HelloRequest(), 0))
    opened.setblocking(False)
    return opened


async def push(to: socket.socket, chunks: list[bytes]) -> None:
    loop = asyncio.get_running_loop()
    try:
        for chunk in chunks:
            await loop.sock_sendall(to, chunk)
    except ConnectionError:
        return  # turned away in the middle of it


@pytest.mark.interpreted
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
