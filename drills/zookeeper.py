"""A ZooKeeper of the drill's own, so that it can be killed apart from HBase.

In the development cluster ZooKeeper lives inside HBase's process, and the two can only die together. A drill that
brings its own cluster up therefore gives the oracles a second ZooKeeper, from the cluster's jars, with data on disk;
HBase keeps the one inside. Invariant: it listens on loopback only.
"""

from __future__ import annotations

from pathlib import Path
from typing import Final

from devcluster.configuration import TICK_MS, ZOOKEEPER_CONNECTIONS_MAX
from devcluster.ports import LOOPBACK, claim
from devcluster.readiness import zookeeper_answers
from devcluster.state import read_state
from drills.children import Child
from drills.errors import DrillError
from drills.guard import Guard
from drills.waiting import wait_until

HEAP_MEBIBYTES: Final = 128
START_SECONDS_MAX: Final = 30.0
_MAIN_CLASS: Final = "org.apache.zookeeper.server.quorum.QuorumPeerMain"


class ZooKeeper:
    """One server on a port that it keeps over restarts. ``cluster``: the directory of the cluster with the jars."""

    def __init__(self, directory: Path, cluster: Path, log: Path, guard: Guard) -> None:
        state = read_state(cluster)
        if state is None:
            raise DrillError(f"no cluster runs in {cluster}, whose jars ZooKeeper needs")
        directory.mkdir(parents=True, exist_ok=True)
        self._port = claim(0, "ZooKeeper", "another directory")
        self._configuration = directory / "zoo.cfg"
        self._configuration.write_text(_settings(directory / "data", self._port), encoding="utf-8")
        self._log = log
        self._guard = guard
        self._command = _command(state.java, state.jars, self._configuration)
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


def _settings(data: Path, port: int) -> str:
    settings = {
        "dataDir": data,
        "clientPort": port,
        "clientPortAddress": LOOPBACK,
        "tickTime": TICK_MS,
        "maxClientCnxns": ZOOKEEPER_CONNECTIONS_MAX,
        "admin.enableServer": "false",
        "4lw.commands.whitelist": "srvr",
    }
    return "".join(f"{name}={value}\n" for name, value in settings.items())


def _command(java: str, jars: tuple[str, ...], configuration: Path) -> list[str]:
    # A killed process loses nothing that it gave the system, and a busy disk would else hold up leases for seconds.
    options = ["-Dzookeeper.forceSync=no", "-Djava.net.preferIPv4Stack=true", "-XX:-UsePerfData"]
    return [java, f"-Xmx{HEAP_MEBIBYTES}m", *options, "-cp", ":".join(jars), _MAIN_CLASS, str(configuration)]
