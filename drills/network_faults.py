"""Faults of the network, by the proxies around each oracle process: one side of the world is lost, or all of it."""

from __future__ import annotations

from abc import abstractmethod
from typing import ClassVar

from drills.fault import Fault, Recovery
from drills.oracles import Seat
from drills.proxy import Mode, Proxy


class CutOff(Fault):
    """The primary loses one side of the world, or all. ``mode``: how its connections end."""

    mode: ClassVar[Mode]

    def inflict(self) -> None:
        """See ``Fault``."""
        for proxy in self._proxies(self.victim):
            proxy.set_mode(self.mode)

    def heal(self) -> None:
        """See ``Fault``."""
        for proxy in self._proxies(self.victim):
            proxy.set_mode(Mode.PASS)

    @abstractmethod
    def _proxies(self, seat: Seat) -> tuple[Proxy, ...]: ...


class _FromZooKeeper(CutOff):
    def _proxies(self, seat: Seat) -> tuple[Proxy, ...]:
        return (seat.zookeeper,)


class _FromHBase(CutOff):
    def _proxies(self, seat: Seat) -> tuple[Proxy, ...]:
        return (seat.hbase,)


class _FromClients(CutOff):
    # Nobody but its clients misses the primary: it keeps its lease, so that only an end of the fault helps.
    recovery = Recovery.AFTER_HEALING
    hold_ms = (500, 3_000)

    def _proxies(self, seat: Seat) -> tuple[Proxy, ...]:
        return (seat.clients,)


class _FromAll(CutOff):
    def _proxies(self, seat: Seat) -> tuple[Proxy, ...]:
        return (seat.clients, seat.zookeeper, seat.hbase)


class CutFromZooKeeper(_FromZooKeeper):
    """Connections are reset."""

    name, mode = "cut-zookeeper", Mode.CUT
    sentence = "the primary loses ZooKeeper: its connections are reset, new ones as well"


class LoseZooKeeper(_FromZooKeeper):
    """Nothing arrives."""

    name, mode = "hole-zookeeper", Mode.BLACK_HOLE
    sentence = "the primary loses ZooKeeper: what it sends arrives only when all is over"


class CutFromHBase(_FromHBase):
    """Connections are reset."""

    name, mode = "cut-hbase", Mode.CUT
    sentence = "the primary, and no one else, loses HBase: its connections are reset, new ones as well"


class LoseHBase(_FromHBase):
    """Nothing arrives."""

    name, mode = "hole-hbase", Mode.BLACK_HOLE
    sentence = "the primary, and no one else, loses HBase: what it writes arrives only when all is over"


class CutFromClients(_FromClients):
    """Connections are reset."""

    name, mode = "cut-clients", Mode.CUT
    sentence = "the primary's clients lose it, though it keeps its lease: their connections are reset"


class LoseClients(_FromClients):
    """Nothing arrives."""

    name, mode = "hole-clients", Mode.BLACK_HOLE
    sentence = "the primary's clients lose it, though it keeps its lease: nothing arrives before all is over"


class CutFromAll(_FromAll):
    """Connections are reset."""

    name, mode = "cut-all", Mode.CUT
    sentence = "the primary loses ZooKeeper, HBase and its clients at once: all connections are reset"


class LoseAll(_FromAll):
    """Nothing arrives."""

    name, mode = "hole-all", Mode.BLACK_HOLE
    sentence = "the primary loses ZooKeeper, HBase and its clients at once: what is sent arrives when all is over"


class SlowHBase(Fault):
    """Slow, not broken."""

    name = "slow-hbase"
    sentence = "every write of the primary to HBase, and every answer, takes 200 ms longer for a while"
    recovery = Recovery.AT_ONCE
    hold_ms = (1_000, 3_000)
    delay_ms: ClassVar[int] = 200

    def inflict(self) -> None:
        """See ``Fault``."""
        self.victim.hbase.set_mode(Mode.SLOW, delay_ms=self.delay_ms)

    def heal(self) -> None:
        """See ``Fault``."""
        self.victim.hbase.set_mode(Mode.PASS)


class PartitionZooKeeper(Fault):
    """ZooKeeper is there, and nobody reaches it."""

    name = "cut-zookeeper-for-all"
    sentence = "nobody reaches ZooKeeper, neither an oracle nor a client: connections are reset, new ones as well"
    recovery = Recovery.AFTER_HEALING
    hold_ms = (500, 5_000)

    def inflict(self) -> None:
        """See ``Fault``."""
        for proxy in self._proxies():
            proxy.set_mode(Mode.CUT)

    def heal(self) -> None:
        """See ``Fault``."""
        for proxy in self._proxies():
            proxy.set_mode(Mode.PASS)

    def _proxies(self) -> tuple[Proxy, ...]:
        installation = self._installation
        return (*installation.zookeeper_for_clients, *(seat.zookeeper for seat in installation.seats))


class SplitBrain(Fault):
    """The old primary has clients who know of no other."""

    name = "split-brain"
    sentence = (
        "the primary and half of the clients lose ZooKeeper together and go on seeing each other and HBase; the other "
        "half goes on with another primary"
    )
    # The half that was cut off has nobody to serve it once the lease is over: it cannot learn who else there is. The
    # fault lasts on beyond the take-over: a primary that does not step down must have the time to be caught.
    recovery = Recovery.FOR_SOME
    hold_ms = (2_000, 4_000)

    def inflict(self) -> None:
        """See ``Fault``."""
        for proxy in self._proxies():
            proxy.set_mode(Mode.BLACK_HOLE)

    def heal(self) -> None:
        """See ``Fault``."""
        for proxy in self._proxies():
            proxy.set_mode(Mode.PASS)

    def _proxies(self) -> tuple[Proxy, ...]:
        clients = self._installation.zookeeper_for_clients
        return (self.victim.zookeeper, *clients[: len(clients) // 2])
