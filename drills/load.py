"""One process of a drill's load: workloads that run throughout, and flights for each fault, all of it recorded.

It reads orders as lines of JSON from its standard input (``{"open": 3}``, ``{"reach": "struck", "fault": 3}``,
``{"land": 3}``, ``{"stop": true}``) and tells what it did in the same form. It ends when that input closes, so that it
never outlives the drill.

python -m drills.load <settings, JSON>
"""

from __future__ import annotations

import gc
import json
import random
import sys
import threading
import time
import zlib
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Final, Self

from client import ClientSettings, CommitStep, Transaction, TransactionHooks, TransactionManager
from drills.flights import Flights, Stage, flight_cells, flights_at, in_words
from histories import Outcome, Recorder, drive
from histories.files import save
from histories.workloads import WORKLOADS, Workload

LOADS: Final = ("bank", "register", "long-fork", "set", "counter", "on-call")
"""The workloads that run, each in a thread of its own in each process."""
TRANSACTIONS_MAX: Final = 1_000_000
"""What one recorder holds, about 1 KB each."""
TELL_SECONDS: Final = 0.05
RUN_SECONDS_MAX: Final = 86_400.0
FLIGHTS: Final = "flights"
BEGUN: Final = "begun.json"


@dataclass(frozen=True, slots=True)
class LoadSettings:
    """``name`` of the process; ``tables``: what their names begin with; ``pause_ms`` between a thread's steps."""

    name: str
    client: str
    tables: str
    directory: str
    seed: int
    pause_ms: int

    def to_json(self) -> str:
        """The settings as text."""
        return json.dumps(asdict(self))

    @classmethod
    def from_json(cls, text: str) -> Self:
        """Read what ``to_json`` wrote."""
        return cls(**json.loads(text))

    def history_file(self, workload: str) -> Path:
        """Where the history of a workload goes."""
        return Path(self.directory) / f"{self.name}.{workload}.jsonl"

    @property
    def begun_file(self) -> Path:
        """Where the epoch of each transaction goes that was begun."""
        return Path(self.directory) / f"{self.name}.{BEGUN}"


def workload_of(name: str, tables: str) -> Workload:
    """A workload on its table."""
    return WORKLOADS[name](f"{tables}_{name.replace('-', '_')}")


class Witness(TransactionHooks):
    """Knows in which epoch each transaction was begun, and when the latest of all acknowledged commits was sent."""

    def __init__(self) -> None:
        self.begun: dict[int, int] = {}
        self.sent_ns = 0
        self._lock = threading.Lock()
        self._sending = threading.local()

    def after_begin(self, transaction: Transaction) -> None:
        """See ``TransactionHooks``."""
        self.begun[transaction.start_timestamp] = transaction.epoch

    def commit_step(self, step: CommitStep, start_timestamp: int) -> None:
        """See ``TransactionHooks``."""
        if step is CommitStep.WRITTEN:
            self._sending.at_ns = time.monotonic_ns()
        elif step is CommitStep.ANSWERED:
            with self._lock:
                self.sent_ns = max(self.sent_ns, self._sending.at_ns)


class Load:
    """Everything that one process does."""

    def __init__(self, settings: LoadSettings, manager: TransactionManager, witness: Witness) -> None:
        self._settings = settings
        self._manager = manager
        self._witness = witness
        self._workloads = {name: workload_of(name, settings.tables) for name in LOADS}
        self._recorders = {name: self._recorder(workload) for name, workload in self._workloads.items()}
        self._flown = Recorder(
            manager,
            flight_cells(f"{settings.tables}_{FLIGHTS}"),
            process=f"{settings.name}/{FLIGHTS}",
            transactions_max=TRANSACTIONS_MAX,
        )
        self._flights: dict[int, Flights] = {}
        self._stop = threading.Event()
        self._threads = [threading.Thread(target=self._drive, args=(name,), daemon=True) for name in LOADS]
        self._threads.append(threading.Thread(target=self._tell_progress, daemon=True))

    def run(self) -> None:
        """Work and obey until told to stop, or until nobody is there to tell."""
        for thread in self._threads:
            thread.start()
        for line in sys.stdin:
            order = json.loads(line)
            self._obey(order)
            if "stop" in order:
                return

    def _obey(self, order: dict[str, Any]) -> None:
        if "open" in order:
            # What was recorded is never garbage; looking through all of it again would stop the load for a second.
            gc.freeze()
            fault = int(order["open"])
            self._flights[fault] = Flights(self._flown, flights_at(fault, self._settings.name))
            self._flights[fault].open()
            tell({"opened": fault})
        elif "reach" in order:
            self._flights[int(order["fault"])].reach(Stage(order["reach"]))
        elif "land" in order:
            fault = int(order["land"])
            tell({"landed": fault, "how": in_words(self._flights.pop(fault).land())})
        elif "stop" in order:
            self._finish()

    def _recorder(self, workload: Workload) -> Recorder:
        return Recorder(
            self._manager,
            workload.cells,
            process=f"{self._settings.name}/{workload.name}",
            transactions_max=TRANSACTIONS_MAX,
        )

    def _drive(self, name: str) -> None:
        paced = _Paced(self._workloads[name], self._settings.pause_ms / 1_000, self._stop)
        seed = zlib.crc32(f"{self._settings.seed}/{self._settings.name}/{name}".encode())
        try:
            drive(paced, self._recorders[name], threads=1, seconds=RUN_SECONDS_MAX, seed=seed, stop=self._stop)
        except BaseException as error:
            tell({"failed": f"the workload {name} ended with {error!r}"})
            raise

    def _tell_progress(self) -> None:
        while not self._stop.wait(TELL_SECONDS):
            tell({"sent_ns": self._witness.sent_ns})

    def _finish(self) -> None:
        self._stop.set()
        for thread in self._threads:
            thread.join()
        recorders = {**self._recorders, FLIGHTS: self._flown}
        for name, recorder in recorders.items():
            _settle(self._manager, recorder)
            save(recorder.history(None if name == FLIGHTS else name), self._settings.history_file(name))
        self._settings.begun_file.write_text(json.dumps(list(self._witness.begun.items())), encoding="utf-8")
        tell({"stopped": True})


class _Paced:
    """A workload with a pause after each step, so that a small machine has time for everything else."""

    def __init__(self, workload: Workload, pause_seconds: float, stop: threading.Event) -> None:
        self._workload = workload
        self._pause_seconds = pause_seconds
        self._stop = stop

    def step(self, recorder: Recorder, random: random.Random) -> None:
        """Do one step, and pause."""
        self._workload.step(recorder, random)
        self._stop.wait(self._pause_seconds)


def _settle(manager: TransactionManager, recorder: Recorder) -> None:
    """Where a caller never learned an outcome, have one made."""
    for each in recorder.history().transactions:
        if each.outcome is Outcome.UNKNOWN:
            manager.abort(each.id)
    recorder.settle()


_telling = threading.Lock()


def tell(message: dict[str, Any]) -> None:
    """Say something to the drill, from any thread."""
    with _telling:
        print(json.dumps(message), flush=True)


def main(text: str) -> None:
    """Run a process of the load."""
    settings = LoadSettings.from_json(text)
    witness = Witness()
    with TransactionManager.connect(ClientSettings.from_json(settings.client), hooks=witness) as manager:
        Load(settings, manager, witness).run()


if __name__ == "__main__":
    main(sys.argv[1])
