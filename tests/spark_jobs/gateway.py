"""A Thrift gateway of our own before an HBase that others use as well: it may be killed, theirs is left alone."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Final

from client import ClientSettings
from devcluster import servers
from devcluster.configuration import class_path, start_command
from devcluster.guard import Guard
from devcluster.jars import ensure_jars
from devcluster.java import find_java
from devcluster.ports import claim
from devcluster.readiness import hbase_answers
from devcluster.settings import LOOPBACK
from drills.children import Child
from drills.waiting import wait_until

HEAP_MEBIBYTES: Final = 256
START_SECONDS_MAX: Final = 90.0
FETCH_SECONDS_MAX: Final = 1_200.0


class Gateway:
    """One gateway on a port that it keeps over restarts. ``zookeeper``: HBase's, as ``host:port``."""

    def __init__(self, directory: Path, zookeeper: str, guard: Guard) -> None:
        directory.mkdir(parents=True, exist_ok=True)
        servers.write_configuration(directory, int(zookeeper.rpartition(":")[2]))
        java = find_java()
        jars = ensure_jars(java, FETCH_SECONDS_MAX, lambda step: None)
        self._port = claim(0, "Thrift", "another directory")
        command = start_command("gateway", java, directory, HEAP_MEBIBYTES, self._port)
        self._command = [command[0], "-cp", class_path(directory, jars), *command[1:]]
        self._log = directory / "logs" / "gateway.out"
        self._guard = guard
        self._child: Child | None = None

    @property
    def address(self) -> str:
        """``host:port``."""
        return f"{LOOPBACK}:{self._port}"

    def through(self, settings: ClientSettings) -> ClientSettings:
        """The same installation, its tables reached by this way."""
        return replace(settings, thrift=self.address)

    def start(self) -> None:
        """Start it and wait until HBase answers through it. Raises ``DrillStalled``."""
        self._child = Child("the gateway", self._command, self._log, self._guard)
        wait_until(
            lambda: hbase_answers(self._port), "the gateway to answer", START_SECONDS_MAX, explain=self._child.tail
        )

    def kill(self) -> None:
        """SIGKILL; harmless where it does not run."""
        if self._child is not None:
            self._child.kill()
            self._child = None
