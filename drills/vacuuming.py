"""Vacuums one after the other, under load: what readers of open snapshots see meanwhile, and what stays in the tables.

At first no vacuum runs, so that there is something to compare with. From then on one follows the other, none of them
retains anything that nobody reads, and snapshots are open across several of them: what a snapshot showed when it was
taken is compared with what it shows after each vacuum.
"""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Final

from client import Snapshot, TransactionManager
from client.cells import is_reserved
from client.vacuum import HorizonUnknown, run_vacuum
from commit_table import table_name
from devcluster import Progress, Step
from devcluster.guard import Guard
from drills.children import python
from drills.evidence import gather
from drills.failover import START_SECONDS_MAX, load_settings
from drills.findings import Findings, findings
from drills.installation import Plan, installed
from drills.load import LOADS, workload_of
from drills.loads import create_tables, load_tables, running
from drills.outages import Window
from store import ALL_ROWS, Row

LIFE_MS: Final = 10_000
"""After so long without a word the oracle takes it that nobody reads a snapshot: what holds up a vacuum's horizon."""
BEATS_IN_A_LIFE: Final = 5
PROCESSES: Final = 2
SNAPSHOTS_OPEN_MAX: Final = 3
"""A vacuum each: the oldest of them has seen as many when it is dropped."""
WITHOUT_SHARE: Final = 0.1
"""Of the time: without a vacuum, at the beginning."""
SAMPLE_SECONDS: Final = 5.0
HORIZON_SECONDS: Final = 1.0
"""Between two looks at whether the oracle knows its horizon."""
VERSIONS_MAX: Final = 1_000_000
GROWTH_MAX: Final = 2.0
"""Between the first and the last third of the vacuums: of the most that one of them left. A table that grows for good
has grown more by then."""
DIFFERENCES_TOLD_MAX: Final = 20

Content = dict[bytes, dict[bytes, bytes]]


@dataclass(frozen=True, slots=True)
class Sample:
    """What was in the tables, ``seconds`` after the load began. ``vacuums``: that had ended by then.

    ``commit_rows``: of the commit table. ``versions``, ``versions_most``: of a column of the load's, on average and of
    the one that has most.
    """

    seconds: float
    vacuums: int
    after_vacuum: bool
    commit_rows: int
    versions: float
    versions_most: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Vacuumed(Findings):
    """What a drill found out. ``changed``: what open snapshots showed otherwise after a vacuum, in sentences."""

    samples: Sequence[Sample]
    changed: Sequence[str]
    vacuums: int
    looks: int
    """At a whole open snapshot, after a vacuum."""
    seconds: float

    @property
    def grew(self) -> list[str]:
        """What vacuums leave more and more of, in sentences."""
        after = [each for each in self.samples if each.after_vacuum]
        third = len(after) // 3
        grown = []
        for what in ("commit_rows", "versions", "versions_most"):
            first, last = (max((getattr(each, what) for each in some), default=0.0) for some in (
                after[:third], after[len(after) - third :],
            ))  # fmt: skip
            if last > GROWTH_MAX * first:
                grown.append(
                    f"{what}: vacuums left {first:,.1f} at most in the first third, and {last:,.1f} in the last"
                )
        return grown

    @property
    def harms(self) -> dict[str, Sequence[str]]:
        """Of all kinds."""
        return {**self.verdict.harms, "changed_snapshots": self.changed, "grew": self.grew}


class _Held:
    """An open snapshot, and what it showed when it was taken."""

    def __init__(self, snapshot: Snapshot, tables: Sequence[str]) -> None:
        self._snapshot = snapshot
        self._shown = {table: dict(snapshot.scan(table)) for table in tables}

    def differences(self) -> Iterator[str]:
        """What it shows otherwise now."""
        for table, before in self._shown.items():
            now: Content = dict(self._snapshot.scan(table))
            for row in sorted(before.keys() | now.keys()):
                if before.get(row) != now.get(row):
                    yield (
                        f"{table}: the snapshot at {self._snapshot.timestamp} showed {before.get(row)} in row {row!r}, "
                        f"and after a vacuum {now.get(row)}"
                    )


def run(plan: Plan, seconds: float, *, seed: int, pause_ms: int, progress: Progress) -> Vacuumed:
    """Vacuum for so long. Raises ``DrillError``, ``DevClusterError`` and the errors of the client and the store."""
    plan = replace(plan, processes=PROCESSES, limits=(*plan.limits, f"transaction_life_ms={LIFE_MS}"))
    with Guard() as guard, installed(plan, guard, progress) as installation:
        installation.settings = replace(installation.settings, heartbeat_interval_ms=LIFE_MS // BEATS_IN_A_LIFE)
        with TransactionManager.connect(installation.settings) as manager:
            tables = load_tables(installation.settings.root)
            create_tables(manager, tables)
            settings = load_settings(plan, installation, tables, seed=seed, pause_ms=pause_ms)
            with running(settings, python("drills.load"), installation.logs, guard) as loads:
                progress(Step("load begins, without a vacuum at first"))
                loads.await_commits(0, START_SECONDS_MAX, "at the start")
                watch = Watch(manager, [workload_of(name, tables).table for name in LOADS])
                begun_ns = time.monotonic_ns()
                watch.sample_for(seconds * WITHOUT_SHARE)
                quiet = Window(begun_ns, time.monotonic_ns())
                while watch.elapsed() < seconds:
                    watch.vacuum()
                    progress(
                        Step(f"{watch.vacuums} vacuums, {watch.samples[-1].commit_rows:,} rows in the commit table")
                    )
                    loads.await_commits(time.monotonic_ns(), START_SECONDS_MAX, "after a vacuum")
                took = watch.elapsed()
                progress(Step("ending the load"))
                loads.stop()
                progress(Step("reading what it left, and checking its history"))
                tenures = [tenure.epoch for tenure in installation.tenures()]
                record = gather(manager, settings, [], tenures, outcomes_from=watch.outcomes_from)
            return Vacuumed.of(
                findings(record, quiet),
                samples=watch.samples,
                changed=watch.changed,
                vacuums=watch.vacuums,
                looks=watch.looks,
                seconds=took,
            )


class Watch:
    """Vacuums, and what is seen of them."""

    def __init__(self, manager: TransactionManager, tables: Sequence[str]) -> None:
        self._manager = manager
        self._tables = tables
        self._begun = time.monotonic()
        self._held: deque[_Held] = deque(maxlen=SNAPSHOTS_OPEN_MAX)
        self.samples: list[Sample] = []
        self.changed: list[str] = []
        self.vacuums = 0
        self.looks = 0
        self.outcomes_from = 0

    def elapsed(self) -> float:
        """Seconds."""
        return time.monotonic() - self._begun

    def sample_for(self, seconds: float) -> None:
        """Look now and then, for so long."""
        while self.elapsed() < seconds:
            self._sample(after_vacuum=False)
            time.sleep(SAMPLE_SECONDS)

    def vacuum(self) -> None:
        """One vacuum, across snapshots that are open; samples right before it and after it."""
        self._held.append(_Held(self._manager.snapshot(), self._tables))
        self._sample(after_vacuum=False)
        try:
            report = run_vacuum(self._manager, retain_ms=0, outcomes_retain_ms=0)
        except HorizonUnknown:  # as long after an oracle has become primary
            time.sleep(HORIZON_SECONDS)
            return
        self.changed += [f"{table}: {problem}" for table, problem in report.problems.items()]
        self.vacuums += 1
        self.outcomes_from = max(self.outcomes_from, report.outcomes_horizon)
        self._sample(after_vacuum=True)
        for held in self._held:
            self.looks += 1
            self.changed += list(held.differences())[: max(0, DIFFERENCES_TOLD_MAX - len(self.changed))]

    def _sample(self, *, after_vacuum: bool) -> None:
        rows = sum(1 for _ in self._rows(table_name(self._manager.settings.root)))
        counts = [count for table in self._tables for count in self._versions(table)]
        mean = sum(counts) / len(counts) if counts else 0.0
        self.samples.append(
            Sample(round(self.elapsed(), 1), self.vacuums, after_vacuum, rows, round(mean, 2), max(counts, default=0))
        )

    def _versions(self, table: str) -> Iterator[int]:
        for row, cells in self._rows(table):
            for column in cells:
                if not is_reserved(column):
                    yield len(self._manager.store.versions(table, row, column, limit=VERSIONS_MAX))

    def _rows(self, table: str) -> Iterator[tuple[bytes, Row]]:
        """As they are stored."""
        families = [family.encode() for family in self._manager.store.families(table)]
        return self._manager.store.scan(table, ALL_ROWS, families)
