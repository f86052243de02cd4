"""Kill a writer at each step of its commit and look at what is left: all of it or nothing, healed by the next reader.

The victim is a process of its own; the inspector reads with a fresh manager, which remembers nothing, and looks at the
shadow cells in the store before and after.
"""

from __future__ import annotations

import signal
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass

from client import ClientSettings, CommitStep, InvalidRequest, Outcome, TransactionManager
from client.cells import shadow_column
from commit_table import Committed
from drills.victim import COLUMN, TABLES, prefix_of, row_of

FATAL_STEPS = (CommitStep.WRITTEN, CommitStep.SENT, CommitStep.ANSWERED)
VICTIM_TIMEOUT_SECONDS = 60
ROUNDS_MAX = ROWS_MAX = 10_000


@dataclass(frozen=True, slots=True)
class Finding:
    """What one dead writer left behind."""

    step: CommitStep
    start_timestamp: int
    rows_written: int
    rows_seen: int
    outcome: Outcome
    shadows_before: int
    shadows_after: int

    @property
    def anomaly(self) -> str | None:
        """What is wrong with it; ``None`` where nothing is."""
        if self.rows_seen not in (0, self.rows_written):
            return f"a reader saw {self.rows_seen} of {self.rows_written} rows"
        committed = isinstance(self.outcome, Committed)
        if committed != (self.rows_seen > 0):
            return f"the commit table says {self.outcome}, a reader saw {self.rows_seen} rows"
        if self.step is CommitStep.WRITTEN and committed:
            return "it committed, though its commit was never sent"
        if self.step is CommitStep.ANSWERED and not committed:
            return "its commit was acknowledged, and lost"
        if committed and self.shadows_after != self.rows_written:
            return f"readers healed {self.shadows_after} of {self.rows_written} rows"
        return None


def run(settings: ClientSettings, *, rounds: int, rows: int) -> Iterator[Finding]:
    """``rounds`` times each fatal step; every finding as it is made. Raises ``InvalidRequest`` for a wrong count."""
    if not 1 <= rounds <= ROUNDS_MAX or not 1 <= rows <= ROWS_MAX:
        raise InvalidRequest(
            f"rounds are from 1 to {ROUNDS_MAX:,} and rows from 1 to {ROWS_MAX:,}, not {rounds} and {rows}"
        )
    with TransactionManager.connect(settings) as manager:
        for table in TABLES:
            if table not in manager.store.table_names():
                manager.create_table(table, ["d"])
        first = _next_round(manager)
    for number in range(rounds):
        for offset, step in enumerate(FATAL_STEPS):
            yield _kill_one(settings, step, rows, first + number * len(FATAL_STEPS) + offset)


def _kill_one(settings: ClientSettings, step: CommitStep, rows: int, round_number: int) -> Finding:
    command = [sys.executable, "-m", "drills.victim", settings.to_json(), step.value, str(rows), str(round_number)]
    victim = subprocess.run(command, capture_output=True, text=True, timeout=VICTIM_TIMEOUT_SECONDS, check=False)
    if victim.returncode != -signal.SIGKILL:
        raise RuntimeError(
            f"the victim did not die at {step.value} but ended with {victim.returncode}: {victim.stderr}"
        )
    start_timestamp = int(victim.stdout)
    with TransactionManager.connect(settings) as inspector:
        before = _count_shadows(inspector, rows, round_number, start_timestamp)
        seen = _count_rows(inspector, round_number)
        again = _count_rows(inspector, round_number)
        return Finding(
            step,
            start_timestamp,
            rows_written=rows * len(TABLES),
            # A commit that was sent may be decided between the two: then the second sees all, and the first nothing.
            rows_seen=again if seen in (0, again) else -1,
            outcome=inspector.outcome(start_timestamp),
            shadows_before=before,
            shadows_after=_count_shadows(inspector, rows, round_number, start_timestamp),
        )


def _count_rows(manager: TransactionManager, round_number: int) -> int:
    snapshot = manager.snapshot()
    return sum(1 for table in TABLES for _ in snapshot.scan(table, prefix=prefix_of(round_number)))


def _count_shadows(manager: TransactionManager, rows: int, round_number: int, start_timestamp: int) -> int:
    column = shadow_column(COLUMN.partition(b":")[0])
    count = 0
    for table in TABLES:
        keys = [row_of(round_number, number) for number in range(rows)]
        found = manager.store.get_many(table, keys, [column])
        count += sum(row[column].timestamp == start_timestamp for row in found.values())
    return count


def _next_round(manager: TransactionManager) -> int:
    """The rounds of earlier drills stay in the tables: this one begins behind them, whatever they left."""
    last = -1
    for table in TABLES:
        for region in manager.store.regions(table):
            for row, _ in manager.store.scan(table, region, [b"d"], batch_rows=1, reverse=True):
                last = max(last, int(row.partition(b"/")[0]))
                break
    return last + 1
