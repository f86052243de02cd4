"""Any interleaving of three candidates: never two who both hold, never an overlap of timestamps, and never stuck.

Each process has its own monotonic clock, of another origin and another rate, and a wall clock that jumps. A step of one
process may be interrupted, before and after each of its requests, by time passing and by steps of the others: that is
how a process is paused between a check and a write. Writes end ambiguously, or arrive late.
"""

from __future__ import annotations

import contextlib
import itertools
import threading
from collections.abc import Callable, Sequence

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, rule

from lease import Candidate, LeaseSettings, Node, Operation, Tenure
from lease.coordinator import CompareAndSet
from lease.memory import MemoryCoordinator, MemoryFloor, MemoryTree, WriteFault
from tests.examples import examples
from tests.unit.lease.conftest import floor_raised_at_once

LEASE = LeaseSettings(lease_ms=1000)
PROCESSES = 3
ROUNDS_UNTIL_SERVED_MAX = 20
"""Once nothing fails any more, somebody serves after at most this many half leases."""

Interruption = Callable[[], None]


class InterruptedCoordinator(MemoryCoordinator):
    """The twin, interrupted before and after each request."""

    def __init__(self, tree: MemoryTree, interrupt: Interruption) -> None:
        super().__init__(tree)
        self._interrupt = interrupt

    def read(
        self, path: str, *, timeout_ms: float, synced: bool = False, changed: threading.Event | None = None
    ) -> Node | None:
        self._interrupt()
        node = super().read(path, timeout_ms=timeout_ms, synced=synced, changed=changed)
        self._interrupt()
        return node

    def commit(self, operations: Sequence[Operation], *, timeout_ms: float) -> CompareAndSet:
        self._interrupt()
        result = super().commit(operations, timeout_ms=timeout_ms)
        self._interrupt()
        return result


class Process:
    """A candidate with clocks of its own, and the tenure that it was given last."""

    def __init__(self, world: LeaseMachine, name: str, rate: float, wall_ms: int) -> None:
        self._world = world
        self._name = name
        self._rate = rate
        self.wall_ms = wall_ms
        self.busy = False
        self.clients: list[InterruptedCoordinator] = []
        self.restart()

    def restart(self) -> None:
        """Forget everything, as after a crash; what is on its way stays on its way."""
        self.tenure: Tenure | None = None
        self._wait_ms = 0.0
        self.client = InterruptedCoordinator(self._world.tree, self._world.interrupt)
        self.clients.append(self.client)
        self._candidate = Candidate(
            self.client,
            LEASE,
            self._name,
            ["127.0.0.1:1"],
            monotonic_ms=lambda: 1e6 * self._rate + self._rate * self._world.true_ms,
            wall_ms=lambda: self.wall_ms + int(self._world.true_ms),
            timestamp_of_ms=lambda milliseconds: milliseconds << 18,
            new_nonce=lambda: f"nonce-{next(self._world.nonces)}",
            root="/pythia",
            floor=self._world.floor,
        )

    def is_held(self) -> bool:
        return self.tenure is not None and self.tenure.is_held()

    def attempt(self) -> None:
        if not self.is_held():
            outcome = self._candidate.attempt()
            if isinstance(outcome, Tenure):
                self.tenure = outcome
                self._world.tenures.append(outcome)
            else:
                self._wait_ms = outcome.wait_ms

    def wait_and_attempt(self) -> None:
        """Try again at the very first moment at which it may succeed."""
        if not self.is_held():
            self._world.true_ms += self._wait_ms / self._rate
            self.attempt()

    def renew(self, share: float = 0.0) -> None:
        if self.tenure is not None:
            epoch, ceiling = self.tenure.epoch, self.tenure.ceiling
            self.tenure.renew(reached=epoch + int(share * (ceiling - 1 - epoch)))

    def release(self) -> None:
        if self.tenure is not None:
            self.tenure.release()

    def deliver(self) -> None:
        for client in self.clients:
            client.deliver_late()


WHO = st.integers(0, PROCESSES - 1)
SHORT_MS = st.sampled_from([1, 100, 250, 490, 875, 999, 1000, 1001])
STEPS = st.one_of(
    st.tuples(st.just("advance"), SHORT_MS),
    st.tuples(st.just("attempt"), WHO),
    st.tuples(st.just("wait_and_attempt"), WHO),
    st.tuples(st.just("renew"), WHO),
    st.tuples(st.just("release"), WHO),
    st.tuples(st.just("deliver"), WHO),
    st.tuples(st.just("lose_everything"), st.just(0)),
)
Step = tuple[str, int]
Interruptions = dict[int, list[Step]]
INTERRUPTIONS = st.dictionaries(st.integers(0, 8), st.lists(STEPS, min_size=1, max_size=3), max_size=2)
"""Before or after which request, counted from 0, what happens meanwhile."""
FAULTS = st.lists(st.sampled_from(WriteFault), max_size=3)


class LeaseMachine(RuleBasedStateMachine):
    """The world: one tree, true time, and what is due to happen at the next requests."""

    def __init__(self) -> None:
        super().__init__()
        self.tree = MemoryTree()
        self.floor = MemoryFloor()
        self.true_ms = 0.0
        self.nonces = itertools.count()
        self.tenures: list[Tenure] = []
        self.due: Interruptions = {}
        self.moments = itertools.count()
        self.patched = contextlib.ExitStack()
        self.patched.enter_context(floor_raised_at_once())

    @initialize(rates=st.lists(st.sampled_from([0.95, 1.0, 1.05]), min_size=PROCESSES, max_size=PROCESSES))
    def start(self, rates: list[float]) -> None:
        self.processes = [Process(self, f"p{i}", rate, 10**12) for i, rate in enumerate(rates)]

    @rule(ms=st.one_of(SHORT_MS, st.floats(0, 3000)))
    def advance(self, ms: float) -> None:
        self.true_ms += ms
        self.check()

    @rule(who=WHO, step_ms=st.integers(-(10**10), 10**7))
    def step_wall_clock(self, who: int, step_ms: int) -> None:
        self.processes[who].wall_ms = max(0, self.processes[who].wall_ms + step_ms)

    @rule(who=WHO, due=INTERRUPTIONS, faults=FAULTS)
    def attempt(self, who: int, due: Interruptions, faults: list[WriteFault]) -> None:
        self.interrupted(who, due, faults, self.processes[who].attempt)

    @rule(who=WHO, due=INTERRUPTIONS, faults=FAULTS)
    def wait_and_attempt(self, who: int, due: Interruptions, faults: list[WriteFault]) -> None:
        self.interrupted(who, due, faults, self.processes[who].wait_and_attempt)

    @rule(who=WHO, watcher=WHO, last=st.sampled_from(["attempt", "renew"]), due=INTERRUPTIONS, faults=FAULTS)
    def fail_over(self, who: int, watcher: int, last: str, due: Interruptions, faults: list[WriteFault]) -> None:
        """The usual way: a process is seen to serve, says something once more, and then its lease runs out."""
        if last == "renew":
            self.interrupted(who, {}, [], self.processes[who].attempt)
            self.interrupted(watcher, {}, [], self.processes[watcher].attempt)
        self.interrupted(who, due, faults, getattr(self.processes[who], last))
        self.interrupted(watcher, {}, [], self.processes[watcher].attempt)
        self.interrupted(watcher, {}, [], self.processes[watcher].wait_and_attempt)

    @rule(who=WHO, due=INTERRUPTIONS, faults=FAULTS, share=st.sampled_from([0.0, 0.6, 1.0]))
    def renew(self, who: int, due: Interruptions, faults: list[WriteFault], share: float) -> None:
        self.interrupted(who, due, faults, lambda: self.processes[who].renew(share))

    @rule(who=WHO, due=INTERRUPTIONS, faults=FAULTS)
    def release(self, who: int, due: Interruptions, faults: list[WriteFault]) -> None:
        self.interrupted(who, due, faults, self.processes[who].release)

    @rule(who=WHO)
    def deliver(self, who: int) -> None:
        self.processes[who].deliver()

    @rule(who=WHO, unreachable=st.booleans())
    def cut_or_mend(self, who: int, unreachable: bool) -> None:
        self.processes[who].client.unreachable = unreachable

    @rule()
    def lose_everything(self) -> None:
        """The coordinator comes back empty, to sessions that it does not know; what was on its way is gone."""
        self.tree.lose_everything()
        for process in self.processes:
            for client in process.clients:
                client.lose_late()
            process.client.expire_session()
        self.check()

    @rule(who=WHO)
    def crash(self, who: int) -> None:
        self.processes[who].restart()

    def interrupted(self, who: int, due: Interruptions, faults: list[WriteFault], step: Interruption) -> None:
        self.due, self.moments = dict(due), itertools.count()
        self.processes[who].client.write_faults = list(faults)
        self.act(who, step)
        self.due = {}
        self.processes[who].client.write_faults = []
        self.check()

    def interrupt(self) -> None:
        """Called before and after every request of anybody."""
        for kind, number in self.due.pop(next(self.moments), []):
            if kind == "advance":
                self.true_ms += number
            elif kind == "lose_everything":
                self.lose_everything()
            else:
                self.act(number, getattr(self.processes[number], kind))
            self.check()

    def act(self, who: int, step: Interruption) -> None:
        """Let a process do one thing at a time: one that is interrupted does not start another."""
        process = self.processes[who]
        if not process.busy:
            process.busy = True
            step()
            process.busy = False

    def check(self) -> None:
        holders = [process for process in self.processes if process.is_held()]
        assert len(holders) <= 1, "two processes both believe that they hold the lease"
        ranges = sorted((tenure.epoch, tenure.ceiling) for tenure in self.tenures)
        for (_, ceiling), (epoch, _) in itertools.pairwise(ranges):
            assert ceiling <= epoch, "two tenures own the same timestamps"

    def teardown(self) -> None:
        """Once nothing fails any more, somebody serves."""
        self.patched.close()
        for process in getattr(self, "processes", []):
            process.client.unreachable = False
            process.deliver()
        for _ in range(ROUNDS_UNTIL_SERVED_MAX):
            for process in getattr(self, "processes", []):
                process.attempt()
                self.check()
                if process.is_held():
                    return
            self.true_ms += LEASE.lease_ms / 2
        assert not hasattr(self, "processes"), "nobody serves though nothing fails"


LeaseMachine.TestCase.settings = settings(max_examples=examples(300), stateful_step_count=25, deadline=None)
TestLeaseMachine = LeaseMachine.TestCase
