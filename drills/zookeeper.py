"""A ZooKeeper of the drill's own, so that it can be killed apart from HBase.

In the development cluster ZooKeeper lives inside HBase's process, and the two can only die together. A drill that
brings its own cluster up therefore gives the oracles a second ZooKeeper, from the cluster's jars, with data on disk;
HBase keeps the one inside. Invariant: it listens on loopback only.
"""

from __future__ import annotations

from pathlib import Path
from typing import Final

from devcluster.configuration import zookeeper_command, zookeeper_settings
from devcluster.guard import Guard
from devcluster.ports import claim
from devcluster.readiness import zookeeper_answers
from devcluster.settings import LOOPBACK
from devcluster.state import read_state
from drills.children import Child
from drills.errors import DrillError
from drills.waiting import wait_until

START_SECONDS_MAX: Final = 30.0


class ZooKeeper:
    """One server on a port that it keeps over restarts. ``cluster``: the directory of the cluster with the jars."""

    def __init__(self, directory: Path, cluster: Path, log: Path, guard: Guard) -> None:
        state = read_state(cluster)
        if state is None:
            raise DrillError(f"no cluster runs in {cluster}, whose jars ZooKeeper needs")
        directory.mkdir(parents=True, exist_ok=True)
        self._port = claim(0, "ZooKeeper", "another directory")
        self._configuration = directory / "zoo.cfg"
        self._configuration.write_text(zookeeper_settings(directory / "data", self._port), encoding="utf-8")
        self._log = log
        self._guard = guard
        self._command = zookeeper_command(state.java, state.jars, self._configuration)
        self._child: Child | None = None

    @property
    def address(self) -> str:
        """``host:port``."""
        return f"{LOOPBACK}:{self._port}"

    def start(self) -> None:
        """Start it and wait until it answers. Raises ``DrillStalled``."""
        self._child = Child("ZooKeeper", self._command, self._log, self._guard)
        wait_until(
            lambda: zookeeper_answers(self._port), "ZooKeeper to answer", START_SECONDS_MAX, explain=self._child.tail
        )

    def kill(self) -> None:
        """SIGKILL; harmless where it does not run."""
        if self._child is not None:
            self._child.kill()
            self._child = None
