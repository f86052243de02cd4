"""The processes of the load, seen from the drill: what it tells them, and what they have told."""

from __future__ import annotations

import json
import threading
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any, Final

from client import ClientSettings, TransactionManager
from configuration.defaults import SHADOW_CELLS
from devcluster.guard import Guard
from drills.children import Child
from drills.flights import LANDING_SECONDS_MAX, OPEN_SECONDS_MAX, Stage
from drills.installation import tables_of
from drills.load import FLIGHTS, LOADS, LoadSettings, workload_of
from drills.waiting import wait_until
from histories.cells import FAMILY

STOP_SECONDS_MAX: Final = 300.0


class LoadProcess:
    """One of them. Its methods belong to the drill's main thread."""

    def __init__(self, settings: LoadSettings, command: Sequence[str], logs: Path, guard: Guard) -> None:
        self.settings = settings
        self._lock = threading.Lock()
        self._sent_ns = 0
        self._done: Counter[str] = Counter()
        self._failures: list[str] = []
        self.landed: Counter[str] = Counter()
        self._child = Child(settings.name, command, logs / f"{settings.name}.log", guard, take=self._take)

    @property
    def sent_ns(self) -> int:
        """When the latest of its acknowledged commits was sent, in nanoseconds of the monotonic clock."""
        with self._lock:
            return self._sent_ns

    def order(self, **order: object) -> None:
        """Tell it to do something."""
        self._child.send(json.dumps(order))

    def await_done(self, what: str, seconds_max: float) -> None:
        """Wait until it says that it did. Raises ``DrillStalled``, or ``ChildFailed`` where it cannot any more."""
        self.await_that(lambda: self._done[what] > 0, f"{self.settings.name} to have {what}", seconds_max)

    def await_that(self, condition: Callable[[], bool], what: str, seconds_max: float) -> None:
        """Wait for something that needs this process."""
        wait_until(lambda: self._is_well() and condition(), what, seconds_max, explain=self._child.tail)

    def end(self) -> None:
        """End it, whatever it does."""
        self._child.kill()

    def _is_well(self) -> bool:
        if self._failures:
            raise self._child.failure(f"says: {self._failures[0]}")
        if self._child.has_said_all() and not self._done["stopped"]:
            raise self._child.failure("was not told to stop")
        return True

    def _take(self, line: str, at_ns: int) -> None:
        del at_ns
        message: dict[str, Any] = json.loads(line)
        with self._lock:
            self._sent_ns = message.get("sent_ns", self._sent_ns)
            self.landed.update(message.get("how", {}))
            if "failed" in message:
                self._failures.append(message["failed"])
            for what in ("opened", "landed"):
                if what in message:
                    self._done[f"{what} {message[what]}"] += 1
            self._done["stopped"] += "stopped" in message


class Loads:
    """All of them together."""

    def __init__(self, processes: Sequence[LoadProcess]) -> None:
        self.processes = tuple(processes)

    @property
    def landed(self) -> Counter[str]:
        """How the flights so far have ended."""
        return sum((process.landed for process in self.processes), Counter())

    def await_commits(self, since_ns: int, seconds_max: float, explain: str) -> None:
        """Wait until each process has had a commit acknowledged that it sent after that. Raises ``DrillStalled``."""
        for process in self.processes:
            what = f"a commit of {process.settings.name} {explain}"
            process.await_that(lambda process=process: process.sent_ns > since_ns, what, seconds_max)  # type: ignore[misc]

    def open(self, fault: int) -> None:
        """Have flights opened for a fault, and wait until they are."""
        self._all("opened", fault, OPEN_SECONDS_MAX, open=fault)

    def reach(self, fault: int, stage: Stage) -> None:
        """Have the flights that wait for it end; does not wait for that."""
        for process in self.processes:
            process.order(reach=stage.value, fault=fault)

    def land(self, fault: int) -> None:
        """Wait until all flights of a fault have ended."""
        self._all("landed", fault, LANDING_SECONDS_MAX, land=fault)

    def stop(self) -> None:
        """Have the load end, and its histories written."""
        for process in self.processes:
            process.order(stop=True)
        for process in self.processes:
            process.await_done("stopped", STOP_SECONDS_MAX)

    def _all(self, done: str, fault: int, seconds_max: float, **order: object) -> None:
        for process in self.processes:
            process.order(**order)
        for process in self.processes:
            process.await_done(f"{done} {fault}", seconds_max)


def load_tables(root: str) -> str:
    """What the names of the load's tables begin with, in the installation of that root."""
    return f"{tables_of(root)}_load"


def create_tables(manager: TransactionManager, tables: str) -> None:
    """Make the tables of the load."""
    for name in LOADS:
        workload_of(name, tables).setup(manager)
    manager.create_table(f"{tables}_{FLIGHTS}", [FAMILY])


def settings_of(
    clients: Sequence[ClientSettings], directory: Path, *, tables: str, seed: int, pause_ms: int
) -> list[LoadSettings]:
    """One process of the load for each of ``clients``, of which every second one does not wait for shadow cells."""
    as_chosen = [
        replace(client, shadow_cells=SHADOW_CELLS[number % len(SHADOW_CELLS)]) for number, client in enumerate(clients)
    ]
    return [
        LoadSettings(f"load-{number}", client.to_json(), tables, str(directory), seed, pause_ms)
        for number, client in enumerate(as_chosen, 1)
    ]


@contextmanager
def running(settings: Sequence[LoadSettings], command: Sequence[str], logs: Path, guard: Guard) -> Iterator[Loads]:
    """The load, while it runs; ``command`` takes the settings as its last argument.

    Whatever ends the block ends its processes.
    """
    with ExitStack() as stack:
        processes = []
        for each in settings:
            process = LoadProcess(each, [*command, each.to_json()], logs, guard)
            stack.callback(process.end)
            processes.append(process)
        yield Loads(processes)
