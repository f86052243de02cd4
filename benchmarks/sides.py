"""What is measured beside what: the one form in which every oracle under load is started, driven and told about.

Invariant: a ``Window`` counts only transactions that ended within its seconds, whichever side measured it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Protocol


class SideError(Exception):
    """A side cannot be started, or died; the text is meant to be shown as it is."""


@dataclass(frozen=True, slots=True)
class Services:
    """HBase for the cases that need it: its ZooKeeper and its Thrift gateway, as ``host:port``."""

    zookeeper: str
    thrift: str


@dataclass(frozen=True, slots=True)
class Latency:
    """Of one window, in microseconds."""

    p50_us: float
    p99_us: float


@dataclass(frozen=True, slots=True)
class Window:
    """One measurement: a closed loop for a while.

    ``transactions``: committed. ``whole``: from the call of begin to the answer of commit; ``begin`` and ``commit`` its
    parts, None where a side cannot tell them apart or has only one of them. CPU is that of all processes of the load
    and of the oracle. ``ahead_ms``: by how much a new timestamp was ahead of the wall clock at most, None where that
    was not looked at.
    """

    transactions: int
    aborted: int
    seconds: float
    whole: Latency
    begin: Latency | None
    commit: Latency | None
    client_cpu_seconds: float
    oracle_cpu_seconds: float
    ahead_ms: float | None = None

    @property
    def per_second(self) -> float:
        """Committed transactions a second."""
        return self.transactions / self.seconds


class Side(Protocol):
    """An oracle with a load generator of its own, as one configuration of it. Warm-up consists of windows too."""

    @property
    def name(self) -> str:
        """What to call it in a table."""

    @property
    def configuration(self) -> Mapping[str, str | int | bool]:
        """What a reader has to know to measure the same again."""

    def start(self) -> None:
        """Start its processes and wait until they serve. Raises ``SideError``; ``stop`` is called even then."""

    def window(self, in_flight: int, cells: int, seconds: float, connections: int) -> Window:
        """Keep ``in_flight`` transactions with write sets of ``cells`` going for ``seconds`` over ``connections``.

        Raises:
            SideError: a process died, or did not answer.
        """

    def stop(self) -> None:
        """End its processes and delete what it made; harmless where it was not started."""
