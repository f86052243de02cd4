"""One seat for an oracle process: the process that sits there now, and the proxies through which it meets the world.

The seat and its proxies stay when the process is killed and another sits down. What the process is, it says on its
standard output: ``serving on …``, ``primary, epoch E``, ``standby``.
"""

from __future__ import annotations

import signal
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from devcluster.guard import Guard
from drills.children import Child
from drills.clocks import SteppedClock
from drills.proxy import LOOPBACK, Mode, Proxies
from drills.site import Announced, Tenure
from drills.waiting import wait_until

START_SECONDS_MAX: Final = 60.0


@dataclass(frozen=True, slots=True)
class OracleSettings:
    """What every oracle of an installation is started with."""

    zookeeper: str
    thrift: str
    root: str
    lease_ms: int
    logs: Path
    limits: tuple[str, ...] = ()


class Seat:
    """A place for one oracle process after the other. Its methods belong to the drill's main thread."""

    def __init__(
        self, name: str, settings: OracleSettings, proxies: Proxies, guard: Guard, clock: SteppedClock
    ) -> None:
        self.name = name
        self.clients = proxies.open(f"{name} for clients")
        self.zookeeper = proxies.open(f"ZooKeeper for {name}", settings.zookeeper)
        self.hbase = proxies.open(f"HBase for {name}", settings.thrift)
        self.clock = clock
        self._settings = settings
        self._guard = guard
        self._starts = 0
        self._child: Child | None = None
        self._announced = Announced(name)

    @property
    def epoch(self) -> int | None:
        """See ``Announced.epoch``."""
        return self._announced.epoch

    @property
    def tenures(self) -> list[Tenure]:
        """All that began here."""
        return self._announced.tenures

    @property
    def is_ready(self) -> bool:
        """Whether the process runs and listens."""
        return self._announced.address is not None and self._child is not None and self._child.is_running()

    def start(self) -> None:
        """Start a process here, as a standby; returns before it listens (see ``is_ready``)."""
        self._starts += 1
        log = self._settings.logs / f"{self.name}.log"
        take = self._announced.begin(self.clients.set_target)
        self._child = Child(self.name, self._command(), log, self._guard, take=take)

    def await_ready(self) -> None:
        """Wait until it listens. Raises ``DrillStalled``."""
        wait_until(lambda: self.is_ready, f"{self.name} to listen", START_SECONDS_MAX, explain=self.tail)

    def send_signal(self, number: signal.Signals) -> None:
        """Send the process a signal."""
        self._running().send_signal(number)

    def kill(self) -> None:
        """SIGKILL, and wait until it is gone; harmless where nobody sits here."""
        if self._child is not None:
            self._child.kill()

    def end(self) -> int:
        """SIGTERM, and wait until it has ended; its exit code."""
        return self._running().end()

    def pass_everything(self) -> None:
        """Have all its proxies forward again."""
        for proxy in (self.clients, self.zookeeper, self.hbase):
            proxy.set_mode(Mode.PASS)

    def tail(self) -> str:
        """The end of the process's log."""
        return "" if self._child is None else self._child.tail()

    def __str__(self) -> str:
        epoch = self.epoch
        running = self._child is not None and self._child.is_running()
        return f"{self.name}: " + (f"primary, epoch {epoch}" if epoch else "standby" if running else "not running")

    def _running(self) -> Child:
        assert self._child is not None, f"nobody sits at {self.name}"
        return self._child

    def _command(self) -> list[str]:
        settings = self._settings
        options = {
            # Another name each time: the dead process's member node stays until its session with ZooKeeper expires.
            "name": f"{self.name}.{self._starts}",
            "zookeeper": self.zookeeper.address,
            "thrift": self.hbase.address,
            "listen": f"{LOOPBACK}:0",
            "advertise": self.clients.address,
            "root": settings.root,
            "lease-ms": str(settings.lease_ms),
        }
        given = [*options.items(), *(("limit", limit) for limit in settings.limits)]
        return self.clock.command("tso", "serve", *(text for name, value in given for text in (f"--{name}", value)))
