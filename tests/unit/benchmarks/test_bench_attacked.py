"""What attackers do to a server, and what is told of it."""

from __future__ import annotations

import asyncio
import contextlib
import random
from collections.abc import AsyncIterator

import pytest

from benchmarks import hostile_load
from benchmarks.attacked_command import attack_fields, notes_of
from benchmarks.hostile_load import Attackers, damaged
from wire import DrainRequest, Kind, encode


@contextlib.asynccontextmanager
async def listening(answer: bytes, seen: list[bytes]) -> AsyncIterator[tuple[str, int]]:
    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            seen.append(await reader.read(1_000))
            writer.write(answer)
        finally:
            writer.close()

    server = await asyncio.start_server(serve, "127.0.0.1", 0)
    async with server:
        yield server.sockets[0].getsockname()


def test_every_kind_of_attack_goes_on_and_is_counted(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(hostile_load, "SILENT_CONNECTIONS", 2)
    monkeypatch.setattr(hostile_load, "BYTE_INTERVAL_MS", 10)
    frames_seen: list[bytes] = []
    rest_seen: list[bytes] = []

    async def scenario() -> Attackers:
        async with listening(b"", frames_seen) as frames, listening(b"HTTP/1.1 422 No\r\n\r\n", rest_seen) as rest:
            attackers = Attackers(frames, rest)
            going = asyncio.create_task(attackers.go_on(20))
            wanted = {"frames_damaged", "rest_answers_4xx", "frames_connections_held", "rest_connections_ended"}
            async with asyncio.timeout(15):
                while not wanted <= attackers.counts.keys():
                    await asyncio.sleep(0.01)
            going.cancel()
            await asyncio.gather(going, return_exceptions=True)
            return attackers

    counts = asyncio.run(scenario()).counts
    assert not [name for name in counts if name.startswith("rest_answers") and name != "rest_answers_4xx"]
    assert any(b"X-Slow" in seen for seen in rest_seen)
    assert any(seen for seen in frames_seen)


def test_what_is_damaged_is_never_an_order() -> None:
    draw = random.Random(1)
    kinds = {damaged(draw)[5] for _ in range(20_000)}
    assert {Kind.BEGIN_REQUEST, Kind.STATUS_REQUEST} < kinds
    assert not kinds & {Kind.DRAIN_REQUEST, Kind.HANDOVER_REQUEST}
    assert encode(DrainRequest(1), 1)[5] == Kind.DRAIN_REQUEST


def test_what_attackers_did_is_summed_over_the_windows_and_told() -> None:
    answers = [{"frames_damaged": 10, "seconds": 2.0, "cpu_seconds": 0.5}, {"rest_answers_4xx": 3, "seconds": 2.0}]
    fields = attack_fields([answers[0], {**answers[1], "cpu_seconds": 0.3}])
    assert fields == {"attackers_cpu_share": 0.2, "attack": {"frames_damaged": 10, "rest_answers_4xx": 3}}
    assert notes_of(fields) == [
        "the attackers' CPU share: 0.20",
        "in all attacked windows: frames damaged 10, rest answers 4xx 3",
    ]
