"""Where a measurement was made: what a reader needs to judge it, and nothing that names the machine."""

from __future__ import annotations

import os
import platform
import re

from devcluster import DevClusterError
from devcluster.java import find_java

Fields = dict[str, str | int | float]


def describe_machine() -> Fields:
    """Cores, memory, versions, and how busy the machine is now."""
    return {
        "cores": len(os.sched_getaffinity(0)),
        "memory_mebibytes": os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") // 2**20,
        "system": platform.system(),
        "python": platform.python_version(),
        "java": _java_version(),
        "load_average_1_minute": round(os.getloadavg()[0], 2),
    }


def _java_version() -> str:
    """Not every benchmark needs Java."""
    try:
        release = (find_java().resolve().parents[1] / "release").read_text(encoding="utf-8")
    except (DevClusterError, OSError):
        return "none"
    version = re.search(r'JAVA_VERSION="([^"]*)"', release)
    return version[1] if version else "unknown"
