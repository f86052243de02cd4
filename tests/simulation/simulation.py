"""One run: a room is built from its seed, lives, and is judged."""

from __future__ import annotations

import gc
import logging
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass

from client import Conflict, SnapshotHandle, TransactionManager
from client.connection.oracle import new_event_loop
from lease.zookeeper import ZooKeeperCoordinator
from store.hbase import HBaseCellStore
from tests.simulation.faults import Faults
from tests.simulation.kernel import Stuck
from tests.simulation.modules import ROOMS, stand_ins
from tests.simulation.recorded import TABLES, RecordedTransaction, value_of
from tests.simulation.room import ErrandHost, NumberedConnection, Room
from tests.simulation.scenario import Mode, Scenario, scenario
from tests.simulation.story import Story, StoryHandler
from tests.simulation.timestamps import shown
from tests.simulation.truth import Landings, Truth
from tests.simulation.verdict import anomalies, late_writes
from tso.serving.connection import Connection

PAST_SNAPSHOTS_READ = 6
AUDIT_ATTEMPTS_MAX = 5
"""Of a new transaction once all is well: what was under way when it healed may commit after its snapshot, and is then a
conflict like any other. Each attempt outlasts what was under way before it."""
SETTLING_MS = 1000
"""When all has healed, a primary is found again within two leases and so much."""
NO_FAULT_OF_ITS_OWN = ("SnapshotTooOld", "NoPrimary", "StoreUnavailable", "OutcomeUnknown", "never taken up")
"""Ends that a transaction must not come to when nothing is wrong any more."""


@dataclass(frozen=True, slots=True)
class Run:
    """How a run went."""

    scenario: Scenario
    anomalies: Sequence[str]
    story: Sequence[str]
    transactions: int
    committed: int
    survived: int
    """Transactions that committed in a later epoch than the one in which they began."""
    late_writes: int
    """Commit records that reached the commit table after their epoch had ended."""
    epochs: int
    virtual_ms: int
    steps: int

    @property
    def summary(self) -> str:
        """One line."""
        return (
            f"seed {self.scenario.seed} {self.scenario.mode.value}: {self.transactions} transactions, {self.committed} "
            f"committed, {self.survived} across epochs, {self.late_writes} recorded late, {self.epochs} epochs, "
            f"{self.virtual_ms / 1000:.1f} s, {self.steps} steps"
        )


def run(seed: int, mode: Mode, *, told: bool = False, without_faults: bool = False) -> Run:
    """Simulate a seed. ``told``: with its story, which changes nothing."""
    story = Story(is_told=told)
    room = Room(scenario(seed, mode, without_faults=without_faults), story)
    services = {
        ZooKeeperCoordinator: room.coordinator_of_caller,
        HBaseCellStore: room.store_of_caller,
        Connection: NumberedConnection,
        new_event_loop: room.loop_of_caller,
    }
    with stand_ins(room.kernel, room.network, services), _logging_into(room), _no_collections():
        try:
            return _Simulation(room, story).run()
        finally:
            room.kernel.close()
            for loop in room.loops:
                loop.discard()


class _Simulation:
    """The course of a run."""

    def __init__(self, room: Room, story: Story) -> None:
        self._room = room
        self._kernel = room.kernel
        self._story = story
        self._scenario = room.scenario
        self._landings = Landings(room.kernel, room.commit_table)
        room.store.watchers.append(self._landings.watch)
        self._past: list[tuple[str, int, str, int]] = []
        self._found: list[str] = []

    def run(self) -> Run:
        self._tell(f"{self._scenario}")
        self._do(ErrandHost(self._room, "setup", _make_tables), 60_000)
        faults = Faults(self._room)
        for host in self._room.hosts:
            self._kernel.after(host.chance.randrange(200_000), host.start)
        faults.plan()
        end_us = self._kernel.now_us + self._scenario.busy_ms * 1000
        self._until(lambda: self._kernel.now_us >= end_us)
        if self._scenario.mode is Mode.LIVENESS:
            faults.heal_all()
            self._come_to_an_end()
        return self._judge()

    def _come_to_an_end(self) -> None:
        """Everything is healed: every call ends, and new work is done, in bounded time."""
        room, scenario = self._room, self._scenario
        room.new_work = False
        healed = room.journal.moment() + 1000 * (2 * scenario.lease.lease_ms + SETTLING_MS) * 1000
        patience_ms = 12 * scenario.lease.lease_ms + 4 * (scenario.deadline_ms + scenario.store_timeout_ms)
        end_us = self._kernel.now_us + patience_ms * 1000
        self._until(lambda: self._kernel.now_us >= end_us or all(host.is_done for host in room.clients))
        self._require_survival(healed)
        busy = [host.name for host in room.clients if not host.is_done]
        if busy:
            self._found.append(
                f"no progress: {', '.join(busy)} had not come to an end {patience_ms} ms after all was healed"
            )
        self._do(ErrandHost(room, "auditor", self._audit), patience_ms)

    def _require_survival(self, healed: int) -> None:
        """Whoever commits once all is well ends in the commit or in a conflict of its own, however old it is."""
        for record in self._room.journal.records:
            if record.commit_sent is not None and record.commit_sent > healed and record.error in NO_FAULT_OF_ITS_OWN:
                self._found.append(f"not survived: {shown(record.start)} of {record.process} ended as {record.error}")

    def _audit(self, manager: TransactionManager) -> None:
        """A new transaction commits, and the past is what it was."""
        journal = self._room.journal
        for _ in range(AUDIT_ATTEMPTS_MAX):
            new = RecordedTransaction.begin(journal, manager, "auditor")
            for table in TABLES:
                new.scan(table)
            new.put((TABLES[0], b"r0", b"f:a"))
            new.commit()
            if new.record.error != Conflict.__name__:
                break
        if new.record.commit_timestamp is None:
            self._found.append(
                f"no progress: a new transaction could not commit after all was healed: {new.record.error}"
            )
        for record in journal.records[:: max(1, len(journal.records) // PAST_SNAPSHOTS_READ)]:
            handle = SnapshotHandle(record.snapshot, record.epoch, manager.settings)
            for table in TABLES:
                for row, values in manager.resume_snapshot(handle).scan(table):
                    self._past += [
                        (f"{table}/{row.decode()}/{column.decode()}", record.snapshot, "auditor", value_of(value))
                        for column, value in values.items()
                    ]

    def _do(self, host: ErrandHost, patience_ms: int) -> None:
        end_us = self._kernel.now_us + patience_ms * 1000
        host.start()
        self._until(lambda: host.is_done or self._kernel.now_us >= end_us or bool(self._kernel.defects))
        if not host.is_done:
            self._found.append(f"no progress: the {host.name} did not come to an end within {patience_ms} ms")

    def _until(self, holds: Callable[[], bool]) -> None:
        try:
            self._kernel.run(holds)
        except Stuck as error:
            self._found.append(f"stuck: {error}")

    def _judge(self) -> Run:
        room = self._room
        for service in (room.store.service, room.ensemble.service):
            service.deliver_late()
        truth = Truth(room.store.cells, room.commit_table, room.journal.records)
        found = [*self._found, *anomalies(room, truth, self._landings), *self._changed_past(truth)]
        for anomaly in found:
            self._tell(f"ANOMALY: {anomaly}")
        takeovers = room.ensemble.takeovers
        begun_in = {record.start: record.epoch for record in room.journal.records}
        survived = sum(
            any(start < each.epoch <= commit for each in takeovers) for start, commit in truth.committed.items()
        )
        return Run(
            scenario=self._scenario,
            anomalies=found,
            story=self._story.lines,
            transactions=len(begun_in),
            committed=len(truth.committed),
            survived=survived,
            late_writes=late_writes(self._landings, takeovers),
            epochs=len(takeovers),
            virtual_ms=self._kernel.now_us // 1000,
            steps=self._kernel.steps,
        )

    def _changed_past(self, truth: Truth) -> Iterator[str]:
        for cell, snapshot, who, value in self._past:
            expected = truth.value_at(cell, snapshot)
            if value != expected:
                yield f"changed past: {who} read {cell} = {value} at {shown(snapshot)}, where it was {expected}"

    def _tell(self, text: str) -> None:
        self._kernel.tell_of("simulation", text)


def _make_tables(manager: TransactionManager) -> None:
    for table, level in zip(TABLES, ("cell", "row"), strict=True):
        manager.create_table(table, ["f", "g"], conflict_level=level)  # type: ignore[arg-type]


@contextmanager
def _no_collections() -> Iterator[None]:
    """What is held only weakly lives until its last holder lets go; when cycles are collected, no seed decides."""
    was_enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_enabled:
            gc.enable()


@contextmanager
def _logging_into(room: Room) -> Iterator[None]:
    """What the project logs goes into the story, or nowhere."""
    handler = StoryHandler(room.kernel.tell) if room.kernel.story.is_told else logging.NullHandler()
    loggers = [logging.getLogger(name) for name in ROOMS]
    kept = [(logger, logger.level, logger.propagate) for logger in loggers]
    for logger in loggers:
        logger.addHandler(handler)
        logger.setLevel(logging.INFO if room.kernel.story.is_told else logging.CRITICAL)
        logger.propagate = False
    try:
        yield
    finally:
        for logger, level, propagate in kept:
            logger.removeHandler(handler)
            logger.setLevel(level)
            logger.propagate = propagate
