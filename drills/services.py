"""ZooKeeper, HBase and its gateway as a drill has them: given ones, or its own, which it may then kill.

Invariant: what a drill did not start it does not end.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import devcluster
from devcluster.guard import Guard
from drills.zookeeper import ZooKeeper


class GivenServices:
    """Services that others use as well, and that stay as they are."""

    is_own = False

    def __init__(self, zookeeper: str, thrift: str) -> None:
        self.zookeeper = zookeeper
        self.thrift = thrift


class OwnServices:
    """A development cluster and a ZooKeeper beside it. What is killed here comes back on the port that it had."""

    is_own = True

    def __init__(self, cluster: devcluster.Cluster, zookeeper: ZooKeeper) -> None:
        self._cluster = cluster
        self._zookeeper = zookeeper
        self.zookeeper = zookeeper.address
        self.thrift = cluster.thrift

    def kill_zookeeper(self) -> None:
        """SIGKILL to the oracles' ZooKeeper."""
        self._zookeeper.kill()

    def start_zookeeper(self) -> None:
        """Start it again, on its data. Raises ``DrillStalled``."""
        self._zookeeper.start()

    def kill_gateway(self) -> None:
        """SIGKILL to the Thrift gateway."""
        devcluster.stop_part(self._cluster.directory, "gateway", kill=True)

    def start_gateway(self) -> None:
        """Start it again. Raises ``DevClusterError``."""
        devcluster.start_part(self._cluster.directory, "gateway")

    def kill_hbase(self) -> None:
        """SIGKILL to HBase's one process: master, region server and HBase's own ZooKeeper."""
        devcluster.stop_part(self._cluster.directory, "hbase", kill=True)

    def start_hbase(self) -> None:
        """Start it again, and the gateway, which ends by itself when HBase goes. Raises ``DevClusterError``."""
        ports = (_port(address) for address in (self._cluster.zookeeper, self.thrift))
        devcluster.up(devcluster.ClusterSettings(self._cluster.directory, *ports))


@contextmanager
def own_services(directory: Path, logs: Path, guard: Guard, progress: devcluster.Progress) -> Iterator[OwnServices]:
    """New, empty services below ``directory``. Raises ``DevClusterError`` or ``DrillError``."""
    place = directory / "cluster"
    guard.watch_cluster(place)
    try:
        cluster = devcluster.up(devcluster.ClusterSettings(place), progress)
        zookeeper = ZooKeeper(directory / "zookeeper", place, logs / "zookeeper.log", guard)
        zookeeper.start()
        try:
            yield OwnServices(cluster, zookeeper)
        finally:
            zookeeper.kill()
    finally:
        devcluster.down(place, wipe=True, progress=progress)


def _port(address: str) -> int:
    return int(address.rpartition(":")[2])
