"""Whoever means a server no good, for a while, in a process of its own: what he does, and how much of it.

``python -m benchmarks.hostile_load FRAMES REST`` (both ``host:port``) reads lines ``SECONDS`` and answers each with one
line of JSON: how many connections were held and given up, what was sent, and the answers to requests by their hundreds.
Four kinds go on at once: connections to either port that say nothing, or a byte at a time (slow loris); frames that are
damaged; requests that no document allows. Each has a pace, so that what is measured is the server and not how busy the
machine is with this process.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import random
import resource
import sys
import time
from collections import Counter
from collections.abc import Callable, Coroutine, Sequence
from typing import Any, Final

from benchmarks.load_loops import CELL_BITS
from wire import BeginRequest, Greeting, Kind, StatusRequest, encode

SILENT_CONNECTIONS: Final = 300
"""To each of the two ports."""
DAMAGED_PER_SECOND: Final = 200
REQUESTS_PER_SECOND: Final = 100
BYTE_INTERVAL_MS: Final = 500
AGAIN_MS: Final = 100
"""Between the end of a connection and the next one."""
ANSWER_MS_MAX: Final = 5_000
DESCRIPTORS: Final = 4_096
_HEAD: Final = b"POST /v1/oracle/begin HTTP/1.1\r\nHost: 127.0.0.1\r\nX-Slow: "
_PATHS: Final = (
    "/v1/oracle/begin",
    "/v1/oracle/commit",
    "/v1/oracle/commits",
    "/v1/oracle/outcomes",
    "/v1/oracle/heartbeat",
    "/v1/transactions",
    "/v1/transactions/{}/commit",
    "/v1/transactions/{}/tables/{}/rows",
    "/v1/snapshots/{}/tables/{}/rows/{}",
    "/v1/timestamps/{}",
    "/{}",
)
_METHODS: Final = ("GET", "POST", "PUT", "DELETE", "PATCH", "TRACE")
_KIND_AT: Final = 5
"""Where a frame has its kind."""
_NO_KIND: Final = 0
_ORDERS: Final = frozenset({Kind.DRAIN_REQUEST, Kind.HANDOVER_REQUEST})
_Address = tuple[str, int]


class Attackers:
    """All of them, against the two ports of one oracle. Belongs to one event loop."""

    def __init__(self, frames: _Address, rest: _Address) -> None:
        self.counts: Counter[str] = Counter()
        self._frames = frames
        self._rest = rest
        self._draw = random.Random()

    async def go_on(self, seconds: float) -> None:
        """For so long."""
        kinds = [
            *(self._hold(self._frames, "frames", b"") for _ in range(SILENT_CONNECTIONS)),
            *(self._hold(self._rest, "rest", _HEAD) for _ in range(SILENT_CONNECTIONS)),
            self._paced(DAMAGED_PER_SECOND, self._damaged_frames),
            self._paced(REQUESTS_PER_SECOND, self._odd_request),
        ]
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(seconds):
                await asyncio.gather(*kinds)

    async def _hold(self, address: _Address, port: str, head: bytes) -> None:
        """A connection that is held as long as the server has patience, and then another."""
        while True:
            with contextlib.suppress(OSError):
                reader, writer = await asyncio.open_connection(*address)
                self.counts[f"{port}_connections_held"] += 1
                try:
                    await self._say_little(reader, writer, head)
                except OSError:
                    pass  # it was ended, too
                finally:
                    writer.close()
                self.counts[f"{port}_connections_ended"] += 1
            await asyncio.sleep(AGAIN_MS / 1000)

    async def _say_little(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, head: bytes) -> None:
        """A byte now and then after ``head``, nothing without it; until the other end closes."""
        writer.write(head)
        while not reader.at_eof():
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(BYTE_INTERVAL_MS / 1000):
                    await reader.read(1)
            writer.write(b"x" if head else b"")

    async def _paced(self, per_second: int, act: Callable[[], Coroutine[Any, Any, None]]) -> None:
        """What ``act`` does, that often; what takes long does not keep the others waiting."""
        begun: set[asyncio.Task[None]] = set()
        due_s = time.monotonic()
        try:
            while True:
                task = asyncio.create_task(act())
                begun.add(task)
                task.add_done_callback(begun.discard)
                due_s += 1 / per_second
                await asyncio.sleep(max(0.0, due_s - time.monotonic()))
        finally:
            for task in begun:
                task.cancel()

    async def _damaged_frames(self) -> None:
        """A hello, and then requests with some bytes changed."""
        frames = damaged(self._draw)
        await self._ask(self._frames, Greeting("").first + bytes(frames), ends=True)
        self.counts["frames_damaged"] += 1

    async def _odd_request(self) -> None:
        path = self._draw.choice(_PATHS).format(*(self._odd_text() for _ in range(3)))
        body = self._odd_body()
        head = f"{self._draw.choice(_METHODS)} {path} HTTP/1.1\r\nHost: h\r\nContent-Type: application/json\r\n"
        request = f"{head}Content-Length: {len(body)}\r\nConnection: close\r\n\r\n".encode() + body
        answer = await self._ask(self._rest, request, ends=False)
        status = answer[9:10].decode("latin-1") or "none"
        self.counts[f"rest_answers_{status}xx" if status.isdigit() else "rest_answers_none"] += 1

    def _odd_text(self) -> str:
        return self._draw.choice(["0", "-1", "x" * 300, "%ff", "%00", str(self._draw.getrandbits(CELL_BITS)), "a/b"])

    def _odd_body(self) -> bytes:
        value: object = self._draw.choice([None, [], -1, "x", {"count": -1}, {"count": 10**30}, {"commits": [{}] * 50}])
        body = json.dumps({"start_timestamp": value, "cell_ids": ["1"] * 5} if self._draw.random() < 0.5 else value)
        cut = self._draw.randrange(len(body) + 1) if self._draw.random() < 0.3 else len(body)
        return body[:cut].encode() + self._draw.choice([b"", b"\xff", b"}" * 10])

    async def _ask(self, address: _Address, said: bytes, *, ends: bool) -> bytes:
        """What comes back, until the other end closes, but not for long. ``ends``: it is told that nothing follows."""
        answer = b""
        with contextlib.suppress(OSError, TimeoutError):
            async with asyncio.timeout(ANSWER_MS_MAX / 1000):
                reader, writer = await asyncio.open_connection(*address)
                try:
                    writer.write(said)
                    if ends:
                        writer.write_eof()
                    answer = await reader.read(-1)
                finally:
                    writer.close()
        return answer


def damaged(draw: random.Random) -> bytearray:
    """Two requests with some bytes changed, but not into an order: without tokens anybody may give those."""
    begin = encode(BeginRequest(draw.randrange(1, 5)), 1)
    frames = bytearray(begin + encode(StatusRequest(), 2))
    for _ in range(draw.randrange(1, 6)):
        frames[draw.randrange(len(frames))] = draw.randrange(256)
    for kind_at in (_KIND_AT, len(begin) + _KIND_AT):
        if frames[kind_at] in _ORDERS:
            frames[kind_at] = _NO_KIND
    return frames


def main(arguments: Sequence[str], say: Callable[[str], None]) -> None:
    """Serve until standard input ends."""
    _, descriptors_max = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (min(DESCRIPTORS, descriptors_max), descriptors_max))
    frames, rest = (_address(each) for each in arguments)
    for line in sys.stdin:
        attackers = Attackers(frames, rest)
        cpu_seconds, began = time.process_time(), time.monotonic()
        asyncio.run(attackers.go_on(float(line)))
        seconds, cpu_seconds = time.monotonic() - began, time.process_time() - cpu_seconds
        say(json.dumps({**attackers.counts, "seconds": seconds, "cpu_seconds": cpu_seconds}))


def _address(text: str) -> _Address:
    host, _, port = text.rpartition(":")
    return host, int(port)


if __name__ == "__main__":
    main(sys.argv[1:], lambda line: print(line, flush=True))
