"""The machine room: oracle and client processes, a store, a coordinator, the network between them, and their clocks."""

from __future__ import annotations

import itertools
import random
from collections.abc import Callable

from client import ClientSettings, CommitStep, TransactionHooks, TransactionManager
from commit_table import table_name
from store.bulk import BlockingPutter
from store.memory import MemoryCellStore
from tests.simulation.coordinator import Ensemble, SimulatedCoordinator
from tests.simulation.event_loop import VirtualLoop
from tests.simulation.journal import Journal
from tests.simulation.kernel import Kernel
from tests.simulation.links import Links
from tests.simulation.network import Network
from tests.simulation.processes import WALL_START_US, Clock, Process, State
from tests.simulation.scenario import CLOCK_RATE_SHARE, Scenario
from tests.simulation.services import Service
from tests.simulation.store import SimulatedCellStore, StoreCluster
from tests.simulation.story import Story
from tests.simulation.wiretap import Wiretap
from tests.simulation.workload import Assignment, ClientThread
from tso.process import OracleProcess
from tso.serving.connection import Connection
from tso.serving.server import Server
from tso.settings import Limits, ServeSettings

ROOT = "/pythia"
ORACLE_PORT = 5480
DECISIONS_MAX = 1_000
"""Of one oracle: more than the clients of a room can have under way. Hundreds of oracles live in one run of tests."""
NOBODY = "unused:1"
"""Where the real services would be: nobody connects to them."""


class NumberedConnection(Connection):
    """A server's connection, hashed by its number: a set of them has the same order in every process."""

    numbers = itertools.count(1)

    def __init__(self, server: Server) -> None:
        super().__init__(server)
        self._number = next(self.numbers)

    def __hash__(self) -> int:
        return self._number


class Room:
    """Everything that a run consists of."""

    def __init__(self, scenario: Scenario, story: Story) -> None:
        NumberedConnection.numbers = itertools.count(1)
        self.scenario = scenario
        self.kernel = kernel = Kernel(scenario.name, story, scenario.restlessness)
        self.links = Links(kernel)
        self.network = Network(kernel, self.links)
        store = Service(kernel, self.links, "store")
        store.health.repeat_share = scenario.repeat_share
        self.store = StoreCluster(
            kernel, store, MemoryCellStore(wall_ms=self._store_wall_ms), scenario.store_timeout_ms * 1000
        )
        self.ensemble = Ensemble(kernel, Service(kernel, self.links, "coordinator"), ROOT)
        self.wiretap = Wiretap(kernel)
        self.network.tap = self.wiretap.hear
        self.loops: list[VirtualLoop] = []
        """Of all processes that ever ran."""
        self.journal = Journal(kernel)
        self.chance = kernel.stream("room")
        self.new_work = True
        self.assignment = Assignment(
            kernel,
            self.journal,
            scenario.lease.lease_ms,
            scenario.think_ms_max,
            scenario.weights,
            lambda: not self.new_work,
        )
        self.oracles = [OracleHost(self, f"oracle-{letter}") for letter in "abc"[: scenario.oracles]]
        self.clients = [ClientHost(self, f"client-{number}") for number in range(1, scenario.clients + 1)]

    @property
    def hosts(self) -> list[Host]:
        """Every host that runs a process."""
        return [*self.oracles, *self.clients]

    @property
    def commit_table(self) -> str:
        """The name of the commit table."""
        return table_name(ROOT)

    def coordinator_of_caller(self, *arguments: object, **named: object) -> SimulatedCoordinator:
        """What stands in for ``ZooKeeperCoordinator``."""
        return SimulatedCoordinator(self.ensemble, self.kernel.running().process)

    def store_of_caller(self, *arguments: object, **named: object) -> SimulatedCellStore:
        """What stands in for ``HBaseCellStore``."""
        return SimulatedCellStore(self.store, self.kernel.running().process)

    def loop_of_caller(self) -> VirtualLoop:
        """An event loop for the process that asks; what stands in for the client's own."""
        loop = VirtualLoop(self.kernel, self.kernel.running().process, self.network)  # type: ignore[abstract]
        self.loops.append(loop)
        return loop

    def client_settings(self) -> ClientSettings:
        """As every client of the room has them."""
        scenario = self.scenario
        return ClientSettings(
            zookeeper=NOBODY,
            thrift=NOBODY,
            root=ROOT,
            request_timeout_ms=scenario.request_timeout_ms,
            deadline_ms=scenario.deadline_ms,
            outcome_cache_entries_max=scenario.outcome_cache_entries_max,
            heartbeat_interval_ms=scenario.heartbeat_interval_ms,
            heal=scenario.heal,
            shadow_cells=scenario.shadow_cells,
            shadow_writers_max=1,
        )

    def primary(self) -> OracleHost:
        """The host that took the lease last; the first one where nobody has."""
        holders = [takeover.holder for takeover in self.ensemble.takeovers]
        return next((each for each in self.oracles if holders and each.name == holders[-1]), self.oracles[0])

    def _store_wall_ms(self) -> int:
        return (WALL_START_US + self.kernel.now_us) // 1000


class Host:
    """A machine, and the process that runs on it at the moment, if one does."""

    def __init__(self, room: Room, name: str) -> None:
        self.room = room
        self.name = name
        self.process: Process | None = None
        self.chance: random.Random = room.kernel.stream(name)
        rate = 1 + self.chance.uniform(-CLOCK_RATE_SHARE, CLOCK_RATE_SHARE)
        ahead_us = self.chance.choice((0, 0, -40_000, 40_000, 3_000_000))
        self.clock = Clock(lambda: room.kernel.now_us, rate, self.chance.randrange(10**9), ahead_us)
        self._incarnations = 0

    @property
    def is_up(self) -> bool:
        """Whether a process runs, be it paused."""
        return self.process is not None and self.process.state is not State.DEAD

    def start(self) -> None:
        """Start a process, unless one runs."""
        if self.is_up:
            return
        self._incarnations += 1
        self.process = Process(self.name, self._incarnations, self.clock)
        self.room.kernel.tell_of(self.process, "starts")
        self.room.kernel.spawn(self.process, "main", self.main)

    def die(self, *, vanishes: bool) -> None:
        """kill -9, or the power cord: nothing is said or flushed, and no thread of it ever runs again."""
        process = self.process
        if process is None or process.state is State.DEAD:
            return
        process.state = State.DEAD
        self.room.kernel.tell_of(process, "is dead, its machine is gone" if vanishes else "is dead")
        self.room.kernel.forget(process)
        for tell in process.at_death:
            tell(vanishes)

    def pause(self) -> None:
        """SIGSTOP."""
        if self.process is not None and self.process.state is State.RUNNING:
            self.process.state = State.PAUSED
            self.room.kernel.tell_of(self.process, "is paused")

    def resume(self) -> None:
        """SIGCONT."""
        if self.process is not None and self.process.state is State.PAUSED:
            self.process.state = State.RUNNING
            self.room.kernel.tell_of(self.process, "goes on")
            self.room.kernel.wake_up_slowly(self.process)

    def main(self) -> None:
        """The body of the process's first thread."""
        raise NotImplementedError


class OracleHost(Host):
    """A machine for an oracle, with a supervisor that starts it again."""

    def __init__(self, room: Room, name: str) -> None:
        super().__init__(room, name)
        self.coordinator: SimulatedCoordinator | None = None
        self._loop: VirtualLoop | None = None
        self._oracle: OracleProcess | None = None

    def main(self) -> None:
        """Serve until asked to stop."""
        room, process = self.room, self.process
        assert process is not None
        scenario = room.scenario
        limits = Limits(
            awake_us_max=0,  # the time that it is about is the machine's, and here there is none
            conflict_map_entries_max=scenario.conflict_map_entries_max,
            remembered_decisions_max=DECISIONS_MAX,
            transactions_in_flight_max=DECISIONS_MAX,
            remembered_aborts_max=scenario.remembered_aborts_max,
            transaction_life_ms=scenario.transaction_life_ms,
            commit_writers=self.chance.choice((1, 2, 3)),
            persist_retry_ms_max=self.chance.choice((500, 10_000)),
            write_batch_commits_max=self.chance.choice((1, 4, 8192)),
            drain_ms_max=500,
        )
        settings = ServeSettings(
            self.name, NOBODY, NOBODY, self.name, ORACLE_PORT, root=ROOT, lease=scenario.lease, limits=limits
        )
        self.coordinator = SimulatedCoordinator(room.ensemble, process)
        loop = self._loop = room.loop_of_caller()
        store = SimulatedCellStore(room.store, process)
        self._oracle = OracleProcess(
            settings, self.coordinator, store, BlockingPutter(store), announce=room.kernel.tell
        )
        code = loop.run_until_complete(self._oracle.run())
        room.kernel.tell(f"ends with exit code {code}")
        if code != 0:
            room.kernel.defect(f"{process} ended with exit code {code}", None)
        self.coordinator.close()
        room.kernel.after(0, lambda: self._end(process))

    def stop(self) -> None:
        """SIGTERM."""
        if self.process is not None and self.process.state is State.RUNNING and self._oracle is not None:
            self.room.kernel.tell_of(self.process, "is asked to stop")
            assert self._loop is not None
            self._loop.call_soon_threadsafe(self._oracle.stop)

    def _end(self, process: Process) -> None:
        if self.process is process:
            self.die(vanishes=False)
        self.room.kernel.after(self.chance.randrange(50_000, 500_000), self.start)


class ClientHost(Host):
    """A machine for an application with a few threads."""

    def __init__(self, room: Room, name: str) -> None:
        super().__init__(room, name)
        self.working = 0
        """Threads of the present process that have not come to their end."""

    @property
    def is_done(self) -> bool:
        """Whether nothing that it was called to do is left undone."""
        return not self.is_up or self.working == 0

    def main(self) -> None:
        """Connect, and start the threads."""
        room, process = self.room, self.process
        assert process is not None
        manager = TransactionManager.connect(room.client_settings(), hooks=Fate(room, self.chance))
        self.working = room.scenario.threads
        self._started = 0
        for _ in range(room.scenario.threads):
            self._start_thread(process, manager)

    def _start_thread(self, process: Process, manager: TransactionManager) -> None:
        name = str(self._started)
        self._started += 1

        def body() -> None:
            ClientThread(self.room.assignment, manager, f"{process}/{name}").run()
            self.working -= 1

        thread = self.room.kernel.spawn(process, name, body)
        thread.replace = lambda: self._start_thread(process, manager)


class Fate(TransactionHooks):
    """A thread may be interrupted at each step of a commit, and now and then it is for good."""

    def __init__(self, room: Room, chance: random.Random) -> None:
        self._room = room
        self._chance = chance

    def commit_step(self, step: CommitStep, start_timestamp: int) -> None:
        kernel = self._room.kernel
        kernel.point(f"commit: {step.value}")
        if self._room.new_work and self._chance.random() < self._room.scenario.death_share / len(CommitStep):
            kernel.tell(f"is never heard of again, its commit {step.value}")
            kernel.running().replace()
            kernel.park()


class ErrandHost(Host):
    """A machine for one errand of the simulation itself: making the tables, looking at what is left."""

    def __init__(self, room: Room, name: str, errand: Callable[[TransactionManager], None]) -> None:
        super().__init__(room, name)
        self.is_done = False
        self._errand = errand

    def main(self) -> None:
        """Do it."""
        self._errand(TransactionManager.connect(self.room.client_settings()))
        self.is_done = True
