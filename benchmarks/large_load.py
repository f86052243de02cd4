"""Commits of very many cells, one for each line on standard input, in a process of its own.

``python -m benchmarks.large_load HOST:PORT CELLS`` answers each line with one line of JSON. Before each such commit
another transaction begins, and after it that one commits: with a snapshot from before.
"""

from __future__ import annotations

import asyncio
import json
import random
import sys
import time
from collections.abc import Callable

import numpy as np

from benchmarks.load_loops import CELL_BITS
from benchmarks.our_load import directory_of, settings_of
from client.connection.async_oracle import AsyncOracleClient
from wire import Reason
from wire.columns import Cells

DEADLINE_MS = 240_000
OLD_CELLS = 2


async def commit(address: str, keys: Cells) -> dict[str, object]:
    """One large commit, and the small one that began before it."""
    settings = settings_of(address, "")
    client = AsyncOracleClient(directory_of(settings), settings)
    try:
        return await _commit(client, keys)
    finally:
        client.close()


async def _commit(client: AsyncOracleClient, keys: Cells) -> dict[str, object]:
    old, begun = await client.begin(), await client.begin()
    cpu_seconds, began = time.process_time(), time.perf_counter()
    decision = await client.commit_large(begun.first_start_timestamp, begun.snapshot, keys, deadline_ms=DEADLINE_MS)
    seconds, cpu_seconds = time.perf_counter() - began, time.process_time() - cpu_seconds
    old_keys = [random.getrandbits(CELL_BITS) for _ in range(OLD_CELLS)]
    after = await client.commit(old.first_start_timestamp, old.snapshot, old_keys)
    return {
        "seconds": seconds,
        "cpu_seconds": cpu_seconds,
        "reason": Reason(decision.reason).name,
        "reason_of_older": Reason(after.reason).name,
    }


def main(address: str, cells: int, say: Callable[[str], None]) -> None:
    """Serve until standard input ends. Keys are drawn beforehand: who asks for a commit wants it to begin at once."""
    draw = np.random.default_rng()
    keys = draw.integers(0, 2**64, cells, np.uint64)
    for _ in sys.stdin:
        say(json.dumps(asyncio.run(commit(address, keys))))
        keys = draw.integers(0, 2**64, cells, np.uint64)


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]), lambda line: print(line, flush=True))
