"""Our oracle as a benchmark starts it: alone and keeping nothing, alone on HBase, or with a lease and a standby.

Invariant: whatever ``start`` began ``stop`` ends, and the tables and znodes that the oracle made are deleted. Sides may
share an oracle: it is started once.
"""

from __future__ import annotations

import uuid
from collections.abc import Sequence
from pathlib import Path
from typing import Final

from benchmarks.compiled_code import AS_INSTALLED, Code
from benchmarks.cpu_time import children, cpu_seconds, peak_memory_bytes
from benchmarks.hbase_tables import drop_tables
from benchmarks.sides import Services
from benchmarks.znodes import delete_znodes
from commit_table import system_table
from devcluster.guard import Guard
from drills.children import Child, python
from drills.waiting import wait_until

START_SECONDS_MAX: Final = 120.0
"""Kernels are compiled in that time, the first time."""
SYSTEM_TABLES: Final = ("commits", "epoch")
LOOPBACK_ANY_PORT: Final = ("--listen", "127.0.0.1:0")


class OurOracle:
    """``limits``: texts such as ``connections_max=50``. ``lease_ms``: with a lease of that length and a standby, which
    takes ``services``; ``rest``: with REST beside each, which takes them, too. Without ``services`` commits are
    recorded nowhere.
    """

    def __init__(
        self,
        directory: Path,
        guard: Guard,
        services: Services | None = None,
        *,
        limits: Sequence[str] = (),
        lease_ms: int | None = None,
        rest: bool = False,
        code: Code = AS_INSTALLED,
    ) -> None:
        assert services is not None or lease_ms is None, "a lease is kept in ZooKeeper"
        assert services is not None or not rest, "an oracle that keeps nothing has no REST"
        self.directory = directory
        self.code = code
        """What it runs, and what its clients are to run."""
        self._guard = guard
        self._services = services
        self._limits = tuple(limits)
        self._lease_ms = lease_ms
        self._rest = rest
        self._root = f"/benchmark-{uuid.uuid4().hex[:8]}"
        self._processes: list[Child] = []
        self._starts = 0

    @property
    def configuration(self) -> dict[str, str | int | bool]:
        """What a reader has to know of it."""
        lease = "none" if self._lease_ms is None else f"{self._lease_ms} ms, with a standby"
        return {
            "commit_table": "HBase" if self._services else "none",
            "limits": ", ".join(self._limits) or "defaults",
            "lease": lease,
            "code": self.code.name,
        }

    def start(self) -> None:
        """Start what does not run yet, and wait until it serves. Raises ``DrillError`` where it does not."""
        if self._processes:
            return
        self.directory.mkdir(parents=True, exist_ok=True)
        self._starts += 1
        self._start_process("primary", "primary, epoch")
        if self._lease_ms is not None:
            self._start_process("standby", "as standby")

    def stop(self) -> None:
        """End it and delete what it made; harmless where it does not run."""
        if not self._processes:
            return
        while self._processes:
            self._processes.pop().end()
        if self._services is not None:
            drop_tables(self._services.thrift, [system_table(self._root, purpose) for purpose in SYSTEM_TABLES])
        if self._services is not None and self._lease_ms is not None:
            delete_znodes(self._services.zookeeper, self._root)

    @property
    def children(self) -> Sequence[Child]:
        """Its processes that run."""
        return tuple(self._processes)

    @property
    def address(self) -> str:
        """Where the primary listens."""
        return self._processes[0].log.read_text().partition("serving on ")[2].split()[0]

    @property
    def rest_address(self) -> str:
        """Where the primary's REST listens."""
        return self._processes[0].log.read_text().partition("REST on ")[2].split()[0]

    @property
    def load_arguments(self) -> tuple[str, ...]:
        """The address by which clients find the primary, and the root where that is ZooKeeper's."""
        if self._services is None or self._lease_ms is None:
            return (self.address, "")
        return (self._services.zookeeper, self._root)

    def cpu_seconds(self) -> float:
        """Of all its processes, REST's included."""
        return sum(cpu_seconds(each) for process in self._processes for each in (process.pid, *children(process.pid)))

    def peak_memory_bytes(self) -> int:
        """The most that the primary ever had in memory."""
        return peak_memory_bytes(self._processes[0].pid)

    def _start_process(self, name: str, sign: str) -> None:
        log = self.directory / f"oracle-{self._starts}-{name}.log"
        command, environment = python("tso", *self._command(name)), self.code.environment
        process = Child(f"the oracle ({name})", command, log, self._guard, environment=environment)
        self._processes.append(process)
        wait_until(
            lambda: sign in log.read_text() or not process.is_running(),
            f"the oracle ({name}) to serve",
            START_SECONDS_MAX,
            process.tail,
        )
        if not process.is_running():
            raise process.failure("does not serve")

    def _command(self, name: str) -> list[str]:
        limits = [text for limit in self._limits for text in ("--limit", limit)]
        if self._services is None:
            return ["volatile", *LOOPBACK_ANY_PORT, *limits]
        rest = ("--rest-listen", "127.0.0.1:0") if self._rest else ()
        place = ("--thrift", self._services.thrift, "--root", self._root, "--log-level", "warning", *rest)
        if self._lease_ms is None:
            return ["serve", "--alone", *place, *LOOPBACK_ANY_PORT, *limits]
        leased = ("--name", name, "--zookeeper", self._services.zookeeper, "--lease-ms", str(self._lease_ms))
        return ["serve", *leased, *place, *LOOPBACK_ANY_PORT, *limits]
