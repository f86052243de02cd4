"""Processes that a drill starts, listens to, sends signals to, and ends.

Invariant: a signal goes only to a process that this one started and has not yet reaped, and the guard knows of each.
"""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from types import MappingProxyType
from typing import Final

from devcluster.guard import Guard
from drills.errors import ChildFailed

LOG_LINES_SHOWN: Final = 12
LOG_TAIL_BYTES: Final = 16 * 1_024
END_SECONDS_MAX: Final = 15.0

TakeLine = Callable[[str, int], None]
"""Called with each line of a child's standard output, and when it came (nanoseconds of the monotonic clock)."""


class Child:
    """A process in a session of its own, so that Ctrl-C reaches the drill alone.

    Its standard error goes to ``log``, and its standard output as well where nobody takes the lines. ``environment``:
    beside this process's own.
    """

    def __init__(
        self,
        name: str,
        command: Sequence[str],
        log: Path,
        guard: Guard,
        *,
        take: TakeLine | None = None,
        environment: Mapping[str, str] = MappingProxyType({}),
    ) -> None:
        self.name = name
        self.log = log
        with log.open("ab") as file:
            self._process = subprocess.Popen(
                command,
                stdin=subprocess.PIPE,
                stdout=file if take is None else subprocess.PIPE,
                stderr=file,
                start_new_session=True,
                text=True,
                env={**os.environ, **environment, "PYTHONUNBUFFERED": "1"},
            )
        guard.watch_process(self._process.pid)
        self._listener: threading.Thread | None = None
        if take is not None:
            self._listener = threading.Thread(target=self._listen, args=(take,), name=f"listens to {name}", daemon=True)
            self._listener.start()

    @property
    def pid(self) -> int:
        """The process id."""
        return self._process.pid

    def is_running(self) -> bool:
        """Whether it has not ended; a stopped process (SIGSTOP) has not."""
        return self._process.poll() is None

    def has_said_all(self) -> bool:
        """Whether it has ended, and every line of its output has been taken: that may be a moment later."""
        return not self.is_running() and (self._listener is None or not self._listener.is_alive())

    def send_signal(self, number: signal.Signals) -> None:
        """Send it a signal; harmless where it has ended."""
        self._process.send_signal(number)

    def send(self, line: str) -> None:
        """Write a line to its standard input. Raises ``ChildFailed`` when it is gone."""
        assert self._process.stdin is not None
        try:
            self._process.stdin.write(line + "\n")
            self._process.stdin.flush()
        except (OSError, ValueError) as error:  # broken, or closed by us when it was gone
            raise self.failure("does not listen") from error

    def kill(self) -> None:
        """SIGKILL, and wait until it is gone."""
        self.send_signal(signal.SIGKILL)
        self._reap()

    def end(self, number: signal.Signals = signal.SIGTERM) -> int:
        """Ask it to end with a signal, kill it after a limit, and return its exit code; harmless where it has ended."""
        self.send_signal(number)
        self.send_signal(signal.SIGCONT)
        with contextlib.suppress(subprocess.TimeoutExpired):
            self._process.wait(END_SECONDS_MAX)
        self.kill()
        return self._process.returncode

    def failure(self, what: str) -> ChildFailed:
        """An error that tells what the process did not do, and the end of its log."""
        code = self._process.poll()
        state = "is running" if code is None else f"has ended with exit code {code}"
        return ChildFailed(f"{self.name} {state} but {what}.\n{self.tail()}")

    def tail(self) -> str:
        """The last lines of its log."""
        with self.log.open("rb") as file:
            file.seek(max(0, self.log.stat().st_size - LOG_TAIL_BYTES))
            lines = file.read().decode(errors="replace").splitlines()[-LOG_LINES_SHOWN:]
        return "\n".join([f"The end of {self.log}:", *(f"  {line}" for line in lines)])

    def _reap(self) -> None:
        self._process.wait(END_SECONDS_MAX)
        if self._listener is not None:
            self._listener.join(END_SECONDS_MAX)
        assert self._process.stdin is not None
        with contextlib.suppress(OSError):  # what was not flushed has no reader any more
            self._process.stdin.close()

    def _listen(self, take: TakeLine) -> None:
        assert self._process.stdout is not None
        with self._process.stdout as lines:
            for line in lines:
                take(line.rstrip("\n"), time.monotonic_ns())


def python(module: str, *arguments: str) -> list[str]:
    """The command that runs a module of ours."""
    return [sys.executable, "-m", module, *arguments]
