"""What callers of a server ask, well formed or not, and what the tests of several subjects send it."""

from __future__ import annotations

import struct
from typing import TYPE_CHECKING

import numpy as np

from wire import BeginReply, BeginRequest, CommitReply, CommitRequest, Reason

if TYPE_CHECKING:
    from tests.unit.tso.conftest import Caller

COMMIT = 3
"""The kind of a commit's frame, for `raw`."""


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
