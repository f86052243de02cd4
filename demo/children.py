"""Processes that the demo starts, talks with in lines of JSON, and ends.

A child that talks reads commands from its standard input and ends when that closes; so none outlives the demo, even if
the demo is killed. What it writes to its standard error goes to a log file, whose end is shown when it fails.
"""

from __future__ import annotations

import contextlib
import json
import os
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Final

from demo.errors import ProcessFailed

Message = Mapping[str, Any]

LOG_LINES_SHOWN: Final = 12
STOP_SECONDS_MAX: Final = 10.0


class Process:
    """A Python program of ours in a process (and process group, so that Ctrl-C reaches the demo alone) of its own."""

    def __init__(self, name: str, arguments: Sequence[str], log: Path, *, talks: bool = False) -> None:
        self.name = name
        self.log = log
        command = [sys.executable, "-m", *arguments]
        pipe = subprocess.PIPE
        with log.open("wb") as file:
            self._process = subprocess.Popen(
                command,
                stdin=pipe if talks else subprocess.DEVNULL,
                stdout=pipe if talks else file,
                stderr=file,
                start_new_session=True,
                text=True,
                env={**os.environ, "PYTHONUNBUFFERED": "1"},
            )
        self.stdin, self.stdout = self._process.stdin, self._process.stdout

    @property
    def pid(self) -> int:
        """The process id."""
        return self._process.pid

    def is_running(self) -> bool:
        """Whether it has not ended."""
        return self._process.poll() is None

    def output(self) -> str:
        """What its log holds by now."""
        return self.log.read_text(errors="replace")

    def failure(self, what: str) -> ProcessFailed:
        """An error that tells what the process did not do, and the end of its log."""
        state = "is running" if self.is_running() else f"has ended with exit code {self._process.returncode}"
        tail = "\n".join(f"  {line}" for line in self.output().splitlines()[-LOG_LINES_SHOWN:])
        return ProcessFailed(f"{self.name} {state} but {what}. The end of {self.log}:\n{tail}")

    def stop(self) -> None:
        """End it: asked first, killed after a limit."""
        if self.is_running():
            self._process.terminate()
        try:
            self._process.wait(STOP_SECONDS_MAX)
        except subprocess.TimeoutExpired:
            self.kill()

    def kill(self) -> None:
        """End it as a crash would: with SIGKILL, which it cannot see coming."""
        self._process.kill()
        self._process.wait()

    def wait_for_end(self) -> None:
        """Wait, up to the limit, for a process that is about to end, so that its exit code is known."""
        with contextlib.suppress(subprocess.TimeoutExpired):
            self._process.wait(STOP_SECONDS_MAX)

    def wait_for_output(self, line_start: str, seconds_max: float) -> str:
        """The first line of its log that starts so; for a process that does not talk."""
        deadline = time.monotonic() + seconds_max
        while True:
            running = self.is_running()
            for line in self.output().splitlines():
                if line.startswith(line_start):
                    return line
            if not running or time.monotonic() > deadline:
                raise self.failure(f"did not say '{line_start}…' within {seconds_max:.0f} s")
            time.sleep(0.05)


class Talker:
    """A child process and what it tells; every message goes to ``take``, one at a time, in the order they came."""

    def __init__(
        self, name: str, module: str, arguments: Sequence[str], log: Path, take: Callable[[Message], None]
    ) -> None:
        self.process = Process(name, [module, *arguments], log, talks=True)
        self._take = take
        self._changed = threading.Condition()
        self._ended = False
        self._listener = threading.Thread(target=self._listen, name=f"listens to {name}", daemon=True)
        self._listener.start()

    def send(self, command: Message) -> None:
        """Tell the child something. Raises ``ProcessFailed`` when it is gone."""
        assert self.process.stdin is not None
        try:
            self.process.stdin.write(json.dumps(command) + "\n")
            self.process.stdin.flush()
        except OSError as error:
            raise self.process.failure("does not listen") from error

    def wait_until(self, condition: Callable[[], bool], what: str, seconds_max: float) -> None:
        """Wait for what its messages bring about. Raises ``ProcessFailed`` at the limit or when it ended before."""
        with self._changed:
            self._changed.wait_for(lambda: condition() or self._ended, seconds_max)
            if not condition():
                raise self.process.failure(f"did not {what} within {seconds_max:.0f} s")

    def stop(self) -> None:
        """End the child and stop listening."""
        self.process.stop()
        assert self.process.stdin is not None
        with contextlib.suppress(OSError):  # what was not flushed has no reader any more
            self.process.stdin.close()
        self._listener.join(STOP_SECONDS_MAX)

    def _listen(self) -> None:
        for message in self._messages():
            with self._changed:
                self._take(message)
                self._changed.notify_all()
        self.process.wait_for_end()
        with self._changed:
            self._ended = True
            self._changed.notify_all()

    def _messages(self) -> Iterator[Message]:
        assert self.process.stdout is not None
        with self.process.stdout as lines:
            yield from map(json.loads, lines)


def tell(message: Message) -> None:
    """In a child: tell the demo something."""
    print(json.dumps(message), flush=True)


def commands() -> Iterator[Message]:
    """In a child: what the demo says, until it says nothing more."""
    for line in sys.stdin:
        yield json.loads(line)
