"""The oracles' containers: what is done to one, and what the oracle in it says.

Invariant: whoever is told to take up an oracle's lines has begun to listen before anything waits for them; a container
that was cut off comes back to each network under the name that others know it by.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from pathlib import Path
from typing import Final

from tenacity import Retrying, stop_after_attempt

from devcluster.guard import Guard
from drills.children import Child
from drills.compose.engine import Project, docker
from drills.site import Announced, Site, Tenure
from drills.waiting import wait_until

NETWORKS: Final = ("coordination", "storage", "clients")
"""Of each oracle: on the way to ZooKeeper, to HBase, to clients."""
READY_SECONDS_MAX: Final = 90.0
LOG_SECONDS_MAX: Final = 20.0
PAUSE_TRIES_MAX: Final = 10
NS_PER_SECOND: Final = 1_000_000_000


class Container:
    """The place of one oracle; its container may be killed, cut off or replaced. For the drill's main thread."""

    def __init__(self, name: str, project: Project, logs: Path, guard: Guard) -> None:
        self.name = name
        self._project = project
        self._logs = logs
        self._guard = guard
        self._announced = Announced(name)
        self._follower: Child | None = None
        self._id = ""

    @property
    def epoch(self) -> int | None:
        """See ``Announced.epoch``."""
        return self._announced.epoch

    @property
    def tenures(self) -> list[Tenure]:
        """All that began here."""
        return self._announced.tenures

    def take_up(self, since_ns: int = 0) -> None:
        """Follow the oracle's output from a moment on (nanoseconds since 1970), and forget what an earlier one said."""
        self._id = self._project.container(self.name)
        since = f"{since_ns // NS_PER_SECOND}.{since_ns % NS_PER_SECOND:09d}"
        command = ["docker", "logs", "--follow", "--since", since, self._id]
        log = self._logs / f"{self.name}.log"
        if self._follower is not None:
            # Of an oracle that has ended every line counts; the engine ends the command when it has passed them all.
            ended = self._follower
            wait_until(ended.has_said_all, f"the end of the log of {self.name}", LOG_SECONDS_MAX)
        self.let_go()
        self._follower = Child(self.name, command, log, self._guard, take=self._announced.begin())

    def let_go(self) -> None:
        """No longer follow it."""
        if self._follower is not None:
            self._follower.kill()

    def await_ready(self) -> None:
        """Wait until the oracle listens. Raises ``DrillStalled``."""
        wait_until(
            lambda: self._announced.address is not None,
            f"the oracle in {self.name} to listen",
            READY_SECONDS_MAX,
            explain=self.tail,
        )

    def tail(self) -> str:
        """The end of its log."""
        return "" if self._follower is None else self._follower.tail()

    def kill(self) -> None:
        """SIGKILL. Raises ``CommandFailed``, as all the following do."""
        docker("kill", self._id)

    def start(self) -> None:
        """Start the container again."""
        since_ns = time.time_ns()
        docker("start", self._id)
        self.take_up(since_ns)

    def restart(self) -> None:
        """SIGTERM, and another oracle in the same container."""
        since_ns = time.time_ns()
        docker("restart", self._id)
        self.take_up(since_ns)

    def pause(self) -> None:
        """Freeze its processes; the kernel may need several tries while they are busy."""
        Retrying(stop=stop_after_attempt(PAUSE_TRIES_MAX), reraise=True)(docker, "pause", self._id)

    def unpause(self) -> None:
        """Let them go on."""
        docker("unpause", self._id)

    def cut(self, networks: Sequence[str]) -> None:
        """Take it off some of its networks."""
        for network in networks:
            docker("network", "disconnect", self._project.network(network), self._id)

    def mend(self, networks: Sequence[str]) -> None:
        """Bring it back."""
        for network in networks:
            docker("network", "connect", "--alias", self.name, self._project.network(network), self._id)

    def replace(self) -> None:
        """SIGTERM, and a new container of what the image and the compose file are now."""
        self._project.compose("rm", "--stop", "--force", self.name)
        self._project.compose("up", "--detach", "--no-deps", "--no-build", self.name)
        self.take_up()

    def __str__(self) -> str:
        epoch = self.epoch
        return f"{self.name}: " + (f"primary, epoch {epoch}" if epoch else "standby, or not running")


class Containers(Site[Container]):
    """The oracles of one compose project."""

    def __init__(self, seats: Sequence[Container]) -> None:
        self.seats = tuple(seats)
