"""What is measured beside the peer: each case a shape of load, a place for the commits, and settings of the peer.

The peer runs as it ships and in the settings that were found to suit the case; which of them is the better one the run
itself decides. Invariant: the first configuration of every case is the default.
"""

from __future__ import annotations

from dataclasses import dataclass

from benchmarks.peer.configuration import DEFAULT, LARGE_BATCHES, LOW_LATENCY, TIMER_1_MS, PeerConfiguration

CELLS = 2
COLUMNS, ASYNCIO, THREADS = "columns", "asyncio", "threads"
_BOTH = (COLUMNS, ASYNCIO)


@dataclass(frozen=True, slots=True)
class Case:
    """A closed loop of ``in_flight`` transactions over ``connections``, each with a write set of ``cells``.

    ``with_hbase``: commits are recorded in HBase; else nowhere. ``fronts``: how ours is driven, each a result of its
    own (``benchmarks.our_load`` says what they are). The peer has one front, with callbacks.
    """

    name: str
    in_flight: int
    configurations: tuple[PeerConfiguration, ...]
    connections: int = 1
    cells: int = CELLS
    with_hbase: bool = False
    fronts: tuple[str, ...] = (ASYNCIO,)


_IN_MEMORY = (DEFAULT, LOW_LATENCY)
_FEW_WITH_HBASE = (DEFAULT, TIMER_1_MS, LOW_LATENCY)

CASES = (
    Case("in-memory-1024", 1_024, _IN_MEMORY, fronts=_BOTH),
    Case("in-memory-64", 64, _IN_MEMORY, fronts=_BOTH),
    Case("in-memory-1", 1, _IN_MEMORY),
    Case("hbase-1024", 1_024, (DEFAULT, LARGE_BATCHES), with_hbase=True, fronts=_BOTH),
    Case("hbase-64", 64, (DEFAULT, TIMER_1_MS), with_hbase=True, fronts=_BOTH),
    Case("hbase-1", 1, _FEW_WITH_HBASE, with_hbase=True),
    Case("in-memory-64-connections", 64, _IN_MEMORY, connections=64),
    Case("hbase-64-connections", 64, (DEFAULT, TIMER_1_MS), connections=64, with_hbase=True),
    Case("hbase-16-threads", 16, _FEW_WITH_HBASE, with_hbase=True, fronts=(THREADS,)),
)
