"""What a process took of the machine, its CPU time and its memory, without which a rate says little."""

from __future__ import annotations

import os
from pathlib import Path

_TICKS_PER_SECOND = os.sysconf("SC_CLK_TCK")


def cpu_seconds(pid: int) -> float:
    """User and system time of a process and all its threads since it started.

    Raises:
        OSError: there is no such process.
    """
    return seconds_in(Path(f"/proc/{pid}/stat").read_text(encoding="ascii", errors="replace"))


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
