"""Real oracle processes of an installation, and what they print."""

from __future__ import annotations

import queue
import re
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import IO

import httpx

from client import ClientSettings
from devcluster.guard import Guard

WAIT_SECONDS_MAX = 120.0
LONG_LEASE_MS = 10_000
"""Longer than the pauses of a shared machine: for tests that are not about failover."""
SHORT_LEASE_MS = 2_000
"""For tests about failover."""
SHORT_LIFE_MS = 2_000
"""Of transactions that are not heard of: for tests that wait until a vacuum may go on. Longer than one of theirs takes
on a shared machine, with a table that HBase makes for it in the middle.
"""


def flags_of(named: Mapping[str, str]) -> list[str]:
    """The flags by which an oracle is told settings."""
    return [part for name, value in named.items() for part in (f"--{name.replace('_', '-')}", value)]


class OracleProcess:
    """A ``tso serve`` on loopback; each line that it prints on standard output is expected, or stays unread."""

    def __init__(
        self,
        settings: ClientSettings,
        *options: str,
        name: str = "oracle",
        lease_ms: int = LONG_LEASE_MS,
        errors: IO[str] | None = None,
    ) -> None:
        where = ["--zookeeper", settings.zookeeper, "--thrift", settings.thrift, "--root", settings.root]
        own = ["--name", name, "--lease-ms", str(lease_ms), "--listen", "127.0.0.1:0"]
        serve = [sys.executable, "-m", "tso", "serve", *where, *own, *options]
        self.process = subprocess.Popen(serve, stdout=subprocess.PIPE, stderr=errors, text=True)
        self._lines: queue.Queue[str] = queue.Queue()
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()

    def _read(self) -> None:
        assert self.process.stdout is not None
        for line in self.process.stdout:
            self._lines.put(line.strip())

    def expect(self, pattern: str) -> str:
        """The group of the pattern in the next line, which has to match it."""
        line = self._lines.get(timeout=WAIT_SECONDS_MAX)
        match = re.fullmatch(pattern, line)
        assert match is not None, f"{line!r} is not {pattern!r}"
        return match[1]

    def until_standby(self) -> str:
        """Its address."""
        return self.expect(r"serving on (127\.0\.0\.1:\d+) as standby")

    def until_primary(self) -> int:
        """The epoch."""
        return int(self.expect(r"primary, epoch (\d+)"))

    def end(self, number: signal.Signals = signal.SIGTERM) -> int:
        """End it, unless it has ended; its exit code."""
        self.process.send_signal(number)
        code = self.process.wait(WAIT_SECONDS_MAX)
        self._reader.join(WAIT_SECONDS_MAX)
        assert self.process.stdout is not None
        self.process.stdout.close()
        return code


@contextmanager
def primary(settings: ClientSettings, *options: str) -> Iterator[OracleProcess]:
    """One that serves, and that ends even where a run is interrupted, and does not come to its end."""
    serving = OracleProcess(settings, *options)
    with Guard() as guard:
        guard.watch_process(serving.process.pid)
        try:
            serving.until_standby()
            serving.until_primary()
            yield serving
        finally:
            serving.end()


class OracleWithRest(OracleProcess):
    """One with REST beside it, and a client of that."""

    def __init__(self, name: str, settings: ClientSettings, *options: str) -> None:
        super().__init__(settings, "--rest-listen", "127.0.0.1:0", *options, name=name)
        self.client = httpx.Client(
            base_url=f"http://{self.expect('REST on (.*)')}", timeout=WAIT_SECONDS_MAX, trust_env=False
        )
        self.until_standby()

    def end(self, number: signal.Signals = signal.SIGTERM) -> int:
        self.client.close()
        return super().end(number)
