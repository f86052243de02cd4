"""Which processes this one has started, through others, and which of them are Spark's Python workers (Linux)."""

from __future__ import annotations

import contextlib
import os
import signal
from collections import defaultdict
from pathlib import Path


def descendants(pid: int) -> list[int]:
    """All processes that a process started, and that these started."""
    children: dict[int, list[int]] = defaultdict(list)
    for status in Path("/proc").glob("[0-9]*/stat"):
        with contextlib.suppress(OSError):  # it has ended meanwhile
            # The name, in parentheses, may hold anything; the parent is the second field behind it.
            children[int(status.read_text().rpartition(")")[2].split()[1])].append(int(status.parent.name))
    found = [pid]
    for each in found:
        found += children[each]
    return found[1:]


def parent(pid: int) -> int:
    """Which process started it. Raises ``OSError`` where it has ended."""
    return int(Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[1])


def is_alive(pid: int) -> bool:
    """Whether it is there, and not only its end, which nobody has asked for yet."""
    with contextlib.suppress(OSError):
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    return False


def python_workers() -> list[int]:
    """Spark's Python workers for tasks below this process; their parent, which makes new ones, is not among them."""
    daemons = [pid for pid in descendants(os.getpid()) if "-m pyspark.daemon pyspark.worker" in command_of(pid)]
    return [pid for daemon in daemons for pid in descendants(daemon)]


def kill_python_workers() -> None:
    """SIGKILL to each of them."""
    for pid in python_workers():
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)


def command_of(pid: int) -> str:
    """How it was started, words with spaces between; empty where it has ended."""
    with contextlib.suppress(OSError):
        return Path(f"/proc/{pid}/cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace")
    return ""
