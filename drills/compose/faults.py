"""Faults of containers: what an operator, a kernel or a network does to them."""

from __future__ import annotations

from typing import ClassVar

from drills.compose.containers import NETWORKS, Container, Containers
from drills.fault import FAILOVER_SECONDS_MAX, AnyFault, Recovery


class ContainerFault(AnyFault[Containers]):
    """A fault of an installation of containers."""

    victim: Container


class Kill(ContainerFault):
    """docker kill."""

    name = "kill"
    sentence = "the primary's container is killed (SIGKILL), and started again once another has taken over"

    def inflict(self) -> None:
        """See ``AnyFault``."""
        self.victim.kill()

    def heal(self) -> None:
        """See ``AnyFault``."""
        self.victim.start()


class Pause(ContainerFault):
    """docker pause, longer than the lease."""

    name = "pause"
    sentence = "the primary's container is paused until another has taken over, and then goes on"
    hold_ms = (0, 1_000)

    def inflict(self) -> None:
        """See ``AnyFault``."""
        self.victim.pause()

    def heal(self) -> None:
        """See ``AnyFault``."""
        self.victim.unpause()


class Cut(ContainerFault):
    """docker network disconnect: packets are lost, nobody is told."""

    networks: ClassVar[tuple[str, ...]]

    def inflict(self) -> None:
        """See ``AnyFault``."""
        self.victim.cut(self.networks)

    def heal(self) -> None:
        """See ``AnyFault``."""
        self.victim.mend(self.networks)


class CutFromZooKeeper(Cut):
    """One network."""

    name, networks = "cut-zookeeper", ("coordination",)
    sentence = "the primary is taken off the network to ZooKeeper"


class CutFromHBase(Cut):
    """One network."""

    name, networks = "cut-hbase", ("storage",)
    sentence = "the primary, and no one else, is taken off the network to HBase"


class CutFromAll(Cut):
    """Every network."""

    name, networks = "cut-all", NETWORKS
    sentence = "the primary is taken off all networks"


class Restart(ContainerFault):
    """docker restart."""

    name = "restart"
    sentence = "the primary's container is restarted (SIGTERM, and up again)"

    def inflict(self) -> None:
        """See ``AnyFault``."""
        self.victim.restart()

    def heal(self) -> None:
        """See ``AnyFault``."""


class RollingUpgrade(ContainerFault):
    """One new container after the other."""

    name = "rolling-upgrade"
    sentence = "all oracles are replaced by new containers, one after the other, the primary last"
    recovery = Recovery.AT_ONCE

    def inflict(self) -> None:
        """See ``AnyFault``. Each is there again before the next one goes."""
        victim = self.victim
        epoch = victim.epoch or 0
        for seat in upgrade_order(self._installation.seats, victim):
            seat.replace()
            seat.await_ready()
        self._installation.await_primary(epoch, FAILOVER_SECONDS_MAX)

    def heal(self) -> None:
        """See ``AnyFault``."""


def upgrade_order(seats: tuple[Container, ...], primary: Container) -> list[Container]:
    """Standbys first, so that there is one failover in all."""
    return [*(seat for seat in seats if seat is not primary), primary]


FAULTS: dict[str, type[ContainerFault]] = {
    fault.name: fault for fault in (Kill, Pause, CutFromZooKeeper, CutFromHBase, CutFromAll, Restart, RollingUpgrade)
}
