"""What a standby does beforehand, so that its first commit as primary takes no longer than the next.

A kernel is compiled when it is first called, or read from a cache beside the source; either takes too long for a client
that waits. So everything that a primary runs is run once, on an oracle that nobody asks.
"""

from __future__ import annotations

import numpy as np

from kernels import compile_all
from tso.decisions.oracle import Decided, Moment, Oracle
from tso.settings import Limits
from wire import CommitRequest, LargeCommitRequest, Reason, WriteSetPart
from wire.columns import PayloadReader
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
    part = WriteSetPart(3, 2, 0, 2, 1, 0, np.array([8, 9], np.uint64))
    # As it comes in a frame: nothing can be written to its cells, which makes them another type to a kernel.
    oracle.take_part(WriteSetPart.read(PayloadReader(part.payload())), _NOW)
    oracle.commit_large(LargeCommitRequest(3, 2, 0, 2), _NOW)
    oracle.void({2: Reason.ABORTED})
