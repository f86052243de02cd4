"""Where a measurement was made: what a reader needs to judge it, and nothing that names the machine.

Latencies depend on how soon a core wakes that had nothing to do. A virtual machine of Linux may poll for a while before
it halts a core (``guest_halt_poll_ns``); with 0 each wake-up waits for the host.
"""

from __future__ import annotations

import os
import platform
import re
from pathlib import Path

from devcluster import DevClusterError
from devcluster.java import find_java

Fields = dict[str, str | int | float | None]

HALT_POLL = Path("/sys/module/haltpoll/parameters/guest_halt_poll_ns")


def describe_machine() -> Fields:
    """Cores, memory, versions, and how busy the machine is now."""
    return {
        "cores": len(os.sched_getaffinity(0)),
        "memory_mebibytes": os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") // 2**20,
        "system": platform.system(),
        "python": platform.python_version(),
        "java": _java_version(),
        "load_average_1_minute": round(os.getloadavg()[0], 2),
        "halt_poll_microseconds": halt_poll_microseconds(HALT_POLL),
    }


def halt_poll_microseconds(parameter: Path) -> float | None:
    """How long an idle core polls for work before it is halted; ``None``: the system does not say."""
    try:
        return int(parameter.read_text(encoding="utf-8")) / 1_000
    except (OSError, ValueError):
        return None


def _java_version() -> str:
    """Not every benchmark needs Java."""
    try:
        release = (find_java().resolve().parents[1] / "release").read_text(encoding="utf-8")
    except (DevClusterError, OSError):
        return "none"
    version = re.search(r'JAVA_VERSION="([^"]*)"', release)
    return version[1] if version else "unknown"
