"""A writer that dies at one step of its commit, by its own SIGKILL: nothing is flushed, closed or said.

python -m drills.victim <client settings, JSON> <step> <rows> <round>
"""

from __future__ import annotations

import os
import signal
import sys

from client import ClientSettings, CommitStep, TransactionHooks, TransactionManager

TABLES = ("drill_left", "drill_right")
COLUMN = b"d:value"


def row_of(round_number: int, number: int) -> bytes:
    """The key of one of the rows that a round writes in each table."""
    return b"%08d/%06d" % (round_number, number)


def prefix_of(round_number: int) -> bytes:
    """What the keys of a round begin with."""
    return b"%08d/" % round_number


class Death(TransactionHooks):
    """Comes at one step of a commit, and says of which transaction."""

    def __init__(self, fatal: CommitStep) -> None:
        self._fatal = fatal

    def commit_step(self, step: CommitStep, start_timestamp: int) -> None:
        """See ``TransactionHooks``."""
        if step is self._fatal:
            print(start_timestamp, flush=True)
            os.kill(os.getpid(), signal.SIGKILL)


def main(arguments: list[str]) -> None:
    """Write and die; or end well where the step never comes."""
    settings, step, rows, round_number = arguments
    with (
        TransactionManager.connect(ClientSettings.from_json(settings), hooks=Death(CommitStep(step))) as manager,
        manager.transaction() as transaction,
    ):
        for table in TABLES:
            for number in range(int(rows)):
                transaction.put(table, row_of(int(round_number), number), {COLUMN: b"written"})


if __name__ == "__main__":
    main(sys.argv[1:])
