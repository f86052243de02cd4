"""A driver that dies in the middle of its transaction, with its JVM and its Python workers: all by one SIGKILL.

python -m tests.spark_jobs.driver <client settings, JSON> <left> <right> <rows> <value> <moment> <milliseconds after it>
"""

from __future__ import annotations

import os
import signal
import sys
import threading
import time
from typing import Final

from client import ClientSettings, CommitStep, TransactionHooks, TransactionManager
from tests.spark_jobs.jobs import COMMIT, Phases, together
from tests.spark_jobs.processes import descendants
from tests.spark_jobs.session import session

BEFORE, SENT, SHADOW = "before the commit", "commit sent", "shadow pass"
MOMENTS: Final = {BEFORE: CommitStep.WRITTEN, SENT: CommitStep.SENT, SHADOW: CommitStep.ANSWERED}


class Death(TransactionHooks):
    """Comes some milliseconds after a step of the commit, and before says of which transaction."""

    def __init__(self, fatal: CommitStep, after_ms: int) -> None:
        self._fatal = fatal
        self._after_ms = after_ms

    def commit_step(self, step: CommitStep, start_timestamp: int) -> None:
        """See ``TransactionHooks``."""
        if step is not self._fatal:
            return
        print(f"dies {start_timestamp}", flush=True)
        if self._after_ms:
            threading.Timer(self._after_ms / 1_000, die).start()
        else:
            die()


def die() -> None:
    """End this process and all that it started, as when a machine is lost."""
    for pid in [*descendants(os.getpid()), os.getpid()]:
        os.kill(pid, signal.SIGKILL)


def main(arguments: list[str]) -> None:
    """Write and die; where death comes too late, say so."""
    settings, left, right, rows, value, moment, after_ms = arguments
    parsed = ClientSettings.from_json(settings)
    hooks = Death(MOMENTS[moment], int(after_ms))
    with session(parsed) as spark, TransactionManager.connect(parsed, hooks=hooks) as manager:
        phases = Phases()
        ended = together(spark, manager, (left, right), int(rows), int(value), phases)
        print(f"lives {ended}, {COMMIT} took {phases.seconds.get(COMMIT, 0):.2f} s", flush=True)
        time.sleep(float(after_ms) / 1_000 + 1)


if __name__ == "__main__":
    main(sys.argv[1:])
