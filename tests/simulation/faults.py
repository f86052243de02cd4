"""What goes wrong in a run, when, and to whom: drawn from the seed, within a budget, and healed in the end.

Some faults come at a moment, others at a *step*: the next time that somebody is about to do a certain thing, such as to
write the commit table or to look at the clock. The dangerous moments are short, and hardly ever met by the clock.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence

from client import TransactionManager
from fleet import NoAnswer, ask_to_hand_over
from tests.simulation.kernel import VirtualThread
from tests.simulation.room import ORACLE_PORT, ClientHost, ErrandHost, Host, OracleHost, Room
from tests.simulation.scenario import FaultKind
from tests.simulation.services import Service
from tests.simulation.timestamps import shown

ORACLE_STEPS = {
    "store: put pythia_commits": 6,
    "store: put pythia_commits: answered": 2,
    "store: compare and set pythia_commits": 1,
    "coordinator: commit": 2,
    "coordinator: commit: answered": 2,
    "coordinator: read: answered": 1,
    "clock": 2,
    "event loop": 3,
    "work": 1,
}
CLIENT_STEPS = {
    "commit: written": 2,
    "commit: sent": 2,
    "commit: answered": 2,
    "store: put cells": 1,
    "store: put rows": 1,
    "store: compare and set pythia_commits": 2,
    "store: compare and set pythia_commits: answered": 2,
    "store: get many: answered": 2,
    "store: scan: answered": 1,
    "receive": 2,
}
"""Step → how often it is chosen, compared with the others."""
OFTEN_TAKEN = ("clock", "event loop", "receive")


class Faults:
    """The faults of one run."""

    def __init__(self, room: Room) -> None:
        self._room = room
        self._kernel = room.kernel
        self._lease_us = room.scenario.lease.lease_ms * 1000
        self._random: random.Random = room.kernel.stream("faults")
        self._undo: dict[int, Callable[[], None]] = {}
        self._numbers = 0
        self._armed: list[_Armed] = []
        self._ended = False
        self._kinds: dict[FaultKind, Callable[[], None]] = {
            FaultKind.CRASH: self._crash,
            FaultKind.PAUSE: self._pause,
            FaultKind.PAUSE_AT_STEP: lambda: self._arm(self._pause_for_long),
            FaultKind.CRASH_AT_STEP: lambda: self._arm(self._crash_host),
            FaultKind.PARTITION: self._partition,
            FaultKind.BREAK_CONNECTION: self._break_connections,
            FaultKind.STORE_UNSURE: lambda: self._make_unsure(room.store.service),
            FaultKind.STORE_DOWN: lambda: self._take_down(room.store.service),
            FaultKind.COORDINATOR_UNSURE: lambda: self._make_unsure(room.ensemble.service),
            FaultKind.COORDINATOR_DOWN: lambda: self._take_down(room.ensemble.service),
            FaultKind.COORDINATOR_LOST: self._lose_data,
            FaultKind.CLOCK_STEP: self._step_clock,
            FaultKind.SESSION: self._expire_session,
            FaultKind.STOP: self._stop_oracle,
            FaultKind.HANDOVER: self._hand_over,
            FaultKind.SLOW: self._slow_down,
        }
        self._kernel.on_point = self._at_point

    def plan(self) -> None:
        """Draw the moments of all faults of the run."""
        scenario = self._room.scenario
        for _ in range(scenario.faults):
            kind = self._random.choice(scenario.fault_kinds)
            self._kernel.after(self._random.randrange(scenario.busy_ms * 1000), self._commit(kind))

    def heal_all(self) -> None:
        """Undo what is still wrong, and let nothing more go wrong."""
        self._ended = True
        self._armed.clear()
        self._tell("everything heals")
        for number in list(self._undo):
            self._heal(number)
        self._room.links.heal_all()
        for host in self._room.hosts:
            host.resume()
            host.start()

    def _commit(self, kind: FaultKind) -> Callable[[], None]:
        def commit() -> None:
            if not self._ended:
                self._kinds[kind]()

        return commit

    def _crash(self) -> None:
        self._crash_host(self._some_host())

    def _crash_host(self, host: Host, *, vanishes: bool | None = None) -> None:
        host.die(vanishes=self._random.random() < 0.3 if vanishes is None else vanishes)
        self._undo_later(host.start, self._random.randrange(20_000, 2 * self._lease_us))

    def _pause(self) -> None:
        self._pause_host(self._some_host())

    def _pause_host(self, host: Host) -> None:
        host.pause()
        self._undo_later(host.resume, self._duration_us())

    def _pause_for_long(self, host: Host) -> None:
        """Mostly for longer than a lease, so that it goes on in another epoch; and sometimes not alone.

        What a primary does too late matters most where a client is left that would believe it, or none that would do
        it again.
        """
        host.pause()
        duration_us = int(self._lease_us * self._random.choice((0.3, 1.3, 1.6, 2.0, 3.0)))
        self._undo_later(host.resume, duration_us)
        share = self._random.random()
        if share < 0.3:
            self._crash_host(self._some_client(), vanishes=share < 0.2)
        elif share < 0.6:
            self._cut([("coordinator", client.name) for client in self._room.clients], duration_us + self._lease_us)

    def _partition(self) -> None:
        """Between two of the room, in one direction or both."""
        one, other = self._some_host().name, self._random.choice(("store", "coordinator", self._some_host().name))
        self._cut(
            self._random.choice(([(one, other)], [(other, one)], [(one, other), (other, one)])), self._duration_us()
        )

    def _cut(self, pairs: Sequence[tuple[str, str]], duration_us: int) -> None:
        shown_pairs = ", ".join(f"{source} → {target}" for source, target in pairs)
        self._tell(f"cut: {shown_pairs}")
        for source, target in pairs:
            self._room.links.cut(source, target)

        def heal() -> None:
            self._tell(f"healed: {shown_pairs}")
            for source, target in pairs:
                self._room.links.heal(source, target)
            ends = {name for pair in pairs for name in pair}
            for oracle in self._room.oracles:
                if oracle.coordinator is not None and oracle.name in ends:
                    oracle.coordinator.lose_watches()

        self._undo_later(heal, duration_us)

    def _break_connections(self) -> None:
        for _ in range(self._random.randint(1, 4)):
            broken = self._room.network.break_one()
            if broken:
                self._tell(f"connection broken: {broken}")

    def _make_unsure(self, service: Service) -> None:
        share = self._random.choice((0.05, 0.2, 0.5))
        self._tell(f"{service.name}: {share:.0%} of answers are lost")
        service.health.unsure_share += share

        def heal() -> None:
            service.health.unsure_share -= share

        self._undo_later(heal, self._duration_us())

    def _take_down(self, service: Service) -> None:
        self._tell(f"{service.name} is down")
        service.health.down = True

        def heal() -> None:
            self._tell(f"{service.name} is up")
            service.health.down = False

        self._undo_later(heal, self._duration_us())

    def _lose_data(self) -> None:
        """The coordinator comes back empty. Nobody's session is known any more."""
        self._tell("the coordinator has lost its data")
        self._room.ensemble.lose_everything()
        for oracle in self._room.oracles:
            if oracle.coordinator is not None:
                oracle.coordinator.expire_session()

    def _step_clock(self) -> None:
        host = self._some_host()
        step_us = self._random.choice((-3_600_000_000, -2_000_000, -100_000, 100_000, 2_000_000, 3_600_000_000))
        self._tell(f"wall clock of {host.name} is stepped by {step_us / 1_000_000:g} s")
        host.clock.wall_ahead_us += step_us

    def _expire_session(self) -> None:
        host = self._some_oracle()
        if host.coordinator is not None and host.is_up:
            self._tell(f"session of {host.name} expires")
            host.coordinator.expire_session()

    def _stop_oracle(self) -> None:
        self._some_oracle().stop()

    def _hand_over(self) -> None:
        """An operator asks the primary to hand over, from a machine of his own."""
        address = f"{self._room.primary().name}:{ORACLE_PORT}"

        def ask(manager: TransactionManager) -> None:
            try:
                epoch = ask_to_hand_over(address, 2000)
            except NoAnswer as error:
                self._tell(f"no hand-over: {error}")
            else:
                self._tell(f"epoch {shown(epoch)} was handed over")

        self._numbers += 1
        ErrandHost(self._room, f"operator-{self._numbers}", ask).start()

    def _slow_down(self) -> None:
        links = self._room.links
        more_us = self._random.choice((20_000, 200_000))
        self._tell(f"messages take up to {more_us // 1000} ms more")
        links.travel_us_max += more_us

        def heal() -> None:
            links.travel_us_max -= more_us

        self._undo_later(heal, self._duration_us())

    def _arm(self, act: Callable[[Host], None]) -> None:
        """At the n-th time from now that the primary, or some other host, is about to do a certain thing."""
        share = self._random.random()
        host = None if share < 0.6 else self._some_oracle() if share < 0.7 else self._some_client()
        steps = CLIENT_STEPS if isinstance(host, ClientHost) else ORACLE_STEPS
        step = self._random.choices(list(steps), list(steps.values()))[0]
        count = self._random.randrange(200 if step in OFTEN_TAKEN else 3)
        self._armed.append(_Armed(host, step, count, act))

    def _at_point(self, label: str, thread: VirtualThread) -> None:
        for armed in self._armed:
            if label.startswith(armed.step):
                host = armed.host or self._room.primary()
                if host.process is thread.process:
                    armed.count -= 1
                    if armed.count < 0:
                        self._armed.remove(armed)
                        self._tell(f"{thread.process} is at its step {label!r}")
                        armed.act(host)
                        return

    def _some_host(self) -> Host:
        share = self._random.random()
        if share < 0.45:
            return self._room.primary()
        return self._some_oracle() if share < 0.65 else self._some_client()

    def _some_oracle(self) -> OracleHost:
        return self._random.choice([self._room.primary(), *self._room.oracles])

    def _some_client(self) -> ClientHost:
        return self._random.choice(self._room.clients)

    def _duration_us(self) -> int:
        """From a blink to several leases; mostly about one."""
        return int(
            self._lease_us * self._random.choice((0.05, 0.3, 0.9, 1.1, 1.5, 2.5)) * self._random.uniform(0.8, 1.2)
        )

    def _undo_later(self, undo: Callable[[], None], delay_us: int) -> None:
        self._numbers += 1
        number = self._numbers
        self._undo[number] = undo
        self._kernel.after(delay_us, lambda: self._heal(number))

    def _heal(self, number: int) -> None:
        undo = self._undo.pop(number, None)
        if undo is not None:
            undo()

    def _tell(self, text: str) -> None:
        self._kernel.tell_of("FAULT", text)


class _Armed:
    """A fault that waits for its step; ``host`` ``None``: of whoever is primary then."""

    def __init__(self, host: Host | None, step: str, count: int, act: Callable[[Host], None]) -> None:
        self.host = host
        self.step = step
        self.count = count
        self.act = act
