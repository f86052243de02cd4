"""Keeps a workload going in several threads for a while, through failures of the services that pass."""

from __future__ import annotations

import random
import threading
import time
from dataclasses import dataclass
from typing import Protocol

from client import PythiaError
from histories.errors import HistoryError, RecorderFull
from histories.recorder import Recorder
from store import StoreError


class Stepping(Protocol):
    """What can be driven: a workload."""

    def step(self, recorder: Recorder, random: random.Random) -> None:
        """Do something, in one transaction or a few."""


@dataclass(slots=True)
class Driven:
    """How it went: ``steps`` done, those that met services ``unavailable``, and whether the recorder was ``full``."""

    steps: int = 0
    unavailable: int = 0
    full: bool = False


def drive(
    workload: Stepping,
    recorder: Recorder,
    *,
    threads: int,
    seconds: float,
    seed: int = 0,
    stop: threading.Event | None = None,
) -> Driven:
    """Step for that many seconds, or until ``stop`` is set or the recorder is full.

    The same seed takes the same decisions in each thread, though not at the same moments. Raises the first error that
    is not a passing one, after all threads have ended, and ``HistoryError`` for numbers that make no run.
    """
    if not 1 <= threads <= 1_000 or not 0 < seconds <= 86_400:
        raise HistoryError(f"threads are from 1 to 1,000, seconds above 0 to 86,400, not {threads} and {seconds}")
    driver = _Driver(workload, recorder, time.monotonic() + seconds, stop or threading.Event())
    workers = [threading.Thread(target=driver.work, args=(f"{seed}/{number}",)) for number in range(threads)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    if driver.errors:
        raise driver.errors[0]
    return driver.driven


class _Driver:
    def __init__(self, workload: Stepping, recorder: Recorder, ends: float, stop: threading.Event) -> None:
        self.driven = Driven()
        self.errors: list[BaseException] = []
        self._workload = workload
        self._recorder = recorder
        self._ends = ends
        self._stop = stop
        self._ended = threading.Event()
        self._lock = threading.Lock()

    def work(self, seed: str) -> None:
        chooser = random.Random(seed)
        try:
            while not self._stop.is_set() and not self._ended.is_set() and time.monotonic() < self._ends:
                self._step(chooser)
        except BaseException as error:
            self.errors.append(error)
            self._ended.set()

    def _step(self, chooser: random.Random) -> None:
        unavailable = full = False
        try:
            self._workload.step(self._recorder, chooser)
        except RecorderFull:
            full = True
            self._ended.set()
        except (PythiaError, StoreError) as error:
            if not error.retriable:
                raise
            unavailable = True
        with self._lock:
            self.driven.steps += not (unavailable or full)
            self.driven.unavailable += unavailable
            self.driven.full |= full
