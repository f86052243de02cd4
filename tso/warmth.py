"""What a standby does beforehand, so that its first commit as primary takes no longer than the next.

A kernel is compiled when it is first called, or read from a cache beside the source; either takes too long for a client
that waits. So everything that a primary runs is run once, on an oracle that nobody asks.
"""

from __future__ import annotations

import numpy as np

from kernels import compile_all
from tso.oracle import Decided, Moment, Oracle
from tso.settings import Limits
from wire import CommitRequest, LargeCommitRequest, WriteSetPart
from wire.gathering import gather_commits, scatter_answers

_LIMITS = Limits(conflict_map_entries_max=64, remembered_decisions_max=64, transactions_in_flight_max=64)
_NOW = Moment(wall_ms=0, monotonic_ms=0.0)


def warm_kernels() -> None:
    """Compile what is compiled on its first call, and call every kernel of the oracle once, with its types."""
    compile_all()
    oracle = Oracle(1, 1_000, _LIMITS)
    oracle.begin(2, _NOW)
    start, none, cells = np.array([2], np.int64), np.zeros(1, np.int64), np.array([7], np.uint64)
    request = CommitRequest(start, none + 1, none, np.array([0, 1], np.uint32), cells)
    decided = oracle.commit(gather_commits([request.payload()]), _NOW)
    assert isinstance(decided, Decided)
    scatter_answers([1], [1], decided.times, decided.reasons)
    oracle.take_part(WriteSetPart(3, 2, 0, 1, 0, 0, cells + np.uint64(1)), _NOW)
    oracle.commit_large(LargeCommitRequest(3, 2, 0, 1), _NOW)
    oracle.void([2])
