"""The demo's oracle processes: who of them is primary, and how one is killed and started again.

What an oracle is it says in its log: ``serving on …``, then ``primary, epoch E`` and ``standby`` as its role changes.
"""

from __future__ import annotations

import json
import re
import subprocess
import sys
import threading
from dataclasses import dataclass
from pathlib import Path
from typing import Final, NamedTuple

from client import ClientSettings
from demo.children import Process
from demo.errors import DemoError
from demo.waiting import wait_for
from devcluster.guard import Guard

START_SECONDS_MAX: Final = 60.0
STATUS_SECONDS_MAX: Final = 60.0
NAMES: Final = ("oracle-1", "oracle-2")

_ROLE = re.compile(r"^(?:primary, epoch (\d+)|standby)\n", re.MULTILINE)


@dataclass(frozen=True, slots=True)
class OracleOptions:
    """How the oracles are started; ``limits`` as ``pythia tso serve --limit`` takes them."""

    lease_ms: int
    limits: tuple[str, ...] = ()


UNDISTURBED: Final = OracleOptions(lease_ms=10_000)
"""A lease longer than the pauses of a busy laptop: no failover is to be shown here."""
TO_BE_KILLED: Final = OracleOptions(lease_ms=2_000, limits=("conflict_map_entries_max=40000", "commit_share_max=0.8"))
"""A conflict map that just takes the largest transaction, the one of the small tables with 30,911 rows: so each month
that is loaded evicts what was there before, and a transaction open for longer cannot be judged by it any more."""


class Tenure(NamedTuple):
    """An oracle was primary; the epoch is its first timestamp."""

    epoch: int
    name: str


class Memory(NamedTuple):
    """What a primary can judge: snapshots from ``low_watermark`` on."""

    epoch: int
    low_watermark: int


def epochs_in(log: str) -> list[int]:
    """The epochs in which the oracle that wrote this log became primary."""
    return [int(epoch) for epoch in _ROLE.findall(log) if epoch]


def epoch_now(log: str) -> int | None:
    """The epoch in which the oracle that wrote this log is primary, as far as it has said."""
    roles = _ROLE.findall(log)
    return int(roles[-1]) if roles and roles[-1] else None


class Oracles:
    """A primary and a standby. Its methods are called by one thread at a time."""

    def __init__(self, settings: ClientSettings, logs: Path, options: OracleOptions, guard: Guard | None) -> None:
        self.options = options
        self._guard = guard
        self._settings = settings
        self._logs = logs
        self._running: dict[str, Process] = {}
        self._ended: list[tuple[str, Process]] = []

    def start_all(self) -> None:
        """Start the primary, then the standby. Raises ``ProcessFailed``."""
        primary, *standbys = NAMES
        self._start(primary).wait_for_output("primary", START_SECONDS_MAX)
        for name in standbys:
            self.start(name)

    def start(self, name: str) -> None:
        """Start an oracle, again if need be, and wait until it stands by. Raises ``ProcessFailed``."""
        self._start(name).wait_for_output("serving on ", START_SECONDS_MAX)

    def kill(self, name: str) -> None:
        """End an oracle as a crash would."""
        process = self._running.pop(name)
        self._ended.append((name, process))
        process.kill()

    def wait_for_primary(self, above_epoch: int, seconds_max: float, stopping: threading.Event) -> Tenure:
        """The primary of an epoch above this. Raises ``Overdue``, also when ``stopping`` is set."""

        def look() -> Tenure | None:
            primary = self._primary()
            return primary if primary and primary.epoch > above_epoch else None

        return wait_for(look, "an oracle that takes over as primary", seconds_max, stopping)

    def tenures(self) -> list[Tenure]:
        """Who was primary, in the order of the epochs."""
        everyone = [*self._ended, *self._running.items()]
        return sorted(Tenure(epoch, name) for name, process in everyone for epoch in epochs_in(process.output()))

    def memory(self) -> Memory | None:
        """What the primary says of its memory; ``None`` where there is none now. Raises ``DemoError``."""
        command = [sys.executable, "-m", "tso", "status", "--json", *self._installation()]
        try:
            asked = subprocess.run(
                command, capture_output=True, text=True, check=False, timeout=STATUS_SECONDS_MAX, start_new_session=True
            )
        except subprocess.TimeoutExpired as error:
            raise DemoError(f"pythia tso status did not end within {STATUS_SECONDS_MAX:.0f} s") from error
        try:
            members = json.loads(asked.stdout)["members"]
        except ValueError as error:
            raise DemoError(f"pythia tso status failed: {asked.stderr.strip()}") from error
        primaries = [Memory(one["epoch"], one["low_watermark"]) for one in members if one["role"] == "primary"]
        return max(primaries, default=None)

    def pids(self) -> list[int]:
        """The process ids of those that run."""
        return [process.pid for process in self._running.values()]

    def stop(self) -> None:
        """End them all."""
        for process in reversed(self._running.values()):
            process.stop()

    def _primary(self) -> Tenure | None:
        """The one of the newest epoch: an older one may not have noticed yet that it was deposed."""
        said = {name: epoch_now(process.output()) for name, process in self._running.items() if process.is_running()}
        return max((Tenure(epoch, name) for name, epoch in said.items() if epoch is not None), default=None)

    def _start(self, name: str) -> Process:
        starts = 1 + sum(ended == name for ended, _ in self._ended)
        log = self._logs / (f"{name}.log" if starts == 1 else f"{name}-start-{starts}.log")
        process = self._running[name] = Process(name, self._serve(name), log)
        if self._guard is not None:
            self._guard.watch_process(process.pid)
        return process

    def _serve(self, name: str) -> list[str]:
        where = [*self._installation(), "--thrift", self._settings.thrift, "--listen", "127.0.0.1:0"]
        limits = [word for limit in self.options.limits for word in ("--limit", limit)]
        return ["tso", "serve", "--name", name, *where, "--lease-ms", str(self.options.lease_ms), *limits]

    def _installation(self) -> list[str]:
        return ["--zookeeper", self._settings.zookeeper, "--root", self._settings.root]
