"""Omid under load as one side of a contest: its server, and a driver that uses its own client, in a process each.

One warm JVM of each serves all windows of a configuration. Invariant: no window is measured before the server was seen
to listen on loopback and nowhere else, and whatever ``start`` began ``stop`` ends.
"""

from __future__ import annotations

import queue
import time
from collections.abc import Mapping, Sequence
from importlib import resources
from pathlib import Path

from benchmarks.cpu_time import cpu_seconds
from benchmarks.hbase_tables import drop_tables
from benchmarks.peer import tables
from benchmarks.peer.answers import parse_answer, run_command
from benchmarks.peer.configuration import (
    DRIVER_HEAP_MEBIBYTES,
    SERVER_HEAP_MEBIBYTES,
    VERSION,
    PeerConfiguration,
    Program,
    Tables,
    hbase_settings,
    server_settings,
)
from benchmarks.peer.listening import is_loopback, listening_addresses
from benchmarks.sides import Services, SideError, Window
from devcluster.configuration import site_file
from devcluster.guard import Guard
from devcluster.ports import claim, is_free
from devcluster.readiness import listens
from drills.children import Child

SERVER = "org.apache.omid.tso.TSOServer"
DRIVER = "pythia.peer.Driver"
START_SECONDS_MAX = 120.0
CONNECT_SECONDS_MAX = 1.0
POLL_SECONDS = 0.1
DRAIN_SECONDS_MAX = 90.0
"""Beyond a window; the driver itself gives up on transactions in flight before that."""
ANSWERS_MAX = 2
"""The driver says one line a window."""


class PeerSide:
    """One configuration of Omid; with ``services`` its commit table is in HBase, without them there is none."""

    def __init__(
        self,
        configuration: PeerConfiguration,
        program: Program,
        directory: Path,
        guard: Guard,
        services: Services | None = None,
    ) -> None:
        self.name = f"Omid {VERSION}, {configuration.name}"
        self._configuration = configuration
        self._program = program
        self._directory = directory
        self._guard = guard
        self._services = services
        self._tables: Tables | None = None
        self._server: Child | None = None
        self._driver: Child | None = None
        self._answers: queue.Queue[str] = queue.Queue(ANSWERS_MAX)

    @property
    def configuration(self) -> Mapping[str, str | int | bool]:
        """See ``Side``."""
        commits = "HBase" if self._services else "none"
        return {**self._configuration.to_fields(), "commit_table": commits}

    @property
    def children(self) -> Sequence[Child]:
        """The processes that run, of the load and of the server."""
        return [child for child in (self._driver, self._server) if child is not None]

    def start(self) -> None:
        """See ``Side``. Raises ``SideError``, ``ChildFailed``, and ``PortTaken`` where no port is free."""
        self._directory.mkdir(parents=True)
        self._write_client_settings()
        if self._services is not None:
            self._tables = tables.new_names()
            tables.create(self._program, self._directory, self._tables)
        port = claim(0, "Omid's server", "the machine's settings")
        self._start_server(port)
        self._start_driver(port)

    def _write_client_settings(self) -> None:
        logging = resources.files("benchmarks.peer").joinpath("log4j2.properties").read_bytes()
        (self._directory / "log4j2.properties").write_bytes(logging)
        if self._services is not None:
            site = site_file(hbase_settings(self._services.zookeeper))
            (self._directory / "hbase-site.xml").write_bytes(site)

    def _start_server(self, port: int) -> None:
        settings = server_settings(self._configuration, port, self._tables)
        (self._directory / "omid-server-configuration.yml").write_text(settings, encoding="utf-8")
        command = self._program.command(SERVER_HEAP_MEBIBYTES, self._directory, SERVER)
        server = self._server = Child(self.name, command, self._directory / "server.log", self._guard)
        deadline = time.monotonic() + START_SECONDS_MAX
        while not listens(port, CONNECT_SECONDS_MAX):
            if not server.is_running() and not is_free(port):
                raise SideError(f"another process took port {port} before Omid's server could; run it again")
            if not server.is_running() or time.monotonic() > deadline:
                raise server.failure(f"does not serve on port {port}")
            time.sleep(POLL_SECONDS)
        self._check_loopback(server, port)

    def _check_loopback(self, server: Child, port: int) -> None:
        addresses = listening_addresses(server.pid) if server.is_running() else ()
        if not addresses:
            raise SideError(f"another process took port {port} before Omid's server could; run it again")
        if not all(map(is_loopback, addresses)):
            raise SideError(f"Omid's server listens on {', '.join(addresses)}: only loopback is meant to be reached")

    def _start_driver(self, port: int) -> None:
        # Only in this mode does the client write the commits; else naming a table would count them twice.
        table = [self._tables.commits] if self._tables and self._configuration.low_latency else []
        command = self._program.command(DRIVER_HEAP_MEBIBYTES, self._directory, DRIVER, str(port), *table)
        self._driver = Child(
            f"the driver of {self.name}", command, self._directory / "driver.log", self._guard, take=self._take
        )

    def _take(self, line: str, at_ns: int) -> None:
        del at_ns
        self._answers.put(line)

    def window(self, in_flight: int, cells: int, seconds: float, connections: int) -> Window:
        """See ``Side``."""
        server, driver = self._server, self._driver
        assert server is not None, "start comes first"
        assert driver is not None, "start comes first"
        try:
            before = cpu_seconds(server.pid)
            driver.send(run_command(in_flight, cells, connections, seconds))
            line = self._answer(driver, seconds + DRAIN_SECONDS_MAX)
            return parse_answer(line, cpu_seconds(server.pid) - before)
        except (OSError, SideError) as error:
            raise SideError(f"{error}\n{server.tail()}\n{driver.tail()}") from error

    def _answer(self, driver: Child, seconds_max: float) -> str:
        deadline = time.monotonic() + seconds_max
        while True:
            try:
                return self._answers.get(timeout=POLL_SECONDS)
            except queue.Empty:
                if not driver.is_running() or time.monotonic() > deadline:
                    raise SideError(f"{driver.name} did not answer") from None

    def stop(self) -> None:
        """See ``Side``."""
        for child in self.children:
            child.kill()
        self._driver = self._server = None
        if self._tables is not None and self._services is not None:
            drop_tables(self._services.thrift, (self._tables.commits, self._tables.timestamps))
            self._tables = None
