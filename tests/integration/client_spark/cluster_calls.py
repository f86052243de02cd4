"""What a driver of Spark's own cluster does: for a process of its own (``driver_process``)."""

from __future__ import annotations

import os
import time
import warnings
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Final

import pyarrow as pa
from pyspark import SparkContext, TaskContext
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession

from client import ClientSettings, PythiaError, TransactionManager
from client.spark import register
from tests.integration.client_spark.driver_calls import active_session
from tests.spark_jobs.machines import ARCHIVED_AS, JAVA_OPTIONS, PYTHON_PATH
from tests.spark_jobs.session import SPARK_SETTINGS, addresses, quick_environment
from tests.spark_jobs.standalone import Cluster

PARTITIONS: Final = 4
ROWS: Final = 80_000
BATCH_ROWS: Final = 1_000
"""Both of Arrow's, on the way to a task, and of those that it writes together."""
HELD_AFTER: Final = 15
"""Batches of the first partition, of twenty: 240 KB, of which two buffers of 64 KiB lie on the way to the writer."""
POLL_SECONDS: Final = 0.05
_EXECUTORS: Final = {
    "spark.executorEnv.PYTHONPATH": PYTHON_PATH,
    "spark.executor.memory": "512m",
    "spark.executor.cores": "1",
    "spark.cores.max": "2",
    "spark.executor.extraJavaOptions": JAVA_OPTIONS,
    "spark.executor.heartbeatInterval": "1s",
    "spark.network.timeoutInterval": "2s",
    "spark.network.timeout": "10s",  # after which an executor that says nothing is given up
    "spark.sql.execution.arrow.maxRecordsPerBatch": str(BATCH_ROWS),
    "spark.sql.adaptive.enabled": "false",  # as many partitions as are asked for
}


def connect(cluster: Cluster, settings: ClientSettings, more: Mapping[str, str]) -> None:
    """Before all others: makes the session that they use, with an executor on each machine."""
    warnings.filterwarnings("ignore", "PySpark does not yet fully support pandas", FutureWarning)
    os.environ.update(quick_environment() | {"PYSPARK_PYTHON": str(cluster.python)})
    builder = SparkSession.Builder().master(cluster.url).appName("pythia tests")
    archive = {"spark.archives": f"{cluster.archive}#{ARCHIVED_AS}"}
    folder = {"spark.sql.warehouse.dir": str(cluster.logs / "warehouse")}
    for name, value in {**SPARK_SETTINGS, **_EXECUTORS, **archive, **folder, **addresses(settings), **more}.items():
        builder = builder.config(name, value)
    made = builder.getOrCreate()
    made.sparkContext.setLogLevel("WARN")
    register(made)


def where_tasks_run() -> set[tuple[str, str, int]]:
    """Of each machine: the file of Python, that of the library, and how many kernels a task had to compile."""

    def look(_: int) -> tuple[str, str, int]:
        import sys

        import client.spark.writer
        import kernels

        kernels.compile_all()
        return sys.executable, client.__file__, sum(len(each.keeping.kept) for each in kernels.KERNELS)

    return set(active_session().sparkContext.parallelize(range(8), 8).map(look).collect())


def write_held(
    settings: ClientSettings, tables: tuple[str, str], gate: Path, *, shuffled: bool = False, random: bool = False
) -> str:
    """Write ``ROWS`` rows k → 2k into one table and a few into another, in one transaction; what it ended with.

    The first attempt at the first partition stands still in the middle until ``gate`` has a file ``open``.
    ``shuffled``: the rows come out of a shuffle. ``random``: each attempt has other rows.
    """
    first, second = tables
    try:
        with TransactionManager.connect(settings) as manager, manager.transaction() as transaction:
            (gate / "transaction").write_text(str(transaction.start_timestamp))
            options = {"transaction": transaction.handle().to_json(), "batch_rows": str(BATCH_ROWS)}
            active_session().range(10).selectExpr("id AS k", "id AS v").write.format("pythia").mode("append").options(
                table=second, **options
            ).save()
            _held(gate, shuffled, random).write.format("pythia").mode("append").options(table=first, **options).save()
    except (PySparkException, PythiaError) as error:
        return str(error)
    return "committed"


def write_between_executors(settings: ClientSettings, tables: tuple[str, str]) -> tuple[list[bool], str]:
    """Write the same rows into two tables in one transaction, waiting before each until there is no executor; whether
    there were any after each, and what it ended with.
    """
    context, used = active_session().sparkContext, list[bool]()
    with TransactionManager.connect(settings) as manager, manager.transaction() as transaction:
        options = {"transaction": transaction.handle().to_json()}
        for table in tables:
            while _executors(context):
                time.sleep(POLL_SECONDS)
            active_session().range(100).selectExpr("id AS k", "id AS v").write.format("pythia").mode("append").options(
                table=table, **options
            ).save()
            used.append(_executors(context) > 0)
    return used, transaction.status.value


def _executors(context: SparkContext) -> int:
    """Of the driver's, which is among those that have memory for blocks."""
    with_memory: int = context._jsc.sc().getExecutorMemoryStatus().size()
    return with_memory - 1


def stage_attempts() -> int:
    """How often the stage that was tried most often has been begun so far."""
    tracker = active_session().sparkContext.statusTracker()
    jobs = [info for job in tracker.getJobIdsForGroup() if (info := tracker.getJobInfo(job)) is not None]
    stages = [stage for job in jobs for stage in job.stageIds]
    tried = [found for stage in stages if (found := tracker.getStageInfo(stage)) is not None]
    return 1 + max(stage.currentAttemptId for stage in tried)


def _held(gate: Path, shuffled: bool, random: bool) -> DataFrame:
    held_after = HELD_AFTER  # a task takes what is closed over along, and cannot import this module

    def through_the_gate(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        import os
        import time
        import uuid

        import pyarrow

        task = TaskContext.get()
        assert task is not None
        (gate / f"attempt-{task.partitionId()}-{task.taskAttemptId()}").write_text(str(os.getpid()))
        for number, batch in enumerate(batches):
            if number == held_after and task.partitionId() == 0 and not (gate / "held").exists():
                (gate / "held").write_text(str(os.getpid()))
                while not (gate / "open").exists():
                    time.sleep(0.02)
            if random:
                keys = pyarrow.array([uuid.uuid4().int >> 65 for _ in range(batch.num_rows)], pyarrow.int64())
                batch = pyarrow.RecordBatch.from_arrays([keys, batch.column(1)], names=["k", "v"])
            yield batch

    rows = active_session().range(0, ROWS, numPartitions=PARTITIONS).selectExpr("id AS k", "2 * id AS v")
    if shuffled:
        rows = rows.repartition(PARTITIONS, "k")
    return rows.mapInArrow(through_the_gate, "k BIGINT, v BIGINT")
