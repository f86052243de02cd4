"""What a process took of the machine, its CPU time and its memory, without which a rate says little; and its rest."""

from __future__ import annotations

import os
import time
from pathlib import Path
from typing import Final

_TICKS_PER_SECOND = os.sysconf("SC_CLK_TCK")
_LOOK_MS: Final = 500
_BUSY_MAX: Final = 0.15
"""Of all cores."""


def cpu_seconds(pid: int) -> float:
    """User and system time of a process and all its threads since it started.

    Raises:
        OSError: there is no such process.
    """
    return seconds_in(Path(f"/proc/{pid}/stat").read_text(encoding="ascii", errors="replace"))


def children(pid: int) -> list[int]:
    """The processes that one has started. Raises ``OSError``: there is no such process."""
    return [
        int(child)
        for thread in Path(f"/proc/{pid}/task").iterdir()
        for child in (thread / "children").read_text(encoding="ascii").split()
    ]


def seconds_in(stat: str) -> float:
    """The same, out of the text of /proc/PID/stat."""
    # The second field, the name, is in brackets and may itself hold blanks and brackets.
    fields = stat.rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / _TICKS_PER_SECOND


def peak_memory_bytes(pid: int) -> int:
    """The most that a process ever had in memory. Raises ``OSError``: there is no such process."""
    return peak_bytes_in(Path(f"/proc/{pid}/status").read_text(encoding="ascii", errors="replace"))


def peak_bytes_in(status: str) -> int:
    """The same, out of the text of /proc/PID/status. Raises ``ValueError`` where it is not told."""
    for line in status.splitlines():
        name, _, value = line.partition(":")
        if name == "VmHWM":
            return int(value.split()[0]) * 1_024
    raise ValueError("/proc/PID/status tells nothing of a peak (VmHWM): the process is ending")


def await_rest(limit_ms: float) -> bool:
    """Wait until all cores together are nearly idle; whether they were so within ``limit_ms``."""
    ends = time.monotonic() + limit_ms / 1000
    before = _all_cores()
    while time.monotonic() < ends:
        time.sleep(_LOOK_MS / 1000)
        after = _all_cores()
        if busy_share(before, after) <= _BUSY_MAX:
            return True
        before = after
    return False


def busy_share(before: str, after: str) -> float:
    """How much of the time of all cores was used between two readings of the first line of /proc/stat, from 0 to 1."""
    # Fields: user, nice, system, idle, waiting for disks, …
    passed = [int(b) - int(a) for a, b in zip(before.split()[1:], after.split()[1:], strict=True)]
    return 1 - (passed[3] + passed[4]) / max(1, sum(passed))


def _all_cores() -> str:
    return Path("/proc/stat").read_text(encoding="ascii").partition("\n")[0]
