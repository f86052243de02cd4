"""A safety net for whoever starts processes and clusters: a process that ends them, should he be killed himself.

It learns of each by a line on its standard input, and acts when that closes, which the system sees to whatever becomes
of him. Invariant: it ends only processes that it was told of, each through a descriptor taken while the process was a
child of his, so that a pid which the system has given away is never hit.

python -m devcluster.guard
"""

from __future__ import annotations

import contextlib
import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterable, Sequence
from pathlib import Path
from types import TracebackType
from typing import Final, Self

import devcluster

END_SECONDS_MAX: Final = 60.0


class Guard:
    """His end of it; a context manager, at whose end whatever is left is ended."""

    def __init__(self) -> None:
        self._process = subprocess.Popen(
            [sys.executable, "-m", "devcluster.guard"],
            stdin=subprocess.PIPE,
            stdout=subprocess.DEVNULL,
            start_new_session=True,
            text=True,
        )

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        assert self._process.stdin is not None
        with contextlib.suppress(OSError):
            self._process.stdin.close()
        with contextlib.suppress(subprocess.TimeoutExpired):  # then it goes on alone
            self._process.wait(END_SECONDS_MAX)

    def watch_process(self, pid: int) -> None:
        """A child of this process, that is to end with it."""
        self._tell(f"process {pid}")

    def watch_cluster(self, directory: Path, *, wipe: bool = True) -> None:
        """A development cluster that is to end with this process; with ``wipe`` data and all."""
        self._tell(f"{'cluster' if wipe else 'kept-cluster'} {directory}")

    def watch_command(self, command: Sequence[str]) -> None:
        """A command that undoes something, and that may be run even where there is nothing to undo."""
        self._tell(f"command {json.dumps(command)}")

    def _tell(self, line: str) -> None:
        assert self._process.stdin is not None
        self._process.stdin.write(line + "\n")
        self._process.stdin.flush()


def end_all(lines: Iterable[str]) -> None:
    """Take note of what the lines name, and when they end, end it."""
    descriptors: list[int] = []
    clusters: list[tuple[Path, bool]] = []
    commands: list[Sequence[str]] = []
    for line in lines:
        what, _, which = line.rstrip("\n").partition(" ")
        if what in ("cluster", "kept-cluster"):
            clusters.append((Path(which), what == "cluster"))
        elif what == "command":
            commands.append(json.loads(which))
        else:
            with contextlib.suppress(ProcessLookupError):
                descriptors.append(os.pidfd_open(int(which)))
    for descriptor in descriptors:
        with contextlib.suppress(ProcessLookupError):
            signal.pidfd_send_signal(descriptor, signal.SIGKILL)
        os.close(descriptor)
    for directory, wipe in clusters:
        devcluster.down(directory, wipe=wipe)
    for command in commands:
        with contextlib.suppress(OSError, subprocess.TimeoutExpired):
            subprocess.run(command, capture_output=True, timeout=END_SECONDS_MAX, check=False)


if __name__ == "__main__":
    end_all(sys.stdin)
