"""What callers of a server ask, well formed or not, and what the tests of several subjects send it."""

from __future__ import annotations

import asyncio
import contextlib
import struct

import numpy as np

from wire import (
    BeginReply,
    BeginRequest,
    CommitReply,
    CommitRequest,
    FrameDecoder,
    HelloRequest,
    Message,
    Reason,
    decode,
    encode,
)

COMMIT = 3
"""The kind of a commit's frame, for `raw`."""


class Caller:
    """A client that can also send what no client should."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._reader = reader
        self._decoder = FrameDecoder()
        self._waiting: list[tuple[int, Message]] = []
        self.writer = writer
        self.requests = 0

    @classmethod
    async def connect(cls, address: str) -> Caller:
        """Without a hello yet."""
        host, _, port = address.rpartition(":")
        return cls(*await asyncio.open_connection(host, int(port)))

    async def hello(self, token: str = "") -> tuple[int, Message] | None:
        """Say hello; what came first, as ``receive`` gives it."""
        self.writer.write(encode(HelloRequest(token), 0))
        return await self.receive()

    def send(self, message: Message) -> int:
        self.requests += 1
        self.writer.write(encode(message, self.requests))
        return self.requests

    async def receive(self) -> tuple[int, Message] | None:
        """The next answer with its request id; ``None``: the connection was closed."""
        while not self._waiting:
            try:
                data = await self._reader.read(65_536)
            except ConnectionError:
                return None
            if not data:
                return None
            self._waiting += [(frame.request_id, decode(frame)) for frame in self._decoder.feed(data)]
        return self._waiting.pop(0)

    async def ask(self, message: Message) -> Message:
        request_id = self.send(message)
        received = await self.receive()
        assert received is not None, "the connection was closed"
        assert received[0] == request_id
        return received[1]

    async def close(self) -> None:
        self.writer.close()
        with contextlib.suppress(ConnectionError):
            await self.writer.wait_closed()


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
