"""Puts the stand-ins into the project's modules for the length of a run, and takes them out again whatever happens.

By identity: whatever module of the project holds the real ``threading``, ``time``, ``socket``… under any name holds the
stand-in during the run. So the code that runs is the project's own, unchanged, and a module that is added, or one that
begins to use the clock, is simulated without a word here.
"""

from __future__ import annotations

import concurrent
import concurrent.futures
import random as real_random
import select
import socket
import sys
import threading
import time
import uuid
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import lru_cache
from types import ModuleType
from typing import Any

import client.connection.primary
import client.manager
import lease.clocks
import tso.process
from tests.simulation.kernel import Kernel
from tests.simulation.network import Network
from tests.simulation.pools import ConcurrentPackage
from tests.simulation.processes import Clock
from tests.simulation.sockets import SelectModule, SocketModule
from tests.simulation.threads import ThreadingModule

ROOMS = ("client", "commit_table", "fleet", "lease", "store", "tso", "wire", "tenacity")
NOT_SIMULATED = ("client.spark", "store.hbase", "lease.zookeeper", "tso.commands")
"""Adapters to the real services, and front ends: the simulation has its own in their place."""

_LOADED = (client.manager, client.connection.primary, tso.process)
"""Everything that can be simulated has been imported by these."""


class TimeModule:
    """Takes the place of the module ``time``: the clocks of the process that asks."""

    CLOCK_MONOTONIC = 1
    CLOCK_BOOTTIME = 7

    def __init__(self, kernel: Kernel) -> None:
        self._kernel = kernel

    def monotonic(self) -> float:
        return self._monotonic_us() / 1_000_000

    perf_counter = monotonic

    def monotonic_ns(self) -> int:
        return self._monotonic_us() * 1000

    def clock_gettime_ns(self, clock: int) -> int:
        return self.monotonic_ns()

    def time(self) -> float:
        return self.time_ns() / 1_000_000_000

    def time_ns(self) -> int:
        return self._clock().wall_us() * 1000

    def sleep(self, seconds: float) -> None:
        self._kernel.sleep_us(seconds * 1_000_000)

    def _monotonic_us(self) -> int:
        return self._clock().monotonic_us()

    def _clock(self) -> Clock:
        """Of the process that asks; the room's own where none does."""
        self._kernel.point("clock")
        thread = self._kernel.current
        return Clock(lambda: self._kernel.now_us) if thread is None else thread.process.clock

    def __getattr__(self, name: str) -> Any:
        raise NotImplementedError(f"the simulation has no stand-in for time.{name}: add one to modules.py")


class UuidModule:
    """Takes the place of the module ``uuid``."""

    UUID = uuid.UUID

    def __init__(self, kernel: Kernel) -> None:
        self._random = kernel.stream("uuid")

    def uuid4(self) -> uuid.UUID:
        return uuid.UUID(int=self._random.getrandbits(128), version=4)


@contextmanager
def stand_ins(kernel: Kernel, network: Network, services: Mapping[Any, Any]) -> Iterator[None]:
    """Run the block with the stand-ins in place. ``services``: real adapter class → what is to be called instead."""
    replaced = _replaced(kernel, network) | {id(real): stand_in for real, stand_in in services.items()}
    places = _places(frozenset(replaced), len(sys.modules))
    kept = [(module, name, vars(module)[name]) for module, name in places]
    try:
        for module, name, value in kept:
            setattr(module, name, replaced[id(value)])
        yield
    finally:
        for module, name, value in kept:
            setattr(module, name, value)


@lru_cache(maxsize=4)
def _places(wanted: frozenset[int], modules: int) -> list[tuple[ModuleType, str]]:
    """Where the real things are held: found once for as long as no more ``modules`` have been imported."""
    return [
        (module, name)
        for module_name, module in sorted(sys.modules.items())
        if module_name.partition(".")[0] in ROOMS and not module_name.startswith(NOT_SIMULATED)
        for name, value in list(vars(module).items())
        if not name.startswith("__") and id(value) in wanted
    ]


def _replaced(kernel: Kernel, network: Network) -> dict[int, Any]:
    package = ConcurrentPackage(kernel)
    clock = TimeModule(kernel)
    reals: Sequence[tuple[Any, Any]] = (
        (threading, ThreadingModule(kernel)),
        (time, clock),
        (socket, SocketModule(kernel, network)),
        (select, SelectModule()),
        (uuid, UuidModule(kernel)),
        (real_random, kernel.stream("random")),
        (concurrent, package),
        (concurrent.futures, package.futures),
        (concurrent.futures.ThreadPoolExecutor, package.futures.ThreadPoolExecutor),
        (lease.clocks.monotonic_ms, lambda: clock.monotonic_ns() / 1e6),
        (lease.clocks.wall_ms, lambda: clock.time_ns() // 1_000_000),
    )
    return {id(real): stand_in for real, stand_in in reals}
