"""Commits recorded as an oracle records them, for tests that play one: an oracle of any epoch, and however late."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping

import numpy as np

from commit_table.recorder import CommitRecorder
from store import CellStore
from store.bulk import BlockingPutter


def record(store: CellStore, table: str, commits: Mapping[int, int], epoch: int) -> None:
    """Record commit timestamps by start timestamps, as of ``epoch``. Not for use in a running event loop."""
    starts = np.fromiter(commits.keys(), np.int64, len(commits))
    times = np.fromiter(commits.values(), np.int64, len(commits))
    asyncio.run(CommitRecorder(BlockingPutter(store), table).record(starts, times, epoch))
