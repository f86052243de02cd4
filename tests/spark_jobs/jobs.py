"""The job that is disturbed: one value into every row of two tables, in a transaction of the driver's or without one.

It says in which phase it is, so that who disturbs it can choose a moment.
"""

from __future__ import annotations

import re
import threading
import time
from dataclasses import dataclass
from typing import Final

from py4j.protocol import Py4JJavaError
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

from client import ClientSettings, NoPrimary, OutcomeUnknown, PythiaError, TransactionAborted, TransactionManager
from client.spark import KeyColumn, TableMapping, ValueColumn, create_table, register
from tests.spark_jobs.pairs import Result

PHASE_SECONDS_MAX: Final = 200.0
PARTITIONS: Final = 3
BATCH_ROWS: Final = 200

FIRST, SECOND, COMMIT, ALONE = "first table", "second table", "commit", "job alone"

_HINT = re.compile(r"(?:client|store|commit_table|wire)(?:\.\w+)*\.(\w+): ([^\n]*)")


@dataclass(frozen=True)
class Ended:
    """How a job ended; ``reason``: what it said of itself, in a few words, ``""`` where it committed."""

    result: Result
    reason: str = ""
    detail: str = ""


class Phases:
    """Which phase a job is in, how long each took, and waiting for one."""

    def __init__(self) -> None:
        self.seconds: dict[str, float] = {}
        self.now = ""
        self._since = time.monotonic()
        self._changed = threading.Condition()

    def enter(self, phase: str) -> None:
        """The job goes on to this; ``""``: it is over."""
        with self._changed:
            if self.now:
                self.seconds[self.now] = time.monotonic() - self._since
            self.now, self._since = phase, time.monotonic()
            self._changed.notify_all()

    def until(self, phase: str) -> bool:
        """Wait for a phase; whether it came."""
        with self._changed:
            return self._changed.wait_for(lambda: self.now == phase, PHASE_SECONDS_MAX)


SPARKS_ERRORS = (PySparkException, Py4JJavaError)
"""The second one is what comes of a killed process that plans or commits: Spark has no words of its own for it."""


def make_tables(manager: TransactionManager, names: tuple[str, str]) -> None:
    """Two tables k → v."""
    for name in names:
        create_table(manager, TableMapping(name, ("k",), (KeyColumn("k", "bigint"), ValueColumn("v", "bigint"))))


def write(spark: SparkSession, settings: ClientSettings, table: str, rows: int, value: int, handle: str = "") -> None:
    """One job of Spark. Raises what Spark raises."""
    options = {"table": table, "batch_rows": str(BATCH_ROWS)}
    options |= {"transaction": handle} if handle else _where(settings)
    data = spark.range(0, rows, numPartitions=PARTITIONS).selectExpr("id AS k", f"CAST({value} AS BIGINT) AS v")
    data.write.format("pythia").mode("append").options(**options).save()


def together(
    spark: SparkSession, manager: TransactionManager, tables: tuple[str, str], rows: int, value: int, phases: Phases
) -> Ended:
    """Both tables in one transaction of the driver's."""
    register(spark)
    try:
        with manager.transaction() as transaction:
            handle = transaction.handle().to_json()
            for phase, table in zip((FIRST, SECOND), tables, strict=True):
                phases.enter(phase)
                write(spark, manager.settings, table, rows, value, handle)
            phases.enter(COMMIT)
            transaction.commit()
    except (TransactionAborted, NoPrimary) as error:
        return Ended(Result.REFUSED, _words(type(error).__name__, str(error)), str(error))
    except OutcomeUnknown as error:
        return Ended(Result.FAILED, type(error).__name__, str(error))
    except (PythiaError, *SPARKS_ERRORS) as error:  # before the commit: the block has rolled it back
        return Ended(Result.REFUSED, reason_of(str(error)), str(error))
    finally:
        phases.enter("")
    return Ended(Result.COMMITTED)


def alone(
    spark: SparkSession, manager: TransactionManager, tables: tuple[str, str], rows: int, value: int, phases: Phases
) -> Ended:
    """The first table, in the job's own transaction."""
    register(spark)
    phases.enter(ALONE)
    try:
        write(spark, manager.settings, tables[0], rows, value)
    except SPARKS_ERRORS as error:
        return Ended(Result.FAILED, reason_of(str(error)), str(error))
    finally:
        phases.enter("")
    return Ended(Result.COMMITTED)


def reason_of(text: str) -> str:
    """What an error of Spark's says of the cause: the last error of ours in it, or that a worker of Spark's died."""
    found = _HINT.findall(text)
    if found:
        return _words(*found[-1])
    if "Python worker exited unexpectedly" in text or "crashed" in text:
        return "Spark: a Python worker died"
    return "unexplained"


def _where(settings: ClientSettings) -> dict[str, str]:
    return {"zookeeper": settings.zookeeper, "thrift": settings.thrift, "root": settings.root}


def _words(kind: str, text: str) -> str:
    """Without the numbers and addresses, of which each time has its own."""
    return f"{kind}: {re.sub(r'[0-9a-f]{16,}|[0-9][0-9.:,]*', '…', text)[:90]}"
