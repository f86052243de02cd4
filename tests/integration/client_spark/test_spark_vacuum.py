"""A vacuum whose tables a Spark job sweeps: what it does and says is what one process does and says."""

from __future__ import annotations

import pytest
from pyspark.sql import SparkSession

from client import TransactionManager
from client.spark import SparkSweep
from client.vacuum import TableReport, VacuumReport, run_vacuum
from client.vacuum.parts import SweepParts, here
from commit_table.timestamps import milliseconds_of
from store import KeyRange
from tests.horizon import at_once, await_horizon

pytestmark = pytest.mark.integration

A, SHADOW = b"f:a", b"f:\x00"
ROWS = [b"r%03d" % number for number in range(60)]
ROUNDS = 3


def written(manager: TransactionManager, table: str) -> int:
    """Every row several times, each time by another transaction; a moment after that."""
    for round_ in range(ROUNDS):
        for row in ROWS:
            with manager.transaction() as transaction:
                transaction.put(table, row, {A: b"%d" % round_})
    with manager.transaction() as last:
        last.delete(table, ROWS[0])
    return manager.snapshot().timestamp


def vacuum(manager: TransactionManager, moment: int, sweep: SweepParts, *, everything: bool = False) -> VacuumReport:
    await_horizon(manager, lambda counted: milliseconds_of(counted.outcomes_horizon) > milliseconds_of(moment))
    return run_vacuum(manager, retain_ms=0, outcomes_retain_ms=0, everything=everything, sweep=sweep, wait=at_once)


def test_a_job_sweeps_as_one_process_does(spark: SparkSession, forgetful: TransactionManager) -> None:
    manager, told = forgetful, list[TableReport]()
    left = []
    one, job = (f"{manager.settings.root.strip('/')}-{name}" for name in ("one", "job"))
    for table, sweep in ((one, here), (job, SparkSweep(spark, min_partitions=3))):
        manager.create_table(table, ["f"])
        report = vacuum(manager, written(manager, table), sweep)
        assert report.problems == {}
        assert report.commit_table_rows_dropped > 0
        told.append(report.tables[table])
        left.append(
            {
                row: (cells[A].value, SHADOW in cells, len(manager.store.versions(table, row, A, limit=9)))
                for row, cells in manager.store.scan(table, KeyRange(b"", b""), [b"f"])
            }
        )
    assert left[0] == left[1] == dict.fromkeys(ROWS[1:], (b"2", True, 1))
    assert told[0] == told[1]
    again = vacuum(manager, manager.snapshot().timestamp, SparkSweep(spark))
    assert [again.tables[table].rows_passed_over for table in (one, job)] == [len(ROWS) - 1] * 2
