"""Our side with a conflict map that was filled before, through the oracle itself.

Invariant: no window begins with a map that is fuller than was asked for by more than ``DRIFT_PERCENT``: every window
enters cells, so the oracle is started anew when they have become too many. A full map stays full.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from typing import Final

import numpy as np

from benchmarks.our_load import directory_of, settings_of
from benchmarks.our_oracle import OurOracle
from benchmarks.sides import Side, SideError, Window
from benchmarks.wrapped_side import WrappedSide
from client.connection.async_oracle import AsyncOracleClient
from fleet import NoAnswer, ask_status
from wire import CommitRequest

DRIFT_PERCENT: Final = 5.0
COMMITS_PER_REQUEST: Final = 32
COMMIT_CELLS_MAX: Final = 1_000
REQUESTS_PER_FILL_MAX: Final = 100_000
STATUS_MS_MAX: Final = 10_000


class FilledSide(WrappedSide[Side]):
    """``percent`` of ``entries`` of the oracle's map are in use before each window."""

    def __init__(self, side: Side, oracle: OurOracle, percent: int, entries: int) -> None:
        super().__init__(side, f"{side.name}, map {percent} % full")
        self._oracle = oracle
        self._percent = percent
        self._entries = entries
        self._percent_after_max = 0.0

    @property
    def configuration(self) -> Mapping[str, str | int | bool]:
        """See ``Side``."""
        after = round(self._percent_after_max)
        return {**super().configuration, "map_percent": self._percent, "map_percent_after_max": after}

    def window(self, in_flight: int, cells: int, seconds: float, connections: int) -> Window:
        """See ``Side``. Raises ``SideError`` where the map does not get that full."""
        if self._percent_now() > self._percent + DRIFT_PERCENT:
            self.stop()
            self.start()
        fill(self._oracle.address, self._entries * self._percent // 100)
        window = super().window(in_flight, cells, seconds, connections)
        self._percent_after_max = max(self._percent_after_max, self._percent_now())
        return window

    def _percent_now(self) -> float:
        return 100 * entries_of(self._oracle.address) / self._entries


def entries_of(address: str) -> int:
    """How many cells the oracle's conflict map remembers. Raises ``SideError``."""
    try:
        return ask_status(address, STATUS_MS_MAX).conflict_map_entries
    except NoAnswer as error:
        raise SideError(f"the oracle does not say how full its conflict map is: {error}") from error


def fill(address: str, entries: int) -> None:
    """Commit cells until the conflict map remembers so many. Raises ``SideError`` where it never does."""
    asyncio.run(_fill(address, entries))


async def _fill(address: str, entries: int) -> None:
    settings = settings_of(address, "")
    client, draw = AsyncOracleClient(directory_of(settings), settings), np.random.default_rng()
    try:
        for _ in range(REQUESTS_PER_FILL_MAX):
            missing = entries - entries_of(address)
            if missing <= 0:
                return
            await _commit(client, min(COMMIT_CELLS_MAX, missing), draw)
    finally:
        client.close()
    raise SideError(f"the conflict map does not hold {entries:,} cells after {REQUESTS_PER_FILL_MAX:,} requests")


async def _commit(client: AsyncOracleClient, cells: int, draw: np.random.Generator) -> None:
    count = COMMITS_PER_REQUEST if cells == COMMIT_CELLS_MAX else 1
    begun = await client.begin_many(count)
    starts = np.arange(begun.first_start_timestamp, begun.first_start_timestamp + count)
    offsets = np.arange(0, count * cells + 1, cells, dtype=np.uint32)
    keys = draw.integers(0, 2**64, count * cells, np.uint64)
    snapshots, none = np.full(count, begun.snapshot), np.zeros(count, np.int64)
    await client.commit_many(CommitRequest(starts, snapshots, none, offsets, keys))
