"""A failover drill from its first process to its verdict."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from random import Random
from typing import Final

from client import InvalidRequest, TransactionManager
from devcluster import Progress, Step
from devcluster.guard import Guard
from drills.campaign import Campaign
from drills.children import python
from drills.evidence import gather
from drills.fault import AnyFault, Fault, SiteT
from drills.findings import findings
from drills.installation import CLIENT_PROCESSES, PROCESSES_MAX, PROCESSES_MIN, Installation, Plan, installed
from drills.load import LoadSettings
from drills.loads import Loads, create_tables, load_tables, running, settings_of
from drills.outages import Struck, Window
from drills.report import Report

QUIET_SECONDS: Final = 2.0
"""How long the load runs before the first fault, so that there is something to compare an outage with."""
START_SECONDS_MAX: Final = 60.0
FAULTS_MAX: Final = 10_000
LEASE_MS_MIN, LEASE_MS_MAX = 500, 60_000
PAUSE_MS_MAX: Final = 10_000


@dataclass(frozen=True, slots=True)
class Drill:
    """What is to be done. ``choose`` makes the list of faults from those that can be had, by the drill's own random.

    ``pause_ms``: what each of the load's threads waits between two transactions. Raises ``InvalidRequest`` for numbers
    that make no drill.
    """

    plan: Plan
    kinds: Sequence[type[Fault]]
    choose: Callable[[Sequence[type[Fault]], Random], list[type[Fault]]]
    seed: int = 0
    pause_ms: int = 10

    def __post_init__(self) -> None:
        if not PROCESSES_MIN <= self.plan.processes <= PROCESSES_MAX:
            raise InvalidRequest(
                f"a failover needs {PROCESSES_MIN} to {PROCESSES_MAX} oracle processes, not {self.plan.processes}"
            )
        if not LEASE_MS_MIN <= self.plan.lease_ms <= LEASE_MS_MAX:
            raise InvalidRequest(f"the lease is {LEASE_MS_MIN} to {LEASE_MS_MAX} ms here, not {self.plan.lease_ms}")
        if not 0 <= self.pause_ms <= PAUSE_MS_MAX:
            raise InvalidRequest(f"the load's pause is 0 to {PAUSE_MS_MAX} ms, not {self.pause_ms}")
        if (self.plan.zookeeper is None) != (self.plan.thrift is None):
            raise InvalidRequest("zookeeper and thrift go together: give both, or neither for services of the drill's")


def run(drill: Drill, progress: Progress) -> Report:
    """Run the drill. Raises ``DrillError``, ``DevClusterError`` and the errors of the client and the store."""
    started = time.monotonic()
    with Guard() as guard, installed(drill.plan, guard, progress) as installation:
        left_out = {kind.name: reason for kind in drill.kinds if (reason := kind.missing(installation))}
        random = Random(drill.seed)
        faults = drill.choose([kind for kind in drill.kinds if kind.name not in left_out], random)
        with TransactionManager.connect(installation.settings) as manager:
            progress(Step("making the tables of the load"))
            tables = load_tables(installation.settings.root)
            create_tables(manager, tables)
            settings = load_settings(drill.plan, installation, tables, seed=drill.seed, pause_ms=drill.pause_ms)
            with running(settings, python("drills.load"), installation.logs, installation.guard) as loads:
                quiet, struck = under_load(installation, loads, faults, random, progress)
                progress(Step("ending the load"))
                loads.stop()
                progress(Step("reading what it left, and checking its history"))
                tenures = [tenure.epoch for tenure in installation.tenures()]
                record = gather(manager, settings, [each.window for each in struck], tenures)
            return Report.of(
                findings(record, quiet),
                struck=struck,
                flights=dict(loads.landed),
                left_out=left_out,
                processes=drill.plan.processes,
                lease_ms=drill.plan.lease_ms,
                seed=drill.seed,
                seconds=time.monotonic() - started,
            )


def load_settings(
    plan: Plan, installation: Installation, tables: str, *, seed: int, pause_ms: int
) -> list[LoadSettings]:
    """Of the load's processes, whose histories go below the plan's directory."""
    histories = plan.directory / "histories"
    histories.mkdir(parents=True, exist_ok=True)
    clients = [installation.client_settings(number) for number in range(CLIENT_PROCESSES)]
    return settings_of(clients, histories, tables=tables, seed=seed, pause_ms=pause_ms)


def under_load(
    installation: SiteT, loads: Loads, faults: Sequence[type[AnyFault[SiteT]]], random: Random, progress: Progress
) -> tuple[Window, list[Struck]]:
    """The time before the first fault, and all of them."""
    progress(Step("load begins, without faults at first"))
    loads.await_commits(0, START_SECONDS_MAX, "at the start")
    begun_ns = time.monotonic_ns()
    time.sleep(QUIET_SECONDS)
    loads.await_commits(begun_ns, START_SECONDS_MAX, "before the first fault")
    quiet = Window(begun_ns, time.monotonic_ns())

    def tell(name: str, done: int) -> None:
        progress(Step(name, done, len(faults)))

    return quiet, list(Campaign(installation, loads, random).run(faults, tell))
