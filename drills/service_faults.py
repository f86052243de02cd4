"""Faults of what the oracles stand on: ZooKeeper, HBase and its gateway killed, wall clocks set.

Services are killed only where the drill has brought them up itself.
"""

from __future__ import annotations

import time
from typing import ClassVar, Final

from drills.fault import Fault, Recovery
from drills.installation import Installation
from drills.services import OwnServices

BY_THE_STEPPED_CLOCK_SECONDS: Final = 1.0
"""How long a primary serves with a stepped clock before it is killed."""


class ServiceKill(Fault):
    """A service under all of them is killed."""

    recovery = Recovery.AFTER_HEALING

    @classmethod
    def missing(cls, installation: Installation) -> str | None:
        """See ``Fault``."""
        return None if installation.services.is_own else "the services were given; a drill kills only its own"

    @property
    def _services(self) -> OwnServices:
        services = self._installation.services
        assert isinstance(services, OwnServices), "missing() was not asked"
        return services


class KillZooKeeper(ServiceKill):
    """The oracles' ZooKeeper."""

    name = "kill-zookeeper"
    sentence = "the oracles' ZooKeeper is killed with SIGKILL and started again on its data after up to 5 s"
    hold_ms = (0, 5_000)

    def inflict(self) -> None:
        """See ``Fault``."""
        self._services.kill_zookeeper()

    def heal(self) -> None:
        """See ``Fault``."""
        self._services.start_zookeeper()


class KillGateway(ServiceKill):
    """HBase's Thrift gateway."""

    name = "kill-gateway"
    sentence = "HBase's Thrift gateway is killed with SIGKILL and started again"

    def inflict(self) -> None:
        """See ``Fault``."""
        self._services.kill_gateway()

    def heal(self) -> None:
        """See ``Fault``."""
        self._services.start_gateway()


class KillHBase(ServiceKill):
    """Master and region server."""

    name = "kill-hbase"
    sentence = (
        "HBase (master, region server and the ZooKeeper of its own, one process in the development cluster) is "
        "killed with SIGKILL and started again, with its gateway"
    )

    def inflict(self) -> None:
        """See ``Fault``."""
        self._services.kill_hbase()

    def heal(self) -> None:
        """See ``Fault``."""
        self._services.start_hbase()


class ClockFault(Fault):
    """The primary's wall clock is set, while it runs."""

    recovery = Recovery.AT_ONCE
    hold_ms = (2_000, 3_000)
    step_seconds: ClassVar[int]

    def inflict(self) -> None:
        """See ``Fault``."""
        self.victim.clock.set(self.step_seconds)

    def heal(self) -> None:
        """See ``Fault``."""
        self.victim.clock.set(0)


class ClockForward(ClockFault):
    """Ahead of the others."""

    name = "clock-forward"
    sentence = "the primary's wall clock is set one minute ahead, and back after a few seconds"
    step_seconds = 60


class ClockBack(ClockFault):
    """Behind the others."""

    name = "clock-back"
    sentence = "the primary's wall clock is set one hour back, and forward again after a few seconds"
    step_seconds = -3_600


class ClockThenKill(ClockFault):
    """The next primary's clock is behind what the last one gave out."""

    name = "clock-and-kill"
    sentence = "the primary's wall clock is set one minute ahead, and it is killed: the next one's clock is far behind"
    recovery = Recovery.BY_FAILOVER
    step_seconds = 60

    def inflict(self) -> None:
        """See ``Fault``."""
        super().inflict()
        time.sleep(BY_THE_STEPPED_CLOCK_SECONDS)
        self.victim.kill()

    def heal(self) -> None:
        """See ``Fault``."""
        super().heal()
        self.victim.start()
