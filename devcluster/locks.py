"""A lock between processes, so that two of them never fetch into one cache or start one cluster at once.

Invariant: who holds the lock holds it on the file that is at the path now (a wipe may have replaced it meanwhile).
The kernel frees the lock of a process that dies.
"""

from __future__ import annotations

import fcntl
import os
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from devcluster.errors import Busy

POLL_SECONDS = 0.1


@contextmanager
def file_lock(path: Path, wait_seconds: float) -> Iterator[None]:
    """Hold the lock at ``path``, which is created where it is missing, after at most ``wait_seconds``.

    Raises:
        Busy: another process kept it for longer.
        OSError: the file cannot be made.
    """
    deadline = time.monotonic() + wait_seconds
    while (descriptor := _try_lock(path)) is None:
        if time.monotonic() >= deadline:
            raise Busy(f"another process has held {path} for {wait_seconds:.0f} s; wait for it to end, then try again")
        time.sleep(POLL_SECONDS)
    try:
        yield
    finally:
        os.close(descriptor)


def _try_lock(path: Path) -> int | None:
    path.parent.mkdir(parents=True, exist_ok=True)
    descriptor = os.open(path, os.O_RDWR | os.O_CREAT, 0o600)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        if os.path.samestat(os.fstat(descriptor), os.stat(path)):
            return descriptor
    except (BlockingIOError, FileNotFoundError):
        pass
    os.close(descriptor)
    return None
