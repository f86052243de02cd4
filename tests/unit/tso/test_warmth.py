"""A standby that is warm has nothing left to compile."""

from __future__ import annotations

import numpy as np

from kernels import KERNELS
from tso.decisions.conflict_map import ConflictMap
from tso.decisions.large_write_sets import LargeWriteSets
from tso.decisions.oracle import Begun, Decided, Moment, Oracle
from tso.settings import Limits
from tso.warmth import warm_kernels
from wire import CommitRequest, FrameDecoder, LargeCommitRequest, Reason, WriteSetPart, decode, encode
from wire.gathering import gather_commits, scatter_answers

NOW = Moment(1_700_000_000_000, 5.0)


def compiled() -> dict[str, int]:
    """For how many types each kernel of an oracle has been compiled."""
    oracles = [each for each in KERNELS if each.__module__.startswith(("tso.", "wire."))]
    return {f"{each.__module__}.{each.__qualname__}": len(each.compile().signatures) for each in oracles}


def test_what_a_primary_does_has_all_been_done_before() -> None:
    warm_kernels()
    warm = compiled()
    assert warm["tso.decisions.deciding.decide"] == warm["wire.gathering_kernels.gather"] == 1
    oracle = Oracle(2**58, 2**62, Limits(), seed=2**63 + 5)
    begun = oracle.begin(700, NOW)
    assert isinstance(begun, Begun)
    starts = np.arange(begun.first_start_timestamp, begun.first_start_timestamp + 600)
    snapshots, none, keys = np.full(600, begun.snapshot), np.zeros(600, np.int64), np.arange(1200, dtype=np.uint64)
    request = CommitRequest(starts, snapshots, none, np.arange(0, 1201, 2, dtype=np.uint32), keys)
    decided = oracle.commit(gather_commits([request.payload(), b"odd"]), NOW)
    assert isinstance(decided, Decided)
    scatter_answers([2**63 + 1], [600], decided.times, decided.reasons)
    large = begun.first_start_timestamp + 650
    (frame,) = FrameDecoder().feed(
        encode(WriteSetPart(large, begun.snapshot, 0, 3, 1, 0, np.array([2**63, 0, 5], np.uint64)), 1)
    )
    part = decode(frame)
    assert isinstance(part, WriteSetPart)
    oracle.take_part(part, NOW)
    oracle.commit_large(LargeCommitRequest(large, begun.snapshot, 0, 3), NOW)
    oracle.void({int(starts[0]): Reason.ABORTED})
    oracle.recall(starts[:3].tolist())
    small = ConflictMap(2, 2, 1, LargeWriteSets(2, 1.0), seed=1)
    small.enter_refusal(5, 7)
    assert compiled() == warm
