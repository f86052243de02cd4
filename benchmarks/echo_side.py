"""The raw round trip as a side: a server that sends back what it gets, and a process that asks it one by one."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from benchmarks.cpu_time import cpu_seconds
from benchmarks.load_process import LoadProcess, window_line, window_of
from benchmarks.sides import Window
from devcluster.guard import Guard
from drills.children import Child, python
from drills.waiting import wait_until

START_SECONDS_MAX = 60.0
ANSWER_SECONDS_MAX = 60.0
SIGN = "listening on "


class EchoSide:
    """One at a time, whatever is asked for."""

    name = "TCP echo"
    configuration: Mapping[str, str | int | bool] = {"server": "uvloop", "client": "blocking socket"}

    def __init__(self, directory: Path, guard: Guard) -> None:
        self._directory = directory
        self._guard = guard
        self._server: Child | None = None
        self._load: LoadProcess | None = None

    def start(self) -> None:
        """See ``Side``."""
        self._directory.mkdir(parents=True)
        log = self._directory / "server.log"
        server = self._server = Child("the echo server", python("benchmarks.echo_server"), log, self._guard)
        wait_until(
            lambda: SIGN in log.read_text() or not server.is_running(),
            "the echo server",
            START_SECONDS_MAX,
            server.tail,
        )
        if not server.is_running():
            raise server.failure("does not serve")
        address = log.read_text().partition(SIGN)[2].split()[0]
        load_log = self._directory / "load.log"
        self._load = LoadProcess("the load of the echo", "benchmarks.echo_load", [address], load_log, self._guard)

    def window(self, in_flight: int, cells: int, seconds: float, connections: int) -> Window:
        """See ``Side``."""
        assert self._server is not None, "start comes first"
        assert self._load is not None, "start comes first"
        before = cpu_seconds(self._server.pid)
        self._load.ask(window_line(in_flight, cells, seconds, connections))
        answer = self._load.answer(seconds + ANSWER_SECONDS_MAX)
        return window_of([answer], cpu_seconds(self._server.pid) - before)

    def stop(self) -> None:
        """See ``Side``."""
        if self._load is not None:
            self._load.end()
        if self._server is not None:
            self._server.end()
        self._load = self._server = None
