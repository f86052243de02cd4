"""The closed loops by which one oracle is driven, and what they count.

Invariant: a transaction that ends after the window does not count, and nothing is asked for after it.
"""

from __future__ import annotations

import itertools
import json
import random
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from http.client import HTTPConnection, HTTPException
from typing import Any

import numpy as np
import numpy.typing as npt

from client.connection.async_oracle import AsyncOracleClient
from client.connection.deadline import Deadline
from client.connection.oracle import OracleClient
from client.connection.tickets import Begun
from commit_table.timestamps import milliseconds_of
from wire import CommitRequest

CELL_BITS = 40
"""Cells are drawn from so many bits' worth: conflicts are rare, and every cell is new to the conflict map."""
BATCHES = 4
"""The fronts with batches have their transactions in flight in so many of them, where there are enough."""
BATCH_TRANSACTIONS_MIN = 64
"""Of a batch that commits: who has few transactions at once asks for all of them together."""
LATENCIES_MAX = 500_000
TIMED_EVERY = 8
"""Of a task's transactions one in so many is timed: that of each took a sixteenth of the core."""
DRAWN_TOGETHER = 1_024
PERCENTILES = (50, 99)


@dataclass
class Tally:
    """What one window counts; times are in seconds, one entry a transaction, or a batch of them.

    ``commit`` stays empty where transactions are only begun. ``ahead_ms``: see ``benchmarks.sides.Window``.
    """

    ends_at: float
    committed: int = 0
    aborted: int = 0
    times: list[tuple[float, float, float]] = field(default_factory=list)
    """When it was asked for, begun and ended; of transactions that are only begun the last two are the same."""
    ahead_ms: float | None = None

    def add(self, began: float, begun: float, ended: float, committed: int, asked: int) -> None:
        """Transactions that were asked for together have ended; those that ended too late do not count."""
        if ended > self.ends_at:
            return
        self.committed += committed
        self.aborted += asked - committed
        if len(self.times) < LATENCIES_MAX:
            self.times.append((began, begun, ended))

    def add_begin(self, began: float, ended: float, begun: Begun, wall_seconds: float) -> None:
        """Transactions were begun together, and nothing more is done with them."""
        if ended > self.ends_at:
            return
        self.committed += begun.transactions
        last = milliseconds_of(begun.first_start_timestamp + begun.transactions - 1)
        ahead_ms = last - 1_000 * wall_seconds
        self.ahead_ms = ahead_ms if self.ahead_ms is None else max(self.ahead_ms, ahead_ms)
        if len(self.times) < LATENCIES_MAX:
            self.times.append((began, ended, ended))

    def to_fields(self, seconds: float, cpu_seconds: float) -> dict[str, object]:
        """The answer to whoever asked for the window."""
        began, begun, ended = np.array(self.times, np.float64).reshape(-1, 3).T
        commit = ended - begun
        return {
            "transactions": self.committed,
            "aborted": self.aborted,
            "seconds": seconds,
            "whole_us": percentiles_us(ended - began),
            "begin_us": percentiles_us(begun - began),
            "commit_us": percentiles_us(commit) if commit.any() else None,
            "cpu_seconds": cpu_seconds,
            "ahead_ms": self.ahead_ms,
        }


def percentiles_us(seconds: npt.NDArray[np.float64]) -> list[float]:
    """The 50th and the 99th, in microseconds; zeros where nothing was measured."""
    return [float(each) * 1e6 for each in np.percentile(seconds, PERCENTILES)] if seconds.size else [0.0, 0.0]


async def transactions(client: AsyncOracleClient, write_sets: Iterator[Sequence[int]], tally: Tally) -> None:
    """One transaction after the other. What it does itself is as little as can be, since it is measured along."""
    now, times, ends_at = time.perf_counter, tally.times, tally.ends_at
    began = begun_at = now()
    asked = aborted = 0
    while True:
        timed = asked % TIMED_EVERY == TIMED_EVERY - 1
        if timed:
            began = now()
        begun = await client.begin()
        if timed:
            begun_at = now()
        decision = await client.commit(begun.first_start_timestamp, begun.snapshot, next(write_sets))
        if (ended := now()) > ends_at:
            break
        asked += 1
        if not decision.commit_timestamp:
            aborted += 1
        if timed and len(times) < LATENCIES_MAX:
            times.append((began, begun_at, ended))
    tally.committed += asked - aborted
    tally.aborted += aborted


def drawn_write_sets(cells: int, draw: np.random.Generator) -> Iterator[Sequence[int]]:
    """Write sets without end. Many are drawn together: one by one they would cost as much as a future each."""
    while True:
        keys = iter(draw.integers(0, 2**CELL_BITS, DRAWN_TOGETHER * cells, np.uint64).tolist())
        yield from zip(*[keys] * cells, strict=True) if cells else itertools.repeat((), DRAWN_TOGETHER)


def in_batches(in_flight: int) -> tuple[int, int]:
    """In how many batches so many transactions are in flight, and how many are in each."""
    count = max(1, min(BATCHES, in_flight // BATCH_TRANSACTIONS_MIN))
    return count, in_flight // count


def drawn_batches(size: int, cells: int, draw: np.random.Generator) -> Iterator[npt.NDArray[np.uint64]]:
    """The cells of batches without end, of ``size`` write sets each; small ones are drawn together, too."""
    while True:
        yield from draw.integers(0, 2**CELL_BITS, (max(1, DRAWN_TOGETHER // size), size * cells), np.uint64)


async def batches(client: AsyncOracleClient, size: int, cells: int, tally: Tally, draw: np.random.Generator) -> None:
    """One batch of transactions after the other."""
    now, drawn = time.perf_counter, drawn_batches(size, cells, draw)
    offsets, none = np.arange(0, (size + 1) * cells, max(cells, 1), dtype=np.uint32), np.zeros(size, np.int64)
    while (began := now()) < tally.ends_at:
        begun = await client.begin_many(size)
        begun_at = now()
        starts = np.arange(begun.first_start_timestamp, begun.first_start_timestamp + size)
        request = CommitRequest(starts, np.full(size, begun.snapshot), none, offsets[: size + 1], next(drawn))
        decisions = await client.commit_many(request)
        tally.add(began, begun_at, now(), int(np.count_nonzero(decisions.reply.commit_timestamps)), size)


async def begins(client: AsyncOracleClient, size: int, tally: Tally) -> None:
    """One begin of ``size`` transactions after the other, of which none ever commits."""
    now = time.perf_counter
    while (began := now()) < tally.ends_at:
        begun = await client.begin_many(size)
        tally.add_begin(began, now(), begun, time.time())


def transactions_over_rest(connection: HTTPConnection, cells: int, tally: Tally) -> None:
    """One transaction after the other, in a thread of its own. One that is refused, or loses its connection, counts as
    aborted.
    """
    draw, now = random.getrandbits, time.perf_counter
    while (began := now()) < tally.ends_at:
        begun_at, decided = began, dict[str, Any]()
        try:
            begun = ask_rest(connection, "/v1/oracle/begin", {})
            begun_at = now()
            if "snapshot" in begun:
                keys, (start,) = [str(draw(CELL_BITS)) for _ in range(cells)], begun["start_timestamps"]
                asked = {"start_timestamp": start, "snapshot": begun["snapshot"], "cell_ids": keys}
                decided = ask_rest(connection, "/v1/oracle/commit", asked)
        except (HTTPException, OSError):
            connection.close()  # the next request opens it again
        tally.add(began, begun_at, now(), "commit_timestamp" in decided, 1)


def ask_rest(connection: HTTPConnection, path: str, body: object) -> dict[str, Any]:
    """The answer, also where it is a problem."""
    connection.request("POST", path, json.dumps(body), {"Content-Type": "application/json"})
    answer: dict[str, Any] = json.loads(connection.getresponse().read())
    return answer


def transactions_of_thread(client: OracleClient, cells: int, tally: Tally, deadline_ms: int) -> None:
    """One transaction after the other, in a thread of its own."""
    draw, now = random.getrandbits, time.perf_counter
    while (began := now()) < tally.ends_at:
        begun = client.begin()
        begun_at = now()
        keys = np.array([draw(CELL_BITS) for _ in range(cells)], np.uint64)
        deadline = Deadline(deadline_ms)
        decision = client.commit(begun.first_start_timestamp, begun.snapshot, keys, None, deadline)
        tally.add(began, begun_at, now(), decision.commit_timestamp > 0, 1)
