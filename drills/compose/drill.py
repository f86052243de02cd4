"""A drill on containers from its first to its verdict: a compose project of its own, and nothing of it left behind.

The load and the reading of what it left run in a container, where the oracles' names are known; faults come from here.
Invariant: whatever ends the drill, its containers, networks and volumes go; where it is killed, the guard sees to it.
"""

from __future__ import annotations

import json
import secrets
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from random import Random
from typing import Any, Final

from client import ClientSettings
from devcluster import Progress, Step
from devcluster.guard import Guard
from drills.campaign import mixed
from drills.compose.containers import Container, Containers
from drills.compose.engine import BUILD_SECONDS_MAX, CommandFailed, Project, docker, find_compose, run
from drills.compose.faults import ContainerFault
from drills.failover import under_load
from drills.findings import Findings
from drills.installation import CLIENT_PROCESSES, DEADLINE_MS, FIRST_PRIMARY_SECONDS_MAX
from drills.loads import load_tables, running, settings_of
from drills.outages import Struck, Window
from drills.report import Report

ORACLES: Final = ("tso-1", "tso-2", "tso-3")
SERVICES: Final = ("zookeeper", "hbase", *ORACLES)
LOAD: Final = "load"
CLIENT: Final = ClientSettings("zookeeper:2181", "hbase:9090", deadline_ms=DEADLINE_MS)
HISTORIES: Final = Path("/home/pythia/recorded")
"""In the clients' container."""
UP_SECONDS_MAX: Final = 300.0
JUDGE_SECONDS_MAX: Final = 900.0


@dataclass(frozen=True, slots=True)
class ComposeDrill:
    """What is to be done. ``file``: the compose file; ``directory``: where logs and histories go."""

    file: Path
    directory: Path
    kinds: Sequence[type[ContainerFault]]
    faults: int
    seed: int = 0
    lease_ms: int = 2_000
    pause_ms: int = 10

    @property
    def logs(self) -> Path:
        """Where the oracles' logs go."""
        return self.directory / "logs"


def run_drill(drill: ComposeDrill, progress: Progress) -> Report:
    """Run it. Raises ``DrillError``, of which ``NoEngine`` says that there is nothing to run it on."""
    started = time.monotonic()
    name = f"pythia-drill-{secrets.token_hex(4)}"
    # Any free ports of the host for REST, which the drill does not ask: another project may have the usual ones.
    environment = {"PYTHIA_LEASE_MS": str(drill.lease_ms), **{f"PYTHIA_REST_PORT_{number}": "" for number in (1, 2, 3)}}
    project = Project(find_compose(), drill.file, name, environment)
    drill.logs.mkdir(parents=True, exist_ok=True)
    with Guard() as guard, _up(project, guard, progress), _oracles(project, drill.logs, guard) as oracles:
        random = Random(drill.seed)
        faults = mixed(drill.kinds, drill.faults, random)
        container = project.container(LOAD)
        tables = load_tables(CLIENT.root)
        clients = [CLIENT] * CLIENT_PROCESSES
        loads = settings_of(clients, HISTORIES, tables=tables, seed=drill.seed, pause_ms=drill.pause_ms)
        told: dict[str, Any] = {"loads": [each.to_json() for each in loads]}
        progress(Step("making the tables of the load"))
        _inside(container, "prepare", told)
        with running(loads, _python(container, "drills.load"), drill.logs, guard) as load:
            quiet, struck = under_load(oracles, load, faults, random, _with_successors(progress, oracles))
            progress(Step("ending the load"))
            load.stop()
        progress(Step("reading what it left, and checking its history"))
        told |= _moments(quiet, struck, oracles)
        findings = Findings.from_pipe(_inside(container, "judge", told))
        docker("cp", f"{container}:{HISTORIES}", str(drill.directory / "histories"))
    return Report.of(
        findings,
        struck=struck,
        flights=dict(load.landed),
        left_out={},
        processes=len(ORACLES),
        lease_ms=drill.lease_ms,
        seed=drill.seed,
        seconds=time.monotonic() - started,
    )


@contextmanager
def _up(project: Project, guard: Guard, progress: Progress) -> Iterator[None]:
    """The project's containers, while they are needed."""
    for command in project.ending():
        guard.watch_command(command)
    try:
        progress(Step("building the images"))
        project.compose("build", ORACLES[0], "hbase", seconds_max=BUILD_SECONDS_MAX)
        progress(Step("starting ZooKeeper, HBase and three oracles"))
        project.compose("up", "--detach", "--no-build", *SERVICES, LOAD, seconds_max=UP_SECONDS_MAX)
        yield
    finally:
        progress(Step("removing the containers"))
        for command in project.ending():
            with suppress(CommandFailed):  # where nothing was paused, or nothing is there yet
                run(command)


@contextmanager
def _oracles(project: Project, logs: Path, guard: Guard) -> Iterator[Containers]:
    """Their containers, each listened to, with a primary among them."""
    oracles = Containers([Container(name, project, logs, guard) for name in ORACLES])
    try:
        for seat in oracles.seats:
            seat.take_up()
        for seat in oracles.seats:
            seat.await_ready()
        oracles.await_primary(0, FIRST_PRIMARY_SECONDS_MAX)
        yield oracles
    finally:
        for seat in oracles.seats:
            seat.let_go()


def _with_successors(progress: Progress, oracles: Containers) -> Progress:
    """Besides the fault that begins, tell who is primary as it does: who took over at the last one."""

    def tell(step: Step) -> None:
        primary = oracles.primary()
        where = f" ({primary.name} is primary)" if primary else ""
        progress(Step(f"{step.text}{where}", step.done, step.total))

    return tell


def _moments(quiet: Window, struck: Sequence[Struck], oracles: Containers) -> dict[str, Any]:
    tenures = [tenure.epoch for tenure in oracles.tenures()]
    return {"quiet": quiet, "faults": [each.window for each in struck], "tenures": tenures}


def _python(container: str, module: str, *arguments: str) -> list[str]:
    return ["docker", "exec", "--interactive", container, "python", "-m", module, *arguments]


def _inside(container: str, what: str, told: dict[str, Any]) -> dict[str, Any]:
    command = _python(container, "drills.compose.inside", what)
    said = run(command, seconds_max=JUDGE_SECONDS_MAX, text=json.dumps(told))
    answer: dict[str, Any] = json.loads(said.splitlines()[-1])
    return answer
