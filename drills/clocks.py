"""Wall clocks of single oracle processes, stepped while they run. The clocks that leases are counted on stay true.

A process with a stepped clock is started through this module, which puts its own ``time.time`` and ``time.time_ns`` in
the place of Python's before anything else runs there. (libfaketime, which steps the clock below Python, is of no use
here: version 0.9.10 makes every ``time.sleep`` of Python 3.11 fail when it is told to leave monotonic clocks alone.)

python -m drills.clocks <file with the seconds to add> <module> <its arguments>
"""

from __future__ import annotations

import runpy
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Final

from drills.children import python

NOTICED_SECONDS: Final = 0.05
"""After how long at the latest a process notices that its clock was stepped."""
_NS: Final = 1_000_000_000


class SteppedClock:
    """The wall clock of one process, seen from the drill."""

    def __init__(self, file: Path) -> None:
        file.parent.mkdir(parents=True, exist_ok=True)
        self._file = file
        self.set(0)

    def set(self, ahead_seconds: int) -> None:
        """Put it so many seconds ahead of the true time; behind it, where negative."""
        scratch = self._file.with_suffix(".new")
        scratch.write_text(str(ahead_seconds), encoding="ascii")
        scratch.replace(self._file)

    def command(self, module: str, *arguments: str) -> list[str]:
        """The command that runs a module by this clock."""
        return python("drills.clocks", str(self._file), module, *arguments)


def stepped(file: Path, wall_ns: Callable[[], int], monotonic: Callable[[], float]) -> Callable[[], int]:
    """A wall clock in nanoseconds that adds what the file says, which it reads again and again."""
    read_at, ahead_ns = monotonic() - NOTICED_SECONDS, 0

    def time_ns() -> int:
        nonlocal read_at, ahead_ns
        if monotonic() - read_at >= NOTICED_SECONDS:
            read_at, ahead_ns = monotonic(), int(file.read_text(encoding="ascii")) * _NS
        return wall_ns() + ahead_ns

    return time_ns


def main(arguments: list[str]) -> None:
    """Run a module with a stepped wall clock."""
    file, module, *rest = arguments
    time_ns = stepped(Path(file), time.time_ns, time.monotonic)
    time.time_ns = time_ns
    time.time = lambda: time_ns() / _NS
    sys.argv = [module, *rest]
    runpy.run_module(module, run_name="__main__", alter_sys=True)


if __name__ == "__main__":
    main(sys.argv[1:])
