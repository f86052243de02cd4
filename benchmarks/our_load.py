"""A closed loop of transactions against one oracle, in a process of its own, which stays for many windows.

``python -m benchmarks.our_load ADDRESS FRONT [ROOT]`` reads lines ``IN_FLIGHT CELLS SECONDS CONNECTIONS`` and answers
each with one line of JSON. ADDRESS is the oracle's or, with the ROOT of an installation, ZooKeeper's. FRONT:
``columns`` (batches of begins and commits, for callers that have many), ``asyncio`` (a task for each transaction in
flight), ``threads`` (a thread for each, the blocking front), ``begins`` (batches of begins only) or ``begin`` (a task
for each begin in flight). ``rest`` (a thread and a connection for each in flight; ADDRESS is the one of REST).
Invariant: a window begins when all of its connections are there.
"""

from __future__ import annotations

import asyncio
import gc
import itertools
import json
import sys
import time
from collections.abc import Callable, Coroutine, Sequence
from concurrent.futures import ThreadPoolExecutor
from http.client import HTTPConnection

import numpy as np
import uvloop

from benchmarks.load_loops import (
    BATCHES,
    Tally,
    ask_rest,
    batches,
    begins,
    drawn_write_sets,
    in_batches,
    transactions,
    transactions_of_thread,
    transactions_over_rest,
)
from client import ClientSettings
from client.connection.async_oracle import AsyncOracleClient
from client.connection.oracle import OracleClient
from client.connection.primary import Directory, SoloDirectory, ZooKeeperDirectory

DEADLINE_MS = 30_000
AGAIN_MS = 100
UNUSED_THRIFT = "unused:1"
GARBAGE_OBJECTS = 100_000
"""New objects between two looks for garbage."""


def settings_of(address: str, root: str) -> ClientSettings:
    """Of an oracle that is alone at ``address``, or of the installation ``root`` in the ZooKeeper at ``address``."""
    if root:
        return ClientSettings(address, UNUSED_THRIFT, root, deadline_ms=DEADLINE_MS)
    return ClientSettings("", UNUSED_THRIFT, oracle=address, deadline_ms=DEADLINE_MS)


def directory_of(settings: ClientSettings) -> Directory:
    """Where the clients find the oracle."""
    if settings.zookeeper:
        return ZooKeeperDirectory(settings)
    return SoloDirectory(settings.oracle)


class Load:
    """Drives one oracle through one front."""

    def __init__(self, address: str, front: str, root: str = "") -> None:
        self._front = front
        self._settings = settings_of(address, root)
        self._directory = directory_of(self._settings)

    def window(self, in_flight: int, cells: int, seconds: float, connections: int) -> dict[str, object]:
        """One measurement."""
        if self._front == "rest":
            return self._run_rest(in_flight, cells, seconds)
        if self._front == "threads":
            return self._run_threads(in_flight, cells, seconds, connections)
        with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
            return runner.run(self._run_tasks(in_flight, cells, seconds, connections))

    def _run_rest(self, in_flight: int, cells: int, seconds: float) -> dict[str, object]:
        connections = [HTTPConnection(self._settings.oracle, timeout=DEADLINE_MS / 1000) for _ in range(in_flight)]
        for connection in connections:
            _await_rest(connection)
        tally, cpu_seconds = Tally(time.perf_counter() + seconds), time.process_time()
        taken = iter(connections)
        in_threads(lambda: transactions_over_rest(next(taken), cells, tally), in_flight)
        cpu_seconds = time.process_time() - cpu_seconds
        for connection in connections:
            connection.close()
        return tally.to_fields(seconds, cpu_seconds)

    def _run_threads(self, in_flight: int, cells: int, seconds: float, connections: int) -> dict[str, object]:
        clients = [OracleClient(self._directory, self._settings) for _ in range(connections)]
        for client in clients:
            client.begin()
        tally, cpu_seconds = Tally(time.perf_counter() + seconds), time.process_time()
        taken = itertools.cycle(clients)
        in_threads(lambda: transactions_of_thread(next(taken), cells, tally, DEADLINE_MS), in_flight)
        cpu_seconds = time.process_time() - cpu_seconds
        for client in clients:
            client.close()
        return tally.to_fields(seconds, cpu_seconds)

    async def _run_tasks(self, in_flight: int, cells: int, seconds: float, connections: int) -> dict[str, object]:
        clients = [AsyncOracleClient(self._directory, self._settings) for _ in range(connections)]
        await asyncio.gather(*(client.begin() for client in clients))
        tally, cpu_seconds = Tally(time.perf_counter() + seconds), time.process_time()
        await asyncio.gather(*self._loops(clients, in_flight, cells, tally))
        cpu_seconds = time.process_time() - cpu_seconds
        for client in clients:
            client.close()
        return tally.to_fields(seconds, cpu_seconds)

    def _loops(
        self, clients: Sequence[AsyncOracleClient], in_flight: int, cells: int, tally: Tally
    ) -> list[Coroutine[None, None, None]]:
        if self._front == "columns":
            loops, size = in_batches(in_flight)
        elif self._front == "begins":
            loops, size = min(BATCHES, in_flight), max(1, in_flight // BATCHES)
        else:
            loops, size = in_flight, 1
        chosen = [clients[number % len(clients)] for number in range(loops)]
        if self._front == "columns":
            return [batches(client, size, cells, tally, np.random.default_rng()) for client in chosen]
        if self._front in ("begin", "begins"):
            return [begins(client, size, tally) for client in chosen]
        write_sets = drawn_write_sets(cells, np.random.default_rng())
        return [transactions(client, write_sets, tally) for client in chosen]


def _await_rest(connection: HTTPConnection) -> None:
    """Until the process behind it serves, which begins to listen before that."""
    deadline = time.monotonic() + DEADLINE_MS / 1000
    while "snapshot" not in ask_rest(connection, "/v1/oracle/begin", {}) and time.monotonic() < deadline:
        time.sleep(AGAIN_MS / 1000)


def in_threads(work: Callable[[], None], threads: int) -> None:
    """Have it done by so many threads at once, and wait for them. An error of one is raised."""
    with ThreadPoolExecutor(threads) as pool:
        for done in [pool.submit(work) for _ in range(threads)]:
            done.result()


def main(arguments: Sequence[str], say: Callable[[str], None]) -> None:
    """Serve windows until standard input ends."""
    load = Load(*arguments)
    # As whoever has a thousand tasks and little garbage would: the collector looks at all tasks each time.
    gc.freeze()
    gc.set_threshold(GARBAGE_OBJECTS)
    for line in sys.stdin:
        in_flight, cells, seconds, connections = line.split()
        say(json.dumps(load.window(int(in_flight), int(cells), float(seconds), int(connections))))


if __name__ == "__main__":
    main(sys.argv[1:], lambda line: print(line, flush=True))
